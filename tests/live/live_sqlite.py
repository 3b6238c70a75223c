#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""SQLite gives the same answers watched and unwatched."""
import os
import subprocess
import unittest

import mwlive


class Sqlite(unittest.TestCase):
    def test_answers(self):
        if not os.path.exists(mwlive.target_path('sqlite')):
            self.skipTest('built without sqlite3')
        run = subprocess.run([mwlive.target_path('sqlite'), '400'], stdin=subprocess.DEVNULL, capture_output=True,
                             text=True, check=True, timeout=mwlive.PATIENCE)
        alone = {k: int(v) for k, v in (line.split('=') for line in run.stdout.splitlines() if '=' in line)}
        answer, report = mwlive.observe(self, 'sqlite', 400)
        self.assertEqual(answer, alone)
        self.assertGreater(report['totals']['heap']['transient']['count'], 400)
        for stack in mwlive.select(report, kinds=('heap',)):
            self.assertIn('main', mwlive.functions(stack))


if __name__ == '__main__':
    mwlive.main()
