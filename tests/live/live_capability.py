#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Another user's processes, watched by a memwatch that has CAP_SYS_PTRACE alone: it may send them no signal."""
import json
import subprocess
import unittest

import mwlive
import mwusers


class Capability(unittest.TestCase):
    def target(self, name, *arguments):
        return mwusers.target_as(self, mwusers.need(self, mwusers.NOBODY), name, *arguments)

    def exact(self, name, *arguments):
        mwusers.limit_memwatch(self, mwusers.ONLY_PTRACE)
        target = self.target(name, *arguments)
        before = mwlive.Snapshot(target.pid)
        watch = mwlive.Watch(self, target.pid)
        target.go()
        answer = target.done()
        report = watch.stop()
        mwlive.compare(self, answer, report)
        before.check(self)
        target.finish()
        return answer, report

    def test_blocks(self):
        self.exact('simple')

    def test_threads(self):
        """Those that are born in the window count as threads, not as processes that share its memory."""
        _, report = self.exact('threads', 4, 2000, 50)
        self.assertEqual({f'worker-{number}' for number in range(4)} - {t['name'] for t in report['threads']}, set())

    def test_threads_come_and_go(self):
        self.exact('thread_storm', 500)

    def test_exec(self):
        mwusers.limit_memwatch(self, mwusers.ONLY_PTRACE)
        target = self.target('execs', mwusers.copy_for_all(self, mwlive.target_path('simple')), 300)
        watch = mwlive.Watch(self, target.pid)
        target.go()
        self.assertRegex(target.line(), r'^ready \d+$')
        report, = watch.wait()
        self.assertEqual(report['window']['ended'], 'exec')
        target.go()
        target.done()
        target.finish()

    def heap(self, pid, *options):
        return subprocess.run([mwlive.config.memwatch, *options, '-p', str(pid), '--quiet', '--json', '-'],
                              capture_output=True, text=True, timeout=mwlive.PATIENCE, check=False)

    def test_heap_is_refused(self):
        """What it can't read it does not call free of leaks, and it says so before the window."""
        mwusers.limit_memwatch(self, mwusers.ONLY_PTRACE)
        target = self.target('loses')
        target.go()
        target.done()
        for options in (['heap'], ['--leaks', '-d', '1', '--engine', mwlive.config.engine]):
            done = self.heap(target.pid, *options)
            self.assertEqual((done.returncode, done.stdout), (1, ''), done.stderr)
            self.assertIn('CAP_DAC_READ_SEARCH', done.stderr)
        doctor = subprocess.run([mwlive.config.memwatch, 'doctor', '-p', str(target.pid)], capture_output=True,
                                text=True, timeout=mwlive.PATIENCE, check=True)
        self.assertIn('find lost blocks', doctor.stdout.partition('memwatch may not')[2])
        target.finish()

    def test_heap_by_a_copy(self):
        """The copy, which it may not kill, ends."""
        mwusers.limit_memwatch(self, mwusers.PTRACE_AND_READ)
        target = self.target('loses')
        target.go()
        each = target.done()['each']
        for _ in range(3):
            done = self.heap(target.pid, 'heap')
            self.assertEqual((done.returncode, done.stderr), (0, ''))
            report = json.loads(done.stdout)
            self.assertEqual(report['method'], 'fork')
            self.assertEqual(mwlive.children(target.pid), [])
            lost = sum(group['blocks']['count'] for group in report['groups']
                       if group['size'] == 344 and group['verdict'] == 'definite')
            self.assertIn(lost, (each, each + 1))
        target.finish()


if __name__ == '__main__':
    mwlive.main()
