// SPDX-License-Identifier: MIT
// timeline.ts: what is outstanding over time, stacked; the process's own memory under it; zooming.
import uPlot from "uplot";
import type { App } from "./app";
import { button, fill, h, segments, size } from "./dom";
import { bytes, moment, seconds, shorten, visible } from "./format";
import { ruler, wholeOf } from "./interval";
import { type Layer, type Layers, type SeriesBy, layersOf, pick } from "./series";

const POINTS = 1400;
const SYNC = "memwatch";

function css(variable: string): string {
	return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
}

export function colorOf(layer: { color: number }): string {
	return layer.color < 0 ? "var(--rest)" : `var(--c${layer.color})`;
}

function paintOf(layer: { color: number }): string {
	return layer.color < 0 ? css("--rest") : css(`--c${layer.color}`);
}

/* Ticks of bytes at powers of two, so that they read "4 MiB". */
function byteSplits(_u: uPlot, _axis: number, min: number, max: number, _incr: number, space: number): number[] {
	const want = Math.max(2, Math.min(6, Math.floor(space) || 4));
	let step = 1;
	while ((max - min) / step > want) step *= 2;
	const out: number[] = [];
	for (let at = Math.ceil(min / step) * step; at <= max; at += step) out.push(at);
	return out;
}

function shortBytes(value: number): string {
	return bytes(value).replace(".0 ", " ");
}

/** Where threads and heaps have longer steps than the rest: a note on what is shown. */
export function ownersNote(app: App, lens: App): string {
	if (lens === app) return "";
	const { start, end } = lens.interval;
	const { bin_ns } = lens.model.processes[ruler(lens.model, lens.scope)]!.page;
	return `There are too many threads and heaps to be told apart in short steps. This is exact at steps of ${seconds(bin_ns / 1e9)}, and of ${moment(start)} to ${moment(end)}.`;
}

export class Timeline {
	readonly root = h("section", { class: "card timeline", "aria-labelledby": "timeline-title" });
	private by: SeriesBy = "stack";
	private lens: App; // what the layers are of
	private main: uPlot | null = null;
	private memory: uPlot | null = null;
	private layers: Layers | null = null;
	private picked: Int32Array = new Int32Array();
	private readonly hidden = new Set<string>(); // layers that are not drawn, as others would not be seen beside them
	private cursor = -1;
	private mark = -1; // where a selection by keys began
	private readonly mainBox = h("div", { class: "plot" });
	private readonly memoryBox = h("div", { class: "plot" });
	private readonly stage = h("div", {
		class: "stage",
		tabindex: 0,
		role: "application",
		"aria-label": "Timeline. Left and right move the cursor, with Shift they select; Enter zooms to the selection; plus and minus zoom; 0 shows all; Backspace goes back.",
		"aria-describedby": "timeline-readout",
	});
	private readonly readout = h("div", { class: "readout", id: "timeline-readout", "aria-live": "polite" });
	/** Where the interval lies in all of the report. */
	private readonly strip = h("div", { class: "strip", "aria-hidden": "true" }, h("span"));
	private readonly legend = h("ul", { class: "legend", "aria-label": "Largest at the interval's end" });
	private readonly steps = h("p", { class: "note", role: "status" });
	private readonly memoryLegend = h("div", { class: "memory-legend" });
	private readonly from = h("input", { type: "text", inputmode: "decimal", "aria-label": "From, seconds", size: 8 });
	private readonly to = h("input", { type: "text", inputmode: "decimal", "aria-label": "To, seconds", size: 8 });
	private readonly buttons: Record<"in" | "out" | "all" | "back", HTMLButtonElement>;

	constructor(private readonly app: App) {
		this.lens = app;
		this.buttons = {
			in: button("+", () => app.scale(0.5), { "aria-label": "Zoom in", title: "Zoom in (+)" }),
			out: button("−", () => app.scale(2), { "aria-label": "Zoom out", title: "Zoom out (−)" }),
			back: button("Back", () => app.back(), { title: "The interval before (Backspace)" }),
			all: button("All", () => app.whole(), { title: "All of the report (0)" }),
		};
		const several: [SeriesBy, string][] = app.model.processes.length > 1 ? [["process", "processes"]] : [];
		const by = segments<SeriesBy>("Stacked by", [["stack", "stacks"], ["module", "modules"], ["thread", "threads"], ["kind", "kinds"], ...several], this.by, (value) => {
			this.by = value;
			this.draw();
		});
		const go = h("form", { class: "goto" }, this.from, h("span", null, "to"), this.to, h("span", { class: "unit" }, "s"), h("button", { class: "button", type: "submit" }, "Go"));
		go.addEventListener("submit", (event) => {
			event.preventDefault();
			const start = parseFloat(this.from.value) * 1e9;
			const end = parseFloat(this.to.value) * 1e9;
			if (start < end) app.zoom(start, end);
			else this.showInterval();
		});
		this.stage.append(this.mainBox, this.memoryBox);
		this.stage.addEventListener("keydown", (event) => this.onKey(event));
		this.root.append(
			h("div", { class: "bar" }, h("h2", { id: "timeline-title" }, "Outstanding over time"), by, h("span", { class: "spring" }), go, h("div", { class: "group" }, this.buttons.in, this.buttons.out, this.buttons.back, this.buttons.all)),
			this.strip,
			h("div", { class: "chart" }, this.stage, h("div", { class: "side" }, this.readout, this.legend, this.steps, this.memoryLegend, h("p", { class: "note hint" }, "Drag across the chart to look at an interval. By keys: arrows, with Shift to select, then Enter."))),
		);
		new ResizeObserver(() => this.resize()).observe(this.stage);
	}

