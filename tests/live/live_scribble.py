# SPDX-License-Identifier: MIT
"""A target that writes nonsense over all memory that it shares with memwatch: memwatch ends in time, and says something.

What such a target does to itself is its own affair. memwatch must not crash, not hang, and not fail silently: it reports
or says why not, and a window that Ctrl-C ends does end.
"""
import contextlib
import re
import signal
import subprocess
import time
import unittest

import mwlive

SPOILT = mwlive.attempts(1, 3)  # seconds of a window


class Scribble(unittest.TestCase):
    def setUp(self):
        if mwlive.config.engine != 'jump':
            self.skipTest('nothing is shared')

    def attempt(self, seed, kind, interrupt):
        target = mwlive.Target(self, 'shared_memory_corrupted', seed, kind)
        before = mwlive.Snapshot(target.pid)
        target.go()
        options = [] if interrupt else ['-d', str(SPOILT)]
        watch = subprocess.Popen([mwlive.config.memwatch, '-p', str(target.pid), '--engine', 'jump', *options],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(mwlive.kill_quietly, watch)
        if interrupt:
            mwlive.wait_until(lambda: watch.poll() is not None or before.touched(), 'memwatch begins')
            time.sleep(SPOILT)
            with contextlib.suppress(ProcessLookupError):
                watch.send_signal(signal.SIGINT)
        try:
            out, err = watch.communicate(timeout=mwlive.PATIENCE)
        except subprocess.TimeoutExpired:
            self.fail(f'memwatch hangs: seed {seed}, {kind}')
        said = f'seed {seed}, {kind}: {watch.returncode} {err.decode(errors="replace")}'
        self.assertIn(watch.returncode, (0, 1), said)
        self.assertNotIn(b'AddressSanitizer', err, said)
        self.assertNotIn(b'runtime error', err, said)
        if watch.returncode == 0:
            self.assertIn(b' watched ', out, said)
        else:
            self.assertRegex(err, rb'^memwatch: ', said)
        self.assertFalse(re.search(rb'crash', err), said)
        mwlive.kill_quietly(target.process)
        return watch.returncode

    def run_all(self, kinds):
        return [self.attempt(mwlive.SEED % 1000000 + i, kind, i % 2) for i, kind in enumerate(kinds)]

    def test_anything(self):
        self.run_all(('any', 'any'))

    def test_control(self):
        self.run_all(('control', 'control'))

    def test_slots_and_rings(self):
        self.run_all(('slots', 'rings', 'slots', 'rings'))

    def test_rows(self):
        self.run_all(('rows',))


if __name__ == '__main__':
    mwlive.main()
