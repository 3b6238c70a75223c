// SPDX-License-Identifier: MIT
// limits.ts: what the report leaves out or can't know, so that missing data is not taken for good news.
import type { App } from "./app";
import { fill, h, name } from "./dom";
import { basename, bytes, count, many, seconds, visible } from "./format";
import { processText } from "./labels";
import type { Process } from "./model";
import type { Report, Suspect } from "./types";
import { verdictOf } from "./verdicts";

const ENDED: Record<string, string> = {
	duration: "when its time was over",
	interrupt: "as it was interrupted",
	exit: "as the process ended",
	exec: "as the process called exec",
	trigger: "by its trigger",
	limit: "early, by a limit",
	lost: "early: the process was lost",
	running: "later: it was still running when this was made",
};

export function endText(report: Report): string {
	const { ended, limit } = report.window;
	const why = limit?.of === "memory" ? ` (memwatch's own memory, ${bytes(limit.bytes ?? 0)})` : limit?.of === "stopped" ? " (the process was paused for too long)" : "";
	return `${ENDED[ended] ?? ended}${why}`;
}

/** How many blocks are recorded; "" where all are. */
export function sampledText(reports: Report[]): string {
	const all = reports.flatMap(({ sampling }) => sampling?.intervals.map((interval) => interval.bytes) ?? []);
	if (!all.length) return "";
	const [least, most] = [Math.min(...all), Math.max(...all)];
	return `one heap block in ${bytes(least)}${least < most ? ` to ${bytes(most)}` : ""} on average`;
}

/** Since when blocks are sampled, and why, where that was not asked for; of the process where it was first. */
export function sampledFrom(reports: Report[]): string {
	const late = reports.flatMap(({ sampling }) => (sampling?.why ? [sampling] : [])).sort((a, b) => a.from - b.from)[0];
	return late ? ` from ${seconds(late.from)} on (${late.why})` : "";
}

/** What a place may have kept unseen, of the process where that is most; 0 where all blocks are recorded. */
export function unseenOf(reports: Report[]): number {
	return Math.max(0, ...reports.map(({ sampling }) => sampling?.unseen ?? 0));
}

/** The option that watches the children which were not. */
function unwatchedOf(report: Report): { count: number; option: string } {
	const pids = (report.children ?? []).filter(({ watched }) => !watched).map(({ pid }) => pid);
	return { count: pids.length, option: `-p ${pids.slice(0, 16).join(",")}${pids.length > 16 ? ` and ${count(pids.length - 16)} more` : ""}` };
}

const GROWS: Record<string, string> = {
	heap: "of the heap beside them",
	arena: "of allocators' arenas beside them",
	stack: "stacks of threads",
	anonymous: "anonymous mappings",
	file_text: "files' code",
	file_data: "files' data",
	shared: "shared memory",
	memwatch: "memwatch's own",
	special: "special mappings",
};

/** The worst of those that grow, or of which too little is known. */
function worst(report: Report): Suspect | null {
	const first = report.suspects?.[0];
	return first && verdictOf(first).rank <= 1 ? first : null;
}

/** May the first suspect, or the growth of the RSS, come from what is not seen? */
function runtimesMatter(report: Report): boolean {
	const id = worst(report)?.stacks[0];
	return Boolean(report.rss_growth?.unexplained || (id && report.stacks.some((stack) => stack.id === id && stack.kind === "vm")));
}

function namelessMatters(report: Report): boolean {
	return worst(report)?.function === null;
}

function namelessPoint(report: Report, begin: string): (Node | string)[] {
	const modules = report.nameless ?? [];
	return [
		begin,
		...modules.flatMap((module, i): (Node | string)[] => [!i ? "" : i + 1 === modules.length ? " and " : ", ", name(basename(module), 60)]),
		` (they are shown as offsets): ${report.nameless_hint ?? "symbols or debug information are missing there"}${report.nameless_command ? ":" : "."}`,
		report.nameless_command ? h("pre", { class: "command-line" }, h("bdi", null, report.nameless_command.split("\n").map(visible).join("\n"))) : "",
	];
}

