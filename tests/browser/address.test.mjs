// SPDX-License-Identifier: MIT
// address.test.mjs: the page's address says what is looked at, and brings it again.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser, assertQuiet, interval, tab, zoom } from "./browser.mjs";
import { makePage, shop } from "./make.mjs";

let browser;
const html = makePage([shop()]);
const second = shop(7, { report: { target: { pid: 4800, comm: "till", exe: null, command: null, exit_status: null } } });
before(async () => {
	browser = await Browser.start();
});
after(() => browser?.stop());

const hash = (page) => page.evaluate(() => location.hash);
const steps = (page) => page.evaluate(() => history.length);
const shown = async (page) => ({ interval: (await interval(page)).map((ns) => ns / 1e9), tab: await page.$eval('[role="tab"][aria-selected="true"]', (one) => one.id.slice(4)), filter: await page.inputValue("#filter"), memory: await page.inputValue("#memory"), matching: /match the filter/.test(await page.textContent(".sentence")) });
const FIRST = { interval: [0, 10], tab: "suspects", filter: "", memory: "both", matching: false };

async function fillFilter(page, text) {
	await page.fill("#filter", text);
	await page.waitForFunction((wanted) => new URLSearchParams(location.hash.slice(1)).get("filter") === (wanted || null), text);
}

/** The address, and with it the page, once a step of the history is there. */
async function go(page, move, wanted) {
	await page.evaluate((by) => history.go(by), move);
	await page.waitForFunction((text) => location.hash === text && document.querySelector('[aria-selected="true"]').id === `tab-${new URLSearchParams(text.slice(1)).get("tab") ?? "suspects"}`, wanted);
}

test("what is looked at is in the address; a link and a reload bring it again", async () => {
	const page = await browser.open(html);
	assert.equal(await hash(page), "");
	await zoom(page, 2.5, 7.5);
	await tab(page, "flame");
	await fillFilter(page, 'serve <b>"&#=+ü');
	await page.selectOption("#memory", "heap");
	const text = await hash(page);
	assert.deepEqual(Object.fromEntries(new URLSearchParams(text.slice(1))), { tab: "flame", from: "2.5", to: "7.5", filter: 'serve <b>"&#=+ü', memory: "heap" });
	const want = { interval: [2.5, 7.5], tab: "flame", filter: 'serve <b>"&#=+ü', memory: "heap", matching: true };
	assert.deepEqual(await shown(page), want);
	await assertQuiet(page);
	await page.reload();
	await page.waitForSelector("html[data-ready]");
	assert.deepEqual(await shown(page), want);
	assert.equal(await hash(page), text);
	assert.equal(await page.isDisabled('button:text-is("Back")'), true, "nothing was looked at before");
	const sent = await browser.open(html, { hash: text });
	assert.deepEqual(await shown(sent), want);
	// The cells are held against the totals of all, not of what the address asks for.
	assert.equal(await sent.textContent("#fault"), "");
	// All as at first: the address is as at first too.
	await sent.click('.timeline .group button:last-child');
	await tab(sent, "suspects");
	await fillFilter(sent, "");
	await sent.selectOption("#memory", "both");
	assert.deepEqual(await shown(sent), FIRST);
	assert.equal(await hash(sent), "");
	await page.close();
	await sent.close();
});

test("the browser's back and forward go through what was looked at", async () => {
	const page = await browser.open(html);
	const length = await steps(page);
	const seen = [[await hash(page), await shown(page)]];
	for (const act of [() => zoom(page, 2, 6), () => tab(page, "table"), () => fillFilter(page, "serve"), () => zoom(page, 3, 5)]) {
		await act();
		seen.push([await hash(page), await shown(page)]);
	}
	assert.equal(new Set(seen.map(([text]) => text)).size, seen.length);
	assert.equal(await steps(page), length + 4);
	for (const [text, want] of seen.slice(0, -1).reverse()) {
		await go(page, -1, text);
		assert.deepEqual(await shown(page), want);
	}
	for (const [text, want] of seen.slice(1)) {
		await go(page, 1, text);
		assert.deepEqual(await shown(page), want);
	}
	// The page's own Back is of intervals.
	await page.click("text=Back");
	assert.deepEqual((await shown(page)).interval, [2, 6]);
	assert.equal(await steps(page), length + 5);
	// A filter that is typed is one step, as are the filter and the view of a suspect's link.
	await fillFilter(page, "");
	const before = await steps(page);
	for (const part of ["l", "le", "leak"]) await fillFilter(page, part);
	assert.equal(await steps(page), before + 1);
	await tab(page, "suspects");
	await page.click(".suspect:first-child .link >> text=Flame graph");
	assert.equal(await steps(page), before + 3);
	await page.evaluate(() => history.back());
	await page.waitForSelector('#tab-suspects[aria-selected="true"]');
	assert.equal((await shown(page)).filter, "leak");
	await assertQuiet(page);
	await page.close();
});

test("an address that makes no sense shows what it can", async () => {
	for (const [text, want] of [
		["#tab=nothing&from=x&to=&memory=all&process=9", {}],
		["#from=7&to=3", {}],
		["#from=-5&to=1e99", {}],
		["#from=8", { interval: [8, 10] }],
		["#to=2.51", { interval: [0, 2.5] }],
		["#views", {}],
		["#tab=space&filter=%E0%A4%A", { tab: "space", filter: "\uFFFD%A", matching: true }],
		["#tab=__proto__", {}],
	]) {
		const page = await browser.open(html, { hash: text });
		assert.deepEqual(await shown(page), { ...FIRST, ...want }, text);
		assert.deepEqual(page.complaints, []);
		await page.close();
	}
});

test("one of several processes is in the address", async () => {
	const page = await browser.open(makePage([shop(), second]), { hash: "#process=1&from=3&to=6" });
	assert.equal(await page.inputValue("#process"), "1");
	assert.deepEqual(await interval(page), [3e9, 6e9]);
	await page.selectOption("#process", "");
	assert.equal(await hash(page), "#from=3&to=6");
	await page.evaluate(() => history.back());
	await page.waitForFunction(() => document.querySelector("#process").value === "1");
	assert.deepEqual(await interval(page), [3e9, 6e9]);
	await page.close();
});

test("the link past the controls leaves the address as it is", async () => {
	const page = await browser.open(html, { hash: "#tab=table" });
	await page.focus(".skip");
	await page.keyboard.press("Enter");
	assert.equal(await page.evaluate(() => document.activeElement.id), "tab-table");
	assert.equal(await hash(page), "#tab=table");
	await page.close();
});
