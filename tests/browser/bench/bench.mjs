// SPDX-License-Identifier: MIT
// bench.mjs [PAGE | ROWS [STACKS]]: how long a page, or one as large as they get, takes to open and to zoom. Figures, no
// verdict.
import { Browser } from "../browser.mjs";
import { frame, makePage, putTable, random } from "../make.mjs";

const given = process.argv[2]?.endsWith(".html") ? process.argv[2] : null;
const rows = given ? 1 : Number(process.argv[2] ?? 3500000);
const stackCount = given ? 1 : Number(process.argv[3] ?? 20000);
const bins = 256;
const bin = 4e9;
const rand = random(42);
const below = (n) => Math.floor(rand() * n);

/* Stacks of some 25 frames out of 6,000 functions, as trees have them: the outer frames are shared. */
const frames = [];
for (let i = 0; i < 6000; i++) frames.push(frame(`ns${i % 40}::Class${i % 400}::method_${i}(int, std::vector<int> const&)`, `/usr/lib/lib${i % 40}.so`, `/src/file${i % 300}.cpp`, i, { address: i * 16 }));
const stacks = [];
for (let i = 0; i < stackCount; i++) {
	const own = [];
	for (let level = 0, at = below(6000); level < 25; level++, at = Math.floor(at / 1.6)) own.push(level < 24 ? at : 0);
	const kind = i % 50 ? "heap" : "vm";
	stacks.push({ id: (i * 2654435761).toString(16).padStart(16, "0").slice(-16), kind, api: kind === "heap" ? "malloc" : "mmap", suspect: frames[own[0]].module, frames: own, growth: null });
}
const totals = { heap: [0, 0, 0, 0], vm: [0, 0, 0, 0] };

function cells() {
	const out = [];
	const perStack = Math.floor(rows / stackCount);
	for (let s = 0; s < stackCount; s++) {
		const count = s === stackCount - 1 ? rows - perStack * (stackCount - 1) : perStack;
		for (let r = 0; r < count; r++) {
			const born = 1 + Math.floor((r * bins) / count);
			const died = rand() < 0.1 ? 0 : 1 + below(Math.min(40, bins - born + 1));
			const blocks = 1 + below(100);
			const bytes = blocks * (16 + below(400));
			const sum = totals[stacks[s].kind];
			sum[died ? 2 : 0] += blocks;
			sum[died ? 3 : 1] += bytes;
			out.push({ key: [s, 1, 0, born, died], count: blocks, bytes, unknown: 0, lived: died ? blocks * died * 1e6 : 0 });
		}
	}
	const of = ([i, ib, t, tb]) => ({ size: { count: i + t, bytes: ib + tb }, impacting: { count: i, bytes: ib }, transient: { count: t, bytes: tb }, aofi: { count: 0, bytes: 0 }, aofi_unknown: 0, aofo: { count: 0, bytes: 0 }, peak: { count: 0, bytes: 0, at: 0 } });
	report.totals = { heap: of(totals.heap), vm: of(totals.vm), "vm-internal": null };
	return out;
}

const putCells = (out) => putTable(out, cells());

/* A sixth as many rows, of eight threads and longer bins. */
function putOwners(out) {
	const count = Math.floor(rows / 6);
	const made = [];
	for (let i = 0; i < count; i++) {
		const part = (i * stackCount) / count;
		const blocks = 1 + below(600);
		made.push({ key: [Math.floor(part), 1 + Math.floor((part % 1) * 8), 1, 1 + below(bins / 16), rand() < 0.1 ? 0 : 1], count: blocks, bytes: blocks * 200, unknown: 0, lived: blocks * 1e6 });
	}
	return putTable(out, made);
}

function putLifetimes(out) {
	const count = Math.min(250000, rows);
	const made = [];
	for (let i = 0; i < count; i++) {
		const kept = rand() < 0.1;
		made.push({ key: [Math.floor((i / count) * 80), kept ? 255 : 40 + below(80), 0, 1 + below(bins), kept ? 0 : 1], count: 1 + below(100), bytes: below(10000) });
	}
	return putTable(out, made, true);
}

const report = { frames };
const threads = Array.from({ length: 8 }, (_, i) => ({ tid: 100 + i, name: `worker ${i}` }));
const html = makePage([{ stacks, threads, heaps: ["main"], blocks: [], bin, end: bins * bin, ownersTimes: 16, putCells, putOwners, putLifetimes, report, quick: true }]);
if (!given) console.log(`rows ${rows}, stacks ${stackCount}, page ${(html.length / 2 ** 20).toFixed(1)} MiB`);

const browser = await Browser.start();
const opens = [];
for (let i = 0; i < 3; i++) {
	const page = await browser.open(html, { path: given });
	opens.push(await page.evaluate(() => performance.getEntriesByName("memwatch-open")[0].duration));
	if (i < 2) {
		await page.close();
		continue;
	}
	// Time of the page's own thread, beside that of the clock: the machine may do much else.
	const cdp = await page.context().newCDPSession(page);
	await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
	const thread = async () => (await cdp.send("Performance.getMetrics")).metrics.find((metric) => metric.name === "ScriptDuration").value * 1000;
	const whole = Number(await page.getAttribute(".sentence", "data-end")) / 1e9;
	const step = whole * 0.04;
	for (const name of ["suspects", "flame", "table", "lifetimes", "space"]) {
		const shown = await page.evaluate((id) => {
			const start = performance.now();
			document.getElementById(id).click();
			return performance.now() - start;
		}, `tab-${name}`);
		await page.evaluate(() => performance.clearMeasures("memwatch-zoom"));
		const before = await thread();
		for (let z = 0; z < 7; z++) {
			await page.fill('[aria-label="From, seconds"]', String(z * step));
			await page.fill('[aria-label="To, seconds"]', String(z * step + whole * 0.55));
			await page.click(".goto button");
		}
		const own = ((await thread()) - before) / 7;
		const times = await page.evaluate(() => performance.getEntriesByName("memwatch-zoom").map((entry) => entry.duration));
		times.sort((a, b) => a - b);
		console.log(`${name.padEnd(10)} shown ${shown.toFixed(0)} ms, zoom ${times[0].toFixed(0)} to ${times.at(-1).toFixed(0)} ms, median ${times[Math.floor(times.length / 2)].toFixed(0)} ms, of the thread ${own.toFixed(0)} ms`);
	}
	console.log("complaints:", page.complaints.length, page.complaints[0] ?? "", (await page.textContent("#fault")) ?? "");
}
console.log(`open ${opens.map((time) => time.toFixed(0)).join(", ")} ms`);
await browser.stop();
