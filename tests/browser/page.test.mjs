// SPDX-License-Identifier: MIT
// page.test.mjs: what the page shows of blocks that are known one by one.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { Browser, assertQuiet, figures, interval, tab, tableRows, tile, zoom } from "./browser.mjs";
import { HOSTILE, PAGE, inspect, makePage, peak, shop } from "./make.mjs";

let browser;
const made = shop();
const { blocks, stacks, bin, end } = made;
const html = makePage([made]);
const counted = blocks.filter((block) => stacks[block.stack].kind !== "vm-internal");
const ofKind = (kind) => blocks.filter((block) => stacks[block.stack].kind === kind);

before(async () => {
	browser = await Browser.start();
});
after(() => browser?.stop());

const SOME = [[0, 10], [2.5, 7.5], [4, 4.05], [0, 0.05], [9.95, 10], [6, 6.25]];

async function assertTiles(page, of, from, to) {
	const sums = inspect(of, from, to);
	assert.deepEqual((await tile(page, "impacting")).slice(0, 2), [sums.impacting.bytes, sums.impacting.count]);
	assert.deepEqual(await tile(page, "size"), [sums.size.bytes, sums.size.count]);
	assert.deepEqual((await tile(page, "transient")).slice(0, 2), [sums.transient.bytes, sums.transient.count]);
	assert.deepEqual((await tile(page, "aofi")).slice(0, 2), [sums.aofi.bytes, sums.aofi.count]);
	assert.deepEqual(await tile(page, "aofo"), sums.aofo.count ? [sums.aofo.bytes, sums.aofo.count] : []);
	assert.deepEqual(await tile(page, "peak"), [peak(of, from, to, bin).bytes]);
}

