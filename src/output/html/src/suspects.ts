// SPDX-License-Identifier: MIT
// suspects.ts: who holds what was not freed, and what that looks like: in words, with the figures that they rest on.
import type { App } from "./app";
import { fill, h, name, number, segments, size } from "./dom";
import { bytes, count, many, percent, seconds } from "./format";
import { type Judged, judgeAll } from "./growth";
import { FIELDS, MEASURES, ruler } from "./interval";
import { frameList, functionText, moduleText, placeOf, processText } from "./labels";
import { INTERNAL } from "./model";
import { spark } from "./series";
import { sparkElement } from "./table";
import type { Growth } from "./types";

type By = "stack" | "module";
const FIRST = 12;

interface Verdict {
	rank: number;
	badge: string;
	tone: "bad" | "warn" | "calm" | "plain";
	means: string;
}

export const VERDICTS: Record<string, Verdict> = {
	"steady growth": { rank: 0, badge: "steady growth", tone: "bad", means: "It kept on taking memory up to the end and did not give it back. This is what a leak looks like." },
	"growing container": { rank: 0, badge: "growing container", tone: "bad", means: "Its storage was replaced by a larger one again and again, up to the end." },
	accelerating: { rank: 0, badge: "accelerating", tone: "bad", means: "It kept on taking memory, ever faster, and did not give it back." },
	"stepwise growth": { rank: 0, badge: "stepwise growth", tone: "bad", means: "It took memory in bursts, again and again, and did not give it back." },
	"too short to tell": { rank: 1, badge: "too short to tell", tone: "warn", means: "This time is too short to tell a leak from memory that is still in use. Look at a longer one, or watch for longer." },
	plateau: { rank: 2, badge: "plateau", tone: "calm", means: "It grew, then stopped growing. This is what a cache that has filled looks like." },
	"steady state": { rank: 2, badge: "steady state", tone: "calm", means: "As much that is older was freed as came: a ring, or a cache at its limit." },
	"one-off": { rank: 3, badge: "one-off", tone: "calm", means: "It was allocated once, in a short time, and kept: set-up rather than a leak." },
	churn: { rank: 4, badge: "churn", tone: "calm", means: "It comes and goes: what is there at the end is likely to be freed soon." },
};
const NONE: Verdict = { rank: 5, badge: "no verdict", tone: "plain", means: "Its growth was not judged: nothing of it was left at the report's end, or too little is known." };

function verdictOf(growth: Growth | null): Verdict {
	return growth ? (VERDICTS[growth.verdict] ?? NONE) : NONE;
}

function badge(verdict: Verdict): HTMLElement {
	return h("span", { class: `badge ${verdict.tone}`, title: verdict.means }, verdict.badge);
}

/** The verdict's figures, as sentences. */
export function explain(judged: Judged | null): string[] {
	if (!judged) return [];
	const { growth, lifetime } = judged;
	const out: string[] = [];
	const rate = growth.bytes_per_second;
	if (growth.verdict !== "too short to tell") {
		if (Math.abs(rate) >= 0.5) {
			const straight = growth.steadiness >= 0.95 ? "in a nearly straight line" : growth.steadiness >= 0.7 ? "unevenly" : "with no clear trend";
			out.push(`What it held ${rate > 0 ? "rose" : "fell"} by ${bytes(Math.abs(rate))} a second on average, ${straight} (fit ${growth.steadiness.toFixed(2)} of 1).`);
		}
		if (growth.verdict === "steady growth" && rate > 0) out.push(`If it goes on like that: ${bytes(rate * 3600)} an hour, ${bytes(rate * 86400)} a day.`);
		out.push(`It held at least ${bytes(growth.floor_start)} in the first eighth of the time and ${bytes(growth.floor_end)} in the last.`);
	}
	out.push(
		growth.freed_share === 0
			? "None of its blocks was freed."
			: `${percent(growth.freed_share, 1)} of its blocks were freed${lifetime ? `, half of them within ${seconds(lifetime.median / 1e9)}, 99 % within ${seconds(lifetime.p99 / 1e9)}` : ""}.`,
	);
	out.push(`The blocks that are left are ${seconds(growth.newest_age)} to ${seconds(growth.oldest_age)} old.`);
	if (growth.settle_age > 0 && growth.settled.count) out.push(`${many(growth.settled.count, "block")} (${bytes(growth.settled.bytes)}) of them are older than any block of it usually gets (${seconds(growth.settle_age)}).`);
	return out;
}

