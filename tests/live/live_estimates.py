#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sampled windows, one after the other, of a program that says what it keeps: how often the limits of 95 % hold, by size.

As a test a few windows; as a soak (scripts/soak sampling) 200.
"""
import collections
import concurrent.futures
import math
import unittest

import mwlive

SIZES = (8, 32, 128, 512, 2048, 8192, 32768, 131072, 524288, 2097152, 8388608, 33554432, 67108864)
INTERVALS = (4 << 10, 32 << 10, 512 << 10, 4 << 20, 64 << 20)
WINDOWS = 5, 200
AT_ONCE = 4 if mwlive.SOAK else 1
# Each stack keeps so many intervals' worth of bytes, but no more blocks, and no more bytes of address space.
LEAST, MOST = 0.5, 40
MOST_BLOCKS = 200000 if mwlive.SOAK else 20000
MOST_BYTES = 3 << 30
# A block this many times larger than the interval is missed once in 1,000 windows: its estimates are as good as exact.
CERTAIN = 7
# Of the pairs: what is to be covered, and how far chance may be off in a few windows.
COVERED = {False: (0.75, 1), True: (0.93, 0.97)}
BIASED = 5  # standard errors that estimates may be off by together
ROUNDED = 1e-3  # beside them: weights are whole numbers

Pair = collections.namedtuple('Pair', 'size interval held estimate low high')


def variance(size, interval):
    """Of what stands for a block, where it is recorded: whole numbers, one of the two beside 1/p."""
    chance = -math.expm1(-size / interval)
    part = 1 / chance % 1
    return 1 / chance - 1 + chance * part * (1 - part)


class Estimates(unittest.TestCase):
    def plan(self, number):
        """A window's interval, and how many blocks of each size there are to be."""
        chance = mwlive.chance(f'estimates {number}')
        interval = INTERVALS[number % len(INTERVALS)]
        counts = []
        for size in SIZES:
            count = round(interval / size * LEAST * (MOST / LEAST) ** chance.random())
            most = min(MOST_BLOCKS, MOST_BYTES // size)
            # Too few to be seen at all say nothing of limits.
            counts.append(0 if most * size < interval else max(1, min(count, most)))
        return interval, counts

    def window(self, options, counts):
        target = mwlive.Target(self, 'sizes', *counts)
        watch = mwlive.Watch(self, target.pid, options=options, complete=None)
        target.go()
        answer = target.done(100 * mwlive.SLOWNESS)  # of the 120 s that it lives
        report = watch.stop()
        target.finish()
        self.assertEqual(report['lost']['events'], 0)
        # Whatever was freed is not outstanding.
        for stack in report['stacks']:
            if stack['kind'] == 'heap' and mwlive.functions(stack)[0].startswith('drop_'):
                self.assertEqual(stack['impacting']['bytes'], 0, 'a free was missed')
        return answer, report

    def pairs(self, number):
        """What a window says of each stack, and what is so."""
        interval, counts = self.plan(number)
        answer, report = self.window(('--sample', interval), counts)
        found = []
        for size, count in zip(SIZES, counts):
            held = answer[f'keep_{size}']
            self.assertEqual(held, size * count)
            suspects = [s for s in report['suspects'] if s['function'] == f'keep_{size}']
            self.assertLessEqual(len(suspects), 1, size)
            if not held:
                self.assertEqual(suspects, [])
            elif suspects:
                error = suspects[0]['error']
                found.append(Pair(size, interval, held, suspects[0]['bytes'], error['low'], error['high']))
            else:
                found.append(Pair(size, interval, held, 0, 0, report['sampling']['unseen']))
        return found

    def check(self, pairs):
        lines = []
        for size in SIZES:
            of_size = [p for p in pairs if p.size == size]
            # In intervals, so that each window counts for what it can say.
            held = sum(p.held / p.interval for p in of_size)
            estimate = sum(p.estimate / p.interval for p in of_size) / held
            # By the chances, not by what was estimated.
            error = math.sqrt(sum(variance(size, p.interval) * size * p.held / p.interval ** 2 for p in of_size)) / held
            uncertain = [p for p in of_size if size < CERTAIN * p.interval]
            covered = sum(p.low <= p.held <= p.high for p in uncertain)
            lines.append(f'| {size} | {len(of_size)} | {estimate:.4f} | {error:.4f} | '
                         f'{len(uncertain)} | {covered / max(1, len(uncertain)):.3f} |')
            self.assertLessEqual(abs(estimate - 1), BIASED * error + ROUNDED, (size, '\n'.join(lines)))
        uncertain = [p for p in pairs if p.size < CERTAIN * p.interval]
        covered = sum(p.low <= p.held <= p.high for p in uncertain) / len(uncertain)
        lines.append(f'| all | {len(pairs)} | | | {len(uncertain)} | {covered:.3f} |')
        if mwlive.SOAK:
            print('\n'.join(f'result: {line}' for line in lines), flush=True)
        least, most = COVERED[mwlive.SOAK]
        self.assertTrue(least <= covered <= most, '\n'.join(lines))

    def test_cover_the_truth(self):
        if mwlive.config.engine == 'trap':
            self.skipTest('millions of stops: the estimates are the same code')
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            found = list(pool.map(self.pairs, range(mwlive.attempts(*WINDOWS))))
        self.check([pair for pairs in found for pair in pairs])

    def test_beside_a_full_window(self):
        """The same work with every block recorded is exact, and the stacks are the same."""
        counts = [max(1, min(20000, (4 << 20) // size)) for size in SIZES]
        if mwlive.config.engine == 'trap':
            counts = [min(count, 300) for count in counts]
        answer, full = self.window((), counts)
        self.assertIsNone(full['sampling'])
        _, sampled = self.window(('--sample', '128K'), counts)
        for size in SIZES:
            name = f'keep_{size}'
            exact, = mwlive.select(full, name, kinds=('heap',))
            self.assertEqual(exact['impacting']['bytes'], answer[name])
            for stack in mwlive.select(sampled, name, kinds=('heap',)):
                self.assertEqual(stack['id'], exact['id'])


if __name__ == '__main__':
    mwlive.main()
