#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two engines tell the same of the same run, event by event: order, sizes, stacks; only times are left out."""
import itertools
import unittest

import mwjump
import mwlive

STEPS = mwlive.attempts(60000, 560000)
LEAST = 1.8  # events a step
CONTEXT = 12  # lines told before the first difference


class Same(unittest.TestCase):
    def record(self, engine, steps):
        """The events of a whole run, as a file."""
        target = mwlive.Target(self, 'deterministic', steps, mwlive.target_path('libdetlib.so'))
        before = mwlive.Snapshot(target.pid)
        events = mwjump.Events(self, target.pid, engine, out=True)
        target.go()
        target.done(280 * mwlive.SLOWNESS)
        answer = events.stop(280 * mwlive.SLOWNESS)
        before.check(self)
        target.finish()
        self.assertEqual(answer['lost'], 0, f'{engine} lost events')
        return events.path, answer

    def compare(self, first, second):
        stacks = {}, {}
        last = []
        with open(first, encoding='utf-8') as a, open(second, encoding='utf-8') as b:
            for number, lines in enumerate(itertools.zip_longest(a, b, fillvalue='(the end)\n'), 1):
                if lines[0] != lines[1]:
                    self.fail(self.explain(number, lines, last, stacks))
                if lines[0].startswith('stack '):
                    name, _, text = lines[0][6:].partition(' ')
                    stacks[0][name] = stacks[1][name] = text
                last = [*last[1 - CONTEXT:], lines[0]]
        return number

    @staticmethod
    def explain(number, lines, last, stacks):
        text = [f'line {number} differs\n', *('  both    ' + line for line in last),
                '  first   ' + lines[0], '  second  ' + lines[1]]
        for which, line in enumerate(lines):
            for word in line.split():
                if word[:1] == 's' and word[1:] in stacks[which]:
                    text.append(f'  {word} of {("first", "second")[which]}: {stacks[which][word[1:]]}')
        return ''.join(text)

    def check(self, engines, steps):
        (first, answer), (second, again) = (self.record(engine, steps) for engine in engines)
        self.assertEqual(self.compare(first, second), answer['events'] + answer['stacks'])
        self.assertEqual(again['events'], answer['events'])
        self.assertGreaterEqual(answer['events'], LEAST * steps)
        self.assertGreater(answer['stacks'], steps ** 0.5)
        return answer['events']

    def test_an_engine_and_itself(self):
        """The program and the comparison are what they should be."""
        self.check((mwlive.config.engine,) * 2, 20000)

    def test_trap_and_jump(self):
        mwjump.need_engine('jump')
        if mwlive.config.engine == 'jump':
            self.skipTest('is done with the trap engine')
        self.assertGreaterEqual(self.check(('trap', 'jump'), STEPS), mwlive.attempts(100000, 1000000))


if __name__ == '__main__':
    mwlive.main()
