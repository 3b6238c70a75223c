// SPDX-License-Identifier: MIT
// series.ts: the largest groups over time, and the small charts of table rows and suspects.
import type { App } from "./app";
import { grid, outstanding } from "./interval";
import { basename } from "./format";
import { functionText, moduleText, threadText } from "./labels";

export type SeriesBy = "stack" | "module" | "thread" | "kind" | "process";

export interface Layer {
	key: string;
	label: string;
	hint: string;
	color: number; // 0 … 7; -1: the rest
	stack: number | null;
	values: Float64Array; // outstanding bytes at the end of each bin
	last: number;
}

export interface Layers {
	start: number;
	bin: number;
	bins: number;
	layers: Layer[];
	total: Float64Array;
}

const MOST = 8;
const colors = new Map<string, number>();

/* A group keeps its colour while it is shown. */
function paint(layers: Layer[]): void {
	const taken = new Set<number>();
	for (const layer of layers) {
		const had = colors.get(layer.key);
		if (had !== undefined && !taken.has(had)) taken.add((layer.color = had));
	}
	for (const layer of layers) {
		if (layer.color >= 0) continue;
		for (let color = 0; color < MOST; color++) {
			if (taken.has(color)) continue;
			layer.color = color;
			taken.add(color);
			colors.set(layer.key, color);
			break;
		}
	}
}

function groupsBy(app: App, by: SeriesBy): { of: Int32Array; count: number } {
	const { model } = app;
	const { runs } = model;
	const of = new Int32Array(runs.count);
	let count = 0;
	for (let run = 0; run < runs.count; run++) {
		const stack = runs.stack[run]!;
		let group: number;
		if (!app.has(stack)) group = -1;
		else if (by === "stack") group = model.stackId[stack]!;
		else if (by === "module") group = model.stackModule[stack]!;
		else if (by === "thread") group = runs.thread[run]!;
		else if (by === "kind") group = model.stackKind[stack]!;
		else group = runs.process[run]!;
		of[run] = group;
		if (group >= count) count = group + 1;
	}
	return { of, count };
}

/* Bytes times how long they were outstanding: a group's area in the chart. */
function areas(app: App, of: Int32Array, count: number): Float64Array {
	const { model, interval } = app;
	const { start, process } = model.runs;
	const { born, died, bytes } = model.cells;
	const area = new Float64Array(count);
	for (let run = 0; run < of.length; run++) {
		const group = of[run]!;
		if (group < 0) continue;
		const a = interval.from[process[run]!]!;
		const b = interval.to[process[run]!]!;
		let sum = 0;
		for (let i = start[run]!; i < start[run + 1]!; i++) {
			const bo = born[i]!;
			if (bo < a || bo >= b) continue;
			const di = died[i]!;
			sum += bytes[i]! * ((di < b ? di : b) - bo);
		}
		area[group]! += sum;
	}
	return area;
}

function describe(app: App, by: SeriesBy, group: number, stack: number): Pick<Layer, "key" | "label" | "hint" | "stack"> {
	const { model } = app;
	const key = `${by}:${group}`;
	if (by === "module") {
		const module = model.modules.list[group]!;
		return { key, label: moduleText(module), hint: module ?? "every frame is of an allocator or a language's runtime", stack: null };
	}
	if (by === "thread") return { key, label: threadText(model, group), hint: "", stack: null };
	if (by === "kind") return { key, label: ["heap", "mappings", "allocators' own"][group]!, hint: "", stack: null };
	if (by === "process") {
		const target = model.processes[group]!.report.target;
		return { key, label: `${target.comm ?? "?"} (${target.pid})`, hint: target.exe ?? "", stack: null };
	}
	const frame = model.chargedFrame(stack) ?? model.frames(stack)[0] ?? null;
	const place = frame?.file ? ` ${basename(frame.file)}:${frame.line ?? "?"}` : "";
	return { key, label: functionText(frame), hint: `stack ${model.stacks[stack]!.id}${place}`, stack };
}

/* Stacks of one function are told apart by their ids. */
function tellApart(app: App, layers: Layer[]): void {
	const times = new Map<string, number>();
	for (const { label } of layers) times.set(label, (times.get(label) ?? 0) + 1);
	for (const layer of layers) if (layer.stack !== null && times.get(layer.label)! > 1) layer.label += ` · ${app.model.stacks[layer.stack]!.id.slice(0, 6)}`;
}

export function layersOf(app: App, by: SeriesBy): Layers {
	const { model, scope, interval } = app;
	const { of, count } = groupsBy(app, by);
	const area = areas(app, of, count);
	const order = Array.from(area.keys()).filter((group) => area[group]! > 0);
	order.sort((x, y) => area[y]! - area[x]! || x - y);
	const top = order.slice(0, MOST);
	const rest = order.length > MOST;
	const place = new Int32Array(count).fill(rest ? top.length : -1);
	top.forEach((group, i) => (place[group] = i));
	const stackOf = new Int32Array(top.length).fill(-1);
	const mapped = new Int32Array(of.length);
	for (let run = 0; run < of.length; run++) {
		mapped[run] = of[run]! < 0 ? -1 : place[of[run]!]!;
		const at = mapped[run]!;
		if (at >= 0 && at < top.length && stackOf[at]! < 0) stackOf[at] = model.runs.stack[run]!;
	}
	const values = outstanding(model, scope, interval, mapped, top.length + (rest ? 1 : 0));
	const g = grid(model, scope, interval);
	const layers: Layer[] = top.map((group, i) => ({
		...describe(app, by, group, stackOf[i]!),
		color: -1,
		values: values[i]!,
		last: values[i]![g.bins - 1]!,
	}));
	tellApart(app, layers);
	paint(layers);
	if (rest)
		layers.push({ key: "rest", label: `${order.length - MOST} others`, hint: "", color: -1, stack: null, values: values[top.length]!, last: values[top.length]![g.bins - 1]! });
	const total = new Float64Array(g.bins);
	for (const layer of layers) for (let i = 0; i < g.bins; i++) total[i]! += layer.values[i]!;
	return { ...g, layers, total };
}

