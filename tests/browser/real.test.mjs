// SPDX-License-Identifier: MIT
// real.test.mjs: pages of real recordings show what the JSON report of the same recording says, also of intervals.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { Browser, assertQuiet, figures, tab, tableRows, tile, zoom } from "./browser.mjs";

const build = resolve(process.env.MEMWATCH_BUILD ?? "build");
const memwatch = join(build, "memwatch");
// Who says where memwatch is wants it tested.
const skip = existsSync(memwatch) || process.env.MEMWATCH_BUILD ? false : `no ${memwatch}: set MEMWATCH_BUILD`;
const directory = mkdtempSync(join(tmpdir(), "memwatch-real-"));
let browser;

before(async () => {
	if (!skip) browser = await Browser.start();
});
after(async () => {
	await browser?.stop();
	rmSync(directory, { recursive: true, force: true });
});

function run(...args) {
	execFileSync(memwatch, args, { timeout: 120000, stdio: ["ignore", "ignore", "pipe"] });
}

function record(name, seconds, ...command) {
	const file = join(directory, `${name}.mw`);
	run("--quiet", "-d", String(seconds), "-o", file, "--", ...command);
	return file;
}

function report(file, ...args) {
	const out = `${file}.json`;
	run("report", file, "--quiet", "--json", out, ...args);
	return JSON.parse(readFileSync(out, "utf8"));
}

function htmlOf(file, ...args) {
	const out = `${file}.html`;
	run("report", file, "--quiet", "--html", out, ...args);
	return out;
}

const sum = (a, b, field) => ["count", "bytes"].map((key) => (a?.[field][key] ?? 0) + (b?.[field][key] ?? 0));

async function assertTotals(page, json) {
	for (const [memory, kinds] of [["heap", ["heap"]], ["vm", ["vm"]], ["internal", ["vm-internal"]], ["both", ["heap", "vm"]]]) {
		await page.selectOption("#memory", memory);
		const [a, b] = kinds.map((kind) => json.totals[kind]);
		for (const [name, field] of [["impacting", "impacting"], ["size", "size"], ["transient", "transient"], ["aofi", "aofi"]]) {
			const [count, bytes] = sum(a, b, field);
			assert.deepEqual((await tile(page, name)).slice(0, 2), [bytes, count], `${memory} ${field}`);
		}
		const [count, bytes] = sum(a, b, "aofo");
		assert.deepEqual(await tile(page, "aofo"), count ? [bytes, count] : [], `${memory} aofo`);
	}
}

async function groupBy(page, column) {
	if (!(await page.$(`.chip[data-column="${column}"]`))) await page.selectOption("#add-column", column);
	for (const other of await page.$$eval(".chip", (all) => all.map((one) => one.dataset.column))) {
		if (other === column) continue;
		await page.focus(`.chip[data-column="${other}"]`);
		await page.keyboard.press("Delete");
	}
}

const row = (one) => [one.impacting.bytes, one.impacting.count, one.size.bytes, one.size.count, one.transient.bytes];
const shown = (one) => [one.impacting, one.blocks, one.size, one.count, one.transient];
const inOrder = (rows) => rows.map((one) => one.join(" ")).sort();

async function assertTables(page, json) {
	await tab(page, "table");
	const stacks = json.stacks.filter((stack) => stack.kind !== "vm-internal" && (stack.size.count || stack.aofi.count || stack.aofo.count || stack.size.bytes || stack.aofi.bytes || stack.aofo.bytes));
	await groupBy(page, "stack");
	const ids = new Map();
	for (const stack of stacks) ids.set(stack.id, (ids.get(stack.id) ?? [0, 0, 0, 0, 0]).map((value, i) => value + row(stack)[i]));
	assert.deepEqual(inOrder((await tableRows(page)).map(shown)), inOrder([...ids.values()]), "stacks");
	for (const one of await tableRows(page)) {
		const { lifetime_ns: of } = stacks.find((stack) => one.text.includes(stack.id));
		assert.equal(one.lifetime !== null && one.lifetime >= 0, of !== null, one.text);
		// The page has it to within half a hundredth.
		if (of) assert.ok(one.lifetime * 1e9 >= of.min * 0.995 - 1 && one.lifetime * 1e9 <= of.max * 1.005 + 1, `${one.text}: ${one.lifetime}, ${JSON.stringify(of)}`);
	}
	await groupBy(page, "module");
	const modules = json.modules.map(row).filter((one) => one.some(Boolean));
	assert.deepEqual(inOrder((await tableRows(page)).map(shown).filter((one) => one.some(Boolean))), inOrder(modules), "modules");
	await groupBy(page, "thread");
	const threads = json.threads.map(row).filter((one) => one.some(Boolean));
	assert.deepEqual(inOrder((await tableRows(page)).map(shown).filter((one) => one.some(Boolean))), inOrder(threads), "threads");
}

async function assertSuspects(page, json) {
	await tab(page, "suspects");
	const lines = await page.$$eval(".suspect", (all) => all.filter((one) => one.dataset.key.startsWith("line:")).map((one) => [one.querySelector(".badge").textContent, Number(one.querySelector(".held data").value), one.querySelector(".verdict").textContent]));
	for (const [i, { verdict, bytes, sentence }] of json.suspects.filter((one) => /grow|accelerating/.test(one.verdict)).sort((a, b) => b.bytes - a.bytes).entries()) assert.deepEqual(lines[i], [verdict, bytes, `${verdict} ${sentence}`]);
	await page.click('.panels [data-value="stack"]');
	const steady = json.stacks.filter((stack) => stack.kind !== "vm-internal" && stack.growth?.verdict === "steady growth");
	const ids = await page.$$eval(".suspect", (all) => all.map((one) => [one.querySelector(".badge").textContent, Number(one.querySelector(".held data").value)]));
	const first = ids.filter(([badge]) => badge === "steady growth").map(([, held]) => held);
	assert.deepEqual(first, steady.map((stack) => stack.impacting.bytes).sort((a, b) => b - a).slice(0, first.length));
	if (steady.length) assert.ok(first.length > 0);
}

