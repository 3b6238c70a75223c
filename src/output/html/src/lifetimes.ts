// SPDX-License-Identifier: MIT
// lifetimes.ts: how long blocks of which size live: a heat map, and beside it how many there are of each size.
import type { App } from "./app";
import { STILL_THERE } from "./decode";
import { fill, h, number, segments, size } from "./dom";
import { bytes, count, many, seconds } from "./format";

type Measure = "count" | "bytes";

const TOP = 10;
const LEFT = 74;
const BOTTOM = 34;
const KEPT = 58; // the column of those that are still there
const BARS = 170;

/** The least size of a class. */
export function sizeOf(cls: number): number {
	return cls === 0 ? 0 : 2 ** ((cls - 1) / 4);
}

function lifeOf(cls: number): number {
	return cls === 0 ? 0 : 2 ** (cls / 4) / 1e9;
}

interface Cell {
	count: number;
	bytes: number;
}

interface Grid {
	cells: Map<number, Cell>; // size class * 256 + lifetime class
	sizes: [number, number];
	lives: [number, number];
	unit: number; // ns: of its bins
}

export function gridOf(app: App): Grid {
	const { model, scope, interval } = app;
	const cells = new Map<number, Cell>();
	let unit = 0;
	const sizes: [number, number] = [Infinity, -1];
	const lives: [number, number] = [Infinity, -1];
	for (const { index, page, lifetimes: l } of model.processes) {
		if (scope.process !== null && index !== scope.process) continue;
		const times = page.lifetimes.bin_ns / page.bin_ns;
		unit = Math.max(unit, page.lifetimes.bin_ns);
		const a = Math.round(interval.from[index]! / times);
		const b = interval.to[index] === page.bins ? Math.max(l.bins, 1) : Math.round(interval.to[index]! / times);
		for (let i = 0; i < l.rows; i++) {
			if (!scope.kinds[l.kind[i]!] || l.born[i]! < a || l.born[i]! >= b) continue;
			const life = l.died[i]! < b ? l.life[i]! : STILL_THERE;
			const key = l.size[i]! * 256 + life;
			const cell = cells.get(key);
			if (cell) {
				cell.count += l.count[i]!;
				cell.bytes += l.bytes[i]!;
			} else cells.set(key, { count: l.count[i]!, bytes: l.bytes[i]! });
			sizes[0] = Math.min(sizes[0], l.size[i]!);
			sizes[1] = Math.max(sizes[1], l.size[i]!);
			if (life === STILL_THERE) continue;
			lives[0] = Math.min(lives[0], life);
			lives[1] = Math.max(lives[1], life);
		}
	}
	if (lives[1] < 0) lives[0] = lives[1] = 0;
	return { cells, sizes, lives, unit };
}

export class LifetimesView {
	readonly root = h("section", { class: "panel", "aria-label": "Lifetimes" });
	private measure: Measure = "count";
	private grid: Grid | null = null;
	private cursor: { size: number; life: number } | null = null;
	private readonly canvas = h("canvas", { class: "heat", tabindex: 0, role: "img" });
	private readonly readout = h("p", { class: "readout", role: "status", "aria-live": "polite" });
	private readonly note = h("p", { class: "note" });
	private readonly tableBox = h("details", { class: "sizes" }, h("summary", null, "Sizes as a table"));

	constructor(private readonly app: App) {
		this.root.append(
			h(
				"div",
				{ class: "bar" },
				segments<Measure>("Shown", [["count", "blocks"], ["bytes", "bytes"]], this.measure, (value) => {
					this.measure = value;
					this.paint();
				}),
				this.note,
			),
			this.canvas,
			this.readout,
			this.tableBox,
		);
		new ResizeObserver(() => this.paint()).observe(this.root);
		this.canvas.addEventListener("pointermove", (event) => {
			this.cursor = this.cellAt(event.offsetX, event.offsetY);
			this.paint();
		});
		this.canvas.addEventListener("pointerleave", () => {
			this.cursor = null;
			this.paint();
		});
		this.canvas.addEventListener("keydown", (event) => this.onKey(event));
	}

