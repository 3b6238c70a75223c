// SPDX-License-Identifier: MIT
// dom.ts: elements made of text only. Nothing in the page is ever made from markup.
import { bytes, count, shorten, visible } from "./format";

type Child = Node | string | number | null | undefined | false | Child[];
type Handlers = { [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void };
type Props = { [name: string]: unknown; on?: Handlers };

function add(element: Element, children: Child[]): void {
	for (const child of children) {
		if (child === null || child === undefined || child === false) continue;
		if (Array.isArray(child)) add(element, child);
		else if (child instanceof Node) element.appendChild(child);
		else element.appendChild(document.createTextNode(String(child)));
	}
}

/** `h("div", {class: "x", on: {click}}, "text", child)`. Attributes of null, undefined and false are left out. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props | null = null, ...children: Child[]): HTMLElementTagNameMap[K] {
	const element = document.createElement(tag);
	for (const [name, value] of Object.entries(props ?? {})) {
		if (value === null || value === undefined || value === false) continue;
		if (name === "on") {
			for (const [event, handler] of Object.entries(value as Handlers)) element.addEventListener(event, handler as EventListener);
		} else {
			element.setAttribute(name, value === true ? "" : String(value));
		}
	}
	add(element, children);
	return element;
}

export function svg(tag: string, props: Record<string, string | number>): SVGElement {
	const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
	for (const [name, value] of Object.entries(props)) element.setAttribute(name, String(value));
	return element;
}

export function fill(element: Element, ...children: Child[]): void {
	element.replaceChildren();
	add(element, children);
}

/** A figure that keeps its exact value. */
export function size(value: number, label?: string): HTMLElement {
	return h("data", { value, title: `${count(value)} bytes${label ? " " + label : ""}` }, bytes(value));
}

export function number(value: number): HTMLElement {
	return h("data", { value }, count(value));
}

let dialog: HTMLDialogElement | null = null;

/** Show a text whole. */
export function showWhole(text: string, title: string): void {
	dialog?.remove();
	const close = h("button", { type: "button", class: "button" }, "Close");
	dialog = h("dialog", { class: "whole", "aria-label": title }, h("h2", null, title), h("pre", { tabindex: 0 }, h("bdi", null, visible(text))), close);
	const own = dialog;
	const before = document.activeElement as HTMLElement | null;
	close.addEventListener("click", () => own.close());
	own.addEventListener("close", () => {
		own.remove();
		before?.focus?.();
	});
	document.body.appendChild(own);
	own.showModal();
	close.focus();
}

/** A name that comes from a process: isolated from the text around it, invisible characters shown, shortened, whole on demand. */
export function name(text: string, most = 120, what = "Full name"): HTMLElement {
	const seen = visible(text);
	const short = shorten(seen, most);
	const shown = h("bdi", { class: "name", title: short === seen ? null : shorten(seen, 2000) }, short);
	if (short === seen) return shown;
	const more = h("button", { type: "button", class: "more", "aria-label": "Show the full name", title: "Show the full name" }, "⋯");
	more.addEventListener("click", (event) => {
		event.stopPropagation();
		showWhole(text, what);
	});
	return h("span", { class: "long" }, shown, more);
}

export function button(label: string, onClick: () => void, props: Props = {}): HTMLButtonElement {
	return h("button", { type: "button", class: "button", ...props, on: { click: onClick } }, label);
}

/** One choice of a few, as a select with a label. */
export function choice<T extends string>(label: string, options: [T, string][], value: T, onChange: (value: T) => void, id: string): HTMLElement {
	const select = h("select", { id }, options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)));
	select.addEventListener("change", () => onChange(select.value as T));
	return h("label", { class: "field" }, h("span", null, label), select);
}

/** One choice of a few, as buttons side by side. */
export function segments<T extends string>(label: string, options: [T, string][], value: T, onChange: (value: T) => void): HTMLElement {
	const group = h("div", { class: "segments", role: "radiogroup", "aria-label": label });
	const buttons = options.map(([key, text]) => {
		const one = h("button", { type: "button", role: "radio", "aria-checked": key === value, tabindex: key === value ? 0 : -1, "data-value": key }, text);
		one.setAttribute("aria-checked", String(key === value));
		one.addEventListener("click", () => pick(key));
		return one;
	});
	const pick = (key: T): void => {
		buttons.forEach((one, i) => {
			const on = options[i]![0] === key;
			one.setAttribute("aria-checked", String(on));
			one.tabIndex = on ? 0 : -1;
		});
		onChange(key);
	};
	group.addEventListener("keydown", (event) => {
		const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
		if (!step) return;
		event.preventDefault();
		const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
		const next = (at + step + buttons.length) % buttons.length;
		pick(options[next]![0]);
		buttons[next]!.focus();
	});
	group.append(...buttons);
	return group;
}

/** Call it when the width of an element has changed. */
export function onWidth(element: HTMLElement, changed: () => void): void {
	let width = 0;
	new ResizeObserver(() => {
		if (element.clientWidth === width) return;
		width = element.clientWidth;
		changed();
	}).observe(element);
}
