#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Children of every kind run undisturbed, and a target may become another program."""
import unittest

import mwlive


class Fork(unittest.TestCase):
    def test_children_of_every_kind(self):
        answer, report = mwlive.observe(self, 'fork_storm', 30)
        mwlive.compare(self, answer, report)

    def test_exec_ends_the_window(self):
        target = mwlive.Target(self, 'execs', mwlive.target_path('simple'), 300)
        watch = mwlive.Watch(self, target.pid)
        target.go()
        self.assertEqual(target.line(), f'ready {target.pid}')  # the new program
        report, = watch.wait()
        self.assertEqual(report['window']['ended'], 'exec')
        self.assertEqual(mwlive.total_of(mwlive.select(report, 'execs_leak'))['impacting'],
                         {'count': 20, 'bytes': 20 * 61})
        self.assertEqual({thread['name'] for thread in report['threads']}, {'execs'})
        self.assertEqual(mwlive.status(target.pid)['TracerPid'], '0')
        target.go()
        target.done()
        target.finish()


if __name__ == '__main__':
    mwlive.main()