/** What the figures above don't show, of one process. */
function notesOf(report: Report): (Node | string)[][] {
	const out: (Node | string)[][] = [];
	const rss = report.rss_growth;
	const children = unwatchedOf(report);
	if (rss?.unexplained) {
		const kinds = Object.entries(rss.other ?? {}).filter(([, grown]) => grown >= 1 << 20);
		const heaps = (report.runtimes ?? []).flatMap(({ heap }) => heap ?? []).join(", ");
		const rest = rss.other ? kinds.sort((a, b) => b[1] - a[1]).map(([kind, grown]) => `, ${bytes(grown)} ${GROWS[kind] ?? kind}${kind === "anonymous" && heaps ? ` (${heaps})` : ""}`) : [`, ${bytes(rss.bytes - rss.blocks)} by none of them`];
		out.push([`RSS +${bytes(rss.bytes)}: ${bytes(rss.blocks)} explained by blocks not freed${rest.join("")}`]);
	}
	if (runtimesMatter(report)) for (const runtime of report.runtimes ?? []) out.push([`Not seen: ${runtime.text}`]);
	if (report.nameless?.length && namelessMatters(report)) out.push(namelessPoint(report, "No names of functions in "));
	if (children.count) out.push([`${many(children.count, "child", "children")} not watched: ${children.option}, or --children`]);
	return out;
}

/** Points of one process, as text and names. */
export function limitsOf(report: Report): (Node | string)[][] {
	const out: (Node | string)[][] = [];
	const { lost, totals } = report;
	if (report.cut) out.push(["The recording is not complete: ", name(report.cut, 200), ". What came after is not in it."]);
	if (lost.events) out.push([`${many(lost.events, "event was", "events were")} lost: a block shown as not freed may have been freed unseen, and an allocation may be missing.`]);
	if (lost.stacks) out.push([`${many(lost.stacks, "stack was", "stacks were")} lost.`]);
	const missing = (["heap", "vm"] as const).filter((kind) => !totals[kind]);
	if (missing.length) out.push([`Not recorded, as it was not asked for: ${missing.join(", ")}.`]);
	if (report.sampling) out.push([`What was not sampled: a place that kept less than ${bytes(report.sampling.unseen)} of heap blocks may not have been seen at all (one that kept more was seen with a probability of 95 %).`]);
	const older = totals.heap?.aofi !== null;
	const freed = (["heap", "vm"] as const).reduce((sum, kind) => sum + (totals[kind]?.aofi?.count ?? 0), 0);
	const freedBytes = (["heap", "vm"] as const).reduce((sum, kind) => sum + (totals[kind]?.aofi?.bytes ?? 0), 0);
	const unknown = (["heap", "vm"] as const).reduce((sum, kind) => sum + (totals[kind]?.aofi_unknown ?? 0), 0);
	if (!report.target.launched || report.window.from > 0 || freed) out.push([
		"Memory from before the window is not in this report: only what was allocated since can show as not freed.",
		!older ? " How many older heap blocks were freed inside it is not known, as blocks are sampled." : freed ? ` ${many(freed, "older block was", "older blocks were")} freed inside it (${unknown === freed ? "size unknown" : `${bytes(freedBytes)}${unknown ? `; ${count(unknown)} of them of unknown size` : ""}`}).` : "",
	]);
	const ended = report.window.ended === "exit" || report.window.ended === "exec";
	if (ended && !report.address_space?.end) out.push(["The address space at the end is not known: it is read before a process exits, not before it is killed or calls exec."]);
	const refused = report.engine.hooks.filter((hook) => hook.refused);
	for (const hook of refused.slice(0, 8)) out.push(["Not hooked, so its calls were not seen: ", name(hook.function ?? "?", 80), " in ", name(hook.module ?? "?", 80), ": ", name(hook.refused!, 160)]);
	if (refused.length > 8) out.push([`… and ${refused.length - 8} more entry points were not hooked.`]);
	const generated = report.stacks.filter((stack) => stack.end === "generated code").length;
	const broken = report.stacks.filter((stack) => stack.cut !== null && stack.cut !== "depth" && stack.end !== "generated code").length;
	const cut = report.stacks.filter((stack) => stack.truncated).length;
	if (generated) out.push([`${count(generated)} of ${many(report.stacks.length, "stack")} ${generated === 1 ? "ends" : "end"} at code that was generated at run time, so that its callers are not known.`]);
	if (broken) out.push([`${count(broken)} of ${many(report.stacks.length, "stack")} ${broken === 1 ? "ends" : "end"} early, as there is no unwind information from there on.`]);
	if (cut) out.push([`${count(cut)} of ${many(report.stacks.length, "stack")} ${cut === 1 ? "is" : "are"} cut at the wanted depth (--depth): callers further out are not known.`]);
	if (!runtimesMatter(report)) for (const runtime of report.runtimes ?? []) out.push([runtime.text]);
	if (report.nameless?.length && !namelessMatters(report)) out.push(namelessPoint(report, "Names of functions in "));
	const unnamed = unnamedFrames(report, new Set(report.nameless));
	if (unnamed.frames) out.push([`${many(unnamed.frames, "frame has", "frames have")} no function name${unnamed.modules.length ? ", in " : ""}`, ...unnamed.modules.slice(0, 5).flatMap((module, i): (Node | string)[] => [i ? ", " : "", name(module, 60)]), unnamed.modules.length > 5 ? ` and ${unnamed.modules.length - 5} more` : "", ": symbols or debug information are missing there (memwatch doctor tells which)."]);
	if (report.engine.left_behind) out.push(["Left in the process: ", name(report.engine.left_behind, 300)]);
	return out;
}

