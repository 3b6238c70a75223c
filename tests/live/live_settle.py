#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--settle: what was only in flight at the window's end is told apart, and the window's own figures stay what they were."""
import os
import signal
import subprocess
import time
import unittest

import mwlive
import mwrec

REQUESTS = ('request_block', 'request_buffer', 'request_map')


def stack_of(report, function):
    found = mwlive.select(report, function)
    return max(found, key=lambda s: s['size']['count']) if found else None


class Settle(unittest.TestCase):
    def start(self, *arguments):
        target = mwlive.Target(self, 'settles', *arguments)
        target.go()
        return target

    def check(self, report, settled=True):
        """Requests in flight are freed, leaks are not."""
        self.assertEqual(report['window']['ended'], 'duration')
        sums = {'heap': [0, 0], 'vm': [0, 0], 'vm-internal': [0, 0]}
        for stack in report['stacks']:
            later, there = stack['settled_later'], stack['impacting']
            self.assertLessEqual(later['count'], there['count'])
            self.assertLessEqual(later['bytes'], there['bytes'])
            sums[stack['kind']][0] += later['count']
            sums[stack['kind']][1] += later['bytes']
        for kind, total in report['totals'].items():
            self.assertEqual([total['settled_later']['count'], total['settled_later']['bytes']], sums[kind], kind)
        leak = stack_of(report, 'leak')
        self.assertGreater(leak['impacting']['count'], 5)
        self.assertEqual(leak['settled_later'], {'count': 0, 'bytes': 0})
        for function in REQUESTS:
            stack = stack_of(report, function)
            # All that a request holds is gone after a fifth of a second; but mappings are of one that came with it.
            self.assertGreater(stack['impacting']['count'], 3, function)
            if settled:
                self.assertEqual(stack['settled_later'], stack['impacting'], function)
                self.assertEqual((stack['growth']['verdict'], stack['growth']['certain']), ('churn', True), function)
            else:
                self.assertEqual(stack['settled_later'], {'count': 0, 'bytes': 0}, function)

    def test_in_flight_and_leaked(self):
        target = self.start()
        kept = mwrec.Kept(self, target.pid, options=('-d', '1', '--settle', '1'), busy=True)
        report, = kept.watch.wait()
        kept.watch.check_targets()
        self.assertEqual((report['window']['seconds'], report['window']['to']), (1, 1))
        self.assertGreaterEqual(report['window']['settle'], 1)
        self.assertLessEqual(max(s['at'] for s in report['memory']), 1)
        self.assertEqual(report['memory'][-1]['heap_impacting'], report['totals']['heap']['impacting']['bytes'])
        self.check(report)
        kept.check_same()
        # An interval that ends earlier knows nothing of it, one that ends with the window does.
        part = mwrec.interval(self, kept.path, 0, 0.9)
        self.assertEqual(part['totals']['heap']['settled_later'], {'count': 0, 'bytes': 0})
        rest = mwrec.interval(self, kept.path, 0.1)
        self.assertGreater(rest['totals']['heap']['settled_later']['count'], 50)
        target.finish()

    def test_not_at_all(self):
        target = self.start()
        watch = mwlive.Watch(self, target.pid, options=('-d', '1', '--settle', '0'), busy=True)
        report, = watch.wait()
        watch.check_targets()
        self.assertEqual(report['window']['settle'], 0)
        self.check(report, settled=False)
        target.finish()

    def test_short_windows_do_not_unless_asked_to(self):
        target = self.start()
        watch = mwlive.Watch(self, target.pid, options=('-d', '0.5'), busy=True, settle=None)
        report, = watch.wait()
        self.assertEqual(report['window']['settle'], 0)
        watch = mwlive.Watch(self, target.pid, options=('-d', '5'), busy=True, settle=None)
        report, = watch.wait()
        self.assertGreaterEqual(report['window']['settle'], 0.5)
        self.check(report)
        target.finish()

    def test_interrupted_windows_do_not(self):
        target = self.start()
        watch = mwlive.Watch(self, target.pid, options=('-d', '50', '--settle', '40'), busy=True)
        report = watch.stop()
        self.assertEqual((report['window']['ended'], report['window']['settle']), ('interrupt', 0))
        target.finish()

    def settling(self, target, *options, seconds=0.4):
        """memwatch, with its window over."""
        watch = mwlive.Watch(self, target.pid, options=('-d', seconds, '--settle', '60', *options), busy=True)
        time.sleep(seconds + 0.6 * mwlive.SLOWNESS)
        self.assertIsNone(watch.process.poll())
        return watch

    def test_a_signal_ends_it(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                target = self.start()
                report = self.settling(target).stop(number)
                self.assertEqual(report['window']['ended'], 'duration')
                self.assertTrue(0 < report['window']['settle'] < 60)
                self.check(report)
                target.finish()

    def test_the_end_of_the_process_ends_it(self):
        target = self.start()
        watch = self.settling(target)
        target.finish()
        report, = watch.wait()
        self.assertEqual((report['window']['ended'], report['target']['exit_status']), ('duration', 0))
        self.check(report)

    def test_several(self):
        targets = [self.start() for _ in range(2)]
        short = self.start(100)  # ends within the window
        watch = mwlive.Watch(self, short.pid, *(t.pid for t in targets), options=('-d', '1', '--settle', '0.5'), busy=True)
        short.process.wait(mwlive.PATIENCE)
        ended, *others = watch.wait()
        self.assertEqual((ended['window']['ended'], ended['window']['settle']), ('exit', 0))
        for report in others:
            self.check(report)
        for target in targets:
            target.finish()

    def test_killed(self):
        """The target goes on as if nothing had been, and can be watched again."""
        for guard in (True, False):
            with self.subTest(guard=guard):
                target = self.start()
                snapshot = mwlive.Snapshot(target.pid)
                watch = self.settling(target)
                if guard:
                    helper = mwlive.guard_of(watch.process.pid)
                    watch.process.kill()
                    watch.process.wait()
                    if helper:
                        mwlive.await_end_of(helper)
                    mwlive.wait_until(lambda: not snapshot.touched(), 'the guard cleans up')
                    snapshot.check(self)
                else:
                    mwlive.kill_with_guard(watch.process)
                    watch.process.wait()
                time.sleep(0.3)
                self.assertIsNone(target.process.poll())
                again = mwlive.Watch(self, target.pid, options=('-d', '0.7', '--settle', '0.7'), busy=True)
                report, = again.wait()
                self.check(report)
                snapshot.check(self)
                target.finish()

    def test_text_and_refusal(self):
        target = self.start()
        run = subprocess.run([mwlive.config.memwatch, '-p', str(target.pid), '--engine', mwlive.config.engine, '-d', '1',
                              '--settle', '0.5'], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=mwlive.PATIENCE, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, r'settled: frees were recorded for \d')
        self.assertRegex(run.stdout, r'\d+ blocks \([^)]*\) were freed within the settling time')
        run = subprocess.run([mwlive.config.memwatch, '-p', str(os.getpid()), '--settle', '3'], capture_output=True,
                             text=True, timeout=mwlive.PATIENCE, check=False)
        self.assertEqual(run.returncode, 2)
        self.assertIn('-d', run.stderr)
        target.finish()


if __name__ == '__main__':
    mwlive.main()
