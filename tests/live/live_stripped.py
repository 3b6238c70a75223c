#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Static programs without a symbol table: hooked and named by the symbols that strip has left elsewhere, if those are
surely theirs."""
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

import mwlive

PROGRAMS = ('simple_static', 'simple_static_pie', 'simple_musl_static')
MOUNT = 'mount -t tmpfs none /usr/lib/debug && mkdir -p "$1" && cp "$2" "$1/$3" && rm "$2" && exec "$4"'


@unittest.skipUnless(shutil.which('objcopy') and shutil.which('xz'), 'objcopy or xz is not installed')
class Stripped(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix='mwlive-stripped-')
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.program, self.debug = self.path('program'), self.path('program.debug')

    def path(self, name):
        return os.path.join(self.directory, name)

    def run_tool(self, *command):
        return subprocess.run(command, check=True, capture_output=True, timeout=mwlive.PATIENCE).stdout

    def strip(self, name, *options, source=None):
        """Make the program without symbols, and program.debug with them."""
        source = source or mwlive.target_path(name)
        if not os.path.exists(source):
            self.skipTest(f'{name} was not built here')
        self.run_tool('objcopy', '--only-keep-debug', source, self.debug)
        self.run_tool('objcopy', '--strip-all', *options, source, self.program)

    def strip_linked(self, name, source=None):
        self.strip(name, source=source)
        self.run_tool('objcopy', f'--add-gnu-debuglink={self.debug}', self.program)

    def check(self, argv=None, has_lines=True):
        target = mwlive.Target(self, 'simple', argv=argv or [self.program])
        watch = mwlive.Watch(self, target.pid)
        target.go()
        answer = target.done()
        report = watch.stop()
        target.finish()
        mwlive.compare(self, answer, report)
        leak, = mwlive.select(report, 'simple_leak')
        self.assertIsNone(leak['cut'])
        self.assertEqual(mwlive.functions(leak)[:3], ['simple_leak', 'simple_round', 'main'])
        self.assertEqual(os.path.basename(leak['frames'][0]['file'] or ''), 'simple.c' if has_lines else '')

    def check_refused(self):
        target = mwlive.Target(self, 'simple', argv=[self.program])
        before = mwlive.Snapshot(target.pid)
        run = subprocess.run([mwlive.config.memwatch, '-p', str(target.pid), '-d', '0.1', '--engine',
                              mwlive.config.engine], capture_output=True, check=False, text=True,
                             stdin=subprocess.DEVNULL, timeout=mwlive.PATIENCE)
        self.assertEqual(run.returncode, 1)
        self.assertIn('without a symbol table', run.stderr)
        before.check(self)
        target.go()
        target.done()
        target.finish()

    def test_debuglink(self):
        for name in PROGRAMS:
            with self.subTest(name):
                self.strip_linked(name)
                self.check()

    def test_debuglink_in_directory(self):
        self.strip_linked('simple_static')
        os.mkdir(self.path('.debug'))
        os.rename(self.debug, self.path('.debug/program.debug'))
        self.check()

    def test_checksum(self):
        """Without a build-id the checksum alone tells that a file is the program's."""
        source = self.path('source')
        self.run_tool('objcopy', '--remove-section=.note.gnu.build-id', mwlive.target_path('simple_static'), source)
        self.strip_linked('simple_static', source=source)
        self.check()
        with open(self.debug, 'ab') as file:
            file.write(b'\0')
        self.check_refused()

    def test_embedded(self):
        """As Fedora's packages have it."""
        for name in PROGRAMS:
            with self.subTest(name):
                self.strip(name)
                self.run_tool('objcopy', '--strip-debug', self.debug, self.path('mini'))
                self.run_tool('xz', '--force', self.path('mini'))
                self.run_tool('objcopy', f'--add-section=.gnu_debugdata={self.path("mini.xz")}', self.program)
                os.unlink(self.debug)
                self.check(has_lines=False)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which('unshare'), 'needs root and unshare')
    def test_build_id(self):
        """In a root of the program's own, where memwatch's has no such file."""
        self.strip('simple_static')
        notes = self.run_tool('readelf', '--notes', self.program).decode()
        build_id = notes.partition('Build ID: ')[2].split()[0]
        self.check(argv=['unshare', '--mount', 'sh', '-ec', MOUNT, 'sh', f'/usr/lib/debug/.build-id/{build_id[:2]}',
                         self.debug, f'{build_id[2:]}.debug', self.program])

    def test_debug_file_of_another(self):
        """Its functions lie elsewhere: breakpoints and jumps there would break the program."""
        self.strip_linked('simple_static')
        self.run_tool('objcopy', '--only-keep-debug', mwlive.target_path('simple_static_pie'), self.debug)
        self.check_refused()

    def test_debug_file_of_another_layout(self):
        """The build-id is right, but the code does not lie where the program has it."""
        self.strip_linked('simple_static')
        lines = self.run_tool('readelf', '-SW', self.debug).decode().replace('[ ', '[').splitlines()
        number, = (int(line.split()[0].strip('[]')) for line in lines if line.split()[1:2] == ['.text'])
        with open(self.debug, 'r+b') as file:
            headers, = struct.unpack_from('<Q', file.read(64), 0x28)
            file.seek(headers + 64 * number + 0x10)
            address, = struct.unpack('<Q', file.read(8))
            file.seek(headers + 64 * number + 0x10)
            file.write(struct.pack('<Q', address + 16))
        self.check_refused()


if __name__ == '__main__':
    mwlive.main()
