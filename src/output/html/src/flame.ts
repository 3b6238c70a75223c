// SPDX-License-Identifier: MIT
// flame.ts: the flame graph: one element for each frame that is wide enough to be seen.
import type { App } from "./app";
import { button, fill, h, name, onWidth, segments } from "./dom";
import { basename, bytes, count, percent, shortName, shorten, visible } from "./format";
import { type Direction, type FlameTree, type Measure, buildTree, nodeWeights, stackWeights } from "./flametree";
import { functionText, languageTag, placeOf } from "./labels";
import { isScript } from "./model";
import type { Frame } from "./types";

const ROW = 20;
const LEAST = 1.2; // px: what is narrower is left out
const MOST = 6000; // elements at a time

const EMPTY: Record<Measure, string> = {
	impacting: "All that was allocated in this interval was freed by its end.",
	transient: "Nothing that was allocated in this interval was freed in it.",
	size: "Nothing was allocated in this interval.",
	count: "Nothing was allocated in this interval.",
	peak: "Nothing was outstanding at the end of any step of this interval.",
};
const OWN = 4; // colours of own modules; what is more shares the last
const CLASSES = [...Array.from({ length: OWN }, (_, i) => `own${i}`), "library", "none", "hit"];

export class Flame {
	readonly root = h("section", { class: "panel", "aria-label": "Flame graph" });
	private measure: Measure = "impacting";
	private direction: Direction = "down";
	private readonly trees = new Map<string, FlameTree>(); // by direction, and which frames are shown
	private weights: Float64Array = new Float64Array();
	private focus = 0; // the node that is as wide as the graph
	private active = 0; // of the keyboard
	private drawn = ""; // which frames were shown
	private text = "";
	private readonly elements = new Map<number, HTMLElement>();
	private readonly ownColors = new Map<string, number>(); // of own modules: the program first
	private readonly stage = h("div", { class: "flame", role: "tree", "aria-label": "Flame graph. Up and down go to callers and callees, left and right to neighbours; Enter fills the width; Escape shows all." });
	private readonly info = h("div", { class: "flame-info", role: "status" });
	private readonly legend = h("ul", { class: "flame-legend", "aria-label": "Colours" });
	private readonly found = h("span", { class: "found", role: "status" });
	private readonly search = h("input", { type: "search", placeholder: "Search functions, modules, files", "aria-label": "Search in the flame graph", id: "flame-search" });
	private readonly reset: HTMLButtonElement;

	constructor(private readonly app: App) {
		const measures: [Measure, string][] = [["impacting", "not freed"], ["transient", "freed"], ["size", "allocated"], ["count", "count"], ["peak", "peak"]];
		for (const { report } of app.model.processes) if (report.target.exe !== null) this.ownColor(report.target.exe);
		this.reset = button("Show all", () => this.focusOn(0), { disabled: true });
		this.search.addEventListener("input", () => {
			this.text = this.search.value.toLowerCase();
			this.layout();
		});
		this.root.append(
			h(
				"div",
				{ class: "bar" },
				segments<Measure>("Width", measures, this.measure, (value) => {
					this.measure = value;
					this.draw();
				}),
				segments<Direction>("Direction", [["down", "top-down"], ["up", "bottom-up"]], this.direction, (value) => {
					this.direction = value;
					this.focus = this.active = 0;
					this.draw();
				}),
				this.reset,
				h("span", { class: "spring" }),
				this.search,
				this.found,
			),
			this.info,
			this.legend,
			this.stage,
		);
		this.stage.addEventListener("click", (event) => {
			const node = this.nodeOf(event);
			if (node !== null) this.focusOn(node === this.focus ? (this.tree().parent[node] ?? 0) : node);
		});
		this.stage.addEventListener("pointermove", (event) => {
			const node = this.nodeOf(event);
			this.tell(node ?? this.focus);
		});
		this.stage.addEventListener("focusin", (event) => {
			const node = this.nodeOf(event);
			if (node !== null) this.tell((this.active = node));
		});
		this.stage.addEventListener("keydown", (event) => this.onKey(event));
		onWidth(this.stage, () => this.layout());
	}

	draw(): void {
		// Nodes have other numbers in another tree.
		if (this.drawn !== this.app.model.shownFrames) this.focus = this.active = 0;
		this.drawn = this.app.model.shownFrames;
		this.weights = nodeWeights(this.tree(), stackWeights(this.app, this.measure));
		if (!this.weights[this.focus]) this.focus = 0;
		this.layout();
	}

