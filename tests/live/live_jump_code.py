#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The target's code and mappings: registers pass through, nothing is left behind, what can't be hooked is said."""
import os
import re
import subprocess
import time
import unittest

import mwjump
import mwlive

ATTACHES = mwlive.attempts(20, 200)


def doctor_ways(text):
    """What doctor says above each function that it lists: its module, and how it would be hooked."""
    ways, title = {}, ''
    for line in text[text.index('Would be hooked'):text.index('Debug information')].splitlines():
        if re.fullmatch(r' {2}\S.*', line):
            title = line.strip()
        elif re.fullmatch(r' {2,}[0-9a-f]{3,} [a-z_].*', line):
            ways.update({name: title for name in re.findall(r'[0-9a-f]{3,} ([a-z_]+)', line)})
        elif line.startswith('    '):
            title += ' ' + line.strip()
    return ways


class Code(unittest.TestCase):
    def exact(self, name, *arguments):
        answer, report = mwlive.observe(self, name, *arguments)
        mwlive.compare(self, answer, report)
        return answer, report

    def test_registers(self):
        self.exact('registers')

    def test_functions_that_cannot_be_moved(self):
        """With `auto` each call is seen all the same, and doctor tells why a jump won't do."""
        target = mwlive.Target(self, 'unmovable')
        run = subprocess.run([mwlive.config.memwatch, 'doctor', '-p', str(target.pid), '--engine',
                              mwlive.config.engine], capture_output=True, text=True, check=False,
                             timeout=mwlive.PATIENCE)
        self.assertIn(run.returncode, (0, 1), run.stderr)
        for name in ('mi_malloc', 'mi_free', 'mi_calloc'):
            self.assertRegex(run.stdout, rf'(?m)^.*\b{name}\b')
        if mwlive.config.engine == 'jump':
            module = re.escape(mwlive.target_path('unmovable'))
            ways = doctor_ways(run.stdout)
            for name in ('mi_malloc', 'mi_free'):
                self.assertRegex(ways[name], rf'^{module} .*by a breakpoint only, as .*[a-z]{{3,}} ')
            self.assertRegex(ways['mi_calloc'], rf'^{module} .*: [0-9]+ by a jump$')
        attempt = mwjump.Attempt(self, target, 'auto')
        report = attempt.finish()
        self.assertIsNotNone(report, attempt.error)
        self.assertGreater(len(report['engine']['reason']), 10)

    def test_functions_that_cannot_be_moved_by_name(self):
        """Asked for by name an engine does it right or refuses."""
        attempt = mwjump.Attempt(self, mwlive.Target(self, 'unmovable'))
        if attempt.finish() is None:
            self.assertRegex(attempt.error, r'mi_(malloc|free)')

    def test_handler_that_goes_back_into_what_is_replaced(self):
        """A signal has interrupted malloc behind its first instruction: a jump there would be gone back into."""
        attempt = mwjump.Attempt(self, mwlive.Target(self, 'malloc_interrupted'))
        report = attempt.finish()
        if mwlive.config.engine == 'jump':
            self.assertIsNone(report)
            self.assertIn('signal handler', attempt.error)
        report = mwjump.Attempt(self, mwlive.Target(self, 'malloc_interrupted'), 'auto').finish()
        self.assertEqual(report['engine']['name'], 'trap')
        self.assertIn('signal handler', report['engine']['reason'])

    def attach(self, pid, number):
        run = subprocess.run([mwlive.config.memwatch, '-p', str(pid), '--engine', mwlive.config.engine, '--quiet',
                              '-d', '0.01'], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                             timeout=mwlive.PATIENCE)
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, '', ''), f'window {number}')

    def test_attached_over_and_over_while_idle(self):
        target = mwlive.Target(self, 'threads', 4, 2000, 50)
        before, snapshot = mwlive.mappings(target.pid), mwlive.Snapshot(target.pid)
        descriptors = os.listdir(f'/proc/{target.pid}/fd')
        for number in range(ATTACHES):
            self.attach(target.pid, number)
            if number % 50 == 0 or number == ATTACHES - 1:
                self.assertEqual(mwlive.mappings(target.pid), before, f'window {number}')
        self.assertEqual(os.listdir(f'/proc/{target.pid}/fd'), descriptors)
        snapshot.check(self)
        mwjump.check_text_of_files(self, target.pid)
        target.go()
        target.done()
        target.finish()

    def test_attached_over_and_over_while_busy(self):
        """Its heap may grow meanwhile, nothing else may come."""
        target = mwlive.Target(self, 'threads_sleeping', 8)
        target.go()
        before = mwjump.steady_mappings(target.pid)
        files = {m[4] for m in before}
        for number in range(ATTACHES // 5):
            self.attach(target.pid, number)
        now = mwjump.steady_mappings(target.pid)
        self.assertEqual({m[4] for m in now}, files)
        self.assertEqual([m for m in now if 'x' in m[2]], [m for m in before if 'x' in m[2]])
        mwjump.check_text_of_files(self, target.pid)
        target.send()
        target.done()
        target.finish()

    def test_200_threads(self):
        target = mwlive.Target(self, 'threads_sleeping', 200)
        watch = mwlive.Watch(self, target.pid)
        target.go()
        time.sleep(0.5)
        target.send()
        answer = target.done()
        report = watch.stop()
        mwlive.compare(self, answer, report)
        for key in ('attach_ns', 'detach_ns'):
            self.assertGreater(report['engine'][key], 0, key)
        print(f'200 threads were stopped for {report["engine"]["attach_ns"] / 1e6:.2f} ms at attach, '
              f'{report["engine"]["detach_ns"] / 1e6:.2f} ms at detach', flush=True)
        target.finish()


if __name__ == '__main__':
    mwlive.main()
