// SPDX-License-Identifier: MIT
// types.ts: the report as memwatch writes it (SPEC of --json, and ../FORMAT.md). Times are seconds, sizes bytes.

export interface Amount {
	count: number;
	bytes: number;
	error?: { count: number; bytes: number }; // standard error, where blocks are sampled
}

/** How heap blocks were sampled: one in so many bytes. */
export interface Sampling {
	interval: number; // the largest
	intervals: { bytes: number; from: number | null; blocks: number }[];
	from: number; // seconds into the window: before that every block was recorded …
	why?: string | null; // … and why not since then
	unseen: number; // a stack that has more bytes is seen with a probability of 95 %
}

export interface Frame {
	function: string | null;
	module: string | null;
	offset: number;
	address: number;
	file: string | null;
	line: number | null;
	inlined: boolean;
	language?: string; // "native" where it is not told
	interprets?: boolean; // an interpreter's own, on a stack of a script
}

export interface Growth {
	verdict: string;
	certain: boolean;
	bytes_per_second: number;
	steadiness: number;
	floor_start: number;
	floor_end: number;
	growing_until: number;
	freed_share: number;
	oldest_age: number;
	newest_age: number;
	settle_age: number;
	settled: Amount;
}

export type KindName = "heap" | "vm" | "vm-internal";

export interface Stack {
	id: string;
	kind: KindName;
	api: string | null;
	truncated: boolean;
	cut: string | null;
	end: string | null;
	suspect: string | null;
	frames: (Frame | number)[];
	charged?: number | null; // which of them is the line that it is charged to
	size: Amount;
	impacting: Amount;
	transient: Amount;
	aofi: Amount | null; // null: not known
	peak: { bytes: number; count: number; at: number };
	lifetime_ns: { min: number; median: number; p99: number; max: number } | null;
	oldest: number | null;
	newest: number | null;
	growth: Growth | null;
	settled_later?: Amount; // of impacting: freed within the settling time
	leaks?: Leaks | null; // of impacting, by a look at the window's end
	holder?: string[] | null; // how one of those that are held is held, root first
}

export type Reach = "definite" | "indirect" | "possible" | "reachable";

/** By whether the process can still get at the blocks. */
export type Leaks = Record<Reach, Amount>;

/** Stacks that come from one line of own code, and are judged alike. */
export interface Suspect {
	line: number | null;
	function: string | null;
	file: string | null;
	module: string | null;
	verdict: string;
	certain: boolean;
	bytes: number;
	blocks: number;
	freed: number; // blocks
	bytes_per_hour: number; // 0: it does not grow
	seconds_to_limit: number | null;
	stacks: string[]; // ids
	sentence: string;
	error?: { bytes: number; blocks: number; low: number; high: number; sampled: number }; // where its blocks are sampled
	pool?: Pool; // where its blocks are a pool's
}

export interface Pool {
	name: string;
	hint: string | null; // where no user is known
	users: { name: string; path: string; example: string; blocks: Amount }[]; // most bytes first
	others: Amount;
}

export interface Totals {
	size: Amount;
	impacting: Amount;
	transient: Amount;
	aofi: Amount | null; // null: not known
	aofi_unknown: number | null;
	aofo: Amount;
	peak: { bytes: number; count: number; at: number };
}

export interface Sample {
	at: number;
	rss: number | null;
	pss: number | null;
	vsize: number | null;
	heap_impacting: number | null;
	vm_impacting: number | null;
}

export interface Region {
	reserved: number;
	resident: number | null;
	count: number;
}

export interface Arenas {
	used: number;
	free: number;
	size: number;
}

export interface Space {
	start: Record<string, Region> | null;
	end: Record<string, Region> | null;
	named?: { name: string; start: Region; end: Region }[]; // parts of "anonymous" that a runtime has described
	arenas: { start: Arenas | null; end: Arenas | null } | null;
	unattributed:
		| { address: number; bytes: number; resident: number | null; kind: string; path: string | null }[]
		| null;
}

