// SPDX-License-Identifier: MIT
// treemap.ts: what the resident memory is used for: each line of the account as an area, by kind.
import { fill, h, name, onWidth, size } from "./dom";
import { bytes, many, percent, shorten, visible } from "./format";
import type { HeapLine } from "./types";

interface Box {
	x: number;
	y: number;
	w: number;
	h: number;
}

const MOST = 1000; // areas: what is smaller is one
const LISTED = 500; // lines in the list

/* By colour; whatever else there is has none of its own. */
const KINDS = ["live blocks", "free, kept by the allocator", "allocator bookkeeping", "stacks", "code", "file data", "shared memory", "generated code", "other anonymous memory", "zeroed data of files (.bss)"];

/** A box divided by weights, the largest first, into boxes that are as square as can be. */
export function squarify(weights: number[], box: Box): Box[] {
	let { x, y, w, h: height } = box;
	let rest = weights.reduce((sum, weight) => sum + weight, 0);
	const out: Box[] = [];
	while (out.length < weights.length) {
		const first = out.length;
		const side = Math.min(w, height);
		const scale = rest > 0 ? (w * height) / rest : 0;
		// As many in a row as make the worst of them better.
		const worst = (sum: number, least: number): number => Math.max((side * side * weights[first]! * scale) / (sum * scale) ** 2, (sum * scale) ** 2 / (side * side * least * scale));
		let end = first + 1;
		let sum = weights[first]!;
		while (end < weights.length && worst(sum + weights[end]!, weights[end]!) <= worst(sum, weights[end - 1]!)) sum += weights[end++]!;
		const thick = side > 0 ? Math.min((sum * scale) / side, Math.max(w, height)) : 0;
		let at = 0;
		for (let i = first; i < end; i++) {
			const length = sum > 0 ? (side * weights[i]!) / sum : 0;
			out.push(w >= height ? { x, y: y + at, w: thick, h: length } : { x: x + at, y, w: length, h: thick });
			at += length;
		}
		if (w >= height) {
			x += thick;
			w -= thick;
		} else {
			y += thick;
			height -= thick;
		}
		rest -= sum;
	}
	return out;
}

interface Kind {
	name: string;
	color: string;
	bytes: number;
	lines: HeapLine[];
}

export class Treemap {
	readonly root = h("section", { class: "card", "aria-labelledby": "account-title" });
	private readonly stage = h("div", { class: "treemap", role: "listbox", "aria-label": "What the resident memory is used for. Arrow keys move." });
	private readonly readout = h("p", { class: "readout", role: "status", id: "account-readout" });
	private readonly kinds: Kind[];
	private active = 0;

	constructor(
		lines: HeapLine[],
		private readonly rss: number,
		beside: (Node | string)[][],
	) {
		this.kinds = kindsOf(lines);
		this.root.append(
			h("h2", { id: "account-title" }, "What the memory is used for"),
			h("div", { class: "chart account" }, h("div", { class: "stage" }, this.readout, this.stage), h("div", { class: "side" }, this.legend(beside))),
			this.list(lines),
		);
		this.tell(null);
		this.stage.addEventListener("pointerover", (event) => this.tell((event.target as HTMLElement).closest<HTMLElement>(".area")));
		this.stage.addEventListener("pointerleave", () => this.tell(null));
		this.stage.addEventListener("focusin", (event) => this.choose([...this.stage.children].indexOf((event.target as HTMLElement).closest(".area")!)));
		this.stage.addEventListener("focusout", () => this.tell(null));
		this.stage.addEventListener("keydown", (event) => this.onKey(event));
		onWidth(this.stage, () => this.layout());
	}

	private legend(beside: (Node | string)[][]): HTMLElement {
		return h(
			"ul",
			{ class: "legend", "aria-label": "By kind" },
			this.kinds.map((kind) => h("li", { "data-kind": kind.name }, h("span", { class: `swatch ${kind.color}` }), h("span", { class: "legend-name", title: kind.name }, kind.name), h("span", { class: "legend-value" }, size(kind.bytes), ` ${percent(kind.bytes, this.rss)}`))),
			h("li", { class: "sum" }, h("span"), h("span", { class: "legend-name" }, "resident"), h("span", { class: "legend-value" }, size(this.rss))),
			beside.map((line) => h("li", { class: "note" }, line)),
		);
	}

