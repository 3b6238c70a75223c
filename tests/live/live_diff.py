#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recordings of live programs compared: two runs, two moments of one, and what is refused."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import mwlive
import mwrec

SIDES = ('old', 'new')
KINDS = ('heap', 'vm')
PLACES = {'more': 0, 'same': 1, 'less': 2}
ENTRY = re.compile(r'^([-+=]) (\d+) \( (\d+) - (\d+) \) (\d+) allocs BackTrace([0-9a-f]{16})\n'
                   r'([-+=]) (\d+) \( (\d+) - (\d+) \) BackTrace([0-9a-f]{16}) allocations\n\n'
                   r'(?:(// new: .*)\n\n)?((?:\t.*\n)*)\n', re.M)


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
    if found['basis'] == 'rates':
        check_rates(test, found)
        return
    order = [(-s['delta']['bytes'], -s['delta']['count'], s['id']) for s in found['stacks']]
    test.assertEqual(order, sorted(order))
    for stack in found['stacks']:
        order = (stack['delta']['bytes'], stack['delta']['count'])
        test.assertEqual(stack['change'], 'more' if order > (0, 0) else 'less' if order < (0, 0) else 'same')
        test.assertIsNone(stack['rates'])


def check_rates(test, found):
    """Rates are amounts by the seconds of their window; first those that have become faster, then the same, then slower."""
    order = []
    for stack in found['stacks']:
        test.assertIsNone(stack['growth'])
        for side in SIDES:
            for unit in ('bytes', 'count'):
                rate = stack['rates'][side]
                test.assertAlmostEqual(rate[f'{unit}_per_second'] * found[side]['at'], stack[side][unit], places=3)
                test.assertAlmostEqual(rate[f'{unit}_per_hour'] / 3600, rate[f'{unit}_per_second'], places=3)
        unit = 'bytes' if stack['old']['bytes'] or stack['new']['bytes'] else 'count'
        old, new = (stack['rates'][side][f'{unit}_per_second'] for side in SIDES)
        counts = [stack[side]['count'] for side in SIDES]
        chance = 9 * sum(rate * rate / count for rate, count in zip((old, new), counts) if count)
        same = old and new and (new - old) ** 2 <= max(chance, (max(old, new) / 4) ** 2)
        test.assertEqual(stack['change'], 'same' if same else 'more' if new > old else 'less', stack)
        order.append((PLACES[stack['change']], -new if same else old - new))
    for one, other in zip(order, order[1:]):
        test.assertTrue(one[0] < other[0] or one[0] == other[0] and one[1] <= other[1] + 1e-6, order)


def hourly(found, amount, side):
    return int(amount * 3600 / found[side]['at'] + 0.5)


