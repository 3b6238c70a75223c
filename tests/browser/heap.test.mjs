// SPDX-License-Identifier: MIT
// heap.test.mjs: the page of a look at a heap.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser, assertQuiet, contrast, figures, tab, tile } from "./browser.mjs";
import { HOSTILE, REACHES, amount, group, leaksOf, makeHeapPage, makePage, shop, shopHeap } from "./make.mjs";

let browser;
const made = shopHeap();
const html = makeHeapPage(made);
const TABS = ["blocks", "holders", "allocators"];
before(async () => {
	browser = await Browser.start();
});
after(() => browser?.stop());

/** Rows of the grid in a panel that are in the document. */
async function rows(page, panel) {
	return page.$$eval(`#panel-${panel} .tr`, (all) =>
		all.map((row) => ({
			name: row.querySelector(".name-cell .name")?.textContent ?? "",
			text: row.querySelector(".name-cell").textContent,
			badge: row.querySelector(".badge")?.textContent ?? null,
			figures: [...row.querySelectorAll("data")].map((one) => Number(one.value)),
			level: Number(row.getAttribute("aria-level")),
			expanded: row.getAttribute("aria-expanded"),
			path: row.querySelector(".path")?.textContent ?? null,
		})),
	);
}

async function areas(page) {
	return page.$$eval(".area", (all) => all.map((one) => ({ bytes: Number(one.dataset.bytes), text: one.dataset.text, width: one.getBoundingClientRect().width, height: one.getBoundingClientRect().height })));
}

async function keys(page, panel, ...pressed) {
	await page.focus(`#panel-${panel} .scroll`);
	for (const key of pressed) await page.keyboard.press(key);
}

