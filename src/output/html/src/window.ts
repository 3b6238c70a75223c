// SPDX-License-Identifier: MIT
// window.ts: the page of a window: its reports, one a process.
import { Address, placeOf } from "./address";
import { App, type Memory, type View } from "./app";
import { choice, fill, h, name } from "./dom";
import { many, seconds } from "./format";
import { Flame } from "./flame";
import { processText } from "./labels";
import { LifetimesView } from "./lifetimes";
import { Limits, endText, sampledFrom, sampledText } from "./limits";
import { Model } from "./model";
import { Overview } from "./overview";
import { ReachView } from "./reach";
import { filterField, showPage } from "./shell";
import { SpaceView } from "./space";
import { Suspects } from "./suspects";
import { Table } from "./table";
import { Tabs } from "./tabs";
import { Timeline } from "./timeline";
import type { Frames, Page } from "./types";

/** Functions whose calls were not seen, the first few by name; "" where all were. */
function missedText(model: Model): string {
	const names = [...new Set(model.processes.flatMap(({ report }) => report.lost.not_hooked.map((hook) => hook.function ?? "?")))];
	return names.length ? `no call was seen of ${names.slice(0, 4).join(", ")}${names.length > 4 ? ` and ${names.length - 4} more` : ""}` : "";
}

function header(model: Model): HTMLElement {
	const first = model.processes[0]!.report;
	const several = model.processes.length > 1;
	const reports = model.processes.map(({ report }) => report);
	const sampled = sampledText(reports);
	const looked = reports.some(({ leaks }) => leaks); // lost blocks are something else
	// Whatever was not sampled was not lost.
	const complete = model.processes.every(({ report }) => report.complete || (report.sampling && !report.cut && !report.lost.events && !report.lost.stacks && !report.lost.not_hooked.length));
	const lost = model.processes.reduce((sum, { report }) => sum + report.lost.events, 0);
	const cut = model.processes.some(({ report }) => report.cut);
	const command = first.target.command?.join(" ") ?? first.target.exe ?? "";
	const started = first.window.started ? first.window.started.replace("T", " ").replace(/\.\d+Z$/, " UTC").replace(/Z$/, " UTC") : "";
	return h(
		"div",
		{ class: "title" },
		h("h1", null, several ? `${model.processes.length} processes` : [name(first.target.comm ?? "?", 60), h("span", { class: "pid" }, `pid ${first.target.pid}`)]),
		h(
			"p",
			{ class: "subtitle" },
			!several && command ? [h("span", { class: "command" }, name(command, 90, "Command")), " · "] : "",
			`watched for ${seconds(first.window.seconds)}`,
			started && ` from ${started}`,
			first.window.settle ? ` · settled: frees were recorded for ${seconds(first.window.settle)} after the window` : "",
			` · ended ${endText(first)}`,
			" · ",
			h("span", { class: complete ? "ok" : "incomplete" }, complete ? (sampled || looked ? "no event was lost" : "nothing was lost") : `incomplete: ${cut ? "the end of the recording is missing" : [lost ? `${many(lost, "event")} lost` : "", missedText(model)].filter(Boolean).join(", ")}`),
		),
		sampled && h("p", { class: "subtitle sampled" }, `Sampled${sampledFrom(reports)}: ${sampled}; amounts are estimates ± standard error.`),
	);
}

/** Compares the cells with the report's totals; what to tell where they differ. */
function contradiction(app: App): string | null {
	for (const { index, report } of app.model.processes) {
		for (const [number, kind] of (["heap", "vm"] as const).entries()) {
			const totals = report.totals[kind];
			if (!totals) continue;
			const scope = { kinds: [true, true, false] as [boolean, boolean, boolean], process: index, stacks: null };
			const sum = app.sums.total(scope, number);
			if (sum[1] !== totals.impacting.bytes || sum[4] !== totals.transient.bytes || sum[0] !== totals.impacting.count || sum[3] !== totals.transient.count)
				return `The page's cells and the report's totals of ${kind} differ (process ${report.target.pid}). Please report this as a fault of memwatch.`;
		}
	}
	return null;
}

export function showWindow(page: Page, raw: Uint8Array): void {
	const model = new Model(page, raw);
	const app = new App(model);
	// Before the address chooses an interval.
	const wrong = contradiction(app);
	const overview = new Overview(app);
	const timeline = new Timeline(app);
	const flame = new Flame(app);
	const lifetimes = new LifetimesView(app);
	const limits = new Limits(app);
	const filter = filterField("Filter stacks: function, module, file or id", "Only stacks that have these words in a function, module, file or their id", (text) => app.setFilter(text));
	const suspects: Suspects = new Suspects(app, (text, view) => {
		filter.input.value = text;
		app.setFilter(text);
		tabs.show(view);
		document.getElementById(`tab-${view}`)?.focus();
	});
	const views = new Map<string, { label: string; view: View & { root: HTMLElement } }>([
		["suspects", { label: "Suspects", view: suspects }],
		["flame", { label: "Flame graph", view: flame }],
		["table", { label: "Table", view: new Table(app) }],
		["lifetimes", { label: "Lifetimes", view: lifetimes }],
		["space", { label: "Address space", view: new SpaceView(app) }],
	]);
	if (model.processes.some(({ report }) => report.leaks)) views.set("heap", { label: "Heap", view: new ReachView(app) });
	const tabs = new Tabs(views, () => address?.changed());
	let address: Address | null = null;
	const memory = choice<Memory>("Memory", [["both", "heap and mappings"], ["heap", "heap"], ["vm", "mappings"], ["internal", "allocators' own"]], "both", (value) => app.setMemory(value), "memory");
	const frames = model.hasScripts ? choice<Frames>("Frames", [["own", "interpreter's as one"], ["script", "of scripts only"], ["all", "all"]], model.shownFrames, (value) => app.setFrames(value), "frames") : null;
	const processes = model.processes.length > 1 ? choice("Process", [["", "all"], ...model.processes.map(({ index }): [string, string] => [String(index), processText(model, index)])], "", (value) => app.setProcess(value === "" ? null : Number(value)), "process") : null;
	const target = model.processes[0]!.report.target;
	showPage({
		title: header(model),
		name: model.processes.length > 1 ? `${model.processes.length} processes` : `${target.comm ?? "?"} (${target.pid})`,
		controls: [processes, memory, frames, filter.field],
		main: [h("div", { id: "fault" }), limits.notes, overview.tiles, overview.sentence, timeline.root, h("div", { id: "views" }, tabs.bar, tabs.panels), limits.root],
		tabs,
		repaint: () => {
			timeline.repaint();
			lifetimes.repaint();
		},
	});
	const draw = (): void => {
		timeline.draw();
		overview.draw();
		limits.draw();
	};
	address = new Address(placeOf(app), tabs, () => {
		filter.input.value = app.filter;
		memory.querySelector("select")!.value = app.memory;
		if (frames) frames.querySelector("select")!.value = app.model.shownFrames;
		if (processes) processes.querySelector("select")!.value = String(app.scope.process ?? "");
	});
	draw();
	app.onChange(() => {
		draw();
		tabs.changed();
		address?.changed();
	});
	if (wrong) fill(document.getElementById("fault")!, h("p", { class: "fault", role: "alert" }, wrong));
}
