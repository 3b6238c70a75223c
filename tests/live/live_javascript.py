#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""JavaScript's frames: each stack of a program that knows all of its own, interpreted and compiled, by function, file and
line. Another node than the one in the path: MEMWATCH_NODE."""
import json
import os
import shutil
import subprocess
import time
import unittest

import mwlive

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'programs')
NODE = os.environ.get('MEMWATCH_NODE') or shutil.which('node')
INTERPRETED = ('--no-opt', '--no-sparkplug')
OBJECTS_MOVE = ('--gc-interval=2000', '--max-semi-space-size=1')
# V8 of version 13 does not say how long bytecodes are, which lines in code that is made of them alone take.
SIZES_UNKNOWN = 13


def program(name):
    return os.path.join(PROGRAMS, name)


def v8_version():
    return int(subprocess.run([NODE, '-p', 'process.versions.v8'], capture_output=True, text=True, check=True,
                              timeout=mwlive.PATIENCE).stdout.split('.')[0])


def scripted(stack):
    return [(f['function'], f['file'], f['line']) for f in stack['frames']
            if f['language'] == 'javascript' and f['file'] and not f['file'].startswith('node:')]


def difference(found, told):
    """What is wrong with frames, None if nothing is: where a line is not known, what is inlined there is missing."""
    left = list(told)
    for function, file, line in found:
        while left and line is None and left[0][:2] != (function, file):
            left.pop(0)
        if not left or left[0][:2] != (function, file) or line not in (None, left[0][2]):
            return f'{(function, file, line)} is not {left[:1]}: {found} for {told}'
        left.pop(0)
    return f'{left} are missing: {found}' if left else None


@unittest.skipUnless(NODE, 'node is not installed')
class JavaScript(unittest.TestCase):
    def watch(self, *argv, seconds):
        target = mwlive.Target(self, 'node', argv=[NODE, *argv])
        target.done()
        watch = mwlive.Watch(self, target.pid, options=('--track', 'heap'), busy=True)
        time.sleep(seconds)
        # Its compiler makes code meanwhile.
        report = watch.stop(intact=False)
        target.finish()
        return target, report

    def check_places(self, *options, lines=0.9, seconds=4):
        target, report = self.watch(*options, program('places.js'), seconds=seconds)
        told = {int(size): [(function or '(anonymous)', file, line) for function, file, line in sites
                            if not file.startswith('node:')]
                for size, sites in json.loads(target.answer['places']).items()}
        self.assertEqual(report['frames_missing'], None)
        seen, frames, placed = set(), 0, 0
        for stack in report['stacks']:
            count = stack['size']['count']
            size = stack['size']['bytes'] // count if count else 0
            if size not in told or size * count != stack['size']['bytes'] or stack['cut']:
                continue
            found = scripted(stack)
            wrong = difference(found, told[size])
            if wrong:
                self.fail(f'{size}: {wrong}')
            seen.add(size)
            frames += len(found) * count
            placed += sum(f[2] is not None for f in found) * count
        self.assertEqual(seen, set(told))
        self.assertGreaterEqual(placed, lines * frames)
        return report

    def test_places(self):
        self.check_places(lines=0.6 if v8_version() >= SIZES_UNKNOWN else 0.9)

    def test_interpreted(self):
        report = self.check_places(*INTERPRETED, lines=1)
        frames = [(f, s['size']['count']) for s in report['stacks'] for f in s['frames'] if not s['cut']]
        # What it calls before it has put down what it runs.
        entered = sum(n for f, n in frames if f['function'] == 'Builtins_InterpreterEntryTrampoline')
        self.assertLessEqual(entered, sum(n for f, n in frames if f['language'] == 'javascript') / 20)

    def test_baseline(self):
        self.check_places('--no-opt', '--always-sparkplug', lines=0 if v8_version() >= SIZES_UNKNOWN else 1)

    def test_objects_move(self):
        self.check_places(*OBJECTS_MOVE, lines=0.3)

    def check_leak(self, kind):
        with open(program('leaks.js'), encoding='utf-8') as source:
            line = next(n for n, text in enumerate(source, 1) if text.rstrip().endswith(f'// leak: {kind}'))
        _, report = self.watch(program('leaks.js'), kind, seconds=6)
        first = report['suspects'][0]
        self.assertEqual((first['file'], first['line']), (program('leaks.js'), line), report['suspects'][:3])

    def test_buffers(self):
        self.check_leak('buffers')

    def test_streams(self):
        self.check_leak('streams')

    def test_connections(self):
        self.check_leak('connections')


if __name__ == '__main__':
    mwlive.main()
