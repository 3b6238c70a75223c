// SPDX-License-Identifier: MIT
// table.ts: groups within groups, sorted, down to frames. Only the rows that are seen are in the document.
import type { App } from "./app";
import { button, choice, fill, h, name, number, size, svg } from "./dom";
import { bytes, percent, seconds } from "./format";
import { COLUMNS, type Column, type Node, TYPE_HINTS, TYPE_NAMES, group, kindName } from "./groups";
import { MEASURES } from "./interval";
import { endOf, functionText, moduleText, placeOf, processText, shownLine, stackText, threadText } from "./labels";
import { spark, sparkPath } from "./series";
import { ownersNote } from "./timeline";
import { type GridColumn, type GridRow, TreeGrid } from "./treegrid";
import type { Shown } from "./model";

type Field = "name" | "impacting" | "blocks" | "size" | "count" | "transient" | "lifetime" | "peak" | "spark";
const COLUMN_HEADS: GridColumn<Field>[] = [
	{ field: "name", label: "Name", hint: "By name" },
	{ field: "impacting", label: "Not freed", hint: "Bytes allocated in the interval and not freed by its end" },
	{ field: "blocks", label: "Blocks", hint: "Blocks allocated in the interval and not freed by its end" },
	{ field: "size", label: "Allocated", hint: "Bytes allocated in the interval" },
	{ field: "count", label: "Count", hint: "Allocations in the interval" },
	{ field: "transient", label: "Freed", hint: "Bytes allocated in the interval and freed in it" },
	{ field: "lifetime", label: "Mean life", hint: "Mean lifetime of the blocks that were allocated in the interval and freed in it" },
	{ field: "peak", label: "Peak", hint: "Most bytes outstanding at the end of any step, of blocks allocated in the interval" },
	{ field: "spark", label: "Growth", hint: "Outstanding over the interval", text: true, still: true },
];
const SPARK = 32;

interface Row extends GridRow {
	node: Node | null; // null: a frame, or a note
	frame: Shown | null;
	note: string | null;
}

export class Table {
	readonly root = h("section", { class: "panel", "aria-label": "Table" });
	private by: Column[];
	private sortBy: Field = "impacting";
	private down = true;
	private readonly toggled = new Set<string>(); // keys of groups that are not as they were at first: see opensFirst()
	private tree: Node | null = null;
	private peaks = new Map<Node, ReturnType<typeof spark>>();
	private readonly grid = new TreeGrid<Row>("Groups", "stacks", (row, first, element) => this.drawRow(row, first, element), (row, open) => this.toggle(row, open));
	private readonly chips = h("div", { class: "chips" });
	private readonly note = h("p", { class: "note", role: "status" });
	private readonly steps = h("p", { class: "note steps", role: "status" });
	private lens: App; // what the groups are of

	constructor(private readonly app: App) {
		this.lens = app;
		this.by = app.model.processes.length > 1 ? ["process", "module", "function"] : ["module", "function"];
		this.root.append(h("div", { class: "bar" }, h("span", { class: "label" }, "Grouped by"), this.chips, h("span", { class: "spring" }), this.note), this.steps, this.grid.root);
		this.drawHead();
		this.drawChips();
	}

	draw(): void {
		this.lens = this.by.includes("thread") || this.by.includes("heap") ? this.app.owners() : this.app;
		this.tree = group(this.lens, this.by);
		this.steps.textContent = ownersNote(this.app, this.lens);
		this.peaks.clear();
		this.arrange();
	}

	print(on: boolean): void {
		this.grid.print(on);
	}

	setBy(by: Column[]): void {
		this.by = by;
		this.toggled.clear();
		this.drawChips();
		this.draw();
	}

	private sort(field: Field): void {
		if (this.sortBy === field) this.down = !this.down;
		else {
			this.sortBy = field;
			this.down = field !== "name";
		}
		this.drawHead();
		this.arrange();
	}

	private drawHead(): void {
		this.grid.setHead(COLUMN_HEADS, this.sortBy, this.down, (field) => this.sort(field));
	}