	draw(): void {
		const { app } = this;
		this.lens = this.by === "thread" ? app.owners() : app;
		this.layers = layersOf(this.lens, this.by);
		if (this.lens === app) app.keepTotal(this.layers.total);
		this.picked = pick(this.layers.total, POINTS);
		this.cursor = this.mark = -1;
		this.drawMain();
		this.drawMemory();
		this.drawLegend();
		this.showInterval();
		this.buttons.back.disabled = !app.canGoBack();
		this.buttons.all.disabled = this.buttons.out.disabled = app.interval.whole;
		this.buttons.in.disabled = this.layers.bins <= 1;
	}

	/** The theme has changed: draw with its colours. */
	repaint(): void {
		this.draw();
	}

	private showInterval(): void {
		const { start, end } = this.app.interval;
		this.from.value = String(parseFloat((start / 1e9).toFixed(6)));
		this.to.value = String(parseFloat((end / 1e9).toFixed(6)));
		const all = wholeOf(this.app.model, this.app.scope);
		const part = this.strip.firstElementChild as HTMLElement;
		part.style.left = `${(((start - all.start) / (all.end - all.start)) * 100).toFixed(3)}%`;
		part.style.width = `${(((end - start) / (all.end - all.start)) * 100).toFixed(3)}%`;
		this.strip.hidden = this.app.interval.whole;
	}

	private timeAt(point: number): number {
		const l = this.layers!;
		return point === 0 ? this.lens.interval.start : Math.min(l.start + (this.picked[point - 1]! + 1) * l.bin, this.lens.interval.end);
	}

	private width(): number {
		return Math.max(240, this.stage.clientWidth || 800);
	}

	private resize(): void {
		const width = this.width();
		this.main?.setSize({ width, height: 230 });
		this.memory?.setSize({ width, height: 96 });
	}

	private axes(height: "main" | "memory"): uPlot.Axis[] {
		const grid = { stroke: css("--grid"), width: 1 };
		const common = { stroke: css("--muted"), grid, ticks: { ...grid, size: 4 }, font: "11px " + css("--font") };
		const y: uPlot.Axis = { ...common, size: 68, values: (_u, splits) => splits.map(shortBytes), splits: (u, i, min, max) => byteSplits(u, i, min, max, 0, height === "main" ? 5 : 2) };
		const x: uPlot.Axis = { ...common, size: 26, show: true, values: (_u, splits) => splits.map((s) => `${parseFloat(s.toFixed(6))} s`) };
		if (height === "main") return [x, y];
		return [{ ...x, size: 26 }, { ...y, scale: "y", grid }, { ...y, scale: "v", side: 1, size: 68, grid: { show: false }, stroke: css("--c2") }];
	}

