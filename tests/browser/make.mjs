// SPDX-License-Identifier: MIT
// make.mjs: pages made of blocks that are known one by one, so that each figure has an answer by brute force.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { deflateSync } from "node:zlib";

export const PAGE = fileURLToPath(new URL("../../src/output/html/dist/report.html", import.meta.url));
const KINDS = ["heap", "vm", "vm-internal"];

/** The same numbers each time. */
export function random(seed) {
	let state = seed >>> 0;
	return () => {
		state = (state + 0x6d2b79f5) >>> 0;
		let t = Math.imul(state ^ (state >>> 15), 1 | state);
		t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
		return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
	};
}

class Bytes {
	constructor() {
		this.buffer = Buffer.alloc(1 << 16);
		this.length = 0;
	}

	put(value) {
		if (this.length + 16 > this.buffer.length) this.buffer = Buffer.concat([this.buffer, Buffer.alloc(this.buffer.length)]);
		while (value >= 128) {
			this.buffer[this.length++] = (value % 128) + 128;
			value = Math.floor(value / 128);
		}
		this.buffer[this.length++] = value;
	}

	signed(value) {
		this.put(value < 0 ? -2 * value - 1 : 2 * value);
	}

	done() {
		return this.buffer.subarray(0, this.length);
	}
}

/** Blocks of the interval [from, to), by what becomes of them. A block: {stack, thread, heap, born, died, bytes}. */
export function inspect(blocks, from, to) {
	const amount = () => ({ count: 0, bytes: 0 });
	const out = { size: amount(), impacting: amount(), transient: amount(), aofi: amount(), aofo: amount(), aofi_unknown: 0, lived: 0 };
	const add = (what, block) => {
		what.count++;
		what.bytes += block.bytes ?? 0;
	};
	for (const block of blocks) {
		const born = block.born ?? -1;
		const died = block.died ?? Infinity;
		if (born >= to || died < from) continue;
		if (born >= from) {
			add(out.size, block);
			add(died < to ? out.transient : out.impacting, block);
			if (died < to) out.lived += died - born;
		} else if (died < to) {
			add(out.aofi, block);
			if (block.bytes === null) out.aofi_unknown++;
		} else if (block.born !== null) add(out.aofo, block); // what is older than the window shows only when it goes
	}
	return out;
}

/** The most outstanding at the ends of bins of blocks born in [from, to). */
export function peak(blocks, from, to, bin) {
	let best = { bytes: 0, at: from };
	for (let end = from + bin; end < to + bin; end += bin) {
		const at = Math.min(end, to);
		let bytes = 0;
		for (const block of blocks) if (block.born !== null && block.born >= from && block.born < at && (block.died ?? Infinity) >= at) bytes += block.bytes ?? 0;
		if (bytes > best.bytes) best = { bytes, at };
	}
	return best;
}

function rowsOf(blocks, keyOf) {
	const rows = new Map();
	for (const block of blocks) {
		const key = keyOf(block);
		if (!key) continue;
		const name = key.join();
		const row = rows.get(name) ?? { key, count: 0, bytes: 0, unknown: 0, lived: 0 };
		row.count++;
		row.bytes += block.bytes ?? 0;
		row.unknown += block.bytes === null ? 1 : 0;
		if (block.died !== null && block.born !== null) row.lived += block.died - block.born;
		rows.set(name, row);
	}
	return [...rows.values()].sort((a, b) => {
		for (let i = 0; i < a.key.length; i++) if (a.key[i] !== b.key[i]) return a.key[i] - b.key[i];
		return 0;
	});
}

function bornDied(block, bin, end) {
	const born = block.born === null ? -1 : Math.floor(block.born / bin);
	const died = block.died === null || block.died >= end ? 0 : Math.floor(block.died / bin) - Math.max(born, 0) + 1;
	return [born + 1, died];
}

/** A mean of some lifetimes as the page has it: of 8 bits, rounded. */
export function roughly(mean) {
	let shift = 0;
	while (mean / 2 ** shift >= 256) shift++;
	return [shift, Math.floor(mean / 2 ** shift + (shift ? 0.5 : 0))];
}

