#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""redis-server (jemalloc, stripped, several threads) under load: nothing lost, nothing changed, no full cache called a leak."""
import os
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

import mwlive

GROWS = {'steady growth', 'stepwise growth', 'accelerating', 'growing container'}
SECONDS = 5
RATE = 400  # commands a second


@unittest.skipUnless(shutil.which('redis-server') and shutil.which('redis-benchmark'), 'redis is not installed')
class Redis(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix='mwlive-redis-')
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def start(self, *options):
        port = mwlive.free_port()
        server = subprocess.Popen(['redis-server', '--port', str(port), '--bind', '127.0.0.1', '--save', '',
                                   '--appendonly', 'no', '--daemonize', 'no', '--enable-debug-command', 'yes', '--dir', self.directory, *options],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(mwlive.kill_quietly, server)
        mwlive.wait_until(lambda: self.ask(port, 'PING', check=False) == 'PONG', 'redis answers')
        return server, port

    def ask(self, port, *command, check=True):
        return subprocess.run(['redis-cli', '-p', str(port), *command], capture_output=True, text=True, check=check,
                              timeout=mwlive.PATIENCE).stdout.strip()

    def load(self, port):
        subprocess.run(['redis-benchmark', '-p', str(port), '-q', '-n', '2000', '-c', '10', '-r', '1000000000000',
                        'LPUSH', 'list', 'an element of some length, so that it takes a block'],
                       check=True, capture_output=True, timeout=mwlive.PATIENCE)
        lines = ''.join(f'SET key{i} value-{i}-{"x" * (i % 300)}\r\n' for i in range(1500))
        answers = subprocess.run(['redis-cli', '-p', str(port)], input=lines, text=True, capture_output=True,
                                 check=True, timeout=mwlive.PATIENCE).stdout
        self.assertEqual(answers.count('OK'), 1500)
        digest = self.ask(port, 'DEBUG', 'DIGEST')
        self.assertRegex(digest, '^[0-9a-f]{40}$')
        return self.ask(port, 'LLEN', 'list'), self.ask(port, 'DBSIZE'), digest

    def test_under_load(self):
        server, port = self.start()
        alone = self.load(port)
        self.ask(port, 'FLUSHALL')
        watch = mwlive.Watch(self, server.pid, busy=True)
        watched = self.load(port)
        report = watch.stop()
        self.assertEqual(watched, alone)
        self.assertEqual(watched[:2], ('2000', '1501'))
        self.assertEqual(self.ask(port, 'PING'), 'PONG')
        heap = report['totals']['heap']
        self.assertGreater(heap['size']['count'], 3000)
        self.assertGreaterEqual(heap['impacting']['count'], 1500)
        hooked = {os.path.basename(m) for m in mwlive.hooked_modules(report)}
        self.assertTrue(any('jemalloc' in m for m in hooked), hooked)
        broken = [s for s in report['stacks'] if s['kind'] == 'heap' and not set(mwlive.functions(s)) &
                  {'__libc_start_main', '__libc_start_main_impl', '__libc_start_call_main', '_start', 'start_thread',
                   '__clone3', 'clone3', '__clone', 'clone'}]
        self.assertEqual([mwlive.functions(s) for s in broken], [], 'stacks that reach no start')
        self.assertEqual(self.ask(port, 'SHUTDOWN', 'NOSAVE', check=False), '')
        self.assertEqual(server.wait(mwlive.PATIENCE), 0)

    def send(self, connection, first, count):
        """Entries that are new each."""
        keys = range(first, first + count)
        connection.sendall(b''.join(b'SET key:%d %s\r\n' % (i, b'v' * (100 + i * 13 % 150)) for i in keys))
        answers = b''
        while len(answers) < 5 * count:
            answers += connection.recv(1 << 16)
        self.assertEqual(answers, b'+OK\r\n' * count)
        return first + count

    def watch_entries(self, before, seconds, *options):
        """The report on a server that gets new entries all the time, `before` of them earlier."""
        server, port = self.start(*options)
        with socket.create_connection(('127.0.0.1', port)) as connection:
            sent = 0
            while sent < before:
                sent = self.send(connection, sent, 500)
            watch = mwlive.Watch(self, server.pid, busy=True)
            begin = time.monotonic()
            while time.monotonic() < begin + seconds:
                # Evenly; what the machine holds up comes later.
                if sent - before < (time.monotonic() - begin) * RATE:
                    sent = self.send(connection, sent, 1)
                else:
                    time.sleep(1 / RATE)
            report = watch.stop()
        self.ask(port, 'SHUTDOWN', 'NOSAVE', check=False)
        self.assertEqual(server.wait(mwlive.PATIENCE), 0)
        if sent - before < 0.8 * seconds * RATE:
            self.skipTest(f'{sent - before} entries in {seconds} s: the machine does not hold the pace')
        return report, sent - before

    def test_full_cache(self):
        """As many entries are evicted as come: no growth, though jemalloc does not tell the sizes of those that go."""
        if not mwlive.SOAK and mwlive.config.engine == 'trap':
            self.skipTest('on a busy machine the pauses of engine trap can make it look like growth: see KNOWN-FLAKES')
        report, sent = self.watch_entries(70000, 2 * SECONDS, '--maxmemory', '12mb', '--maxmemory-policy', 'allkeys-lru')
        entries = [s for s in report['suspects'] if s['blocks'] > sent / 2]
        self.assertFalse(GROWS & {s['verdict'] for s in entries}, entries)
        self.assertIn('steady state', {s['growth']['verdict'] for s in report['stacks'] if s['growth']})

    def test_no_limit(self):
        """None is evicted: growth."""
        report, sent = self.watch_entries(2000, SECONDS)
        entries = [s for s in report['suspects'] if s['blocks'] > sent / 2]
        self.assertTrue(entries)
        self.assertEqual({s['verdict'] for s in entries} - GROWS, set(), entries)


if __name__ == '__main__':
    mwlive.main()
