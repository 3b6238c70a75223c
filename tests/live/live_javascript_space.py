#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What V8 has its heap for: in the account of a heap and in a window's report, against what V8 itself tells
(v8.getHeapSpaceStatistics()), of one isolate and of several. Another node than the one in the path: MEMWATCH_NODE."""
import json
import os
import signal
import unittest

import mwlive
from live_javascript import NODE, program

CHUNK, MIB = 1 << 18, 1 << 20
KEPT = 8  # MiB, in each isolate, in small arrays and in large ones
# Nothing is collected by and by, nor swept by other threads.
OPTIONS = ('--expose-gc', '--no-memory-reducer', '--single-threaded-gc', '--no-opt', '--no-sparkplug')
# Of these V8 tells nothing: all isolates have the same read-only space, and chunks of any may be kept for later.
READ_ONLY, FREED = 'V8 read_only_space', 'V8 freed chunks'


@unittest.skipUnless(NODE, 'node is not installed')
class Space(unittest.TestCase):
    def start(self, workers):
        target = mwlive.Target(self, 'node', argv=[NODE, *OPTIONS, program('spaces.js'), str(workers), str(KEPT)])
        return target, self.told(target)

    def told(self, target):
        """By name: what V8 has, and what it uses of that."""
        spaces = json.loads(target.done()['spaces'])
        return {f'V8 {name}': (size, used) for name, (size, used) in spaces.items() if size}

    def check_resident(self, found, told, isolates):
        """All that is used has been written to. What is left of a chunk that objects are made in counts as used: one in each
        isolate. Of code whole chunks do."""
        self.assertEqual(set(found) - {FREED}, set(told) | {READ_ONLY})
        self.assertTrue(0 < found[READ_ONLY] <= CHUNK)
        for name, (size, used) in told.items():
            with self.subTest(name):
                self.assertLessEqual(found[name], size)
                if name != 'V8 code_space':
                    self.assertGreaterEqual(found[name], used - isolates * CHUNK)
        # These have been written to from end to end.
        self.assertEqual(found['V8 large_object_space'], told['V8 large_object_space'][0])

    def check_window(self, workers):
        target, first = self.start(workers)
        watch = mwlive.Watch(self, target.pid)
        target.go()
        last = self.told(target)
        # Its compilers may make code.
        report = watch.stop(intact=False)
        target.finish()
        named = {item['name']: item for item in report['address_space']['named']}
        self.check_resident({name: item['end']['resident'] for name, item in named.items()}, last, workers + 1)
        reserved = {name: item['end']['reserved'] for name, item in named.items() if name in last}
        self.assertEqual(reserved, {name: size for name, (size, _) in last.items()})
        for name in ('V8 old_space', 'V8 large_object_space'):
            self.assertGreaterEqual(last[name][0] - first[name][0], (workers + 1) * KEPT * MIB)
            self.assertTrue(first[name][0] <= named[name]['start']['reserved'] < last[name][0])
        grown = sum(item['end']['resident'] - item['start']['resident'] for item in named.values())
        runtime, = report['runtimes']
        self.assertEqual((runtime['name'], runtime['growth']), ('v8', grown))

    def check_account(self, workers):
        target, told = self.start(workers)
        os.kill(target.pid, signal.SIGSTOP)
        mwlive.wait_until(lambda: all(mwlive.state(tid) == 'T' for tid in mwlive.tids(target.pid)), 'it has stopped')
        account = json.loads(mwlive.memwatch(self, 'heap', '-p', target.pid, '--json', '-')[0])
        os.kill(target.pid, signal.SIGCONT)
        self.assertEqual(sum(line['bytes'] for line in account['account']), account['rss'])
        lines = {line['detail']: line['bytes'] for line in account['account'] if line['name'] == 'JavaScript heap'}
        self.check_resident(lines, told, workers + 1)
        target.finish()

    def test_windows(self):
        for workers in (0, 3):
            with self.subTest(workers=workers):
                self.check_window(workers)

    def test_accounts(self):
        for workers in (0, 3):
            with self.subTest(workers=workers):
                self.check_account(workers)


if __name__ == '__main__':
    mwlive.main()