	draw(): void {
		this.grid = gridOf(this.app);
		this.cursor = null;
		const exact = this.grid.unit / 1e9;
		fill(this.note, `Blocks allocated in this interval, by size and by how long they lived; exact at steps of ${seconds(exact)}.`, this.app.filter ? " Of all stacks: the filter does not apply here." : "");
		this.fillTable();
		this.paint();
	}

	repaint(): void {
		this.paint();
	}

	/** Blocks of a power of two together, as the table has them. */
	private fillTable(): void {
		const rows = new Map<number, { count: number; bytes: number; kept: number; keptBytes: number }>();
		for (const [key, cell] of this.grid!.cells) {
			const cls = Math.floor(key / 256);
			const power = cls === 0 ? -1 : Math.floor((cls - 1) / 4);
			const row = rows.get(power) ?? { count: 0, bytes: 0, kept: 0, keptBytes: 0 };
			row.count += cell.count;
			row.bytes += cell.bytes;
			if (key % 256 === STILL_THERE) {
				row.kept += cell.count;
				row.keptBytes += cell.bytes;
			}
			rows.set(power, row);
		}
		const order = [...rows].sort((a, b) => a[0] - b[0]);
		this.tableBox.lastElementChild!.tagName === "SUMMARY" || this.tableBox.lastElementChild!.remove();
		this.tableBox.appendChild(
			h(
				"table",
				{ class: "plain size-table" },
				h("thead", null, h("tr", null, ["Block size", "Allocated", "Bytes", "Still there", "Bytes"].map((text, i) => h("th", { scope: "col", class: i ? "figure" : null }, text)))),
				h("tbody", null, order.map(([power, row]) => h("tr", { "data-power": power }, h("th", { scope: "row" }, power < 0 ? "0 B" : `${bytes(2 ** power)} to ${bytes(2 ** (power + 1))}`), h("td", { class: "figure" }, number(row.count)), h("td", { class: "figure" }, size(row.bytes)), h("td", { class: "figure" }, number(row.kept)), h("td", { class: "figure" }, size(row.keptBytes))))),
			),
		);
	}

	private scale(): { x: (life: number) => number; y: (size: number) => number; w: number; hgt: number; width: number; height: number; keptX: number; barsX: number; barsW: number } {
		const { sizes, lives } = this.grid!;
		const width = Math.max(280, this.root.clientWidth - 2);
		const narrow = width < 560;
		const barsW = narrow ? 60 : BARS;
		const rows = Math.max(1, sizes[1] - sizes[0] + 1);
		const hgt = Math.min(14, Math.max(4, Math.floor(380 / rows)));
		const height = TOP + rows * hgt + BOTTOM;
		const plot = width - LEFT - KEPT - barsW - 24;
		const w = plot / Math.max(1, lives[1] - lives[0] + 1);
		const keptX = LEFT + plot + 10;
		return { x: (life) => LEFT + (life - lives[0]) * w, y: (cls) => TOP + (sizes[1] - cls) * hgt, w, hgt, width, height, keptX, barsX: keptX + KEPT - 24, barsW };
	}

	private cellAt(x: number, y: number): { size: number; life: number } | null {
		const grid = this.grid;
		if (!grid || grid.sizes[1] < 0) return null;
		const s = this.scale();
		const cls = grid.sizes[1] - Math.floor((y - TOP) / s.hgt);
		if (cls < grid.sizes[0] || cls > grid.sizes[1]) return null;
		if (x >= s.keptX && x < s.keptX + 24) return { size: cls, life: STILL_THERE };
		const life = grid.lives[0] + Math.floor((x - LEFT) / s.w);
		return life >= grid.lives[0] && life <= grid.lives[1] ? { size: cls, life } : null;
	}