interface Item {
	key: string;
	number: number; // of the stack or module
	sums: Float64Array;
	at: number; // where its sums begin
	stacks: number[];
	verdict: Verdict;
}

export class Suspects {
	readonly root = h("section", { class: "panel", "aria-label": "Suspects" });
	private by: By = "stack";
	private more = FIRST;
	private drawn = false;
	private verdicts: (Judged | null)[] | null = null; // of an interval; null: the report's
	private readonly open = new Set<string>();
	private readonly list = h("ol", { class: "suspects" });
	private readonly intro = h("p", { class: "note" });

	constructor(
		private readonly app: App,
		private readonly show: (filter: string, view: "flame" | "table") => void,
	) {
		this.root.append(
			h(
				"div",
				{ class: "bar" },
				segments<By>("Suspects by", [["stack", "by stack"], ["module", "by module"]], this.by, (value) => {
					this.by = value;
					this.more = FIRST;
					this.draw();
				}),
				this.intro,
			),
			this.list,
		);
	}

	/** The whole report's are exact; those of an interval are as exact as its steps. */
	private judged(stack: number): Judged | null {
		if (this.verdicts) return this.verdicts[stack]!;
		const { growth, lifetime_ns } = this.app.model.stacks[stack]!;
		return growth && { growth, lifetime: lifetime_ns };
	}

	private verdictOf(stack: number): Verdict {
		return verdictOf(this.judged(stack)?.growth ?? null);
	}

	draw(): void {
		const { app } = this;
		this.verdicts = app.interval.whole ? null : judgeAll(app.model, app.interval, (stack) => app.has(stack));
		const items = this.items();
		// What looks like a leak is told at once.
		if (!this.drawn && items[0]?.verdict.rank === 0) this.open.add(items[0].key);
		this.drawn = true;
		const total = MEASURES.impacting(this.app.sums.total(this.app.scope));
		const steady = items.filter((item) => item.verdict.rank === 0);
		const held = steady.reduce((sum, item) => sum + MEASURES.impacting(item.sums, item.at), 0);
		const what = this.by === "stack" ? "stack" : "module";
		fill(
			this.intro,
			items.length
				? steady.length
					? `${many(steady.length, what)} in steady growth ${steady.length === 1 ? "holds" : "hold"} ${bytes(held)}, ${percent(held, total)} of all impacting.`
					: `No ${what} is in steady growth.`
				: "Nothing that was allocated in this interval was left at its end.",
			app.interval.whole ? "" : ` Figures and verdicts are of this interval; verdicts are by its steps of ${seconds(app.model.processes[ruler(app.model, app.scope)]!.page.bin_ns / 1e9)}, where memwatch report has every event.`,
		);
		// What a verdict means is said once, of those that are nothing to worry about.
		const told = new Set<Verdict>();
		fill(
			this.list,
			items.slice(0, this.more).map((item, i) => {
				const known = told.has(item.verdict) && item.verdict.tone !== "bad";
				told.add(item.verdict);
				return this.card(item, i, total, known);
			}),
		);
		if (items.length > this.more) {
			const rest = items.slice(this.more);
			const all = rest.reduce((sum, item) => sum + MEASURES.impacting(item.sums, item.at), 0);
			const button = h("button", { type: "button", class: "button" }, `Show ${Math.min(50, rest.length)} more of ${count(rest.length)}, ${bytes(all)} together`);
			button.addEventListener("click", () => {
				this.more += 50;
				this.draw();
			});
			this.list.appendChild(h("li", { class: "rest" }, button));
		}
	}

