#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""memwatch inside a container: under its filter, without CAP_SYS_ADMIN, as are its targets. It can neither read nor
suspend that filter, and tries what it permits. The whole test runs so."""
import os
import re
import signal
import subprocess
import sys
import unittest

import mwjump
import mwlive
import mwrec
import mwusers

# Set where it runs so already.
CONTAINED = 'MWLIVE_CONTAINED'


def contained(mode):
    return [os.path.join(mwlive.config.targets, 'contained'), mode]


class Contained(unittest.TestCase):
    def setUp(self):
        status = mwlive.status(os.getpid())
        self.assertEqual(status['Seccomp'], '2')
        if 'Seccomp_filters' not in status:
            self.skipTest('this kernel does not count seccomp filters')
        if status['Seccomp_filters'] != '1':
            self.skipTest('under more filters than the one of this test')

    def launch(self, mode, engine, *command):
        path = os.path.join(mwrec.directory(self), 'report.json')
        run = subprocess.run([*contained(mode), mwlive.config.memwatch, '--engine', engine, *mwlive.patient(engine),
                              '--quiet', '--json', path, '--', *command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=mwlive.PATIENCE, check=False)
        return run, mwlive.load_reports(path)[0] if run.returncode == 0 else None

    def test_attached(self):
        answer, report = mwlive.observe(self, 'simple', 500)
        mwlive.compare(self, answer, report)
        self.assertEqual(report['engine']['name'], mwlive.config.engine)

    def test_attached_by_auto(self):
        attempt = mwjump.Attempt(self, mwlive.Target(self, 'threads'), 'auto')
        attempt.finish()
        self.assertEqual(attempt.error, '')
        self.assertEqual(attempt.report['engine']['name'], 'jump')

    def test_launched(self):
        run, report = self.launch('none', mwlive.config.engine, sys.executable, '-c', 'keep = list(range(100000))')
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(report['target']['exit_status'], 0)
        self.assertGreater(report['totals']['heap']['size']['count'], 100)

    def test_launched_under_a_filter_that_kills(self):
        """What it kills for is tried by a child: the program is refused by name of the call, and memwatch lives on."""
        for mode, engines, call in ('restart', ('jump', 'trap'), 'restart_syscall'), ('memfd', ('jump',), 'memfd_create'):
            if mwlive.config.engine not in engines:
                continue
            with self.subTest(mode):
                run, _ = self.launch(mode, mwlive.config.engine, 'true')
                self.assertEqual(run.returncode, 1, run.stderr)
                self.assertRegex(run.stderr, rf'its seccomp filter may kill it .*\(.*{call}.*\)')

    def test_killed(self):
        """The guard takes out what a memwatch has left that was killed."""
        target = mwlive.Target(self, 'simple', 500)
        attempt = mwjump.Attempt(self, target)
        self.assertIsNone(attempt.process.poll(), 'it refused')
        guard = mwlive.guard_of(attempt.process.pid)
        attempt.process.kill()
        attempt.process.wait()
        mwlive.await_end_of(guard)
        target.go()
        target.done()
        attempt.before.check(self)
        target.finish()

    def trace(self, target):
        """memwatch under strace, attached to a target: (attempt, the path of the trace)."""
        path = os.path.join(mwrec.directory(self), 'trace')
        attempt = mwjump.Attempt(self, target, prefix=mwjump.strace(self, path))
        self.assertIsNone(attempt.process.poll(), 'it refused')
        return attempt, path

    def check_forks(self, lines):
        """memwatch tries calls by children that it forks: all of them before any thread of the target is stopped."""
        first = next(i for i, line in enumerate(lines) if 'PTRACE_INTERRUPT' in line)
        forks = [i for i, line in enumerate(lines)
                 if re.search(r'\b(clone3?|v?fork)\(', line) and 'CLONE_THREAD' not in line]
        self.assertGreater(len(forks), 10, 'calls were tried')
        self.assertEqual([lines[i] for i in forks if i > first], [])

    def test_many_threads(self):
        """What all threads share is looked at once, and not while they are stopped."""
        target = mwlive.Target(self, 'threads_sleeping', 50)
        attempt, path = self.trace(target)
        attempt.process.send_signal(signal.SIGINT)
        self.assertEqual(attempt.process.wait(mwlive.PATIENCE), 0)
        lines = mwjump.read_trace(path, attempt.process.pid)
        self.check_forks(lines)
        looks = sum(bool(re.search(r'"/proc/\d+(/task/\d+)?/status"', line)) for line in lines)
        self.assertLess(looks, 25 * 51)
        attempt.before.check(self)
        target.go()
        target.send()
        target.done()
        target.finish()

    def test_guard_tries_before_it_stops(self):
        target = mwlive.Target(self, 'simple', 500)
        attempt, path = self.trace(target)
        guard = mwlive.guard_of(attempt.process.pid)
        attempt.process.kill()
        attempt.process.wait()
        mwlive.await_end_of(guard)
        lines = mwjump.read_trace(path, guard)
        self.check_forks([line for line in lines if re.match(rf'{guard} ', line)])
        attempt.before.check(self)
        target.go()
        target.done()
        target.finish()

    def test_filter_of_its_own(self):
        """It has one more than memwatch: what that permits nobody knows."""
        for mode, end in ('container', 0), ('few', -31):
            with self.subTest(mode):
                attempt = mwjump.Attempt(self, mwlive.Target(self, 'seccomp_filtered', mode))
                attempt.finish(end)
                self.assertIsNone(attempt.report)
                self.assertIn('--security-opt seccomp=unconfined', attempt.error)
                self.assertIn('--unsafe', attempt.error)

    def test_filter_of_another_container(self):
        """As many filters as memwatch is under, but from somewhere else: they may be others."""
        target = mwlive.Target(self, 'simple', argv=[*contained('memfd'), mwlive.target_path('simple')])
        attempt = mwjump.Attempt(self, target, prefix=contained('docker'))
        attempt.finish()
        self.assertIsNone(attempt.report)
        self.assertIn('--security-opt seccomp=unconfined', attempt.error)


def run_contained():
    """Again, without CAP_SYS_ADMIN and under the filter."""
    targets = sys.argv[sys.argv.index('--targets') + 1]
    prefix = mwusers.NO_SYS_ADMIN if os.geteuid() == 0 else ()
    command = [*prefix, os.path.join(targets, 'contained'), 'docker', sys.executable, '-B', *sys.argv]
    os.execvpe(command[0], command, dict(os.environ, **{CONTAINED: '1'}))


if __name__ == '__main__':
    if CONTAINED not in os.environ:
        run_contained()
    mwlive.main()
