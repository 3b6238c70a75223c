// SPDX-License-Identifier: MIT
/*
 * address.ts: what is looked at, in the page's address behind the "#": a reload, a link and the browser's back and forward
 * bring it again. Only what is not as it is at first is in it.
 */
import type { App, Memory } from "./app";
import type { Frames } from "./types";

const FRAMES: Frames[] = ["all", "own", "script"];
const MEMORIES: Memory[] = ["both", "heap", "vm", "internal"];

/** What an address has beside a filter; null: it has none. */
function rest(hash: string): string | null {
	const values = new URLSearchParams(hash.slice(1));
	if (!values.has("filter")) return null;
	values.delete("filter");
	return String(values);
}

/** What of a page's state is in its address, beside the tab. */
export interface Place {
	put(values: URLSearchParams): void;
	take(values: URLSearchParams): void;
}

/** That of a window's page. */
export function placeOf(app: App): Place {
	return {
		put(values) {
			const { interval, filter, memory, scope } = app;
			if (!interval.whole) {
				values.set("from", String(interval.start / 1e9));
				values.set("to", String(interval.end / 1e9));
			}
			if (filter) values.set("filter", filter);
			if (memory !== "both") values.set("memory", memory);
			if (app.model.shownFrames !== app.model.firstFrames) values.set("frames", app.model.shownFrames);
			if (scope.process !== null) values.set("process", String(scope.process));
		},
		take(values) {
			const process = Number(values.get("process") ?? -1);
			const memory = MEMORIES.find((one) => one === values.get("memory")) ?? "both";
			const frames = FRAMES.find((one) => one === values.get("frames")) ?? app.model.firstFrames;
			app.restore(values.get("filter") ?? "", memory, frames, app.model.processes[process] ? process : null, (whole) => {
				const time = (name: string, otherwise: number): number => {
					const value = parseFloat(values.get(name) ?? "");
					return Number.isFinite(value) ? value * 1e9 : otherwise;
				};
				return { start: time("from", whole.start), end: time("to", whole.end) };
			});
		},
	};
}

export class Address {
	private last = location.hash;
	private pending = false;

	constructor(
		private readonly place: Place,
		private readonly tabs: { readonly current: string; readonly first: string; show(name: string): void },
		private readonly restored: () => void,
	) {
		this.restore();
		addEventListener("hashchange", () => {
			if (location.hash !== this.last) this.restore();
		});
	}

	/** All that changed at once is one step for the browser's back. */
	changed(): void {
		if (this.pending) return;
		this.pending = true;
		queueMicrotask(() => {
			this.pending = false;
			this.write(false);
		});
	}

	private write(replace: boolean): void {
		const next = this.text();
		if (next === this.last) return;
		// A filter that is typed letter by letter is one step.
		const typing = rest(next) !== null && rest(next) === rest(this.last);
		this.last = next;
		try {
			history[replace || typing ? "replaceState" : "pushState"](null, "", location.href.split("#")[0] + next);
		} catch {
			// A frame that may not, or too many in a short time: the page does without.
		}
	}

	private text(): string {
		const values = new URLSearchParams();
		if (this.tabs.current !== this.tabs.first) values.set("tab", this.tabs.current);
		this.place.put(values);
		const text = String(values);
		return text && `#${text}`;
	}

	private restore(): void {
		this.last = location.hash;
		const values = new URLSearchParams(this.last.slice(1));
		this.place.take(values);
		this.tabs.show(values.get("tab") ?? this.tabs.first);
		this.restored();
		this.write(true);
	}
}