	private list(lines: HeapLine[]): HTMLElement {
		const shown = lines.slice(0, LISTED);
		const rest = lines.slice(LISTED);
		const swaps = lines.some((line) => line.swapped);
		return h(
			"details",
			{ class: "sizes" },
			h("summary", null, `All ${many(lines.length, "line")} of the account`),
			h(
				"div",
				{ class: "table-wrap" },
				h(
					"table",
					{ class: "plain", id: "account-lines" },
					h("thead", null, h("tr", null, ["What for", "Of"].map((text) => h("th", { scope: "col" }, text)), ["Resident", "Share", swaps && "Swapped out"].map((text) => text && h("th", { scope: "col", class: "figure" }, text)))),
					h("tbody", null, shown.map((line) => h("tr", null, h("th", { scope: "row" }, line.name), h("td", { class: "wide" }, line.detail && name(line.detail, 90)), h("td", { class: "figure" }, size(line.bytes)), h("td", { class: "figure" }, percent(line.bytes, this.rss)), swaps && h("td", { class: "figure" }, size(line.swapped))))),
				),
				rest.length > 0 && h("p", { class: "note" }, `… and ${many(rest.length, "smaller line")}, ${bytes(rest.reduce((sum, line) => sum + line.bytes, 0))} together`),
			),
		);
	}

	private layout(): void {
		const box = { x: 0, y: 0, w: this.stage.clientWidth, h: this.stage.clientHeight };
		const kinds = this.kinds.filter((kind) => kind.bytes > 0);
		const elements: HTMLElement[] = [];
		squarify(kinds.map((kind) => kind.bytes), box).forEach((outer, i) => {
			const { color, lines } = kinds[i]!;
			squarify(lines.map((line) => line.bytes), outer).forEach((inner, j) => elements.push(this.area(lines[j]!, color, inner, elements.length)));
		});
		fill(this.stage, elements);
	}

	private area(line: HeapLine, color: string, box: Box, index: number): HTMLElement {
		const text = textOf(line);
		const share = percent(line.bytes, this.rss);
		const label = box.w > 44 && box.h > 17 ? [h("span", { class: "area-name" }, h("bdi", null, shorten(visible(line.detail || line.name), 80))), box.h > 36 && h("span", { class: "area-size" }, `${bytes(line.bytes)}, ${share}`)] : [];
		const element = h("div", { class: `area ${color}`, role: "option", tabindex: index === this.active ? 0 : -1, "aria-selected": String(index === this.active), "aria-label": `${text}: ${bytes(line.bytes)}, ${share}`, "data-bytes": line.bytes, "data-text": text }, label);
		Object.assign(element.style, { left: `${box.x}px`, top: `${box.y}px`, width: `${box.w}px`, height: `${box.h}px` });
		return element;
	}

	private tell(element: HTMLElement | null): void {
		const of = Number(element?.dataset.bytes ?? this.rss);
		fill(this.readout, element ? [h("bdi", null, element.dataset.text!), ": ", size(of), `, ${percent(of, this.rss)}`] : [size(of), " resident: each area is a line of the account"]);
	}

	private choose(index: number): void {
		const all = this.stage.children;
		for (const [at, on] of [[this.active, false], [index, true]] as const) {
			all[at]?.setAttribute("tabindex", on ? "0" : "-1");
			all[at]?.setAttribute("aria-selected", String(on));
		}
		this.active = index;
		this.tell(all[index] as HTMLElement);
	}

	private onKey(event: KeyboardEvent): void {
		const all = this.stage.children;
		const to = { ArrowRight: this.active + 1, ArrowDown: this.active + 1, ArrowLeft: this.active - 1, ArrowUp: this.active - 1, Home: 0, End: all.length - 1 }[event.key];
		if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
		event.preventDefault();
		(all[Math.min(Math.max(to, 0), all.length - 1)] as HTMLElement | undefined)?.focus();
	}
}

function textOf(line: HeapLine): string {
	return line.detail ? `${line.name}: ${shorten(visible(line.detail), 300)}` : line.name;
}

/* The largest first, as are their lines; what is beyond the number of areas is one of its kind. */
function kindsOf(lines: HeapLine[]): Kind[] {
	const kinds = new Map<string, Kind>();
	const smaller = new Map<Kind, HeapLine>();
	const sorted = lines.filter((line) => line.bytes > 0).sort((a, b) => b.bytes - a.bytes);
	sorted.forEach((line, i) => {
		let kind = kinds.get(line.name);
		if (!kind) {
			const color = KINDS.indexOf(line.name);
			kinds.set(line.name, (kind = { name: line.name, color: color < 0 ? "m-rest" : `m${color}`, bytes: 0, lines: [] }));
		}
		kind.bytes += line.bytes;
		if (i < MOST) {
			kind.lines.push(line);
			return;
		}
		const rest = smaller.get(kind);
		if (rest) rest.bytes += line.bytes;
		else {
			smaller.set(kind, { ...line, detail: "all smaller lines" });
			kind.lines.push(smaller.get(kind)!);
		}
	});
	return [...kinds.values()].sort((a, b) => b.bytes - a.bytes);
}
