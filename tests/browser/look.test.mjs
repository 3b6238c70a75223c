// SPDX-License-Identifier: MIT
// look.test.mjs: dark and light, narrow, on paper, by keys alone.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser, assertQuiet, contrast, interval, luminance, tab, zoom } from "./browser.mjs";
import { makePage, shop } from "./make.mjs";

let browser;
const html = makePage([shop()]);
before(async () => {
	browser = await Browser.start();
});
after(() => browser?.stop());

const NAMES = ["suspects", "flame", "table", "lifetimes", "space"];

for (const scheme of ["light", "dark"]) {
	test(`${scheme}: by the system's wish, and legible`, async () => {
		const page = await browser.open(html, { context: { colorScheme: scheme } });
		assert.equal(await page.getAttribute("html", "data-theme"), scheme);
		const back = luminance(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
		assert.ok(scheme === "dark" ? back < 0.05 : back > 0.8);
		for (const name of NAMES) {
			await tab(page, name);
			for (const one of await contrast(page)) assert.ok(one.ratio >= 4.5, `${name}: ${JSON.stringify(one)}`);
		}
		await assertQuiet(page);
		await page.close();
	});
}

test("colours can be chosen, and the choice is kept", async () => {
	const page = await browser.open(html, { context: { colorScheme: "light" } });
	await page.click('.theme [data-value="dark"]');
	assert.equal(await page.getAttribute("html", "data-theme"), "dark");
	await page.reload();
	await page.waitForSelector("html[data-ready]");
	assert.equal(await page.getAttribute("html", "data-theme"), "dark");
	await page.focus('.theme [aria-checked="true"]');
	await page.keyboard.press("ArrowRight");
	assert.equal(await page.getAttribute("html", "data-chosen"), "auto");
	assert.equal(await page.getAttribute("html", "data-theme"), "light");
	await page.close();
});

test("a narrow window has no sideways scrolling, and everything in reach", async () => {
	for (const width of [360, 640]) {
		const page = await browser.open(html, { context: { viewport: { width, height: 800 } } });
		for (const name of NAMES) {
			await tab(page, name);
			assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width, `${name} at ${width}`);
		}
		await zoom(page, 2, 4);
		assert.deepEqual(await interval(page), [2e9, 4e9]);
		await assertQuiet(page);
		await page.close();
	}
});

test("paper has all views, on white, without buttons", async () => {
	const page = await browser.open(html, { context: { colorScheme: "dark" } });
	await page.emulateMedia({ media: "print" });
	await page.waitForFunction(() => document.documentElement.dataset.theme === "light");
	for (const name of NAMES) assert.ok(await page.isVisible(`#panel-${name}`), name);
	assert.equal(await page.isVisible(".controls"), false);
	assert.equal(await page.isVisible(".tabs"), false);
	assert.ok((await page.$$("#panel-table .tr")).length >= 4);
	assert.ok((await page.$$("#panel-flame .node")).length > 5);
	assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
	await page.emulateMedia({ media: "screen" });
	await page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
	assert.equal(await page.isVisible("#panel-space"), false);
	const pdf = await page.pdf({ format: "A4" });
	assert.ok(pdf.length > 20000);
	await assertQuiet(page);
	await page.close();
});

test("all can be reached by Tab, in the order in which it stands, and shows that it has the focus", async () => {
	const page = await browser.open(html);
	const seen = [];
	for (let i = 0; i < 120; i++) {
		await page.keyboard.press("Tab");
		const at = await page.evaluate(() => {
			const element = document.activeElement;
			if (!element || element === document.body) return null;
			const { outlineStyle, outlineWidth } = getComputedStyle(element);
			const box = element.getBoundingClientRect();
			return { what: element.id || element.className || element.textContent.slice(0, 30), outline: outlineStyle !== "none" && parseFloat(outlineWidth) > 0, label: element.getAttribute("aria-label") ?? element.textContent ?? "", top: box.top + scrollY };
		});
		if (!at) break;
		assert.ok(at.outline, `${at.what} shows its focus`);
		assert.ok(at.label.trim() || ["memory", "filter", "process"].includes(at.what), `${at.what} has a name`);
		seen.push(at);
	}
	const order = ["memory", "filter", "stage", "tab-suspects"].map((what) => seen.findIndex((one) => one.what === what));
	assert.deepEqual(order, [...order].sort((a, b) => a - b), JSON.stringify(order));
	assert.ok(order.every((at) => at >= 0), JSON.stringify(seen.map((one) => one.what)));
	await page.focus("#tab-suspects");
	for (const name of ["flame", "table", "lifetimes", "space", "suspects"]) {
		await page.keyboard.press("ArrowRight");
		assert.equal(await page.getAttribute(`#tab-${name}`, "aria-selected"), "true");
		assert.ok(await page.isVisible(`#panel-${name}`));
	}
	await assertQuiet(page);
	await page.close();
});