	private tree(): FlameTree {
		const key = `${this.direction} ${this.app.model.shownFrames}`;
		let tree = this.trees.get(key);
		if (!tree) this.trees.set(key, (tree = buildTree(this.app.model, this.direction)));
		return tree;
	}

	private nodeOf(event: Event): number | null {
		const element = (event.target as HTMLElement).closest<HTMLElement>(".node");
		return element ? Number(element.dataset.node) : null;
	}

	private shown(value: number): string {
		return this.measure === "count" ? `${count(value)} allocations` : bytes(value);
	}

	private label(node: number): string {
		return node === 0 ? "all" : functionText(this.tree().frame[node]!);
	}

	/** The class that gives a frame its colour: own code by module, apart from all libraries. */
	private classOf(frame: Frame): string {
		const code = this.app.model.codeOf(frame);
		if (code !== "own") return code;
		return `own${this.ownColor(frame.module!)}`;
	}

	private ownColor(module: string): number {
		let color = this.ownColors.get(module);
		if (color === undefined) this.ownColors.set(module, (color = Math.min(this.ownColors.size, OWN - 1)));
		return color;
	}

	private drawLegend(): void {
		const modules = new Map<string, Set<string>>();
		for (const [node, element] of this.elements) {
			const frame = this.tree().frame[node];
			if (!frame) continue;
			const key = element.classList.contains("hit") ? "hit" : this.classOf(frame);
			let names = modules.get(key);
			if (!names) modules.set(key, (names = new Set()));
			if (frame.module !== null) names.add(basename(frame.module));
		}
		const label = (key: string): string => {
			if (key === "hit") return "found";
			if (key === "none") return "code in no file";
			if (key === "library") return "libraries";
			const names = [...modules.get(key)!];
			return `own code: ${names.slice(0, 3).map((text) => shorten(visible(text), 40)).join(", ")}${names.length > 3 ? ` and ${names.length - 3} more` : ""}`;
		};
		const title = (key: string): string | null => (key === "library" ? `The system's libraries, and C++'s and Rust's that are compiled into own code: ${shorten(visible([...modules.get(key)!].join(", ")), 1000)}` : null);
		fill(this.legend, CLASSES.filter((key) => modules.has(key)).map((key) => h("li", { title: title(key), "data-class": key }, h("span", { class: `swatch ${key}` }), h("bdi", null, label(key)))));
	}

	/** What a search finds; what is found below another hit is not counted again. */
	private matches(): { hit: Uint8Array; weight: number; hits: number } {
		const tree = this.tree();
		const hit = new Uint8Array(tree.parent.length);
		const covered = new Uint8Array(tree.parent.length);
		let weight = 0;
		let hits = 0;
		const has = (text: string | null): boolean => text !== null && text.toLowerCase().includes(this.text);
		for (let node = 1; node < hit.length; node++) {
			const frame = tree.frame[node]!;
			covered[node] = covered[tree.parent[node]!]!;
			if (!this.weights[node] || !(has(frame.function) || has(frame.module) || has(frame.file))) continue;
			hit[node] = 1;
			hits++;
			if (!covered[node]) weight += this.weights[node]!;
			covered[node] = 1;
		}
		return { hit, weight, hits };
	}

	private layout(): void {
		const tree = this.tree();
		const width = this.stage.clientWidth || 800;
		const found = this.text ? this.matches() : null;
		const unit = width / (this.weights[this.focus] || 1);
		const placed: [number, number, number][] = [];
		for (let node = tree.parent[this.focus]!; node >= 0; node = tree.parent[node]!) placed.push([node, 0, width]);
		const todo: [number, number][] = [[this.focus, 0]];
		while (todo.length && placed.length < MOST) {
			const [node, x] = todo.shift()!;
			placed.push([node, x, this.weights[node]! * unit]);
			let at = x;
			const children = tree.children[node]!.filter((child) => this.weights[child]! * unit >= LEAST);
			children.sort((a, b) => this.weights[b]! - this.weights[a]! || a - b);
			for (const child of children) {
				todo.push([child, at]);
				at += this.weights[child]! * unit;
			}
		}
		const had = this.stage.contains(document.activeElement);
		this.elements.clear();
		let deepest = 0;
		for (const [node, x, w] of placed) {
			deepest = Math.max(deepest, tree.depth[node]!);
			this.elements.set(node, this.element(node, x, w, found?.hit ?? null));
		}
		if (!this.elements.has(this.active)) this.active = this.focus;
		fill(this.stage, this.weights[0] ? [...this.elements.values()] : h("p", { class: "note" }, EMPTY[this.measure]));
		this.stage.style.height = `${(deepest + 1) * ROW + 2}px`;
		this.reset.disabled = this.focus === 0;
		this.elements.get(this.active)?.setAttribute("tabindex", "0");
		if (had) this.elements.get(this.active)?.focus({ preventScroll: true });
		this.found.textContent = found ? `${found.hits} found: ${this.shown(found.weight)}, ${percent(found.weight, this.weights[0] ?? 0)}` : "";
		this.found.dataset.value = found ? String(found.weight) : "";
		this.drawLegend();
		this.tell(this.focus);
	}

