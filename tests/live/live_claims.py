#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What memwatch calls definitely lost in real programs: just what was planted there. Claims are printed with what the blocks
contain, and where in the process's memory there still is a word that points to one (`ctest -V`), to be looked at.
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

import mwlive
from live_nginx import CONFIGURATION, NGINX

SAMPLES = 5


def usable(size):
    """What glibc gives for that size."""
    return max(size + 8 + 15, 32) // 16 * 16 - 8


def path_of(name):
    return os.path.join(mwlive.config.targets, 'runtimes', name)


def pointers_to(pid, addr, size):
    """Where in memory there are words, at multiples of 8, that point into a block."""
    found = []
    # Of addresses in a block of less than 64 KiB all bytes but the lowest two are one of two values.
    tops = {struct.pack('<Q', a)[2:] for a in (addr, addr + size - 1)}
    pattern = re.compile(b'|'.join(b'..' + re.escape(top) for top in tops), re.DOTALL)
    for start, end, access, _inode, path in mwlive.mappings(pid):
        if 'r' not in access or path.startswith('[v'):
            continue
        try:
            memory = mwlive.read_memory(pid, start, end - start)
        except OSError:
            continue
        for match in pattern.finditer(memory):
            at = start + match.start()
            if at % 8 == 0 and addr <= struct.unpack_from('<Q', memory, match.start())[0] < addr + size:
                found.append((at, access, path))
    return found


