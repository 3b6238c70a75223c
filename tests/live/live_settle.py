#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--settle: blocks in flight at the window's end are not taken for kept ones, and the window's own figures stay what they were."""
import os
import pty
import signal
import struct
import subprocess
import tempfile
import threading
import unittest

import mwlive
import mwrec

REQUESTS = ('request_block', 'request_buffer', 'request_map')


def stack_of(report, function):
    found = mwlive.select(report, function)
    return max(found, key=lambda s: s['size']['count']) if found else None


FLIGHT = 100  # steps that a request takes


class Service(mwlive.Target):
    """Serves requests, and tells how far it is."""

    def __init__(self, test):
        self.board = tempfile.NamedTemporaryFile(prefix='mwlive-')
        test.addCleanup(self.board.close)
        self.board.truncate(4096)
        super().__init__(test, 'settles', self.board.name)
        self.go()
        mwlive.wait_until(lambda: self.steps() > FLIGHT, 'requests are served')

    def steps(self):
        return struct.unpack('Q', os.pread(self.board.fileno(), 8, 0))[0]

    def await_requests(self):
        """All requests that are being served now are over."""
        until = self.steps() + FLIGHT + 5
        mwlive.wait_until(lambda: self.steps() >= until, 'requests end')


class Terminal:
    """Reads what memwatch shows, and notices when it says that it settles."""

    def __init__(self, test):
        self.leader, self.follower = pty.openpty()
        self.test = test
        self.settles = threading.Event()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        test.addCleanup(self.close)

    def read(self):
        text = b''
        try:
            while chunk := os.read(self.leader, 4096):
                text = text[-100:] + chunk
                if b'settling: ' in text:
                    self.settles.set()
        except OSError:  # the last one that could write is gone
            pass

    def await_settling(self):
        self.test.assertTrue(self.settles.wait(mwlive.PATIENCE), 'memwatch does not say that it settles')

    def close(self):
        os.close(self.follower)
        self.reader.join(mwlive.PATIENCE)
        os.close(self.leader)


