// SPDX-License-Identifier: MIT
/*
 * growth.ts: is what a stack held in an interval a leak? The verdict of src/view/growth.c and level.c, by the same rules,
 * from what bins know: a block's birth is taken for the middle of its bin, a lifetime for the mean of its cell.
 */
import type { Interval } from "./interval";
import type { Model } from "./model";
import type { Amount, Growth } from "./types";

const MOMENTS = 64; // MW_SERIES_MAX
const FIRST_STEP = 1e6; // ns
const LEVEL_PARTS = 8;
const PARTS = 16;
const FEW = 1 / 16;

export interface Judged {
	growth: Growth;
	lifetime: { median: number; p99: number } | null; // ns
}

interface Line {
	slope: number;
	error: number;
	steadiness: number;
}

interface Level {
	values: number;
	most: number;
	least: number[];
	fall: number;
	whole: Line;
	late: Line;
}

interface Settled {
	from: number;
	length: number;
	oldest: number;
	newest: number;
	parts: Amount[];
	sum: Amount;
}

/** Seconds since the window's start. */
interface Input {
	from: number;
	seconds: number;
	oldest: number;
	newest: number;
	impacting: Amount;
	transient: Amount;
	freedBy: number;
}

function fit(values: Float64Array, first: number, end: number, step: number): Line {
	const n = end - first;
	let meanT = 0;
	let meanB = 0;
	for (let i = first; i < end; i++) {
		meanT += (i * step) / n;
		meanB += values[i]! / n;
	}
	let tt = 0;
	let tb = 0;
	let bb = 0;
	for (let i = first; i < end; i++) {
		const t = i * step - meanT;
		const b = values[i]! - meanB;
		tt += t * t;
		tb += t * b;
		bb += b * b;
	}
	const slope = tt > 0 ? tb / tt : 0;
	return { slope, steadiness: tt > 0 && bb > 0 ? Math.min((tb * tb) / (tt * bb), 1) : 1, error: tt > 0 && n > 2 ? Math.sqrt(Math.max(bb - tb * slope, 0) / (n - 2) / tt) : 0 };
}

function levelOf(values: Float64Array, count: number, step: number): Level {
	let most = 0;
	let fall = 0;
	for (let i = 0; i < count; i++) {
		most = Math.max(most, values[i]!);
		fall = Math.max(fall, most - values[i]!);
	}
	const least: number[] = [];
	for (let part = 0; part < LEVEL_PARTS; part++) {
		const first = Math.floor((count * part) / LEVEL_PARTS);
		const end = Math.floor((count * (part + 1)) / LEVEL_PARTS);
		let low = first < end ? Infinity : 0;
		for (let i = first; i < end; i++) low = Math.min(low, values[i]!);
		least.push(low);
	}
	return { values: count, most, least, fall, whole: fit(values, 0, count, step), late: fit(values, Math.floor(count / 2), count, step) };
}

function rises({ least, most, fall }: Level): boolean {
	const end = least[LEVEL_PARTS - 1]!;
	let before = 0;
	let times = 0;
	for (const low of least) {
		if (low > before + most / 64) times++;
		before = low;
	}
	return times >= 3 && fall <= most / 8 && end - least[LEVEL_PARTS / 2 - 1]! >= (3 / 8) * most && end - least[(LEVEL_PARTS * 3) / 4 - 1]! >= most / 16;
}

const weigh = (sum: Amount, amount: Amount): number => (sum.bytes ? amount.bytes : amount.count);
const settleAge = (input: Input): number => (input.transient.count * 8 >= input.impacting.count ? 1.5 * input.freedBy : 0);

function settle(settled: Settled, born: number, count: number, bytes: number): void {
	const at = Math.max(born - settled.from, 0);
	if (settled.length <= 0 || at > settled.length) return;
	const part = settled.parts[Math.min(Math.floor((at / settled.length) * PARTS), PARTS - 1)]!;
	settled.oldest = Math.min(settled.oldest, born);
	settled.newest = Math.max(settled.newest, born);
	for (const sum of [part, settled.sum]) {
		sum.count += count;
		sum.bytes += bytes;
	}
}

