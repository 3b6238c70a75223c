// SPDX-License-Identifier: MIT
// overview.ts: the figures at the top, and the sentence that says what they are of.
import type { App } from "./app";
import { fill, h, number, size } from "./dom";
import { bytes, many, moment, percent, seconds } from "./format";
import { AOFI, AOFO, IMPACTING, LIVED, TRANSIENT, ruler } from "./interval";

/** Blocks of which no size is known don't have 0 bytes. */
function sizeOf(total: Float64Array, field: number): HTMLElement {
	const unknown = total[field + 2]! > 0 && total[field + 2] === total[field];
	return unknown ? h("data", { value: 0 }, "size unknown") : size(total[field + 1]!);
}

export function tile(label: string, hint: string, main: Node, rest: (Node | string)[], id: string): HTMLElement {
	return h("div", { class: "tile", id: `tile-${id}`, title: hint }, h("div", { class: "label" }, label), h("div", { class: "main" }, main), h("div", { class: "rest" }, rest));
}

/** The most that was outstanding of the scope's blocks that were born in the interval. */
export function peakOf(app: App): { bytes: number; at: number } {
	const { model, scope, interval } = app;
	if (interval.whole && !scope.stacks && model.processes.length === 1 && (app.memory === "heap" || app.memory === "vm")) {
		const peak = model.processes[0]!.report.totals[app.memory]?.peak;
		if (peak) return { bytes: peak.bytes, at: peak.at * 1e9 };
	}
	const peak = app.peak();
	return { bytes: peak.bytes, at: Math.min(peak.at, interval.end) };
}

export class Overview {
	readonly tiles = h("div", { class: "tiles" });
	readonly sentence = h("p", { class: "sentence", role: "status", "aria-live": "polite" });

	constructor(private readonly app: App) {}

	draw(): void {
		const { app } = this;
		const { interval, model } = app;
		const total = app.sums.total(app.scope);
		const peak = peakOf(app);
		const length = app.seconds();
		const of = (field: number): [Node, (Node | string)[]] => [sizeOf(total, field), ["in ", number(total[field]!), total[field] === 1 ? " block" : " blocks"]];
		const impacting = of(IMPACTING);
		if (total[IMPACTING]) impacting[1].push(`, ${bytes(total[IMPACTING + 1]! / length)} a second`);
		const transient = of(TRANSIENT);
		if (total[TRANSIENT]) transient[1].push(`, mean life ${seconds(total[LIVED]! / total[TRANSIENT]! / 1e9)}`);
		const sampled = app.memory !== "vm" && app.memory !== "internal" && app.processes().some(({ report }) => report.sampling);
		// The totals' own errors, where the figures are those of the totals.
		const errorOf = (amount: "impacting" | "transient" | "size"): string => {
			const error = interval.whole && !app.filter && app.processes().length === 1 ? app.processes()[0]!.report.totals.heap?.[amount].error : undefined;
			return !sampled ? "" : error ? ` ± ${bytes(error.bytes)}` : " (estimated)";
		};
		impacting[1].unshift(errorOf("impacting"), " ");
		transient[1].unshift(errorOf("transient"), " ");
		// Of older blocks only those are known that were sampled in the window.
		const unknown = sampled && app.processes().some(({ report }) => report.totals.heap?.aofi === null) && interval.start === 0;
		const older: [Node, (Node | string)[]] = unknown ? [h("data", { value: 0 }, "not known"), ["as blocks are sampled"]] : of(AOFI);
		if (!unknown && total[AOFI + 2] && total[AOFI + 2] !== total[AOFI]) older[1].push(`; ${many(total[AOFI + 2]!, "block")} of unknown size`);
		const all = total[IMPACTING + 1]! + total[TRANSIENT + 1]!;
		fill(
			this.tiles,
			tile("Not freed", "Allocated in this interval and not freed by its end: a leak, or a cache that fills", impacting[0], impacting[1], "impacting"),
			tile("Allocated", "All that was allocated in this interval", size(all), [errorOf("size"), " in ", number(total[IMPACTING]! + total[TRANSIENT]!), " blocks"], "size"),
			tile(interval.whole ? "Freed in the window" : "Freed in the interval", "Allocated in this interval, and freed in it", transient[0], transient[1], "transient"),
			tile("Older, freed", "Allocated before this interval, and freed in it", older[0], older[1], "aofi"),
			tile("Most at once", "The most that was outstanding at the end of any step, of what was allocated in this interval", size(peak.bytes), [`at ${moment(peak.at)}`], "peak"),
		);
		if (total[IMPACTING]) this.tiles.firstElementChild!.classList.add("held");
		if (total[AOFO]) this.tiles.appendChild(tile("Older, kept", "Allocated before this interval (and in the window), and still there at its end", ...of(AOFO), "aofo"));
		const bin = model.processes[ruler(model, app.scope)]!.page.bin_ns;
		fill(
			this.sentence,
			interval.whole ? "The whole report: " : "Interval: ",
			h("b", null, `${moment(interval.start)} to ${moment(interval.end)}`),
			` (${seconds(length)}). Figures are of this time, ${sampled ? "estimated" : "exact"} at steps of ${seconds(bin / 1e9)}.`,
			app.filter ? " Only stacks that match the filter." : "",
		);
		this.sentence.dataset.start = String(interval.start);
		this.sentence.dataset.end = String(interval.end);
		this.sentence.dataset.bin = String(bin);
		this.tiles.dataset.share = percent(total[IMPACTING + 1]!, all);
	}
}
