// SPDX-License-Identifier: MIT
// main.ts: puts the page together.
import { Address } from "./address";
import { App, type Memory, type View } from "./app";
import { readPage } from "./decode";
import { choice, fill, h, name, segments } from "./dom";
import { many, seconds } from "./format";
import { Flame } from "./flame";
import { processText } from "./labels";
import { LifetimesView } from "./lifetimes";
import { Limits, endText, sampledFrom, sampledText } from "./limits";
import { Model } from "./model";
import { Overview } from "./overview";
import { SpaceView } from "./space";
import { Suspects } from "./suspects";
import { Table } from "./table";
import { Timeline } from "./timeline";
import type { Page } from "./types";

type Theme = "auto" | "light" | "dark";
type TabName = "suspects" | "flame" | "table" | "lifetimes" | "space";

function setTheme(theme: Theme): void {
	const dark = theme === "dark" || (theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches && !matchMedia("print").matches);
	document.documentElement.dataset.theme = dark ? "dark" : "light";
	document.documentElement.dataset.chosen = theme;
}

function storedTheme(): Theme {
	try {
		const theme = localStorage.getItem("memwatch-theme");
		return theme === "light" || theme === "dark" ? theme : "auto";
	} catch {
		return "auto"; // a browser that keeps nothing for files
	}
}

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
			h("span", { class: complete ? "ok" : "incomplete" }, complete ? (sampled ? "no event was lost" : "nothing was lost") : `incomplete: ${cut ? "the end of the recording is missing" : [lost ? `${many(lost, "event")} lost` : "", missedText(model)].filter(Boolean).join(", ")}`),
		),
		sampled && h("p", { class: "subtitle sampled" }, `Sampled${sampledFrom(reports)}: ${sampled}; amounts are estimates ± standard error.`),
	);
}

class Tabs {
	readonly bar = h("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
	readonly panels = h("div", { class: "panels card" });
	readonly first: TabName = "suspects";
	current: TabName = this.first;
	private readonly stale = new Set<TabName>();
	private readonly buttons = new Map<TabName, HTMLButtonElement>();
	private readonly boxes = new Map<TabName, HTMLElement>();
	private printing = false;

	constructor(
		private readonly views: Map<TabName, { label: string; view: View & { root: HTMLElement } }>,
		private readonly onShow: () => void,
	) {
		for (const [key, { label, view }] of views) {
			const one = h("button", { type: "button", role: "tab", id: `tab-${key}`, "aria-controls": `panel-${key}` }, label);
			one.addEventListener("click", () => this.show(key));
			this.buttons.set(key, one);
			this.bar.appendChild(one);
			const box = h("div", { role: "tabpanel", id: `panel-${key}`, "aria-labelledby": `tab-${key}` }, h("h2", { class: "print-only" }, label), view.root);
			this.boxes.set(key, box);
			this.panels.appendChild(box);
			this.stale.add(key);
		}
		this.bar.addEventListener("keydown", (event) => {
			const keys = [...views.keys()];
			const at = keys.indexOf(this.current);
			const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: keys.length - 1 }[event.key];
			if (next === undefined) return;
			event.preventDefault();
			const key = keys[(next + keys.length) % keys.length]!;
			this.show(key);
			this.buttons.get(key)!.focus();
		});
	}

	show(name: string): void {
		const key = this.views.has(name as TabName) ? (name as TabName) : this.first;
		this.current = key;
		for (const [other, button] of this.buttons) {
			const on = other === key;
			button.setAttribute("aria-selected", String(on));
			button.tabIndex = on ? 0 : -1;
			this.boxes.get(other)!.hidden = !on && !this.printing;
		}
		this.draw();
		this.onShow();
	}

	/** The figures have changed: the shown view is drawn at once, the others when they are shown. */
	changed(): void {
		for (const key of this.views.keys()) this.stale.add(key);
		this.draw();
	}

	private draw(): void {
		for (const [key, { view }] of this.views) {
			if (!this.stale.has(key) || this.boxes.get(key)!.hidden) continue;
			this.stale.delete(key);
			view.draw();
		}
	}

