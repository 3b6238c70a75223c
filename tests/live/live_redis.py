#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""redis-server (jemalloc, stripped, several threads) under load: nothing lost, nothing changed."""
import os
import shutil
import subprocess
import tempfile
import unittest

import mwlive


@unittest.skipUnless(shutil.which('redis-server') and shutil.which('redis-benchmark'), 'redis is not installed')
class Redis(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix='mwlive-redis-')
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def start(self):
        port = mwlive.free_port()
        server = subprocess.Popen(['redis-server', '--port', str(port), '--bind', '127.0.0.1', '--save', '',
                                   '--appendonly', 'no', '--daemonize', 'no', '--enable-debug-command', 'yes', '--dir', self.directory],
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


if __name__ == '__main__':
    mwlive.main()
