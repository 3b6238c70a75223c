#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recordings of live programs compared: two runs, two moments of one, and what is refused."""
import json
import os
import re
import signal
import subprocess
import time
import unittest

import mwlive
import mwrec

SIDES = ('old', 'new')
KINDS = ('heap', 'vm')
ENTRY = re.compile(r'^([-+]) (\d+) \( (\d+) - (\d+) \) (\d+) allocs BackTrace([0-9a-f]{16})\n'
                   r'([-+]) (\d+) \( (\d+) - (\d+) \) BackTrace([0-9a-f]{16}) allocations\n\n((?:\t.*\n)*)\n', re.M)


def run_diff(*arguments):
    return subprocess.run([mwlive.config.memwatch, 'diff', *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=mwlive.PATIENCE, check=False)


def diff(test, *arguments):
    """The comparison, which is consistent, as JSON and as text."""
    run = run_diff(*arguments, '--quiet', '--json', '-')
    test.assertEqual((run.returncode, run.stderr), (0, ''), arguments)
    found = json.loads(run.stdout)
    check(test, found)
    run = run_diff(*arguments, '--all')
    test.assertEqual((run.returncode, run.stderr), (0, ''), arguments)
    check_text(test, found, run.stdout)
    return found


def check(test, found):
    """What holds of every comparison: sums equal totals, deltas are differences, the order is that of growth."""
    test.assertEqual(found['schema'], 'memwatch.diff/1')
    for side in SIDES:
        for key in ('file', 'pid', 'exe', 'at'):
            test.assertIn(key, found[side])
    sums = {kind: {side: mwlive.nothing() for side in SIDES} for kind in KINDS}
    ids = [stack['id'] for stack in found['stacks']]
    test.assertEqual(len(ids), len(set(ids)), 'one stack twice')
    for stack in found['stacks']:
        for side in SIDES:
            mwlive.add(sums[stack['kind']][side], stack[side])
        for unit in ('bytes', 'count'):
            test.assertEqual(stack['delta'][unit], stack['new'][unit] - stack['old'][unit])
    for kind in KINDS:
        for side in SIDES:
            test.assertEqual(found['totals'][kind][side], sums[kind][side], (kind, side))
    order = [(-s['delta']['bytes'], -s['delta']['count'], s['id']) for s in found['stacks']]
    test.assertEqual(order, sorted(order))


def check_text(test, found, text):
    """The text tells the same, entry by entry."""
    entries = ENTRY.findall(text)
    test.assertEqual(len(entries), len(found['stacks']), text)
    for entry, stack in zip(entries, found['stacks']):
        test.assertEqual({entry[5], entry[10]}, {stack['id']})
        test.assertEqual((int(entry[0] + entry[1]), int(entry[2]), int(entry[3])),
                         (stack['delta']['bytes'], stack['new']['bytes'], stack['old']['bytes']))
        test.assertEqual((int(entry[6] + entry[7]), int(entry[8]), int(entry[9]), int(entry[4])),
                         (stack['delta']['count'], stack['new']['count'], stack['old']['count'],
                          stack['new']['count']))
        for frame in stack['frames']:
            test.assertIn(frame['function'] or '+0x', entry[11])
    total = sum(found['totals'][kind]['delta']['bytes'] for kind in KINDS)
    test.assertTrue(text.endswith(f'Total {"increase" if total >= 0 else "decrease"} == {abs(total)}\n'), text)


def held(report):
    """What a report's stacks hold at its end, by id."""
    return {s['id']: s['impacting'] for s in report['stacks'] if s['kind'] in KINDS and s['impacting']['count']}


def check_side(test, found, side, report):
    """One side of the comparison is the snapshot that a report gives of the same moment."""
    test.assertEqual({s['id']: s[side] for s in found['stacks'] if s[side]['count']}, held(report))
    for kind in KINDS:
        test.assertEqual(found['totals'][kind][side], report['totals'][kind]['impacting'])


def record(test, target, options=()):
    """A target's whole work in a recording: (file, live report)."""
    kept = mwrec.Kept(test, target.pid, options=options)
    target.go()
    target.done()
    report, = kept.stop()
    target.finish()
    return kept.path, report


class TwoRecordings(unittest.TestCase):
    def test_same_work_in_two_processes(self):
        """Nothing has changed, and each stack is known again where the program lies elsewhere."""
        runs = [record(self, mwlive.Target(self, 'exact')) for _ in SIDES]
        found = diff(self, runs[0][0], runs[1][0])
        self.assertTrue(found['stacks'])
        for stack in found['stacks']:
            self.assertEqual(stack['delta'], mwlive.nothing(), stack)
        for side, (path, report) in zip(SIDES, runs):
            check_side(self, found, side, report)
            self.assertEqual(found[side]['file'], path)
            self.assertEqual(found[side]['pid'], report['target']['pid'])
        self.assertEqual(found['rebuilt'], [])
        text = run_diff(runs[0][0], runs[1][0]).stdout
        self.assertEqual(ENTRY.findall(text), [])
        self.assertIn('\nTotal increase == 0\n', text)

    def test_growth_comes_first(self):
        old = record(self, mwlive.Target(self, 'growers', 40, 'leak', 'once', 'maps'))
        new = record(self, mwlive.Target(self, 'growers', 120, 'leak', 'requests', 'maps'))
        found = diff(self, old[0], new[0])
        check_side(self, found, 'old', old[1])
        check_side(self, found, 'new', new[1])
        by_function = {}
        for stack in found['stacks']:
            for function in mwlive.functions(stack):
                by_function.setdefault(function, stack)
        self.assertGreaterEqual(by_function['grow_leak']['delta']['count'], 60)
        self.assertEqual(by_function['grow_leak']['delta']['bytes'], 100 * by_function['grow_leak']['delta']['count'])
        self.assertEqual(by_function['grow_once']['new'], mwlive.nothing())
        self.assertEqual(by_function['grow_maps']['kind'], 'vm')
        self.assertIs(found['stacks'][-1], by_function['grow_once'], 'what shrank is last')
        # The other way round everything is the other way round.
        back = diff(self, new[0], old[0])
        self.assertEqual({s['id']: s['delta']['bytes'] for s in found['stacks']},
                         {s['id']: -s['delta']['bytes'] for s in back['stacks']})


class TwoMoments(unittest.TestCase):
    @mwlive.not_under('the marks are put at times, before it has seen much', 'valgrind')
    def test_marks(self):
        """Marks by signal: the difference is that of two reports which end there."""
        target = mwlive.Target(self, 'growers', 150, 'leak', 'waves', 'replaced', 'buffer')
        kept = mwrec.Kept(self, target.pid)
        target.go()
        for _ in SIDES:
            time.sleep(0.4)
            kept.watch.process.send_signal(signal.SIGUSR1)
        target.done()
        report, = kept.stop()
        target.finish()
        found = diff(self, kept.path, '--from', 1, '--to', 2)
        self.assertEqual([found[side]['moment'] for side in SIDES], ['mark 1', 'mark 2'])
        for side in SIDES:
            check_side(self, found, side, mwrec.interval(self, kept.path, 0, found[side]['at']))
        leak, = [s for s in found['stacks'] if 'grow_leak' in mwlive.functions(s)]
        self.assertGreater(leak['delta']['count'], 0)
        self.assertGreater(leak['old']['count'], 0)
        found = diff(self, kept.path, '--from', 'mark 2')
        check_side(self, found, 'new', report)
        found = diff(self, kept.path, '--to', '0.5s')
        self.assertEqual(found['totals']['heap']['old'], mwlive.nothing())
        check_side(self, found, 'new', mwrec.interval(self, kept.path, 0, 0.5))
        self.refuse(2, 'no such mark', 'Marks are 1 at ', kept.path, '--from', '3')
        self.refuse(2, 'later than', '', kept.path, '--from', '2', '--to', '1')

    def refuse(self, status, text, hint, *arguments):
        run = run_diff(*arguments)
        self.assertEqual((run.returncode, run.stdout), (status, ''), run.stderr)
        self.assertIn(text, run.stderr)
        self.assertIn(hint, run.stderr)
        self.assertEqual(run.stderr.count('\n'), 1, run.stderr)

    def test_marks_now_and_then(self):
        target = mwlive.Target(self, 'growers', 100, 'leak')
        path, _ = record(self, target, options=('--mark-every', '0.25s'))
        found = diff(self, path, '--from', 1, '--to', 3)
        self.assertAlmostEqual(found['old']['at'], 0.25)
        self.assertAlmostEqual(found['new']['at'], 0.75)
        check_side(self, found, 'new', mwrec.interval(self, path, 0, 0.75))

    def test_refused(self):
        path, _ = record(self, mwlive.Target(self, 'growers', 10, 'leak'))
        other = os.path.join(os.path.dirname(path), 'other.mw')
        with open(other, 'w', encoding='utf-8') as f:
            f.write('no recording')
        self.refuse(2, 'the recording has no marks', '--mark-every', path, '--from', '1')
        self.refuse(2, 'the same recording', '--from', path, path)
        self.refuse(2, 'only one recording', '--from', path)
        with open(path, 'rb') as f:
            before = f.read()
        self.refuse(2, 'is a recording to compare', 'another name', path, path, '--from', 'start', '--json', path)
        with open(path, 'rb') as f:
            self.assertEqual(f.read(), before, 'the recording was overwritten')
        self.refuse(1, other, '', path, other)
        self.refuse(1, 'nowhere.mw', '', path, '/nowhere.mw')
        cut = os.path.join(os.path.dirname(path), 'cut.mw')
        with open(path, 'rb') as f, open(cut, 'wb') as g:
            g.write(f.read()[:-1])
        run = run_diff(cut, path)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn('was cut off', run.stderr)
        self.assertIn('The recording was cut off', run.stdout)


if __name__ == '__main__':
    mwlive.main()