	private drawChips(): void {
		fill(
			this.chips,
			this.by.map((column, i) => {
				const move = (step: number): void => {
					const by = [...this.by];
					[by[i], by[i + step]] = [by[i + step]!, by[i]!];
					this.setBy(by);
					(this.chips.children[i + step] as HTMLElement | undefined)?.focus();
				};
				const drop = (): void => {
					if (this.by.length > 1) this.setBy(this.by.filter((_, at) => at !== i));
					(this.chips.children[0] as HTMLElement | undefined)?.focus();
				};
				const chip = h("span", { class: "chip", tabindex: 0, role: "group", "data-column": column, "aria-label": `${column}, ${i + 1} of ${this.by.length}. Left and right arrow move it, Delete takes it away.` }, column);
				if (i > 0) chip.prepend(button("◂", () => move(-1), { class: "mini", "aria-label": `Move ${column} before`, tabindex: -1 }));
				if (i + 1 < this.by.length) chip.append(button("▸", () => move(1), { class: "mini", "aria-label": `Move ${column} behind`, tabindex: -1 }));
				if (this.by.length > 1) chip.append(button("×", drop, { class: "mini", "aria-label": `Don't group by ${column}`, tabindex: -1 }));
				chip.addEventListener("keydown", (event) => {
					if (event.key === "ArrowLeft" && i > 0) move(-1);
					else if (event.key === "ArrowRight" && i + 1 < this.by.length) move(1);
					else if (event.key === "Delete" || event.key === "Backspace") drop();
					else return;
					event.preventDefault();
				});
				return chip;
			}),
		);
		const rest = COLUMNS.filter((column) => !this.by.includes(column));
		if (!rest.length) return;
		const more = choice<string>("", [["", "+ add"], ...rest.map((column): [string, string] => [column, column])], "", (column) => column && this.setBy([...this.by, column as Column]), "add-column");
		more.querySelector("select")!.setAttribute("aria-label", "Group also by");
		this.chips.appendChild(more);
	}

	private sparkOf(node: Node): ReturnType<typeof spark> {
		let known = this.peaks.get(node);
		if (!known) this.peaks.set(node, (known = spark(this.lens, node.runs, SPARK, this.fateOf(node))));
		return known;
	}

	private valueOf(node: Node, field: Field): number {
		if (field === "name" || field === "spark") return 0;
		return field === "peak" ? this.sparkOf(node).peak : MEASURES[field](node.sums);
	}

	private nameOf(node: Node): string {
		const { model } = this.app;
		switch (node.column) {
			case "process":
				return processText(model, node.value);
			case "kind":
				return kindName(node.value);
			case "type":
				return TYPE_NAMES[node.value]!;
			case "heap":
				return model.heaps.list[node.value] ?? "not known";
			case "thread":
				return threadText(model, node.value);
			case "module":
				return moduleText(model.modules.list[node.value]!);
			case "function": {
				const charged = model.functions[node.value];
				return charged ? functionText(model.chargedFrame(node.stack)) : "charged to no function";
			}
			case "line":
				return model.lines[node.value] ? functionText(model.lines[node.value]!) : "no stack is known";
			case "language":
				return model.languages.list[node.value] ?? "not known";
			case "stack":
				return stackText(model, node.stack);
			case "api":
				return model.apis.list[node.value] ?? "not known";
			default:
				return "all";
		}
	}

	/* Below the wanted groups are their stacks, and below these the frames. */
	private childrenOf(node: Node): Node[] {
		if (node.column === "stack") return [];
		if (!node.children.length && !this.by.includes("stack")) {
			const own = new Set(node.runs);
			const all = this.leaves(node, own);
			node.children = all;
		}
		return node.children;
	}

	private leaves(node: Node, runs: Set<number>): Node[] {
		const { model } = this.lens;
		const found = new Map<number, Node>();
		const fate = this.fateOf(node);
		for (const run of runs) {
			const stack = model.runs.stack[run]!;
			const id = model.stackId[stack]!;
			let leaf = found.get(id);
			if (!leaf) {
				leaf = { column: "stack", value: id, level: node.level + 1, parent: node, sums: new Float64Array(node.sums.length), runs: [], stack, children: [] };
				found.set(id, leaf);
			}
			leaf.runs.push(run);
			for (let f = 0; f < leaf.sums.length; f++) if (fate < 0 || Math.floor(f / 3) === fate || (f === 12 && fate === 1)) leaf.sums[f]! += this.lens.sums.of[run * leaf.sums.length + f]!;
		}
		return [...found.values()];
	}

	private fateOf(node: Node): number {
		for (let at: Node | null = node; at; at = at.parent) if (at.column === "type") return at.value;
		return -1;
	}

	private sorted(nodes: Node[]): Node[] {
		const sign = this.down ? -1 : 1;
		const names = new Map<Node, string>();
		const text = (node: Node): string => {
			let known = names.get(node);
			if (known === undefined) names.set(node, (known = this.nameOf(node)));
			return known;
		};
		const compareText = (a: Node, b: Node): number => (text(a) < text(b) ? -1 : text(a) > text(b) ? 1 : a.value - b.value);
		if (this.sortBy === "name") return nodes.sort((a, b) => sign * compareText(a, b));
		const values = new Map(nodes.map((node) => [node, this.valueOf(node, this.sortBy)]));
		return nodes.sort((a, b) => sign * (values.get(a)! - values.get(b)!) || MEASURES.size(b.sums) - MEASURES.size(a.sums) || compareText(a, b));
	}

