#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The walkthrough of MemoryTestApp: from one recording its whole run, the step, four spikes, and the small blocks."""
import collections
import os
import subprocess
import unittest

import mwlive
import mwrec

SCALE = 0.2
MIB = 1 << 20
START = ['__libc_start_call_main', '__libc_start_main_impl', '_start']

Span = collections.namedtuple('Span', 'before after')


class Log:
    """What the program says it did, and when, on the recording's clock."""

    def __init__(self, test, answer, whole):
        self.test = test
        self.spans = {}
        for key, value in answer.items():
            name, _, before = key.rpartition('.')
            if name:
                self.spans[name] = Span(int(before) / 1e9, value / 1e9)
        self.set_clock(whole)
        self.spans = {name: Span(s.before - self.begin, s.after - self.begin) for name, s in self.spans.items()}
        self.news = [self.spans[f'new.{i}'] for i in range(1200)]
        self.spikes = [self.spans[f'spike.{i}'] for i in range(10)]
        self.freeing = answer['freeing'] / 1e9 - self.begin

    def set_clock(self, whole):
        """When the window began, from both mappings that main made: they lie between what it says."""
        steady, step = sorted(in_main(whole), key=lambda stack: stack['peak']['at'])
        bounds = [(self.spans[name].before - stack['peak']['at'], self.spans[name].after - stack['peak']['at'])
                  for name, stack in (('steady', steady), ('step', step))]
        low, high = max(b[0] for b in bounds), min(b[1] for b in bounds)
        self.test.assertLess(low - high, 0.001, 'two clocks')
        self.begin = (low + high) / 2

    def quiet(self, before, after, low=0, high=float('inf')):
        """A moment between two news in which nothing goes on: there, or as near as there is one between low and high."""
        busy = sorted(self.spans.values())
        gaps = [(one.after, other.before) for one, other in zip(busy, busy[1:])
                if other.before - one.after > 0.002 and low <= one.after and other.before <= high]
        self.test.assertTrue(gaps, 'the program does not rest')
        wanted = (before.after + after.before) / 2
        # The two clocks are not known to be one to the millisecond: where there is a choice the longest is best.
        gap = max(gaps, key=lambda g: g[1] - g[0]) if low else min(gaps, key=lambda g: abs((g[0] + g[1]) / 2 - wanted))
        return (gap[0] + gap[1]) / 2

    def count(self, begin, end):
        """News inside."""
        return sum(begin < s.before and s.after < end for s in self.news)


def names(stack):
    return mwlive.functions(stack)


def in_main(report):
    """The stacks of main's own mappings."""
    return [s for s in mwlive.select(report, 'main', api=('mmap', 'mmap64'), kinds=('vm',)) if names(s)[0] == 'main']


def amount(count, size):
    return {'count': count, 'bytes': size}


