# SPDX-License-Identifier: MIT
"""memwatch with the system calls of Linux 4.18 alone, and without what old processors lack: a filter answers as they do."""
import errno
import os
import signal
import stat
import shutil
import subprocess
import sys
import tempfile
import unittest

import mwlive

# A filter as the kernel takes it, lines of operation, jump if true, jump if false, operand; a call, and what it then fails with.
# What is not in 4.18's table is ENOSYS; who would wait for randomness is killed.
OLD_KERNEL = ((
    (0x20, 0, 0, 0),           # load the number
    (0x25, 3, 0, 334),         # greater than that of rseq?
    (0x15, 0, 4, 318),         # getrandom?
    (0x20, 0, 0, 32),          # load its flags
    (0x45, 2, 1, 1),           # GRND_NONBLOCK?
    (0x06, 0, 0, 0x00050026),  # ENOSYS
    (0x06, 0, 0, 0x80000000),  # killed
    (0x06, 0, 0, 0x7fff0000)), # allowed
    (434, 0, 0), errno.ENOSYS) # pidfd_open
# Where the processor knows no XSAVE, ptrace(PTRACE_GETREGSET, …, NT_X86_XSTATE, …) is ENODEV.
OLD_PROCESSOR = ((
    (0x20, 0, 0, 0),           # load the number
    (0x15, 0, 5, 101),         # ptrace?
    (0x20, 0, 0, 16),          # load the request
    (0x15, 0, 3, 0x4204),      # PTRACE_GETREGSET?
    (0x20, 0, 0, 32),          # load which
    (0x15, 0, 1, 0x202),       # NT_X86_XSTATE?
    (0x06, 0, 0, 0x00050013),  # ENODEV
    (0x06, 0, 0, 0x7fff0000)), # allowed
    (101, 0x4204, 0, 0x202, 0), errno.ENODEV)

# Runs a program under a filter.
UNDER = f'''#!{sys.executable}
import ctypes, os, struct, sys
lines, call, number = FILTER
code = b''.join(struct.pack('<HBBI', *line) for line in lines)
buffer = ctypes.create_string_buffer(code)
program = struct.pack('<HxxxxxxQ', len(lines), ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.create_string_buffer(program), 0, 0):
    sys.exit('no filter: ' + os.strerror(ctypes.get_errno()))
if libc.syscall(*call) != -1 or ctypes.get_errno() != number:
    sys.exit('the filter does not hold')
os.execv(MEMWATCH, [MEMWATCH, *sys.argv[1:]])
'''


class Filtered(unittest.TestCase):
    def filter(self, what):
        """Have memwatch run under it."""
        if os.geteuid() != 0:
            self.skipTest('not root: memwatch watches what is under the same filters as itself')
        directory = tempfile.mkdtemp(prefix='mwlive-old-')
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        script = os.path.join(directory, 'memwatch')
        with open(script, 'w', encoding='utf-8') as file:
            file.write(UNDER.replace('MEMWATCH', repr(mwlive.config.memwatch)).replace('FILTER', repr(what)))
        os.chmod(script, stat.S_IRWXU)
        self.addCleanup(setattr, mwlive.config, 'memwatch', mwlive.config.memwatch)
        mwlive.config.memwatch = script


@mwlive.not_under('its tool needs later system calls')
class OldKernel(Filtered):
    def setUp(self):
        self.filter(OLD_KERNEL)

    def test_exact(self):
        answer, report = mwlive.observe(self, 'simple')
        mwlive.compare(self, answer, report)
        self.assertEqual(report['engine']['name'], mwlive.config.engine)

    def test_end(self):
        """The end of the process ends the window, though nothing wakes memwatch for it."""
        target = mwlive.Target(self, 'simple')
        watch = mwlive.Watch(self, target.pid)
        target.go()
        answer = target.done()
        target.send()
        # Its exit status is there until somebody waits for it.
        report, = watch.wait()
        target.finish()
        mwlive.compare(self, answer, report)
        self.assertEqual(report['target']['exit_status'], 0)

    def test_first_thread_ends_first(self):
        answer, report = mwlive.observe(self, 'leader_exits')
        mwlive.compare(self, answer, report)

    def test_killed(self):
        """Its guard hears of its end, and takes out what it left."""
        target = mwlive.Target(self, 'simple')
        watch = mwlive.Watch(self, target.pid)
        guard = mwlive.guard_of(watch.process.pid)
        mwlive.wait_until(lambda: mwlive.status(guard).get('Name') == 'memwatch-guard', 'the guard has its name')
        watch.process.kill()
        mwlive.await_end_of(guard)
        watch.check_targets()
        target.go()
        target.done()
        target.finish()

    def test_stopped(self):
        """Its guard has it go on where the process can't meanwhile."""
        if mwlive.config.engine != 'trap':
            self.skipTest('it runs without memwatch')
        target = mwlive.Target(self, 'simple')
        watch = mwlive.Watch(self, target.pid)
        watch.process.send_signal(signal.SIGSTOP)
        target.go()
        answer = target.done()
        watch.process.send_signal(signal.SIGCONT)
        mwlive.compare(self, answer, watch.stop())
        target.finish()


@mwlive.not_under('its tool has no registers of the processor')
class OldProcessor(Filtered):
    def setUp(self):
        self.filter(OLD_PROCESSOR)

    def test_exact(self):
        answer, report = mwlive.observe(self, 'simple')
        mwlive.compare(self, answer, report)

    def test_killed_in_a_call(self):
        """The thread gets back to its work with the registers that there are."""
        target = mwlive.Target(self, 'simple')
        before = mwlive.Snapshot(target.pid)
        process = subprocess.Popen([mwlive.config.memwatch, '-p', str(target.pid), '--engine', mwlive.config.engine],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env=mwlive.with_fault('call.result!'))
        self.addCleanup(mwlive.kill_quietly, process)
        mwlive.wait_until(lambda: mwlive.state(process.pid) == 'T', 'memwatch comes to the point')
        mwlive.kill_with_guard(process)
        process.wait(mwlive.PATIENCE)
        mwlive.wait_until(lambda: mwlive.state(target.pid) == 'S', 'the target waits')
        target.go()
        target.done()
        before.check(self)
        target.finish()


if __name__ == '__main__':
    mwlive.main()