test("the page is one small file that asks for nothing", () => {
	const page = readFileSync(PAGE, "utf8");
	assert.ok(page.length < 1 << 20);
	assert.equal(page.split("@@MEMWATCH_REPORT@@").length, 2);
	assert.equal(page.split("@@MEMWATCH_CELLS@@").length, 2);
	assert.match(page, /Content-Security-Policy" content="default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'/);
	assert.doesNotMatch(page, /innerHTML\s*=|insertAdjacentHTML|document\.write/);
});

test("a page without a report says so", async () => {
	const page = await browser.open(null, { path: PAGE });
	assert.match(await page.textContent("body"), /without a report/);
	assert.deepEqual(page.complaints, []);
	await page.close();
});

test("a page with broken data says so", async () => {
	const page = await browser.open(html.replace(/(id="memwatch-cells">)[^<]*/, "$1eJwDAAAAAAE="));
	assert.match(await page.textContent(".fault"), /can't be shown: the report's cells end early/);
	await page.close();
});

test("totals are those of the blocks, for each interval and kind of memory", async () => {
	const page = await browser.open(html);
	for (const [memory, of] of [["both", counted], ["heap", ofKind("heap")], ["vm", ofKind("vm")], ["internal", ofKind("vm-internal")]]) {
		await page.selectOption("#memory", memory);
		for (const [from, to] of SOME) {
			await zoom(page, from, to);
			assert.deepEqual(await interval(page), [from * 1e9, to * 1e9]);
			// What the report says of a kind's peak is exact; steps are not.
			if (to - from === 10 && (memory === "heap" || memory === "vm")) continue;
			await assertTiles(page, of, from * 1e9, to * 1e9);
		}
	}
	await page.selectOption("#memory", "both");
	await zoom(page, 2.51, 7.49);
	assert.deepEqual(await interval(page), [2.5e9, 7.5e9], "ends go to the next step");
	assert.match(await page.textContent(".sentence"), /steps of 50\.0 ms/);
	await assertQuiet(page);
	await page.close();
});

test("a report that ends soon after its last step began is whole", async () => {
	for (const last of [9.96e9, 9.9500001e9, 9.99e9]) {
		const own = shop(4, { end: last });
		const heap = own.blocks.filter((block) => own.stacks[block.stack].kind !== "vm-internal");
		const page = await browser.open(makePage([own]));
		assert.equal(await page.textContent("#fault"), "");
		assert.match(await page.textContent(".sentence"), /^The whole report/);
		assert.deepEqual(await interval(page), [0, last]);
		const all = inspect(heap, 0, last);
		assert.deepEqual((await tile(page, "impacting")).slice(0, 2), [all.impacting.bytes, all.impacting.count]);
		await zoom(page, 9.9, 99);
		assert.deepEqual(await interval(page), [9.9e9, last]);
		await assertTiles(page, heap, 9.9e9, last);
		await zoom(page, 5, 9.95);
		assert.deepEqual(await interval(page), [5e9, 9.95e9]);
		await assertTiles(page, heap, 5e9, 9.95e9);
		await page.close();
	}
});

test("a report of nothing is no fault", async () => {
	const nothing = { blocks: [], stacks: [], threads: [], heaps: [], marks: [], space: null, report: { memory: [], totals: { heap: null, vm: null, "vm-internal": null } } };
	const page = await browser.open(makePage([shop(1, nothing)]));
	for (const name of ["flame", "table", "lifetimes", "space", "suspects"]) await tab(page, name);
	await zoom(page, 1, 2);
	assert.deepEqual(await tile(page, "size"), [0, 0]);
	assert.match(await page.textContent("#panel-suspects"), /Nothing was allocated in this interval\./);
	assert.match(await page.textContent(".limits"), /Not recorded, as it was not asked for: heap, vm/);
	await assertQuiet(page);
	await page.close();
});

test("zooming: back, all, keys, dragging", async () => {
	const page = await browser.open(html);
	await zoom(page, 2, 6);
	await page.click("text=Back");
	assert.deepEqual(await interval(page), [0, 10e9]);
	await page.focus(".stage");
	await page.keyboard.press("+");
	assert.deepEqual(await interval(page), [2.5e9, 7.5e9]);
	await page.keyboard.press("PageDown");
	assert.deepEqual(await interval(page), [5e9, 10e9]);
	await page.keyboard.press("-");
	await page.keyboard.press("0");
	assert.deepEqual(await interval(page), [0, 10e9]);
	// 200 steps: an arrow goes four of them.
	await page.keyboard.press("Home");
	for (let i = 0; i < 10; i++) await page.keyboard.press("ArrowRight");
	for (let i = 0; i < 5; i++) await page.keyboard.press("Shift+ArrowRight");
	assert.match(await page.textContent("#timeline-readout"), /selected 1\.0 s/);
	await page.keyboard.press("Enter");
	assert.deepEqual(await interval(page), [2e9, 3e9]);
	await assertTiles(page, counted, 2e9, 3e9);
	await page.keyboard.press("Backspace");
	assert.deepEqual(await interval(page), [0, 10e9]);
	const box = await (await page.$(".plot .u-over")).boundingBox();
	await page.mouse.move(box.x + box.width * 0.4, box.y + 50);
	await page.mouse.down();
	await page.mouse.move(box.x + box.width * 0.5, box.y + 60, { steps: 5 });
	await page.mouse.move(box.x + box.width * 0.6, box.y + 60, { steps: 5 });
	await page.mouse.up();
	await page.waitForFunction(() => document.querySelector(".sentence").dataset.start !== "0");
	const [from, to] = await interval(page);
	assert.ok(Math.abs(from - 4e9) <= bin && Math.abs(to - 6e9) <= bin, `${from} ${to}`);
	await assertTiles(page, counted, from, to);
	await assertQuiet(page);
	await page.close();
});

test("the timeline's layers are what each group holds", async () => {
	const page = await browser.open(html);
	const names = { stack: (block) => block.stack, module: (block) => stacks[block.stack].suspect, thread: (block) => block.thread, kind: (block) => stacks[block.stack].kind };
	for (const [from, to] of [[0, 10], [3, 8]]) {
		await zoom(page, from, to);
		for (const [by, keyOf] of Object.entries(names)) {
			await page.click(`.timeline .segments [data-value="${by}"]`);
			const sums = new Map();
			for (const block of counted)
				if (block.born !== null && block.born >= from * 1e9 && block.born < to * 1e9 && !(block.died !== null && block.died < to * 1e9)) sums.set(keyOf(block), (sums.get(keyOf(block)) ?? 0) + block.bytes);
			const want = [...sums.values()].filter(Boolean).sort((a, b) => b - a);
			const shown = (await figures(page, ".legend")).filter(Boolean).sort((a, b) => b - a);
			assert.deepEqual(shown, want, `${by} of ${from} to ${to}`);
			const all = want.reduce((sum, value) => sum + value, 0);
			assert.deepEqual(await figures(page, "#timeline-readout"), [all]);
		}
	}
	// What is left out of the drawing is in the legend still.
	await page.click('.timeline .segments [data-value="stack"]');
	await page.click(".legend li:first-child button");
	assert.equal(await page.getAttribute(".legend li:first-child button", "aria-pressed"), "false");
	assert.equal((await page.$$(".legend li")).length, 6);
	await page.keyboard.press("Enter");
	assert.equal(await page.getAttribute(".legend li:first-child button", "aria-pressed"), "true");
	// In the middle of it.
	await page.focus(".stage");
	await page.keyboard.press("Home");
	for (let i = 0; i < 10; i++) await page.keyboard.press("ArrowRight");
	const at = Number(/at ([\d.]+) s/.exec(await page.textContent("#timeline-readout"))[1]) * 1e9;
	const held = counted.filter((block) => block.born !== null && block.born >= 3e9 && block.born < at && !(block.died !== null && block.died < at));
	assert.deepEqual(await figures(page, "#timeline-readout"), [held.reduce((sum, block) => sum + block.bytes, 0)]);
	assert.deepEqual(await figures(page, "#legend-rss"), [44e6, 46e6]);
	await assertQuiet(page);
	await page.close();
});

function groups(of, from, to, keyOf) {
	const out = new Map();
	for (const block of of) {
		const key = keyOf(block);
		if (!out.has(key)) out.set(key, []);
		out.get(key).push(block);
	}
	return [...out.values()]
		.map((own) => ({ sums: inspect(own, from, to), own }))
		.filter(({ sums }) => sums.size.count + sums.aofi.count + sums.aofo.count)
		.map(({ sums, own }) => ({ impacting: sums.impacting.bytes, blocks: sums.impacting.count, size: sums.size.bytes, count: sums.size.count, transient: sums.transient.bytes, peak: peak(own, from, to, bin).bytes }));
}

const byFigures = (a, b) => b.impacting - a.impacting || b.size - a.size || b.count - a.count || b.peak - a.peak;
const only = ({ impacting, blocks: count, size, count: all, transient, peak: most }) => ({ impacting, blocks: count, size, count: all, transient, peak: most });

async function groupBy(page, columns) {
	const now = () => page.$$eval(".chip", (all) => all.map((one) => one.dataset.column));
	for (const column of columns) if (!(await now()).includes(column)) await page.selectOption("#add-column", column);
	for (;;) {
		const chips = await now();
		const extra = chips.find((column) => !columns.includes(column));
		if (!extra) break;
		await page.focus(`.chip[data-column="${extra}"]`);
		await page.keyboard.press("Delete");
	}
}

test("the table's groups are what brute force says, in any order of columns", async () => {
	const page = await browser.open(html);
	await tab(page, "table");
	const charged = [0, 1, 2, 3, 4, 5, 6, 7, 8].map((i) => (stacks[i].suspect === null ? "none" : i));
	const keys = {
		thread: (block) => block.thread,
		heap: (block) => (stacks[block.stack].kind === "heap" ? block.heap : "none"),
		module: (block) => stacks[block.stack].suspect,
		stack: (block) => block.stack,
		api: (block) => stacks[block.stack].api,
		function: (block) => charged[block.stack],
		process: () => 0,
	};
	for (const [column, keyOf] of Object.entries(keys)) {
		await zoom(page, 0, 10);
		await groupBy(page, [column]);
		for (const [from, to] of [[0, 10], [2.5, 7.5]]) {
			await zoom(page, from, to);
			const want = groups(counted, from * 1e9, to * 1e9, keyOf).sort(byFigures);
			assert.deepEqual((await tableRows(page)).map(only).sort(byFigures), want, `by ${column}`);
		}
	}
	// Where kinds are told apart, the allocators' own mappings are one of them.
	await groupBy(page, ["kind"]);
	assert.deepEqual((await tableRows(page)).map(only).sort(byFigures), groups(blocks, 2.5e9, 7.5e9, (block) => stacks[block.stack].kind).sort(byFigures));
	await assertQuiet(page);
	await page.close();
});

test("types within groups, and groups within types", async () => {
	const page = await browser.open(html);
	await tab(page, "table");
	await groupBy(page, ["type", "thread"]);
	await zoom(page, 2.5, 7.5);
	const sums = inspect(counted, 2.5e9, 7.5e9);
	const open = await tableRows(page);
	const rows = open.filter((row) => row.level === 1);
	assert.deepEqual(Object.fromEntries(rows.map((row) => [row.name, [row.impacting, row.transient, row.count]])), {
		"not freed": [sums.impacting.bytes, 0, sums.impacting.count],
		freed: [0, sums.transient.bytes, sums.transient.count],
		"older, freed": [0, 0, 0],
		"older, kept": [0, 0, 0],
	});
	const inside = open.filter((row) => row.level === 2);
	assert.equal(inside.reduce((sum, row) => sum + row.impacting, 0), sums.impacting.bytes);
	assert.equal(inside.reduce((sum, row) => sum + row.transient, 0), sums.transient.bytes);
	const order = await page.$$eval(".chip", (all) => all.map((one) => one.dataset.column));
	await page.focus(`.chip[data-column="${order[0]}"]`);
	await page.keyboard.press("ArrowRight");
	assert.deepEqual(await page.$$eval(".chip", (all) => all.map((one) => one.dataset.column)), [...order].reverse());
	const turned = (await tableRows(page)).filter((row) => row.level === 1);
	assert.equal(turned.reduce((sum, row) => sum + row.impacting, 0), sums.impacting.bytes);
	assert.match(turned[0].name, /\(471[12]\)/);
	await assertQuiet(page);
	await page.close();
});

test("the table sorts by each column, both ways, and says so", async () => {
	const page = await browser.open(html);
	await tab(page, "table");
	await groupBy(page, ["stack"]);
	for (const field of ["blocks", "size", "count", "transient", "lifetime", "peak", "impacting"]) {
		for (const order of ["descending", "ascending"]) {
			await page.click(`.thead .f-${field} button`);
			assert.equal(await page.getAttribute(`.thead .f-${field}`, "aria-sort"), order);
			const values = (await tableRows(page)).map((row) => row[field] ?? -1);
			const sorted = [...values].sort((a, b) => (order === "ascending" ? a - b : b - a));
			assert.deepEqual(values, sorted, `${field} ${order}`);
		}
	}
	await page.click(".thead .f-name button");
	const names = (await tableRows(page)).map((row) => row.name);
	assert.ok(names.indexOf("fill_cache") < names.indexOf("leak_session"));
	const life = (await tableRows(page)).find((row) => row.name === "parse_request").lifetime;
	const sums = inspect(blocks.filter((block) => block.stack === 2), 0, end);
	// The page has it to within half a hundredth.
	const mean = sums.lived / sums.transient.count / 1e9;
	assert.ok(Math.abs(life - mean) < mean / 200);
	await page.close();
});

test("keys open groups down to frames with their lines", async () => {
	const page = await browser.open(html);
	await tab(page, "table");
	await page.focus(".scroll");
	// The first group is open: right goes into it.
	for (const key of ["Home", "ArrowRight", "ArrowRight", "ArrowDown", "ArrowRight", "ArrowDown"]) await page.keyboard.press(key);
	const rows = await tableRows(page);
	const frames = rows.filter((row) => row.key.includes("#"));
	assert.deepEqual(frames.map((row) => row.text.replace(/\s+/g, " ").trim()), ["#0map_buffer shop map.c:3", "#1main shop main.c:12", "#2__libc_start_main libc.so.6"]);
	assert.equal(rows.findIndex((row) => row.active), 3);
	await page.keyboard.press("ArrowLeft");
	await page.keyboard.press("ArrowLeft");
	assert.equal((await tableRows(page)).filter((row) => row.key.includes("#")).length, 0);
	await assertQuiet(page);
	await page.close();
});

/** Weights by name of the nodes at a depth. */
async function nodes(page) {
	return page.$$eval(".node", (all) => all.map((one) => ({ label: one.getAttribute("aria-label"), value: Number(one.dataset.value), level: Number(one.getAttribute("aria-level")), width: one.getBoundingClientRect().width, classes: one.className })));
}

test("the flame graph weighs what the blocks weigh", async () => {
	const page = await browser.open(html);
	await tab(page, "flame");
	for (const [from, to] of [[0, 10], [2.5, 7.5]]) {
		await zoom(page, from, to);
		const a = from * 1e9;
		const b = to * 1e9;
		const top = peak(counted, a, b, bin);
		const weigh = {
			impacting: (own) => inspect(own, a, b).impacting.bytes,
			transient: (own) => inspect(own, a, b).transient.bytes,
			size: (own) => inspect(own, a, b).size.bytes,
			count: (own) => inspect(own, a, b).size.count,
			peak: (own) => inspect(own, a, top.at).impacting.bytes,
		};
		for (const direction of ["down", "up"]) {
			await page.click(`#panel-flame [data-value="${direction}"]`);
			for (const [measure, of] of Object.entries(weigh)) {
				await page.click(`#panel-flame [data-value="${measure}"]`);
				const all = await nodes(page);
				assert.equal(all.find((node) => node.level === 1).value, of(counted), `${measure}, all`);
				const level = direction === "down" ? 3 : 2;
				const name = direction === "down" ? "main" : "leak_session";
				const has = direction === "down" ? (block) => stacks[block.stack].frames.at(-2)?.function === name : (block) => block.stack === 0;
				const node = all.find((one) => one.level === level && one.label.startsWith(`${name},`));
				const want = of(counted.filter(has));
				assert.equal(node?.value ?? 0, want, `${measure}, ${name}`);
			}
		}
	}
	await assertQuiet(page);
	await page.close();
});

test("the flame graph: search, click to focus, keys", async () => {
	const page = await browser.open(html);
	await tab(page, "flame");
	await page.fill("#flame-search", "SERVE");
	const want = inspect(counted.filter((block) => stacks[block.stack].frames.some((frame) => frame.function === "serve")), 0, end).impacting.bytes;
	assert.equal(Number(await page.getAttribute(".found", "data-value")), want);
	assert.ok((await nodes(page)).some((node) => node.classes.includes("hit")));
	await page.fill("#flame-search", "");
	await page.click('.node[aria-label^="serve,"]');
	const whole = (await page.$eval(".flame", (element) => element.clientWidth)) - 1;
	const focused = (await nodes(page)).find((node) => node.label.startsWith("serve,"));
	assert.ok(Math.abs(focused.width - whole) < 2);
	assert.match(await page.textContent(".flame-info"), /serve.*of all/);
	await page.focus('.node[tabindex="0"]');
	await page.keyboard.press("Escape");
	assert.ok((await nodes(page)).find((node) => node.label.startsWith("serve,")).width < whole * 0.9);
	const focus = () => page.evaluate(() => document.activeElement.getAttribute("aria-label").split(",")[0]);
	await page.keyboard.press("Home");
	assert.equal(await focus(), "all");
	for (const [key, name] of [["ArrowDown", "__libc_start_main"], ["ArrowDown", "main"], ["ArrowDown", "map_buffer"], ["ArrowRight", "serve"], ["ArrowDown", "leak_session"], ["ArrowUp", "serve"], ["ArrowLeft", "map_buffer"]]) {
		await page.keyboard.press(key);
		assert.equal(await focus(), name, key);
	}
	await page.keyboard.press("Enter");
	assert.ok(Math.abs((await nodes(page)).find((node) => node.label.startsWith("map_buffer,")).width - whole) < 2);
	await assertQuiet(page);
	await page.close();
});

test("suspects: the leak first, in words, with the report's figures", async () => {
	const page = await browser.open(html);
	const first = page.locator(".suspect").first();
	assert.match(await first.textContent(), /leak_session.*session\.c:26.*steady growth.*did not give it back/s);
	const sums = inspect(blocks.filter((block) => block.stack === 0), 0, end);
	assert.deepEqual((await figures(page, ".suspect:first-child .suspect-figures")).slice(0, 2), [sums.impacting.bytes, sums.impacting.count]);
	await page.waitForSelector(".suspect:first-child .why"); // open from the begin
	const text = await first.textContent();
	assert.match(text, /rose by 84\.0 KiB a second on average, in a nearly straight line \(fit 0\.99 of 1\)/);
	assert.match(text, /None of these blocks was freed, so a cache that is still filling would look the same\./);
	assert.match(text, /None of its blocks was freed\./);
	assert.match(text, /main.c:12/);
	const held = await page.$$eval(".suspect", (all) => all.map((one) => Number(one.querySelector(".held data").value)));
	// Two of them grow, and one comes and goes.
	assert.deepEqual(held.slice(2, -1), [...held.slice(2, -1)].sort((a, b) => b - a));
	await page.click('.panels [data-value="module"]');
	const modules = inspect(counted.filter((block) => stacks[block.stack].suspect === "/usr/bin/shop"), 0, end);
	assert.deepEqual((await figures(page, ".suspect:first-child .suspect-figures")).slice(0, 2), [modules.impacting.bytes, modules.impacting.count]);
	await zoom(page, 2.5, 7.5);
	assert.match(await page.textContent("#panel-suspects .bar"), /Figures are of this interval, verdicts of the whole window/);
	await page.click('.panels [data-value="stack"]');
	await page.click(".suspect:first-child .link >> text=Table");
	const rows = await tableRows(page);
	const leaked = inspect(blocks.filter((block) => block.stack === 0), 2.5e9, 7.5e9).impacting.bytes;
	assert.deepEqual(rows.map((row) => [row.level, row.impacting]), [[1, leaked], [2, leaked]]);
	await assertQuiet(page);
	await page.close();
});

test("a filter leaves only stacks that have the words, in all views", async () => {
	const page = await browser.open(html);
	await page.fill("#filter", "serve parse_req");
	await page.waitForFunction(() => /match the filter/.test(document.querySelector(".sentence").textContent));
	await assertTiles(page, counted.filter((block) => block.stack === 2), 0, end);
	await page.fill("#filter", "nobody-has-this");
	await page.waitForFunction(() => document.querySelector("#tile-size data").value === "0");
	for (const name of ["flame", "table", "lifetimes", "space", "suspects"]) await tab(page, name);
	await assertQuiet(page);
	await page.close();
});

test("lifetimes and sizes are those of the blocks", async () => {
	const page = await browser.open(html);
	await tab(page, "lifetimes");
	await page.click(".sizes summary");
	for (const [from, to] of [[0, 10], [2, 7]]) {
		await zoom(page, from, to);
		const own = counted.filter((block) => block.born !== null && block.born >= from * 1e9 && block.born < to * 1e9 && block.bytes !== null);
		const rows = new Map();
		for (const block of own) {
			const power = block.bytes === 0 ? -1 : Math.floor(Math.log2(block.bytes));
			const row = rows.get(power) ?? [power, 0, 0, 0, 0];
			const kept = block.died === null || block.died >= to * 1e9;
			rows.set(power, [power, row[1] + 1, row[2] + block.bytes, row[3] + (kept ? 1 : 0), row[4] + (kept ? block.bytes : 0)]);
		}
		const shown = await page.$$eval(".size-table tbody tr", (all) => all.map((row) => [Number(row.dataset.power), ...[...row.querySelectorAll("data")].map((one) => Number(one.value))]));
		assert.deepEqual(shown, [...rows.values()].sort((a, b) => a[0] - b[0]));
	}
	await page.focus(".heat");
	await page.keyboard.press("ArrowUp");
	await page.keyboard.press("ArrowRight");
	assert.match(await page.textContent("#panel-lifetimes .readout"), / to .*lived .*block/);
	await assertQuiet(page);
	await page.close();
});

test("the address space, before and after", async () => {
	const page = await browser.open(html);
	await tab(page, "space");
	assert.deepEqual(await figures(page, 'tr[data-kind="heap"]'), [135168, 535168, 400000, 4096, 404096, 400000, 1]);
	// The parts that a runtime has described follow the line that they are part of, the largest first, and are not summed up.
	assert.deepEqual(await page.$$eval('tr[data-kind="anonymous"] ~ tr', (rows) => rows.slice(0, 3).map((one) => one.querySelector("th").textContent)), ["<b>Java heap</b>", "class space", "files' code"]);
	assert.deepEqual(await figures(page, 'tr[data-part="class space"]'), [65536, 65536, 0, 4096, 8192, 4096, 1]);
	const all = await figures(page, 'tr[data-kind="all"]');
	assert.equal(all[2], 400000);
	assert.equal(all[5], 800000);
	assert.match(await page.textContent("#panel-space"), /2\.0 MiB in 1 mapping.*<i>x<\/i>/s);
	await assertQuiet(page);
	await page.close();
});

test("hostile names are text, whole on demand", async () => {
	const page = await browser.open(html);
	for (const name of ["suspects", "flame", "table", "lifetimes", "space"]) await tab(page, name);
	await tab(page, "suspects");
	const shown = await page.$$eval(".suspect h3", (all) => all.map((one) => one.textContent));
	assert.ok(shown.includes(HOSTILE.script));
	assert.ok(shown.some((text) => text.includes("⟨U+202E⟩")), "what turns the direction of reading is made visible");
	assert.equal(await page.$$eval(".suspect h3 .name", (all) => all.every((one) => one.tagName === "BDI")), true);
	assert.equal(await page.$$eval("main img, main b > script, main i", (all) => all.length), 0);
	// The name of 10,000 characters, of a stack that is charged to its second frame: see the frames.
	const own = page.locator(".suspect", { hasText: "00c0ff0000000005" });
	await own.locator("summary").click();
	await own.locator(".frames").waitFor();
	const short = await own.locator(".frames .name").first().textContent();
	assert.ok(short.length <= 160 && short.includes("…") && short.endsWith("::insert"), short);
	await own.locator(".frames .more").first().click();
	assert.equal(await page.textContent("dialog pre"), HOSTILE.long);
	assert.equal(await page.evaluate(() => document.activeElement.textContent), "Close");
	await page.keyboard.press("Escape");
	await page.waitForSelector("dialog", { state: "detached" });
	await page.fill("#filter", "<script>");
	await page.waitForFunction(() => document.querySelectorAll(".suspect").length === 1);
	await assertQuiet(page);
	await page.close();
});

test("what the report can't know is said", async () => {
	const lossy = shop(2, { report: { complete: false, lost: { events: 12, stacks: 1, not_hooked: [{ function: "calloc", module: "/lib/x.so", why: "too short" }] }, engine: { name: "trap", reason: "x", stops: 1, longest_stop_ns: 1e6, stopped_share: 0.1, left_behind: null, hooks: [{ function: "calloc", module: "/lib/x.so", role: "calloc", refused: "too short" }] } } });
	const page = await browser.open(makePage([lossy]));
	const text = await page.textContent(".limits");
	const sums = inspect(lossy.blocks, 0, end);
	for (const part of ["12 events were lost", "1 stack was lost", "Memory from before the window", "50 older blocks were freed", `${sums.aofi_unknown} of them of unknown size`, "calloc in /lib/x.so: too short", "1 of 9 stacks ends early", "1 frame has no function name, in /opt/libshop.so", "the process was paused for 10.0 % of the window"]) assert.ok(text.includes(part), `${part} in ${text}`);
	assert.match(await page.textContent(".subtitle"), /incomplete: 12 events lost, no call was seen of calloc/);
	await page.close();
	const stopped = { ended: "limit", limit: { of: "stopped", share: 0.5 } };
	const ended = await browser.open(makePage([shop(2, { report: { window: { started: null, seconds: end / 1e9, from: 0, to: end / 1e9, ...stopped } } })]));
	assert.match(await ended.textContent(".limits"), /ended early, by a limit \(the process was paused for too long\)/);
	await ended.close();
});

test("a page whose cells contradict its report says so", async () => {
	const wrong = shop(3);
	const page = await browser.open(makePage([wrong]));
	assert.equal(await page.$(".fault"), null);
	await page.close();
	const totals = { report: { totals: { heap: { ...inspect([], 0, 1), peak: { bytes: 0, count: 0, at: 0 } }, vm: null, "vm-internal": null } } };
	const other = await browser.open(makePage([shop(3, totals)]));
	assert.match(await other.textContent(".fault"), /differ/);
	await other.close();
});

test("several processes: a chooser, and a column", async () => {
	const second = shop(7, { report: { target: { pid: 4800, comm: "till", exe: null, command: null, exit_status: null } } });
	const both = [...counted, ...second.blocks.filter((block) => stacks[block.stack].kind !== "vm-internal")];
	const page = await browser.open(makePage([made, second]));
	await assertTiles(page, both, 0, end);
	await zoom(page, 3, 6);
	await assertTiles(page, both, 3e9, 6e9);
	await tab(page, "table");
	await groupBy(page, ["process"]);
	const rows = await tableRows(page);
	assert.deepEqual(rows.map((row) => row.name).sort(), ["shop (4711)", "till (4800)"]);
	assert.equal(rows.find((row) => row.name === "till (4800)").impacting, inspect(both.slice(counted.length), 3e9, 6e9).impacting.bytes);
	// The same stack in both is one.
	await groupBy(page, ["stack"]);
	assert.equal((await tableRows(page)).find((row) => row.name === "leak_session").impacting, inspect(both.filter((block) => block.stack === 0), 3e9, 6e9).impacting.bytes);
	await page.selectOption("#process", "1");
	assert.deepEqual(await interval(page), [3e9, 6e9]);
	await assertTiles(page, both.slice(counted.length), 3e9, 6e9);
	await assertQuiet(page);
	await page.close();
});

test("where a stack is cut or ends is said in the text report's words", async () => {
	const unknown = "no unwind information";
	const ends = [{ end: "Go runtime" }, { cut: unknown, end: "generated code" }, { end: "coroutine" }, { cut: "depth" }, {}, {}, {}, { cut: unknown }];
	const said = ["ends here: Go runtime", `cut here: ${unknown}`, "ends here: coroutine", "cut here: the wanted depth was reached"];
	const page = await browser.open(makePage([{ ...made, stacks: stacks.map((stack, i) => ({ ...stack, ...ends[i] })) }]));
	const limits = await page.textContent(".limits");
	for (const part of ["1 of 9 stacks ends at code that was generated at run time", "1 of 9 stacks ends early, as", "1 of 9 stacks is cut at the wanted depth"]) assert.ok(limits.includes(part), `${part} in ${limits}`);
	const own = page.locator(".suspect", { hasText: stacks[0].id });
	await own.locator(".frames").waitFor();
	assert.equal(await own.locator(".frames li").last().textContent(), said[0]);
	await tab(page, "table");
	await groupBy(page, ["stack"]);
	for (let i = 0; i < 4; i++) {
		await page.locator(".tr", { hasText: stacks[i].id }).click();
		const frames = (await tableRows(page)).filter((row) => row.key.includes("#"));
		assert.equal(frames.length, stacks[i].frames.length + 1);
		assert.equal(frames.at(-1).text.trim(), said[i]);
		await page.locator(".tr", { hasText: stacks[i].id }).click();
	}
	await page.locator(".tr", { hasText: stacks[8].id }).click();
	assert.equal((await tableRows(page)).filter((row) => row.key.includes("#")).length, stacks[8].frames.length);
	await assertQuiet(page);
	await page.close();
});

test("shared frames are the stacks' frames", async () => {
	const frames = [];
	const shared = stacks.map((stack) => ({ ...stack, frames: stack.frames.map((one) => frames.push(one) - 1) }));
	const page = await browser.open(makePage([{ ...made, stacks: shared, report: { frames } }]));
	await assertTiles(page, counted, 0, end);
	await page.waitForSelector(".suspect:first-child .frames");
	assert.match(await page.locator(".suspect").first().textContent(), /session\.c:26.*main\.c:12/s);
	await assertQuiet(page);
	await page.close();
});

test("threads and heaps in longer steps than all else: their views say so, and are exact at these", async () => {
	// Bins of 50 ms, and of 400 ms.
	const page = await browser.open(makePage([{ ...made, ownersTimes: 8 }]));
	await assertTiles(page, counted, 0, end);
	await zoom(page, 3.1, 6.5);
	await assertTiles(page, counted, 3.1e9, 6.5e9);
	const [from, to] = [3.2e9, 6.4e9]; // next to these
	await tab(page, "table");
	await groupBy(page, ["module"]);
	assert.equal(await page.textContent(".steps"), "");
	assert.equal((await tableRows(page)).reduce((sum, row) => sum + row.impacting, 0), inspect(counted, 3.1e9, 6.5e9).impacting.bytes);
	await groupBy(page, ["thread", "heap"]);
	assert.match(await page.textContent(".steps"), /exact at steps of 400\.0 ms, and of 3\.2 s to 6\.4 s/);
	for (const [thread, name] of [[1, "shop (4711)"], [2, "worker <1> (4712)"]]) {
		const row = (await tableRows(page)).find((one) => one.name === name);
		const sums = inspect(counted.filter((block) => block.thread === thread), from, to);
		assert.deepEqual([row.impacting, row.blocks, row.size, row.transient], [sums.impacting.bytes, sums.impacting.count, sums.size.bytes, sums.transient.bytes]);
	}
	await page.click('.timeline .segments [data-value="thread"]');
	assert.match(await page.textContent(".timeline"), /exact at steps of 400\.0 ms/);
	assert.deepEqual(await figures(page, "#timeline-readout"), [inspect(counted, from, to).impacting.bytes]);
	await page.click('.timeline .segments [data-value="stack"]');
	assert.doesNotMatch(await page.textContent(".timeline"), /exact at steps/);
	assert.deepEqual(await figures(page, "#timeline-readout"), [inspect(counted, 3.1e9, 6.5e9).impacting.bytes]);
	// A filter holds there as well.
	await page.click('.timeline .segments [data-value="thread"]');
	await page.fill("#filter", "leak_session");
	await page.waitForFunction(() => document.querySelector(".sentence").textContent.includes("match the filter"));
	assert.deepEqual(await figures(page, "#timeline-readout"), [inspect(counted.filter((block) => block.stack === 0), from, to).impacting.bytes]);
	await assertQuiet(page);
	await page.close();
});