test("the answer comes first, then the figures", async () => {
	const page = await browser.open(html);
	assert.equal(await page.title(), "heap of </title>shop (4711) · memwatch");
	assert.equal(await page.textContent("#answer"), "Lost: 93.8 KiB in 503 blocks: no pointer to them is left; and 31.3 KiB in 500 blocks that only lost blocks point to.");
	for (const verdict of REACHES) assert.deepEqual(await tile(page, verdict), [made.leaks[verdict].bytes, made.leaks[verdict].count], verdict);
	assert.deepEqual(await tile(page, "rss"), [made.rss]);
	assert.match(await page.textContent(".subtitle"), /at 2026-03-01 12:00:00 UTC · read from a forked copy in 300\.0 ms · paused for 12\.0 ms in total/);
	assert.match(await page.textContent(".notes"), /Blocks of tcmalloc were not checked: its version is <i>not<\/i> known/);
	assert.match(await page.textContent(".limits"), /4\.0 KiB.*0x7f0000000000.*a chunk's size is wrong/s);
	assert.deepEqual(await page.$$eval(".advice li", (all) => all.map((one) => one.textContent)), made.advice);
	await assertQuiet(page);
	await page.close();
	const groups = made.groups.filter(({ verdict }) => verdict === "reachable");
	const fine = await browser.open(makeHeapPage(shopHeap({ groups, leaks: leaksOf(groups), method: "live", why: "RLIMIT_NPROC is 0", unread: 8192, skipped: [], advice: [], allocators: [] })));
	assert.equal(await fine.textContent("#answer"), "No block is definitely lost.");
	assert.equal(await fine.$(".tile.held"), null);
	assert.match(await fine.textContent(".title"), /read while it ran.*No copy was made: RLIMIT_NPROC is 0/s);
	assert.match(await fine.textContent(".notes"), /8\.0 KiB could not be read/);
	assert.equal(await fine.$(".advice"), null);
	await assertQuiet(fine);
	await fine.close();
});

test("the treemap has every line of the account, by its bytes, and sums to the RSS", async () => {
	const page = await browser.open(html);
	for (const width of [1400, 420]) {
		await page.setViewportSize({ width, height: 900 });
		const box = await page.locator(".treemap").boundingBox();
		await page.waitForFunction((wanted) => Math.max(...[...document.querySelectorAll(".area")].map((one) => one.getBoundingClientRect().right)) <= wanted + 1, box.x + box.width);
		const shown = await areas(page);
		assert.deepEqual(shown.map((one) => one.bytes).sort((a, b) => b - a), made.account.map((line) => line.bytes).filter(Boolean).sort((a, b) => b - a));
		assert.equal(shown.reduce((sum, one) => sum + one.bytes, 0), made.rss);
		for (const one of shown) {
			const wanted = (one.bytes / made.rss) * box.width * box.height;
			assert.ok(Math.abs(one.width * one.height - wanted) <= wanted * 0.02 + 20, `${one.text}: ${one.width} × ${one.height}`);
		}
	}
	await page.setViewportSize({ width: 1400, height: 900 });
	const kinds = await page.$$eval(".legend li[data-kind]", (all) => all.map((one) => [one.dataset.kind, Number(one.querySelector("data").value)]));
	assert.deepEqual(kinds[0], ["live blocks", 4227072 + 262144]);
	assert.equal(kinds.reduce((sum, [, held]) => sum + held, 0), made.rss);
	assert.deepEqual(await figures(page, ".legend .sum"), [made.rss]);
	// By mouse and by keys.
	await page.hover('.area[data-bytes="1204224"]');
	assert.equal(await page.textContent("#account-readout"), "code: 1.1 MiB, 15.0 %");
	await page.mouse.move(5, 5);
	assert.deepEqual(await figures(page, "#account-readout"), [made.rss]);
	await page.focus(".area[tabindex='0']");
	assert.match(await page.textContent("#account-readout"), /^live blocks: glibc 2\.36, main: 4\.0 MiB, 52\.8 %$/);
	await page.keyboard.press("ArrowRight");
	assert.match(await page.textContent("#account-readout"), /threads' arenas: 256\.0 KiB/);
	await page.keyboard.press("End");
	assert.match(await page.textContent("#account-readout"), /^allocator bookkeeping: 1 B/);
	assert.equal((await page.$$(".area[tabindex='0']")).length, 1);
	// All lines, those that are swapped out as well.
	await page.click(".account ~ details summary");
	const listed = await page.$$eval("#account-lines tbody tr", (all) => all.map((row) => [...row.querySelectorAll("data")].map((one) => Number(one.value))));
	assert.deepEqual(listed, made.account.map((line) => [line.bytes, line.swapped]));
	await assertQuiet(page);
	await page.close();
});

test("an account of many lines is bounded, and sums all the same", async () => {
	const account = Array.from({ length: 5000 }, (_, i) => ({ name: i % 2 ? "shared memory" : "other anonymous memory", detail: `/dev/shm/${i}`, bytes: 4096 * (5000 - i), swapped: 0 }));
	const rss = account.reduce((sum, line) => sum + line.bytes, 0);
	const page = await browser.open(makeHeapPage(shopHeap({ account, rss })));
	const shown = await areas(page);
	assert.ok(shown.length <= 1002, `${shown.length}`);
	assert.equal(shown.reduce((sum, one) => sum + one.bytes, 0), rss);
	assert.match(await page.textContent(".account ~ details"), /4,500 smaller lines/);
	await assertQuiet(page);
	await page.close();
});

test("groups: lost ones first, down to how they are held", async () => {
	const page = await browser.open(html);
	const shown = await rows(page, "blocks");
	assert.deepEqual(shown.map((row) => row.badge), made.groups.map(({ verdict }) => ({ definite: "definitely lost", indirect: "indirectly lost", possible: "possibly lost", reachable: "still reachable" })[verdict]));
	assert.deepEqual(shown.map((row) => row.figures.slice(0, 2)), made.groups.map(({ blocks }) => [blocks.bytes, blocks.count]));
	assert.equal(shown[4].path, made.groups[4].holder.join(" → "));
	assert.deepEqual(shown.slice(0, 3).map((row) => row.path), [null, null, null]);
	await keys(page, "blocks", "Home", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight");
	const opened = (await rows(page, "blocks")).filter((row) => row.level === 2).map((row) => row.text);
	assert.deepEqual(opened.slice(0, 2), ["classshop::Session", "still reachableIt can be reached from a root: a register, a stack, a variable, memory that no allocator owns."]);
	assert.deepEqual(opened.slice(2, 5).map((text) => text.replace(/^(held by|\s*→)/, "")), made.groups[4].holder);
	assert.equal(opened[5], "2 of 1,0000x7f0000001000  0x7f0000002000");
	await keys(page, "blocks", "ArrowLeft");
	// Sorted by other columns.
	for (const [field, of] of [["bytes", ({ blocks }) => blocks.bytes], ["blocks", ({ blocks }) => blocks.count], ["size", ({ size }) => size ?? -1]]) {
		await page.click(`#panel-blocks .f-${field} .sort`);
		assert.equal(await page.getAttribute(`#panel-blocks .thead .f-${field}`, "aria-sort"), "descending");
		const wanted = made.groups.map(of).sort((a, b) => b - a);
		const at = { bytes: 0, blocks: 1, size: 2 }[field];
		assert.deepEqual((await rows(page, "blocks")).map((row) => row.figures[at] ?? -1), wanted, field);
	}
	// Some of them.
	await page.click('#panel-blocks [data-value="lost"]');
	assert.equal((await rows(page, "blocks")).length, 3);
	assert.deepEqual(await figures(page, "#panel-blocks .bar .note"), [128096, 1003]);
	await page.click('#panel-blocks [data-value="all"]');
	await page.fill("#filter", "sessions SERVER.cpp");
	await page.waitForFunction(() => document.querySelectorAll("#panel-blocks .tr").length === 2);
	await page.fill("#filter", "no such thing");
	await page.waitForFunction(() => document.querySelector("#panel-blocks .bar .note").textContent === "No group matches the filter.");
	await assertQuiet(page);
	await page.close();
});

test("what stands in sample blocks, where it was asked for", async () => {
	const contents = [{ address: "0x55d0c0de1000", size: 4096, hex: `${"00".repeat(48)}3c623e0a${"ff".repeat(8)}`, notes: [{ offset: 0, text: "all zero" }, { offset: 48, text: HOSTILE.script }] }];
	const groups = [group("definite", 3, 96, { contents })];
	const page = await browser.open(makeHeapPage(shopHeap({ groups, leaks: leaksOf(groups) })));
	await keys(page, "blocks", "Home", "ArrowRight");
	const opened = (await rows(page, "blocks")).filter((row) => row.level === 2).map((row) => row.text.replace(/ +/g, " ").trim());
	assert.deepEqual(opened.slice(2), [
		"block0x55d0c0de10004,096 bytes",
		`0${" 00".repeat(16)} ${".".repeat(16)}`,
		"*",
		`48 3c 62 3e 0a${" ff".repeat(8)} <b>.${".".repeat(8)}`,
		"0 all zero",
		`48 ${HOSTILE.script}`,
	]);
	await assertQuiet(page);
	await page.close();
});

test("holders: paths that begin alike are one tree, and its sums are those of the groups", async () => {
	const page = await browser.open(html);
	await tab(page, "holders");
	const first = await rows(page, "holders");
	// The largest is open down to where a choice begins.
	assert.deepEqual(first.map(({ name, level, expanded }) => [name, level, expanded]).slice(0, 4), [
		["global shop::sessions (server.cpp:12)", 1, "true"],
		["std::unordered_map node", 2, "true"],
		["shop::Session", 3, "true"],
		["std::string", 4, null],
	]);
	assert.deepEqual(first[0].figures, [4064000, 2000]);
	assert.deepEqual(first[2].figures, [4064000, 2000, 4000000]);
	assert.deepEqual(first[3].figures, [64000, 1000, 64000]);
	const roots = first.filter((row) => row.level === 1);
	assert.deepEqual(roots.map((row) => row.figures[0]), [4064000, 20000, 5000, 700]);
	assert.match(roots[3].name, /^not looked for/);
	assert.equal(roots.reduce((sum, row) => sum + row.figures[0], 0), made.leaks.reachable.bytes);
	await keys(page, "holders", "Home", "ArrowLeft");
	assert.deepEqual((await rows(page, "holders")).map((row) => row.level), [1, 1, 1, 1]);
	await keys(page, "holders", "ArrowDown", "ArrowRight");
	assert.deepEqual((await rows(page, "holders")).map((row) => row.level), [1, 1, 2, 1, 1]);
	await page.fill("#filter", "std::STRING");
	await page.waitForFunction(() => document.querySelectorAll("#panel-holders .tr[aria-level='1']").length === 1);
	assert.equal(await page.textContent("#panel-holders .note"), "By the shortest way to one block of each group: 3.9 MiB in all.");
	await assertQuiet(page);
	await page.close();
});

test("holders that the look has are shown as they are, and what they leave out is named", async () => {
	const holder = (name, retained, own, children = []) => ({ name, retained: amount(...retained), own: amount(...own), children });
	const holders = [holder("global cache", [100, 10000], [0, 0], [holder("Entry", [60, 6000], [10, 1000], [holder("std::string", [50, 5000], [50, 5000])]), holder(HOSTILE.script, [30, 3000], [30, 3000])]), holder(HOSTILE.rtl, [1, 10], [1, 10])];
	const page = await browser.open(makeHeapPage(shopHeap({ holders })), { hash: "#tab=holders" });
	assert.deepEqual((await rows(page, "holders")).map(({ name, level, figures: held }) => [name, level, ...held]), [
		["global cache", 1, 10000, 100],
		["Entry", 2, 6000, 60, 1000],
		[HOSTILE.script, 2, 3000, 30, 3000],
		["others, not listed", 2, 1000, 10],
		["harmless⟨U+202E⟩gnp.exe⟨U+2066⟩", 1, 10, 1, 10],
	]);
	await keys(page, "holders", "Home", "ArrowDown", "ArrowRight");
	assert.deepEqual((await rows(page, "holders"))[2].figures, [5000, 50, 5000]);
	await assertQuiet(page);
	await page.close();
});

test("allocators: walked, or why not", async () => {
	const page = await browser.open(html, { hash: "#tab=allocators" });
	const shown = await page.$$eval("#allocators tbody tr", (all) => all.map((row) => ({ text: row.textContent, figures: [...row.querySelectorAll("data")].map((one) => Number(one.value)) })));
	assert.deepEqual(shown[0].figures, [4225988, 3062, 2, 2100000, 2097152, 4096, 1048576, 0]);
	assert.match(shown[0].text, /^glibc 2\.36 \/lib\/<b>libc<\/b>\.so\.6yes/);
	assert.match(shown[1].text, /^tcmallocnoits version is <i>not<\/i> known$/);
	await assertQuiet(page);
	await page.close();
});

test("hostile names are text, whole on demand", async () => {
	const page = await browser.open(html);
	for (const name of TABS) await tab(page, name);
	await tab(page, "blocks");
	const shown = await rows(page, "blocks");
	assert.equal(shown[0].name, HOSTILE.script);
	assert.ok(shown.some((row) => row.name.includes("⟨U+202E⟩")), "what turns the direction of reading is made visible");
	assert.equal(await page.$$eval("main img, main b, main i", (all) => all.length), 0);
	const long = shown.findIndex((row) => row.name.startsWith("std::map<shop"));
	assert.ok(shown[long].name.length <= 90);
	await page.locator("#panel-blocks .tr").nth(long).locator(".more").first().click();
	assert.equal(await page.textContent("dialog pre"), HOSTILE.long);
	await page.keyboard.press("Escape");
	await page.waitForSelector("dialog", { state: "detached" });
	assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 1400);
	await assertQuiet(page);
	await page.close();
});

test("what is looked at is in the address", async () => {
	const page = await browser.open(html);
	const hash = () => page.evaluate(() => location.hash);
	assert.equal(await hash(), "");
	await page.click('#panel-blocks [data-value="lost"]');
	await page.fill("#filter", "shop::Line");
	await page.waitForFunction(() => location.hash.includes("filter"));
	await tab(page, "holders");
	const text = await hash();
	assert.deepEqual(Object.fromEntries(new URLSearchParams(text.slice(1))), { tab: "holders", filter: "shop::Line", verdict: "lost" });
	await page.reload();
	await page.waitForSelector("html[data-ready]");
	assert.equal(await hash(), text);
	assert.equal(await page.getAttribute("#tab-holders", "aria-selected"), "true");
	assert.equal(await page.inputValue("#filter"), "shop::Line");
	await tab(page, "blocks");
	assert.deepEqual((await rows(page, "blocks")).map((row) => row.name), ["shop::Line"]);
	await page.evaluate(() => history.back());
	await page.waitForSelector('#tab-holders[aria-selected="true"]');
	await page.close();
	const odd = await browser.open(html, { hash: "#tab=__proto__&verdict=constructor&from=3" });
	assert.equal((await rows(odd, "blocks")).length, made.groups.length);
	assert.equal(await odd.evaluate(() => location.hash), "");
	await assertQuiet(odd);
	await odd.close();
});

for (const scheme of ["light", "dark"]) {
	test(`${scheme}: legible`, async () => {
		const page = await browser.open(html, { context: { colorScheme: scheme } });
		assert.equal(await page.getAttribute("html", "data-theme"), scheme);
		for (const name of TABS) {
			await tab(page, name);
			for (const one of await contrast(page)) assert.ok(one.ratio >= 4.5, `${name}: ${JSON.stringify(one)}`);
		}
		await page.close();
	});
}

test("a narrow window has no sideways scrolling; paper has all views", async () => {
	const page = await browser.open(html, { context: { viewport: { width: 360, height: 800 } } });
	for (const name of TABS) {
		await tab(page, name);
		assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 360, name);
	}
	await page.emulateMedia({ media: "print" });
	await page.waitForFunction(() => document.querySelector("#panel-holders").checkVisibility());
	for (const name of TABS) assert.ok(await page.isVisible(`#panel-${name}`), name);
	assert.equal((await rows(page, "blocks")).length, made.groups.length);
	await assertQuiet(page);
	await page.close();
});

test("a hundred thousand groups open, and the last is in reach", async () => {
	const groups = Array.from({ length: 100000 }, (_, i) => group(i < 1000 ? "definite" : "reachable", 1, 200000 - i, { class: `shop::Kind<${i}>`, holder: i < 1000 ? null : ["global all", `node ${i % 5000}`, `shop::Kind<${i}>`] }));
	const page = await browser.open(makeHeapPage(shopHeap({ groups, leaks: leaksOf(groups) })));
	assert.ok((await page.$$("#panel-blocks .tr")).length < 100);
	await keys(page, "blocks", "End");
	assert.equal((await rows(page, "blocks")).at(-1).name, "shop::Kind<99999>");
	await tab(page, "holders");
	assert.ok((await page.$$("#panel-holders .tr")).length < 100);
	assert.deepEqual((await rows(page, "holders"))[0].figures, [leaksOf(groups).reachable.bytes, 99000]);
	await keys(page, "holders", "End");
	assert.match((await rows(page, "holders")).at(-1).name, /^node /);
	await page.emulateMedia({ media: "print" });
	await page.waitForFunction(() => /and 99,600 rows that are not printed/.test(document.querySelector("#panel-blocks").textContent));
	await assertQuiet(page);
	await page.close();
});

/* --- the heap of a window --------------------------------------------------------------------------------------- */

/** The shop's window with a look at its end: by stack, what each verdict has. */
function looked() {
	const shopping = shop();
	const leaks = [
		[{ definite: amount(40, 8000), indirect: amount(3, 96) }, null],
		[{ reachable: amount(270, 34560) }, ["global cache (cache.c:9)", "cache_entry"]],
		[{ definite: amount(400, 9000) }, null],
		null,
		null,
		[{ possible: amount(5, 60), reachable: amount(6, 90) }, ["global cache (cache.c:9)", HOSTILE.script]],
		[{ reachable: amount(30, 30000) }, ["stack of thread 4711", HOSTILE.rtl]],
		[{ reachable: amount(25, 102400) }, [HOSTILE.long, "block of 4096 bytes"]],
		[{ reachable: amount(1, 7) }, null],
	];
	const none = Object.fromEntries(REACHES.map((verdict) => [verdict, amount(0, 0)]));
	const stacks = shopping.stacks.map((stack, i) => ({ ...stack, leaks: leaks[i] && { ...none, ...leaks[i][0] }, holder: leaks[i]?.[1] ?? null }));
	const sum = { ...none };
	for (const { leaks: own } of stacks) for (const verdict of REACHES) if (own) sum[verdict] = amount(sum[verdict].count + own[verdict].count, sum[verdict].bytes + own[verdict].bytes);
	return { ...shopping, stacks, report: { leaks: sum } };
}

test("a window with a look at its end: what is lost by stack first, and who holds the rest", async () => {
	const own = looked();
	const page = await browser.open(makePage([own]), { hash: "#tab=heap" });
	assert.equal(await page.getAttribute("#tab-heap", "aria-selected"), "true");
	assert.match(await page.textContent("#panel-heap .answer"), /^Lost: 16\.6 KiB in 440 blocks of this window: no pointer to them is left; and 96 B in 3 blocks/);
	for (const verdict of REACHES) assert.deepEqual(await tile(page, verdict), [own.report.leaks[verdict].bytes, own.report.leaks[verdict].count]);
	const shown = await page.$$eval("#panel-heap .reach .tr", (all) => all.map((row) => [row.querySelector(".id").textContent, ...["definite", "indirect", "possible", "reachable"].map((field) => Number(row.querySelector(`.f-${field} data`)?.value ?? 0))]));
	const wanted = own.stacks.filter(({ leaks }) => leaks).map(({ id, leaks }) => [id, ...REACHES.map((verdict) => leaks[verdict].bytes)]);
	assert.deepEqual(shown.map(([id]) => id).sort(), wanted.map(([id]) => id).sort());
	for (const row of shown) assert.deepEqual(row, wanted.find(([id]) => id === row[0]));
	assert.deepEqual(shown.slice(0, 2).map(([id]) => id), [own.stacks[2].id, own.stacks[0].id]);
	const roots = await page.$$eval("#panel-heap .holders .tr[aria-level='1']", (all) => all.map((row) => [row.querySelector(".name").textContent, ...[...row.querySelectorAll(".f-retained data, .f-blocks data")].map((one) => Number(one.value))]));
	assert.deepEqual(roots.map((row) => row.slice(1)), [[102400, 25], [34650, 276], [30000, 30], [7, 1]]);
	assert.deepEqual([roots[1][0], roots[3][0]], ["global cache (cache.c:9)", "not known"]);
	// Down to the frames, and to the stacks that are held.
	await page.focus("#panel-heap .reach");
	for (const key of ["Home", "ArrowRight"]) await page.keyboard.press(key);
	assert.match(await page.textContent("#panel-heap .reach .frame-row"), /^#0/);
	await page.focus("#panel-heap .holders");
	for (const key of ["Home", "End", "ArrowUp", "ArrowUp", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
	assert.match(await page.textContent("#panel-heap .holders"), /allocated by fill_cache/);
	// The filter is of stacks.
	await page.fill("#filter", "leak_session");
	await page.waitForFunction(() => document.querySelectorAll("#panel-heap .reach .tr[aria-level='1']").length === 1);
	assert.deepEqual((await tile(page, "definite")), [8000, 40]);
	await page.fill("#filter", "");
	await page.selectOption("#memory", "vm");
	assert.equal(await page.textContent("#panel-heap .answer"), "No block of this window is definitely lost.");
	await assertQuiet(page);
	await page.close();
});

test("of a window, lost blocks are the first suspects; without a look there is no such tab", async () => {
	const own = looked();
	const page = await browser.open(makePage([own]));
	const first = await page.$$eval(".suspect", (all) => all.slice(0, 2).map((one) => [one.querySelector(".where .id").textContent, one.querySelector(".badge").textContent, one.querySelector(".facts").textContent]));
	assert.deepEqual(first.map(([id, badge]) => [id, badge]).sort(), [own.stacks[0].id, own.stacks[2].id].sort().map((id) => [id, "lost"]));
	assert.ok(first.some(([, , facts]) => /^43 blocks \(7\.9 KiB\) are lost: no pointer to them is left/.test(facts)), JSON.stringify(first));
	assert.match(await page.textContent(".panels .bar .note"), /^Lost: 16\.6 KiB in 440 blocks of this window/);
	await page.close();
	const without = await browser.open(makePage([shop()]), { hash: "#tab=heap" });
	assert.equal(await without.$("#tab-heap"), null);
	assert.equal(await without.getAttribute("#tab-suspects", "aria-selected"), "true");
	assert.equal(await without.evaluate(() => location.hash), "");
	await assertQuiet(without);
	await without.close();
});