class Settle(unittest.TestCase):
    def settling(self, *targets, options=(), seconds=0.7, **more):
        """memwatch, with its windows over; what was in flight then has been freed."""
        terminal = Terminal(self)
        watch = mwlive.Watch(self, *(t.pid for t in targets), options=('-d', seconds, '--settle', '100', *options), busy=True,
                             terminal=terminal.follower, **more)
        terminal.await_settling()
        for target in targets:
            target.await_requests()
        self.assertIsNone(watch.process.poll())
        return watch

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
        self.assertGreater(leak['impacting']['count'], 0)
        self.assertEqual(leak['settled_later'], {'count': 0, 'bytes': 0})
        for function in REQUESTS:
            stack = stack_of(report, function)
            self.assertGreater(stack['impacting']['count'], 0, function)
            if settled:
                self.assertEqual(stack['settled_later'], stack['impacting'], function)
                self.assertEqual((stack['growth']['verdict'], stack['growth']['certain']), ('churn', True), function)

    def test_in_flight_and_leaked(self):
        target = Service(self)
        path = os.path.join(mwrec.directory(self), 'recording.mw')
        watch = self.settling(target, options=('-o', path), seconds=1)
        report = watch.stop()
        self.assertEqual((report['window']['seconds'], report['window']['to']), (1, 1))
        self.assertGreater(report['window']['settle'], 0)
        self.assertLessEqual(max(s['at'] for s in report['memory']), 1)
        self.assertEqual(report['memory'][-1]['heap_impacting'], report['totals']['heap']['impacting']['bytes'])
        self.check(report)
        again, = mwrec.reports(self, path)
        mwrec.compare(self, report, again)
        # An interval that ends earlier knows nothing of it, one that ends with the window does.
        part = mwrec.interval(self, path, 0, 0.9)
        self.assertEqual(part['totals']['heap']['settled_later'], {'count': 0, 'bytes': 0})
        rest = mwrec.interval(self, path, 0.1)
        self.assertGreater(rest['totals']['heap']['settled_later']['count'], 0)
        target.finish()

    def test_not_at_all(self):
        target = Service(self)
        watch = mwlive.Watch(self, target.pid, options=('-d', '1', '--settle', '0'), busy=True)
        report, = watch.wait()
        watch.check_targets()
        self.assertEqual(report['window']['settle'], 0)
        self.check(report, settled=False)
        self.assertEqual(report['totals']['heap']['settled_later'], {'count': 0, 'bytes': 0})
        target.finish()

    def test_short_windows_do_not_unless_asked_to(self):
        target = Service(self)
        watch = mwlive.Watch(self, target.pid, options=('-d', '1'), busy=True, settle=None)
        report, = watch.wait()
        self.assertEqual(report['window']['settle'], 0)
        watch = mwlive.Watch(self, target.pid, options=('-d', '5'), busy=True, settle=None)
        report, = watch.wait()
        self.assertGreaterEqual(report['window']['settle'], 0.5)
        self.check(report, settled=False)
        self.assertGreater(report['totals']['heap']['settled_later']['count'], 0)
        target.finish()

    def test_interrupted_windows_do_not(self):
        target = Service(self)
        watch = mwlive.Watch(self, target.pid, options=('-d', '50', '--settle', '40'), busy=True)
        report = watch.stop()
        self.assertEqual((report['window']['ended'], report['window']['settle']), ('interrupt', 0))
        target.finish()

    def test_a_signal_ends_it(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                target = Service(self)
                report = self.settling(target).stop(number)
                self.assertTrue(0 < report['window']['settle'] < 100)
                self.check(report)
                target.finish()

    def test_the_end_of_the_process_ends_it(self):
        target = Service(self)
        watch = self.settling(target)
        target.finish()
        report, = watch.wait()
        self.assertEqual(report['target']['exit_status'], 0)
        self.check(report)

    def test_several(self):
        """One of them ends within its window."""
        targets = [Service(self) for _ in range(3)]
        terminal = Terminal(self)
        watch = mwlive.Watch(self, *(t.pid for t in targets), options=('-d', '4', '--settle', '100'), busy=True,
                             terminal=terminal.follower)
        targets[0].finish()
        terminal.await_settling()
        for target in targets[1:]:
            target.await_requests()
        watch.process.send_signal(signal.SIGINT)
        ended, *others = watch.wait()
        self.assertEqual((ended['window']['ended'], ended['window']['settle']), ('exit', 0))
        for report in others:
            self.check(report)
        for target in targets[1:]:
            target.finish()

    def test_killed(self):
        """The target goes on as if nothing had been, and can be watched again."""
        for guard in (True, False):
            with self.subTest(guard=guard):
                target = Service(self)
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
                target.await_requests()
                # The next one takes out what is left, which looks like a window's begin.
                subprocess.run([mwlive.config.memwatch, '-p', str(target.pid), '--engine', mwlive.config.engine, '-d', '0.2',
                                '--quiet', '--json', os.devnull], stdin=subprocess.DEVNULL, timeout=mwlive.PATIENCE,
                               check=True)
                self.check(self.settling(target).stop(intact=False))
                snapshot.check(self)
                target.finish()

    def test_text_and_refusal(self):
        target = Service(self)
        run = subprocess.run([mwlive.config.memwatch, '-p', str(target.pid), '--engine', mwlive.config.engine, '-d', '1',
                              '--settle', '0.5', '--all'], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=mwlive.PATIENCE, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, r'settled: frees were recorded for \d')
        self.assertRegex(run.stdout, r'\d+ blocks? \([^)]*\) (was|were) freed within the settling time')
        run = subprocess.run([mwlive.config.memwatch, '-p', str(os.getpid()), '--settle', '3'], capture_output=True,
                             text=True, timeout=mwlive.PATIENCE, check=False)
        self.assertEqual(run.returncode, 2)
        self.assertIn('-d', run.stderr)
        target.finish()


if __name__ == '__main__':
    mwlive.main()