/* Figures are of the interval, verdicts of the whole window. */
async function assertVerdicts(page, json, whole) {
	await tab(page, "suspects");
	const seen = await page.$$eval(".suspect", (all) => all.map((one) => [one.querySelector(".where .id").textContent, one.querySelector(".badge").textContent, Number(one.querySelector(".held data").value)]));
	for (const [id, badge, held] of seen) {
		assert.equal(held, json.stacks.find((one) => one.id === id).impacting.bytes);
		assert.equal(badge, whole.stacks.find((one) => one.id === id).growth?.verdict ?? "freed later", `${id} of ${json.window.from} to ${json.window.to}`);
	}
}

for (const [name, seconds, command, wanted] of [
	["leak_service", 4, ["leak_service", "10"], /leak_session_record/],
	["memorytestapp", 6, ["memorytestapp"], /main/],
	["vm", 3, ["growers"], /./],
]) {
	test(`${name}: the page says what the JSON report says, of all and of intervals`, { skip }, async () => {
		const program = join(build, "tests/targets", command[0]);
		const file = record(name, seconds, program, ...command.slice(1));
		const path = htmlOf(file);
		assert.equal(statSync(path).mode & 0o777, 0o600);
		const page = await browser.open(null, { path });
		const json = report(file);
		assert.equal(await page.textContent("#fault"), "");
		await assertTotals(page, json);
		await assertTables(page, json);
		await assertSuspects(page, json);
		assert.match(await page.textContent("#panel-suspects"), wanted);
		const bin = Number(await page.getAttribute(".sentence", "data-bin"));
		const bins = Math.floor((json.window.to * 1e9) / bin);
		for (const [a, b] of [[0.25, 0.75], [0.5, 0.6], [0, 0.4]]) {
			const from = ((Math.round(a * bins) * bin) / 1e9).toFixed(9);
			const to = ((Math.round(b * bins) * bin) / 1e9).toFixed(9);
			await zoom(page, from, to);
			const part = report(file, "--from", from, "--to", to);
			await assertTotals(page, part);
			await assertTables(page, part);
			await assertVerdicts(page, part, json);
		}
		// A page of an interval is the same as that interval of the page.
		const from = ((Math.round(0.5 * bins) * bin) / 1e9).toFixed(9);
		const own = await browser.open(null, { path: htmlOf(file, "--from", from) });
		await assertTotals(own, report(file, "--from", from));
		for (const which of ["flame", "lifetimes", "space"]) await tab(page, which);
		const held = json.stacks.filter((stack) => stack.kind !== "vm-internal").reduce((all, stack) => all + stack.impacting.bytes, 0);
		await page.click(".timeline .group button:last-child");
		await tab(page, "flame");
		assert.deepEqual((await figures(page, ".flame-info")).slice(0, 1), [held]);
		await assertQuiet(page);
		await assertQuiet(own);
		await page.close();
		await own.close();
	});
}

/** A target that waits for a byte before it works, and for another before it ends; it has worked. */
async function worked(name) {
	const child = spawn(join(build, "tests/targets", name), { stdio: ["pipe", "pipe", "inherit"] });
	let said = "";
	child.stdout.on("data", (data) => (said += data));
	const until = async (word) => {
		while (!said.includes(word)) await new Promise((resolve) => setTimeout(resolve, 20));
	};
	await until("ready");
	child.stdin.write("g");
	await until("done");
	return child;
}

test("heap: the page says what the JSON of the same look says", { skip }, async () => {
	const child = await worked("reaches");
	const path = join(directory, "heap.html");
	const out = join(directory, "heap.json");
	try {
		run("heap", "-p", String(child.pid), "--quiet", "--html", path, "--json", out);
	} finally {
		child.kill("SIGKILL");
	}
	assert.equal(statSync(path).mode & 0o777, 0o600);
	const json = JSON.parse(readFileSync(out, "utf8"));
	const page = await browser.open(null, { path });
	for (const [verdict, { count, bytes }] of Object.entries(json.leaks)) assert.deepEqual(await tile(page, verdict), [bytes, count], verdict);
	assert.ok(json.leaks.definite.count > 0);
	const areas = await page.$$eval(".area", (all) => all.map((one) => Number(one.dataset.bytes)));
	assert.equal(areas.reduce((all, one) => all + one, 0), json.rss);
	const groups = await page.$$eval("#panel-blocks .tr", (all) => all.map((one) => [...one.querySelectorAll(".f-bytes data, .f-blocks data")].map((data) => Number(data.value))));
	assert.ok(groups.length > 5);
	assert.deepEqual(groups, json.groups.slice(0, groups.length).map(({ blocks }) => [blocks.bytes, blocks.count]));
	await tab(page, "allocators");
	assert.deepEqual((await figures(page, "#allocators tbody tr:first-child")).slice(0, 2), [json.allocators[0].live.bytes, json.allocators[0].live.count]);
	await assertQuiet(page);
	await page.close();
});
