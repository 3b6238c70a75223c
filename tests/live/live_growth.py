#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that grow in all ways at once: each stack has its verdict, and the figures for it."""
import unittest

import mwlive
import mwrec

STEPS = 450
VERDICTS = {
    'leak': 'steady growth',
    'cache': 'plateau',
    'waves': 'churn',
    'bursts': 'stepwise growth',
    'once': 'one-off',
    'requests': 'churn',
    'replaced': 'plateau',
    'mixed': 'steady growth',
    'buffer': 'growing container',
    'maps': 'steady growth',
}


class Growth(unittest.TestCase):
    def record(self, *modes):
        """A window in which the machine let the program go at its own pace, and the recording of it."""
        for _ in range(5):
            target = mwlive.Target(self, 'growers', STEPS, *modes)
            kept = mwrec.Kept(self, target.pid)
            target.go()
            answer = target.done()
            report, = kept.stop()
            target.finish()
            # Where it was suspended for long that was no steady growth.
            if answer['longest_step_ns'] < 0.05e9 * report['window']['seconds']:
                break
        return report, kept.path

    def verdicts(self, report):
        found = {}
        for mode in VERDICTS:
            stacks = [s for s in mwlive.select(report, f'grow_{mode}') if s['impacting']['count']]
            if stacks:
                stack, = stacks
                verdict = stack['growth']['verdict']
                # The program's pace is the machine's: where other load ends meanwhile, its growth does accelerate, and
                # what it replaces has lived shortly against a window that took long.
                found[mode] = ('steady growth' if verdict == 'accelerating' else
                               'plateau' if (mode, verdict) == ('replaced', 'churn') else verdict)
        return found

    def test_all_at_once(self):
        report, path = self.record()
        found = self.verdicts(report)
        # Where a wave has just ended nothing is there to be judged.
        found.setdefault('waves', 'churn')
        self.assertEqual(found, VERDICTS, [(s['frames'][0]['function'], s['growth']) for s in report['stacks']])
        self.check_figures(report)
        # Over a part of it: what fills a cache, and nothing after it has.
        seconds = report['window']['seconds']
        late = self.verdicts(mwrec.interval(self, path, seconds / 2))
        self.assertNotIn('cache', late)
        self.assertNotIn('once', late)
        self.assertEqual((late['leak'], late['maps']), ('steady growth', 'steady growth'))
        # What is known of a stack does not depend on where one looks.
        for part in (late, self.verdicts(mwrec.interval(self, path, seconds - 0.9))):
            self.assertEqual(part, {mode: found[mode] for mode in part})

    def check_figures(self, report):
        growth = {mode: stack['growth'] for mode in VERDICTS
                  for stack in mwlive.select(report, f'grow_{mode}') if stack['growth']}
        stacks = {mode: stack for mode in VERDICTS
                  for stack in mwlive.select(report, f'grow_{mode}') if stack['growth']}
        seconds = report['window']['seconds']
        leak = growth['leak']
        self.assertGreater(leak['steadiness'], 0.9)
        held = stacks['leak']['impacting']['bytes']
        self.assertAlmostEqual(leak['bytes_per_second'], held / seconds, delta=0.5 * held / seconds)
        self.assertEqual((leak['freed_share'], leak['settle_age']), (0, 0))
        self.assertEqual(leak['settled'], stacks['leak']['impacting'])
        self.assertLess(leak['floor_start'], leak['floor_end'])
        self.assertLess(growth['cache']['growing_until'], 0.75 * seconds)
        self.assertGreater(leak['growing_until'], 0.75 * seconds)
        self.assertLess(growth['once']['oldest_age'] - growth['once']['newest_age'], seconds / 16)
        self.assertGreater(growth['requests']['freed_share'], 0.9)
        self.assertGreater(growth['requests']['settle_age'], 0.05)
        self.assertGreater(growth['mixed']['settled']['count'], 0)
        for stack in report['stacks']:
            self.assertEqual(stack['growth'] is not None, stack['impacting']['count'] > 0)

    def test_nothing_that_grows(self):
        report, _ = self.record('waves', 'requests', 'replaced', 'cache')
        self.assertNotIn('steady growth', self.verdicts(report).values())


if __name__ == '__main__':
    mwlive.main()