function unnamedFrames(report: Report, told: Set<string>): { frames: number; modules: string[] } {
	const modules = new Set<string>();
	const seen = new Set<number>();
	for (const stack of report.stacks) {
		for (const one of stack.frames) {
			const frame = typeof one === "number" ? report.frames![one]! : one;
			if (frame.function !== null || seen.has(frame.address) || told.has(frame.module ?? "")) continue;
			seen.add(frame.address);
			if (frame.module !== null) modules.add(frame.module);
		}
	}
	return { frames: seen.size, modules: [...modules].sort() };
}

export class Limits {
	readonly root = h("section", { class: "card limits", "aria-labelledby": "limits-title" });
	readonly notes = h("ul", { class: "notes", "aria-label": "What the figures leave out" });
	private drawn: number | null | undefined;

	constructor(private readonly app: App) {}

	draw(): void {
		const { model, scope } = this.app;
		if (this.drawn === scope.process) return;
		this.drawn = scope.process;
		const used = this.app.processes();
		const of = ({ index }: Process): string => (used.length > 1 ? `${processText(model, index)}: ` : "");
		fill(this.notes, used.flatMap((process) => notesOf(process.report).map((note) => h("li", null, of(process), note))));
		fill(
			this.root,
			h("h2", { id: "limits-title" }, "What this report cannot know"),
			used.map((process) => [
				used.length > 1 && h("h3", null, name(processText(model, process.index), 60)),
				h("ul", null, limitsOf(process.report).map((point) => h("li", null, point)), process.page.coarse && !process.page.owners && h("li", null, "Which thread allocated, and in which heap: there are too many of them to be told apart in a page. The recording has them: memwatch report --by thread.")),
				h("p", { class: "note" }, `Recorded by engine ${process.report.engine.name ?? "?"}`, process.report.engine.reason ? [" (", name(process.report.engine.reason, 200), ")"] : "", `; ended ${endText(process.report)}; the process was paused for ${((process.report.engine.stopped_share ?? 0) * 100).toFixed(1)} % of the window, at most ${seconds(process.report.engine.longest_stop_ns / 1e9)} at a time${process.report.engine.own_cpu_ns ? `; memwatch used ${seconds(process.report.engine.own_cpu_ns / 1e9)} of CPU time` : ""}.`),
			]),
		);
	}
}