/** Rows of {key, count, bytes, unknown, lived} as columns, as src/output/html.c puts them. */
export function putTable(out, rows, lifetimes = false) {
	const before = (i, at) => (i ? rows[i - 1].key[at] : 0);
	rows.forEach(({ key }, i) => out.signed(key[0] - before(i, 0)));
	for (const at of [1, 2]) for (const { key } of rows) out.put(key[at]);
	rows.forEach(({ key }, i) => out.signed(key[3] - before(i, 3)));
	for (const { key } of rows) out.put(key[4]);
	for (const { count } of rows) out.put(count);
	let blocks = 0;
	let sum = 0;
	rows.forEach(({ key, count, bytes }, i) => {
		if (key[0] !== before(i, 0)) blocks = sum = 0;
		out.signed(bytes - count * (blocks ? Math.floor(sum / blocks) : 0));
		blocks += count;
		sum += bytes;
	});
	if (lifetimes) return rows.length;
	for (const { unknown } of rows) out.put(unknown);
	for (const { count, lived } of rows) {
		const [shift, mean] = roughly(count ? Math.floor(lived / count) : 0);
		out.put(shift * 128 + mean);
	}
	return rows.length;
}

function putCells(out, blocks, bin, end, owned = true) {
	return putTable(out, rowsOf(blocks, (block) => [block.stack, owned ? block.thread : Math.min(block.thread, 1), owned ? block.heap : 0, ...bornDied(block, bin, end)]));
}

function putLifetimes(out, blocks, stacks, bin, end) {
	const rows = rowsOf(blocks, (block) => {
		if (block.bytes === null || block.born === null) return null;
		const lived = block.died === null || block.died >= end ? null : block.died - block.born;
		const life = lived === null ? 255 : lived === 0 ? 0 : Math.floor(4 * Math.log2(lived));
		const size = block.bytes === 0 ? 0 : 1 + Math.floor(4 * Math.log2(block.bytes));
		return [size, life, KINDS.indexOf(stacks[block.stack].kind), ...bornDied(block, bin, end)];
	});
	return putTable(out, rows, true);
}

function amounts(blocks, end) {
	const sums = inspect(blocks, 0, end);
	const { lived, ...rest } = sums;
	void lived;
	return { ...rest, peak: { bytes: peak(blocks, 0, end, end / 64).bytes, count: 0, at: 0 } };
}

/**
 * A process: {report (overrides), stacks [{id, kind, api, suspect, frames, growth}], threads [{tid, name}], heaps,
 * blocks, bin, end, lifeTimes (how many bins are one of lifetimes), marks}. Times in ns.
 */
function reportOf(process) {
	const { blocks, stacks, threads, end } = process;
	const of = (kind) => blocks.filter((block) => stacks[block.stack].kind === kind);
	const counted = blocks.filter((block) => stacks[block.stack].kind !== "vm-internal");
	const modules = [...new Set(stacks.map((stack) => stack.suspect))].map((module) => {
		const { size, impacting, transient } = inspect(counted.filter((block) => stacks[block.stack].suspect === module), 0, end);
		return { module, size, impacting, transient };
	});
	return {
		schema: "memwatch.report/1",
		target: { pid: 4711, comm: "shop", exe: "/usr/bin/shop", command: ["/usr/bin/shop", "--serve"], exit_status: null, exit_signal: null },
		window: { started: "2026-03-01T12:00:00.000000Z", seconds: end / 1e9, from: 0, to: end / 1e9, ended: "duration", limit: null },
		engine: { name: "jump", reason: "auto: it can be used on this process", stops: 2, longest_stop_ns: 4e6, stopped_share: 0.002, left_behind: null, hooks: [] },
		complete: true,
		lost: { events: 0, stacks: 0, not_hooked: [] },
		totals: Object.fromEntries(KINDS.map((kind) => [kind, amounts(of(kind), end)])),
		address_space: null,
		memory: [0, 0.25, 0.5, 0.75, 1].map((share) => ({ at: (share * end) / 1e9, rss: 40e6 + share * 8e6, pss: null, vsize: 900e6 + share * 30e6, heap_impacting: 0, vm_impacting: 0 })),
		modules,
		threads: threads.map(({ tid, name }, i) => ({ tid, name, ...inspect(counted.filter((block) => block.thread === i + 1), 0, end) })),
		stacks: stacks.map((stack, i) => ({
			truncated: stack.cut === "depth",
			cut: null,
			end: null,
			oldest: null,
			newest: null,
			growth: null,
			lifetime_ns: null,
			...stack,
			...amounts(process.quick ? [] : blocks.filter((block) => block.stack === i), end),
		})),
		...process.report,
	};
}

