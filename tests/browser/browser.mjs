// SPDX-License-Identifier: MIT
// browser.mjs: a page in Chromium, watched for whatever it must not do.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(new URL("../../src/output/html/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const PATIENCE = 60000; // ms: a bound, for machines that do much else

export class Browser {
	static async start(more = []) {
		const self = new Browser();
		self.directory = mkdtempSync(join(tmpdir(), "memwatch-browser-"));
		// Its sandbox needs what containers and root don't have; the pages are ours.
		self.browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", ...(more.length ? more : ["--disable-gpu"]), "--disable-dev-shm-usage"], timeout: PATIENCE });
		return self;
	}

	async stop() {
		await this.browser.close();
		rmSync(this.directory, { recursive: true, force: true });
	}

	/** Open a page's text, or a file, with `hash` behind its address. Returns playwright's page, with `complaints` and `requests`. */
	async open(html, options = {}) {
		let path = options.path;
		if (!path) {
			path = join(this.directory, `${options.name ?? "report"}.html`);
			writeFileSync(path, html);
		}
		const context = await this.browser.newContext({ viewport: { width: 1400, height: 1000 }, ...options.context });
		const page = await context.newPage();
		page.setDefaultTimeout(PATIENCE);
		page.complaints = [];
		page.requests = [];
		page.on("console", (message) => ["error", "warning"].includes(message.type()) && page.complaints.push(message.text()));
		page.on("pageerror", (error) => page.complaints.push(String(error)));
		page.on("request", (request) => page.requests.push(request.url()));
		const url = pathToFileURL(path).href + (options.hash ?? "");
		await page.goto(url, { waitUntil: "load", timeout: PATIENCE });
		await page.waitForSelector("html[data-ready]", { state: "attached", timeout: PATIENCE });
		page.own = url.split("#")[0];
		return page;
	}
}

/** Nothing was complained about, nothing asked for but the file, and no name became code. */
export async function assertQuiet(page) {
	assert.deepEqual(page.complaints, []);
	assert.deepEqual(page.requests, [page.own]);
	assert.equal(await page.evaluate(() => window.hacked), undefined);
}

/** The exact figures within an element. */
export async function figures(page, selector) {
	return page.$$eval(`${selector} data`, (all) => all.map((one) => Number(one.value)));
}

export async function tile(page, name) {
	return figures(page, `#tile-${name}`);
}

/** Rows of the table that are in the document: names and figures by column. */
export async function tableRows(page) {
	return page.$$eval("#panel-table .tr", (rows) =>
		rows.map((row) => {
			const of = (field) => {
				const data = row.querySelector(`.f-${field} data`);
				return data ? Number(data.value) : null;
			};
			return {
				name: row.querySelector(".name")?.textContent ?? "",
				text: row.textContent,
				key: row.dataset.key,
				level: Number(row.getAttribute("aria-level")),
				expanded: row.getAttribute("aria-expanded"),
				active: row.classList.contains("active"),
				impacting: of("impacting"),
				blocks: of("blocks"),
				size: of("size"),
				count: of("count"),
				transient: of("transient"),
				lifetime: of("lifetime"),
				peak: of("peak"),
			};
		}),
	);
}

/** Zoom by the fields, in seconds. */
export async function zoom(page, from, to) {
	await page.fill('[aria-label="From, seconds"]', String(from));
	await page.fill('[aria-label="To, seconds"]', String(to));
	await page.click(".goto button");
}

export async function tab(page, name) {
	await page.click(`#tab-${name}`);
}

export async function interval(page) {
	return page.$eval(".sentence", (element) => [Number(element.dataset.start), Number(element.dataset.end)]);
}

export function luminance(color) {
	const [r, g, b] = color.match(/[\d.]+/g).map((part) => {
		const share = Number(part) / 255;
		return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
	});
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** The least contrast of text on what lies behind it. */
export async function contrast(page) {
	const pairs = await page.evaluate(() => {
		const out = [];
		for (const element of document.querySelectorAll("h1, h2, h3, p, button, select, data, td, th, li, .name, .where, .badge, .label, .rest, .note, .place, .id, .node bdi, .area")) {
			if (!element.checkVisibility() || !element.textContent.trim()) continue;
			if (element.closest(":disabled, .above, .miss, [aria-hidden=true]")) continue;
			let behind = element;
			while (behind && getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
			const back = getComputedStyle(behind ?? document.body).backgroundColor;
			if (!back.startsWith("rgb(")) continue; // mixed colours are tints of these
			out.push([getComputedStyle(element).color, back, element.textContent.slice(0, 40)]);
		}
		return out;
	});
	return pairs.map(([text, back, what]) => {
		const [high, low] = [luminance(text), luminance(back)].sort((a, b) => b - a);
		return { ratio: (high + 0.05) / (low + 0.05), what, text, back };
	});
}
