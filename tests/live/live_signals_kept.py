#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No signal of the target's is lost, and none comes twice, when all of memwatch is killed at any instant.

The kernel takes a signal off the queue before it tells the tracer. Should that be killed before it has passed the
signal on, the kernel does so, but only where the tracer has not waited for the stop. So memwatch is killed right there:
by a seccomp filter of its own, at the system call that would pass one on. And at random instants: KILLS times, and by
scripts/soak as long as one likes.
"""
import contextlib
import ctypes
import os
import signal
import struct
import subprocess
import tempfile
import time
import unittest

import mwlive

KILLS = mwlive.attempts(3, 30)
ROUNDS = 50  # of the target's, to count as going on
SYS_PTRACE = 101
PTRACE_CONT = 7
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
KILL_PROCESS, ALLOW = 0x80000000, 0x7fff0000
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06


def kill_at(request):
    """A filter that ends who resumes a thread by `request` with a signal of the target's."""
    program = [
        (LOAD, 0, 0, 0),  # the system call's number
        (EQUAL, 0, 6, SYS_PTRACE),
        (LOAD, 0, 0, 16),
        (EQUAL, 0, 4, request),
        (LOAD, 0, 0, 40),
        (EQUAL, 1, 0, signal.SIGUSR2),
        (AT_LEAST, 0, 1, signal.SIGRTMIN),
        (RETURN, 0, 0, KILL_PROCESS),
        (RETURN, 0, 0, ALLOW),
    ]
    code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *line) for line in program))
    header = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', len(program), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)

    def install(keep=code):
        if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header, 0, 0):
            os._exit(99)
        return keep
    return install


def family(pid):
    """memwatch's processes, its own first."""
    found = [pid]
    with contextlib.suppress(OSError):
        for tid in mwlive.tids(pid):
            with open(f'/proc/{pid}/task/{tid}/children', encoding='utf-8') as f:
                found += map(int, f.read().split())
    return found


class SignalsKept(unittest.TestCase):
    def setUp(self):
        self.chance = mwlive.chance(self.id())
        self.board = tempfile.NamedTemporaryFile(prefix='mwlive-')  # pylint: disable=consider-using-with
        self.addCleanup(self.board.close)
        self.board.truncate(4096)
        self.target = mwlive.Target(self, 'signals_queued', self.board.name)
        self.goes_on('at its start')
        self.before = mwlive.Snapshot(self.target.pid)

    def goes_on(self, when):
        def rounds():
            return struct.unpack('Q', os.pread(self.board.fileno(), 8, 0))[0]
        first = rounds()

        def more():
            self.assertIsNone(self.target.process.poll(), f'the target has ended {when}')
            return rounds() >= first + ROUNDS
        mwlive.wait_until(more, f'the target goes on {when}')

    def start(self, seconds, before=None):
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            [mwlive.config.memwatch, '-p', str(self.target.pid), '--engine', mwlive.config.engine, '--quiet', '-d',
             str(seconds)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=before)
        self.addCleanup(mwlive.kill_quietly, process)
        return process

    def clean(self):
        """Where threads got no CPU to leave what a killed memwatch left, doctor says to try again later: so does this."""
        for _ in range(5):
            run = subprocess.run([mwlive.config.memwatch, 'doctor', '-p', str(self.target.pid), '--clean'],
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=mwlive.PATIENCE,
                                 check=False)
            if 'try again later' not in run.stderr:
                break
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def check(self):
        """Nothing is left, and all that was sent has arrived."""
        self.clean()
        self.before.check(self)
        self.target.go()
        answer = self.target.done()
        what = f'seed {mwlive.SEED}: {answer}'
        self.assertGreater(answer['sent'], 0)
        self.assertEqual(answer['arrived'], answer['sent'], what)
        self.assertEqual(answer['arrived_sum'], answer['sent_sum'], what)
        self.assertEqual(answer['old_arrived'], answer['old_sent'], what)
        self.target.finish()

    def test_killed_before_it_passes_a_signal_on(self):
        """And its guard likewise."""
        killed = tries = 0
        while killed < KILLS:
            # With engine jump there is but a moment in which it may come to that.
            self.assertLess(tries, 20 * KILLS, f'{killed} were killed')
            tries += 1
            process = self.start(0.01, kill_at(PTRACE_CONT))
            process.communicate(timeout=mwlive.PATIENCE)
            self.assertIn(process.returncode, (0, -signal.SIGSYS))
            self.goes_on(f'after {tries} tries')
            killed += process.returncode != 0
            if tries % 4 == 0:
                self.clean()
        self.check()

    def test_killed_at_random(self):
        """All processes of it at once, mostly while threads are stopped and resumed."""
        for number in range(KILLS):
            process = self.start(self.chance.choice((0.05, 5)))
            time.sleep(self.chance.uniform(0, 0.15))
            self.target_is_traced(process)
            time.sleep(self.chance.uniform(0, 0.1))
            for pid in family(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.communicate(timeout=mwlive.PATIENCE)
            self.goes_on(f'after kill {number}')
            if self.chance.random() < 0.5:
                self.clean()
        self.check()

    def target_is_traced(self, process):
        """Sometimes wait for the attach."""
        if self.chance.random() < 0.7:
            mwlive.wait_until(lambda: process.poll() is not None or
                              mwlive.status(self.target.pid).get('TracerPid', '0') != '0', 'the attach', step=0.0005)


if __name__ == '__main__':
    mwlive.main()