	private items(): Item[] {
		const { app } = this;
		const { model } = app;
		const sums = app.byStack();
		const modules = new Map<number, Item>();
		const out: Item[] = [];
		for (let stack = 0; stack < model.stacks.length; stack++) {
			const at = stack * FIELDS;
			if (!(MEASURES.blocks(sums, at) || MEASURES.impacting(sums, at)) || !app.has(stack)) continue;
			if (this.by === "stack") {
				out.push({ key: `stack:${stack}`, number: stack, sums, at, stacks: [stack], verdict: this.verdictOf(stack) });
				continue;
			}
			const module = model.stackModule[stack]!;
			let item = modules.get(module);
			if (!item) {
				item = { key: `module:${module}`, number: module, sums: new Float64Array(FIELDS), at: 0, stacks: [], verdict: NONE };
				modules.set(module, item);
				out.push(item);
			}
			item.stacks.push(stack);
			for (let f = 0; f < FIELDS; f++) item.sums[f]! += sums[at + f]!;
		}
		if (this.by === "module") for (const item of out) item.verdict = this.verdict(item);
		const late = (verdict: Verdict): number => (verdict.rank === 0 ? 0 : 1);
		return out.sort((a, b) => late(a.verdict) - late(b.verdict) || MEASURES.impacting(b.sums, b.at) - MEASURES.impacting(a.sums, a.at) || MEASURES.blocks(b.sums, b.at) - MEASURES.blocks(a.sums, a.at) || a.number - b.number);
	}

	private runsOf(item: Item): number[] {
		const { runs, stackModule } = this.app.model;
		const out: number[] = [];
		for (let run = 0; run < runs.count; run++) {
			const stack = runs.stack[run]!;
			if (this.by === "stack" ? stack === item.number : stackModule[stack] === item.number && this.app.has(stack)) out.push(run);
		}
		return out;
	}

	/* A module is judged by its worst stack that matters: one that holds a twentieth of what the module does. */
	private verdict(item: Item): Verdict {
		const sums = this.app.byStack();
		const least = MEASURES.impacting(item.sums, item.at) / 20;
		let worst = NONE;
		for (const stack of item.stacks) {
			const verdict = this.verdictOf(stack);
			if (MEASURES.impacting(sums, stack * FIELDS) >= least && verdict.rank < worst.rank) worst = verdict;
		}
		return worst;
	}

	private card(item: Item, index: number, total: number, known: boolean): HTMLElement {
		const { model } = this.app;
		const stack = item.stacks[0]!;
		const own = model.stacks[stack]!;
		const held = MEASURES.impacting(item.sums, item.at);
		const frame = model.chargedFrame(stack) ?? model.frames(stack)[0] ?? null;
		const module = model.modules.list[model.stackModule[stack]!]!;
		const title = this.by === "stack" ? functionText(frame) : moduleText(module);
		const details = h("details", { class: "suspect-more" }, h("summary", null, this.by === "stack" ? "Why, and the whole stack" : "Its stacks"));
		const fillIn = (): void => {
			if (details.children.length > 1) return;
			if (this.by === "stack") details.append(h("ul", { class: "why" }, explain(this.judged(stack)).map((text) => h("li", null, text))), frameList(model, stack));
			else details.append(this.stacksOf(item));
		};
		details.addEventListener("toggle", () => {
			if (details.open) {
				this.open.add(item.key);
				fillIn();
			} else this.open.delete(item.key);
		});
		if (this.open.has(item.key)) {
			details.open = true;
			fillIn();
		}
		const bar = h("span", { class: "bar-fill" });
		bar.style.width = `${((held / (total || 1)) * 100).toFixed(1)}%`;
		const narrow = this.by === "stack" ? own.id : (module ?? "");
		return h(
			"li",
			{ class: `suspect ${item.verdict.tone}`, "data-key": item.key },
			h(
				"div",
				{ class: "suspect-head" },
				h("span", { class: "rank" }, index + 1),
				h("div", { class: "suspect-what" }, h("h3", null, name(title, 110, "Function")), h("p", { class: "where" }, this.by === "stack" ? this.where(stack) : this.mix(item)), h("p", { class: "verdict" }, badge(item.verdict), " ", known || (this.by === "module" && item.verdict === NONE) ? "" : [this.by === "module" ? "Judged by its worst stack. " : "", item.verdict.means])),
				h(
					"div",
					{ class: "suspect-figures" },
					h("div", { class: "held" }, size(held)),
					h("div", { class: "note" }, number(MEASURES.blocks(item.sums, item.at)), MEASURES.blocks(item.sums, item.at) === 1 ? " block, " : " blocks, ", percent(held, total)),
					h("div", { class: "meter" }, bar),
				),
				h("div", { class: "suspect-spark" }, sparkElement(spark(this.app, this.runsOf(item), 60).values, 150, 44)),
			),
			h(
				"div",
				{ class: "suspect-foot" },
				details,
				narrow && h("span", { class: "links" }, this.link("Flame graph", narrow, "flame"), this.link("Table", narrow, "table")),
			),
		);
	}

