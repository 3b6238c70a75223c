// SPDX-License-Identifier: MIT
// reach.ts: what a look at the window's end says of its stacks' blocks: which are lost, and who holds the others.
import type { App } from "./app";
import { fill, h, name, size } from "./dom";
import { many } from "./format";
import { HolderTree, holdersOf, pathLine } from "./holders";
import { endOf, functionText, placeOf, shownLine, stackText } from "./labels";
import { answerOf, leaksOf, noLeaks, reachTiles } from "./lost";
import { type GridColumn, type GridRow, TreeGrid } from "./treegrid";
import type { Leaks, Reach } from "./types";
import { REACHES, REACH_NAMES } from "./verdicts";

type Field = "name" | Reach | "holder";
const COLUMNS: GridColumn<Field>[] = [
	{ field: "name", label: "Stack", hint: "By name" },
	...REACH_NAMES.map((reach): GridColumn<Field> => ({ field: reach, label: REACHES[reach].badge.replace(/^./, (c) => c.toUpperCase()), hint: REACHES[reach].means })),
	{ field: "holder", label: "Held by", hint: "How one of the blocks that are held is held, from a root", text: true, still: true },
];

interface Row extends GridRow {
	stack: number;
	detail: (() => Node[]) | null; // makes what a line below it says; null: the stack itself
}

export class ReachView {
	readonly root = h("section", { class: "panel", "aria-label": "Heap" });
	private sortBy: Field = "definite";
	private down = true;
	private stacks: number[] = [];
	private readonly open = new Set<number>();
	private readonly answer = h("p", { class: "answer", role: "status" });
	private readonly tiles = h("div", { class: "tiles" });
	private readonly note = h("p", { class: "note" });
	private readonly holders = new HolderTree("By the shortest way to one block of each stack:");
	private readonly grid = new TreeGrid<Row>(
		"Stacks by what is lost",
		"reach",
		(row, first, element) => this.drawRow(row, first, element),
		({ stack }, open) => {
			if (open) this.open.add(stack);
			else this.open.delete(stack);
			this.arrange();
		},
	);

	constructor(private readonly app: App) {
		this.root.append(
			h("p", { class: "note" }, "Of what was allocated in the window and not freed, at the window's end, whatever interval is chosen."),
			this.answer,
			this.tiles,
			h("h3", { class: "grid-title" }, "Stacks, those that lost memory first"),
			this.note,
			this.grid.root,
			h("h3", { class: "grid-title" }, "Who holds the rest"),
			...this.holders.parts,
		);
		this.drawHead();
	}

	draw(): void {
		const { app } = this;
		const { stacks } = app.model;
		this.stacks = stacks.flatMap(({ leaks }, i) => (leaks && app.has(i) ? [i] : []));
		const sum = leaksOf(app, this.stacks) ?? noLeaks();
		const { text, tone } = answerOf(sum, " of this window");
		fill(this.answer, text);
		this.answer.className = `answer ${tone}`;
		fill(this.tiles, reachTiles(sum));
		fill(this.note, this.stacks.length ? many(this.stacks.length, "stack") : app.filter ? "No stack matches the filter." : "No stack of the heap is shown.");
		this.sort();
		const held = this.stacks.filter((stack) => stacks[stack]!.leaks!.reachable.count);
		this.holders.set(holdersOf(held.map((stack) => ({ path: stacks[stack]!.holder ?? null, leaf: `allocated by ${stackText(app.model, stack)}`, amount: stacks[stack]!.leaks!.reachable })), "not known"));
	}

	print(on: boolean): void {
		this.grid.print(on);
		this.holders.print(on);
	}

	private drawHead(): void {
		this.grid.setHead(COLUMNS, this.sortBy, this.down, (field) => {
			this.down = this.sortBy === field ? !this.down : field !== "name";
			this.sortBy = field;
			this.drawHead();
			this.sort();
		});
	}

	private sort(): void {
		const { model } = this.app;
		const { sortBy } = this;
		const sign = this.down ? -1 : 1;
		// Then what is lost for certain, and so on.
		const worst = (a: Leaks, b: Leaks): number => REACH_NAMES.map((reach) => b[reach].bytes - a[reach].bytes || b[reach].count - a[reach].count).find(Boolean) ?? 0;
		this.stacks.sort((i, j) => {
			const [a, b] = [model.stacks[i]!.leaks!, model.stacks[j]!.leaks!];
			const first = sortBy === "name" || sortBy === "holder" ? stackText(model, i).localeCompare(stackText(model, j)) : a[sortBy].bytes - b[sortBy].bytes || a[sortBy].count - b[sortBy].count;
			return sign * first || worst(a, b) || i - j;
		});
		this.arrange();
	}

	private arrange(): void {
		const rows: Row[] = [];
		this.stacks.forEach((stack, i) => {
			const open = this.open.has(stack);
			rows.push({ stack, detail: null, level: 0, key: String(stack), open, children: true, in: i + 1, of: this.stacks.length });
			if (!open) return;
			const details = this.details(stack);
			details.forEach((detail, at) => rows.push({ stack, detail, level: 1, key: `${stack}#${at}`, open: false, children: false, in: at + 1, of: details.length, whole: true }));
		});
		this.grid.set(rows);
	}

	private details(stack: number): (() => Node[])[] {
		const { model } = this.app;
		const one = model.stacks[stack]!;
		const label = (text: string): HTMLElement => h("span", { class: "number" }, text);
		const end = endOf(one);
		return [
			...(one.holder ?? []).map((step, i) => () => [label(i ? `${"  ".repeat(i)}→` : "held by"), name(step, 160, "Held by")]),
			...model.shown(stack).map((shown) => () => [label(`#${shown.at}`), shownLine(shown, 110)]),
			...(end ? [() => [h("span", { class: "note" }, end)]] : []),
		];
	}

	private drawRow(row: Row, first: HTMLElement, element: HTMLElement): void {
		if (row.detail) {
			first.append(...row.detail());
			return;
		}
		const { model } = this.app;
		const one = model.stacks[row.stack]!;
		const frame = model.chargedFrame(row.stack) ?? model.frames(row.stack)[0] ?? null;
		first.append(name(functionText(frame), 90, "Function"), ...(frame?.file ? [placeOf(frame)!] : []), h("span", { class: "id" }, one.id));
		const cell = (field: Field, kind: string, child: Node | string): HTMLElement => h("div", { class: `cell ${kind} f-${field}`, role: "gridcell" }, child);
		for (const reach of REACH_NAMES) {
			const amount = one.leaks![reach];
			element.append(cell(reach, "figure", amount.count ? size(amount.bytes, `in ${many(amount.count, "block")}`) : "–"));
		}
		element.append(cell("holder", "text-cell", one.holder ? pathLine(one.holder) : ""));
	}
}