	private onKey(event: KeyboardEvent): void {
		const grid = this.grid;
		const moves: Record<string, [number, number]> = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };
		const move = moves[event.key];
		if (!grid || grid.sizes[1] < 0 || !move) return;
		event.preventDefault();
		const at = this.cursor ?? { size: grid.sizes[0], life: grid.lives[0] };
		const column = at.life === STILL_THERE ? grid.lives[1] + 1 : at.life;
		const next = Math.min(Math.max(column + move[1], grid.lives[0]), grid.lives[1] + 1);
		this.cursor = { size: Math.min(Math.max(at.size + move[0], grid.sizes[0]), grid.sizes[1]), life: next > grid.lives[1] ? STILL_THERE : next };
		this.paint();
	}

	private paint(): void {
		const grid = this.grid;
		if (!grid || !this.root.clientWidth) return;
		this.canvas.hidden = grid.sizes[1] < 0;
		if (grid.sizes[1] < 0) {
			fill(this.readout, "Nothing was allocated in this interval.");
			return;
		}
		const s = this.scale();
		const ratio = devicePixelRatio || 1;
		this.canvas.width = s.width * ratio;
		this.canvas.height = s.height * ratio;
		this.canvas.style.width = `${s.width}px`;
		this.canvas.style.height = `${s.height}px`;
		const ctx = this.canvas.getContext("2d")!;
		ctx.scale(ratio, ratio);
		const style = getComputedStyle(document.documentElement);
		const css = (variable: string): string => style.getPropertyValue(variable).trim();
		ctx.font = `11px ${css("--font")}`;
		this.paintCells(ctx, css, s);
		this.paintAxes(ctx, css, s);
		this.paintBars(ctx, css, s);
		this.tell(css, ctx, s);
	}

	private paintCells(ctx: CanvasRenderingContext2D, css: Css, s: ReturnType<LifetimesView["scale"]>): void {
		const grid = this.grid!;
		let most = 1;
		for (const cell of grid.cells.values()) most = Math.max(most, cell[this.measure]);
		ctx.fillStyle = css("--sunken");
		ctx.fillRect(LEFT, TOP, s.keptX - 10 - LEFT, (grid.sizes[1] - grid.sizes[0] + 1) * s.hgt);
		ctx.fillRect(s.keptX, TOP, 24, (grid.sizes[1] - grid.sizes[0] + 1) * s.hgt);
		for (const [key, cell] of grid.cells) {
			if (!cell[this.measure]) continue;
			const life = key % 256;
			// By its logarithm, so that one block is seen beside a million.
			ctx.globalAlpha = 0.16 + 0.84 * (Math.log1p(cell[this.measure]) / Math.log1p(most));
			ctx.fillStyle = life === STILL_THERE ? css("--bad") : css("--accent");
			const x = life === STILL_THERE ? s.keptX : s.x(life);
			ctx.fillRect(x, s.y(Math.floor(key / 256)), life === STILL_THERE ? 24 : Math.max(1, s.w - 0.5), s.hgt - 0.5);
		}
		ctx.globalAlpha = 1;
	}

	private paintAxes(ctx: CanvasRenderingContext2D, css: Css, s: ReturnType<LifetimesView["scale"]>): void {
		const grid = this.grid!;
		ctx.fillStyle = css("--muted");
		ctx.textBaseline = "middle";
		ctx.textAlign = "right";
		const every = s.hgt * 4 < 26 ? 2 : 1;
		// Just above "0 B" there is no room for "1 B".
		for (let power = grid.sizes[0] === 0 ? every : 0; power < 64; power += every) {
			const cls = 1 + power * 4;
			if (cls >= grid.sizes[0] && cls <= grid.sizes[1]) ctx.fillText(bytes(2 ** power).replace(".0 ", " "), LEFT - 8, s.y(cls) + s.hgt / 2);
		}
		if (grid.sizes[0] === 0) ctx.fillText("0 B", LEFT - 8, s.y(0) + s.hgt / 2);
		ctx.textAlign = "center";
		ctx.textBaseline = "top";
		const bottom = s.y(grid.sizes[0]) + s.hgt + 6;
		let last = -Infinity;
		for (let power = 0; power < 16; power++) {
			const life = Math.log2(10 ** power) * 4;
			const x = LEFT + (life - grid.lives[0]) * s.w;
			if (life < grid.lives[0] || life > grid.lives[1] + 1 || x - last < 52 || x > s.keptX - 24) continue;
			ctx.fillText(seconds(10 ** power / 1e9).replace(".0 ", " "), x, bottom);
			ctx.fillRect(x, bottom - 5, 1, 4);
			last = x;
		}
		ctx.fillText("still", s.keptX + 12, bottom - 2);
		ctx.fillText("there", s.keptX + 12, bottom + 9);
		ctx.textAlign = "left";
		ctx.fillText("lived", LEFT, bottom + 14);
	}

	private paintBars(ctx: CanvasRenderingContext2D, css: Css, s: ReturnType<LifetimesView["scale"]>): void {
		const grid = this.grid!;
		const rows = new Map<number, { all: number; kept: number }>();
		for (const [key, cell] of grid.cells) {
			const cls = Math.floor(key / 256);
			const row = rows.get(cls) ?? { all: 0, kept: 0 };
			row.all += cell[this.measure];
			if (key % 256 === STILL_THERE) row.kept += cell[this.measure];
			rows.set(cls, row);
		}
		let most = 1;
		for (const row of rows.values()) most = Math.max(most, row.all);
		for (const [cls, row] of rows) {
			const kept = (row.kept / most) * s.barsW;
			ctx.fillStyle = css("--bad");
			ctx.fillRect(s.barsX, s.y(cls), kept, s.hgt - 1);
			ctx.fillStyle = css("--accent");
			ctx.fillRect(s.barsX + kept, s.y(cls), (row.all / most) * s.barsW - kept, s.hgt - 1);
		}
		ctx.fillStyle = css("--muted");
		ctx.textAlign = "left";
		ctx.fillText(this.measure === "count" ? `sizes, up to ${count(most)}` : `sizes, up to ${bytes(most)}`, s.barsX, s.y(grid.sizes[0]) + s.hgt + 6, s.barsW + 20);
	}

	private tell(css: Css, ctx: CanvasRenderingContext2D, s: ReturnType<LifetimesView["scale"]>): void {
		const at = this.cursor;
		let all = 0;
		let kept = 0;
		for (const [key, cell] of this.grid!.cells) {
			all += cell.count;
			if (key % 256 === STILL_THERE) kept += cell.count;
		}
		const whole = `${many(all, "block")} of known size, ${count(kept)} of them still there at the interval's end.`;
		this.canvas.setAttribute("aria-label", `Heat map of block size against lifetime: ${whole} Arrow keys read its cells.`);
		this.readout.dataset.count = String(all);
		this.readout.dataset.kept = String(kept);
		if (!at) {
			fill(this.readout, whole);
			return;
		}
		const cell = this.grid!.cells.get(at.size * 256 + at.life);
		const sizes = at.size === 0 ? "0 B" : `${bytes(Math.ceil(sizeOf(at.size)))} to ${bytes(sizeOf(at.size + 1))}`;
		const lived = at.life === STILL_THERE ? "still there" : `lived ${seconds(lifeOf(at.life))} to ${seconds(lifeOf(at.life + 1))}`;
		fill(this.readout, `${sizes}, ${lived}: `, h("b", null, many(cell?.count ?? 0, "block")), `, ${bytes(cell?.bytes ?? 0)}`);
		ctx.strokeStyle = css("--text");
		ctx.strokeRect(at.life === STILL_THERE ? s.keptX : s.x(at.life), s.y(at.size), at.life === STILL_THERE ? 24 : Math.max(3, s.w), s.hgt);
	}
}

type Css = (variable: string) => string;