	/* Groups of the first level are open at first where there are groups in them. */
	private opensFirst(node: Node): boolean {
		return node.level === 0 && node.column !== "stack" && this.by.length > 1;
	}

	private arrange(): void {
		const rows: Row[] = [];
		const walk = (node: Node, path: string): void => {
			const children = this.sorted(this.childrenOf(node));
			children.forEach((child, i) => {
				const key = `${path}/${child.column}:${child.value}`;
				const open = this.toggled.has(key) !== this.opensFirst(child);
				rows.push({ node: child, frame: null, note: null, level: child.level, key, open, children: true, in: i + 1, of: children.length });
				if (!open) return;
				if (child.column === "stack") this.pushFrames(child, key, rows);
				else walk(child, key);
			});
		};
		if (this.tree) walk(this.tree, "");
		const groups = this.tree?.children.length ?? 0;
		this.note.textContent = groups ? `${groups} ${groups === 1 ? "group" : "groups"}` : "Nothing in this interval.";
		this.grid.set(rows);
	}

	private pushFrames(node: Node, path: string, rows: Row[]): void {
		const { model } = this.app;
		const frames = model.shown(node.stack);
		const end = endOf(model.stacks[node.stack]!);
		const of = frames.length + (end ? 1 : 0);
		const push = (i: number, frame: Shown | null, note: string | null): number => rows.push({ node: null, frame, note, whole: true, level: node.level + 1, key: `${path}#${i}`, open: false, children: false, in: i + 1, of });
		frames.forEach((frame, i) => push(i, frame, null));
		if (end) push(frames.length, null, end);
	}

	private drawRow(row: Row, first: HTMLElement, element: HTMLElement): void {
		if (row.frame) {
			first.append(h("span", { class: "number" }, `#${row.frame.at}`), shownLine(row.frame, 110));
			return;
		}
		if (row.note !== null) {
			first.append(h("span", { class: "note" }, row.note));
			return;
		}
		const node = row.node!;
		first.append(h("span", { class: "column-tag" }, node.column!), name(this.nameOf(node), 90, node.column!), ...this.extra(node));
		const s = node.sums;
		const figure = (field: Field, child: globalThis.Node | string): HTMLElement => h("div", { class: `cell figure f-${field}`, role: "gridcell" }, child);
		const share = this.tree ? MEASURES.impacting(s) / (MEASURES.impacting(this.tree.sums) || 1) : 0;
		const impacting = figure("impacting", size(MEASURES.impacting(s)));
		if (share > 0) {
			const bar = h("span", { class: "share", title: percent(share, 1) + " of all that was not freed" });
			bar.style.width = `${(share * 100).toFixed(1)}%`;
			impacting.prepend(bar);
		}
		const life = MEASURES.lifetime(s);
		const curve = this.sparkOf(node);
		element.append(
			impacting,
			figure("blocks", number(MEASURES.blocks(s))),
			figure("size", size(MEASURES.size(s))),
			figure("count", number(MEASURES.count(s))),
			figure("transient", size(MEASURES.transient(s))),
			figure("lifetime", life < 0 ? "–" : h("data", { value: life }, seconds(life))),
			figure("peak", size(curve.peak)),
			h("div", { class: "cell f-spark", role: "gridcell" }, sparkElement(curve.values)),
		);
	}

	private extra(node: Node): HTMLElement[] {
		const { model } = this.app;
		if (node.column === "stack") {
			const frame = model.chargedFrame(node.stack);
			return [...(frame?.file ? [placeOf(frame)!] : []), h("span", { class: "id" }, model.stacks[node.stack]!.id)];
		}
		if (node.column === "line") {
			const place = model.lines[node.value] && placeOf(model.lines[node.value]!);
			return place ? [place] : [];
		}
		if (node.column === "function") return [h("span", { class: "module" }, h("bdi", null, moduleText(model.functions[node.value]?.module ?? null).slice(-60)))];
		if (node.column === "type") return [h("span", { class: "note" }, TYPE_HINTS[node.value]!)];
		return [];
	}

	private toggle(row: Row, open: boolean): void {
		if (open === this.opensFirst(row.node!)) this.toggled.delete(row.key);
		else this.toggled.add(row.key);
		this.arrange();
	}
}

export function sparkElement(values: Float64Array, width = 96, height = 20): SVGElement {
	const { area, line, most } = sparkPath(values, width, height);
	const element = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, class: "spark", role: "img", "aria-label": `outstanding: ${bytes(values[values.length - 1] ?? 0)} at the end, ${bytes(most)} at most` });
	if (most > 0) element.append(svg("path", { d: area, class: "spark-area" }), svg("path", { d: line, class: "spark-line" }));
	return element;
}