def check_text(test, found, text):
    """The text tells the same, entry by entry: amounts of one base, or of an hour."""
    entries = ENTRY.findall(text)
    rates = found['basis'] == 'rates'
    test.assertEqual(len(entries), len(found['stacks']), text)
    for entry, stack in zip(entries, found['stacks']):
        test.assertEqual({entry[5], entry[10]}, {stack['id']})
        for numbers, unit in ((entry[0:4], 'bytes'), (entry[6:10], 'count')):
            old, new = (hourly(found, stack[side][unit], side) if rates else stack[side][unit] for side in SIDES)
            told = [int(number) for number in numbers[1:]]
            # What is read here of `at` may be rounded.
            for number, expected in zip(told[1:], (new, old)):
                test.assertAlmostEqual(number, expected, delta=expected * 1e-9 + 1)
            test.assertEqual(told[0], abs(told[1] - told[2]))
            sign = '=' if rates and stack['change'] == 'same' else '-' if told[1] < told[2] else '+'
            test.assertEqual(numbers[0], sign)
        test.assertEqual(entry[4], entry[8])
        test.assertEqual(bool(entry[11]), rates)
        for frame in stack['frames']:
            test.assertIn(frame['function'] or '+0x', entry[12])
    if not rates:
        total = sum(found['totals'][kind]['delta']['bytes'] for kind in KINDS)
        test.assertTrue(text.endswith(f'Total {"increase" if total >= 0 else "decrease"} == {abs(total)}\n'), text)
    else:
        word = {'more': 'increase', 'less': 'decrease', 'same': 'about the same'}[found['change']]
        test.assertRegex(text, rf'\nTotal {word} == \d+ an hour\n\Z')


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
        self.assertEqual((found['basis'], found['executables']), ('rates', 'same'))
        text = run_diff(runs[0][0], runs[1][0]).stdout
        self.assertIn('// Two windows of two processes: ', text)

    def test_launched_from_nothing(self):
        """Two commands that were launched stand on one base: what they leave in the end is compared."""
        paths = []
        for name in SIDES:
            paths.append(os.path.join(mwrec.directory(self), f'{name}.mw'))
            run = subprocess.run([mwlive.config.memwatch, '--engine', mwlive.config.engine, '--quiet', '-o', paths[-1], '--',
                                  'sleep', '0.1'], timeout=mwlive.PATIENCE, check=False)
            self.assertEqual(run.returncode, 0)
        found = diff(self, *paths)
        self.assertEqual(found['basis'], 'outstanding')
        self.assertTrue(found['stacks'])
        self.assertEqual({stack['change'] for stack in found['stacks']}, {'same'})
        text = run_diff(*paths).stdout
        self.assertEqual(ENTRY.findall(text), [])
        self.assertIn('\nTotal increase == 0\n', text)

    def test_steady_leak(self):
        """Two windows of a process that leaks steadily, of different lengths: it is no growth, and no shrinking."""
        code = ('import ctypes, time\nlibc = ctypes.CDLL(None)\nlibc.malloc.restype = ctypes.c_void_p\n'
                'print("ready", flush=True)\nwhile True:\n    libc.malloc(12345)\n    time.sleep(0.05)')
        with subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE) as target:
            try:
                target.stdout.readline()
                paths = []
                for seconds in ('2', '1000ms'):
                    paths.append(os.path.join(mwrec.directory(self), f'{seconds}.mw'))
                    run = subprocess.run([mwlive.config.memwatch, '--engine', mwlive.config.engine, '--quiet', '-p',
                                          str(target.pid), '-d', seconds, '-o', paths[-1]], timeout=mwlive.PATIENCE,
                                         check=False)
                    self.assertEqual(run.returncode, 0)
            finally:
                target.kill()
        for pair in (paths, paths[::-1]):
            found = diff(self, *pair)
            leak, = [s for s in found['stacks'] if s['new']['count'] and s['new']['bytes'] == 12345 * s['new']['count']]
            self.assertEqual((found['basis'], leak['change']), ('rates', 'same'), leak)
            text = run_diff(*pair).stdout
            self.assertIn('// Two windows of one process: ', text)
            self.assertIn('// The windows differ in length: ', text)
            self.assertRegex(text, rf'(?m)^= .*BackTrace{leak["id"]}$')
            self.assertNotIn('Warning', text)

    def test_another_executable(self):
        """A copy is of the same build, another program is not: diff warns of both."""
        names, paths = {}, {}
        for name, source in (('first', 'sleep'), ('copy', 'sleep'), ('other', 'tail')):
            names[name] = os.path.join(mwrec.directory(self), name)
            shutil.copy(os.path.realpath(shutil.which(source)), names[name])
            command = [names[name], '100'] if source == 'sleep' else [names[name], '-f', '/dev/null']
            with subprocess.Popen(command) as target:
                try:
                    paths[name] = os.path.join(mwrec.directory(self), f'{name}.mw')
                    mwlive.wait_until(lambda pid=target.pid: mwlive.state(pid) == 'S', 'the program to wait')
                    run = subprocess.run([mwlive.config.memwatch, '--engine', mwlive.config.engine, '--quiet', '-p',
                                          str(target.pid), '-d', '100ms', '-o', paths[name]], timeout=mwlive.PATIENCE,
                                         check=False)
                    self.assertEqual(run.returncode, 0)
                finally:
                    target.kill()
        for other, how, text in (('copy', 'moved', 'the same build at another path'),
                                 ('other', 'rebuilt', 'different builds')):
            found = diff(self, paths['first'], paths[other])
            self.assertEqual(found['executables'], how)
            line, = [each for each in run_diff(paths['first'], paths[other]).stdout.splitlines() if 'Warning' in each]
            for word in (text, names['first'], names[other], found['old']['build_id'], found['new']['build_id']):
                self.assertIn(word, line)

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
        self.assertEqual(by_function['grow_once']['change'], 'less')
        self.assertEqual(by_function['grow_maps']['kind'], 'vm')
        # The other way round everything is the other way round.
        back = diff(self, new[0], old[0])
        self.assertEqual({s['id']: s['delta']['bytes'] for s in found['stacks']},
                         {s['id']: -s['delta']['bytes'] for s in back['stacks']})
        turned = {'more': 'less', 'less': 'more', 'same': 'same'}
        self.assertEqual({s['id']: turned[s['change']] for s in found['stacks']},
                         {s['id']: s['change'] for s in back['stacks']})


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
        self.assertIn('is not complete', run.stderr)
        self.assertIn('The recording is not complete', run.stdout)


if __name__ == '__main__':
    mwlive.main()
