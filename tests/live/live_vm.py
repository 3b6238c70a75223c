#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Mappings and the program break, to the byte."""
import unittest

import mwlive


class Vm(unittest.TestCase):
    def test_mappings(self):
        answer, report = mwlive.observe(self, 'vm')
        mwlive.compare(self, answer, report)

    def test_an_allocators_own_mappings_are_apart(self):
        _, report = mwlive.observe(self, 'exact')
        self.assertEqual(report['totals']['vm']['size']['count'], 0)
        internal = mwlive.total_of(s for s in report['stacks'] if s['kind'] == 'vm-internal')
        self.assertGreater(internal['size']['bytes'], 5000000)

    def test_mappings_that_follow_a_free(self):
        """What is called where a freeing function was called before is not its doing."""
        answer, report = mwlive.observe(self, 'stacks_after_free')
        stacks = mwlive.select(report, 'free_and_start', kinds=('vm',))
        self.assertEqual(mwlive.total_of(stacks)['impacting']['count'], answer['stacks'])


if __name__ == '__main__':
    mwlive.main()
