// SPDX-License-Identifier: MIT
// heap.ts: the page of a look at a whole heap: what is lost, what the memory is used for, who holds it.
import { Address } from "./address";
import type { View } from "./app";
import { h, name, number, size } from "./dom";
import { bytes, count, seconds } from "./format";
import { HeapGroups } from "./heapgroups";
import { HeapState } from "./heapstate";
import { HolderTree, UNNAMED, holdersOf, withRest } from "./holders";
import { answerOf, reachTiles } from "./lost";
import { tile } from "./overview";
import { filterField, showPage } from "./shell";
import { Tabs } from "./tabs";
import { Treemap } from "./treemap";
import type { Heap, HeapAllocator } from "./types";

const SKIPPED = 200; // listed

function header(heap: Heap): HTMLElement {
	const { target, started } = heap;
	return h(
		"div",
		{ class: "title" },
		h("h1", null, name(target.comm ?? "?", 60), h("span", { class: "pid" }, `pid ${target.pid}`)),
		h(
			"p",
			{ class: "subtitle" },
			target.exe && [h("span", { class: "command" }, name(target.exe, 90, "Program")), " · "],
			`the whole heap${started ? ` at ${started.replace("T", " ").replace(/(\.\d+)?Z$/, " UTC")}` : ""}`,
			` · read ${heap.method === "fork" ? "from a forked copy" : "while it ran"} in ${seconds(heap.seconds)}`,
			` · paused for ${seconds(heap.pause_ns / 1e9)} in total`,
		),
		heap.why && h("p", { class: "subtitle" }, "No copy was made: ", name(heap.why, 300)),
	);
}

/* What is not known, so that it is not taken for good news. */
function notesOf(heap: Heap): (Node | string)[][] {
	const out: (Node | string)[][] = [];
	if (heap.unread) out.push([`${bytes(heap.unread)} could not be read: blocks without a known pointer to them are called possibly lost.`]);
	for (const one of heap.allocators) if (!one.walked) out.push([`Blocks of ${one.name} were not checked: `, name(one.why ?? "?", 300)]);
	return out;
}

function allocatorRow(one: HeapAllocator): HTMLElement {
	const cell = (value: number | null | undefined): HTMLElement => h("td", { class: "figure" }, value === null || value === undefined ? "–" : size(value));
	const figures = one.walked ? [cell(one.live.bytes), h("td", { class: "figure" }, number(one.live.count)), h("td", { class: "figure" }, number(one.arenas)), cell(one.free.bytes), cell(one.retained.bytes), cell(one.cached.bytes), cell(one.trimmable?.bytes), cell(one.skipped.bytes)] : [];
	return h(
		"tr",
		{ "data-allocator": one.name },
		h("th", { scope: "row" }, `${one.name} ${one.version}`.trim(), one.module && [" ", h("span", { class: "module" }, name(one.module, 60, "Module"))]),
		h("td", null, one.walked ? "yes" : "no"),
		one.walked ? figures : h("td", { colspan: 8, class: "wide" }, name(one.why ?? "", 300)),
	);
}

function allocators(heap: Heap): HTMLElement {
	const heads: [string, string][] = [
		["Live", "Usable bytes of live blocks"],
		["Blocks", "Live blocks"],
		["Arenas", "Heaps of the allocator"],
		["Free", "Usable bytes that can be handed out"],
		["Free, resident", "Resident bytes of what is free"],
		["In threads' caches", "Of what is free"],
		["malloc_trim(0)", "What malloc_trim(0) would return to the system"],
		["Not walked", "Bytes that could not be walked, and were treated as roots"],
	];
	if (!heap.allocators.length) return h("p", null, "No allocator was found.");
	return h(
		"div",
		{ class: "table-wrap" },
		h(
			"table",
			{ class: "plain", id: "allocators" },
			h("thead", null, h("tr", null, h("th", { scope: "col" }, "Allocator"), h("th", { scope: "col", title: "Are all its blocks known?" }, "Walked"), heads.map(([text, hint]) => h("th", { scope: "col", class: "figure", title: hint }, text)))),
			h("tbody", null, heap.allocators.map(allocatorRow)),
		),
	);
}

