#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts and bytes of every entry point, to the last one, single-threaded."""
import subprocess
import unittest

import mwlive


class Exact(unittest.TestCase):
    def test_every_entry_point(self):
        answer, report = mwlive.observe(self, 'exact')
        mwlive.compare(self, answer, report)

    def test_functions(self):
        answer, report = mwlive.observe(self, 'simple')
        mwlive.compare(self, answer, report)
        leak = mwlive.select(report, 'simple_leak')
        self.assertEqual(len(leak), 1)
        self.assertEqual(mwlive.functions(leak[0])[:3], ['simple_leak', 'simple_round', 'main'])
        self.assertTrue(leak[0]['frames'][0]['file'].endswith('simple.c'))
        self.assertFalse(leak[0]['truncated'])
        self.assertEqual(report['modules'][0]['module'], mwlive.target_path('simple'))

    def test_lifetimes(self):
        answer, report = mwlive.observe(self, 'simple', 200, 500)
        mwlive.compare(self, answer, report)
        for stack in mwlive.select(report, 'simple_churn'):
            life = stack['lifetime_ns']
            self.assertLessEqual(life['min'], life['median'])
            self.assertLessEqual(life['median'], life['p99'] * 1.05)
            self.assertLessEqual(life['p99'], life['max'] * 1.05)
            self.assertLess(life['max'], report['window']['seconds'] * 1e9)
        for stack in mwlive.select(report, 'simple_leak'):
            self.assertIsNone(stack['lifetime_ns'])

    def test_same_stack_ids_in_every_process(self):
        ids = []
        for _ in range(2):
            _, report = mwlive.observe(self, 'simple', 10)
            ids.append({s['id']: mwlive.functions(s) for s in mwlive.select(report, 'simple_round')})
        self.assertGreater(len(ids[0]), 2)
        self.assertEqual(ids[0], ids[1])

    def test_result_is_the_same_when_watched(self):
        alone = subprocess.run([mwlive.target_path('checksum')], stdin=subprocess.DEVNULL, capture_output=True,
                               text=True, timeout=mwlive.PATIENCE, check=True).stdout
        answer, report = mwlive.observe(self, 'checksum')
        self.assertIn(f'checksum={answer["checksum"]}\n', alone)
        mwlive.compare(self, answer, report)

    def test_free_that_jumps_to_its_own_start(self):
        answer, report = mwlive.observe(self, 'restarts')
        mwlive.compare(self, answer, report)

    def test_only_heap(self):
        answer, report = mwlive.observe(self, 'simple', 50, options=('--track', 'heap'))
        mwlive.compare(self, answer, report)
        self.assertEqual([s for s in report['stacks'] if s['kind'] != 'heap'], [])

    def test_cut_stacks_are_marked(self):
        _, report = mwlive.observe(self, 'simple', 50, options=('--depth', 2))
        stacks = mwlive.select(report, 'simple_leak')
        self.assertTrue(stacks and all(s['truncated'] for s in stacks))
        self.assertTrue(all(len([f for f in s['frames'] if not f['inlined']]) == 2 for s in stacks))


class CxxOperators(unittest.TestCase):
    def test_of_the_library(self):
        answer, report = mwlive.observe(self, 'cxxnew')
        mwlive.compare(self, answer, report)

    def test_of_the_program(self):
        answer, report = mwlive.observe(self, 'cxxnew_own')
        mwlive.compare(self, answer, report)
        leak = mwlive.select(report, 'cxx_leak')
        self.assertEqual([s['api'] for s in leak], ['operator new(unsigned long)'])

    def test_linked_into_the_program(self):
        for name in ('cxxnew_linked', 'cxxnew_static'):
            with self.subTest(name):
                answer, report = mwlive.observe(self, name)
                mwlive.compare(self, answer, report)


if __name__ == '__main__':
    mwlive.main()
