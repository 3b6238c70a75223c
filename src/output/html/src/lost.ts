// SPDX-License-Identifier: MIT
// lost.ts: what is lost, as a sentence and as figures.
import type { App } from "./app";
import { number, size } from "./dom";
import { bytes, many } from "./format";
import { tile } from "./overview";
import type { Amount, Leaks } from "./types";
import { REACHES, REACH_NAMES } from "./verdicts";

function amountText({ bytes: held, count: blocks }: Amount): string {
	return `${bytes(held)} in ${many(blocks, "block")}`;
}

/** The answer, in a sentence; and whether it is a good one. */
export function answerOf({ definite, indirect }: Leaks, what = ""): { text: string; tone: "bad" | "calm" } {
	if (!definite.count) return { text: `No block${what} is definitely lost.`, tone: "calm" };
	const with_ = indirect.count ? `; and ${amountText(indirect)} that only lost blocks point to` : "";
	return { text: `Lost: ${amountText(definite)}${what}: no pointer to ${definite.count === 1 ? "it" : "them"} is left${with_}.`, tone: "bad" };
}

export function reachTiles(leaks: Leaks): HTMLElement[] {
	return REACH_NAMES.map((reach) => {
		const { badge, means } = REACHES[reach];
		const one = tile(badge[0]!.toUpperCase() + badge.slice(1), means, size(leaks[reach].bytes), ["in ", number(leaks[reach].count), leaks[reach].count === 1 ? " block" : " blocks"], reach);
		if (reach === "definite" && leaks[reach].count) one.classList.add("held");
		return one;
	});
}

export function noLeaks(): Leaks {
	return { definite: { count: 0, bytes: 0 }, indirect: { count: 0, bytes: 0 }, possible: { count: 0, bytes: 0 }, reachable: { count: 0, bytes: 0 } };
}

/** Of some stacks together; null where none was looked at. */
export function leaksOf(app: App, stacks: Iterable<number>): Leaks | null {
	const sum = noLeaks();
	let any = false;
	for (const stack of stacks) {
		const { leaks } = app.model.stacks[stack]!;
		if (!leaks) continue;
		any = true;
		for (const reach of REACH_NAMES) {
			sum[reach].count += leaks[reach].count;
			sum[reach].bytes += leaks[reach].bytes;
		}
	}
	return any ? sum : null;
}
