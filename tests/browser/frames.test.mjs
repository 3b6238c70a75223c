// SPDX-License-Identifier: MIT
// frames.test.mjs: stacks of scripts: which of their frames are shown, the lines that they are charged to, and languages.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser, assertQuiet, tab, tableRows } from "./browser.mjs";
import { frame, growth, inspect, makePage, shop } from "./make.mjs";

const PYTHON = "/usr/bin/python3.11";
const script = (name, line) => frame(name, "[python]", "/srv/app.py", line, { language: "python" });
const own = (name, more = {}) => frame(name, PYTHON, null, null, { language: "native", interprets: true, ...more });
const made = shop();
const { blocks, end } = made;
// Two stacks of one line, and one of another; all others have no script.
const stacks = made.stacks.map((stack, i) => {
	if (i === 0) return { ...stack, suspect: "[python]", frames: [own("list_append"), own("eval"), script("handle", 41), script("<module>", 7), own("main"), frame("__libc_start_main", "/lib/libc.so.6")], charged: 2 };
	if (i === 1) return { ...stack, suspect: "[python]", frames: [own("dict_insert"), script("handle", 41), script("<module>", 7)], charged: 1 };
	if (i === 3) return { ...stack, suspect: "/srv/shop", frames: [frame("main.load", "/srv/shop", "/src/load.go", 12, { language: "go" })], charged: 0 };
	return { ...stack, charged: stack.frames.length ? 0 : null, growth: stack.growth && growth("plateau") };
});
const own_page = { ...made, stacks };
let browser;
before(async () => {
	browser = await Browser.start();
});
after(() => browser?.stop());

async function flameNames(page) {
	await tab(page, "flame");
	return new Set(await page.$$eval(".flame .node", (nodes) => nodes.map((node) => node.getAttribute("aria-label").split(", ")[0])));
}

test("an interpreter's frames are one, or are left out with what is native, or all are shown", async () => {
	const page = await browser.open(makePage([own_page]));
	assert.equal(await page.$eval("#frames", (one) => one.value), "own");
	let names = await flameNames(page);
	assert.ok(["handle", "<module>", "(interpreter)", "__libc_start_main"].every((name) => names.has(name)));
	assert.ok(!names.has("list_append") && !names.has("eval"));
	await page.selectOption("#frames", "script");
	names = await flameNames(page);
	assert.ok(names.has("handle") && !names.has("(interpreter)"));
	// A stack without a script is as it was.
	assert.ok(names.has("main.load"));
	assert.match(page.url(), /frames=script/);
	await assertQuiet(page);
	await page.reload();
	assert.equal(await page.$eval("#frames", (one) => one.value), "script");
	await page.selectOption("#frames", "all");
	names = await flameNames(page);
	assert.ok(names.has("list_append") && names.has("eval") && !names.has("(interpreter)"));
	await page.close();
});

test("the page begins as it was asked to, and asks nobody where there is no script", async () => {
	const page = await browser.open(makePage([own_page], { frames: "all" }));
	assert.ok((await flameNames(page)).has("list_append"));
	assert.doesNotMatch(page.url(), /frames=/);
	await page.close();
	const plain = await browser.open(makePage([made]));
	assert.equal(await plain.$("#frames"), null);
	await plain.close();
});

test("a stack's frames keep their numbers, and say their language", async () => {
	const page = await browser.open(makePage([own_page]));
	const one = page.locator(".suspect", { hasText: stacks[0].id }).first();
	if (!(await one.locator("details").getAttribute("open").then((value) => value !== null))) await one.locator("summary").click();
	const lines = await one.locator("ol.frames").last().locator("li").evaluateAll((list) => list.map((item) => [item.value, item.textContent.trim().replace(/\s+/g, " ")]));
	assert.deepEqual(lines.slice(0, 3), [
		[0, "(interpreter, 2 frames)"],
		[2, "handlepython app.py:41"],
		[3, "<module>python app.py:7"],
	]);
	await page.close();
});

test("blocks are grouped by line and by language", async () => {
	const page = await browser.open(makePage([own_page]));
	await tab(page, "table");
	for (const column of ["language", "line"]) await page.selectOption("#add-column", column);
	for (const column of ["module", "function"]) {
		await page.focus(`.chip[data-column="${column}"]`);
		await page.keyboard.press("Delete");
	}
	const rows = await tableRows(page);
	const held = (...of) => inspect(blocks.filter(({ stack }) => of.includes(stack)), 0, end).impacting.bytes;
	const python = rows.find((row) => row.level === 1 && row.name === "python");
	const handle = rows.find((row) => row.level === 2 && row.name === "handle");
	const go = rows.find((row) => row.level === 2 && row.name === "main.load");
	assert.equal(python.impacting, held(0, 1));
	assert.equal(handle.impacting, held(0, 1));
	assert.equal(go.impacting, held(3));
	assert.deepEqual(new Set(rows.filter((row) => row.level === 1).map((row) => row.name)), new Set(["python", "go", "native"]));
	await page.close();
});
