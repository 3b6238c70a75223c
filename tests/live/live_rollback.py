#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Windows that end at any moment, in storms of threads and children, and code that somebody else changes meanwhile."""
import contextlib
import select
import signal
import subprocess
import time
import unittest

import mwlive


# Somewhere at the beginning, in the middle and at the end.
POINTS = {
    'trap': ('attach.seize', 'attach.stop', 'attach.plant:5', 'attach.resume'),
    'jump': ('quiesce.seize', 'quiesce.stop', 'attach.image', 'attach.stop:2', 'attach.patch:5', 'attach.resume'),
}
POINTS['auto'] = POINTS['jump'][-2:]  # before these, it takes the other engine
STORMS = ('thread_storm', mwlive.attempts(5000, 25000)), ('fork_storm', mwlive.attempts(30, 120))


def busy(target):
    return not select.select([target.process.stdout], [], [], 0)[0]


def steadily(look):
    """A look at a process by one of its threads, again where that one has just ended."""
    while True:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return look()


def write_byte(pid, address, value):
    with open(f'/proc/{pid}/mem', 'r+b', buffering=0) as f:
        f.seek(address)
        f.write(bytes([value]))


class Rollback(unittest.TestCase):
    def storm(self, name, amount, spoil, least):
        """Do something to a target over and over until its work is done; to several, where that was not often."""
        times = 0
        while times < least:
            target = mwlive.Target(self, name, amount)
            target.go()
            while busy(target) or times == 0:
                spoil(target)
                times += 1
            target.done()
            target.finish()

    def run_until(self, target, seconds, number, fault=None):
        """memwatch, told to end after a time, wherever it is then; its exit status."""
        before = steadily(lambda: mwlive.Snapshot(target.pid))
        process = subprocess.Popen([mwlive.config.memwatch, '-p', str(target.pid), '--engine', mwlive.config.engine,
                                    '--quiet', '-d', '30'], env=mwlive.with_fault(fault),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(mwlive.kill_quietly, process)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.send_signal(number)
        out, err = process.communicate(timeout=mwlive.PATIENCE)
        steadily(lambda: before.check(self))
        self.assertEqual(out, '')
        self.assertLessEqual(err.count('\n'), 1, err)
        # Before it is prepared for them, signals end it as they end any program.
        self.assertIn(process.returncode, (-number, 1) if fault else (-number, 0), err)
        return process.returncode

    def test_ended_at_any_moment(self):
        chance = mwlive.chance(self.id())
        codes = {}

        def end(target):
            number = chance.choice((signal.SIGINT, signal.SIGTERM))
            code = self.run_until(target, chance.choice((chance.uniform(0, 0.02), chance.uniform(0, 0.3))), number)
            codes[code] = codes.get(code, 0) + 1

        with self.subTest('threads', seed=mwlive.SEED):
            self.threads(end, mwlive.attempts(6, 20))
        for name, amount in STORMS:
            with self.subTest(name, seed=mwlive.SEED):
                self.storm(name, amount, end, 2)
        self.assertIn(0, codes, codes)

    def threads(self, spoil, times):
        """The same with threads that work until it is over."""
        target = mwlive.Target(self, 'threads', 4, 'until', 50)
        target.go()
        for _ in range(times):
            spoil(target)
        self.assertTrue(busy(target))
        target.send()
        self.assertEqual(target.done()['heap.impacting.count'], 4 * 50)
        target.finish()

    def test_faults_in_storms(self):
        for name, amount in STORMS:
            for point in POINTS[mwlive.config.engine]:
                with self.subTest(name, point=point):
                    def fail(target, point=point):
                        # A thread that ends meanwhile leaves nothing to be attached to a second time.
                        code = self.run_until(target, 10, signal.SIGTERM, fault=point)
                        self.assertEqual(code, 1)
                    self.storm(name, amount, fail, 1)

    def test_code_changed_by_another(self):
        """What another tool writes over a hook of ours is its own; all else goes back."""
        target = mwlive.Target(self, 'threads', 2, 3000, 50)
        # Hooked, and never called by this target.
        rare = self.address_of('valloc', mwlive.Watch(self, target.pid).stop())
        # Whether it was called since is not known.
        watch = mwlive.Watch(self, target.pid, complete=False)
        snapshot, = watch.snapshots
        mapping = next(m for m in snapshot.text if m[0] <= rare < m[1])
        # A jump may stand behind an endbr64.
        at = self.changed(snapshot, mapping, rare).start
        rare = mapping[0] + at
        hooked = mwlive.read_memory(target.pid, rare, 1)
        write_byte(target.pid, rare, 0xf4)
        target.go()
        target.done()
        report = watch.stop(intact=False)
        self.assertEqual(mwlive.read_memory(target.pid, rare, 1), b'\xf4', 'the other tool\'s byte was overwritten')
        if report['engine']['name'] == 'jump':
            # That tool may put back what it found one day: where that leads to is still there, and passes calls on.
            self.assertIn('valloc', report['engine']['left_behind'])
            write_byte(target.pid, rare, hooked[0])
            left = self.changed(snapshot, mapping, mapping[0])
            self.assertTrue(left.start == at and left.stop <= at + 5, left)
            target.finish()
            target = mwlive.Target(self, 'threads', 2, 3000, 50)
            rare = self.address_of('valloc', mwlive.Watch(self, target.pid).stop())
        else:
            self.assertIsNone(report['engine']['left_behind'])
            write_byte(target.pid, rare, snapshot.text[mapping][at])
            watch.check_targets()
        # Its breakpoint stands there next time: with a hook missing the answer would be wrong, so nothing is done.
        write_byte(target.pid, rare, 0xcc)
        refused = subprocess.run([mwlive.config.memwatch, '-p', str(target.pid), '-d', '1'], capture_output=True,
                                 text=True, timeout=mwlive.PATIENCE, check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertEqual(refused.stdout, '')
        self.assertIn('valloc', refused.stderr)
        self.assertIn('breakpoint', refused.stderr)
        self.assertEqual(refused.stderr.count('memwatch: '), 1)
        self.assertEqual(mwlive.read_memory(target.pid, rare, 1), b'\xcc')
        target.finish()

    @staticmethod
    def changed(snapshot, mapping, start):
        """Where a mapping of code is not what it was, behind a start: from the first such byte to the last."""
        now = mwlive.read_memory(snapshot.pid, mapping[0], mapping[1] - mapping[0])
        different = [i for i in range(start - mapping[0], len(now)) if now[i] != snapshot.text[mapping][i]]
        return range(different[0], different[-1] + 1)

    @staticmethod
    def address_of(function, report):
        return next(h['address'] for h in report['engine']['hooks'] if h['function'] == function)


if __name__ == '__main__':
    mwlive.main()
