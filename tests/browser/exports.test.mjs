// SPDX-License-Identifier: MIT
// exports.test.mjs: what memwatch exports, in the programs of others that run in a browser: speedscope's own build from npm, and
// valgrind's dh_view.html. Their totals are those of the report of the same recording.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Browser } from "./browser.mjs";

const PATIENCE = 60000; // ms: a bound, for machines that do much else
const build = resolve(process.env.MEMWATCH_BUILD ?? "build");
const memwatch = join(build, "memwatch");
// Who says where memwatch is wants it tested.
const skip = existsSync(memwatch) || process.env.MEMWATCH_BUILD ? false : `no ${memwatch}: set MEMWATCH_BUILD`;
const dhView = "/usr/libexec/valgrind/dh_view.html";
const speedscopePage = fileURLToPath(new URL("../../src/output/html/node_modules/speedscope/dist/release/index.html", import.meta.url));
const recordings = fileURLToPath(new URL("../golden/recordings/", import.meta.url));
const names = ["jump", "python", "two", "launched"]; // two: of processes
const directory = mkdtempSync(join(tmpdir(), "memwatch-exports-"));
let browser;

before(async () => {
	// speedscope draws by WebGL, here without a GPU.
	if (!skip) browser = await Browser.start(["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]);
});
after(async () => {
	await browser?.stop();
	rmSync(directory, { recursive: true, force: true });
});

function exported(name, format, ending, ...options) {
	const file = join(directory, `${name}.${ending}`);
	execFileSync(memwatch, ["export", `${name}.mw`, "--to", format, "-o", file, "--force", ...options], { cwd: recordings, timeout: PATIENCE });
	return file;
}

/** What the report says: not freed and all, bytes and blocks, and what there was at the peak. */
function wanted(name) {
	const report = JSON.parse(execFileSync(memwatch, ["report", `${name}.mw`, "--quiet", "--json", "-"], { cwd: recordings, timeout: PATIENCE, maxBuffer: 1 << 28 }));
	const sums = { inuse_space: 0, inuse_objects: 0, alloc_space: 0, alloc_objects: 0 };
	for (const one of report.processes ?? [report])
		for (const kind of ["heap", "vm"]) {
			const totals = one.totals[kind];
			if (!totals) continue;
			sums.inuse_space += totals.impacting.bytes;
			sums.inuse_objects += totals.impacting.count;
			sums.alloc_space += totals.size.bytes;
			sums.alloc_objects += totals.size.count;
		}
	return sums;
}

async function open(path) {
	const context = await browser.browser.newContext({ viewport: { width: 500, height: 300 }, acceptDownloads: true });
	const page = await context.newPage();
	page.setDefaultTimeout(PATIENCE);
	page.complaints = [];
	page.on("pageerror", (error) => page.complaints.push(String(error)));
	page.on("dialog", (dialog) => {
		page.complaints.push(dialog.message());
		dialog.dismiss();
	});
	await page.goto(pathToFileURL(path).href, { waitUntil: "load", timeout: PATIENCE });
	return page;
}

/** What speedscope has read of a file, as it writes it itself: the figure of each stack of each profile, and its frames. */
async function throughSpeedscope(file) {
	const page = await open(speedscopePage);
	await page.setInputFiles("input[type=file]", file);
	await page.getByText("Left Heavy").waitFor();
	const [download] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Control+s")]);
	const read = JSON.parse(readFileSync(await download.path(), "utf8"));
	assert.deepEqual(page.complaints, []);
	await page.context().close();
	const profiles = {};
	for (const profile of read.profiles) {
		let depth = 0;
		let last = profile.startValue;
		let sum = 0;
		for (const event of profile.events) {
			if (depth > 0) sum += event.at - last;
			depth += event.type === "O" ? 1 : -1;
			last = event.at;
		}
		assert.equal(depth, 0);
		assert.equal(profile.endValue - profile.startValue, sum);
		profiles[profile.name] = { unit: profile.unit, sum };
	}
	return { profiles, frames: read.shared.frames };
}

test("speedscope reads what is written for it", { skip }, async () => {
	for (const name of names) {
		const sums = wanted(name);
		const { profiles } = await throughSpeedscope(exported(name, "speedscope", "json"));
		const expected = {};
		for (const [measure, sum] of Object.entries(sums)) expected[measure] = { unit: measure.endsWith("space") ? "bytes" : "none", sum };
		assert.deepEqual(profiles, expected, name);
	}
});

test("speedscope has names, files and lines", { skip }, async () => {
	const { frames } = await throughSpeedscope(exported("jump", "speedscope", "json"));
	const leak = frames.find((frame) => frame.name === "leak_session_record");
	assert.match(leak.file, /leak_service\.c$/);
	assert.equal(leak.line, 26);
});

test("speedscope opens a window without any allocation", { skip }, async () => {
	const file = exported("jump", "speedscope", "json", "--filter", "function:nothing_has_this_name");
	const { profiles } = await throughSpeedscope(file);
	assert.deepEqual(Object.values(profiles).map((profile) => profile.sum), [0, 0, 0, 0]);
});

test("speedscope reads collapsed stacks and pprof", { skip }, async () => {
	for (const name of names) {
		const sums = wanted(name);
		const folded = await throughSpeedscope(exported(name, "collapsed", "txt"));
		assert.deepEqual(Object.values(folded.profiles).map((profile) => profile.sum), [sums.inuse_space], name);
		const pprof = await throughSpeedscope(exported(name, "pprof", "pb.gz"));
		assert.deepEqual(Object.values(pprof.profiles), [{ unit: "bytes", sum: sums.inuse_space }], name);
	}
});

/** The totals of the root: of bytes and blocks in all, at the peak and at the end. */
async function throughDhView(file) {
	const page = await open(dhView);
	await page.setInputFiles("input[type=file]", file);
	await page.getByText("t-gmax:").first().waitFor();
	const text = await page.evaluate(() => document.body.innerText);
	assert.deepEqual(page.complaints, []);
	await page.context().close();
	const figures = (label) => {
		const [, bytes, blocks] = new RegExp(`${label}: +([\\d,]+) bytes[^\\n]*? in ([\\d,]+) blocks`).exec(text) ?? assert.fail(text.slice(0, 2000));
		return [bytes, blocks].map((figure) => Number(figure.replaceAll(",", "")));
	};
	return { text, total: figures("Total"), peak: figures("At t-gmax"), end: figures("At t-end") };
}

test("valgrind's dh_view reads what is written for it", { skip: skip || (existsSync(dhView) ? false : `no ${dhView}`) }, async () => {
	for (const name of names.filter((one) => one !== "two")) {
		const sums = wanted(name);
		const file = exported(name, "dhat", "json");
		const read = await throughDhView(file);
		assert.deepEqual(read.total, [sums.alloc_space, sums.alloc_objects], name);
		assert.deepEqual(read.end, [sums.inuse_space, sums.inuse_objects], name);
		const places = JSON.parse(readFileSync(file, "utf8")).pps;
		assert.deepEqual(read.peak, [places.reduce((sum, place) => sum + place.gb, 0), places.reduce((sum, place) => sum + place.gbk, 0)], name);
	}
	const { text } = await throughDhView(exported("jump", "dhat", "json"));
	assert.match(text, /Command: t\/leak_service 20/);
	assert.match(text, /leak_session_record \(.*leak_service\.c:26\)/);
});
