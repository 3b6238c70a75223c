// SPDX-License-Identifier: MIT
// flametree.ts: the stacks as one tree, from the threads' starts or from the allocators; weights are summed up in it.
import type { App } from "./app";
import { FIELDS, MEASURES } from "./interval";
import type { Model } from "./model";
import type { Frame } from "./types";

export type Direction = "down" | "up";
export type Measure = "impacting" | "transient" | "size" | "count" | "peak";

/** Nodes by number; 0 is the root. A parent has a lower number than its children. */
export interface FlameTree {
	parent: number[];
	depth: number[];
	frame: (Frame | null)[]; // one of the frames that are here
	children: number[][];
	leaf: Uint32Array; // by stack: its last node
}

/* Frames of one function (of a module) are one; unknown ones by their place. */
class FrameNumbers {
	private readonly modules = new Map<string, Map<string, number>>();
	private count = 0;

	of(frame: Frame): number {
		const module = frame.module ?? "";
		let names = this.modules.get(module);
		if (!names) this.modules.set(module, (names = new Map()));
		const key = frame.function ?? `\0${frame.offset}`;
		let number = names.get(key);
		if (number === undefined) names.set(key, (number = this.count++));
		return number;
	}
}

const NAMES = 2 ** 24;

export function buildTree(model: Model, direction: Direction): FlameTree {
	const tree: FlameTree = { parent: [-1], depth: [0], frame: [null], children: [[]], leaf: new Uint32Array(model.stacks.length) };
	const numbers = new FrameNumbers();
	const known = new Map<number, number>();
	for (let stack = 0; stack < model.stacks.length; stack++) {
		const frames = model.shown(stack);
		let node = 0;
		for (let i = 0; i < frames.length; i++) {
			const { frame } = frames[direction === "down" ? frames.length - 1 - i : i]!;
			const key = node * NAMES + numbers.of(frame);
			let next = known.get(key);
			if (next === undefined) {
				next = tree.parent.length;
				known.set(key, next);
				tree.parent.push(node);
				tree.depth.push(tree.depth[node]! + 1);
				tree.frame.push(frame);
				tree.children.push([]);
				tree.children[node]!.push(next);
			}
			node = next;
		}
		tree.leaf[stack] = node;
	}
	return tree;
}

/** By stack: what it weighs in the interval. Of the peak: what was outstanding when all together was the most. */
export function stackWeights(app: App, measure: Measure): Float64Array {
	const { model, interval } = app;
	const out = new Float64Array(model.stacks.length);
	if (measure !== "peak") {
		const sums = app.byStack();
		for (let stack = 0; stack < out.length; stack++) if (app.has(stack)) out[stack] = MEASURES[measure](sums, stack * FIELDS);
		return out;
	}
	const { runs, cells } = model;
	const { at } = app.peak();
	for (let run = 0; run < runs.count; run++) {
		if (!app.has(runs.stack[run]!)) continue;
		const { page, index } = model.processes[runs.process[run]!]!;
		const a = interval.from[index]!;
		const end = Math.min(interval.to[index]!, Math.round((at - page.from_ns) / page.bin_ns));
		for (let i = runs.start[run]!; i < runs.start[run + 1]!; i++)
			if (cells.born[i]! >= a && cells.born[i]! < end && cells.died[i]! >= end) out[runs.stack[run]!]! += cells.bytes[i]!;
	}
	return out;
}

/** By node: its stacks' weights together. */
export function nodeWeights(tree: FlameTree, stacks: Float64Array): Float64Array {
	const out = new Float64Array(tree.parent.length);
	for (let stack = 0; stack < stacks.length; stack++) out[tree.leaf[stack]!]! += stacks[stack]!;
	for (let node = out.length - 1; node > 0; node--) out[tree.parent[node]!]! += out[node]!;
	return out;
}
