#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Children of every kind run undisturbed, and a target may become another program."""
import signal
import unittest

import mwlive


class Fork(unittest.TestCase):
    def test_children_of_every_kind(self):
        answer, report = mwlive.observe(self, 'fork_storm', 30)
        mwlive.compare(self, answer, report)

    def test_exec_ends_the_window(self):
        self.becomes_another(mwlive.Target(self, 'execs', mwlive.target_path('simple'), 300))

    def test_exec_by_another_thread(self):
        """It has the first one's id from then on, whether that is still there or not, and its own mask."""
        for mode in ('other', 'leaderless'):
            with self.subTest(mode):
                self.becomes_another(mwlive.Target(self, 'execs', mode, mwlive.target_path('simple'), 300),
                                     blocked=1 << (signal.SIGTRAP - 1))

    def becomes_another(self, target, blocked=0):
        watch = mwlive.Watch(self, target.pid)
        target.go()
        self.assertEqual(target.line(), f'ready {target.pid}')  # the new program
        report, = watch.wait()
        self.assertEqual(report['window']['ended'], 'exec')
        self.assertEqual(mwlive.total_of(mwlive.select(report, 'execs_leak'))['impacting'],
                         {'count': 20, 'bytes': 20 * 61})
        self.assertEqual({thread['name'] for thread in report['threads']}, {'execs'})
        status = mwlive.status(target.pid)
        self.assertEqual((status['TracerPid'], int(status['SigBlk'], 16)), ('0', blocked))
        target.go()
        target.done()
        target.finish()


if __name__ == '__main__':
    mwlive.main()
