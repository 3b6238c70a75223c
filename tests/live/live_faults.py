#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""memwatch made to fail at each step of attaching: the target never notices, and can be watched afterwards."""
import select
import subprocess
import time
import unittest

import mwlive

# Every fault point in the order of passing, the later passes of those that are passed more than once.
POINTS = ('attach.modules', 'attach.seize', 'attach.seize:3', 'attach.seize:5', 'attach.stop', 'attach.pad',
          'attach.loader', 'attach.plant', 'attach.plant:2', 'attach.plant:5', 'attach.plant:{last}', 'attach.resume')


class Faults(unittest.TestCase):
    def setUp(self):
        # As many hooks are planted in these targets.
        if not hasattr(Faults, 'last'):
            _, report = mwlive.observe(self, 'threads', 2, 10, 1)
            Faults.last = sum(not h['refused'] for h in report['engine']['hooks'])

    def points(self):
        return [p.format(last=self.last) for p in POINTS]

    def start(self, pids, point):
        """memwatch on the way to a fault."""
        process = subprocess.Popen([mwlive.config.memwatch, '-p', ','.join(map(str, pids)), '--engine',
                                    mwlive.config.engine, '--quiet', '-d', '30'], text=True,
                                   env={'MEMWATCH_FAULT': point}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(mwlive.kill_quietly, process)
        return process

    def expect_fault(self, process, point):
        """It says what it failed at, and nothing else."""
        out, err = process.communicate(timeout=mwlive.PATIENCE)
        self.assertEqual((process.returncode, out), (1, ''), err)
        self.assertEqual(err.count('\n'), 1, err)
        self.assertIn(f'made to fail at "{point.split(":")[0]}"', err)

    def fail_at(self, point, *pids):
        """A run that fails at a point and leaves the processes as they were."""
        before = [mwlive.Snapshot(pid) for pid in pids]
        threads = [mwlive.tids(pid) for pid in pids]
        self.expect_fault(self.start(pids, point), point)
        for snapshot, tids in zip(before, threads):
            snapshot.check(self)
            self.assertEqual(mwlive.tids(snapshot.pid), tids, 'threads came or went')

    def assert_busy(self, target):
        """Still at work, and going on with it."""
        self.assertFalse(select.select([target.process.stdout], [], [], 0)[0], 'the target has nothing to do any more')
        ticks = cpu_ticks(target.pid)
        mwlive.wait_until(lambda: cpu_ticks(target.pid) > ticks, 'the target goes on', seconds=10)

    def test_busy_threads(self):
        for point in self.points():
            with self.subTest(point):
                target = mwlive.Target(self, 'threads', 4, 6000000, 50)
                target.go()
                time.sleep(0.05)
                self.fail_at(point, target.pid)
                self.assert_busy(target)
                # Whatever was left behind would be in the way of the next one.
                watch = mwlive.Watch(self, target.pid, busy=True)
                self.assert_busy(target)
                self.assertGreater(watch.stop()['totals']['heap']['size']['count'], 0)
                self.assertEqual(target.done()['heap.impacting.count'], 4 * 50)
                target.finish()

    def test_waiting_threads(self):
        """One process through all of them, and then its whole work in a window."""
        target = mwlive.Target(self, 'threads', 4, 3000, 50)
        for point in self.points():
            with self.subTest(point):
                self.fail_at(point, target.pid)
        watch = mwlive.Watch(self, target.pid)
        target.go()
        answer = target.done()
        mwlive.compare(self, answer, watch.stop())
        target.finish()

    def test_points_that_are_not_passed(self):
        """A fault behind the last pass is none: what fails above fails at the very step that is named."""
        target = mwlive.Target(self, 'threads', 4, 3000, 50)
        for point in ('attach.seize:6', f'attach.plant:{self.last + 1}', 'attach.resume:2', 'no.such.point'):
            with self.subTest(point):
                run = subprocess.run([mwlive.config.memwatch, '-p', str(target.pid), '--engine', mwlive.config.engine,
                                      '--quiet', '-d', '0.1'], env={'MEMWATCH_FAULT': point}, capture_output=True,
                                     text=True, timeout=mwlive.PATIENCE, check=False)
                self.assertEqual((run.returncode, run.stdout, run.stderr), (0, '', ''))
        target.go()
        target.done()
        target.finish()

    def test_the_second_of_two_processes(self):
        """The first is let go as well, whether its window has begun or not."""
        for point in ('attach.modules:2', 'attach.seize:6', 'attach.seize:8', 'attach.stop:2', 'attach.pad:2',
                      'attach.loader:2', f'attach.plant:{self.last + 1}', f'attach.plant:{2 * self.last}',
                      'attach.resume:2'):
            with self.subTest(point):
                targets = [mwlive.Target(self, 'threads', 4, 3000000, 50) for _ in range(2)]
                for target in targets:
                    target.go()
                time.sleep(0.05)
                self.fail_at(point, *(t.pid for t in targets))
                for target in targets:
                    target.done()
                    target.finish()

    def test_a_library_that_comes_inside_the_window(self):
        """Its own malloc can't be hooked: the window ends, in the midst of dlopen."""
        own = mwlive.target_path('libplugin_own.so')
        target = mwlive.Target(self, 'dlopens', mwlive.target_path('libplugin_leak.so'), own)
        before = mwlive.Snapshot(target.pid)
        point = f'attach.plant:{self.last + 1}'
        process = self.start([target.pid], point)
        mwlive.wait_until(lambda: before.touched() and mwlive.state(target.pid) == 'S', 'the window begins')
        target.go()
        self.expect_fault(process, point)
        target.done()
        before.check(self)
        target.finish()

    def test_launched(self):
        """A command that was let go runs to its end, watched or not."""
        for point in ('attach.pad', 'attach.loader', 'attach.plant', 'attach.plant:3'):
            with self.subTest(point):
                run = subprocess.run([mwlive.config.memwatch, '--engine', mwlive.config.engine, '--quiet', '--', 'sh',
                                      '-c', 'sleep 0.2; echo alive'], env={'MEMWATCH_FAULT': point, 'PATH': '/bin'},
                                     stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                     timeout=mwlive.PATIENCE, check=False)
                self.assertEqual((run.returncode, run.stdout), (1, 'alive\n'), run.stderr)
                self.assertEqual(run.stderr.count('\n'), 1, run.stderr)


def cpu_ticks(pid):
    """Ticks that a process has run."""
    with open(f'/proc/{pid}/stat', encoding='utf-8') as f:
        fields = f.read().rsplit(')', 1)[1].split()
    return int(fields[11]) + int(fields[12])


if __name__ == '__main__':
    mwlive.main()
