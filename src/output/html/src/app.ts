// SPDX-License-Identifier: MIT
// app.ts: what the page shows now, and who is notified when it changes.
import { type Interval, type Scope, Sums, grid, inScope, outstanding, snap, wholeOf } from "./interval";
import type { Model, Process } from "./model";
import type { Frame, Frames } from "./types";

export type Memory = "both" | "heap" | "vm" | "internal";

/** A part of the page that shows figures. draw() is called only while it can be seen. */
export interface View {
	draw(): void;
	/** Put all that is open into the document, for paper, or no longer. */
	print?(on: boolean): void;
}

/** In ns. */
export interface Times {
	start: number;
	end: number;
}

function kindsOf(memory: Memory): Scope["kinds"] {
	return [memory === "both" || memory === "heap", memory === "both" || memory === "vm", memory === "internal"];
}

export class App {
	scope: Scope = { kinds: [true, true, false], process: null, stacks: null };
	interval: Interval;
	sums: Sums;
	memory: Memory = "both";
	filter = "";
	private readonly past: Interval[] = [];
	private readonly listeners: (() => void)[] = [];
	private stackSums: Float64Array | null = null;
	private byOwner: App | null = null;
	/** What is outstanding at the end of each bin, in scope; the timeline's sum where it has just been drawn. */
	private held: Float64Array | null = null;

	constructor(
		readonly model: Model,
		scope?: Scope,
		near?: Times,
	) {
		if (scope) this.scope = scope;
		const whole = near ?? wholeOf(model, this.scope);
		this.interval = snap(model, this.scope, whole.start, whole.end);
		this.sums = new Sums(model, this.interval);
	}

	onChange(listener: () => void): void {
		this.listeners.push(listener);
	}

	/**
	 * This, for views that tell threads and heaps apart. Where these have cells of their own in longer bins, its interval
	 * is the nearest one of such bins.
	 */
	owners(): App {
		const { owners } = this.model;
		if (!owners) return this;
		if (!this.byOwner) {
			const { scope, memory, filter, interval } = this;
			const out = new App(owners, scope, interval);
			this.byOwner = Object.assign(out, { memory, filter });
		}
		return this.byOwner;
	}

	/** How long the interval is. */
	seconds(): number {
		return (this.interval.end - this.interval.start) / 1e9;
	}

	/** Sums by stack of the interval. */
	byStack(): Float64Array {
		return (this.stackSums ??= this.sums.byStack());
	}

	/** Bytes outstanding at the ends of the interval's bins, of blocks born in it and in scope. */
	total(): Float64Array {
		if (!this.held) {
			const { model } = this;
			const groups = new Int32Array(model.runs.count);
			for (let run = 0; run < groups.length; run++) groups[run] = this.has(model.runs.stack[run]!) ? 0 : -1;
			this.held = outstanding(model, this.scope, this.interval, groups, 1)[0]!;
		}
		return this.held;
	}

	keepTotal(total: Float64Array): void {
		this.held = total;
	}

	/** The processes that are shown: all, or the chosen one. */
	processes(): Process[] {
		return this.model.processes.filter(({ index }) => this.scope.process === null || index === this.scope.process);
	}

	/** When most was outstanding: the end of a bin. */
	peak(): { bytes: number; at: number } {
		const total = this.total();
		const g = grid(this.model, this.scope, this.interval);
		let best = 0;
		for (let i = 1; i < total.length; i++) if (total[i]! > total[best]!) best = i;
		return { bytes: total[best] ?? 0, at: g.start + (best + 1) * g.bin };
	}

	has(stack: number, internal = false): boolean {
		return inScope(this.model, this.scope, stack, internal);
	}

	zoom(start: number, end: number, remember = true): void {
		const next = snap(this.model, this.scope, start, end);
		const now = this.interval;
		if (next.start === now.start && next.end === now.end) return;
		if (remember) this.past.push(now);
		this.change(next);
	}

