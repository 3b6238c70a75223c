// SPDX-License-Identifier: MIT
// holders.ts: who holds memory: a tree from roots down.
import { fill, h, name, number, size } from "./dom";
import { bytes, percent, shorten, visible } from "./format";
import type { Amount, Holder } from "./types";
import { type GridColumn, type GridRow, TreeGrid } from "./treegrid";

type Field = "name" | "retained" | "blocks" | "own";
const COLUMNS: GridColumn<Field>[] = [
	{ field: "name", label: "Held by", hint: "By name" },
	{ field: "retained", label: "Holds", hint: "Bytes that are held by way of this" },
	{ field: "blocks", label: "Blocks", hint: "Blocks that are held by way of this" },
	{ field: "own", label: "Itself", hint: "Bytes of those blocks that are not held by what is below it" },
];

/** Of groups of a look. */
export const UNNAMED = "not looked for: only of the first groups (--top N: of more)";

/** "global shop::sessions" and what follows it, as one line. */
export function pathLine(path: string[]): HTMLElement {
	const title = shorten(path.map(visible).join(" → "), 2000);
	return h("span", { class: "path", title }, path.map((step, i) => [i > 0 && h("span", { class: "arrow-to" }, " → "), h("bdi", { class: "name" }, shorten(visible(step), 70))]));
}

function none(): Amount {
	return { count: 0, bytes: 0 };
}

function add(to: Amount, amount: Amount): void {
	to.count += amount.count;
	to.bytes += amount.bytes;
}

/** Paths that begin alike as one tree; null stands for those that are not known. */
export function holdersOf(items: { path: string[] | null; leaf?: string; amount: Amount }[], unnamed: string): Holder[] {
	interface Branch extends Holder {
		by: Map<string, Branch>;
	}
	const branch = (text: string): Branch => ({ name: text, retained: none(), own: none(), children: [], by: new Map() });
	const root = branch("");
	const unknown = branch(unnamed);
	for (const { path, leaf, amount } of items) {
		if (!path) {
			add(unknown.retained, amount);
			add(unknown.own, amount);
			continue;
		}
		let at = root;
		for (const step of leaf === undefined ? path : [...path, leaf]) {
			let next = at.by.get(step);
			if (!next) {
				at.by.set(step, (next = branch(step)));
				at.children.push(next);
			}
			at = next;
			add(at.retained, amount);
		}
		add(at.own, amount);
	}
	return unknown.retained.count ? [...root.children, unknown] : root.children;
}

/** Those of a look, with what each holds beside its own blocks and those of its children: not all have children of their own. */
export function withRest(holders: Holder[]): Holder[] {
	return holders.map((holder) => {
		const children = withRest(holder.children);
		const rest = { ...holder.retained };
		for (const { count, bytes: held } of [holder.own, ...children.map(({ retained }) => retained)]) {
			rest.count -= count;
			rest.bytes -= held;
		}
		if (rest.count > 0 || rest.bytes > 0) children.push({ name: "others, not listed", retained: rest, own: none(), children: [] });
		return { ...holder, children };
	});
}

interface Row extends GridRow {
	node: Holder;
}

export class HolderTree {
	private roots: Holder[] = [];
	private total = 0;
	private readonly keys = new Map<Holder, string>();
	private words: string[] = [];
	private sortBy: Field = "retained";
	private down = true;
	private readonly toggled = new Set<string>(); // rows that are not as they were at first
	private readonly note = h("p", { class: "note", role: "status" });
	private readonly grid = new TreeGrid<Row>(
		"Who holds memory",
		"holders",
		({ node }, first, element) => this.drawRow(node, first, element),
		(row, open) => {
			if (open === this.opensFirst(row)) this.toggled.delete(row.key);
			else this.toggled.add(row.key);
			this.arrange();
		},
	);
	readonly parts = [this.note, this.grid.root];

	constructor(private readonly about: string) {
		this.drawHead();
	}

	set(roots: Holder[], filter = ""): void {
		this.roots = roots;
		this.words = filter.toLowerCase().split(/\s+/).filter(Boolean);
		this.total = roots.reduce((sum, { retained }) => sum + retained.bytes, 0);
		this.arrange();
	}

	print(on: boolean): void {
		this.grid.print(on);
	}

	private keyOf(node: Holder): string {
		const key = this.keys.get(node) ?? String(this.keys.size);
		this.keys.set(node, key);
		return key;
	}

	private drawHead(): void {
		this.grid.setHead(COLUMNS, this.sortBy, this.down, (field) => {
			this.down = this.sortBy === field ? !this.down : field !== "name";
			this.sortBy = field;
			this.drawHead();
			this.arrange();
		});
	}

	/* The largest of all, then what is alone below what is open: down to where a choice begins. */
	private opensFirst({ level, in: at, of }: GridRow): boolean {
		return level === 0 ? at === 1 : of === 1;
	}

	private sorted(nodes: Holder[]): Holder[] {
		const value = ({ retained, own }: Holder): number => (this.sortBy === "blocks" ? retained.count : this.sortBy === "own" ? own.bytes : retained.bytes);
		const byName = (a: Holder, b: Holder): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
		const sign = this.down ? -1 : 1;
		return [...nodes].sort((a, b) => (this.sortBy === "name" ? sign * byName(a, b) : sign * (value(a) - value(b)) || byName(a, b)));
	}

	/* Those of which the way from the root, or what is below, has the words. */
	private matching(): Set<Holder> | null {
		if (!this.words.length) return null;
		const out = new Set<Holder>();
		const look = (node: Holder, missing: string[]): boolean => {
			const text = node.name.toLowerCase();
			const left = missing.filter((word) => !text.includes(word));
			let any = !left.length;
			for (const child of node.children) any = look(child, left) || any;
			if (any) out.add(node);
			return any;
		};
		for (const root of this.roots) look(root, this.words);
		return out;
	}

	private arrange(): void {
		const rows: Row[] = [];
		const kept = this.matching();
		const walk = (nodes: Holder[], level: number): void => {
			const own = this.sorted(kept ? nodes.filter((node) => kept.has(node)) : nodes);
			own.forEach((node, i) => {
				const row: Row = { node, level, key: this.keyOf(node), open: false, children: node.children.length > 0, in: i + 1, of: own.length };
				row.open = row.children && this.toggled.has(row.key) !== this.opensFirst(row);
				rows.push(row);
				if (row.open) walk(node.children, level + 1);
			});
		};
		walk(this.roots, 0);
		const roots = kept ? this.roots.filter((node) => kept.has(node)) : this.roots;
		const held = roots.reduce((sum, { retained }) => sum + retained.bytes, 0);
		fill(this.note, roots.length ? `${this.about} ${bytes(held)} in all.` : this.words.length ? "No holder matches the filter." : "No block is held.");
		this.grid.set(rows);
	}

	private drawRow(node: Holder, first: HTMLElement, element: HTMLElement): void {
		const { retained, own } = node;
		first.append(name(node.name, 110, "Held by"));
		const held = h("div", { class: "cell figure f-retained", role: "gridcell" }, size(retained.bytes));
		if (retained.bytes > 0) {
			const bar = h("span", { class: "share held-share", title: percent(retained.bytes, this.total) + " of all that is held" });
			bar.style.width = `${((retained.bytes / (this.total || 1)) * 100).toFixed(1)}%`;
			held.prepend(bar);
		}
		element.append(held, h("div", { class: "cell figure f-blocks", role: "gridcell" }, number(retained.count)), h("div", { class: "cell figure f-own", role: "gridcell" }, own.count ? size(own.bytes) : "–"));
	}
}
