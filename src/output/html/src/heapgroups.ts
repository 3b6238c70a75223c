// SPDX-License-Identifier: MIT
// heapgroups.ts: the blocks of a heap, those that are alike together: lost ones first.
import { fill, h, name, number, segments, size } from "./dom";
import { bytes, count, many, percent } from "./format";
import { UNNAMED, pathLine } from "./holders";
import type { HeapState, Which } from "./heapstate";
import type { HeapContent, HeapGroup } from "./types";
import { type GridColumn, type GridRow, TreeGrid } from "./treegrid";
import { REACHES, badge } from "./verdicts";

type Field = "name" | "verdict" | "bytes" | "blocks" | "size" | "allocator" | "holder";
const COLUMNS: GridColumn<Field>[] = [
	{ field: "name", label: "Class or size", hint: "By name" },
	{ field: "verdict", label: "Verdict", hint: "Whether the process can still get at the blocks: lost ones first, then the largest", text: true },
	{ field: "bytes", label: "Bytes", hint: "Usable bytes of all blocks" },
	{ field: "blocks", label: "Blocks", hint: "How many there are" },
	{ field: "size", label: "Size", hint: "Usable bytes of each block" },
	{ field: "allocator", label: "Allocator", hint: "By allocator and arena", text: true },
	{ field: "holder", label: "Held by", hint: "How one of the blocks is held, from a root", text: true },
];

/** Makes what a line of its own says of a group. */
type Detail = () => (Node | string)[];

const DUMPED = 16; // bytes in a line

interface Row extends GridRow {
	group: number;
	detail: Detail | null; // null: the group itself
}

function rankOf({ verdict }: HeapGroup): number {
	return verdict ? REACHES[verdict].rank : 4;
}

function nameOf(group: HeapGroup): string {
	return group.class ?? (group.size === null ? "blocks of various sizes" : `${many(group.size, "byte")} each`);
}

function allocatorOf(group: HeapGroup): string {
	return [group.allocator ?? "various", group.arena].filter(Boolean).join(", ");
}

/** The bytes of a block as hexdump(1) has them, and what stands in them. */
function contentLines({ address, size: whole, hex, notes }: HeapContent): Detail[] {
	const dump = (label: string, text: string): Detail => () => [h("span", { class: "dump" }, `${label.padStart(6)}  ${text}`)];
	const out: Detail[] = [() => [h("span", { class: "number" }, "block"), h("span", { class: "id" }, address), h("span", { class: "note" }, many(whole, "byte"))]];
	let last = "";
	let repeated = false;
	for (let at = 0; at < hex.length; at += 2 * DUMPED) {
		const row = hex.slice(at, at + 2 * DUMPED);
		const pairs = row.match(/../g) ?? [];
		const text = pairs.map((pair) => parseInt(pair, 16)).map((code) => (code >= 32 && code < 127 ? String.fromCharCode(code) : ".")).join("");
		if (row !== last) out.push(dump(String(at / 2), `${pairs.join(" ").padEnd(3 * DUMPED)} ${text}`));
		else if (!repeated) out.push(dump("*", ""));
		repeated = row === last;
		last = row;
	}
	for (const { offset, text } of notes) out.push(() => [h("span", { class: "dump" }, `${String(offset).padStart(6)}  `), name(text, 160, "What stands there")]);
	return out;
}

export class HeapGroups {
	readonly root = h("section", { class: "panel", "aria-label": "Blocks" });
	private sortBy: Field = "verdict";
	private down = false;
	private order: number[] = []; // groups that are shown
	private readonly open = new Set<number>();
	private readonly texts: (string | undefined)[] = [];
	private readonly total: number;
	private readonly note = h("p", { class: "note", role: "status" });
	private readonly which: HTMLElement;
	private readonly grid = new TreeGrid<Row>(
		"Groups of blocks",
		"groups",
		(row, first, element) => this.drawRow(row, first, element),
		({ group }, open) => {
			if (open) this.open.add(group);
			else this.open.delete(group);
			this.arrange();
		},
	);

	constructor(
		private readonly groups: HeapGroup[],
		private readonly state: HeapState,
	) {
		this.total = groups.reduce((sum, { blocks }) => sum + blocks.bytes, 0);
		this.which = h("span", { class: "group" });
		this.root.append(h("div", { class: "bar" }, this.which, h("span", { class: "spring" }), this.note), this.grid.root);
		this.drawHead();
	}

	draw(): void {
		const had = this.which.contains(document.activeElement);
		fill(this.which, segments<Which>("Verdict", [["all", "all"], ["lost", "lost"], ["possible", "possibly lost"], ["reachable", "reachable"]], this.state.which, (which) => this.state.set({ which })));
		if (had) this.which.querySelector<HTMLElement>('[aria-checked="true"]')?.focus();
		const words = this.state.filter.toLowerCase().split(/\s+/).filter(Boolean);
		this.order = [];
		this.groups.forEach((group, i) => {
			if (this.has(group) && words.every((word) => this.textOf(i).includes(word))) this.order.push(i);
		});
		this.sort();
		const sum = this.order.reduce((all, i) => ({ count: all.count + this.groups[i]!.blocks.count, bytes: all.bytes + this.groups[i]!.blocks.bytes }), { count: 0, bytes: 0 });
		fill(this.note, this.order.length ? [size(sum.bytes), " in ", number(sum.count), ` ${sum.count === 1 ? "block" : "blocks"}, ${many(this.order.length, "group")}`] : words.length ? "No group matches the filter." : "There are no such blocks.");
	}

