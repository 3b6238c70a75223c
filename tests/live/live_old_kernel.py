# SPDX-License-Identifier: MIT
"""memwatch with the system calls of Linux 4.18 alone: the later ones are answered as that kernel answers them."""
import os
import stat
import sys
import tempfile
import shutil
import unittest

import mwlive

# Runs a program under a filter: what is not in 4.18's table is ENOSYS.
UNDER = f'''#!{sys.executable}
import ctypes, os, struct, sys
LAST = 334 # rseq
code = b''.join(struct.pack('<HBBI', *line) for line in (
    (0x20, 0, 0, 0),           # load the number
    (0x25, 0, 1, LAST),        # greater?
    (0x06, 0, 0, 0x00050026),  # ENOSYS
    (0x06, 0, 0, 0x7fff0000))) # allowed
buffer = ctypes.create_string_buffer(code)
program = struct.pack('<HxxxxxxQ', 4, ctypes.addressof(buffer))
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


if __name__ == '__main__':
    mwlive.main()
