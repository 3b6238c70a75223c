#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Signals: storms of them, handlers that allocate or jump, a program that owns SIGTRAP, job control."""
import os
import signal
import time
import unittest

import mwlive


class Signals(unittest.TestCase):
    def test_storm(self):
        answer, report = mwlive.observe(self, 'signals', 'storm')
        mwlive.compare(self, answer, report)

    def test_what_is_left_on_an_alternate_stack(self):
        """Nobody comes back to what signals interrupted there whose handlers have returned: no code is kept for it."""
        answer, report = mwlive.observe(self, 'signals', 'left')
        mwlive.compare(self, answer, report)
        self.assertIsNone(report['engine']['left_behind'])

    def test_handlers_that_allocate(self):
        answer, report = mwlive.observe(self, 'signals', 'alloc', env={'LD_PRELOAD': mwlive.target_path('libbump.so')})
        mwlive.compare(self, answer, report)
        # Where a signal came is no return address: at a function's first instruction it is in that function.
        interrupted = {f for s in mwlive.select(report, 'on_alloc') for f in mwlive.functions(s)}
        self.assertNotIn('frame_dummy', interrupted)

    def test_handlers_that_jump_out_of_malloc(self):
        answer, report = mwlive.observe(self, 'signals', 'jump', env={'LD_PRELOAD': mwlive.target_path('libbump.so')})
        got = mwlive.total_of(mwlive.select(report, 'signals_pair'))['size']['count']
        self.assertLessEqual(got, answer['entered'])
        # A jump between the allocation and its return is seen by nobody else than the target.
        self.assertGreaterEqual(got, answer['completed'] - answer['ticks'])

    def test_a_program_that_owns_sigtrap(self):
        answer, report = mwlive.observe(self, 'sigtrap')
        mwlive.compare(self, answer, report)

    def test_an_ignored_sigtrap_stays_ignored(self):
        """In what the program starts and becomes, and nowhere where it is not to be."""
        target = mwlive.Target(self, 'ignores', mwlive.target_path('simple'), 300)
        watch = mwlive.Watch(self, target.pid)
        target.go()
        self.assertEqual(target.done(), {'otherwise': 0, 'ignored': 1})
        target.go()
        self.assertEqual(target.line(), f'ready {target.pid}')  # the new program
        report, = watch.wait()
        self.assertEqual(report['window']['ended'], 'exec')
        self.assertEqual(int(mwlive.status(target.pid)['SigIgn'], 16), 1 << (signal.SIGTRAP - 1))
        target.go()
        target.done()
        target.finish()

    def test_threads_found_amidst_setting_their_masks(self):
        """What a thread had blocked when it was first seen is not what it has when it is left."""
        found = 0
        for number in range(3):
            with self.subTest(number):
                target = mwlive.Target(self, 'unmasking')
                mwlive.Watch(self, target.pid, busy=True).stop()
                target.go()
                answer = target.done()
                target.finish()
                self.assertEqual(answer['blocked'], 0)
                found += answer['amidst']
        # Those of engine jump stand too short a time to notice.
        if mwlive.config.engine == 'trap':
            self.assertGreater(found, 0)

    def test_stop_and_continue(self):
        target = mwlive.Target(self, 'threads', 4, 3000, 50)
        watch = mwlive.Watch(self, target.pid)
        target.go()
        for _ in range(3):
            time.sleep(0.05)
            os.kill(target.pid, signal.SIGSTOP)
            # A thread that is stopped for memwatch looks the same, and first finishes what it is in.
            mwlive.wait_until(lambda: self.is_still(target.pid), 'every thread is stopped', seconds=5)
            ticks = self.cpu_time(target.pid)
            time.sleep(0.2)
            self.assertEqual(self.cpu_time(target.pid), ticks, 'a stopped process ran')
            os.kill(target.pid, signal.SIGCONT)
        answer = target.done()
        report = watch.stop()
        mwlive.compare(self, answer, report)
        target.finish()

    def test_detach_while_stopped(self):
        target = mwlive.Target(self, 'threads', 2, 100, 10)
        watch = mwlive.Watch(self, target.pid)
        os.kill(target.pid, signal.SIGSTOP)
        mwlive.wait_until(lambda: all(mwlive.state(t) in 'Tt' for t in mwlive.tids(target.pid)),
                          'every thread is stopped')
        watch.process.send_signal(signal.SIGINT)
        watch.wait()
        # Whoever stopped it finds it stopped.
        mwlive.wait_until(lambda: all(mwlive.state(t) == 'T' for t in mwlive.tids(target.pid)), 'still stopped')
        os.kill(target.pid, signal.SIGCONT)
        mwlive.wait_until(lambda: all(mwlive.state(t) == 'S' for t in mwlive.tids(target.pid)), 'running again')
        watch.check_targets()
        target.go()
        target.done()
        target.finish()

    def is_still(self, pid):
        ticks = self.cpu_time(pid)
        time.sleep(0.1)
        return self.cpu_time(pid) == ticks and all(mwlive.state(t) in 'Tt' for t in mwlive.tids(pid))

    @staticmethod
    def cpu_time(pid):
        with open(f'/proc/{pid}/stat', encoding='utf-8') as f:
            fields = f.read().rsplit(')', 1)[1].split()
        return fields[11], fields[12]


if __name__ == '__main__':
    mwlive.main()