export interface Report {
	schema: string;
	target: { pid: number; comm: string | null; exe: string | null; command: string[] | null; launched?: boolean | null; exit_status: number | null; memory_limit?: { bytes: number; of: "cgroup" | "machine" } | null };
	window: {
		started: string | null;
		seconds: number;
		from: number;
		to: number;
		ended: string;
		limit: { of: string; share?: number; bytes?: number } | null;
		settle?: number | null;
	};
	children?: { pid: number; comm: string | null; watched: boolean }[] | null;
	nameless?: string[]; // modules
	nameless_hint?: string | null; // how the names are had …
	nameless_command?: string | null; // … by a shell
	runtimes?: { name: string; text: string; heap?: string | null }[];
	rss_growth?: { bytes: number; blocks: number; unexplained: boolean; other: Record<string, number> | null } | null;
	engine: {
		name: string | null;
		reason: string | null;
		stops: number;
		longest_stop_ns: number;
		stopped_share: number;
		own_cpu_ns?: number | null;
		left_behind: string | null;
		hooks: { function: string | null; module: string | null; role: string | null; refused: string | null }[];
	};
	complete: boolean;
	sampling?: Sampling | null;
	lost: { events: number; stacks: number; not_hooked: { function: string | null; module: string | null; why: string | null }[] };
	cut?: string | null;
	totals: Record<KindName, Totals | null>;
	address_space: Space | null;
	memory: Sample[];
	modules: { module: string | null; size: Amount; impacting: Amount; transient: Amount }[];
	threads: { tid: number; name: string | null }[];
	stacks: Stack[];
	suspects?: Suspect[];
	leaks?: Leaks | null;
	frames?: Frame[];
}

export interface Place {
	offset: number;
	length: number;
	rows: number;
}

export interface PageProcess {
	bin_ns: number;
	bins: number;
	from_ns: number;
	to_ns: number;
	threads: (number | null)[];
	coarse?: boolean;
	heaps: (string | null)[];
	space: Space | null;
	marks?: { at_ns: number; name: string | null }[];
	cells: Place & { bins: number; bin_ns: number };
	owners?: Place & { bins: number; bin_ns: number };
	lifetimes: Place & { bins: number; bin_ns: number };
}

/** Which frames of a stack are shown: all; with an interpreter's as one; or scripts' alone, where it has any. */
export type Frames = "all" | "own" | "script";

export interface Page {
	version: number;
	frames?: Frames; // at first
	report: Report | { schema: string; processes: Report[] };
	processes: PageProcess[];
}

/* --- a look at a heap: schema memwatch.heap/1, see ../../json_heap.c ------------------------------------------- */

export interface HeapLine {
	name: string;
	detail: string;
	bytes: number;
	swapped: number;
}

export interface HeapAllocator {
	name: string;
	version: string;
	module: string | null;
	walked: boolean;
	why: string | null;
	arenas: number;
	live: Amount;
	free: Amount;
	retained: { bytes: number };
	trimmable: { bytes: number } | null;
	cached: { bytes: number };
	skipped: { bytes: number };
}

export interface HeapGroup {
	class: string | null;
	size: number | null; // null: various
	allocator: string | null;
	arena: string | null;
	verdict: Reach | null;
	blocks: Amount;
	stack: string | null;
	holder: string[] | null; // root first; null: not looked for, or none
	sample: string[]; // addresses
	contents?: HeapContent[]; // of the first samples, where they were asked for
}

export interface HeapContent {
	address: string;
	size: number;
	hex: string; // the first bytes
	notes: { offset: number; text: string }[];
}

/** What is held by way of one thing, and what of it is that thing's own. */
export interface Holder {
	name: string;
	retained: Amount;
	own: Amount;
	children: Holder[];
}

export interface Heap {
	schema: string;
	target: { pid: number; comm: string | null; exe: string | null };
	started: string | null;
	method: "fork" | "live";
	why: string | null; // no copy was read
	pause_ns: number;
	seconds: number;
	scanned: number;
	unread: number;
	rss: number;
	swapped: number;
	page_tables: number | null;
	leaks: Leaks;
	account: HeapLine[];
	allocators: HeapAllocator[];
	groups: HeapGroup[];
	holders?: Holder[] | null;
	skipped: { start: string; bytes: number; why: string }[];
	advice: string[];
}

export interface HeapPage {
	version: number;
	heap: Heap;
}
