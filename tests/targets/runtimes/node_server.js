// SPDX-License-Identifier: MIT

// node_server: an HTTP server whose answers take buffers, zlib in the thread pool and without it, hashes, regular
// expressions and timers; a worker thread does the like; and a chain of functions that each call the next keeps blocks of
// CHAIN bytes. Says "ready PID" and "port=N"; ends with its standard input. `node node_server.js WORKERS`.
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const {Worker, isMainThread} = require('worker_threads');
const zlib = require('zlib');

const CHAIN = 43210;
const kept = [];

function chainInner(i) { kept[i % 50] = Buffer.allocUnsafeSlow(CHAIN); return i + 1; }
function chainMiddle(i) { return chainInner(i) + 1; }
function chainOuter(i) { return chainMiddle(i) + 1; }

function answer(request, response) {
	const body = Buffer.from(JSON.stringify({url: request.url, list: Array.from({length: 20}, (_, i) => i * 3)}));
	switch (request.url.slice(-1)) {
	case 'z':
		zlib.gzip(body, (error, packed) => response.end(packed));
		break;
	case 's':
		response.end(zlib.deflateSync(body));
		break;
	case 'h':
		response.end(crypto.createHash('sha256').update(body).digest('hex') + /(\d+)-(\w+)/.exec('abc-12-foo'));
		break;
	case 't':
		setTimeout(() => response.end(body), 2);
		break;
	default:
		response.end(`${chainOuter(Number(request.url.split('/')[1]))}`);
	}
}

function work() {
	for (let i = 0; i < 20; i++)
		Buffer.allocUnsafeSlow(3000 + i).fill(i);
	zlib.deflateSync(Buffer.alloc(2000));
}

if (isMainThread) {
	for (let i = 0; i < Number(process.argv[2]); i++)
		new Worker(__filename);
	setTimeout(() => process.exit(96), 240000).unref();
	process.stdin.on('end', () => process.exit(0)).resume();
	const server = http.createServer(answer);
	server.listen(0, '127.0.0.1',
		() => fs.writeSync(1, `ready ${process.pid}\nport=${server.address().port}\ndone\n`));
} else {
	setInterval(work, 20);
}