class MemoryTestApp(unittest.TestCase):
    def check_spikes(self, report, count):
        stack, = mwlive.select(report, 'ManipulateTemporaryBuffer')
        self.assertEqual(names(stack)[:3], ['ManipulateTemporaryBuffer', 'Operation1', 'main'])
        self.assertEqual(names(stack)[3:], START)
        self.assertEqual((stack['size'], stack['transient'], stack['impacting']),
                         (amount(count, count * 10 * MIB), amount(count, count * 10 * MIB), amount(0, 0)))
        life = stack['lifetime_ns']['median']
        self.assertGreater(life, 0.1 * SCALE * 1e9 * 0.9)

    def check_news(self, report, count, kept):
        stack, = mwlive.select(report, 'InnerLoopOperation')
        self.assertEqual([n for n in names(stack) if not n.startswith('operator new')],
                         ['InnerLoopOperation', 'main', *START])
        self.assertEqual(stack['size'], amount(count, 40 * count))
        self.assertEqual(stack['impacting' if kept else 'transient'], stack['size'])
        return stack

    def check_whole(self, report):
        program = mwlive.total_of(mwlive.select(report, 'main'))
        self.assertEqual(program['size'], amount(1200 + 12, 40 * 1200 + 120 * MIB))
        self.assertEqual(round(program['size']['bytes'] / 1e6), 126)
        self.assertEqual(program['impacting'], amount(0, 0))
        vm = report['totals']['vm']
        self.assertEqual((vm['size'], vm['impacting'], vm['peak']['bytes']), (amount(12, 120 * MIB), amount(0, 0), 30 * MIB))
        self.check_spikes(report, 10)
        self.check_news(report, 1200, kept=False)

    def check_step(self, path, log):
        """Around the step, between two spikes."""
        first = next(i for i, s in enumerate(log.news) if s.before > log.spikes[4].after)
        last = next(i for i, s in enumerate(log.news) if s.before > log.spikes[5].before)
        step = log.spans['step']
        begin = log.quiet(*log.news[first:first + 2], low=log.spikes[4].after, high=step.before)
        end = log.quiet(*log.news[last - 2:last], low=step.after, high=log.spikes[5].before)
        report = mwrec.interval(self, path, begin, end)
        self.assertEqual(report['totals']['vm']['impacting'], amount(1, 10 * MIB))
        self.assertEqual(report['totals']['vm']['size'], amount(1, 10 * MIB))
        stack, = [s for s in report['stacks'] if s['kind'] == 'vm' and s['size']['count']]
        self.assertEqual(names(stack), ['main', *START])
        self.assertIn(stack['api'], ('mmap', 'mmap64'))
        self.assertEqual(report['totals']['heap']['impacting'],
                         amount(log.count(begin, end), 40 * log.count(begin, end)))

    def check_last_spikes(self, path, log):
        before = next(i for i, s in enumerate(log.news) if s.before > log.spikes[5].after)
        after = next(i for i, s in enumerate(log.news) if s.before > log.spikes[9].after)
        begin = log.quiet(*log.news[before:before + 2], low=log.spikes[5].after, high=log.spikes[6].before)
        end = log.quiet(*log.news[after:after + 2], low=log.spikes[9].after, high=log.freeing)
        report = mwrec.interval(self, path, begin, end)
        self.assertEqual(report['totals']['vm']['transient'], amount(4, 40 * MIB))
        self.assertEqual(report['totals']['vm']['impacting'], amount(0, 0))
        self.check_spikes(report, 4)

    def check_middle(self, path, log):
        """10 s in the middle, at full length: 319 blocks, but where the machine was suspended."""
        begin, end = log.quiet(log.news[439], log.news[440]), log.quiet(log.news[440 + 318], log.news[440 + 319])
        count = log.count(begin, end)
        self.assertGreater(count, 0)
        report = mwrec.interval(self, path, begin, end)
        stack = self.check_news(report, count, kept=True)
        self.assertEqual(report['totals']['heap']['impacting'], amount(count, 40 * count))
        # All are freed at once when the program ends, which the recording knows: no leak, but nothing to calm down at.
        self.assertIn(stack['growth']['verdict'], ('steady growth', 'too short to tell'))
        self.assertEqual(stack['growth']['freed_share'], 0)
        # In all intervals together is all that there is.
        parts = [mwrec.interval(self, path, *borders) for borders in ((0, begin), (begin, end), (end, None))]
        whole = mwrec.interval(self, path)
        for kind in ('heap', 'vm'):
            for unit in ('count', 'bytes'):
                self.assertEqual(sum(p['totals'][kind]['size'][unit] for p in parts),
                                 whole['totals'][kind]['size'][unit])

    def check_all(self, answer, path):
        whole = mwrec.interval(self, path)
        self.check_whole(whole)
        log = Log(self, answer, whole)
        self.check_step(path, log)
        self.check_last_spikes(path, log)
        self.check_middle(path, log)

    def test_attached(self):
        target = mwlive.Target(self, 'memorytestapp', SCALE)
        kept = mwrec.Kept(self, target.pid)
        target.go()
        answer = target.done()
        kept.stop()
        target.finish()
        self.check_all(answer, kept.path)

    def test_launched(self):
        path = os.path.join(mwrec.directory(self), 'recording.mw')
        run = subprocess.run([mwlive.config.memwatch, '--engine', mwlive.config.engine, *mwlive.patient(), '--quiet', '-o',
                              path, '--', mwlive.target_path('memorytestapp'), str(SCALE)], stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=mwlive.PATIENCE, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        answer = {key: int(value) for key, _, value in (line.partition('=') for line in run.stdout.splitlines())
                  if value}
        self.check_all(answer, path)


if __name__ == '__main__':
    mwlive.main()
