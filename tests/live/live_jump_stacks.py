#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Allocations where there is little stack or none, and exceptions and jumps that leave the allocator."""
import glob
import unittest

import mwlive


class Stacks(unittest.TestCase):
    def exact(self, name, *arguments, **options):
        answer, report = mwlive.observe(self, name, *arguments, **options)
        mwlive.compare(self, answer, report)
        return answer, report

    def broken(self, report, function):
        return [mwlive.functions(s) for s in mwlive.select(report, function) if s['cut']]

    def test_handlers_on_a_stack_of_8_kib(self):
        _, report = self.exact('smallstacks', 'signal')
        self.assertEqual(self.broken(report, 'small_leak'), [])
        for stack in mwlive.select(report, 'small_leak'):
            self.assertIn('main', mwlive.functions(stack))

    def test_coroutines(self):
        _, report = self.exact('smallstacks', 'coroutine')
        for stack in mwlive.select(report, 'small_leak'):
            self.assertIn('coroutine', mwlive.functions(stack))

    def test_threads_with_the_smallest_stack(self):
        _, report = self.exact('smallstacks', 'thread')
        self.assertEqual(self.broken(report, 'small_leak'), [])

    def test_stack_overflow(self):
        answer, report = mwlive.observe(self, 'overflow', 100, env={'LD_PRELOAD': mwlive.target_path('libbump.so')})
        mwlive.compare(self, answer, report)
        got = mwlive.total_of(mwlive.select(report, 'overflow_descend'))['size']['count']
        # What the stack ended in is seen or not.
        handled = answer['overflow_handled.impacting.count']
        self.assertLessEqual(got, answer['entered'])
        self.assertGreaterEqual(got, answer['completed'] - handled - answer['overflows'])

    def test_bad_alloc_through_operator_new(self):
        self.exact('cxxnew_own')
        self.exact('cxxnew')

    def test_bad_alloc_through_jemalloc_and_tcmalloc(self):
        tried = 0
        for name in ('libjemalloc.so.2', 'libtcmalloc_minimal.so.4'):
            for path in glob.glob(f'/usr/lib/*/{name}')[:1]:
                with self.subTest(name):
                    self.exact('cxxnew', env={'LD_PRELOAD': path})
                tried += 1
        if not tried:
            self.skipTest('no other allocator is installed')

    def test_deep_templates_and_exceptions(self):
        _, report = mwlive.observe(self, 'templates', 5)
        self.assertEqual([mwlive.functions(s) for s in report['stacks'] if s['cut'] == 'broken'], [])


if __name__ == '__main__':
    mwlive.main()