/** The page of some processes, as text. `more`: what it has beside them. */
export function makePage(processes, more = {}) {
	const cells = new Bytes();
	const own = processes.map((process) => {
		const offset = cells.length;
		const rows = process.putCells ? process.putCells(cells) : putCells(cells, process.blocks, process.bin, process.end, !process.ownersTimes);
		const length = cells.length - offset;
		// How many bins are one of those that tell threads and heaps apart.
		let owners;
		if (process.ownersTimes) {
			const unit = process.bin * process.ownersTimes;
			const from = cells.length;
			const count = process.putOwners ? process.putOwners(cells) : putCells(cells, process.blocks, unit, process.end);
			owners = { offset: from, length: cells.length - from, rows: count, bins: Math.ceil(process.end / unit), bin_ns: unit };
		}
		const lifeOffset = cells.length;
		const unit = process.bin * (process.lifeTimes ?? 1);
		const lifeRows = process.putLifetimes ? process.putLifetimes(cells) : putLifetimes(cells, process.blocks, process.stacks, unit, process.end);
		return {
			bin_ns: process.bin,
			bins: Math.ceil(process.end / process.bin),
			from_ns: 0,
			to_ns: process.end,
			threads: process.threads.map((_, i) => i),
			heaps: process.heaps,
			space: process.space ?? null,
			marks: process.marks ?? [],
			coarse: Boolean(owners),
			cells: { offset, length, rows, bins: Math.ceil(process.end / process.bin), bin_ns: process.bin },
			owners,
			lifetimes: { offset: lifeOffset, length: cells.length - lifeOffset, rows: lifeRows, bins: Math.ceil(process.end / unit), bin_ns: unit },
		};
	});
	const reports = processes.map(reportOf);
	const report = reports.length === 1 ? reports[0] : { schema: "memwatch.report/1", processes: reports };
	return fillPage({ version: 2, ...more, report, processes: own }, cells.done());
}

export function fillPage(data, cells) {
	const pack = (raw) => deflateSync(raw).toString("base64");
	return readFileSync(PAGE, "utf8")
		.replace("@@MEMWATCH_REPORT@@", () => pack(Buffer.from(JSON.stringify(data))))
		.replace("@@MEMWATCH_CELLS@@", () => pack(cells));
}

export function frame(name, module, file = null, line = null, more = {}) {
	return { function: name, module, offset: 18, address: 0x400000, file, line, inlined: false, ...more };
}

export const growth = (verdict, more = {}) => ({ verdict, certain: true, bytes_per_second: 86000, steadiness: 0.99, floor_start: 1000, floor_end: 400000, growing_until: 5, freed_share: 0, oldest_age: 5, newest_age: 0.002, settle_age: 0, settled: { count: 0, bytes: 0 }, ...more });

export const HOSTILE = {
	script: '<script>window.hacked = true</script><img src=x onerror="window.hacked = true">',
	quotes: `it's "quoted" & <b>bold</b> \`\${window.hacked = true}\``,
	rtl: "harmless\u202Egnp.exe\u2066",
	long: `std::map<${"shop::Order<int, std::allocator<char> >, ".repeat(240)}shop::Last>::insert`,
};

