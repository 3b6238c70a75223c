#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Python's objects, each a block (--python-objects): of a program by its lines as many blocks and bytes as CPython itself
counts (tracemalloc) in a twin, which does the same."""
import collections
import json
import os
import unittest

import live_python_frames
import mwlive
import mwrec

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'programs', 'objects.py')
ENV = {'PYTHONHASHSEED': '0'}
OPTION = '--python-objects'


def lines_of(report, kind='impacting'):
    """By line of the program: what was allocated there."""
    found = collections.defaultdict(lambda: [0, 0])
    for stack in report['stacks']:
        frames = [frame for frame in stack['frames'] if frame['language'] == 'python']
        if stack['kind'] != 'heap' or not frames or frames[0]['file'] != PROGRAM:
            continue
        found[frames[0]['line']][0] += stack[kind]['count']
        found[frames[0]['line']][1] += stack[kind]['bytes']
    return {line: tuple(amount) for line, amount in found.items() if amount[0]}


class Objects(unittest.TestCase):
    def twin(self, python, count, env=None):
        """What CPython knows."""
        answer = os.path.join(mwrec.directory(self), 'answer.json')
        twin = mwlive.Target(self, 'python', argv=[python, '-S', PROGRAM, str(count), answer], env={**ENV, **(env or {})})
        twin.go()
        twin.done()
        twin.finish()
        with open(answer, encoding='utf-8') as f:
            return {int(line): tuple(amount) for line, amount in json.load(f).items()}

    def attached(self, python, count, env=None):
        target = mwlive.Target(self, 'python', argv=[python, '-S', PROGRAM, str(count)], env={**ENV, **(env or {})})
        watch = mwlive.Watch(self, target.pid, options=[OPTION])
        target.go()
        target.done(4 * mwlive.PATIENCE)
        report = watch.stop()
        target.finish()
        return report

    def compare(self, found, known):
        with open(PROGRAM, encoding='utf-8') as f:
            text = [None, *f.read().splitlines()]
        wrong = [line for line in sorted(found.keys() | known.keys()) if found.get(line) != known.get(line)]
        for line in wrong:
            print('DIFF', line, 'known', known.get(line), 'found', found.get(line), text[line].strip())
        self.assertEqual(wrong, [])
        self.assertGreater(len(known), 40)

    def test_all_kinds(self):
        for version, python in live_python_frames.interpreters().items():
            with self.subTest(version):
                report = self.attached(python, 40)
                self.compare(lines_of(report), self.twin(python, 40))


if __name__ == '__main__':
    mwlive.main()