class Claims(unittest.TestCase):
    def setUp(self):
        if mwlive.config.engine != 'jump':
            self.skipTest('a look at the heap has no engine: once is enough')

    def look(self, name, pid):
        """{size: blocks that are definitely lost}, printed."""
        report = json.loads(mwlive.memwatch(self, 'heap', '-p', pid, '--by', 'size', '--show', SAMPLES, '--json', '-',
                                            '--quiet')[0])
        self.assertEqual((report['method'], report['unread'], report['skipped']), ('fork', 0, []), name)
        lost = {}
        for group in report['groups']:
            if group['verdict'] != 'definite':
                continue
            lost[group['size']] = lost.get(group['size'], 0) + group['blocks']['count']
            print(f"{name}: {group['blocks']['count']} blocks of {group['size']} bytes are lost")
            for block in group['contents']:
                print(f"    {block['address']} {block['hex'][:64]} {[note['text'] for note in block['notes']]}")
                for at, access, path in pointers_to(pid, int(block['address'], 16), block['size']):
                    print(f'        {at:#x} {access} {path}')
        print(f"{name}: {sum(lost.values())} of {sum(g['blocks']['count'] for g in report['groups'])} blocks are lost")
        sys.stdout.flush()
        self.assertEqual(sum(lost.values()), report['leaks']['definite']['count'])
        return lost

    def worked(self, name, argv):
        """A program that has done its work and waits."""
        if not shutil.which(argv[0]) or not os.path.exists(path_of(name)):
            self.skipTest(f'no {name}: its runtime or its compiler is not installed')
        target = mwlive.Target(self, name, argv=argv)
        target.go()
        return target, target.done()

    @unittest.skipUnless(shutil.which('redis-server'), 'redis is not installed')
    def test_redis(self):
        directory = tempfile.mkdtemp(prefix='mwlive-claims-')
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        socket = os.path.join(directory, 'socket')
        server = subprocess.Popen(['redis-server', '--port', '0', '--unixsocket', socket, '--save', '', '--dir', directory,
                                   '--loadmodule', mwlive.target_path('libredis_module.so')],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(mwlive.kill_quietly, server)

        def ask(*words):
            return subprocess.run(['redis-cli', '-s', socket, *words], capture_output=True, text=True, check=False,
                                  timeout=mwlive.PATIENCE).stdout.strip()
        mwlive.wait_until(lambda: ask('PING') == 'PONG', 'redis answers')
        fill = "for i = 1, 5000 do redis.call('HSET', 'h' .. i % 50, i, string.rep('v', i % 90)) end return redis.call('DBSIZE')"
        self.assertEqual(ask('EVAL', fill, '0'), '50')
        self.assertEqual(self.look('redis', server.pid), {})
        self.assertEqual((ask('mwleak.keep', '200', '700'), ask('mwleak.drop', '300', '700')), ('200', '300'))
        self.assertEqual(ask('HLEN', 'h7'), '100')
        # jemalloc's class of 700 bytes.
        self.assertEqual(self.look('redis', server.pid), {768: 300})

    @unittest.skipUnless(NGINX, 'nginx is not installed')
    def test_nginx(self):
        directory = tempfile.mkdtemp(prefix='mwlive-claims-')
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        port = mwlive.free_port()
        path = os.path.join(directory, 'nginx.conf')
        with open(path, 'w', encoding='utf-8') as f:
            f.write(CONFIGURATION.format(directory=directory, port=port))
        server = subprocess.Popen([NGINX, '-c', path, '-p', directory, '-e', os.path.join(directory, 'error.log')],
                                  stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(mwlive.kill_quietly, server)

        def get():
            try:
                with urllib.request.urlopen(f'http://127.0.0.1:{port}/none', timeout=mwlive.PATIENCE) as answer:
                    return answer.status
            except urllib.error.HTTPError as error:
                return error.code
            except OSError:
                return None
        mwlive.wait_until(lambda: get() in (403, 404), 'nginx answers')
        for _ in range(50):
            get()
        self.assertEqual(self.look('nginx', server.pid), {})

    def test_python(self):
        program = ('import collections, ctypes, decimal, json, re, sqlite3, sys, threading, zlib\n'
                   'kept = [json.loads(json.dumps({str(i): [i, "x" * (i % 99)]})) for i in range(5000)]\n'
                   'packed = [zlib.compressobj() for _ in range(20)]\n'
                   'base = sqlite3.connect(":memory:")\n'
                   'base.execute("create table t(a, b)")\n'
                   'base.executemany("insert into t values(?, ?)", [(i, "y" * (i % 99)) for i in range(500)])\n'
                   'malloc = ctypes.CDLL(None).malloc\n'
                   'malloc.restype = ctypes.c_void_p\n'
                   'held = [malloc(4321) for _ in range(20)]\n'
                   'for _ in range(int(sys.argv[1])): malloc(1234)\n'
                   'print("ready", flush=True)\n'
                   'sys.stdin.read()\n')
        for planted in (0, 100):
            run = subprocess.Popen([sys.executable, '-c', program, str(planted)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
            self.addCleanup(mwlive.kill_quietly, run)
            self.assertEqual(run.stdout.readline(), b'ready\n')
            self.check_planted(self.look('python3', run.pid), 1234, planted, 5)

    def check_planted(self, lost, size, count, stale=1):
        """Words that point to a few of them may be left on stacks, and in parts of other blocks that the program has not
        written to. glibc gives 16 bytes more where what is left of a free chunk could not be one."""
        number = sum(lost.pop(usable(size) + more, 0) for more in (0, 16))
        self.assertLessEqual(number, count)
        self.assertGreaterEqual(number, count - stale)
        self.assertEqual(lost, {})

    def test_rust(self):
        target, answer = self.worked('rust', [path_of('rust')])
        self.check_planted(self.look('rust', target.pid), 24, int(answer['forget_one.impacting.count']), 30)

    def test_go_with_cgo(self):
        target, answer = self.worked('cgo', [path_of('cgo')])
        self.check_planted(self.look('cgo', target.pid), 83, int(answer['cgo_leak.impacting.count']))

    def test_node(self):
        target, _ = self.worked('node.js', ['node', '--expose-gc', path_of('node.js'), '1'])
        self.assertEqual(self.look('node', target.pid), {})

    def test_java(self):
        target, _ = self.worked('Work.class', ['java', '-Xmx64m', '-cp', path_of(''), 'Work'])
        # Strings that the launcher made of its options, and an arena of a compiler thread that has ended.
        self.assertLessEqual(sum(self.look('java', target.pid).values()), 10)


if __name__ == '__main__':
    mwlive.main()
