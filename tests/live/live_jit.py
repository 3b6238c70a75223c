# SPDX-License-Identifier: MIT
"""Code in no file: stacks are right down to its first frame, and that has the name that the program gives it."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

import mwlive

CODE = bytes.fromhex('554889e54889f84889f7ffd05dc3')
HOT = 'LazyCompile:*hot /app/@scope/main.js:12:3'


def map_of(pid):
    return f'/tmp/perf-{pid}.map'


def frames_by_size(test, report, bytes_each):
    """The frames of the one stack that allocated blocks of that size."""
    found = [s for s in report['stacks'] if s['size'] == {'count': 100, 'bytes': 100 * bytes_each}]
    test.assertEqual(len(found), 1, report['stacks'])
    return found[0]


def region_of(page):
    """The frame that all code on the page is, where it has no name: its text and its address."""
    return f'(generated code at {page:#x}, 4 KiB)', page


class Jit(unittest.TestCase):
    def check(self, report, names, page):
        for i, name in enumerate(names):
            stack = frames_by_size(self, report, 100 + i)
            native, made = stack['frames'][0], stack['frames'][-1]
            self.assertEqual((len(stack['frames']), stack['cut'], stack['end']),
                             (2, 'no unwind information', 'generated code'))
            self.assertEqual((native['function'], made['module']), ('native_alloc', '[jit]'))
            if name:
                # Behind its call.
                self.assertEqual((made['function'], made['offset']), (name, 12))
            else:
                self.assertEqual((made['function'], made['address']), region_of(page))

    def watch(self, *arguments, before=None):
        target = mwlive.Target(self, 'jitted', *arguments)
        if before:
            before(target.pid)
        watch = mwlive.Watch(self, target.pid, options=('-o', self.recording))
        target.go()
        target.done()
        watch.process.send_signal(signal.SIGINT)
        _, err = watch.process.communicate(timeout=mwlive.PATIENCE)
        self.assertEqual(watch.process.returncode, 0, err)
        report = mwlive.load_reports(watch.json)[0]
        mwlive.check_report(self, report)
        # The whole page of code that it made is as it was.
        page = mwlive.read_memory(target.pid, target.answer['hot.address'], 4096)
        self.assertEqual(page, (CODE.ljust(64, b'\0') * 3).ljust(4096, b'\0'))
        target.finish()
        return report, err.decode(), target.answer['hot.address']

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix='mwlive-jit-')
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.recording = os.path.join(self.directory, 'jit.mw')

    def again(self):
        run = subprocess.run([mwlive.config.memwatch, 'report', self.recording, '--json', '-'], check=True,
                             capture_output=True, timeout=mwlive.PATIENCE)
        return json.loads(run.stdout)

    def test_names(self):
        """The later of two names counts; a hostile one is repaired; what has none has none. Recordings keep them."""
        report, err, page = self.watch()
        self.assertEqual(err, '')
        names = (HOT, '\x1b[31mred\ufffd\ufffd', None)
        self.check(report, names, page)
        self.check(self.again(), names, page)
        text = subprocess.run([mwlive.config.memwatch, 'report', '--all', self.recording], check=True, capture_output=True,
                              timeout=mwlive.PATIENCE).stdout
        self.assertIn(('[jit]!' + HOT + '+0xc').encode(), text)
        self.assertNotIn(b'\x1b', text)
        self.assertIn('\\x1b[31mred\ufffd\ufffd', text.decode())

    def check_nameless(self, report, page):
        """Three pieces of code without names in one region: their stacks are one, live and from the recording."""
        for seen in (report, self.again()):
            stacks = mwlive.select(seen, 'native_alloc')
            self.assertEqual([s['size'] for s in stacks], [{'count': 300, 'bytes': 30300}])
            made = stacks[0]['frames'][-1]
            self.assertEqual((made['function'], made['address'], made['module'], made['offset']),
                             (*region_of(page), '[jit]', 0))
        self.assertEqual(seen['stacks'], report['stacks'])

    def test_no_map(self):
        report, err, page = self.watch('-')
        self.assertEqual(err, '')
        self.check_nameless(report, page)
        text = subprocess.run([mwlive.config.memwatch, 'report', self.recording], check=True, capture_output=True,
                              timeout=mwlive.PATIENCE).stdout.decode()
        self.assertIn(f'   #1  {region_of(page)[0]}\n', text)
        grown = subprocess.run([mwlive.config.memwatch, 'diff', self.recording, '--from', 'start', '--to', 'end', '--json', '-',
                                '--quiet'],
                               check=True, capture_output=True, timeout=mwlive.PATIENCE).stdout
        self.assertEqual([s['id'] for s in json.loads(grown)['stacks'] if s['frames'][0]['function'] == 'native_alloc'],
                         [s['id'] for s in mwlive.select(report, 'native_alloc')])

    def refuse(self, make, word):
        def before(pid):
            self.addCleanup(remove, map_of(pid))
            remove(map_of(pid))
            make(map_of(pid), pid)
        report, err, page = self.watch('-', before=before)
        self.check_nameless(report, page)
        self.assertIn(word, err)
        self.assertEqual(err.count('\n'), 1)

    def test_refused(self):
        """What is no plain file, or another's, is neither believed nor waited for."""
        self.refuse(lambda path, pid: os.mkfifo(path), 'is not a file')
        self.refuse(lambda path, pid: os.symlink('/etc/passwd', path), 'is not a file')
        self.refuse(lambda path, pid: os.mkdir(path), 'is not a file')

    @unittest.skipUnless(os.geteuid() == 0, 'needs root')
    def test_of_another(self):
        def make(path, _pid):
            with open(path, 'w', encoding='utf-8') as f:
                f.write('0 ffffffffffffffff lie\n')
            os.chown(path, 65534, 65534)
        self.refuse(make, 'belongs to user 65534')


def remove(path):
    with contextlib.suppress(FileNotFoundError, IsADirectoryError):
        os.unlink(path)
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.rmdir(path)


if __name__ == '__main__':
    mwlive.main()
