// SPDX-License-Identifier: MIT
// suspects.ts: the stacks and modules of what was not freed, each with the report's verdict. Figures are of the interval,
// verdicts of the whole window.
import type { App } from "./app";
import { fill, h, name, number, segments, size } from "./dom";
import { bytes, count, many, percent, roughly } from "./format";
import { AOFI, FIELDS, MEASURES } from "./interval";
import { frameList, functionText, moduleText, placeOf, processText } from "./labels";
import { answerOf, leaksOf } from "./lost";
import { INTERNAL } from "./model";
import { spark } from "./series";
import { sparkElement } from "./table";
import type { Amount, Frame, Suspect } from "./types";
import { unseenOf } from "./limits";
import { FREED_LATER, LOST, type Verdict, badge, explain, reservation, verdictOf } from "./verdicts";

type By = "line" | "stack" | "module";
const FIRST = 12;
const FAR = 10 * 365.25 * 86400; // seconds: nobody waits for what is later

interface Item {
	key: string;
	number: number; // of its first stack, or of the module
	suspect: Suspect | null; // of the report, by line
	sums: Float64Array;
	at: number; // where its sums begin
	stacks: number[];
	verdict: Verdict;
}

export class Suspects {
	readonly root = h("section", { class: "panel", "aria-label": "Suspects" });
	private by: By = "line";
	private more = FIRST;
	private drawn = false;
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
				segments<By>("Suspects by", [["line", "by line"], ["stack", "by stack"], ["module", "by module"]], this.by, (value) => {
					this.by = value;
					this.more = FIRST;
					this.draw();
				}),
				this.intro,
			),
			this.list,
		);
	}

	/* Of a stack; within a module its line counts too. */
	private verdictOf(stack: number): Verdict {
		const { model } = this.app;
		const own = verdictOf(model.stacks[stack]!.growth);
		const line = model.suspects[stack];
		return this.by === "module" && line && verdictOf(line).rank < own.rank ? verdictOf(line) : own;
	}

	draw(): void {
		const { app } = this;
		const items = this.items();
		// The first one is open where it looks like a leak.
		if (!this.drawn && items[0]?.verdict.rank === 0) this.open.add(items[0].key);
		this.drawn = true;
		const total = MEASURES.impacting(this.app.sums.total(this.app.scope));
		fill(this.intro, this.summary(items, total), app.interval.whole ? "" : " Figures are of this interval, verdicts of the whole window.");
		// What a harmless verdict means is said once.
		const told = new Set<Verdict>();
		fill(
			this.list,
			items.slice(0, this.more).map((item, i) => {
				const known = told.has(item.verdict) && item.verdict.rank > 1;
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

	private summary(items: Item[], total: number): string {
		const what = this.by === "line" ? "place" : this.by;
		const unseen = unseenOf(this.app.processes().map(({ report }) => report));
		if (!this.app.sums.total(this.app.scope).subarray(0, AOFI).some(Boolean)) return this.app.filter ? "No stack that matches the filter allocated anything in this interval." : unseen ? `No block was sampled in this interval; up to ${bytes(unseen)} in any one place may not have been seen.` : "Nothing was allocated in this interval.";
		if (!items.length) return unseen ? `All blocks that were sampled were freed by the end of this interval; up to ${bytes(unseen)} in any one place may not have been seen.` : "All that was allocated in this interval was freed by its end.";
		const lost = leaksOf(this.app, items.flatMap((item) => item.stacks));
		if (lost?.definite.count) return answerOf(lost, " of this window").text;
		const growing = items.filter((item) => item.verdict.rank === 0);
		const open = items.filter((item) => item.verdict.rank === 1).length;
		const held = growing.reduce((sum, item) => sum + MEASURES.impacting(item.sums, item.at), 0);
		if (growing.length) return `${many(growing.length, what)} ${growing.length === 1 ? "keeps" : "keep"} growing: ${bytes(held)}, ${percent(held, total)} of what was not freed.`;
		// "Too short to tell" is no all-clear.
		if (open) return `No leak found, but the window was too short${unseen ? ", or too little was sampled," : ""} to judge ${many(open, what)}.`;
		return `No leak found: ${unseen ? "of what was sampled " : ""}no ${what} keeps growing.${unseen ? ` Up to ${bytes(unseen)} in any one place may not have been seen.` : ""}`;
	}

	private items(): Item[] {
		const { app } = this;
		const { model } = app;
		const sums = app.byStack();
		const groups = new Map<Suspect | number, Item>();
		const out: Item[] = [];
		for (let stack = 0; stack < model.stacks.length; stack++) {
			const at = stack * FIELDS;
			if (!(MEASURES.blocks(sums, at) || MEASURES.impacting(sums, at)) || !app.has(stack)) continue;
			const suspect = this.by === "line" ? (model.suspects[stack] ?? null) : null;
			if (this.by !== "module" && !suspect) {
				out.push({ key: `stack:${stack}`, number: stack, suspect, sums, at, stacks: [stack], verdict: this.verdictOf(stack) });
				continue;
			}
			const module = model.stackModule[stack]!;
			let item = groups.get(suspect ?? module);
			if (!item) {
				item = { key: suspect ? `line:${model.stackProcess[stack]}:${suspect.stacks[0]}` : `module:${module}`, number: suspect ? stack : module, suspect, sums: new Float64Array(FIELDS), at: 0, stacks: [], verdict: verdictOf(suspect) };
				groups.set(suspect ?? module, item);
				out.push(item);
			}
			item.stacks.push(stack);
			for (let f = 0; f < FIELDS; f++) item.sums[f]! += sums[at + f]!;
		}
		if (this.by === "module") for (const item of out) item.verdict = this.verdict(item);
		// First what is lost, then what grows; last what is as good as freed.
		const late = (item: Item): number => (this.lost(item)?.count ? -1 : item.verdict.rank === 0 ? 0 : item.verdict.rank < 4 ? 1 : 2);
		const lateness = new Map(out.map((item) => [item, late(item)]));
		return out.sort((a, b) => lateness.get(a)! - lateness.get(b)! || MEASURES.impacting(b.sums, b.at) - MEASURES.impacting(a.sums, a.at) || MEASURES.blocks(b.sums, b.at) - MEASURES.blocks(a.sums, a.at) || a.number - b.number);
	}

	/** What of its blocks is lost, by a look at the heap at the window's end; null: there was none. */
	private lost(item: Item): Amount | null {
		const leaks = leaksOf(this.app, item.stacks);
		return leaks && { count: leaks.definite.count + leaks.indirect.count, bytes: leaks.definite.bytes + leaks.indirect.bytes };
	}

	private runsOf(item: Item): number[] {
		const { runs, stackModule } = this.app.model;
		const out: number[] = [];
		const own = new Set(item.stacks);
		for (let run = 0; run < runs.count; run++) {
			const stack = runs.stack[run]!;
			if (this.by === "module" ? stackModule[stack] === item.number && this.app.has(stack) : own.has(stack)) out.push(run);
		}
		return out;
	}

	/* A module has the worst verdict of its stacks that have at least a twentieth of its bytes. */
	private verdict(item: Item): Verdict {
		const sums = this.app.byStack();
		const least = MEASURES.impacting(item.sums, item.at) / 20;
		let worst = FREED_LATER;
		for (const stack of item.stacks) {
			const verdict = this.verdictOf(stack);
			if (MEASURES.impacting(sums, stack * FIELDS) >= least && verdict.rank < worst.rank) worst = verdict;
		}
		return worst;
	}

	private card(item: Item, index: number, total: number, known: boolean): HTMLElement {
		const { model } = this.app;
		const stack = this.largest(item);
		const held = MEASURES.impacting(item.sums, item.at);
		const blocks = MEASURES.blocks(item.sums, item.at);
		const frame = this.frameOf(item, stack);
		const module = model.modules.list[model.stackModule[stack]!]!;
		const title = this.by === "module" ? moduleText(module) : functionText(frame);
		const details = h("details", { class: "suspect-more" }, h("summary", null, this.by === "module" ? "Its stacks" : item.stacks.length > 1 ? "Its stacks, and the whole of the largest" : "Why, and the whole stack"));
		const fillIn = (): void => {
			if (details.children.length > 1) return;
			if (this.by === "module") details.append(this.stacksOf(item));
			else details.append(...(item.stacks.length > 1 ? [this.stacksOf(item)] : this.why(item, stack)), frameList(model, stack));
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
		const bar = held > 0 && h("span", { class: "bar-fill" });
		if (bar) bar.style.width = `${((held / (total || 1)) * 100).toFixed(1)}%`;
		const narrow = this.by === "module" ? (module ?? "") : item.stacks.length > 1 ? (frame?.function ?? "") : model.stacks[stack]!.id;
		return h(
			"li",
			{ class: `suspect ${this.lost(item)?.count ? "bad" : held ? item.verdict.tone : "plain"}`, "data-key": item.key },
			h(
				"div",
				{ class: "suspect-head" },
				h("span", { class: "rank" }, index + 1),
				h("div", { class: "suspect-what" }, h("h3", null, name(title, 110, "Function")), h("p", { class: "where" }, this.by === "module" ? this.mix(item) : this.where(item, stack, frame)), this.verdictLine(item, known), this.poolLine(item), this.facts(item)),
				h(
					"div",
					{ class: "suspect-figures" },
					h("div", { class: "held" }, size(held)),
					this.error(item),
					h("div", { class: "note" }, number(blocks), blocks === 1 ? " block, " : " blocks, ", this.share(item, held, total)),
					h("div", { class: "note" }, `${bytes(held / this.app.seconds())} a second`),
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

	private largest(item: Item): number {
		const sums = this.app.byStack();
		const held = (stack: number): number => MEASURES.impacting(sums, stack * FIELDS);
		return item.stacks.reduce((best, stack) => (held(stack) > held(best) ? stack : best));
	}

	/** The frame that names it: the line's, or the one that the stack is charged to. */
	private frameOf({ suspect }: Item, stack: number): Frame | null {
		const { model } = this.app;
		const frames = model.frames(stack);
		const own = suspect && frames.find((frame) => frame.function === suspect.function && frame.module === suspect.module && frame.line === suspect.line && frame.file === suspect.file);
		return own ?? model.chargedFrame(stack) ?? frames[0] ?? null;
	}

	/** Who used its blocks at the window's end, where these are a pool's. */
	private poolLine({ suspect }: Item): HTMLElement | null {
		const pool = suspect?.pool;
		if (!pool) return null;
		const parts = pool.users.slice(0, 4).map(({ name, path, example, blocks }) => {
			const more = [path && `in ${path}`, example && `one is for ${example}`].filter((part) => part);
			return `${name} ${bytes(blocks.bytes)}${more.length ? ` (${more.join("; ")})` : ""}`;
		});
		const rest = pool.users.slice(4).reduce((sum, { blocks }) => sum + blocks.bytes, pool.others.bytes);
		if (rest) parts.push(`others or not known ${bytes(rest)}`);
		const text = pool.users.length ? `In ${pool.name}: ${parts.join(", ")}` : pool.hint;
		return text ? h("p", { class: "verdict" }, text) : null;
	}

	private verdictLine(item: Item, known: boolean): HTMLElement {
		const lost = this.lost(item)?.count ? [badge(LOST), " "] : [];
		if (item.suspect) return h("p", { class: "verdict" }, lost, badge(item.verdict), known ? "" : ` ${item.suspect.sentence}`);
		const stack = item.stacks[0]!;
		const line = this.app.model.suspects[stack];
		let doubt = this.by === "module" ? null : reservation(this.app.model.stacks[stack]!, this.window(stack));
		// The stacks of a line are judged together where none can be by itself.
		if (this.by === "stack" && line && verdictOf(line).rank < item.verdict.rank) doubt = `Together with the other stacks of its line: ${line.verdict}.`;
		return h("p", { class: "verdict" }, lost, badge(item.verdict), known ? "" : [this.by === "module" ? " Judged by its worst stack." : "", " ", item.verdict.means], doubt && h("span", { class: "doubt" }, " ", doubt));
	}

	/** How far the bytes may be off, where they are estimated. */
	private error(item: Item): HTMLElement | false {
		const { app } = this;
		if (!app.processes().some(({ report }) => report.sampling) || item.stacks.every((stack) => app.model.stacks[stack]!.kind !== "heap")) return false;
		const squares = item.stacks.reduce((sum, stack) => sum + (app.model.stacks[stack]!.impacting.error?.bytes ?? 0) ** 2, 0);
		const few = item.suspect?.error && item.suspect.error.sampled < 20 && squares > (item.suspect.bytes / 100) ** 2 ? item.suspect.error : null;
		// Of a part of the window it is not known.
		const text = !app.interval.whole ? "estimated" : few ? `${bytes(few.low)} to ${bytes(few.high)}, as ${few.sampled === 1 ? "1 block was" : `${count(few.sampled)} blocks were`} sampled` : `± ${bytes(Math.sqrt(squares))}`;
		return h("div", { class: "note error" }, text);
	}

	/** Of what grew, where blocks are but a part of that: their share of all blocks would mislead. */
	private share(item: Item, held: number, total: number): string {
		const { app } = this;
		const rss = app.processes().length === 1 && app.interval.whole && app.processes()[0]!.report.rss_growth;
		return rss && rss.unexplained && item.suspect ? `${percent(held, rss.bytes)} of what the RSS grew by` : percent(held, total);
	}

	/** What the text report says of a line beside its verdict: of the whole window. */
	private facts(item: Item): HTMLElement | false {
		const { model } = this.app;
		const out: string[] = [];
		const { suspect } = item;
		const limit = suspect && model.processes[model.stackProcess[item.number]!]!.report.target.memory_limit;
		const later = { count: 0, bytes: 0 };
		const lost = this.lost(item);
		for (const stack of item.stacks) {
			later.count += model.stacks[stack]!.settled_later?.count ?? 0;
			later.bytes += model.stacks[stack]!.settled_later?.bytes ?? 0;
		}
		if (lost?.count) out.push(`${many(lost.count, "block")} (${bytes(lost.bytes)}) ${lost.count === 1 ? "is" : "are"} lost: no pointer to ${lost.count === 1 ? "it" : "them"} is left`);
		if (suspect && suspect.blocks) {
			const all = suspect.blocks + suspect.freed;
			// A smaller share is said in blocks.
			out.push(suspect.freed ? `${suspect.freed < Math.floor(all / 1000) ? count(suspect.freed) : percent(suspect.freed, all)} of ${count(all)} freed` : suspect.error ? "none seen freed" : "none freed");
		}
		if (suspect && suspect.bytes_per_hour * 24 >= 1) out.push(`${bytes(suspect.bytes_per_hour * 24)} a day`);
		if (limit && suspect.seconds_to_limit !== null && suspect.seconds_to_limit <= FAR) out.push(`reaches the ${limit.of === "cgroup" ? "cgroup's limit" : "machine's memory"} (${bytes(limit.bytes)}) in ${roughly(suspect.seconds_to_limit)} at this rate`);
		if (later.count) out.push(`${many(later.count, "block")} (${bytes(later.bytes)}) ${later.count === 1 ? "was" : "were"} freed within the settling time`);
		return out.length > 0 && h("p", { class: "note facts" }, out.join("; "));
	}

	/** Seconds. */
	private window(stack: number): number {
		return this.app.model.processes[this.app.model.stackProcess[stack]!]!.report.window.seconds;
	}

	private why(item: Item, stack: number): HTMLElement[] {
		const list = h("ul", { class: "why" }, explain(this.app.model.stacks[stack]!).map((text) => h("li", null, text)));
		if (this.app.interval.whole) return [list];
		const all = MEASURES.count(item.sums, item.at);
		const freed = all - MEASURES.blocks(item.sums, item.at);
		return [h("p", { class: "note" }, `In this interval ${freed ? count(freed) : "none"} of the ${many(all, "block")} that it allocated ${freed > 1 ? "were" : "was"} freed. In the whole window:`), list];
	}

	private link(label: string, filter: string, view: "flame" | "table"): HTMLElement {
		const one = h("button", { type: "button", class: "link", title: `Only this, in the ${label.toLowerCase()}` }, label);
		one.addEventListener("click", () => this.show(filter, view));
		return one;
	}

	private where(item: Item, stack: number, frame: Frame | null): (Node | string | null)[] {
		const { model } = this.app;
		const own = model.stacks[stack]!;
		const more = item.stacks.length - 1;
		return [
			h("bdi", null, moduleText(item.suspect ? item.suspect.module : own.suspect).slice(-60)),
			" · ",
			frame ? placeOf(frame) : null,
			frame?.file ? " · " : "",
			`by ${own.api ?? "?"} · stack `,
			h("span", { class: "id" }, own.id),
			more ? ` and ${count(more)} more` : "",
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
