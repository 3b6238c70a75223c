// SPDX-License-Identifier: MIT
// interval.ts: what an interval holds: the sums of each run, by the interval's own ends (../FORMAT.md).
import { NEVER } from "./decode";
import { INTERNAL, type Model } from "./model";

/** Times in ns since the window's start; bins [from[p], to[p]) of process p. */
export interface Interval {
	start: number;
	end: number;
	from: number[];
	to: number[];
	whole: boolean;
}

/** Fields of a sum: of each fate blocks, bytes, and blocks of unknown size; then how long the freed ones lived, in ns. */
export const IMPACTING = 0;
export const TRANSIENT = 3;
export const AOFI = 6;
export const AOFO = 9;
export const LIVED = 12;
export const FIELDS = 13;
export const FATES = [IMPACTING, TRANSIENT, AOFI, AOFO] as const;

/** What the page shows: kinds of memory, processes, and stacks that a filter leaves. */
export interface Scope {
	kinds: [boolean, boolean, boolean];
	process: number | null;
	stacks: Uint8Array | null;
}

export function inScope(model: Model, scope: Scope, stack: number, internal = false): boolean {
	const kind = model.stackKind[stack]!;
	if (!(scope.kinds[kind] || (internal && kind === INTERNAL))) return false;
	if (scope.process !== null && model.stackProcess[stack] !== scope.process) return false;
	return !scope.stacks || scope.stacks[stack] === 1;
}

/** The process whose bins an interval is snapped to: the one with the longest. */
export function ruler(model: Model, scope: Scope): number {
	let best = -1;
	for (const process of model.processes) {
		if (scope.process !== null && process.index !== scope.process) continue;
		if (best < 0 || process.page.bin_ns > model.processes[best]!.page.bin_ns) best = process.index;
	}
	return best;
}

function clamp(value: number, low: number, high: number): number {
	return Math.min(Math.max(value, low), high);
}

/** All of the report's time, of the processes in scope. */
export function wholeOf(model: Model, scope: Scope): { start: number; end: number } {
	let start = Infinity;
	let end = 0;
	for (const { index, page } of model.processes) {
		if (scope.process !== null && index !== scope.process) continue;
		start = Math.min(start, page.from_ns);
		end = Math.max(end, page.to_ns);
	}
	return { start, end };
}

/** The interval of whole bins next to [start, end): one bin at the least. */
export function snap(model: Model, scope: Scope, start: number, end: number): Interval {
	const whole = wholeOf(model, scope);
	const { bin_ns, from_ns } = model.processes[ruler(model, scope)]!.page;
	const bins = Math.max(1, Math.ceil((whole.end - from_ns) / bin_ns));
	// The last bin ends where the report does, which may be soon after it began.
	const last = from_ns + (bins - 1) * bin_ns;
	const near = (time: number): number => (time > (last + whole.end) / 2 ? bins : Math.min(Math.round((time - from_ns) / bin_ns), bins - 1));
	const a = clamp(near(start), 0, bins - 1);
	const b = clamp(near(end), a + 1, bins);
	const from = from_ns + a * bin_ns;
	const to = from_ns + b * bin_ns;
	const out: Interval = {
		start: a === 0 ? whole.start : from,
		end: Math.min(to, whole.end),
		from: [],
		to: [],
		whole: a === 0 && b === bins,
	};
	for (const { page } of model.processes) {
		const first = clamp(Math.round((out.start - page.from_ns) / page.bin_ns), 0, page.bins);
		const last = out.end >= page.to_ns ? page.bins : clamp(Math.round((out.end - page.from_ns) / page.bin_ns), 0, page.bins);
		out.from.push(first);
		out.to.push(Math.max(first, last));
	}
	return out;
}

export class Sums {
	/** FIELDS numbers for each run. */
	readonly of: Float64Array;

	constructor(
		readonly model: Model,
		readonly interval: Interval,
	) {
		const { start, count, process } = model.runs;
		const { born, died, thread, count: blocks, bytes, unknown, lived } = model.cells;
		const of = new Float64Array(count * FIELDS);
		for (let run = 0; run < count; run++) {
			const a = interval.from[process[run]!]!;
			const b = interval.to[process[run]!]!;
			const end = start[run + 1]!;
			const at = run * FIELDS;
			// A block from before the window is seen only when it is freed.
			const old = thread[start[run]!] === 0;
			for (let i = start[run]!; i < end; i++) {
				const bo = born[i]!;
				if (bo >= b) continue;
				const di = died[i]!;
				if (di < a) continue;
				const gone = di < b;
				if (old && bo < a && !gone) continue;
				const field = at + (bo >= a ? (gone ? TRANSIENT : IMPACTING) : gone ? AOFI : AOFO);
				of[field]! += blocks[i]!;
				of[field + 1]! += bytes[i]!;
				of[field + 2]! += unknown[i]!;
				if (gone && bo >= a) of[at + LIVED]! += lived[i]!;
			}
		}
		this.of = of;
	}

