// SPDX-License-Identifier: MIT
// main.ts: shows what the page's data are of.
import { readPage } from "./decode";
import { fill, h } from "./dom";
import { showHeap } from "./heap";
import { setTheme, storedTheme } from "./shell";
import { showWindow } from "./window";

async function start(): Promise<void> {
	setTheme(storedTheme());
	try {
		const read = await readPage();
		if (!read) fill(document.body, h("main", null, h("p", { class: "fault" }, "This is memwatch's report page without a report: memwatch --html FILE puts one in.")));
		else {
			if ("heap" in read.page) showHeap(read.page.heap);
			else showWindow(read.page, read.raw);
			performance.measure("memwatch-open", { start: 0 });
		}
	} catch (error) {
		fill(document.body, h("main", null, h("p", { class: "fault", role: "alert" }, `The report can't be shown: ${error instanceof Error ? error.message : String(error)}`)));
		console.error(error);
	}
	document.documentElement.dataset.ready = "";
}

void start();
