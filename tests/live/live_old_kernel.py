# SPDX-License-Identifier: MIT
"""memwatch with the system calls of Linux 4.18 alone: the later ones are answered as that kernel answers them."""
import os
import signal
import stat
import sys
import tempfile
import shutil
import unittest

import mwlive

# Runs a program under a filter: what is not in 4.18's table is ENOSYS. Who would wait for randomness is killed.
UNDER = f'''#!{sys.executable}
import ctypes, os, struct, sys
LAST = 334 # rseq
code = b''.join(struct.pack('<HBBI', *line) for line in (
    (0x20, 0, 0, 0),           # load the number
    (0x25, 3, 0, LAST),        # greater?
    (0x15, 0, 4, 318),         # getrandom?
    (0x20, 0, 0, 32),          # load its flags
    (0x45, 2, 1, 1),           # GRND_NONBLOCK?
    (0x06, 0, 0, 0x00050026),  # ENOSYS
    (0x06, 0, 0, 0x80000000),  # killed
    (0x06, 0, 0, 0x7fff0000))) # allowed
buffer = ctypes.create_string_buffer(code)
program = struct.pack('<HxxxxxxQ', 8, ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.create_string_buffer(program), 0, 0):
    sys.exit('no filter: ' + os.strerror(ctypes.get_errno()))
try:
    os.pidfd_open(os.getpid())
    sys.exit('the filter does not hold')
except OSError:
    pass
os.execv(MEMWATCH, [MEMWATCH, *sys.argv[1:]])
'''


@mwlive.not_under('its tool needs later system calls')
class OldKernel(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest('not root: memwatch watches what is under the same filters as itself')
        directory = tempfile.mkdtemp(prefix='mwlive-old-')
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        script = os.path.join(directory, 'memwatch')
        with open(script, 'w', encoding='utf-8') as file:
            file.write(UNDER.replace('MEMWATCH', repr(mwlive.config.memwatch)))
        os.chmod(script, stat.S_IRWXU)
        self.addCleanup(setattr, mwlive.config, 'memwatch', mwlive.config.memwatch)
        mwlive.config.memwatch = script

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


if __name__ == '__main__':
    mwlive.main()