	canGoBack(): boolean {
		return this.past.length > 0;
	}

	back(): void {
		const before = this.past.pop();
		if (before) this.zoom(before.start, before.end, false);
	}

	whole(): void {
		const all = wholeOf(this.model, this.scope);
		this.zoom(all.start, all.end);
	}

	/** Half or twice as long, about a moment. */
	scale(factor: number, about?: number): void {
		const { start, end } = this.interval;
		const middle = about ?? (start + end) / 2;
		const length = (end - start) * factor;
		const share = (middle - start) / (end - start);
		this.zoom(middle - share * length, middle - share * length + length);
	}

	move(share: number): void {
		const { start, end } = this.interval;
		const whole = wholeOf(this.model, this.scope);
		const step = Math.min(Math.max((end - start) * share, whole.start - start), whole.end - end);
		this.zoom(start + step, end + step);
	}

	setFrames(frames: Frames): void {
		this.model.shownFrames = frames;
		this.tell();
	}

	setMemory(memory: Memory): void {
		this.memory = memory;
		this.scope.kinds = kindsOf(memory);
		this.tell();
	}

	setProcess(process: number | null): void {
		const { start, end, whole } = this.interval;
		this.scope.process = process;
		this.past.length = 0;
		const all = wholeOf(this.model, this.scope);
		this.change(whole ? snap(this.model, this.scope, all.start, all.end) : snap(this.model, this.scope, start, end));
	}

	/** Only stacks of which some name has each of the words. */
	setFilter(text: string): void {
		this.useFilter(text);
		this.tell();
	}

	private useFilter(text: string): void {
		if (text === this.filter) return;
		this.filter = text;
		const words = text.toLowerCase().split(/\s+/).filter(Boolean);
		this.scope.stacks = words.length ? this.matching(words) : null;
	}

	/** Show what an address names, in one step. `near`: the wanted interval, given the whole. */
	restore(filter: string, memory: Memory, frames: Frames, process: number | null, near: (whole: Times) => Times): void {
		const before = this.interval;
		this.useFilter(filter);
		this.memory = memory;
		this.model.shownFrames = frames;
		this.scope.kinds = kindsOf(memory);
		if (process !== this.scope.process) this.past.length = 0;
		this.scope.process = process;
		const whole = wholeOf(this.model, this.scope);
		const wanted = near(whole);
		const { start, end } = wanted.start < wanted.end ? wanted : whole;
		const next = snap(this.model, this.scope, start, end);
		const last = this.past[this.past.length - 1];
		if (last && last.start === next.start && last.end === next.end) this.past.pop();
		// When the page opens there is nothing to go back to.
		else if (this.listeners.length && (before.start !== next.start || before.end !== next.end)) this.past.push(before);
		this.change(next);
	}

	private matching(words: string[]): Uint8Array {
		const { stacks } = this.model;
		const out = new Uint8Array(stacks.length);
		out.fill(1);
		for (const word of words) {
			const has = (text: string | null): boolean => text !== null && text.toLowerCase().includes(word);
			const known = new Map<Frame, boolean>(); // stacks share their frames
			const matches = (frame: Frame): boolean => {
				let match = known.get(frame);
				if (match === undefined) known.set(frame, (match = has(frame.function) || has(frame.module) || has(frame.file)));
				return match;
			};
			stacks.forEach(({ id, api }, i) => {
				if (out[i] && !(id.startsWith(word) || has(api) || this.model.frames(i).some(matches))) out[i] = 0;
			});
		}
		return out;
	}

	private change(interval: Interval): void {
		performance.mark("memwatch-zoom-start");
		this.interval = interval;
		this.sums = new Sums(this.model, interval);
		this.stackSums = null;
		this.tell();
		performance.measure("memwatch-zoom", "memwatch-zoom-start");
	}

	tell(): void {
		this.held = this.byOwner = null;
		for (const listener of this.listeners) listener();
	}
}
