// SPDX-License-Identifier: MIT

// leaks: keeps what it should not, a little ten times a second. Says "ready PID"; ends with its standard input.
// `node leaks.js KIND [ADDON]`.
'use strict';
const net = require('net');
const zlib = require('zlib');

const kept = [];

class Cache {
	remember(body) {
		const copy = Buffer.allocUnsafeSlow(20000 + body.length); // leak: buffers
		body.copy(copy);
		kept.push(copy);
	}
}

const cache = new Cache();
const kinds = {
	buffers() { cache.remember(Buffer.from('body')); },
	streams() {
		kept.push(zlib.createDeflate()); // leak: streams
	},
	connections() {
		for (let i = 0; i < 20; i++) {
			const socket = net.connect(server.address().port, '127.0.0.1'); // leak: connections
			kept.push(() => socket);
		}
	},
	addon() {
		for (let i = 0; i < 20; i++)
			addon(3000); // leak: addon
	},
};
const addon = process.argv[3] ? require(process.argv[3]) : null;
const leak = kinds[process.argv[2]];
const server = net.createServer(() => {});

server.listen(0, '127.0.0.1', () => {
	setInterval(leak, 100);
	console.log(`ready ${process.pid}\ndone`);
});
process.stdin.on('end', () => process.exit()).resume();
