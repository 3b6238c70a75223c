#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Control that goes other ways than call and return: contexts, jumps and exceptions, out of the allocator as well."""
import subprocess
import unittest

import mwjump
import mwlive


class Control(unittest.TestCase):
    def exact(self, name, *arguments):
        answer, report = mwlive.observe(self, name, *arguments)
        mwlive.compare(self, answer, report)
        return answer, report

    def leaves(self, mode, abandons=False):
        """What leaves operator new otherwise: libstdc++'s, and the program's own, called as often as without us."""
        self.exact('throws', mode)
        alone = subprocess.run([mwlive.target_path('throws_own'), mode], stdin=subprocess.DEVNULL, capture_output=True,
                               text=True, check=True, timeout=mwlive.PATIENCE).stdout
        answer = self.abandoned(mode) if abandons else self.exact('throws_own', mode)[0]
        self.assertIn(f'\noperator_calls={answer["operator_calls"]}\n', alone)
        self.assertGreater(answer['operator_calls'], 100)

    def abandoned(self, mode):
        """Contexts that are left for good amidst a call look like such that will come back: the code that they would
        return to may stay, and that is told."""
        target = mwlive.Target(self, 'throws_own', mode)
        watch = mwlive.Watch(self, target.pid)
        target.go()
        answer = target.done()
        report = watch.stop(intact=False)
        mwlive.compare(self, answer, report)
        mwjump.check_text_of_files(self, target.pid)
        if not report['engine']['left_behind']:
            watch.check_targets()
        target.finish()
        return answer

    def test_ucontext_coroutines_that_change_threads(self):
        _, report = self.exact('switches')
        for stack in mwlive.select(report, 'switches_leak'):
            self.assertIn('coroutine_main', mwlive.functions(stack))

    def test_bad_alloc_and_others_thrown_by_a_new_handler(self):
        self.leaves('handler')

    def test_longjmp_out_of_operator_new(self):
        self.leaves('jump')

    def test_contexts_switched_within_operator_new(self):
        self.leaves('switch', abandons=True)

    def test_threads_that_end_within_operator_new(self):
        self.leaves('exit')

    def test_constructors_that_throw(self):
        self.leaves('construct')

    def test_exceptions_that_cross_threads(self):
        self.leaves('cross')


if __name__ == '__main__':
    mwlive.main()