/** A shop that leaks, caches, churns and maps, with names as bad as they come. Ten seconds in bins of 50 ms. */
export function shop(seed = 1, more = {}) {
	const main = "/usr/bin/shop";
	const start = [frame("main", main, "/src/shop/main.c", 12), frame("__libc_start_main", "/lib/libc.so.6")];
	const serve = [frame("serve", main, "/src/shop/serve.c", 88), ...start];
	const libc = frame("__libc_malloc", "/lib/libc.so.6", "./malloc/malloc.c", 3300);
	const stacks = [
		{ id: "2b172cf5209ba27e", kind: "heap", api: "malloc", suspect: main, frames: [frame("leak_session", main, "/src/shop/session.c", 26), ...serve], growth: growth("steady growth", { certain: false }) },
		{ id: "b33c8827f0e6e4dc", kind: "heap", api: "calloc", suspect: main, frames: [frame("fill_cache", main, "/src/shop/cache.c", 45), ...serve], growth: growth("plateau", { bytes_per_second: 900, growing_until: 2.5 }) },
		{ id: "405d0c6526b134b2", kind: "heap", api: "malloc", suspect: main, frames: [libc, frame("std::string::append", main), frame("parse_request", main, "/src/shop/parse.c", 7), ...serve], growth: growth("churn", { freed_share: 0.98 }) },
		{ id: "00c0ff0000000001", kind: "vm", api: "mmap", suspect: main, frames: [frame("map_buffer", main, "/src/shop/map.c", 3), ...start], growth: growth("one-off") },
		{ id: "00c0ff0000000002", kind: "vm-internal", api: "mmap", suspect: null, frames: [frame("sysmalloc", "/lib/libc.so.6"), libc], growth: null },
		{ id: "00c0ff0000000003", kind: "heap", api: "malloc", suspect: "/opt/<b>evil</b>.so", frames: [frame(HOSTILE.script, "/opt/<b>evil</b>.so", "/src/\"><script>.c", 1), ...serve], growth: growth("too short to tell", { certain: false }) },
		{ id: "00c0ff0000000004", kind: "heap", api: "malloc", suspect: "/opt/<b>evil</b>.so", frames: [frame(HOSTILE.rtl, "/opt/<b>evil</b>.so"), frame(HOSTILE.quotes, "/opt/<b>evil</b>.so"), ...serve], growth: growth("stepwise growth", { certain: false }) },
		{ id: "00c0ff0000000005", kind: "heap", api: "operator new", suspect: "/opt/libshop.so", frames: [frame(HOSTILE.long, "/opt/libshop.so", "/src/order.hpp", 99), frame(null, "/opt/libshop.so", null, null, { offset: 0x1234 }), ...serve], growth: growth("one-off"), cut: "no unwind information" },
		{ id: "00c0ff0000000006", kind: "heap", api: "realloc", suspect: null, frames: [libc], growth: growth("plateau") },
	];
	const threads = [{ tid: 4711, name: "shop" }, { tid: 4712, name: "worker <1>" }];
	const heaps = ["main", "arena 1"];
	const bin = 50e6;
	const end = more.end ?? 10e9;
	const rand = random(seed);
	const blocks = [];
	const whole = (value) => Math.floor(value);
	const add = (stack, born, died, bytes) => {
		const kind = stacks[stack].kind;
		// Times lie off the bins' edges.
		blocks.push({ stack, thread: born === null ? 0 : rand() < 0.7 ? 1 : 2, heap: kind === "heap" ? (rand() < 0.1 ? 0 : rand() < 0.6 ? 1 : 2) : 0, born: born === null ? null : whole(born), died: died === null || died >= end ? null : whole(died), bytes });
	};
	for (let i = 0; i < 900; i++) add(0, rand() * end, null, 192 + (i % 7) * 16);
	for (let i = 0; i < 300; i++) add(1, rand() * end * 0.25, rand() < 0.1 ? rand() * end * 0.5 + end * 0.4 : null, 128);
	for (let i = 0; i < 4000; i++) {
		const born = rand() * end;
		add(2, born, born + 1e4 * 10 ** (rand() * 4.5), whole(2 ** (rand() * 14)));
	}
	for (let i = 0; i < 8; i++) {
		const born = rand() * end;
		add(3, born, i % 2 ? born + 0.4e9 : null, 65536 * (i + 1));
	}
	for (let i = 0; i < 6; i++) add(4, rand() * end, i < 2 ? null : end * 0.99, 132 * 1024);
	for (let i = 0; i < 40; i++) add(5, rand() * end, rand() < 0.5 ? null : end * 0.9, i * 3);
	for (let i = 0; i < 30; i++) add(6, rand() * end, null, 1000);
	for (let i = 0; i < 25; i++) add(7, end * 0.6 + rand() * 1e6, null, 4096);
	for (let i = 0; i < 50; i++) add(8, null, rand() * end, rand() < 0.5 ? null : 64);
	for (let i = 0; i < 10; i++) add(8, rand() * end, null, 0);
	for (const block of blocks) if (block.died !== null && block.born !== null && block.died < block.born) block.died = block.born;
	return { stacks, threads, heaps, blocks, bin, end, lifeTimes: 2, marks: [{ at_ns: 4e9, name: "deployed <b>" }], space: space(), ...more };
}

function space() {
	const region = (reserved, resident, count) => ({ reserved, resident, count });
	const moment = (grown) => ({
		heap: region(135168 + grown, 4096 + grown, 1), arena: region(67108864, 364544, 2), stack: region(33689600, 45056, 5), anonymous: region(483328, 32768 + grown, 8), file_text: region(1560576, 1093632, 3),
		file_data: region(598016, 389120, 6), shared: region(0, 0, 0), memwatch: region(0, 0, 0), special: region(36864, 8192, 4),
	});
	return {
		start: moment(0),
		end: moment(400000),
		named: [
			{ name: "class space", start: region(65536, 4096, 1), end: region(65536, 8192, 1) },
			{ name: "<b>Java heap</b>", start: region(262144, 16384, 2), end: region(262144, 24576, 2) },
		],
		arenas: { start: { used: 100000, free: 5000, size: 105000 }, end: { used: 480000, free: 20000, size: 500000 } },
		unattributed: [{ address: 0x7f0000000000, bytes: 2097152, resident: null, kind: "anonymous", path: "/tmp/<i>x</i>" }],
	};
}

/* --- looks at heaps: schema memwatch.heap/1 --------------------------------------------------------------------- */

export const REACHES = ["definite", "indirect", "possible", "reachable"];

