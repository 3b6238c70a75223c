# SPDX-License-Identifier: MIT
"""Names that stand in a target's files and of a target: they make memwatch open nothing but files, and no terminal act."""
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

import mwlive

EVIL = b'\x1b]0;owned\x07\xc2\x9b31m\xe2\x80\xae\xff\n'


class Names(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix='mwlive-names-')
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.directory, name)

    def run_tool(self, *command):
        subprocess.run(command, check=True, capture_output=True, timeout=mwlive.PATIENCE)

    def watch(self, program):
        """The report's text and JSON of a program's whole work, and what is said on standard error."""
        target = mwlive.Target(self, 'simple', argv=[program])
        watch = mwlive.Watch(self, target.pid, options=('-o', self.path('names.mw')))
        target.go()
        target.done()
        report = watch.stop()
        target.finish()
        run = subprocess.run([mwlive.config.memwatch, 'report', self.path('names.mw')], check=True,
                             capture_output=True, timeout=mwlive.PATIENCE)
        return report, run.stdout + run.stderr

    @unittest.skipUnless(shutil.which('objcopy'), 'objcopy is not installed')
    def test_fifo_for_debug_information(self):
        """Nobody ever writes to the FIFO: to open it would be to wait for ever."""
        program, debug = self.path('simple'), self.path('simple.debug')
        self.run_tool('objcopy', '--only-keep-debug', mwlive.target_path('simple'), debug)
        self.run_tool('objcopy', '--strip-debug', f'--add-gnu-debuglink={debug}', mwlive.target_path('simple'), program)
        # No build-id: the name is all there is to look for.
        self.run_tool('objcopy', '--remove-section=.note.gnu.build-id', program)
        report, _ = self.watch(program)
        # It is found where it is a file, …
        leak = mwlive.select(report, 'simple_leak')[0]['frames'][0]
        self.assertEqual(os.path.basename(leak['file'] or ''), 'simple.c')
        os.unlink(debug)
        os.mkfifo(debug)
        report, _ = self.watch(program)
        leak = mwlive.select(report, 'simple_leak')[0]['frames'][0]
        self.assertIsNone(leak['file'])

    def test_evil_path(self):
        """A program of a name that would drive a terminal: it is told repaired in JSON, and harmless elsewhere."""
        program = os.fsencode(self.directory) + b'/' + EVIL
        shutil.copy(mwlive.target_path('simple'), program)
        report, text = self.watch(os.fsdecode(program))
        self.assertTrue(report['target']['exe'].startswith(self.directory))
        self.assertTrue(mwlive.select(report, 'simple_leak'))
        target = mwlive.Target(self, 'simple', argv=[os.fsdecode(program)])
        runs = [['doctor', '-p', str(target.pid)], ['-p', str(target.pid), '-d', '0.1', '--engine', mwlive.config.engine],
                ['-p', '1', '-o', os.fsdecode(program) + '/x'], ['report', os.fsdecode(program)],
                ['--json', os.fsdecode(program), '--', os.fsdecode(program) + 'not']]
        for arguments in runs:
            run = subprocess.run([mwlive.config.memwatch, *arguments], capture_output=True, check=False,
                                 stdin=subprocess.DEVNULL, timeout=mwlive.PATIENCE)
            self.assertIn(run.returncode, (0, 1, 2))
            text += run.stdout + run.stderr
        target.process.send_signal(signal.SIGKILL)
        self.assertIn(b'owned', text)
        for bad in (b'\x1b', b'\x07', b'\xc2\x9b', b'\xe2\x80\xae'):
            self.assertNotIn(bad, text)
        text.decode('utf-8')


if __name__ == '__main__':
    mwlive.main()
