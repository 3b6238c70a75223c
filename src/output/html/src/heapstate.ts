// SPDX-License-Identifier: MIT
// heapstate.ts: what the page of a heap shows now, and who is notified when it changes.
import type { Place } from "./address";

const WHICH = ["all", "lost", "possible", "reachable"] as const;
export type Which = (typeof WHICH)[number];

export class HeapState implements Place {
	filter = "";
	which: Which = "all";
	private readonly listeners: (() => void)[] = [];

	onChange(listener: () => void): void {
		this.listeners.push(listener);
	}

	set(next: { filter?: string; which?: Which }): void {
		Object.assign(this, next);
		for (const listener of this.listeners) listener();
	}

	put(values: URLSearchParams): void {
		if (this.filter) values.set("filter", this.filter);
		if (this.which !== "all") values.set("verdict", this.which);
	}

	take(values: URLSearchParams): void {
		this.set({ filter: values.get("filter") ?? "", which: WHICH.find((one) => one === values.get("verdict")) ?? "all" });
	}
}