export const amount = (count, bytes) => ({ count, bytes });

export function group(verdict, count, bytes, more = {}) {
	return { class: null, size: bytes / count, allocator: "glibc", arena: null, verdict, blocks: amount(count, bytes), stack: null, holder: null, sample: ["0x55d0c0de1000"], ...more };
}

/** What the groups sum to, by verdict. */
export function leaksOf(groups) {
	return Object.fromEntries(REACHES.map((verdict) => [verdict, groups.filter((one) => one.verdict === verdict).reduce((sum, { blocks }) => amount(sum.count + blocks.count, sum.bytes + blocks.bytes), amount(0, 0))]));
}

/** A look at a shop's heap, with names as bad as they come. */
export function shopHeap(more = {}) {
	const groups = [
		group("definite", 500, 96000, { class: HOSTILE.script }),
		group("definite", 3, 96, { class: null }),
		group("indirect", 500, 32000, { class: "shop::Line" }),
		group("possible", 2, 8192, { size: null, holder: ["global shop::buffers (server.cpp:12)", "block of 4096 bytes"] }),
		group("reachable", 1000, 4000000, { class: "shop::Session", arena: "arena 1", holder: ["global shop::sessions (server.cpp:12)", "std::unordered_map node", "shop::Session"], sample: ["0x7f0000001000", "0x7f0000002000"] }),
		group("reachable", 1000, 64000, { class: "std::string", holder: ["global shop::sessions (server.cpp:12)", "std::unordered_map node", "shop::Session", "std::string"] }),
		group("reachable", 40, 20000, { class: HOSTILE.long, holder: ["stack of thread 4712 (worker <1>): serve, frame 3", HOSTILE.long] }),
		group("reachable", 10, 5000, { class: HOSTILE.rtl, holder: [HOSTILE.rtl, HOSTILE.quotes] }),
		group("reachable", 7, 700, { allocator: null, holder: null }),
	];
	const account = [
		{ name: "live blocks", detail: "glibc 2.36, main", bytes: 4227072, swapped: 8192 },
		{ name: "free, kept by the allocator", detail: "glibc 2.36, main", bytes: 2097152, swapped: 0 },
		{ name: "code", detail: "", bytes: 1204224, swapped: 0 },
		{ name: "live blocks", detail: "glibc 2.36, threads' arenas", bytes: 262144, swapped: 0 },
		{ name: "other anonymous memory", detail: HOSTILE.script, bytes: 131072, swapped: 0 },
		{ name: "shared memory", detail: HOSTILE.rtl, bytes: 65536, swapped: 0 },
		{ name: "stacks", detail: "", bytes: 20480, swapped: 0 },
		{ name: "something new", detail: HOSTILE.long, bytes: 4096, swapped: 0 },
		{ name: "allocator bookkeeping", detail: "", bytes: 1, swapped: 0 },
		{ name: "file data", detail: "", bytes: 0, swapped: 4096 },
	];
	const allocators = [
		{ name: "glibc", version: "2.36", module: "/lib/<b>libc</b>.so.6", walked: true, why: null, arenas: 2, live: amount(3062, 4225988), free: amount(12, 2100000), retained: { bytes: 2097152 }, trimmable: { bytes: 1048576 }, cached: { bytes: 4096 }, pinned: { pages: 3, bytes: 9000 }, skipped: { bytes: 0 } },
		{ name: "tcmalloc", version: "", module: null, walked: false, why: "its version is <i>not</i> known", arenas: 0, live: amount(0, 0), free: amount(0, 0), retained: { bytes: 0 }, trimmable: null, cached: { bytes: 0 }, pinned: { pages: 0, bytes: 0 }, skipped: { bytes: 0 } },
	];
	return {
		schema: "memwatch.heap/1",
		target: { pid: 4711, comm: "</title>shop", exe: "/usr/bin/shop" },
		started: "2026-03-01T12:00:00.000000Z",
		method: "fork",
		why: null,
		pause_ns: 12000000,
		seconds: 0.3,
		scanned: 5000000,
		unread: 0,
		rss: account.reduce((sum, line) => sum + line.bytes, 0),
		swapped: 12288,
		page_tables: 40960,
		leaks: leaksOf(groups),
		account,
		allocators,
		groups,
		skipped: [{ start: "0x7f0000000000", bytes: 4096, why: "a chunk's size is wrong" }],
		advice: ["malloc_trim(0) would return 1.0 MiB to the system", "<b>bold</b> advice"],
		...more,
	};
}

export function makeHeapPage(heap) {
	return fillPage({ version: 2, heap }, Buffer.alloc(0));
}
