#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""memwatch is killed, its guard too, amid a system call of a thread whose stack ends right below its stack pointer."""
import subprocess
import unittest

import mwlive

# The calls at which it is killed, by their number.
CALLS = (1, 4)
POINTS = ('call.begin', 'call.result')


class TinyStacks(unittest.TestCase):
    def kill_amid(self, target, point):
        """Let memwatch come to the point, and kill it there. False where it ends without coming to it."""
        process = subprocess.Popen([mwlive.config.memwatch, '-p', str(target.pid), '--engine', mwlive.config.engine,
                                    '--quiet', '-d', '0.01'], env=mwlive.with_fault(point + '!'),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(mwlive.kill_quietly, process)
        mwlive.wait_until(lambda: process.poll() is not None or mwlive.state(process.pid) == 'T',
                          f'memwatch comes to {point}', step=0.002)
        stopped = process.poll() is None
        if stopped:
            mwlive.kill_with_guard(process)
        _, err = process.communicate(timeout=mwlive.PATIENCE)
        self.assertEqual(err, b'')
        return stopped

    def memwatch(self, *arguments):
        run = subprocess.run([mwlive.config.memwatch, *map(str, arguments)], stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=mwlive.PATIENCE, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ''), run.stdout)

    def killed_amid(self, mode):
        target = mwlive.Target(self, 'tinystacks', mode)
        before = mwlive.Snapshot(target.pid)
        target.go()
        for point in POINTS:
            for number in CALLS:
                with self.subTest(mode, point=point, number=number):
                    self.assertTrue(self.kill_amid(target, f'{point}:{number}'))
                    # It does not get out of the call before memwatch is gone; then it watches over its stack.
                    self.assertIsNone(target.process.poll(), 'the target has died')
        # One that does not come to an end is cleaned up after by the next.
        self.memwatch('doctor', '-p', target.pid, '--clean')
        self.memwatch('-p', target.pid, '--engine', mwlive.config.engine, '--quiet', '-d', '0.05')
        before.check(self)
        target.send()
        self.assertEqual(target.done().get('intact'), 1)
        target.finish()

    def test_goroutine(self):
        self.killed_amid('goroutine')

    def test_signal(self):
        self.killed_amid('signal')

    def test_coroutine(self):
        self.killed_amid('coroutine')

    def test_segment(self):
        self.killed_amid('segment')

    def test_local(self):
        self.killed_amid('local')

    def test_thread(self):
        self.killed_amid('thread')


if __name__ == '__main__':
    mwlive.main()