	print(on: boolean): void {
		this.grid.print(on);
	}

	private has({ verdict }: HeapGroup): boolean {
		const { which } = this.state;
		return which === "all" || (which === "lost" ? verdict === "definite" || verdict === "indirect" : verdict === which);
	}

	private textOf(index: number): string {
		const group = this.groups[index]!;
		return (this.texts[index] ??= [group.class, nameOf(group), allocatorOf(group), group.verdict && REACHES[group.verdict].badge, ...(group.holder ?? []), ...group.sample].join("\n").toLowerCase());
	}

	private drawHead(): void {
		this.grid.setHead(COLUMNS, this.sortBy, this.down, (field) => {
			const words = field === "name" || field === "allocator" || field === "holder" || field === "verdict";
			this.down = this.sortBy === field ? !this.down : !words;
			this.sortBy = field;
			this.drawHead();
			this.sort();
		});
	}

	private sort(): void {
		const { groups, sortBy } = this;
		const sign = this.down ? -1 : 1;
		const text = (i: number): string => {
			const group = groups[i]!;
			return sortBy === "name" ? nameOf(group) : sortBy === "allocator" ? allocatorOf(group) : (group.holder?.join("\n") ?? "\uffff");
		};
		const value = (i: number): number => {
			const group = groups[i]!;
			return sortBy === "verdict" ? rankOf(group) : sortBy === "blocks" ? group.blocks.count : sortBy === "size" ? (group.size ?? -1) : group.blocks.bytes;
		};
		const largest = (a: number, b: number): number => groups[b]!.blocks.bytes - groups[a]!.blocks.bytes || a - b;
		if (sortBy === "name" || sortBy === "allocator" || sortBy === "holder") {
			const texts = new Map(this.order.map((i) => [i, text(i)]));
			this.order.sort((a, b) => (texts.get(a)! < texts.get(b)! ? -sign : texts.get(a)! > texts.get(b)! ? sign : largest(a, b)));
		} else this.order.sort((a, b) => sign * (value(a) - value(b)) || largest(a, b));
		this.arrange();
	}

	private arrange(): void {
		const rows: Row[] = [];
		this.order.forEach((group, i) => {
			const open = this.open.has(group);
			rows.push({ group, detail: null, level: 0, key: String(group), open, children: true, in: i + 1, of: this.order.length });
			if (!open) return;
			const details = this.details(this.groups[group]!);
			details.forEach((detail, at) => rows.push({ group, detail, level: 1, key: `${group}#${at}`, open: false, children: false, in: at + 1, of: details.length, whole: true }));
		});
		this.grid.set(rows);
	}

	private details(group: HeapGroup): Detail[] {
		const { holder, sample, blocks, verdict } = group;
		const line = (label: string, rest: () => Node | string): Detail => () => [h("span", { class: "number" }, label), rest()];
		const out: Detail[] = [];
		if (group.class !== null) out.push(line("class", () => name(group.class!, 200, "Class")));
		if (verdict) out.push(line(REACHES[verdict].badge, () => REACHES[verdict].means));
		(holder ?? []).forEach((step, i) => out.push(line(i ? `${" ".repeat(2 * i)}→` : "held by", () => name(step, 160, "Held by"))));
		if (!holder && (verdict === "reachable" || verdict === "possible")) out.push(line("held by", () => UNNAMED));
		if (sample.length) out.push(line(blocks.count > sample.length ? `${sample.length} of ${count(blocks.count)}` : "at", () => h("span", { class: "id" }, sample.join("  "))));
		for (const content of group.contents ?? []) out.push(...contentLines(content));
		return out;
	}

	private drawRow(row: Row, first: HTMLElement, element: HTMLElement): void {
		if (row.detail) {
			first.append(...row.detail());
			return;
		}
		const group = this.groups[row.group]!;
		const { verdict, blocks } = group;
		const cell = (field: Field, kind: string, ...children: (Node | string | false | null)[]): HTMLElement => h("div", { class: `cell ${kind} f-${field}`, role: "gridcell" }, children);
		const amount = cell("bytes", "figure", size(blocks.bytes));
		if (blocks.bytes > 0) {
			const bar = h("span", { class: `share ${rankOf(group) < 2 ? "" : "held-share"}`, title: `${percent(blocks.bytes, this.total)} of all ${bytes(this.total)}` });
			bar.style.width = `${((blocks.bytes / (this.total || 1)) * 100).toFixed(1)}%`;
			amount.prepend(bar);
		}
		first.append(name(nameOf(group), 90, "Class"));
		element.append(
			cell("verdict", "text-cell", verdict ? badge(REACHES[verdict]) : h("span", { class: "note" }, "not looked for")),
			amount,
			cell("blocks", "figure", number(blocks.count)),
			cell("size", "figure", group.size === null ? "various" : size(group.size)),
			cell("allocator", "text-cell", name(allocatorOf(group), 40, "Allocator")),
			cell("holder", "text-cell", group.holder ? pathLine(group.holder) : verdict === "definite" ? h("span", { class: "note" }, "nothing") : verdict === "indirect" ? h("span", { class: "note" }, "lost blocks") : ""),
		);
	}
}
