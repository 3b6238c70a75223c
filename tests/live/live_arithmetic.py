#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The targets' own arithmetic, held against an LD_PRELOAD counter: without memwatch."""
import os
import subprocess
import unittest

import mwlive


class Arithmetic(unittest.TestCase):
    def run_counted(self, name):
        run = subprocess.run([mwlive.target_path(name)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=mwlive.PATIENCE, check=True,
                             env=dict(os.environ, LD_PRELOAD=mwlive.target_path('libcount.so')))

        def lines(text):
            return {k: int(v) for k, v in (line.split('=') for line in text.splitlines() if '=' in line)}
        return lines(run.stdout), lines(run.stderr)

    def test_single_threaded(self):
        for name in ('exact', 'vm', 'checksum'):
            with self.subTest(name):
                said, counted = self.run_counted(name)
                for key in set(said) & {'heap.size.count', 'heap.size.bytes'}:
                    self.assertEqual(said[key], counted[key], key)

    def test_parts_of_simple(self):
        said, counted = self.run_counted('simple')
        parts = ('simple_leak', 'simple_churn', 'simple_grow')
        total = sum(said[f'{p}.size.count'] for p in parts) + said['simple_zeroed.transient.count']
        self.assertEqual(total, counted['heap.size.count'])


if __name__ == '__main__':
    mwlive.main()
