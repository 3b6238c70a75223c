// SPDX-License-Identifier: MIT
// space.ts: the address space at the window's start and end, by what it is for.
import type { App } from "./app";
import { fill, h, name, number, size } from "./dom";
import { bytes, change, count, many, percent } from "./format";
import { processText } from "./labels";
import type { Process } from "./model";
import type { Arenas, Region, Space } from "./types";

const LABELS: Record<string, string> = {
	heap: "heap (brk)",
	arena: "allocator arenas",
	stack: "thread stacks",
	anonymous: "anonymous",
	file_text: "files' code",
	file_data: "files' data",
	shared: "shared",
	memwatch: "memwatch's own",
	special: "special",
};

type Field = "reserved" | "resident";

type Moments = { start: Region | null; end: Region | null };

function sum(regions: Record<string, Region> | null, field: Field): number | null {
	if (!regions) return null;
	let out = 0;
	for (const region of Object.values(regions)) {
		if (region[field] === null) return null;
		out += region[field];
	}
	return out;
}

/** The larger of what was resident at the start and at the end. */
function most(region: Moments): number {
	return Math.max(region.start?.resident ?? 0, region.end?.resident ?? 0);
}

/** A quarter or more of the arenas is free, and they grew more by what is free than by what is used. */
function isFragmented(end: Arenas, start: Arenas | null | undefined): boolean {
	if (end.free < end.size / 4) return false;
	return start ? end.size > start.size && end.free - start.free > (end.size - start.size) / 2 : end.free > end.used;
}

export class SpaceView {
	readonly root = h("section", { class: "panel", "aria-label": "Address space" });
	private drawn: number | null | undefined;

	constructor(private readonly app: App) {}

	draw(): void {
		const { scope } = this.app;
		if (this.drawn === scope.process) return;
		this.drawn = scope.process;
		const used = this.app.processes();
		fill(this.root, h("p", { class: "note" }, "At the window's start and end, whatever interval is chosen. Reserved is what is mapped, resident what lies in memory."), used.map((process) => this.one(process, used.length > 1)));
	}

	private one(process: Process, several: boolean): HTMLElement {
		const space = process.page.space ?? process.report.address_space;
		const box = h("div", { class: "space-one" }, several && h("h3", null, name(processText(this.app.model, process.index), 60)));
		if (!space || (!space.start && !space.end)) {
			box.appendChild(h("p", null, "The address space was not looked at in this recording."));
			return box;
		}
		box.append(this.table(space), ...this.arenas(space), ...this.unattributed(space));
		return box;
	}

	private table(space: Space): HTMLElement {
		const kinds = Object.keys({ ...space.start, ...space.end }).filter((kind) => (space.start?.[kind]?.count ?? 0) + (space.end?.[kind]?.count ?? 0) > 0);
		const kindOf = (kind: string): Moments => ({ start: space.start?.[kind] ?? null, end: space.end?.[kind] ?? null });
		const widest = Math.max(1, ...kinds.map((kind) => most(kindOf(kind))));
		const cells = (a: number | null, b: number | null): HTMLElement[] => [
			h("td", { class: "figure" }, a === null ? "?" : size(a)),
			h("td", { class: "figure" }, b === null ? "?" : size(b)),
			h("td", { class: `figure change ${a !== null && b !== null && b > a ? "grown" : ""}` }, a === null || b === null ? "?" : h("data", { value: b - a }, change(a, b))),
		];
		const bars = (region: Moments): HTMLElement => {
			const bar = (value: number | null, when: string): HTMLElement => {
				const one = h("span", { class: `space-bar ${when}`, title: `${when}: ${value === null ? "?" : bytes(value)} resident` });
				one.style.width = `${(((value ?? 0) / widest) * 100).toFixed(2)}%`;
				return one;
			};
			return h("td", { class: "space-bars" }, bar(region.start?.resident ?? null, "start"), bar(region.end?.resident ?? null, "end"));
		};
		const row = (label: string, data: Record<string, string>, region: Moments): HTMLElement => {
			const { start, end } = region;
			return h("tr", data, h("th", { scope: "row" }, label), bars(region), cells(start?.reserved ?? null, end?.reserved ?? null), cells(start?.resident ?? null, end?.resident ?? null), h("td", { class: "figure" }, number(end?.count ?? start?.count ?? 0)));
		};
		const parts = [...(space.named ?? [])].sort((a, b) => most(b) - most(a));
		const rows = (kind: string): HTMLElement[] => [row(LABELS[kind] ?? kind, { "data-kind": kind }, kindOf(kind)), ...(kind === "anonymous" ? parts.map((part) => row(part.name, { "data-part": part.name, class: "part" }, part)) : [])];
		const all = h("tr", { "data-kind": "all" }, h("th", { scope: "row" }, "all"), h("td"), cells(sum(space.start, "reserved"), sum(space.end, "reserved")), cells(sum(space.start, "resident"), sum(space.end, "resident")), h("td"));
		return h(
			"div",
			{ class: "table-wrap" },
			h(
				"table",
				{ class: "plain" },
				h("thead", null, h("tr", null, h("th", { rowspan: 2, scope: "col" }, "What for"), h("th", { rowspan: 2, scope: "col" }, h("span", { class: "sw start" }), "start ", h("span", { class: "sw end" }), "end, resident"), h("th", { colspan: 3, scope: "colgroup" }, "Reserved"), h("th", { colspan: 3, scope: "colgroup" }, "Resident"), h("th", { rowspan: 2, scope: "col" }, "Mappings")), h("tr", null, ["start", "end", "change", "start", "end", "change"].map((text) => h("th", { scope: "col", class: "figure" }, text)))),
				h("tbody", null, kinds.flatMap(rows), all),
			),
		);
	}

	private arenas(space: Space): HTMLElement[] {
		const end = space.arenas?.end;
		if (!end) return [];
		const start = space.arenas?.start;
		return [h("p", null, "glibc's arenas: ", size(end.used), " in use, ", size(end.free), " free in them, ", size(end.size), ` in all (${percent(end.free, end.size)} free)`, start ? `; since the start ${change(start.used, end.used)} in use, ${change(start.free, end.free)} free` : "", ".", isFragmented(end, start) ? " What is free there was taken from the system and is not used: the arenas grew by fragmentation rather than by a leak." : "")];
	}

	private unattributed(space: Space): HTMLElement[] {
		const all = space.unattributed;
		if (!all?.length) return [];
		const shown = all.slice(0, 50);
		return [
			h("h3", null, `Unattributed: ${bytes(all.reduce((total, item) => total + item.bytes, 0))} in ${many(all.length, "mapping")} that appeared in the window and that no hook saw`),
			h("div", { class: "table-wrap" }, h("table", { class: "plain" }, h("thead", null, h("tr", null, ["Address", "Kind", "Bytes", "Resident", "File"].map((text) => h("th", { scope: "col" }, text)))), h("tbody", null, shown.map((item) => h("tr", null, h("td", { class: "id" }, "0x" + item.address.toString(16)), h("td", null, LABELS[item.kind] ?? item.kind), h("td", { class: "figure" }, size(item.bytes)), h("td", { class: "figure" }, item.resident === null ? "?" : size(item.resident)), h("td", null, item.path === null ? "–" : name(item.path, 80, "Path"))))))),
			...(all.length > shown.length ? [h("p", { class: "note" }, `… and ${count(all.length - shown.length)} more`)] : []),
		];
	}
}
