// SPDX-License-Identifier: MIT
// verdicts.ts: the report's verdicts on stacks, in words, with the figures that they rest on.
import { h } from "./dom";
import { bytes, many, percent, seconds } from "./format";
import type { Growth, Reach, Stack } from "./types";

export interface Verdict {
	rank: number;
	badge: string;
	tone: "bad" | "warn" | "calm" | "plain";
	means: string;
}

const VERDICTS: Record<string, Verdict> = {
	"steady growth": { rank: 0, badge: "steady growth", tone: "bad", means: "It kept on taking memory up to the end and did not give it back." },
	"growing container": { rank: 0, badge: "growing container", tone: "bad", means: "Its storage was replaced by a larger one again and again, up to the end." },
	accelerating: { rank: 0, badge: "accelerating", tone: "bad", means: "It kept on taking memory, ever faster, and did not give it back." },
	"stepwise growth": { rank: 0, badge: "stepwise growth", tone: "bad", means: "It took memory in bursts, again and again, and did not give it back." },
	"too short to tell": { rank: 1, badge: "too short to tell", tone: "warn", means: "The window is too short to tell a leak from memory in use." },
	plateau: { rank: 2, badge: "plateau", tone: "calm", means: "It grew, then stopped growing, as a cache does that has filled." },
	"steady state": { rank: 2, badge: "steady state", tone: "calm", means: "As much older memory was freed as was allocated, as in a ring buffer or a cache at its limit." },
	"one-off": { rank: 3, badge: "one-off", tone: "calm", means: "It was allocated once, in a short time, and kept." },
	churn: { rank: 4, badge: "churn", tone: "calm", means: "It comes and goes: what is there at the end is likely to be freed soon." },
};
/** Of stacks that the report does not judge, as nothing of them was outstanding at its end. */
export const FREED_LATER: Verdict = { rank: 5, badge: "freed later", tone: "plain", means: "What was there at the end of this interval was freed by the end of the window." };

/** Whether the process can still get at blocks: memcheck's verdicts. In the order of what to look at first. */
export const REACHES: Record<Reach, Verdict> = {
	definite: { rank: 0, badge: "definitely lost", tone: "bad", means: "No pointer to it is left." },
	indirect: { rank: 1, badge: "indirectly lost", tone: "bad", means: "Only lost blocks point to it." },
	possible: { rank: 2, badge: "possibly lost", tone: "warn", means: "Only interior pointers to it are left." },
	reachable: { rank: 3, badge: "still reachable", tone: "calm", means: "It can be reached from a root: a register, a stack, a variable, memory that no allocator owns." },
};
/** Of what is lost, for certain or with what holds it. */
export const LOST: Verdict = { rank: 0, badge: "lost", tone: "bad", means: "No pointer to some of its blocks is left." };
export const REACH_NAMES = Object.keys(REACHES) as Reach[];

/** Of the window, whatever interval is looked at. */
export function verdictOf(growth: { verdict: string } | null): Verdict {
	if (!growth) return FREED_LATER;
	return VERDICTS[growth.verdict] ?? { rank: 1, badge: growth.verdict, tone: "warn", means: "" };
}

export function badge(verdict: Verdict): HTMLElement {
	return h("span", { class: `badge ${verdict.tone}`, title: verdict.means }, verdict.badge);
}

const WINDOWS = [5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400];

/** At least so many seconds: "30 seconds", "2 minutes". */
function longer(least: number): string {
	const window = WINDOWS.find((length) => length >= least) ?? Math.ceil(least / 86400) * 86400;
	if (window < 60) return many(window, "second");
	return window < 3600 ? many(window / 60, "minute") : many(window / 3600, "hour");
}

/** What else the verdict may be, and what would tell; null: it is certain. `window`: its length, seconds. */
export function reservation({ growth, lifetime_ns, impacting }: Stack, window: number): string | null {
	if (!growth || growth.certain) return null;
	const grows = (VERDICTS[growth.verdict]?.rank ?? 1) === 0;
	if (impacting.error && growth.verdict !== "too short to tell") return grows ? "Not certain: as blocks are sampled it is not known what older memory was freed meanwhile, so a cache or a ring that is full would look the same." : "Few of its blocks were sampled.";
	if (growth.verdict === "too short to tell") {
		const lived = (lifetime_ns?.p99 ?? 0) / 1e9;
		// What is freed at once says nothing of what was kept.
		if (lived < window / 8) return `To tell, watch for ${longer(4 * window)}.`;
		return `Blocks of this stack live up to ${seconds(lived)}: to tell, watch for ${longer(Math.max(2 * window, 3 * lived))}.`;
	}
	if (growth.verdict === "steady state") return "This is judged by sizes, as it is not known who allocated the older blocks.";
	return growth.freed_share === 0 ? "None of these blocks was freed, so a cache that is still filling would look the same." : "This is likely, not certain: memory that is freed much later would look the same.";
}

function rateText(growth: Growth): string[] {
	const rate = growth.bytes_per_second;
	const out: string[] = [];
	if (Math.abs(rate) >= 0.5) {
		const straight = growth.steadiness >= 0.95 ? "in a nearly straight line" : growth.steadiness >= 0.7 ? "unevenly" : "with no clear trend";
		out.push(`What was outstanding ${rate > 0 ? "rose" : "fell"} by ${bytes(Math.abs(rate))} a second on average, ${straight} (fit ${growth.steadiness.toFixed(2)} of 1).`);
	}
	if (growth.verdict === "steady growth" && rate > 0) out.push(`If it goes on like that: ${bytes(rate * 3600)} an hour, ${bytes(rate * 86400)} a day.`);
	out.push(`At least ${bytes(growth.floor_start)} was outstanding in the first eighth of the time, ${bytes(growth.floor_end)} in the last.`);
	return out;
}

/** The verdict's figures, as sentences: of the window. */
export function explain({ growth, lifetime_ns, impacting }: Stack): string[] {
	const blocks = impacting.error ? "sampled blocks" : "blocks";
	const lived = lifetime_ns ? `half of them within ${seconds(lifetime_ns.median / 1e9)}, 99 % within ${seconds(lifetime_ns.p99 / 1e9)}` : "";
	if (!growth) return [`All of its ${blocks} were freed by the end of the window${lived && `, ${lived}`}.`];
	const out = growth.verdict === "too short to tell" ? [] : rateText(growth);
	out.push(growth.freed_share === 0 ? `None of its ${blocks} was freed.` : `${percent(growth.freed_share, 1)} of its blocks were freed${lived && `, ${lived}`}.`);
	out.push(`The blocks that are left are ${seconds(growth.newest_age)} to ${seconds(growth.oldest_age)} old.`);
	if (growth.settle_age > 0 && growth.settled.count) out.push(`${many(growth.settled.count, "block")} (${bytes(growth.settled.bytes)}) of them are older than blocks of this stack usually get (${seconds(growth.settle_age)}).`);
	return out;
}