function courseOf(settled: Settled): { late: number; places: number; pause: number; quiet: number; lastPart: number } {
	const all = weigh(settled.sum, settled.sum);
	const out = { late: 0, places: 0, pause: 0, quiet: 0, lastPart: -1 };
	let last = -1;
	let place = -2;
	settled.parts.forEach((amount, part) => {
		const here = weigh(settled.sum, amount);
		if (part >= PARTS / 2) out.late += here;
		if (here <= (all * FEW) / PARTS) return;
		if (part - place > 1) {
			out.places++;
			place = part;
		}
		if (last >= 0) out.pause = Math.max(out.pause, part - last - 1);
		last = part;
	});
	let after = 0;
	for (let part = PARTS - 1; part >= 0; part--) {
		after += weigh(settled.sum, settled.parts[part]!);
		if (after > FEW * all) {
			out.lastPart = part;
			break;
		}
		out.quiet++;
	}
	return out;
}

function judgeSettled(level: Level, input: Input, settled: Settled): string {
	const mostly = weigh(input.impacting, settled.sum) > weigh(input.impacting, input.impacting) / 2;
	const risen = ((level.late.slope + 2 * level.late.error) * input.seconds) / 2;
	const course = courseOf(settled);
	if (settled.newest - settled.oldest <= input.seconds / 16) return mostly ? "one-off" : "churn";
	if (course.quiet >= PARTS / 4 && course.quiet > course.pause + 1) return mostly ? "plateau" : "churn";
	if (settleAge(input) > 0 && input.impacting.bytes > 0 && risen < course.late / 4) return "plateau";
	return course.places >= 3 ? "steady growth" : "too short to tell";
}

function judge(level: Level, input: Input, settled: Settled): string {
	const could = settled.length >= input.seconds / 4;
	const longLived = settleAge(input) >= input.seconds / 8;
	if (input.seconds < 1 || level.values < 2 * LEVEL_PARTS) return "too short to tell";
	if (!longLived && rises(level)) return "steady growth";
	if (input.oldest - input.from > (3 / 4) * input.seconds && input.transient.count <= input.impacting.count) return "too short to tell";
	if (could && weigh(input.impacting, settled.sum) >= FEW * weigh(input.impacting, input.impacting)) return judgeSettled(level, input, settled);
	if (level.fall > 0 && level.fall >= level.most / 2) return "churn";
	if (!could && (level.late.slope * input.seconds) / 2 > input.impacting.bytes / 4) return "too short to tell";
	return longLived ? "plateau" : "churn";
}

/* Lifetimes of a stack, sixteen classes to the power of two. */
class Lives {
	private readonly value = new Float32Array(1);
	private readonly bits = new Uint32Array(this.value.buffer);
	private readonly counts = new Float64Array(1 << 13);
	private low = this.counts.length;
	private high = -1;

	clear(): void {
		if (this.high >= 0) this.counts.fill(0, this.low, this.high + 1);
		this.low = this.counts.length;
		this.high = -1;
	}

	add(ns: number, count: number): void {
		this.value[0] = ns;
		const at = this.bits[0]! >> 19;
		this.counts[at]! += count;
		if (at < this.low) this.low = at;
		if (at > this.high) this.high = at;
	}

	/** Of which that share has lived as long at most. */
	by(share: number, all: number): number {
		let sum = 0;
		let at = this.low;
		while (at < this.high && sum + this.counts[at]! < share * all) sum += this.counts[at++]!;
		this.bits[0] = (at << 19) + (1 << 18);
		return this.value[0]!;
	}
}

