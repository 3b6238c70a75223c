#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stacks of coroutines end where these begin: complete where that is certain, else marked as cut."""
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import mwlive

ROUNDS = 50

# Numbers in enum kind of tests/targets/coroutines.c that have the same stack; its last function, what it is cut by, and
# what it is said to end at.
KINDS = [
    ((0,), '__start_context', None, 'coroutine'),
    ((1,), 'coroutine_body', None, None),
    ((2, 3), 'coroutine_top_body', None, None),
    ((4,), 'coroutine_adjacent', None, None),
    ((5,), 'coroutine_trampoline', None, None),
    ((6,), 'coroutine_bare', None, None),
    ((7,), None, 'no unwind information', None),
]

FIBERS = '''
$stdout.sync = true
kept = []
fibers = Array.new(4) { Fiber.new { i = 0; loop { i += 1; Fiber.yield("x" * (2000 + i % 100)) } } }
puts "ready"
loop { fibers.each { |f| kept << f.resume }; kept.shift(100) if kept.size > 500; sleep 0.001 }
'''


class Coroutines(unittest.TestCase):
    def test_first_frames(self):
        answer, report = mwlive.observe(self, 'coroutines', options=('--track', 'heap'))
        mwlive.compare(self, answer, report)
        stacks = mwlive.select(report, 'coroutine_leak')
        self.assertEqual(len(stacks), len(KINDS), stacks)
        for kinds, last, cut, end in KINDS:
            size = {'count': ROUNDS * len(kinds), 'bytes': sum(ROUNDS * (100 + kind) for kind in kinds)}
            stack, = [s for s in stacks if s['size'] == size]
            if last == 'coroutine_top_body' and report['engine']['name'] == 'jump' and stack['cut']:
                # Only memwatch's own walk knows where a stack's memory ends, and jump lets few stacks come to that.
                cut = 'no unwind information'
            found = (mwlive.functions(stack)[-1], stack['cut'], stack['end'], stack['truncated'])
            self.assertEqual(found, (last, cut, end, False), kinds)
            body = last if 'body' in (last or '') else 'coroutine_body' if kinds[0] else 'context_body'
            self.assertEqual(mwlive.functions(stack)[:2], ['coroutine_leak', body])
            self.assertEqual(len(stack['frames']), 2 if last == body else 3, kinds)

    def test_below_the_guard_of_a_thread(self):
        """One mapping with the thread's stack, and what is between them can't be read."""
        answer, report = mwlive.observe(self, 'adjacent')
        mwlive.compare(self, answer, report)
        for name in ('adjacent_below', 'adjacent_above'):
            for stack in mwlive.select(report, name):
                self.assertEqual(mwlive.functions(stack)[:2], [name, 'adjacent_bare'])

    @unittest.skipUnless(shutil.which('ruby'), 'ruby is not installed')
    def test_ruby(self):
        """Fibers' stacks and the main one: none is broken, and the program goes on."""
        directory = tempfile.mkdtemp(prefix='mwlive-ruby-')
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        ruby = subprocess.Popen([shutil.which('ruby'), '-e', FIBERS], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(mwlive.kill_quietly, ruby)
        self.assertEqual(ruby.stdout.readline(), b'ready\n')
        watch = mwlive.Watch(self, ruby.pid)
        time.sleep(0.5)
        watch.process.send_signal(signal.SIGINT)
        _, err = watch.process.communicate(timeout=mwlive.PATIENCE)
        self.assertEqual(watch.process.returncode, 0, err)
        report = mwlive.load_reports(watch.json)[0]
        mwlive.check_report(self, report)
        self.assertIsNone(ruby.poll())
        self.assertEqual([s['frames'] for s in report['stacks'] if s['cut']], [])
        # Not all are the main thread's.
        self.assertTrue([s for s in report['stacks'] if s['frames'][-1]['function'] != '_start'])


if __name__ == '__main__':
    mwlive.main()