	private options(height: number, series: uPlot.Series[], axes: uPlot.Axis[], hooks: uPlot.Hooks.Arrays): uPlot.Options {
		const { start, end } = this.lens.interval;
		return {
			width: this.width(),
			height,
			padding: [8, axes.length > 2 ? 0 : 68, 0, 0],
			legend: { show: false },
			cursor: { drag: { x: true, y: false, setScale: false }, sync: { key: SYNC, setSeries: false }, points: { show: false }, y: false },
			scales: { x: { time: false, range: () => [start / 1e9, end / 1e9] }, y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.04 : 1] }, v: { range: (_u, _min, max) => [0, max > 0 ? max * 1.04 : 1] } },
			series,
			axes,
			hooks: {
				...hooks,
				setSelect: [
					(u) => {
						if (u.select.width < 3) return;
						const a = u.posToVal(u.select.left, "x") * 1e9;
						const b = u.posToVal(u.select.left + u.select.width, "x") * 1e9;
						u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
						// Not from inside the drawing's own event.
						queueMicrotask(() => this.app.zoom(a, b));
					},
				],
				draw: [(u) => this.drawMarks(u)],
			},
		};
	}

	private drawMain(): void {
		const layers = this.layers!.layers.filter((layer) => !this.hidden.has(layer.key));
		const points = this.picked.length + 1;
		const x = new Float64Array(points);
		for (let p = 0; p < points; p++) x[p] = this.timeAt(p) / 1e9;
		// The last layer lies at the bottom of what is drawn first: each covers what lies under it.
		const sums: Float64Array[] = [];
		let under = new Float64Array(points);
		for (const layer of layers) {
			const sum = new Float64Array(points);
			for (let p = 1; p < points; p++) sum[p] = under[p]! + layer.values[this.picked[p - 1]!]!;
			sums.push(sum);
			under = sum;
		}
		sums.reverse();
		const painted = [...layers].reverse();
		const series: uPlot.Series[] = [{}, ...painted.map((layer) => ({ stroke: paintOf(layer), fill: paintOf(layer), width: 0.5, points: { show: false } }))];
		this.main?.destroy();
		this.main = new uPlot(
			this.options(230, series, this.axes("main"), {
				setCursor: [(u) => this.onCursor(u.cursor.idx ?? -1)],
			}),
			[x, ...sums] as unknown as uPlot.AlignedData,
			this.mainBox,
		);
		this.main.root.setAttribute("aria-hidden", "true");
	}

	/* Of several processes the sum of what each last said. */
	private samples(): { x: number[]; rss: (number | null)[]; vsize: (number | null)[] } {
		const all: { at: number; process: number; rss: number | null; vsize: number | null }[] = [];
		for (const process of this.app.processes()) for (const { at, rss, vsize } of process.report.memory) all.push({ at, process: process.index, rss, vsize });
		all.sort((a, b) => a.at - b.at);
		const last = new Map<number, { rss: number | null; vsize: number | null }>();
		const out = { x: [] as number[], rss: [] as (number | null)[], vsize: [] as (number | null)[] };
		for (const sample of all) {
			last.set(sample.process, sample);
			const sum = (key: "rss" | "vsize"): number | null => {
				let value = 0;
				for (const one of last.values()) {
					if (one[key] === null) return null;
					value += one[key]!;
				}
				return value;
			};
			out.x.push(sample.at);
			out.rss.push(sum("rss"));
			out.vsize.push(sum("vsize"));
		}
		return out;
	}

	private drawMemory(): void {
		const samples = this.samples();
		this.memory?.destroy();
		this.memory = null;
		this.memoryBox.hidden = !samples.x.length;
		fill(this.memoryLegend);
		if (!samples.x.length) return;
		const series: uPlot.Series[] = [{}, { stroke: css("--c0"), width: 1.5, points: { show: samples.x.length < 30, size: 4 } }, { stroke: css("--c2"), width: 1.5, dash: [4, 3], scale: "v", points: { show: false } }];
		this.memory = new uPlot(this.options(96, series, this.axes("memory"), {}), [samples.x, samples.rss, samples.vsize] as uPlot.AlignedData, this.memoryBox);
		this.memory.root.setAttribute("aria-hidden", "true");
		const { start, end } = this.app.interval;
		const inside = samples.x.map((_, i) => i).filter((i) => samples.x[i]! * 1e9 >= start - 1 && samples.x[i]! * 1e9 <= end + 1);
		const line = (label: string, color: string, values: (number | null)[], id: string): HTMLElement => {
			const a = values[inside[0] ?? 0] ?? null;
			const b = values[inside[inside.length - 1] ?? 0] ?? null;
			return h("div", { id }, h("span", { class: "swatch line", "data-color": color }), label, " ", a === null || b === null ? "?" : [size(a), " → ", size(b)]);
		};
		fill(this.memoryLegend, line("Resident (RSS)", "0", samples.rss, "legend-rss"), line("Virtual size", "2", samples.vsize, "legend-vsize"));
	}

	private drawMarks(u: uPlot): void {
		const { model, scope, interval } = this.app;
		const { ctx, bbox } = u;
		ctx.save();
		ctx.strokeStyle = ctx.fillStyle = css("--text");
		ctx.font = `${11 * devicePixelRatio}px ${css("--font")}`;
		ctx.textAlign = "left";
		ctx.textBaseline = "alphabetic";
		ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
		for (const process of model.processes) {
			if (scope.process !== null && process.index !== scope.process) continue;
			(process.page.marks ?? []).forEach((mark, i) => {
				if (mark.at_ns < interval.start || mark.at_ns > interval.end) return;
				const x = Math.round(u.valToPos(mark.at_ns / 1e9, "x", true));
				ctx.beginPath();
				ctx.moveTo(x, bbox.top);
				ctx.lineTo(x, bbox.top + bbox.height);
				ctx.stroke();
				if (u === this.main) ctx.fillText(shorten(visible(mark.name ?? `mark ${i + 1}`), 24), x + 4, bbox.top + 12 * devicePixelRatio);
			});
		}
		ctx.restore();
	}

	private drawLegend(): void {
		const l = this.layers!;
		fill(
			this.legend,
			l.layers.map((layer) => this.legendItem(layer)),
			!l.layers.length && h("li", { class: "note" }, "Nothing was outstanding at the end of any step of this interval."),
		);
		fill(this.steps, ownersNote(this.app, this.lens));
		this.showReadout();
	}

	private legendItem(layer: Layer): HTMLElement {
		const swatch = h("span", { class: "swatch", "data-color": layer.color < 0 ? "rest" : layer.color });
		const off = this.hidden.has(layer.key);
		const toggle = h("button", { type: "button", class: "legend-name", "aria-pressed": String(!off), title: `${layer.hint ? layer.hint + ": " : ""}${off ? "draw it again" : "leave it out of the drawing"}` }, h("bdi", null, shorten(visible(layer.label), 44)));
		toggle.addEventListener("click", () => {
			if (off) this.hidden.delete(layer.key);
			else this.hidden.add(layer.key);
			this.drawMain();
			this.drawLegend();
			this.legend.querySelector<HTMLElement>(`[data-key="${layer.key}"] button`)?.focus();
		});
		return h("li", { "data-key": layer.key, class: off ? "off" : null }, swatch, toggle, h("span", { class: "legend-value" }, size(layer.last)));
	}

	private onCursor(point: number): void {
		if (point === this.cursor) return;
		this.cursor = point;
		this.showReadout();
	}

	private showReadout(): void {
		const l = this.layers!;
		const at = this.cursor;
		const time = at < 0 ? this.lens.interval.end : this.timeAt(at);
		const bin = at < 0 ? l.bins - 1 : at === 0 ? -1 : this.picked[at - 1]!;
		const of = (values: Float64Array): number => (bin < 0 ? 0 : values[bin]!);
		fill(this.readout, h("span", { class: "label" }, at < 0 ? "at the end, " : "at ", moment(time)), " ", h("b", null, size(of(l.total))));
		if (this.mark >= 0 && this.mark !== at) this.readout.append(` · selected ${seconds(Math.abs(this.timeAt(this.mark) - time) / 1e9)}, Enter zooms`);
		this.legend.querySelectorAll<HTMLElement>(".legend-value").forEach((element, i) => fill(element, size(of(l.layers[i]!.values))));
	}

	private select(): void {
		const u = this.main!;
		if (this.mark < 0) {
			u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
			return;
		}
		const a = u.valToPos(this.timeAt(Math.min(this.mark, this.cursor)) / 1e9, "x");
		const b = u.valToPos(this.timeAt(Math.max(this.mark, this.cursor)) / 1e9, "x");
		u.setSelect({ left: a, top: 0, width: b - a, height: u.over.clientHeight }, false);
	}

	private onKey(event: KeyboardEvent): void {
		const { app } = this;
		const last = this.picked.length;
		const move = (to: number): void => {
			const next = Math.min(Math.max(to, 0), last);
			if (event.shiftKey && this.mark < 0) this.mark = Math.max(this.cursor, 0);
			if (!event.shiftKey) this.mark = -1;
			this.cursor = next;
			this.main!.setCursor({ left: this.main!.valToPos(this.timeAt(next) / 1e9, "x"), top: 10 }, false);
			this.select();
			this.showReadout();
		};
		const step = Math.max(1, Math.round(last / 50));
		const at = Math.max(this.cursor, 0);
		const actions: Record<string, () => void> = {
			ArrowLeft: () => move(at - (event.ctrlKey ? step * 5 : step)),
			ArrowRight: () => move(at + (event.ctrlKey ? step * 5 : step)),
			Home: () => move(0),
			End: () => move(last),
			PageUp: () => app.move(-0.5),
			PageDown: () => app.move(0.5),
			Enter: () => {
				if (this.mark >= 0 && this.mark !== this.cursor) app.zoom(Math.min(this.timeAt(this.mark), this.timeAt(this.cursor)), Math.max(this.timeAt(this.mark), this.timeAt(this.cursor)));
			},
			"+": () => app.scale(0.5, this.cursor >= 0 ? this.timeAt(this.cursor) : undefined),
			"=": () => app.scale(0.5, this.cursor >= 0 ? this.timeAt(this.cursor) : undefined),
			"-": () => app.scale(2),
			"0": () => app.whole(),
			Backspace: () => app.back(),
			Escape: () => {
				this.mark = -1;
				this.select();
				this.showReadout();
			},
		};
		const action = actions[event.key];
		if (!action) return;
		event.preventDefault();
		action();
	}
}
