#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Python's frames: each stack of a program that knows all of its own, by function, file and line."""
import collections
import glob
import os
import re
import subprocess
import unittest

import mwframes
import mwlive
import mwrec

NEWEST = (3, 14)
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'programs', 'frames.py')
SUBINTERPRETERS = os.path.join(os.path.dirname(PROGRAM), 'subinterpreters.py')


def interpreters():
    """Those that are there, one a version: Debian's, and others that were built beside it, or are named in MEMWATCH_PYTHONS."""
    found = {}
    for path in [*filter(None, os.environ.get('MEMWATCH_PYTHONS', '').split(':')), '/usr/bin/python3', *sorted(glob.glob('/usr/bin/python3.[0-9]*')),
                 *sorted(glob.glob(os.path.expanduser('~/.pyenv/versions/3.*/bin/python3')))]:
        run = subprocess.run([path, '-c', 'import sys, ctypes; print("%d.%d" % sys.version_info[:2])'],
                             capture_output=True, text=True, timeout=mwlive.PATIENCE, check=False)
        version = run.stdout.strip()
        if run.returncode == 0 and (3, 9) <= tuple(map(int, version.split('.'))) <= NEWEST:
            found.setdefault(f'{version} {path[:5]}', path)
    return found


def script_frames(stack):
    return tuple((f['function'], f['file'], f['line']) for f in stack['frames'] if f['language'] == 'python')


def load_dumps(path):
    """As mwframes.load()."""
    known = collections.defaultdict(lambda: [0, 0])
    with open(path, encoding='utf-8') as f:
        for size, dump in re.findall(r'(\d+)\nStack \(most recent call first\):\n((?:  File .*\n)+)', f.read()):
            stack = re.findall(r'  File "(.*)", line (\d+) in (.*)\n', dump)[1:]  # the first is who dumps
            amount = known[tuple((name, file, int(line)) for file, line, name in stack)]
            amount[0] += 1
            amount[1] += int(size)
    return {stack: tuple(amount) for stack, amount in known.items()}


