#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stacks walked inside the target against libunwind's, on programs of several kinds.

Every so many stacks are sent with registers and a piece of the stack, and memwatch unwinds that as well. What differs
is shown. With an engine that does not walk inside the target only the programs are run.
"""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import live_nginx
import mwjump
import mwlive

EVERY = 2           # stacks, of which one is compared
SHARE = mwlive.attempts(8, 1)  # the load is divided by, as a soak takes longer
LEAST = 100000 // SHARE        # compared in all
MOST_DIFFERING = 1e-4
BRIEF = 20          # of the load, where nothing is compared

PYTHON = '''
import os, sys, json, re, collections, decimal
n = int(sys.argv[1])
print('ready', os.getpid(), flush=True)
os.read(0, 1)
def walk(depth, i):
    if depth:
        return walk(depth - 1, i) + 1
    return len({'key%d' % i: [i] * 40, 'other': {'x': 'y' * 600}})
def fails(i):
    try:
        raise ValueError('v' * 700)
    except ValueError as error:
        return str(error)
rows = []
for i in range(n):
    walk(i % 12, i)
    rows.append({'i': i, 'text': 'z' * (i % 900)})
    fails(i)
    re.sub('(a+)b', lambda m: m.group(1) * 300, 'aaab' * 5)
    decimal.Decimal(i).sqrt()
    if i % 100 == 99:
        assert json.loads(json.dumps(rows)) == rows
        rows.sort(key=lambda row: -len(row['text']))
        rows = []
import sqlite3
assert sqlite3.connect(':memory:').execute('select 6 * 7').fetchone() == (42,)
print('done', flush=True)
os.read(0, 1)
'''


def setUpModule():
    if mwlive.config.engine == 'trap' and mwjump.has_engine('jump'):
        raise unittest.SkipTest('the trap engine has no stacks of its own; the programs are run with jump')


class Oracle(unittest.TestCase):
    total = {'compared': 0, 'differing': 0, 'walks': 0, 'slow_walks': 0}
    seen = []

    def setUp(self):
        self.engine = mwlive.config.engine
        self.compares = self.engine == 'jump'

    def much(self, amount):
        return max(1, amount // (SHARE if self.compares else BRIEF))

    def record(self, name, pid, load):
        """A window while `load` runs; what the engine says of its stacks."""
        before = mwlive.Snapshot(pid)
        events = mwjump.Events(self, pid, self.engine, '--compare', EVERY)
        load()
        answer = events.stop()
        before.check(self)
        if not mwlive.TOOL:  # which does not keep up with walking every second stack once more
            self.assertEqual(answer['lost'], 0)
        self.assertGreater(answer['events'], 1000)
        if not self.compares:
            return
        # What is compared is sent to be walked as well.
        answer['slow_walks'] -= answer['compared']
        for key in self.total:
            self.total[key] += answer[key]
        self.seen.append(name)
        print(f'{name}: {answer["walks"]} stacks, {100 * answer["slow_walks"] / max(1, answer["walks"]):.2f} % by the '
              f'slow road, {answer["compared"]} compared, {answer["differing"]} differ', flush=True)
        for line in events.differences:
            print('  ' + line, flush=True)
        self.assertGreater(answer['compared'], 1000, name)
        self.assertLess(answer['differing'], max(1, MOST_DIFFERING * answer['compared']), name)

    def target(self, name, *arguments, **options):
        target = mwlive.Target(self, name, *arguments, **options)

        def load():
            target.go()
            target.done(2 * mwlive.PATIENCE)
        self.record(name, target.pid, load)
        target.finish()

    def test_1_templates_and_exceptions(self):
        self.target('templates', self.much(200))

    def test_1_sqlite(self):
        if not os.path.exists(mwlive.target_path('sqlite')):
            self.skipTest('built without sqlite3')
        self.target('sqlite', self.much(8000))

    def test_1_python(self):
        python = '/usr/bin/python3'
        if not os.path.exists(python):
            self.skipTest('no python3')
        self.target('python', argv=[python, '-S', '-c', PYTHON, str(self.much(2000))], env={'PYTHONMALLOC': 'malloc'})

    @unittest.skipUnless(shutil.which('redis-server') and shutil.which('redis-benchmark'), 'redis is not installed')
    def test_1_redis(self):
        directory = tempfile.mkdtemp(prefix='mwlive-redis-')
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        port = str(mwlive.free_port())
        server = subprocess.Popen(['redis-server', '--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly',
                                   'no', '--daemonize', 'no', '--dir', directory],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(mwlive.kill_quietly, server)

        def ask(*command):
            return subprocess.run(['redis-cli', '-p', port, *command], capture_output=True, text=True, check=False,
                                  timeout=4 * mwlive.PATIENCE).stdout.strip()
        mwlive.wait_until(lambda: ask('PING') == 'PONG', 'redis answers')

        def load():
            subprocess.run(['redis-benchmark', '-p', port, '-q', '-n', str(self.much(6000)), '-c', '20', '-r', '10000',
                            '-d', '300', '-t', 'set,get,lpush,lpop,sadd,hset,zadd,lrange_100,mset'],
                           check=True, capture_output=True, timeout=4 * mwlive.PATIENCE)
            self.assertEqual(ask('EVAL', 'local t = {} for i = 1, 3000 do t[i] = redis.call("SET", "e" .. i, '
                                 'string.rep("x", i)) end return #t', '0'), '3000')
        self.record('redis-server', server.pid, load)
        self.assertEqual(ask('PING'), 'PONG')

    @unittest.skipUnless(live_nginx.NGINX and shutil.which('ab'), 'nginx or ab is not installed')
    def test_1_nginx(self):
        directory = tempfile.mkdtemp(prefix='mwlive-nginx-')
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        os.chmod(directory, 0o755)
        port = mwlive.free_port()
        path = os.path.join(directory, 'nginx.conf')
        with open(path, 'w', encoding='utf-8') as f:
            f.write(live_nginx.CONFIGURATION.format(directory=directory, port=port))
        with open(os.path.join(directory, 'index.html'), 'w', encoding='utf-8') as f:
            f.write('x' * 5000)
        server = subprocess.Popen([live_nginx.NGINX, '-c', path, '-p', directory, '-e',
                                   os.path.join(directory, 'error.log')], stdin=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(mwlive.kill_quietly, server)

        def get(requests, page='index.html', *options):
            run = subprocess.run(['ab', '-q', *options, '-n', str(requests), '-c', str(min(8, requests)),
                                  f'http://127.0.0.1:{port}/{page}'], capture_output=True, text=True, check=False,
                                 timeout=4 * mwlive.PATIENCE)
            found = re.search(r'Complete requests:\s+(\d+)', run.stdout)
            return run.returncode == 0 and found and int(found[1]) == requests
        mwlive.wait_until(lambda: get(1), 'nginx answers')

        def load():
            self.assertTrue(get(self.much(8000)))
            self.assertTrue(get(self.much(2000), 'absent.html'))
            self.assertTrue(get(self.much(4000), 'index.html', '-k'))
        self.record('nginx', server.pid, load)

    def test_2_all_together(self):
        if not self.compares:
            self.skipTest('this engine does not walk inside the target')
        if len(self.seen) < 5:
            self.skipTest(f'only {self.seen} could be run')
        total = self.total
        print(f'in all: {100 * total["slow_walks"] / total["walks"]:.2f} % of {total["walks"]} by the slow road, '
              f'{total["differing"]} of {total["compared"]} compared differ', flush=True)
        self.assertGreaterEqual(total['compared'], LEAST)
        self.assertLess(total['differing'], MOST_DIFFERING * total['compared'])


if __name__ == '__main__':
    mwlive.main()
