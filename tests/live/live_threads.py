#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Threads: many at once, short-lived ones, a leader that has gone, blocked signals."""
import json
import os
import subprocess
import unittest

import mwlive


class Threads(unittest.TestCase):
    def test_each_counts_for_itself(self):
        answer, report = mwlive.observe(self, 'threads', 4, 2000, 50)
        mwlive.compare(self, answer, report)
        by_name = {t['name']: t for t in report['threads']}
        for number in range(4):
            thread = by_name[f'worker-{number}']
            self.assertEqual(thread['size']['count'], 2050)
            self.assertEqual(thread['impacting']['count'], 50)
            stack, = mwlive.select(report, f'threads_leak_{number}')
            self.assertEqual([t['name'] for t in stack['threads']], [f'worker-{number}'])
            self.assertIn('work', mwlive.functions(stack))

    def test_short_lived(self):
        answer, report = mwlive.observe(self, 'thread_storm', 1000)
        mwlive.compare(self, answer, report)

    def test_of_one_process_of_many(self):
        """The recorder remembers less there, and has few rings ready."""
        others = [mwlive.Target(self, 'simple') for _ in range(6)]
        targets = [mwlive.Target(self, 'threads', 40, 500, 20), mwlive.Target(self, 'thread_storm', 500)]
        watch = mwlive.Watch(self, *(t.pid for t in others + targets))
        answers = []
        for target in targets:
            target.go()
            answers.append(target.done())
        watch.stop()
        for answer, report in zip(answers, watch.reports[len(others):]):
            mwlive.compare(self, answer, report)
        for target in others:
            target.go()
            target.done()
        for target in others + targets:
            target.finish()

    def test_attach_while_threads_start_each_other(self):
        # A list of its threads may lack the one of a chain that lives just then: a breakpoint would kill it.
        target = mwlive.Target(self, 'thread_storm', 'relay', 16)
        before = mwlive.Snapshot(target.pid)
        for number in range(mwlive.attempts(10, 60)):
            run = subprocess.run([mwlive.config.memwatch, '-p', str(target.pid), '-d', '0.02', '--quiet', '--json',
                                  '/dev/null', '--engine', mwlive.config.engine], stdin=subprocess.DEVNULL,
                                 capture_output=True, timeout=mwlive.PATIENCE, check=False)
            self.assertEqual((run.returncode, run.stderr), (0, b''), number)
            self.assertIsNone(target.process.poll(), number)
        before.check(self)
        target.go()
        target.done()
        target.finish()

    def test_leader_has_ended(self):
        answer, report = mwlive.observe(self, 'leader_exits')
        mwlive.compare(self, answer, report)

    def test_memory_of_one_whose_leader_has_ended(self):
        target = mwlive.Target(self, 'leader_exits')
        run = subprocess.run([mwlive.config.memwatch, '-p', str(target.pid), '-d', '0.3', '--quiet', '--json', '-',
                              '--engine', mwlive.config.engine], stdin=subprocess.DEVNULL, capture_output=True,
                             timeout=mwlive.PATIENCE, check=True)
        report = json.loads(run.stdout)
        self.assertEqual([os.path.basename(word) for word in (report['target']['exe'], *report['target']['command'])],
                         ['leader_exits', 'leader_exits'])
        memory = report['memory']
        self.assertGreaterEqual(len(memory), 2)
        for sample in memory:
            self.assertGreater(sample['rss'], 100000, memory)
            self.assertGreater(sample['vsize'], sample['rss'], memory)
        for sample in (memory[0], memory[-1]):
            self.assertGreater(sample['pss'], 0, memory)
        target.go()
        target.done()
        target.finish()

    def test_blocked_signals_and_dispositions(self):
        answer, report = mwlive.observe(self, 'sigmask')
        mwlive.compare(self, answer, report)


if __name__ == '__main__':
    mwlive.main()