class Frames(unittest.TestCase):
    def run_frames(self, python, count, *options, words=(), load=mwframes.load):
        directory = mwrec.directory(self)
        answer = os.path.join(directory, 'answer.json')
        report = mwframes.run(self, [python, '-S', PROGRAM, str(count), '7', answer, *words], *options)
        return report, load(answer)

    def frames_of(self, stack):
        frames = script_frames(stack)
        # The list that keeps them grows as well, by realloc.
        if not frames or not frames[0][0].split('.')[-1].startswith('make') or stack['api'] != 'calloc':
            return None
        # They stand where the interpreter's loop ran them, not at the end of what could not be merged.
        self.assertEqual(stack['frames'][-1]['language'], 'native', stack['frames'])
        return frames

    def compare(self, report, known):
        mwframes.compare(self, report, known, self.frames_of)

    def test_all_kinds(self):
        for version, python in interpreters().items():
            with self.subTest(version):
                report, known = self.run_frames(python, 400)
                self.assertGreater(len(known), 40)
                self.compare(report, known)

    def test_lines(self):
        """--by line is the innermost line of each stack, and with the other languages that is all there is."""
        directory = mwrec.directory(self)
        recording = os.path.join(directory, 'frames.mw')
        report, known = self.run_frames('/usr/bin/python3', 300, '-o', recording, '--by', 'language,line', '--top', '100000',
                                        '--type', 'all', '--filter', 'kind:heap or kind:vm')
        self.compare(report, known)
        rows = report['groups']['rows']
        by_language = [row for row in rows if row['level'] == 0]
        self.assertIn('python', [row['value'] for row in by_language])
        for what in 'impacting', 'transient':
            for unit in 'count', 'bytes':
                total = sum(report['totals'][kind][what][unit] for kind in ('heap', 'vm'))
                self.assertEqual(sum(row[what][unit] for row in by_language), total)
                self.assertEqual(sum(row[what][unit] for row in rows if row['level'] == 1), total)
        again, = mwrec.reports(self, recording, '--by', 'language,line', '--top', '100000', '--type', 'all',
                               '--filter', 'kind:heap or kind:vm')
        self.assertEqual(again['groups'], report['groups'])
        expected = collections.Counter()
        for stack, amount in known.items():
            expected[next(frame for frame in stack if frame[1][0] != '<')] += amount[0]  # what eval runs is no file
        made, = mwrec.reports(self, recording, '--by', 'line', '--top', '100000', '--filter', 'api:calloc language:python')
        found = {(row['value']['function'], row['value']['file'], row['value']['line']): row['impacting']['count']
                 for row in made['groups']['rows'] if not row['more']}
        self.assertEqual({line: found.get(line) for line in expected}, dict(expected))
        line = max(expected, key=expected.get)
        only, = mwrec.reports(self, recording, '--filter', f'api:calloc line:"{line[1]}:{line[2]}"')
        self.assertEqual(only['groups']['total']['impacting']['count'], expected[line])

    def test_chosen(self):
        """--frames: an interpreter's own frames are one, or are left out with all that is native."""
        recording = os.path.join(mwrec.directory(self), 'frames.mw')
        self.run_frames('/usr/bin/python3', 50, '-o', recording)

        def functions(frames):
            report, = mwrec.reports(self, recording, '--tree', 'down', '--top', '1000', '--filter', 'language:python',
                                    '--frames', frames)
            self.assertGreater(report['tree']['total']['impacting']['count'], 50)
            return {(node['module'], node['function']) for node in report['tree']['nodes'] if not node['more']}

        everything, own, scripts = functions('all'), functions('own'), functions('script')
        self.assertEqual({module for module, _ in scripts}, {'[python]'})
        self.assertEqual({node for node in everything if node[0] == '[python]'}, scripts)
        self.assertTrue(any(module and 'python3' in module for module, _ in everything))
        self.assertFalse(any(module and 'python3' in module for module, _ in own))
        self.assertIn((None, '(interpreter)'), own)

    def test_threads(self):
        report, known = self.run_frames('/usr/bin/python3', 300, words=['threads'])
        self.compare(report, known)

    def test_dumps(self):
        """What faulthandler says of the stack at each of many blocks, in three threads. It knows no qualified names."""
        count = 20000 if mwlive.config.engine == 'jump' else 4000
        report, known = self.run_frames('/usr/bin/python3', count, words=['threads', 'dumps'], load=load_dumps)
        self.assertGreater(sum(count for count, _ in known.values()), 5 * count)
        mwframes.compare(self, report, known, lambda stack: [(name.rpartition('.')[2], file, line) for name, file, line in
                                                             self.frames_of(stack) or ()])

    def test_interpreters(self):
        """Where a thread has released the lock of up to 3.11, engine jump does not know which interpreter it is in."""
        for version, python in interpreters().items():
            with self.subTest(version):
                report = mwframes.run(self, [python, '-S', SUBINTERPRETERS])
                found = collections.defaultdict(collections.Counter)
                for stack in report['stacks']:
                    amount = stack['size']
                    if stack['api'] == 'calloc' and amount['bytes'] > 60000 * amount['count']:
                        frames = tuple((f[0], f[2]) for f in script_frames(stack)[:3])
                        found[amount['bytes'] // amount['count']][frames] += amount['count']
                outer = {frames[2] for frames in found[60001]}.pop()
                self.assertEqual(outer[0], 'outer')
                self.assertEqual(found[60001], {(('held', 4), ('make', 9), outer): 20})
                self.assertEqual(found[60002], {(('released', 6), ('make', 10), outer): 20})
                self.assertEqual(found[70001], {(('held', 4), ('make', 9), ('<module>', 1)): 20})
                if mwlive.config.engine == 'trap' or not version.startswith(('3.9 ', '3.10 ', '3.11 ')):
                    self.assertEqual(found[70002], {(('released', 6), ('make', 10), ('<module>', 1)): 20})

    def test_made_up(self):
        """An interpreter that is none, while nobody changes it."""
        report = mwlive.observe(self, 'scripted', 'sound')[1]
        stack, = mwlive.select(report, 'scripted_allocate', 'malloc')
        self.assertEqual([f['function'] for f in stack['frames']][:3],
                         ['scripted_allocate', 'function_0', 'function_1'])
        self.assertEqual(len(script_frames(stack)), 24)
        self.assertEqual(script_frames(stack)[3], ('function_3', '/made/up.py', 31))
        self.assertEqual(stack['impacting']['count'], 30000)

    def test_newer(self):
        """It is refused by its version, and native stacks stay."""
        report = mwlive.observe(self, 'scripted_newer', 'sound')[1]
        self.assertEqual(report['frames_missing'],
                         'CPython 3.15 is newer than this memwatch knows: Python frames are missing')
        stack, = mwlive.select(report, 'scripted_allocate', 'malloc')
        self.assertEqual([f['function'] for f in stack['frames']][:2], ['scripted_allocate', '_PyEval_EvalFrameDefault'])
        self.assertEqual(script_frames(stack), ())

    def test_spoiled(self):
        """Whatever stands in its structures: nothing is lost, and it goes on."""
        report = mwlive.observe(self, 'scripted')[1]
        kept = mwlive.total_of(mwlive.select(report, 'scripted_allocate', 'malloc'))
        self.assertEqual((kept['impacting']['count'], kept['transient']['count']), (30000, 30000))


if __name__ == '__main__':
    mwlive.main()