/** The bins to draw where there are more than points: of each few the one with the most, so that no spike is lost. */
export function pick(total: Float64Array, points: number): Int32Array {
	const bins = total.length;
	if (bins <= points) return Int32Array.from({ length: bins }, (_, i) => i);
	const out = new Int32Array(points);
	for (let p = 0; p < points; p++) {
		const first = Math.floor((p * bins) / points);
		const end = Math.floor(((p + 1) * bins) / points);
		let best = first;
		for (let i = first + 1; i < end; i++) if (total[i]! > total[best]!) best = i;
		out[p] = p === points - 1 ? bins - 1 : best;
	}
	return out;
}

/* Changes of what is held, by the time at which they can be seen: a bin's end. */
interface Changes {
	add(process: number, bin: number, bytes: number): void;
	/** In order of time: what is held from then on. */
	each(visit: (time: number, held: number) => void): void;
}

/* Where all processes have the same bins: a number for each. Else, or where there are few, a list. */
class ByBin implements Changes {
	private readonly steps: Float64Array;

	constructor(
		private readonly app: App,
		private readonly first: number,
		last: number,
	) {
		this.steps = new Float64Array(last - first);
	}

	add(_process: number, bin: number, bytes: number): void {
		this.steps[bin - this.first]! += bytes;
	}

	each(visit: (time: number, held: number) => void): void {
		const { page } = this.app.model.processes[0]!;
		let held = 0;
		for (let i = 0; i < this.steps.length; i++) {
			if (!this.steps[i]) continue;
			held += this.steps[i]!;
			visit(page.from_ns + (this.first + i + 1) * page.bin_ns, held);
		}
	}
}

class ByTime implements Changes {
	private readonly times: number[] = [];
	private readonly amounts: number[] = [];

	constructor(private readonly app: App) {}

	add(process: number, bin: number, bytes: number): void {
		const { page } = this.app.model.processes[process]!;
		this.times.push(page.from_ns + (bin + 1) * page.bin_ns);
		this.amounts.push(bytes);
	}

	each(visit: (time: number, held: number) => void): void {
		const { times, amounts } = this;
		const order = Array.from(times.keys()).sort((x, y) => times[x]! - times[y]!);
		let held = 0;
		for (let i = 0; i < order.length; i++) {
			held += amounts[order[i]!]!;
			if (i + 1 === order.length || times[order[i + 1]!] !== times[order[i]!]) visit(times[order[i]!]!, held);
		}
	}
}

function changesOf(app: App, cells: number): Changes {
	const { processes } = app.model;
	const { page } = processes[0]!;
	const same = processes.every((process) => process.page.from_ns === page.from_ns && process.page.bin_ns === page.bin_ns);
	const first = Math.min(...app.interval.from);
	const last = Math.max(...app.interval.to);
	return same && cells * 8 > last - first ? new ByBin(app, first, last) : new ByTime(app);
}

/**
 * What these runs held over the interval: bytes at the ends of `points` equal parts, and the most at any bin's end.
 * `fate`: only blocks that were not freed (0), freed (1), or neither (2, 3); -1: all.
 */
export function spark(app: App, runs: ArrayLike<number>, points: number, fate = -1): { values: Float64Array; peak: number } {
	const { model, interval } = app;
	const { start, process } = model.runs;
	const { born, died, bytes } = model.cells;
	const values = new Float64Array(points);
	let cells = 0;
	for (let r = 0; r < runs.length; r++) cells += start[runs[r]! + 1]! - start[runs[r]!]!;
	const changes = changesOf(app, cells);
	for (let r = 0; r < runs.length && fate < 2; r++) {
		const run = runs[r]!;
		const own = process[run]!;
		const a = interval.from[own]!;
		const b = interval.to[own]!;
		for (let i = start[run]!, end = start[run + 1]!; i < end; i++) {
			const bo = born[i]!;
			const di = died[i]!;
			if (bo < a || bo >= b || bo === di) continue;
			if (fate >= 0 && di < b !== (fate === 1)) continue;
			changes.add(own, bo, bytes[i]!);
			if (di < b) changes.add(own, di, -bytes[i]!);
		}
	}
	const span = interval.end - interval.start;
	let peak = 0;
	let point = 0;
	let before = 0;
	changes.each((time, held) => {
		const at = Math.min(points - 1, Math.max(0, Math.ceil(((time - interval.start) / span) * points) - 1));
		for (; point < at; point++) values[point] = before;
		before = held;
		if (held > peak) peak = held;
	});
	for (; point < points; point++) values[point] = before;
	return { values, peak };
}

/** A small drawing of a series, beginning at 0. */
export function sparkPath(values: Float64Array, width: number, height: number): { area: string; line: string; most: number } {
	let most = 0;
	for (const value of values) most = Math.max(most, value);
	const y = (value: number): string => (height - 1 - (most ? value / most : 0) * (height - 2)).toFixed(1);
	let line = `M0 ${y(0)}`;
	for (let i = 0; i < values.length; i++) line += `L${(((i + 1) / values.length) * width).toFixed(1)} ${y(values[i]!)}`;
	return { area: `${line}L${width} ${height}L0 ${height}Z`, line, most };
}
