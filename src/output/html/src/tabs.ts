// SPDX-License-Identifier: MIT
// tabs.ts: views of which one is shown at a time; on paper all are. The first one is shown at first.
import type { View } from "./app";
import { h } from "./dom";

export class Tabs {
	readonly bar = h("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
	readonly panels = h("div", { class: "panels card" });
	readonly first: string;
	current: string;
	private readonly stale = new Set<string>();
	private readonly buttons = new Map<string, HTMLButtonElement>();
	private readonly boxes = new Map<string, HTMLElement>();
	private printing = false;

	constructor(
		private readonly views: Map<string, { label: string; view: View & { root: HTMLElement } }>,
		private readonly onShow: () => void,
	) {
		this.first = this.current = [...views.keys()][0]!;
		for (const [key, { label, view }] of views) {
			const one = h("button", { type: "button", role: "tab", id: `tab-${key}`, "aria-controls": `panel-${key}` }, label);
			one.addEventListener("click", () => this.show(key));
			this.buttons.set(key, one);
			this.bar.appendChild(one);
			const box = h("div", { role: "tabpanel", id: `panel-${key}`, "aria-labelledby": `tab-${key}` }, h("h2", { class: "print-only" }, label), view.root);
			this.boxes.set(key, box);
			this.panels.appendChild(box);
			this.stale.add(key);
		}
		this.bar.addEventListener("keydown", (event) => {
			const keys = [...views.keys()];
			const at = keys.indexOf(this.current);
			const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: keys.length - 1 }[event.key];
			if (next === undefined) return;
			event.preventDefault();
			const key = keys[(next + keys.length) % keys.length]!;
			this.show(key);
			this.buttons.get(key)!.focus();
		});
	}

	show(name: string): void {
		const key = this.views.has(name) ? name : this.first;
		this.current = key;
		for (const [other, button] of this.buttons) {
			const on = other === key;
			button.setAttribute("aria-selected", String(on));
			button.tabIndex = on ? 0 : -1;
			this.boxes.get(other)!.hidden = !on && !this.printing;
		}
		this.draw();
		this.onShow();
	}

	/** The figures have changed: the shown view is drawn at once, the others when they are shown. */
	changed(): void {
		for (const key of this.views.keys()) this.stale.add(key);
		this.draw();
	}

	private draw(): void {
		for (const [key, { view }] of this.views) {
			if (!this.stale.has(key) || this.boxes.get(key)!.hidden) continue;
			this.stale.delete(key);
			view.draw();
		}
	}

	/** All views are printed. */
	print(on: boolean): void {
		this.printing = on;
		this.show(this.current);
		for (const { view } of this.views.values()) view.print?.(on);
	}
}
