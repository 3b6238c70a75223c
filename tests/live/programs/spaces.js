// SPDX-License-Identifier: MIT

// spaces: keeps memory of V8's heap in each of several isolates: in old space and large objects, and what has not been collected
// in new space; as much once more when a byte has come. Says "ready PID", then as "spaces=…", of which the last one counts, what
// V8 says of its spaces, summed over the isolates: {name: [size, used], …}; then "done". Ends with its standard input. `node --expose-gc spaces.js WORKERS MIB`.
'use strict';
const v8 = require('v8');
const {Worker, isMainThread, parentPort, workerData} = require('worker_threads');

const kept = [];
const mebibytes = isMainThread ? Number(process.argv[3]) : workerData;

function keep() {
	const pieces = [];

	for (let i = 0; i < mebibytes * 64; i++)
		pieces.push(Array.from({length: 2048}, (_, j) => i + j)); // 16 KiB and more
	for (let i = 0; i < mebibytes; i++)
		pieces.push(new Array(1 << 17).fill(i)); // 1 MiB
	kept.push(pieces);
	for (let i = 0; i < 3; i++)
		global.gc();
	kept.push(Array.from({length: 10000}, (_, i) => ({i})));
}

function tell() {
	return v8.getHeapSpaceStatistics().map((space) => [space.space_name, space.space_size, space.space_used_size]);
}

/* A worker answers each request. */
function answer(what) {
	if (what === 'keep')
		keep();
	return tell();
}

function main() {
	const workers = Array.from({length: Number(process.argv[2])}, () => new Worker(__filename, {workerData: mebibytes}));

	const ask = (worker, what) => new Promise((resolve) => {
		worker.once('message', resolve);
		worker.postMessage(what);
	});
	/* The last answer is that of isolates at rest: all that is done for it has been done before. */
	const round = async () => {
		for (const what of ['keep', 'tell', 'tell', 'tell']) {
			const told = [], sums = {};

			for (const worker of workers)
				told.push(await ask(worker, what));
			told.push(answer(what));
			for (const [name, size, used] of told.flat())
				sums[name] = [(sums[name] || [0])[0] + size, (sums[name] || [0, 0])[1] + used];
			console.log(`spaces=${JSON.stringify(sums)}`);
		}
		console.log('done');
	};

	console.log(`ready ${process.pid}`);
	round();
	process.stdin.on('data', round);
	process.stdin.on('end', () => process.exit());
}

if (isMainThread)
	main();
else
	parentPort.on('message', (what) => parentPort.postMessage(answer(what)));
