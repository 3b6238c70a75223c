#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Targets that end inside the window, each in its own way."""
import os
import signal
import subprocess
import tempfile
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
        report = self.check('thread', 4)
        self.assertEqual(report['target']['exit_status'], 4)
        self.assertEqual({thread['name'] for thread in report['threads']}, {'exits', 'goodbye'})

    def test_status_of_a_large_process(self):
        self.assertEqual(self.check('large', 3)['target']['exit_status'], 3)

    def test_launched(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'report.json')
            run = subprocess.run([mwlive.config.memwatch, '--engine', mwlive.config.engine, *mwlive.patient(),
                                  '--quiet', '--json', path, '--', mwlive.target_path('exits'), 'large'],
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=mwlive.PATIENCE, check=False)
            self.assertEqual(run.returncode, 0, run.stderr)
            report, = mwlive.load_reports(path)
        self.assertEqual((report['window']['ended'], report['target']['exit_status']), ('exit', 3))
        self.assertEqual({thread['name'] for thread in report['threads']}, {'exits'})

    def test_segmentation_fault(self):
        self.check('segv', -signal.SIGSEGV)

    def test_kill(self):
        self.check('kill', -signal.SIGKILL)


if __name__ == '__main__':
    mwlive.main()