	private link(label: string, filter: string, view: "flame" | "table"): HTMLElement {
		const one = h("button", { type: "button", class: "link", title: `Only this, in the ${label.toLowerCase()}` }, label);
		one.addEventListener("click", () => this.show(filter, view));
		return one;
	}

	private where(stack: number): (Node | string | null)[] {
		const { model } = this.app;
		const own = model.stacks[stack]!;
		const frame = model.chargedFrame(stack) ?? model.frames(stack)[0] ?? null;
		return [
			h("bdi", null, moduleText(own.suspect).slice(-60)),
			" · ",
			frame ? placeOf(frame) : null,
			frame?.file ? " · " : "",
			`by ${own.api ?? "?"} · stack `,
			h("span", { class: "id" }, own.id),
			model.stackKind[stack] === INTERNAL ? " · an allocator's own mapping" : own.kind === "vm" ? " · a mapping" : "",
			model.processes.length > 1 ? ` · ${processText(model, model.stackProcess[stack]!)}` : "",
		];
	}

	private mix(item: Item): string {
		const sums = this.app.byStack();
		const by = new Map<string, { stacks: number; held: number }>();
		for (const stack of item.stacks) {
			const held = MEASURES.impacting(sums, stack * FIELDS);
			if (!held && !MEASURES.blocks(sums, stack * FIELDS)) continue;
			const verdict = this.verdictOf(stack).badge;
			const sum = by.get(verdict) ?? { stacks: 0, held: 0 };
			sum.stacks++;
			sum.held += held;
			by.set(verdict, sum);
		}
		return [...by].sort((a, b) => b[1].held - a[1].held).map(([verdict, { stacks, held }]) => `${verdict}: ${many(stacks, "stack")}, ${bytes(held)}`).join(" · ");
	}

	private stacksOf(item: Item): HTMLElement {
		const { model } = this.app;
		const sums = this.app.byStack();
		const held = (stack: number): number => MEASURES.impacting(sums, stack * FIELDS);
		const order = item.stacks.filter((stack) => held(stack) || MEASURES.blocks(sums, stack * FIELDS)).sort((a, b) => held(b) - held(a));
		const list = h("ul", { class: "own-stacks" });
		for (const stack of order.slice(0, 50)) {
			const frame = model.chargedFrame(stack) ?? model.frames(stack)[0] ?? null;
			list.appendChild(h("li", null, h("span", { class: "held" }, size(held(stack))), badge(this.verdictOf(stack)), " ", name(functionText(frame), 90, "Function"), " ", frame && placeOf(frame)));
		}
		if (order.length > 50) list.appendChild(h("li", { class: "note" }, `… and ${order.length - 50} more`));
		return list;
	}
}
