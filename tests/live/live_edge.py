#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The window's end: what the program had freed by then, by its own clock, is not reported as outstanding."""
import datetime
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import mwlive

THREADS = 3
LOGGED, MOST, ENTRY = 65536, 8, 32
NEAR_NS = 1_000_000  # between two clocks that are read one after the other


class Edge(unittest.TestCase):
    def setUp(self):
        self.board = tempfile.NamedTemporaryFile(prefix='mwlive-')
        self.addCleanup(self.board.close)
        self.board.truncate(MOST * LOGGED * ENTRY)
        self.target = mwlive.Target(self, 'edges', self.board.name, THREADS)
        self.target.go()
        self.seen = 0
        self.addCleanup(lambda: self.assertGreater(self.seen, 100))

    def logged(self, address, size):
        """When frees of such a block began and had returned, of each thread."""
        for thread in range(THREADS):
            entry = os.pread(self.board.fileno(), ENTRY, (thread * LOGGED + size - 16) * ENTRY)
            at, bytes_, begun, returned = struct.unpack('4Q', entry)
            if (at, bytes_) == (address, size) and returned >= begun > 0:
                yield begun, returned

    def watch(self, *options):
        return mwlive.Watch(self, self.target.pid, options=('--blocks', 1000, *options), busy=True)

    def window(self, *options):
        """One that may be over before anybody has looked."""
        run = subprocess.run([mwlive.config.memwatch, '-p', str(self.target.pid), '--engine', mwlive.config.engine, '--quiet',
                              '--json', '-', '--blocks', '1000', '--settle', '0', *options], stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=mwlive.PATIENCE, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        report = json.loads(run.stdout)
        mwlive.check_report(self, report)
        self.check(report)

    def check(self, report, begun_ns=0):
        """None of the blocks that are outstanding had been freed. How many frees had begun so long before the end?"""
        monotonic = time.monotonic_ns() - time.time_ns()
        start = int(datetime.datetime.fromisoformat(report['window']['started']).timestamp() * 1e6) * 1000 + monotonic
        end = start + int(report['window']['to'] * 1e9)
        rows = [row for row in report['blocks']['rows'] if row['kind'] == 'heap']
        self.assertEqual(len(rows), report['totals']['heap']['impacting']['count'])
        self.seen += report['totals']['heap']['size']['count']
        begun = 0
        for row in rows:
            frees = [t for t in self.logged(row['address'], row['bytes']) if t[0] >= start + row['allocated_ns']]
            wrong = [(end - t[1]) / 1e6 for t in frees if t[1] < end - NEAR_NS]
            self.assertEqual(wrong, [], f'freed so many ms before the end: {row}')
            begun += any(t[0] < end - begun_ns for t in frees)
        return begun

    def test_windows_of_a_length(self):
        for number in range(mwlive.attempts(25, 1000)):
            self.window('-d', f'{0.05 + number % 7 * 0.011:.3f}')
        # Samples are taken at full seconds, before what waits meanwhile is served.
        for _ in range(mwlive.attempts(3, 50)):
            self.window('-d', '1')

    def test_interrupted_windows(self):
        for number in range(mwlive.attempts(15, 500)):
            watch = self.watch()
            time.sleep(0.03 + number % 5 * 0.013)
            self.check(watch.stop(intact=False))

    @unittest.skipIf('jump' in sys.argv, 'the recorder is in the process: nobody waits for memwatch')
    def test_frees_that_wait_are_of_the_window(self):
        """memwatch gets no CPU when the window ends (and its guard would have it go on): threads that called free wait for it.

        By their own clock alone it can't be told whether they had come that far: they may not have had a CPU either."""
        rounds = mwlive.attempts(6, 100)
        begun = 0
        for _ in range(rounds):
            watch = self.watch('-d', '1.5')
            time.sleep(1.2)
            for _ in range(20):
                watch.process.send_signal(signal.SIGSTOP)
                time.sleep(0.02)
            watch.process.send_signal(signal.SIGCONT)
            begun += self.check(watch.wait()[0], begun_ns=30_000_000) > 0
        self.assertLess(begun, rounds / 3)

    def test_windows_that_settle(self):
        for number in range(mwlive.attempts(10, 300)):
            self.window('-d', f'{0.05 + number % 7 * 0.011:.3f}', '--settle', '0.1')


if __name__ == '__main__':
    mwlive.main()
