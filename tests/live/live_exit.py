#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Targets that end inside the window, each in its own way."""
import signal
import unittest

import mwlive


class Exit(unittest.TestCase):
    def check(self, how, returncode):
        target = mwlive.Target(self, 'exits', how)
        watch = mwlive.Watch(self, target.pid)
        target.go()
        self.assertEqual(target.process.wait(mwlive.PATIENCE), returncode)
        report, = watch.wait()
        self.assertEqual(report['window']['ended'], 'exit')
        self.assertEqual(mwlive.total_of(mwlive.select(report, 'exits_leak'))['impacting'],
                         {'count': 10, 'bytes': 830})
        return report

    def test_status(self):
        self.assertEqual(self.check('status', 3)['target']['exit_status'], 3)

    def test_status_from_another_thread(self):
        self.assertEqual(self.check('thread', 4)['target']['exit_status'], 4)

    def test_segmentation_fault(self):
        self.check('segv', -signal.SIGSEGV)

    def test_kill(self):
        self.check('kill', -signal.SIGKILL)


if __name__ == '__main__':
    mwlive.main()
