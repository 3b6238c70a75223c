#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Threads: many at once, short-lived ones, a leader that has gone, blocked signals."""
import unittest

import mwlive


class Threads(unittest.TestCase):
    def test_each_counts_for_itself(self):
        answer, report = mwlive.observe(self, 'threads', 4, 2000, 50)
        mwlive.compare(self, answer, report)
        by_name = {t['name']: t for t in report['threads']}
        for number in range(4):
            thread = by_name[f'worker-{number}']
            self.assertEqual(thread['size']['count'], 2050)
            self.assertEqual(thread['impacting']['count'], 50)
            stack, = mwlive.select(report, f'threads_leak_{number}')
            self.assertEqual([t['name'] for t in stack['threads']], [f'worker-{number}'])
            self.assertIn('work', mwlive.functions(stack))

    def test_short_lived(self):
        answer, report = mwlive.observe(self, 'thread_storm', 1000)
        mwlive.compare(self, answer, report)

    def test_leader_has_ended(self):
        answer, report = mwlive.observe(self, 'leader_exits')
        mwlive.compare(self, answer, report)

    def test_blocked_signals_and_dispositions(self):
        answer, report = mwlive.observe(self, 'sigmask')
        mwlive.compare(self, answer, report)


if __name__ == '__main__':
    mwlive.main()
