// SPDX-License-Identifier: MIT

// node: JavaScript under load with its JIT on: hot functions that are optimised and thrown out again, a collector that
// is kept busy, worker threads, zlib and hashes in the thread pool, buffers outside the heap. Follows the protocol of
// target.h; `node --expose-gc node.js WORKERS`.
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const {Worker, isMainThread, workerData, parentPort} = require('worker_threads');
const zlib = require('zlib');

const ROUNDS = 1;
const KEPT = 40;
const kept = [];

function fail(why) {
	fs.writeSync(1, `failed ${why}\n`);
	process.exit(1);
}

function hot(value, n) {
	let sum = 0;
	for (let i = 0; i < n; i++)
		sum = (sum * 31 + value.number + i) | 0;
	return sum;
}

// The same function on objects of another shape: what was compiled for the first is thrown away.
function heat(number) {
	const first = hot({number}, 20000);
	const second = hot({before: 'x', number}, 20000);
	const third = hot({number: number + 0.5}, 100);
	if (first !== second || !Number.isInteger(third))
		fail('a hot function gave another result');
	return first;
}

function litter(number) {
	const all = new Map();
	for (let i = 0; i < 300; i++)
		all.set(`key ${i}`, {number, list: [i, i + 1], text: `${i}`.repeat(3)});
	for (let i = 0; i < 300; i += 7)
		if (all.get(`key ${i}`).list[1] !== i + 1)
			fail('the collector took what was in use');
}

function squeezeSync(number) {
	const plain = Buffer.alloc(100000, `round ${number} `);
	if (!zlib.inflateSync(zlib.deflateSync(plain)).equals(plain))
		fail('zlib gave another result');
}

function squeeze(number) {
	const plain = crypto.createHash('sha256').update(`${number}`).digest().toString('hex').repeat(2000);
	return new Promise((done) => zlib.gzip(plain, (error, packed) => zlib.gunzip(packed, (other, back) => {
		if (error || other || back.toString() !== plain)
			fail('zlib in a thread gave another result');
		done();
	})));
}

function keep() {
	for (let i = 0; i < KEPT; i++)
		kept.push(Buffer.allocUnsafeSlow(77777).fill(i));
}

async function work(number) {
	let sum = 0;
	for (let round = 0; round < ROUNDS; round++) {
		sum = (sum + heat(number * ROUNDS + round)) | 0;
		litter(round);
		squeezeSync(round);
		await Promise.all([squeeze(round), squeeze(-round)]);
		if (global.gc && round % 4 === 0)
			global.gc();
	}
	return sum;
}

function inWorker(number) {
	return new Promise((done) => new Worker(__filename, {workerData: number}).once('message', done));
}

function wait() {
	return new Promise((done) => process.stdin.once('readable', () => done(process.stdin.read(1))));
}

async function main() {
	setTimeout(() => process.exit(96), 120000).unref();
	const before = await work(0);
	fs.writeSync(1, `ready ${process.pid}\n`);
	await wait();
	keep();
	const workers = Array.from({length: Number(process.argv[2])}, (_, i) => inWorker(i + 1));
	const sums = await Promise.all([work(0), ...workers]);
	if (sums[0] !== before || sums.slice(1).includes(before))
		fail('another result');
	if (kept.some((block, i) => block[0] !== i || block[77776] !== i))
		fail('a buffer lost what was written there');
	fs.writeSync(1, `checksum=${sums.map((s) => s >>> 0).join('-')}\nkept=${KEPT}\ndone\n`);
	await wait();
	process.exit(kept.length === KEPT ? 0 : 1);
}

if (isMainThread)
	main();
else
	work(workerData).then((sum) => parentPort.postMessage(sum));