/** Verdicts on what each of the stacks had outstanding at the interval's end; null where that was nothing. */
export function judgeAll(model: Model, interval: Interval, wanted: (stack: number) => boolean): (Judged | null)[] {
	const out: (Judged | null)[] = new Array<Judged | null>(model.stacks.length).fill(null);
	const { runs, cells } = model;
	const { born, died, bytes, count, lived } = cells;
	const lives = new Lives();
	const values = new Float64Array(MOMENTS + 1);
	const kept: number[] = []; // cells of what is outstanding
	for (const { index, page, firstRun, endRun } of model.processes) {
		const a = interval.from[index]!;
		const b = interval.to[index]!;
		const start = Math.max(interval.start, page.from_ns);
		const end = Math.min(interval.end, page.to_ns);
		let step = Math.max(FIRST_STEP, page.bin_ns);
		while (Math.floor((end - start) / step) > MOMENTS) step *= 2;
		const moments = Math.max(0, Math.min(MOMENTS, Math.floor((end - start) / step + 1e-9)));
		// The first moment that does not come before a bin's middle: what happens in the bin shows there.
		const momentOf = Uint8Array.from({ length: page.bins + 1 }, (_, bin) => Math.min(MOMENTS, Math.max(0, Math.ceil((page.from_ns + (bin + 0.5) * page.bin_ns - start) / step) - 1)));
		const middle = (bin: number): number => Math.min(page.from_ns + (bin + 0.5) * page.bin_ns, (page.from_ns + bin * page.bin_ns + page.to_ns) / 2) / 1e9;
		for (let run = firstRun; run < endRun; ) {
			const stack = runs.stack[run]!;
			const first = runs.start[run]!;
			while (run < endRun && runs.stack[run] === stack) run++;
			if (!wanted(stack)) continue;
			const last = runs.start[run]!;
			const impacting = { count: 0, bytes: 0 };
			const transient = { count: 0, bytes: 0 };
			let timed = 0;
			values.fill(0);
			lives.clear();
			kept.length = 0;
			for (let i = first; i < last; i++) {
				const bo = born[i]!;
				if (bo < a || bo >= b) continue;
				const di = died[i]!;
				if (di < b) {
					transient.count += count[i]!;
					transient.bytes += bytes[i]!;
					timed += count[i]!;
					lives.add(count[i]! ? lived[i]! / count[i]! : 0, count[i]!);
					if (di === bo) continue;
					values[momentOf[di]!]! -= bytes[i]!;
				} else {
					impacting.count += count[i]!;
					impacting.bytes += bytes[i]!;
					kept.push(i);
				}
				values[momentOf[bo]!]! += bytes[i]!;
			}
			if (!impacting.count && !impacting.bytes) continue;
			for (let i = 1; i <= MOMENTS; i++) values[i]! += values[i - 1]!;
			let oldest = Infinity;
			let newest = 0;
			for (const i of kept) {
				oldest = Math.min(oldest, middle(born[i]!));
				newest = Math.max(newest, middle(born[i]!));
			}
			const lifetime = timed ? { median: lives.by(0.5, timed), p99: lives.by(0.99, timed) } : null;
			const input: Input = { from: start / 1e9, seconds: (end - start) / 1e9, oldest, newest, impacting, transient, freedBy: lifetime ? lifetime.p99 / 1e9 : 0 };
			const settled: Settled = { from: input.from, length: input.seconds - settleAge(input), oldest: Infinity, newest: 0, parts: Array.from({ length: PARTS }, () => ({ count: 0, bytes: 0 })), sum: { count: 0, bytes: 0 } };
			for (const i of kept) settle(settled, middle(born[i]!), count[i]!, bytes[i]!);
			out[stack] = { growth: conclude(levelOf(values, moments, step / 1e9), input, settled), lifetime };
		}
	}
	return out;
}

function conclude(level: Level, input: Input, settled: Settled): Growth {
	const end = input.from + input.seconds;
	const all = input.impacting.count + input.transient.count;
	const verdict = judge(level, input, settled);
	let until = input.from;
	if (settled.sum.count) until = settled.from + (settled.length * (courseOf(settled).lastPart + 1)) / PARTS;
	else if (verdict === "steady growth") until = end;
	return {
		verdict,
		bytes_per_second: level.whole.slope,
		steadiness: level.whole.steadiness,
		floor_start: level.least[0]!,
		floor_end: level.least[LEVEL_PARTS - 1]!,
		growing_until: until,
		freed_share: all ? input.transient.count / all : 0,
		oldest_age: end - input.oldest,
		newest_age: end - input.newest,
		settle_age: settleAge(input),
		settled: settled.sum,
	};
}