	/** All runs in scope, together; with `kind` of that kind only. */
	total(scope: Scope, kind?: number): Float64Array {
		const sum = new Float64Array(FIELDS);
		const { count, stack } = this.model.runs;
		for (let run = 0; run < count; run++) {
			if (!inScope(this.model, scope, stack[run]!)) continue;
			if (kind !== undefined && this.model.stackKind[stack[run]!] !== kind) continue;
			for (let f = 0; f < FIELDS; f++) sum[f]! += this.of[run * FIELDS + f]!;
		}
		return sum;
	}

	/** By stack. */
	byStack(): Float64Array {
		const out = new Float64Array(this.model.stacks.length * FIELDS);
		const { count, stack } = this.model.runs;
		for (let run = 0; run < count; run++) {
			const to = stack[run]! * FIELDS;
			for (let f = 0; f < FIELDS; f++) out[to + f]! += this.of[run * FIELDS + f]!;
		}
		return out;
	}
}

/** A measure of a sum. */
export const MEASURES = {
	impacting: (s: ArrayLike<number>, at = 0) => s[at + IMPACTING + 1]!,
	blocks: (s: ArrayLike<number>, at = 0) => s[at + IMPACTING]!,
	size: (s: ArrayLike<number>, at = 0) => s[at + IMPACTING + 1]! + s[at + TRANSIENT + 1]!,
	count: (s: ArrayLike<number>, at = 0) => s[at + IMPACTING]! + s[at + TRANSIENT]!,
	transient: (s: ArrayLike<number>, at = 0) => s[at + TRANSIENT + 1]!,
	lifetime: (s: ArrayLike<number>, at = 0) => (s[at + TRANSIENT]! ? s[at + LIVED]! / s[at + TRANSIENT]! / 1e9 : -1),
	freedOlder: (s: ArrayLike<number>, at = 0) => s[at + AOFI + 1]!,
};

/** Outstanding bytes of blocks born in the interval, at each end of a bin of the ruler: see Series. */
export function grid(model: Model, scope: Scope, interval: Interval): { start: number; bin: number; bins: number } {
	const page = model.processes[ruler(model, scope)]!.page;
	const first = Math.round((interval.start - page.from_ns) / page.bin_ns);
	const bins = Math.max(1, Math.ceil((interval.end - page.from_ns) / page.bin_ns) - first);
	return { start: page.from_ns + first * page.bin_ns, bin: page.bin_ns, bins };
}

/**
 * What groups of runs hold over the interval: bytes outstanding at the end of each bin, of blocks that were born in
 * it. `groupOf`: the group of a run, or -1.
 */
export function outstanding(model: Model, scope: Scope, interval: Interval, groupOf: Int32Array, groups: number): Float64Array[] {
	const g = grid(model, scope, interval);
	const out: Float64Array[] = [];
	for (let i = 0; i < groups; i++) out.push(new Float64Array(g.bins));
	const { start, count, process } = model.runs;
	const { born, died, bytes } = model.cells;
	for (const { index, page, firstRun, endRun } of model.processes) {
		// Bin i of this process is bin i * scale + shift of the grid.
		const same = page.bin_ns === g.bin && page.from_ns + interval.from[index]! * page.bin_ns === g.start;
		const a = interval.from[index]!;
		const b = interval.to[index]!;
		const place = (bin: number): number =>
			same ? bin - a : clamp(Math.floor((page.from_ns + bin * page.bin_ns - g.start) / g.bin), 0, g.bins - 1);
		for (let run = firstRun; run < Math.min(endRun, count); run++) {
			if (process[run] !== index) continue;
			const group = groupOf[run]!;
			if (group < 0) continue;
			const into = out[group]!;
			const end = start[run + 1]!;
			for (let i = start[run]!; i < end; i++) {
				const bo = born[i]!;
				const di = died[i]!;
				if (bo < a || bo >= b || di === bo) continue;
				into[place(bo)]! += bytes[i]!;
				if (di < b && di !== NEVER) into[place(di)]! -= bytes[i]!;
			}
		}
	}
	for (const series of out) for (let i = 1; i < g.bins; i++) series[i]! += series[i - 1]!;
	return out;
}
