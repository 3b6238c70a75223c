// SPDX-License-Identifier: MIT
// groups.ts: runs grouped in any order of columns, as report --by does.
import type { App } from "./app";
import { FATES, FIELDS, LIVED, TRANSIENT } from "./interval";
import { INTERNAL, KINDS } from "./model";

export const COLUMNS = ["process", "kind", "heap", "type", "thread", "module", "function", "line", "language", "stack", "api"] as const;
export type Column = (typeof COLUMNS)[number];

export interface Node {
	column: Column | null; // null: the root
	value: number;
	level: number;
	parent: Node | null;
	sums: Float64Array;
	runs: number[];
	stack: number; // one of its stacks
	children: Node[];
}

/** A run's value in a column: equal values have equal numbers. */
function valueOf(app: App, column: Column, run: number): number {
	const { model } = app;
	const stack = model.runs.stack[run]!;
	switch (column) {
		case "process":
			return model.runs.process[run]!;
		case "kind":
			return model.stackKind[stack]!;
		case "heap":
			return model.runs.heap[run]!;
		case "thread":
			return model.runs.thread[run]!;
		case "module":
			return model.stackModule[stack]!;
		case "function":
			return model.stackFunction[stack]!;
		case "line":
			return model.stackLine[stack]!;
		case "language":
			return model.stackLanguage[stack]!;
		case "stack":
			return model.stackId[stack]!;
		case "api":
			return model.stackApi[stack]!;
		case "type":
			return 0;
	}
}

function newNode(column: Column | null, value: number, parent: Node | null, stack: number): Node {
	return { column, value, level: parent ? parent.level + 1 : -1, parent, sums: new Float64Array(FIELDS), runs: [], stack, children: [] };
}

/** The interval's sums, grouped by the columns `by`. Where kinds are told apart, the allocators' own mappings are one. */
export function group(app: App, by: readonly Column[]): Node {
	const { model } = app;
	const all = app.sums.of;
	const root = newNode(null, 0, null, -1);
	const internal = by.includes("kind") && app.memory === "both";
	const byType = by.includes("type");
	const maps = new Map<Node, Map<number, Node>>();
	const child = (parent: Node, column: Column, value: number, stack: number): Node => {
		let map = maps.get(parent);
		if (!map) maps.set(parent, (map = new Map()));
		let node = map.get(value);
		if (!node) {
			node = newNode(column, value, parent, stack);
			map.set(value, node);
			parent.children.push(node);
		}
		return node;
	};
	const piece = new Float64Array(FIELDS);
	const add = (run: number, sums: ArrayLike<number>, at: number, fate: number): void => {
		let node = root;
		const stack = model.runs.stack[run]!;
		for (let level = -1; level < by.length; level++) {
			if (level >= 0) node = child(node, by[level]!, by[level] === "type" ? fate : valueOf(app, by[level]!, run), stack);
			for (let f = 0; f < FIELDS; f++) node.sums[f]! += sums[at + f]!;
			if (node.runs[node.runs.length - 1] !== run) node.runs.push(run);
		}
	};
	for (let run = 0; run < model.runs.count; run++) {
		const stack = model.runs.stack[run]!;
		if (!app.has(stack, internal)) continue;
		const at = run * FIELDS;
		if (!byType) {
			let any = 0;
			for (const fate of FATES) any += all[at + fate]! + all[at + fate + 1]!;
			if (any) add(run, all, at, 0);
			continue;
		}
		FATES.forEach((fate, number) => {
			if (!all[at + fate] && !all[at + fate + 1]) return;
			piece.fill(0);
			for (let f = fate; f < fate + 3; f++) piece[f] = all[at + f]!;
			if (fate === TRANSIENT) piece[LIVED] = all[at + LIVED]!;
			add(run, piece, 0, number);
		});
	}
	return root;
}

/** What became of blocks, in the order of FATES. */
export const TYPE_NAMES = ["not freed", "freed", "older, freed", "older, kept"] as const;
export const TYPE_HINTS = ["allocated in the interval, not freed by its end", "allocated in the interval and freed in it", "allocated before the interval, freed in it", "allocated before the interval, still there at its end"] as const;

export function kindName(value: number): string {
	return value === INTERNAL ? "vm-internal (allocators' own)" : KINDS[value]!;
}
