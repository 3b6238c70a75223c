#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Targets whose ids and whose protection from being looked at change while memwatch is there."""
import signal
import subprocess
import time
import unittest

import mwjump
import mwlive
import mwusers


class HostileCredentials(unittest.TestCase):
    def setUp(self):
        mwusers.need(self, ('true',))

    def test_setuid_changes_in_flight(self):
        """All threads become nobody and root again, and nobody for good, in the window: exact, and nothing is left."""
        target = mwlive.Target(self, 'ids_changing', 'drop')
        mapped = mwjump.steady_mappings(target.pid)
        watch = mwlive.Watch(self, target.pid)
        target.go()
        answer = target.done()
        self.assertEqual({mwlive.status(t)['Uid'].split()[1] for t in mwlive.tids(target.pid)}, {'65534'})
        report = watch.stop()
        mwlive.compare(self, answer, report)
        self.assertEqual({m[4] for m in mwjump.steady_mappings(target.pid)}, {m[4] for m in mapped})
        target.finish()

    def test_setuid_changes_during_attach_and_detach(self):
        target = mwlive.Target(self, 'ids_changing', 'flow')
        self.again_and_again(target, [mwlive.config.memwatch], mwlive.attempts(3, 12))

    def again_and_again(self, target, memwatch, times, must=True):
        """Windows at random moments; those that `must` not may fail with a word. How many were recorded."""
        before = mwlive.Snapshot(target.pid)
        chance = mwlive.chance(self.id())
        recorded = 0
        target.go()
        for number in range(times):
            with self.subTest(number, seed=mwlive.SEED):
                run = subprocess.run([*memwatch, '-p', str(target.pid), '-d', f'{chance.uniform(0.001, 0.08):.4f}',
                                      '--quiet', '--json', '/dev/null', '--engine', mwlive.config.engine],
                                     stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                     timeout=mwlive.PATIENCE, check=False)
                self.assertIsNone(target.process.poll(), f'the target has died: {run.stderr}')
                recorded += run.returncode == 0
                if must or run.returncode == 0:
                    self.assertEqual((run.returncode, run.stdout, run.stderr), (0, '', ''))
                else:
                    self.assertEqual((run.returncode, run.stdout), (1, ''), run.stderr)
                    self.assertEqual(run.stderr.count('memwatch: '), 1, run.stderr)
                time.sleep(chance.uniform(0, 0.02))
        self.clean_up(target)
        before.check(self)
        target.go()
        target.done()
        target.finish()
        return recorded

    def clean_up(self, target):
        """root's memwatch takes out what another could not."""
        run = subprocess.run([mwlive.config.memwatch, '-p', str(target.pid), '-d', '0.01', '--quiet', '--engine',
                              mwlive.config.engine], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=mwlive.PATIENCE, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ''))

    def test_not_dumpable_in_the_window(self):
        target = mwlive.Target(self, 'ids_changing', 'hide')
        watch = mwlive.Watch(self, target.pid)
        target.go()
        mwlive.compare(self, target.done(), watch.stop())
        target.finish()

    def test_not_dumpable_in_the_window_of_a_user(self):
        """A user's memwatch has no right to it any more: what can't be taken out is told, and does nothing."""
        nobody = mwusers.need(self, mwusers.NOBODY)
        target = mwusers.target_as(self, nobody, 'ids_changing', 'hide')
        mwusers.share_memwatch(self)
        attempt = mwjump.Attempt(self, target, None, nobody)
        target.go()
        answer = target.done()
        attempt.process.send_signal(signal.SIGINT)
        out, err = attempt.process.communicate(timeout=mwlive.PATIENCE)
        self.assertIsNone(target.process.poll(), 'the target has died')
        if mwlive.config.engine == 'trap':
            # Who traces already goes on to, and whose memory is open stays so.
            self.assertEqual((attempt.process.returncode, out, err), (0, '', ''))
            mwlive.compare(self, answer, mwlive.load_reports(attempt.json)[0])
            attempt.before.check(self)
        else:
            self.assertEqual((attempt.process.returncode, out), (1, ''), err)
            self.assertRegex(err, r'^memwatch: .* could not be removed: .*PR_SET_DUMPABLE, 0')
            self.assertEqual(err.count('memwatch: '), 1, err)
        self.clean_up(target)
        attempt.before.check(self)
        target.finish()

    def test_not_dumpable_now_and_then(self):
        target = mwlive.Target(self, 'ids_changing', 'blink')
        self.again_and_again(target, [mwlive.config.memwatch], mwlive.attempts(3, 12))

    def test_not_dumpable_now_and_then_for_a_user(self):
        nobody = mwusers.need(self, mwusers.NOBODY)
        target = mwusers.target_as(self, nobody, 'ids_changing', 'blink')
        times = mwlive.attempts(5, 20)
        recorded = self.again_and_again(target, [*nobody, mwusers.share_memwatch(self)], times, must=False)
        print(f'{recorded} of {times} were recorded', flush=True)


if __name__ == '__main__':
    mwlive.main()
