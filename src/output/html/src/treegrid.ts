// SPDX-License-Identifier: MIT
// treegrid.ts: rows within rows, by mouse and keys. Only the rows that are seen are in the document.
import { fill, h } from "./dom";
import { many } from "./format";

export interface GridRow {
	level: number;
	key: string; // the same as long as it is the same row
	open: boolean;
	children: boolean;
	in: number; // its number among its siblings, from 1
	of: number; // how many these are
	whole?: boolean; // its first cell is as wide as the row
}

export interface GridColumn<Field extends string> {
	field: Field;
	label: string;
	hint: string;
	text?: boolean; // of words, not figures
	still?: boolean; // it can't be sorted by
}

const ROW = 26;
const PRINTED = 400; // rows on paper

export class TreeGrid<Row extends GridRow> {
	readonly head = h("div", { class: "thead", role: "row" });
	readonly root: HTMLElement;
	rows: Row[] = [];
	private active = 0;
	private most: number | undefined;
	private readonly body = h("div", { class: "tbody", role: "rowgroup" });
	private readonly space = h("div", { class: "space" });

	/** `draw` puts what belongs there into a row and its first cell; `toggle` has a row opened or closed. */
	constructor(
		label: string,
		kind: string,
		private readonly draw: (row: Row, first: HTMLElement, element: HTMLElement) => void,
		private readonly toggle: (row: Row, open: boolean) => void,
	) {
		this.root = h("div", { class: `scroll ${kind}`, tabindex: 0, role: "treegrid", "aria-label": `${label}. Arrow keys move; right opens, left closes; Enter opens and closes.` });
		this.space.appendChild(this.body);
		this.root.append(this.head, this.space);
		this.root.addEventListener("scroll", () => this.show());
		this.root.addEventListener("keydown", (event) => this.onKey(event));
		this.body.addEventListener("click", (event) => this.onClick(event));
		new ResizeObserver(() => this.show()).observe(this.root);
	}

	/** The columns' names, which sort. */
	setHead<Field extends string>(columns: GridColumn<Field>[], sortBy: Field, down: boolean, sort: (field: Field) => void): void {
		const had = document.activeElement?.parentElement?.className;
		fill(
			this.head,
			columns.map(({ field, label, hint, text, still }, i) => {
				const sorted = sortBy === field;
				const kind = `cell ${i ? (text ? "text-cell" : "figure") : "name-cell"} f-${field}`;
				if (still) return h("div", { role: "columnheader", class: `${kind} still`, title: hint }, label);
				const one = h("button", { type: "button", title: hint, class: "sort" }, label, h("span", { class: "arrow", "aria-hidden": "true" }, sorted ? (down ? "▼" : "▲") : ""));
				one.addEventListener("click", () => sort(field));
				return h("div", { role: "columnheader", "aria-sort": sorted ? (down ? "descending" : "ascending") : "none", class: kind }, one);
			}),
		);
		if (had) for (const one of this.head.children) if (one.className === had) (one.firstElementChild as HTMLElement | null)?.focus();
	}

	/** The row that the keys are at stays so, wherever it is now. */
	set(rows: Row[]): void {
		const at = this.rows[this.active]?.key;
		this.rows = rows;
		this.active = Math.max(0, rows.findIndex((row) => row.key === at));
		this.space.style.height = `${rows.length * ROW}px`;
		this.root.setAttribute("aria-rowcount", String(rows.length + 1));
		this.show();
	}

	/** For printing, all open rows are in the document. */
	print(on: boolean): void {
		this.root.classList.toggle("printing", on);
		this.most = on ? PRINTED : undefined;
		this.show();
	}

	private show(): void {
		const { most } = this;
		const first = most ? 0 : Math.max(0, Math.floor(this.root.scrollTop / ROW) - 8);
		const shown = most ?? Math.ceil((this.root.clientHeight || 600) / ROW) + 16;
		const had = this.body.contains(document.activeElement);
		const left = most ? this.rows.length - most : 0;
		fill(this.body, this.rows.slice(first, first + shown).map((row, i) => this.rowElement(row, first + i)), left > 0 && h("p", { class: "note" }, `… and ${many(left, "row")} that are not printed`));
		this.body.style.transform = most ? "" : `translateY(${first * ROW}px)`;
		if (had) this.root.focus({ preventScroll: true });
		this.root.setAttribute("aria-activedescendant", this.idOf(this.active));
	}

	private idOf(index: number): string {
		return `${this.root.classList[1]}-row-${index}`;
	}

	private rowElement(row: Row, index: number): HTMLElement {
		const element = h("div", { class: `tr${index === this.active ? " active" : ""}${row.whole ? " frame-row" : ""}`, role: "row", id: this.idOf(index), "data-index": index, "aria-level": row.level + 1, "aria-expanded": row.children ? String(row.open) : null, "aria-posinset": row.in, "aria-setsize": row.of, "aria-rowindex": index + 2, "data-key": row.key });
		const indent = h("span", { class: "indent" });
		indent.style.width = `${Math.min(row.level, 40) * 16}px`;
		const first = h("div", { class: "cell name-cell", role: "gridcell" }, indent, !row.whole && h("span", { class: "twist", "aria-hidden": "true" }, row.children ? (row.open ? "▾" : "▸") : ""));
		element.appendChild(first);
		this.draw(row, first, element);
		return element;
	}

	private turn(index: number, open?: boolean): void {
		const row = this.rows[index];
		this.active = index;
		if (row?.children) this.toggle(row, open ?? !row.open);
		else this.show();
	}

	private onClick(event: MouseEvent): void {
		const element = (event.target as HTMLElement).closest<HTMLElement>(".tr");
		if (!element) return;
		const selection = getSelection();
		if (selection && !selection.isCollapsed) return; // a name is being copied
		this.turn(Number(element.dataset.index));
		this.root.focus({ preventScroll: true });
	}

	private go(index: number): void {
		this.active = Math.min(Math.max(index, 0), this.rows.length - 1);
		const top = this.active * ROW;
		const head = this.head.offsetHeight;
		if (top < this.root.scrollTop) this.root.scrollTop = top;
		else if (top + ROW + head > this.root.scrollTop + this.root.clientHeight) this.root.scrollTop = top + ROW + head - this.root.clientHeight;
		this.show();
	}

	private onKey(event: KeyboardEvent): void {
		if (event.target !== this.root) return;
		const row = this.rows[this.active];
		const page = Math.max(1, Math.floor(this.root.clientHeight / ROW) - 2);
		const parent = (): void => {
			for (let i = this.active - 1; i >= 0; i--) if (this.rows[i]!.level < (row?.level ?? 0)) return this.go(i);
		};
		const actions: Record<string, () => void> = {
			ArrowDown: () => this.go(this.active + 1),
			ArrowUp: () => this.go(this.active - 1),
			PageDown: () => this.go(this.active + page),
			PageUp: () => this.go(this.active - page),
			Home: () => this.go(0),
			End: () => this.go(this.rows.length - 1),
			ArrowRight: () => (row?.children && !row.open ? this.turn(this.active, true) : this.go(this.active + 1)),
			ArrowLeft: () => (row?.open ? this.turn(this.active, false) : parent()),
			Enter: () => this.turn(this.active),
			" ": () => this.turn(this.active),
		};
		const action = actions[event.key];
		if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
		event.preventDefault();
		action();
	}
}
