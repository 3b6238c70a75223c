// SPDX-License-Identifier: MIT
/*
 * model.ts: the report and its cells, in the form that the views use.
 *
 * Cells come sorted by stack, thread and heap: each stretch of cells that share these three is a run. Groups
 * are sums of runs, so a change of the interval is one pass over the cells, and all views then use the runs.
 */
import { type Cells, type Lifetimes, decodeCells, decodeLifetimes, newCells } from "./decode";
import { ownName } from "./format";
import type { Frame, Frames, Page, PageProcess, Report, Stack, Suspect } from "./types";

export const KINDS = ["heap", "vm", "vm-internal"] as const;
export const HEAP = 0;
export const VM = 1;
export const INTERNAL = 2;
export const NO_HEAP = "(none: a mapping)";

/** Texts by number; number 0 is null, "not known". */
export class Texts {
	readonly list: (string | null)[] = [null];
	private readonly numbers = new Map<string, number>();

	number(text: string | null | undefined): number {
		if (text === null || text === undefined) return 0;
		let number = this.numbers.get(text);
		if (number === undefined) {
			number = this.list.length;
			this.numbers.set(text, number);
			this.list.push(text);
		}
		return number;
	}
}

export interface Process {
	index: number;
	report: Report;
	page: PageProcess;
	firstStack: number;
	firstCell: number;
	firstRun: number;
	endRun: number;
	lifetimes: Lifetimes;
}

export interface Thread {
	process: number;
	tid: number | null;
	name: string | null;
}

export interface Runs {
	count: number;
	start: Uint32Array; // count + 1 of them
	stack: Uint32Array;
	thread: Uint32Array;
	heap: Uint32Array;
	process: Uint16Array;
}

const LIBRARY = ["std::", "__gnu_cxx::", "operator new", "__rust_", "__rustc::__rust", "__rdl_"];
const RUST = ["alloc::", "core::", "hashbrown::"];

/** Of a standard library: see src/base/function_name.c. */
function isLibrary(name: string | null): boolean {
	if (!name) return false;
	const own = ownName(name).replace(/^<([^:]* as )?/, "");
	const is = (prefix: string): boolean => own.startsWith(prefix);
	// Namespaces of C++ programs have such names too; names of Rust's have no parameters.
	return LIBRARY.some(is) || (RUST.some(is) && !/\)[^>:]*$/.test(own));
}

/** Where a system has its libraries: see is_of_system() in src/view/suspects.c. */
const SYSTEM = /^([^/]|\/(usr\/(local\/)?)?lib|\/nix\/store|\/snap\/core)/;

/** Is it of a script, which has frames beside those of what runs it? See mw_language_is_script(). */
export function isScript({ language }: Frame): boolean {
	return language !== undefined && language !== "native" && language !== "go";
}

/** Of the language's installation, or of no file: see is_own_script() in src/view/suspects.c. */
const INSTALLED = /^<|\/lib\/python3[./]/;

/** A frame that is shown: the stack's own, or what stands for `count` of an interpreter's from number `at` on. */
export interface Shown {
	frame: Frame;
	at: number;
	count: number;
}

const INTERPRETER: Frame = { function: "(interpreter)", module: null, offset: 0, address: 0, file: null, line: null, inlined: false, interprets: true };

export class Model {
	readonly processes: Process[] = [];
	readonly stacks: Stack[] = [];
	readonly cells: Cells;
	readonly runs: Runs;
	readonly threads: Thread[] = [];
	readonly modules = new Texts();
	readonly apis = new Texts();
	readonly heaps = new Texts();
	readonly ids = new Texts();
	/** Functions that stacks are charged to; number 0 is none. */
	readonly functions: ({ name: string | null; module: string | null } | null)[] = [null];
	/** Where there are too many threads and heaps for the cells: the model that tells them apart. */
	readonly owners: Model | null = null;
	private readonly firstThread: number[] = [];
	private readonly programs = new Set<string | null>();
	/** Lines that stacks are charged to; number 0 is none. */
	readonly lines: (Frame | null)[] = [null];
	readonly languages = new Texts();
	/** Does any stack have frames of a script? Else all frames are shown in any case. */
	readonly hasScripts: boolean;
	readonly firstFrames: Frames;
	shownFrames: Frames;
	/** By stack; undefined where the report suspects none of it. */
	readonly suspects: (Suspect | undefined)[] = [];
	/** By stack: */
	readonly stackProcess: Uint16Array;
	readonly stackKind: Uint8Array;
	readonly stackModule: Uint32Array;
	readonly stackFunction: Uint32Array;
	readonly stackLine: Uint32Array;
	readonly stackLanguage: Uint32Array;
	readonly stackApi: Uint32Array;
	readonly stackId: Uint32Array;
	private readonly charged: (Frame | null)[] = [];

