// SPDX-License-Identifier: MIT
// decode.ts: reads the page's two data scripts (../FORMAT.md) into typed arrays.
import type { HeapPage, Page, PageProcess, Place } from "./types";

/** A block that was not freed by the end has this for the bin in which it was. */
export const NEVER = 0x7fff;
/** Born before the report's interval. */
export const BEFORE = -1;
/** Lifetime class of what was not freed. */
export const STILL_THERE = 255;

export class DataError extends Error {}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
	const table = new Uint8Array(128).fill(255);
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (let i = 0; i < 64; i++) table[alphabet.charCodeAt(i)] = i;
	const bytes = new Uint8Array(Math.ceil((text.length * 3) / 4));
	let held = 0;
	let bits = 0;
	let at = 0;
	for (let i = 0; i < text.length; i++) {
		const code = text.charCodeAt(i);
		const value = code < 128 ? table[code]! : 255;
		if (value === 255) continue; // padding, line ends
		held = ((held << 6) | value) & 0xffffff;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			bytes[at++] = held >> bits;
		}
	}
	return bytes.subarray(0, at);
}

async function inflate(packed: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function unpack(id: string): Promise<Uint8Array | null> {
	const text = document.getElementById(id)?.textContent ?? "";
	if (!text || text.startsWith("@@")) return null;
	return inflate(fromBase64(text));
}

class Reader {
	at: number;
	constructor(
		private readonly bytes: Uint8Array,
		offset: number,
		private readonly end: number,
	) {
		this.at = offset;
	}

	next(): number {
		const bytes = this.bytes;
		if (this.at < this.end && bytes[this.at]! < 128) return bytes[this.at++]!;
		let value = 0;
		let scale = 1;
		for (;;) {
			if (this.at >= this.end) throw new DataError("the report's cells end early");
			const byte = bytes[this.at++]!;
			value += (byte & 127) * scale;
			if (byte < 128) return value;
			scale *= 128;
		}
	}

	signed(): number {
		const value = this.next();
		return value % 2 ? -(value + 1) / 2 : value / 2;
	}
}

/** Columns of cells: all processes one behind the other. */
export interface Cells {
	rows: number;
	stack: Uint32Array;
	thread: Uint32Array;
	heap: Uint32Array;
	born: Int16Array;
	died: Int16Array;
	count: Float64Array;
	bytes: Float64Array;
	unknown: Float64Array;
	lived: Float64Array;
}

export function newCells(rows: number): Cells {
	return {
		rows,
		stack: new Uint32Array(rows),
		thread: new Uint32Array(rows),
		heap: new Uint32Array(rows),
		born: new Int16Array(rows),
		died: new Int16Array(rows),
		count: new Float64Array(rows),
		bytes: new Float64Array(rows),
		unknown: new Float64Array(rows),
		lived: new Float64Array(rows),
	};
}

interface Bins {
	born: Int16Array;
	died: Int16Array;
}

function decodeBins(reader: Reader, into: Bins, from: number, end: number): void {
	let born = 0;
	for (let i = from; i < end; i++) {
		born += reader.signed();
		into.born[i] = born - 1;
	}
	for (let i = from; i < end; i++) {
		const died = reader.next();
		into.died[i] = died === 0 ? NEVER : Math.max(into.born[i]!, 0) + died - 1;
	}
}

/** Less what is expected: as many bytes a block as those of the rows before it that have its key. */
function decodeBytes(reader: Reader, key: ArrayLike<number>, count: ArrayLike<number>, bytes: Float64Array, from: number, end: number): void {
	let blocks = 0;
	let sum = 0;
	for (let i = from; i < end; i++) {
		if (i === from || key[i] !== key[i - 1]) blocks = sum = 0;
		const each = blocks && sum < 2 ** 46 ? Math.floor(sum / blocks) : 0;
		const expected = count[i]! <= 2 ** 20 && each <= 2 ** 32 ? count[i]! * each : 0;
		bytes[i] = expected + reader.signed();
		blocks += count[i]!;
		sum += bytes[i]!;
	}
}

/** What stands for a number of 8 bits, and how many bits follow them. */
function expand(code: number): number {
	const shift = code < 256 ? 0 : (code >> 7) - 1;
	return (code - shift * 128) * 2 ** shift;
}

/** Fill rows [row, row + place.rows); stacks are numbered from `firstStack` on. */
export function decodeCells(raw: Uint8Array, place: Place, cells: Cells, row: number, firstStack: number): void {
	const reader = new Reader(raw, place.offset, place.offset + place.length);
	const end = row + place.rows;
	let stack = firstStack;
	for (let i = row; i < end; i++) cells.stack[i] = stack += reader.signed();
	for (const column of [cells.thread, cells.heap]) for (let i = row; i < end; i++) column[i] = reader.next();
	decodeBins(reader, cells, row, end);
	for (let i = row; i < end; i++) cells.count[i] = reader.next();
	decodeBytes(reader, cells.stack, cells.count, cells.bytes, row, end);
	for (let i = row; i < end; i++) cells.unknown[i] = reader.next();
	for (let i = row; i < end; i++) cells.lived[i] = expand(reader.next()) * cells.count[i]!;
}

export interface Lifetimes {
	rows: number;
	bins: number;
	size: Uint16Array;
	life: Uint8Array;
	kind: Uint8Array;
	born: Int16Array;
	died: Int16Array;
	count: Float64Array;
	bytes: Float64Array;
}

export function decodeLifetimes(raw: Uint8Array, process: PageProcess): Lifetimes {
	const { offset, length, rows, bins } = process.lifetimes;
	const reader = new Reader(raw, offset, offset + length);
	const out: Lifetimes = {
		rows,
		bins,
		size: new Uint16Array(rows),
		life: new Uint8Array(rows),
		kind: new Uint8Array(rows),
		born: new Int16Array(rows),
		died: new Int16Array(rows),
		count: new Float64Array(rows),
		bytes: new Float64Array(rows),
	};
	let size = 0;
	for (let i = 0; i < rows; i++) out.size[i] = size += reader.signed();
	for (const column of [out.life, out.kind]) for (let i = 0; i < rows; i++) column[i] = reader.next();
	decodeBins(reader, out, 0, rows);
	for (let i = 0; i < rows; i++) out.count[i] = reader.next();
	decodeBytes(reader, out.size, out.count, out.bytes, 0, rows);
	return out;
}

/** The page's data, or null where this is the page without any. */
export async function readPage(): Promise<{ page: Page | HeapPage; raw: Uint8Array } | null> {
	if (typeof DecompressionStream === "undefined")
		throw new DataError("this browser is too old for the report: it needs DecompressionStream (2023 or newer)");
	const [report, raw] = await Promise.all([unpack("memwatch-report"), unpack("memwatch-cells")]);
	if (!report) return null;
	const page = JSON.parse(new TextDecoder().decode(report)) as Page | HeapPage;
	if (page.version !== 2) throw new DataError(`the report's data have version ${String(page.version)}; this page reads 2`);
	// The texts are decoded: free them.
	for (const id of ["memwatch-report", "memwatch-cells"]) document.getElementById(id)?.remove();
	return { page, raw: raw ?? new Uint8Array() };
}