	/** All views are printed. */
	print(on: boolean): void {
		this.printing = on;
		this.show(this.current);
	}
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

function build(page: Page, raw: Uint8Array): void {
	const model = new Model(page, raw);
	const app = new App(model);
	// Before the address chooses an interval.
	const wrong = contradiction(app);
	const overview = new Overview(app);
	const timeline = new Timeline(app);
	const table = new Table(app);
	const flame = new Flame(app);
	const lifetimes = new LifetimesView(app);
	const limits = new Limits(app);
	const filter = h("input", { type: "search", id: "filter", placeholder: "Filter stacks: function, module, file or id", "aria-label": "Only stacks that have these words in a function, module, file or their id" });
	const suspects: Suspects = new Suspects(app, (text, view) => {
		filter.value = text;
		app.setFilter(text);
		tabs.show(view);
		document.getElementById(`tab-${view}`)?.focus();
	});
	const tabs = new Tabs(
		new Map<TabName, { label: string; view: View & { root: HTMLElement } }>([
			["suspects", { label: "Suspects", view: suspects }],
			["flame", { label: "Flame graph", view: flame }],
			["table", { label: "Table", view: table }],
			["lifetimes", { label: "Lifetimes", view: lifetimes }],
			["space", { label: "Address space", view: new SpaceView(app) }],
		]),
		() => address?.changed(),
	);
	let address: Address | null = null;
	let pending = 0;
	filter.addEventListener("input", () => {
		clearTimeout(pending);
		pending = window.setTimeout(() => app.setFilter(filter.value), 120);
	});
	const memory = choice<Memory>("Memory", [["both", "heap and mappings"], ["heap", "heap"], ["vm", "mappings"], ["internal", "allocators' own"]], "both", (value) => app.setMemory(value), "memory");
	const processes = model.processes.length > 1 ? choice("Process", [["", "all"], ...model.processes.map(({ index }): [string, string] => [String(index), processText(model, index)])], "", (value) => app.setProcess(value === "" ? null : Number(value)), "process") : null;
	const theme = segments<Theme>("Colours", [["auto", "auto"], ["light", "light"], ["dark", "dark"]], storedTheme(), (value) => {
		try {
			localStorage.setItem("memwatch-theme", value);
		} catch {
			// The choice is not kept.
		}
		setTheme(value);
		repaint();
	});
	const repaint = (): void => {
		timeline.repaint();
		lifetimes.repaint();
	};
	// By a handler: the address holds what the page shows.
	const skip = h("a", { class: "skip", href: "#" }, "To the views");
	skip.addEventListener("click", (event) => {
		event.preventDefault();
		document.getElementById(`tab-${tabs.current}`)?.focus();
	});
	fill(
		document.body,
		skip,
		h("header", null, header(model), h("div", { class: "controls" }, processes, memory, h("label", { class: "field grow" }, h("span", null, "Filter"), filter), h("div", { class: "theme" }, theme))),
		h("main", null, h("div", { id: "fault" }), limits.notes, overview.tiles, overview.sentence, timeline.root, h("div", { id: "views" }, tabs.bar, tabs.panels), limits.root),
		h("footer", null, "Made by memwatch. This page needs nothing else and sends nothing anywhere."),
	);
	const draw = (): void => {
		timeline.draw();
		overview.draw();
		limits.draw();
	};
	address = new Address(app, tabs, () => {
		filter.value = app.filter;
		memory.querySelector("select")!.value = app.memory;
		if (processes) processes.querySelector("select")!.value = String(app.scope.process ?? "");
	});
	draw();
	app.onChange(() => {
		draw();
		tabs.changed();
		address?.changed();
	});
	if (wrong) fill(document.getElementById("fault")!, h("p", { class: "fault", role: "alert" }, wrong));
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
		setTheme(storedTheme());
		repaint();
	});
	const print = (on: boolean): void => {
		setTheme(on ? "light" : storedTheme());
		tabs.print(on);
		table.print(on);
		repaint();
	};
	matchMedia("print").addEventListener("change", (event) => print(event.matches));
	addEventListener("beforeprint", () => print(true));
	addEventListener("afterprint", () => print(false));
	const target = model.processes[0]!.report.target;
	document.title = `${model.processes.length > 1 ? `${model.processes.length} processes` : `${target.comm ?? "?"} (${target.pid})`} · memwatch`;
}

async function start(): Promise<void> {
	setTheme(storedTheme());
	try {
		const read = await readPage();
		if (!read) fill(document.body, h("main", null, h("p", { class: "fault" }, "This is memwatch's report page without a report: memwatch --html FILE puts one in.")));
		else {
			build(read.page, read.raw);
			performance.measure("memwatch-open", { start: 0 });
		}
	} catch (error) {
		fill(document.body, h("main", null, h("p", { class: "fault", role: "alert" }, `The report can't be shown: ${error instanceof Error ? error.message : String(error)}`)));
		console.error(error);
	}
	document.documentElement.dataset.ready = "";
}

void start();