	constructor(page: Page, raw: Uint8Array) {
		this.shownFrames = this.firstFrames = page.frames ?? "own";
		const reports = "processes" in page.report ? page.report.processes : [page.report];
		let rows = 0;
		reports.forEach((report, index) => {
			const own = page.processes[index]!;
			this.processes.push({
				index,
				report,
				page: own,
				firstStack: this.stacks.length,
				firstCell: rows,
				firstRun: 0,
				endRun: 0,
				lifetimes: decodeLifetimes(raw, own),
			});
			const suspects = new Map<string, Suspect>();
			for (const suspect of report.suspects ?? []) for (const id of suspect.stacks) suspects.set(id, suspect);
			for (const stack of report.stacks) {
				this.stacks.push(stack);
				this.suspects.push(stack.growth && stack.kind !== "vm-internal" ? suspects.get(stack.id) : undefined);
			}
			for (const name of own.heaps) this.heaps.number(name);
			const first = this.threads.length;
			for (const { tid, name } of report.threads) this.threads.push({ process: index, tid, name });
			this.threads.push({ process: index, tid: null, name: null });
			this.firstThread.push(first);
			this.programs.add(report.target.exe);
			rows += own.cells.rows;
		});
		const count = this.stacks.length;
		this.stackProcess = new Uint16Array(count);
		this.stackKind = new Uint8Array(count);
		this.stackModule = new Uint32Array(count);
		this.stackFunction = new Uint32Array(count);
		this.stackLine = new Uint32Array(count);
		this.stackLanguage = new Uint32Array(count);
		this.stackApi = new Uint32Array(count);
		this.stackId = new Uint32Array(count);
		this.cells = newCells(rows);
		for (const process of this.processes) {
			decodeCells(raw, process.page.cells, this.cells, process.firstCell, process.firstStack);
			this.numberStacks(process);
		}
		this.hasScripts = this.stacks.some((_, stack) => this.frames(stack).some(isScript));
		this.runs = this.findRuns();
		if (page.processes.some(({ owners }) => owners)) this.owners = this.withOwners(raw);
	}

	/* The model by threads and heaps, which have cells of their own in longer bins. */
	private withOwners(raw: Uint8Array): Model {
		const processes = this.processes.map((process) => ({ ...process, page: { ...process.page } }));
		const places = processes.map(({ page }) => page.owners ?? page.cells);
		const cells = newCells(places.reduce((sum, { rows }) => sum + rows, 0));
		let row = 0;
		processes.forEach((process, i) => {
			const place = places[i]!;
			if (process.page.owners) Object.assign(process.page, { bin_ns: place.bin_ns, bins: place.bins, coarse: false });
			process.firstCell = row;
			decodeCells(raw, place, cells, row, process.firstStack);
			row += place.rows;
		});
		const out = Object.create(this) as { processes: Process[]; cells: Cells; runs: Runs; owners: null; findRuns(): Runs };
		out.owners = null;
		out.processes = processes;
		out.cells = cells;
		out.runs = out.findRuns();
		return out as unknown as Model;
	}

	frames(stack: number): Frame[] {
		const own = this.stacks[stack]!;
		const shared = this.processes[this.stackProcess[stack]!]!.report.frames;
		if (shared && own.frames.length && typeof own.frames[0] === "number")
			return own.frames.map((number) => shared[number as number]!);
		return own.frames as Frame[];
	}

	/** Those that are to be shown. */
	shown(stack: number): Shown[] {
		const frames = this.frames(stack);
		const scripts = this.shownFrames === "script" && frames.some(isScript);
		const out: Shown[] = [];
		for (let at = 0; at < frames.length; at++) {
			const frame = frames[at]!;
			if (scripts && !isScript(frame)) continue;
			const last = out[out.length - 1];
			if (this.shownFrames === "all" || !frame.interprets) out.push({ frame, at, count: 1 });
			else if (last?.frame === INTERPRETER && last.at + last.count === at) last.count++;
			else out.push({ frame: INTERPRETER, at, count: 1 });
		}
		return out;
	}

	/** Whose code a frame is: own (of any module but the system's libraries), a library's, or in no file. */
	codeOf(frame: Frame): "own" | "library" | "none" {
		const { module, function: name } = frame;
		if (isScript(frame)) return INSTALLED.test(frame.file ?? "<") ? "library" : "own";
		if (frame.interprets) return "library";
		if (module === null) return "none";
		return isLibrary(name) || (SYSTEM.test(module) && !this.programs.has(module)) ? "library" : "own";
	}

