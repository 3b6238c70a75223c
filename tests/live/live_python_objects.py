#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Python's objects, each a block (--python-objects): of a program by its lines as many blocks and bytes as CPython itself
counts (tracemalloc) in a twin, which does the same."""
import collections
import json
import os
import subprocess
import unittest

import live_python_frames
import mwlive
import mwrec

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'programs', 'objects.py')
ENV = {'PYTHONHASHSEED': '0'}
OPTION = '--python-objects'
PYTHON = '/usr/bin/python3'
COUNT = '40'


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


# What it does to its allocator meanwhile is its own matter; it goes on when nobody watches it any more.
TRACES = """
import os, tracemalloc
kept = []
print('ready', os.getpid(), flush=True)
os.read(0, 1)
tracemalloc.start()
kept += [object() for _ in range(1000)]
print('done', flush=True)
os.read(0, 1)
kept += [[n] for n in range(10000)]
kept.clear()
tracemalloc.stop()
kept += [[n] for n in range(10000)]
print('fine', flush=True)
"""


class Objects(unittest.TestCase):
    def twin(self, python, env=None):
        """What CPython knows."""
        answer = os.path.join(mwrec.directory(self), 'answer.json')
        twin = mwlive.Target(self, 'python', argv=[python, '-S', PROGRAM, COUNT, answer], env={**ENV, **(env or {})})
        twin.go()
        twin.done()
        twin.finish()
        with open(answer, encoding='utf-8') as f:
            return {int(line): tuple(amount) for line, amount in json.load(f).items()}

    def target(self, python, env=None):
        return mwlive.Target(self, 'python', argv=[python, '-S', PROGRAM, COUNT], env={**ENV, **(env or {})})

    def left_as_it_was(self, target):
        target.send()
        self.assertEqual(target.line(), 'usual allocator')
        target.finish()

    def attached(self, python, env=None):
        target = self.target(python, env)
        watch = mwlive.Watch(self, target.pid, options=[OPTION])
        target.go()
        target.done(4 * mwlive.PATIENCE)
        report = watch.stop()
        if not env:
            self.left_as_it_was(target)
        return report

    def compare(self, found, known, extra=0):
        """`extra`: bytes that each block has more. Of a class its address is kept as a number, which has 4 bytes more
        where the heap lies above 2^30."""
        with open(PROGRAM, encoding='utf-8') as f:
            text = [None, *f.read().splitlines()]
        first, last = (text.index(f'# Objects are made {what}') for what in ('from here on.', 'up to here.'))
        known = {line: (count, size + extra * count) for line, (count, size) in known.items()}

        def same(line, at_most):
            (count, size), (known_count, known_size) = found.get(line, (0, 0)), known.get(line, (0, 0))
            return count == known_count and abs(size - known_size) in range(0, at_most * count + 1, 4)
        wrong = [line for line in range(first, last) if not same(line, 4 if ' type(' in text[line] else 0)]
        for line in wrong:
            print('DIFF', line, 'known', known.get(line), 'found', found.get(line), text[line].strip())
        self.assertEqual(wrong, [])
        self.assertGreater(len(known), 40)

    def test_all_kinds(self):
        for version, python in live_python_frames.interpreters().items():
            with self.subTest(version):
                report = self.attached(python)
                self.compare(lines_of(report), self.twin(python))
                self.assertEqual(report['runtimes'], [])

    def test_launched(self):
        """Not whole stacks: what an interpreter does to begin with is much. Before 3.11 a frame is an object that is kept
        for the next call, and was made in the import of whoever called the function first."""
        found = [each for each in live_python_frames.interpreters().items() if not each[0].startswith(('3.9 ', '3.10 '))]
        for version, python in {found[0], found[-1 if mwlive.config.engine == 'jump' else 0]}:
            with self.subTest(version):
                path = os.path.join(mwrec.directory(self), 'report.json')
                run = subprocess.run([mwlive.config.memwatch, '--engine', mwlive.config.engine, OPTION, '--quiet', '--depth', '12', '--json', path,
                                      *mwlive.patient(), '--', python, '-S', PROGRAM, COUNT], env={**os.environ, **ENV},
                                     stdin=subprocess.DEVNULL, capture_output=True, timeout=mwlive.PATIENCE, check=False)
                self.assertEqual(run.returncode, 0, run.stderr)
                report = mwlive.load_reports(path)[-1]  # a script may have started it
                mwlive.check_report(self, report)
                self.compare(lines_of(report), self.twin(python, {'PYTHONTRACEMALLOC': '1'}))

    def test_heaps(self):
        """What pymalloc has from malloc lies in malloc's heaps; its arenas are no blocks, and no mappings of the program's."""
        target = self.target(PYTHON)
        kept = mwrec.Kept(self, target.pid, options=[OPTION])
        target.go()
        target.done()
        report, = kept.stop()
        self.left_as_it_was(target)
        for options, total in (((), 'heap'), (('--filter', 'heap:pymalloc'), None)):
            groups = mwrec.reports(self, kept.path, '--by', 'heap', *options)[0]['groups']
            rows = {row['value']: row['impacting'] for row in groups['rows']}
            self.assertGreater(rows['pymalloc']['count'], 4000)
            self.assertLess(rows['pymalloc']['bytes'], 512 * rows['pymalloc']['count'])
            if total:
                heaps = [rows[name] for name in rows if not (name or '').startswith('(none')]
                self.assertEqual(sum(heap['count'] for heap in heaps), report['totals']['heap']['impacting']['count'])
                self.assertGreaterEqual(rows['mmapped']['count'], int(COUNT))
                self.assertGreater(rows['main']['count'], 300)
        self.assertGreater(report['totals']['vm-internal']['impacting']['bytes'], 1 << 20)
        self.assertEqual(report['totals']['vm']['impacting']['bytes'], 0)

    def test_other_allocators(self):
        """Each object is malloc's; or CPython's debug hooks are around its allocator, and have three words for themselves."""
        for setting, extra in (('malloc', 0), ('debug', 24)):
            with self.subTest(setting):
                env = {'PYTHONMALLOC': setting}
                self.compare(lines_of(self.attached(PYTHON, env)), self.twin(PYTHON, env), extra)

    def test_traced(self):
        target = mwlive.Target(self, 'python', argv=[PYTHON, '-S', '-c', TRACES])
        watch = mwlive.Watch(self, target.pid, options=[OPTION])
        target.go()
        target.done()
        report = watch.stop()
        self.assertGreaterEqual(mwlive.total_of(mwlive.select(report, kinds=('heap',), size=16))['impacting']['count'], 1000)
        target.send()
        self.assertEqual(target.line(), 'fine')
        target.finish()

    def test_killed(self):
        """What a killed memwatch has left the next one takes out."""
        target = self.target(PYTHON)
        watch = mwlive.Watch(self, target.pid, options=[OPTION])
        mwlive.kill_with_guard(watch.process)
        watch.process.wait()
        mwlive.memwatch(self, 'doctor', '-p', target.pid, '--clean')
        target.go()
        target.done()
        self.left_as_it_was(target)


if __name__ == '__main__':
    mwlive.main()
