// SPDX-License-Identifier: MIT

// places: takes blocks of known sizes at known places, from functions of all kinds, again and again. Says "ready PID", and
// as "places=…" what V8 itself says of the stack at each: {size: [[function, file, line], …], …}. Ends with its standard
// input. `node places.js`.
'use strict';
const vm = require('vm');
const zlib = require('zlib');

const places = {};
const kept = [];

/* The stack as structured call sites, once for each size. */
function note(size) {
	if (places[size])
		return size;
	Error.stackTraceLimit = 100;
	Error.prepareStackTrace = (_, sites) => sites.slice(1)
		.filter((site) => !site.isNative() && site.getFileName())
		.map((site) => [site.getFunctionName(), site.getFileName(), site.getLineNumber()]);
	places[size] = new Error().stack;
	Error.prepareStackTrace = undefined;
	return size;
}

function keep(block) {
	kept.push(block);
	if (kept.length > 200)
		kept.splice(0, 100);
}

function plain() { keep(Buffer.allocUnsafeSlow(note(100001))); }
const arrow = () => keep(Buffer.allocUnsafeSlow(note(100003)));
const object = {
	method() { keep(Buffer.allocUnsafeSlow(note(100005))); },
	get value() { keep(Buffer.allocUnsafeSlow(note(100007))); return 1; },
};
class Pool {
	#secret(size) { keep(Buffer.allocUnsafeSlow(note(size))); }
	constructor(size) { keep(Buffer.allocUnsafeSlow(note(size))); }
	take(size) {
		this.#secret(size);
	}
	static make() {
		return new Pool(100009);
	}
}
class Derived extends Pool {}

function closure(size) {
	return function inner() {
		keep(
			Buffer.allocUnsafeSlow(note(size)));
	};
}

async function later() {
	await null;
	keep(Buffer.allocUnsafeSlow(note(100015)));
}

function* generate() {
	yield 1;
	keep(Buffer.allocUnsafeSlow(note(100017)));
}

module.exports.assigned = function () { keep(Buffer.allocUnsafeSlow(note(100019))); };

function recursive(n) {
	if (n)
		recursive(n - 1);
	else
		keep(Buffer.allocUnsafeSlow(note(100021)));
}

// Not of Latin: Größe, размер, 尺寸, 😀. The source has two bytes a character.
const evaluated = vm.runInThisContext(`

(function evaluated(keep, note) {\r\n  keep(Buffer.allocUnsafeSlow(note(100023)));
})`, {filename: '/some/where/größe 尺寸 😀.js', lineOffset: 40});

function hot(n) {
	let sum = 0;
	for (let i = 0; i < 50; i++)
		sum += i * n % 7;
	if (n === 3)
		keep(Buffer.allocUnsafeSlow(note(100025)));
	return sum;
}

function hotter(n) { return hot(n) + 1; }

function round() {
	plain();
	arrow();
	object.method();
	void object.value;
	new Derived(100031).take(100033);
	Pool.make().take(100011);
	closure(100013)();
	later();
	for (const _ of generate());
	module.exports.assigned();
	recursive(5);
	[1].forEach(() => { keep(Buffer.allocUnsafeSlow(note(100027))); });
	evaluated(keep, note);
	for (let i = 0; i < 300; i++)
		hotter(i % 4 === 3 ? 5 : 4);
	hotter(3);
	new (class { field = keep(Buffer.allocUnsafeSlow(note(100029))); })();
	kept.push(zlib.createDeflateRaw({windowBits: 12, memLevel: 5}));
	setTimeout(round, 20);
}

setTimeout(round, 1);
setTimeout(() => console.log(`ready ${process.pid}\nplaces=${JSON.stringify(places)}\ndone`), 500);
process.stdin.on('end', () => process.exit()).resume();