	/** The frame that a stack is charged to: see src/view/group.c. */
	chargedFrame(stack: number): Frame | null {
		let known = this.charged[stack];
		if (known !== undefined) return known;
		const suspect = this.stacks[stack]!.suspect;
		known = null;
		if (suspect !== null) {
			for (const frame of this.frames(stack)) {
				if (frame.module !== suspect) continue;
				known ??= frame;
				if (!isLibrary(frame.function)) {
					known = frame;
					break;
				}
			}
		}
		this.charged[stack] = known;
		return known;
	}

	/** The line that a suspect would be charged to: the report says which. */
	chargedLine(stack: number): Frame | null {
		const frames = this.frames(stack);
		return frames[this.stacks[stack]!.charged ?? 0] ?? null;
	}

	private readonly lineNumbers = new Map<string, number>();

	private lineNumber(frame: Frame): number {
		const key = [frame.module, frame.function, ...(frame.function === null ? [frame.offset] : [frame.file, frame.line])].join("\0");
		let number = this.lineNumbers.get(key);
		if (number === undefined) {
			this.lineNumbers.set(key, (number = this.lines.length));
			this.lines.push(frame);
		}
		return number;
	}

	private numberStacks(process: Process): void {
		const numbers = new Map<string, Map<string, number>>();
		process.report.stacks.forEach((stack, i) => {
			const at = process.firstStack + i;
			this.stackProcess[at] = process.index;
			this.stackKind[at] = KINDS.indexOf(stack.kind);
			this.stackModule[at] = this.modules.number(stack.suspect);
			this.stackApi[at] = this.apis.number(stack.api);
			this.stackId[at] = this.ids.number(stack.id);
			const line = this.chargedLine(at);
			if (line) {
				this.stackLine[at] = this.lineNumber(line);
				this.stackLanguage[at] = this.languages.number(line.language ?? "native");
			}
			const frame = this.chargedFrame(at);
			if (!frame) return;
			this.stackFunction[at] = this.functionNumber(numbers, frame);
		});
	}

	private readonly functionNumbers = new Map<string, Map<string, number>>();

	private functionNumber(_: unknown, frame: Frame): number {
		const module = frame.module ?? "";
		let names = this.functionNumbers.get(module);
		if (!names) this.functionNumbers.set(module, (names = new Map()));
		const key = frame.function ?? "\0";
		let number = names.get(key);
		if (number === undefined) {
			number = this.functions.length;
			names.set(key, number);
			this.functions.push({ name: frame.function, module: frame.module });
		}
		return number;
	}

	private findRuns(): Runs {
		const { stack, thread, heap, rows } = this.cells;
		const starts: number[] = [];
		let process = 0;
		const owners: number[] = [];
		for (let i = 0; i < rows; i++) {
			while (process + 1 < this.processes.length && i >= this.processes[process + 1]!.firstCell) process++;
			const first = i === this.processes[process]!.firstCell;
			if (!first && i > 0 && stack[i] === stack[i - 1] && thread[i] === thread[i - 1] && heap[i] === heap[i - 1]) continue;
			starts.push(i);
			owners.push(process);
		}
		const count = starts.length;
		starts.push(rows);
		const runs: Runs = {
			count,
			start: Uint32Array.from(starts),
			stack: new Uint32Array(count),
			thread: new Uint32Array(count),
			heap: new Uint32Array(count),
			process: Uint16Array.from(owners),
		};
		this.fillRuns(runs);
		return runs;
	}

	private fillRuns(runs: Runs): void {
		const mapping = this.heaps.number(NO_HEAP);
		const heapsOf = this.processes.map((process) => process.page.heaps.map((name) => this.heaps.number(name)));
		let last = -1;
		for (let run = 0; run < runs.count; run++) {
			const cell = runs.start[run]!;
			const process = runs.process[run]!;
			const stack = this.cells.stack[cell]!;
			if (stack >= this.stacks.length) throw new RangeError("a cell names a stack that is not in the report");
			const number = this.cells.thread[cell]!;
			const { page, report } = this.processes[process]!;
			const known = number && !page.coarse ? page.threads[number - 1] : null;
			runs.stack[run] = stack;
			runs.thread[run] = this.firstThread[process]! + (known ?? report.threads.length);
			const heap = this.cells.heap[cell]!;
			runs.heap[run] = this.stackKind[stack] !== HEAP ? mapping : heap ? (heapsOf[process]![heap - 1] ?? 0) : 0;
			if (process !== last) {
				for (let p = last + 1; p <= process; p++) this.processes[p]!.firstRun = run;
				last = process;
			}
			this.processes[process]!.endRun = run + 1;
		}
	}
}