	private element(node: number, x: number, w: number, hit: Uint8Array | null): HTMLElement {
		const tree = this.tree();
		const frame = tree.frame[node];
		const text = this.label(node);
		const weight = this.weights[node]!;
		const above = node !== this.focus && x === 0 && tree.depth[node]! < tree.depth[this.focus]!;
		const classes = ["node", frame ? this.classOf(frame) : "root"];
		if (above) classes.push("above");
		if (hit) classes.push(hit[node] ? "hit" : "miss");
		const element = h(
			"div",
			{ class: classes.join(" "), role: "treeitem", tabindex: -1, "aria-level": tree.depth[node]! + 1, "aria-label": `${shorten(visible(text), 200)}, ${this.shown(weight)}, ${percent(weight, this.weights[0]!)}`, "data-node": node, "data-value": weight },
			w > 24 && h("bdi", null, shortName(visible(text), Math.max(4, Math.floor((w - 6) / 7.3)))),
		);
		element.style.left = `${x.toFixed(2)}px`;
		element.style.width = `${Math.max(1, w - 1).toFixed(2)}px`;
		element.style.top = `${tree.depth[node]! * ROW}px`;
		return element;
	}

	private tell(node: number): void {
		const frame = this.tree().frame[node] ?? null;
		const weight = this.weights[node] ?? 0;
		fill(
			this.info,
			h("b", null, name(this.label(node), 140, "Function")),
			" ",
			frame && languageTag(frame),
			" ",
			frame && frame.module !== null && !isScript(frame) && h("span", { class: "module" }, h("bdi", null, visible(basename(frame.module)).slice(-80))),
			" ",
			frame && placeOf(frame),
			h("span", { class: "spring" }),
			h("data", { value: weight }, this.shown(weight)),
			h("span", { class: "note" }, ` ${percent(weight, this.weights[0] ?? 0)} of all`, this.focus ? `, ${percent(weight, this.weights[this.focus]!)} of what fills the width` : ""),
		);
	}

	private focusOn(node: number): void {
		this.focus = this.active = Math.max(0, node);
		this.layout();
	}

	private go(node: number | undefined): void {
		if (node === undefined || !this.elements.has(node)) return;
		this.elements.get(this.active)?.setAttribute("tabindex", "-1");
		this.active = node;
		const element = this.elements.get(node)!;
		element.setAttribute("tabindex", "0");
		element.focus({ preventScroll: false });
	}

	private onKey(event: KeyboardEvent): void {
		const tree = this.tree();
		const sorted = (node: number): number[] => tree.children[node]!.filter((child) => this.elements.has(child)).sort((a, b) => this.weights[b]! - this.weights[a]! || a - b);
		const beside = (step: number): number | undefined => {
			const row = sorted(tree.parent[this.active] ?? 0);
			return row[row.indexOf(this.active) + step];
		};
		const actions: Record<string, () => void> = {
			ArrowDown: () => this.go(sorted(this.active)[0]),
			ArrowUp: () => this.go(tree.parent[this.active]),
			ArrowRight: () => this.go(beside(1)),
			ArrowLeft: () => this.go(beside(-1)),
			Home: () => this.go(0),
			Enter: () => this.focusOn(this.active),
			" ": () => this.focusOn(this.active),
			Escape: () => this.focusOn(0),
		};
		const action = actions[event.key];
		if (!action) return;
		event.preventDefault();
		action();
	}
}
