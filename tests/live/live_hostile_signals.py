#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that live by SIGSEGV and SIGTRAP themselves."""
import unittest

import mwlive


class Exact(unittest.TestCase):
    def exact(self, name, *arguments):
        answer, report = mwlive.observe(self, name, *arguments)
        mwlive.compare(self, answer, report)
        return answer, report


class Sigsegv(Exact):
    def test_write_barriers_of_a_collector(self):
        self.exact('faults', 'barrier')

    def test_faults_amidst_the_allocator(self):
        answer, _ = self.exact('faults', 'allocator')
        self.assertGreaterEqual(answer['handled'], 300)

    def test_handlers_that_are_exchanged_between_faults(self):
        self.exact('faults', 'changing')


class Sigtrap(Exact):
    def test_own_int3_and_raise_in_several_threads(self):
        self.exact('traps', 'threads')

    def test_action_changed_before_each_trap(self):
        self.exact('traps', 'changing')

    def test_sa_resethand(self):
        self.exact('traps', 'once')

    def test_sa_nodefer(self):
        self.exact('traps', 'nested')

    def test_sigaltstack(self):
        self.exact('traps', 'altstack')

    def test_blocked_and_taken_by_sigtimedwait_and_signalfd(self):
        self.exact('traps', 'blocked')

    def test_handler_that_moves_the_program_counter(self):
        self.exact('traps', 'skip')

    def test_single_steps_of_its_own(self):
        self.exact('traps', 'step')


if __name__ == '__main__':
    mwlive.main()
