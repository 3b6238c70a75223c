#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Blocks that only the kernel holds (targets/kernel_holds.c): none of them is called lost."""
import subprocess
import time
import unittest

import mwlive
from live_heap_reach import by_case, heap, verdicts_of

D, P, R = 'definite', 'possible', 'reachable'


class Kernel(unittest.TestCase):
    def start(self, mode):
        target = mwlive.Target(self, 'kernel_holds', mode)
        target.go()
        answer = target.done()
        if 'unavailable' in answer:
            self.skipTest('no io_uring here')
        return target, {case: size for case, size in answer.items() if case in ('lost', 'held', 'held_by_pipe')}

    def check(self, mode, expected, skipped=''):
        target, sizes = self.start(mode)
        for options in ((), ('--no-fork',)):
            report = heap(target.pid, *options)
            self.assertEqual(by_case(sizes, verdicts_of(report)), expected)
            self.assertIn(skipped, ' '.join(gap['why'] for gap in report['skipped']))
        return target

    def test_requests(self):
        """What a request has can't be known."""
        for mode in ('uring', 'polled'):
            with self.subTest(mode):
                self.check(mode, {'lost': P, 'held': P}, 'requests to the kernel').finish()

    def test_window(self):
        """A thread of the kernel's is at no place where it could be made to do anything."""
        target, _ = self.start('polled')
        watch = mwlive.Watch(self, target.pid, options=('--leaks',))
        watch.stop()
        target.finish()

    def test_ended(self):
        """A main thread that has ended has no descriptors."""
        self.check('ended', {'lost': D, 'held': R, 'held_by_pipe': R}).finish()

    def test_messages(self):
        self.check('messages', {'lost': D, 'held': R}).finish()

    def test_why(self):
        """Why there is no copy is said also where several passes are needed."""
        target, _ = self.start('confined')
        report = heap(target.pid)
        self.assertEqual(report['method'], 'live')
        self.assertGreater(report['passes'], 1)
        self.assertRegex(report['why'], 'seccomp')
        target.send()

    def test_executes(self):
        """What was read of two programs is no report of one."""
        refused = 0
        for delay in range(20, 400, 20):
            target, _ = self.start('executes')
            look = subprocess.Popen([mwlive.config.memwatch, 'heap', '-p', str(target.pid), '--no-fork', '--quiet'],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            self.addCleanup(mwlive.kill_quietly, look)
            time.sleep(delay / 1000 * mwlive.SLOWNESS)
            target.send()
            said = look.communicate(timeout=mwlive.PATIENCE)[1]
            mwlive.kill_quietly(target.process)
            self.assertIn(look.returncode, (0, 1), said)
            refused += 'executed another program while its heap was read' in said
            if refused:
                return
        self.fail('no look was under way when the program was executed')


if __name__ == '__main__':
    mwlive.main()
