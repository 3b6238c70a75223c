#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""More than one comes to a process: before a killed one's guard has cleaned up, while one is stopped, or at once."""
import os
import signal
import subprocess
import sys
import time
import unittest

import mwlive

THREADS = 300
ROUNDS = mwlive.attempts(2, 5)

# A guard that traces the one thread for a while.
GUARD = '''
import ctypes, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(15, sys.argv[3].encode(), 0, 0, 0)
if libc.ptrace(0x4206, int(sys.argv[1]), None, None):
    sys.exit(1)
print('traces', flush=True)
time.sleep(float(sys.argv[2]))
'''


class Guarded(unittest.TestCase):
    def memwatch(self, target):
        run = subprocess.run([mwlive.config.memwatch, '-p', str(target.pid), '-d', '0.05', '--quiet', '--engine',
                              mwlive.config.engine], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=mwlive.PATIENCE, check=False)
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, '', ''))

    def guard(self, tid, seconds, name='memwatch-guard'):
        process = subprocess.Popen([sys.executable, '-c', GUARD, str(tid), str(seconds), name], stdout=subprocess.PIPE)
        self.addCleanup(mwlive.kill_quietly, process)
        self.assertEqual(process.stdout.readline(), b'traces\n')
        return process

    def test_traces_one_thread(self):
        target = mwlive.Target(self, 'threads_sleeping', 8)
        before = mwlive.Snapshot(target.pid)
        target.go()
        for tid in (target.pid, mwlive.tids(target.pid)[4], mwlive.tids(target.pid)[-1]):
            with self.subTest(leader=tid == target.pid):
                guard = self.guard(tid, 0.5)
                self.memwatch(target)
                self.assertEqual(guard.wait(mwlive.PATIENCE), 0)
                before.check(self)
        target.send()
        target.done()
        target.finish()

    def test_killed_and_come_again(self):
        chance = mwlive.chance(self.id())
        target = mwlive.Target(self, 'threads_sleeping', THREADS)
        before = mwlive.Snapshot(target.pid)
        target.go()
        for number in range(ROUNDS):
            watch = mwlive.Watch(self, target.pid, busy=True)
            guard = mwlive.guard_of(watch.process.pid)
            watch.process.kill()
            watch.process.wait(mwlive.PATIENCE)
            # Without the right to look at a lock engine jump's guard listens for a second whether the other is alive.
            listens = mwlive.config.engine == 'jump' and os.geteuid() != 0
            wait = chance.uniform(0, 1.5 if listens else 0.2)
            with self.subTest(number=number, wait=wait):
                time.sleep(wait)
                self.memwatch(target)
                # It may look once more whether there is anything left to do.
                mwlive.await_end_of(guard)
                self.assertIsNone(target.process.poll(), 'the target has died')
                before.check(self)
        target.send()
        target.done()
        target.finish()

    def test_stopped(self):
        """A process that memwatch keeps from running by being stopped itself is not left so."""
        target = mwlive.Target(self, 'threads', 4, 2000, 50)
        watch = mwlive.Watch(self, target.pid)
        target.go()
        watch.process.send_signal(signal.SIGSTOP)
        answer = target.done()
        # Engine jump has not stopped it.
        watch.process.send_signal(signal.SIGCONT)
        if watch.process.poll() is None:
            watch.process.send_signal(signal.SIGINT)
        out, err = watch.process.communicate(timeout=mwlive.PATIENCE)
        self.assertEqual(watch.process.returncode, 0, (out, err))
        report, = mwlive.load_reports(watch.json)
        mwlive.check_report(self, report, complete=report['complete'])
        if mwlive.config.engine == 'trap':
            self.assertTrue(report['complete'])
            mwlive.compare(self, answer, report)
        watch.check_targets()
        target.finish()

    def test_two_at_once(self):
        """Of two that come at the same time one watches, and the other says why it does not, or watches after it."""
        target = mwlive.Target(self, 'threads_sleeping', 8)
        before = mwlive.Snapshot(target.pid)
        target.go()
        engines = mwlive.config.engine, 'trap' if mwlive.config.engine == 'jump' else 'jump'
        for second in engines * mwlive.attempts(1, 2):
            with self.subTest(second=second):
                both = [subprocess.Popen([mwlive.config.memwatch, '-p', str(target.pid), '-d', '2', '--quiet',
                                          '--engine', engine], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                         stderr=subprocess.PIPE, text=True) for engine in (engines[0], second)]
                for process in both:
                    self.addCleanup(mwlive.kill_quietly, process)
                said = [process.communicate(timeout=mwlive.PATIENCE)[1] for process in both]
                self.assertIn(0, [process.returncode for process in both], said)
                for process, err in zip(both, said):
                    if process.returncode:
                        self.assertEqual((process.returncode, err.count('\n')), (1, 1), err)
                    self.assertRegex(err, '[Aa]nother memwatch' if process.returncode else '^$')
                self.assertIsNone(target.process.poll(), 'the target has died')
                before.check(self)
        target.send()
        target.done()
        target.finish()

    def held(self, target, point, seconds=0.1):
        """One that has come to a point of its attach, and stopped there."""
        process = subprocess.Popen([mwlive.config.memwatch, '-p', str(target.pid), '-d', str(seconds), '--quiet',
                                    '--engine', mwlive.config.engine], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, env=mwlive.with_fault(f'{point}?'))
        self.addCleanup(mwlive.kill_quietly, process)
        mwlive.wait_until(lambda: mwlive.state(process.pid) == 'T', 'memwatch comes to the point')
        # Its guard would have it go on as soon as somebody traces the target.
        guard = mwlive.guard_of(process.pid)
        os.kill(guard, signal.SIGSTOP)

        def go_on():
            process.send_signal(signal.SIGCONT)
            os.kill(guard, signal.SIGCONT)
        return process, go_on

    def test_changed_since_the_survey(self):
        """What the other one plants between this one's look at the code and its stop is seen, and not planted upon."""
        target = mwlive.Target(self, 'threads', 4, 2000, 50)
        before = mwlive.Snapshot(target.pid)
        late, go_on = self.held(target, {'trap': 'attach.seize', 'jump': 'attach.stop'}[mwlive.config.engine])
        watch = mwlive.Watch(self, target.pid, engine='jump')
        go_on()
        self.assertRegex(late.communicate(timeout=mwlive.PATIENCE)[1], '(?s)^[^\n]*[Aa]nother memwatch[^\n]*\n$')
        self.assertEqual(late.returncode, 1)
        target.go()
        answer = target.done()
        report = watch.stop()
        mwlive.compare(self, answer, report)
        before.check(self)
        target.finish()

    @staticmethod
    def shared_memory(pid):
        """What a recorder shares with memwatch: the mapped files' numbers."""
        with open(f'/proc/{pid}/maps', encoding='utf-8') as maps:
            return {line.split()[4] for line in maps if 'memfd:' in line}

    def test_traced_between_two_stops(self):
        """Who comes between the stop that puts in the recorder and that for the jumps, and goes again, is waited for:
        the recorder stays."""
        if mwlive.config.engine != 'jump':
            self.skipTest('the others stop a process once')
        target = mwlive.Target(self, 'threads_sleeping', 8)
        before = mwlive.Snapshot(target.pid)
        target.go()
        early, go_on = self.held(target, 'attach.stop:2', 60)
        memory = self.shared_memory(target.pid)
        self.assertTrue(memory)
        tracer = self.guard(target.pid, mwlive.PATIENCE, 'memwatch')
        go_on()
        time.sleep(0.2)
        tracer.kill()
        mwlive.wait_until(before.touched, 'memwatch plants its jumps')
        self.assertEqual(self.shared_memory(target.pid), memory)
        early.send_signal(signal.SIGINT)
        self.assertEqual((early.communicate(timeout=mwlive.PATIENCE)[1], early.returncode), ('', 0))
        before.check(self)
        target.send()
        target.done()
        target.finish()


if __name__ == '__main__':
    mwlive.main()