function limits(heap: Heap): HTMLElement {
	const shown = heap.skipped.slice(0, SKIPPED);
	const rest = heap.skipped.slice(SKIPPED);
	return h(
		"section",
		{ class: "card limits", "aria-labelledby": "limits-title" },
		h("h2", { id: "limits-title" }, "What this look cannot know"),
		h(
			"ul",
			null,
			h("li", null, "Pointers that a program hides (xor'ed, compressed, written to a file): what only they point to is called lost."),
			h("li", null, "Whether what a function has left behind on a stack or in a register is still used: it counts as a pointer."),
			!heap.skipped.length && h("li", null, "No memory was skipped."),
		),
		heap.skipped.length > 0 && [
			h("h3", null, `Skipped, and treated as roots: ${bytes(heap.skipped.reduce((sum, gap) => sum + gap.bytes, 0))}`),
			h("div", { class: "table-wrap" }, h("table", { class: "plain", id: "skipped" }, h("thead", null, h("tr", null, ["Address", "Bytes", "Why"].map((text) => h("th", { scope: "col", class: text === "Bytes" ? "figure" : null }, text)))), h("tbody", null, shown.map((gap) => h("tr", null, h("td", { class: "id" }, gap.start), h("td", { class: "figure" }, size(gap.bytes)), h("td", { class: "wide" }, name(gap.why, 200))))))),
			rest.length > 0 && h("p", { class: "note" }, `… and ${count(rest.length)} more, ${bytes(rest.reduce((sum, gap) => sum + gap.bytes, 0))} together`),
		],
	);
}

/** The tree of `holders`; without these, the paths to the groups, one by one. */
class HoldersView {
	readonly root = h("section", { class: "panel", "aria-label": "Holders" });
	private readonly tree: HolderTree;
	private readonly roots;

	constructor(
		heap: Heap,
		private readonly state: HeapState,
	) {
		const { holders } = heap;
		this.tree = new HolderTree(holders ? "What would be lost without each:" : "By the shortest way to one block of each group:");
		this.roots = holders ? withRest(holders) : holdersOf(heap.groups.filter(({ verdict }) => verdict === "reachable" || verdict === null).map(({ holder, blocks }) => ({ path: holder, amount: blocks })), UNNAMED);
		this.root.append(...this.tree.parts);
	}

	draw(): void {
		this.tree.set(this.roots, this.state.filter);
	}

	print(on: boolean): void {
		this.tree.print(on);
	}
}

export function showHeap(heap: Heap): void {
	const state = new HeapState();
	const filter = filterField("Filter: class, size, allocator, holder", "Only groups and holders that have these words", (text) => state.set({ filter: text }));
	const views = new Map<string, { label: string; view: View & { root: HTMLElement } }>([
		["blocks", { label: "Blocks", view: new HeapGroups(heap.groups, state) }],
		["holders", { label: "Holders", view: new HoldersView(heap, state) }],
		["allocators", { label: "Allocators", view: { root: h("section", { class: "panel", "aria-label": "Allocators" }, allocators(heap)), draw: () => undefined } }],
	]);
	let address: Address | null = null;
	const tabs = new Tabs(views, () => address?.changed());
	const answer = answerOf(heap.leaks);
	const beside = [...(heap.page_tables === null ? [] : [["and page tables, beside it: ", size(heap.page_tables)]]), ...(heap.swapped ? [["swapped out: ", size(heap.swapped)]] : [])];
	const advice = heap.advice.length > 0 ? h("section", { class: "card", "aria-labelledby": "advice-title" }, h("h2", { id: "advice-title" }, "What to do about it"), h("ul", { class: "advice" }, heap.advice.map((text) => h("li", null, text)))) : null;
	showPage({
		title: header(heap),
		name: `heap of ${heap.target.comm ?? "?"} (${heap.target.pid})`,
		controls: [filter.field],
		main: [
			h("p", { class: `answer ${answer.tone}`, id: "answer" }, answer.text),
			h("ul", { class: "notes", "aria-label": "What the figures leave out" }, notesOf(heap).map((note) => h("li", null, note))),
			h("div", { class: "tiles" }, reachTiles(heap.leaks), tile("Resident", "All of the process's memory that is in RAM", size(heap.rss), [heap.swapped ? `and ${bytes(heap.swapped)} swapped out` : "nothing swapped out"], "rss")),
			new Treemap(heap.account, heap.rss, beside).root,
			advice,
			h("div", { id: "views" }, tabs.bar, tabs.panels),
			limits(heap),
		],
		tabs,
	});
	state.onChange(() => {
		tabs.changed();
		address?.changed();
	});
	address = new Address(state, tabs, () => {
		filter.input.value = state.filter;
	});
}
