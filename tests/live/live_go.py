#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Go's frames above what it calls of C: each stack of a program that knows all of its own, by function, file and line."""
import collections
import os
import shutil
import subprocess
import tempfile
import unittest

import mwframes
import mwlive
import mwrec

GO = shutil.which('go')
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'programs', 'cgo.go')
GLUE = '_cgo_', '_Cfunc_', 'runtime.asmcgocall'


def go_frames(stack):
    return tuple((f['function'], f['file'], f['line']) for f in stack['frames']
                 if f['language'] == 'go' and not any(word in f['function'] for word in GLUE))


@unittest.skipUnless(GO, 'go is not installed')
class Go(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix='mwlive-go-')
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        for name, flags in ('whole', ()), ('stripped', ('-ldflags=-s -w',)), ('pie', ('-buildmode=pie', '-ldflags=-s -w')):
            subprocess.run([GO, 'build', *flags, '-o', os.path.join(cls.directory, name), PROGRAM], check=True, capture_output=True,
                           env=dict(os.environ, GO111MODULE='off', CGO_ENABLED='1', GOFLAGS='',
                                    GOCACHE=mwlive.target_path('gocache')), timeout=4 * mwlive.PATIENCE)

    def run_program(self, name, *options):
        answer = os.path.join(mwrec.directory(self), 'answer.json')
        report = mwframes.run(self, [os.path.join(self.directory, name), '200', answer], *options)
        return report, mwframes.load(answer)

    def frames_of(self, stack):
        """Up to the goroutine's start."""
        frames = go_frames(stack)
        if stack['api'] != 'malloc' or not frames or not frames[0][0].startswith('main.'):
            return None
        self.assertIsNone(stack['cut'])
        return frames

    def compare(self, report, known):
        mwframes.compare(self, report, known, self.frames_of)
        self.assertGreater(len(known), 20)

    def test_whole(self):
        self.compare(*self.run_program('whole'))

    def test_stripped(self):
        """Of its own symbols there are none: all comes from the table that Go's runtime has for itself."""
        report, known = self.run_program('stripped')
        self.compare(report, known)
        # The line that the user wrote, not what cgo puts around it.
        lines = {(s['function'], s['line']) for s in report['suspects'] if (s['file'] or '').endswith('cgo.go')}
        expected = {stack[0][::2] for stack in known}
        self.assertEqual(lines & expected, expected)

    def test_anywhere(self):
        self.compare(*self.run_program('pie'))

    def test_lines(self):
        report, known = self.run_program('stripped', '--by', 'language,line', '--filter', 'api:malloc language:go')
        rows = [row for row in report['groups']['rows'] if row['level'] == 1]
        expected = collections.Counter()
        for stack, (blocks, _) in known.items():
            expected[stack[0]] += blocks
        found = {(row['value']['function'], row['value']['file'], row['value']['line']): row['impacting']['count']
                 for row in rows if not row['more']}
        self.assertEqual({line: found.get(line) for line in expected}, dict(expected))
        self.assertEqual([row['value'] for row in report['groups']['rows'] if row['level'] == 0], ['go'])


if __name__ == '__main__':
    mwlive.main()
