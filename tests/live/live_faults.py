#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""memwatch made to fail at each step of attaching: the target never notices, and can be watched afterwards."""
import json
import subprocess
import time
import unittest

import mwlive

# Every fault point in the order of passing, the later passes of those that are passed more than once. The targets have
# five threads, which the jump engine stops twice to get in and a third time to get out.
POINTS = {
    'trap': ('attach.modules', 'attach.seize', 'attach.seize:3', 'attach.seize:5', 'attach.stop', 'attach.image',
             'attach.rescue', 'attach.areas', 'attach.trampoline', 'attach.loader', 'attach.plant', 'attach.plant:2',
             'attach.plant:5', 'attach.plant:{last}', 'attach.resume'),
    'jump': ('attach.modules', 'attach.stop', 'quiesce.seize', 'quiesce.seize:3', 'quiesce.seize:5', 'quiesce.stop',
             'attach.inject', 'attach.shared', 'attach.guard', 'attach.image', 'attach.trampolines', 'attach.stop:2',
             'quiesce.seize:6', 'quiesce.seize:8', 'quiesce.seize:10', 'quiesce.stop:2', 'attach.patch',
             'attach.patch:2', 'attach.patch:5', 'attach.patch:{last}', 'attach.resume'),
}
# Of two processes, the second's.
SECOND = {
    'trap': ('attach.modules:2', 'attach.seize:6', 'attach.seize:8', 'attach.stop:2', 'attach.image:2',
             'attach.rescue:2', 'attach.areas:2', 'attach.trampoline:2', 'attach.loader:2', 'attach.plant:{next}',
             'attach.plant:{twice}', 'attach.resume:2'),
    'jump': ('attach.modules:2', 'attach.stop:3', 'quiesce.seize:11', 'quiesce.seize:13', 'quiesce.stop:3',
             'attach.inject:2', 'attach.shared:2', 'attach.guard:2', 'attach.image:2', 'attach.trampolines:2',
             'attach.stop:4', 'quiesce.seize:16', 'quiesce.seize:18', 'quiesce.stop:4', 'attach.patch:{next}',
             'attach.patch:{twice}', 'attach.resume:2'),
}
# Behind the last pass.
NOT_PASSED = {
    'trap': ('attach.seize:6', 'attach.plant:{next}', 'attach.resume:2'),
    'jump': ('attach.modules:2', 'attach.stop:3', 'quiesce.seize:16', 'attach.inject:2', 'attach.shared:2',
             'attach.guard:2', 'attach.image:2', 'attach.patch:{next}', 'attach.resume:2'),
}
LAUNCHED = {
    'trap': ('attach.trampoline', 'attach.loader', 'attach.plant', 'attach.plant:3'),
    'jump': ('attach.inject', 'attach.shared', 'attach.guard', 'attach.image', 'attach.trampolines', 'attach.patch',
             'attach.patch:3', 'attach.resume'),
}
# At these points one process of several is stopped, or none.
STOPPED = {
    'trap': {'attach.modules:3': None, 'attach.plant': 0, 'attach.resume': 0, 'attach.plant:{next}': 1,
             'attach.resume:2': 1, 'attach.resume:3': 2},
    'jump': {'attach.inject': 0, 'attach.modules:2': None, 'attach.inject:2': 1, 'attach.modules:3': None,
             'attach.patch': 0, 'attach.resume': 0, 'attach.patch:{next}': 1, 'attach.resume:2': 1,
             'attach.resume:3': 2},
}
# While the jump engine gets out: it is tried again.
AT_DETACH = ('quiesce.seize:11', 'quiesce.seize:13', 'quiesce.seize:15', 'quiesce.stop:3')
REST = mwlive.attempts(20, 0)  # microseconds after 100 pairs; in a soak busy threads never rest


def setUpModule():
    if mwlive.config.engine not in POINTS:
        raise unittest.SkipTest('an engine that takes another has no fault points of its own')


def fault(point, *pids):
    """A short window with a fault."""
    return subprocess.run([mwlive.config.memwatch, '-p', ','.join(map(str, pids)), '--engine', mwlive.config.engine,
                           '--quiet', '-d', '0.1'], env=mwlive.with_fault(point), capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=mwlive.PATIENCE, check=False)


class Faults(unittest.TestCase):
    def setUp(self):
        # As many functions are patched in these targets.
        if not hasattr(Faults, 'last'):
            _, report = mwlive.observe(self, 'threads', 2, 10, 1)
            Faults.last = sum(not h['refused'] for h in report['engine']['hooks'])
            if mwlive.config.engine == 'jump':
                Faults.last += self.helpers()

    def helpers(self):
        """Functions that the jump engine patches beside the hooks."""
        target = mwlive.Target(self, 'threads', 4, 3000, 50)
        count = 0
        while fault(f'attach.patch:{self.last + count + 1}', target.pid).returncode:
            count += 1
        self.assertIn(count, range(4))
        return count

    def points(self, points=None):
        return self.points_of(*(points or POINTS)[mwlive.config.engine])

    def start(self, pids, point):
        """memwatch on the way to a fault."""
        process = subprocess.Popen([mwlive.config.memwatch, '-p', ','.join(map(str, pids)), '--engine',
                                    mwlive.config.engine, '--quiet', '-d', '30'], text=True,
                                   env=mwlive.with_fault(point), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
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

    @staticmethod
    def goes_on(target, ticks):
        """At work for so long."""
        end = cpu_ticks(target.pid) + ticks
        mwlive.wait_until(lambda: cpu_ticks(target.pid) >= end, 'the target goes on')

    def test_busy_threads(self):
        for point in self.points():
            with self.subTest(point):
                target = mwlive.Target(self, 'threads', 4, 'until', 50, REST)
                target.go()
                time.sleep(0.05)
                self.fail_at(point, target.pid)
                self.goes_on(target, 1)
                # Whatever was left behind would be in the way of the next one.
                watch = mwlive.Watch(self, target.pid, busy=True)
                # Each of its threads may first wait for memwatch to get its turn on a busy machine.
                self.goes_on(target, 5)
                self.assertGreater(watch.stop()['totals']['heap']['size']['count'], 0)
                target.send()
                self.assertEqual(target.done()['heap.impacting.count'], 4 * 50)
                target.finish()

    def test_waiting_threads(self):
        """One process through all of them, and then its whole work in a window."""
        target = mwlive.Target(self, 'threads', 4, 3000, 50)
        before = mwlive.mappings(target.pid)
        for point in self.points():
            with self.subTest(point):
                self.fail_at(point, target.pid)
                self.assertEqual(mwlive.mappings(target.pid), before)
        self.work_in_a_window(target)

    def test_killed_with_its_guard(self):
        """kill -9 of all of memwatch at each step: the process lives on, and all is found and taken out."""
        target = mwlive.Target(self, 'threads', 4, 3000, 50)
        before = mwlive.Snapshot(target.pid)
        for point in self.points():
            with self.subTest(point):
                process = self.start([target.pid], point + '!')
                mwlive.wait_until(lambda tool=process.pid: mwlive.state(tool) == 'T', 'memwatch comes to the point')
                mwlive.kill_with_guard(process)
                process.communicate(timeout=mwlive.PATIENCE)
                # The kernel detaches them one after the other.
                mwlive.wait_until(lambda: mwlive.state(target.pid) == 'S', 'it goes on')
                self.clean(target.pid)
                before.check(self)
                self.assertEqual(mwlive.mappings(target.pid), before.maps)
        self.work_in_a_window(target)

    def clean(self, pid):
        run = subprocess.run([mwlive.config.memwatch, 'doctor', '-p', str(pid), '--clean'], capture_output=True,
                             text=True, stdin=subprocess.DEVNULL, timeout=mwlive.PATIENCE, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ''))

    def work_in_a_window(self, target):
        watch = mwlive.Watch(self, target.pid)
        target.go()
        answer = target.done()
        mwlive.compare(self, answer, watch.stop())
        target.finish()

    def test_one_is_stopped_at_a_time(self):
        """Whatever memwatch does to one of several processes, the others run."""
        targets = [mwlive.Target(self, 'threads', 4, 3000, 50) for _ in range(3)]
        before = [mwlive.Snapshot(target.pid) for target in targets]
        for point, stopped in STOPPED[mwlive.config.engine].items():
            with self.subTest(point):
                process = self.start([target.pid for target in targets], self.points_of(point)[0] + '!')
                mwlive.wait_until(lambda tool=process.pid: mwlive.state(tool) == 'T', 'memwatch comes to the point')
                states = [{mwlive.state(tid) for tid in mwlive.tids(target.pid)} for target in targets]
                self.assertEqual([i for i, found in enumerate(states) if 't' in found],
                                 [] if stopped is None else [stopped])
                guard = mwlive.guard_of(process.pid)
                process.kill()
                process.communicate(timeout=mwlive.PATIENCE)
                mwlive.await_end_of(guard)
                for snapshot in before:
                    snapshot.check(self)
        for target in targets:
            self.work_in_a_window(target)

    def points_of(self, *points):
        return [p.format(last=self.last, next=self.last + 1, twice=2 * self.last) for p in points]

    def test_points_that_are_not_passed(self):
        """A fault behind the last pass is none: what fails above fails at the very step that is named."""
        target = mwlive.Target(self, 'threads', 4, 3000, 50)
        before = mwlive.mappings(target.pid)
        for point in (*self.points(NOT_PASSED), 'no.such.point'):
            with self.subTest(point):
                run = fault(point, target.pid)
                self.assertEqual((run.returncode, run.stdout, run.stderr), (0, '', ''))
                self.assertEqual(mwlive.mappings(target.pid), before)
        target.go()
        target.done()
        target.finish()

    def test_at_detach(self):
        """What fails once on the way out is done again: nothing stays behind, and nothing of the report is missing."""
        if mwlive.config.engine != 'jump':
            self.skipTest('this engine holds its threads all the time')
        target = mwlive.Target(self, 'threads', 4, 3000, 50)
        snapshot = mwlive.Snapshot(target.pid)
        for point in AT_DETACH:
            with self.subTest(point):
                run = fault(point, target.pid)
                self.assertEqual((run.returncode, run.stdout, run.stderr), (0, '', ''))
                snapshot.check(self)
                self.assertEqual(mwlive.mappings(target.pid), snapshot.maps)
        self.work_in_a_window(target)

    def test_code_that_is_not_put_back_at_once(self):
        """Who comes there before it is done again lives on."""
        for number in (1, self.last // 2, self.last - 1, self.last):
            with self.subTest(number):
                target = mwlive.Target(self, 'threads', 4, 'until', 50)
                snapshot = mwlive.Snapshot(target.pid)
                target.go()
                run = fault(f'text.restore:{number}', target.pid)
                self.assertEqual((run.returncode, run.stdout, run.stderr), (0, '', ''))
                snapshot.check(self)
                target.send()
                self.assertEqual(target.done()['heap.impacting.count'], 4 * 50)
                target.finish()

    def test_auto_takes_the_other(self):
        """What does not go with jumps goes with traps; it is the reason that the report gives."""
        if mwlive.config.engine != 'jump':
            self.skipTest('is done with the jump engine')
        target = mwlive.Target(self, 'threads', 4, 3000, 50)
        snapshot = mwlive.Snapshot(target.pid)
        for point in self.points()[:self.points().index('attach.patch')]:
            with self.subTest(point):
                run = subprocess.run([mwlive.config.memwatch, '-p', str(target.pid), '--quiet', '-d', '0.1', '--json',
                                      '-'], env=mwlive.with_fault(point), capture_output=True, text=True,
                                     stdin=subprocess.DEVNULL, timeout=mwlive.PATIENCE, check=False)
                self.assertEqual((run.returncode, run.stderr), (0, ''))
                engine = json.loads(run.stdout)['engine']
                self.assertEqual(engine['name'], 'trap')
                self.assertRegex(engine['reason'], f'^auto: .*made to fail at "{point.split(":")[0]}"')
                snapshot.check(self)
                self.assertEqual(mwlive.mappings(target.pid), snapshot.maps)
        target.go()
        target.done()
        target.finish()

    def test_the_second_of_two_processes(self):
        """It detaches from the first as well, whether its window has begun or not."""
        for point in self.points(SECOND):
            with self.subTest(point):
                targets = [mwlive.Target(self, 'threads', 4, 'until', 50, REST) for _ in range(2)]
                for target in targets:
                    target.go()
                time.sleep(0.05)
                self.fail_at(point, *(t.pid for t in targets))
                for target in targets:
                    target.send()
                    self.assertEqual(target.done()['heap.impacting.count'], 4 * 50)
                    target.finish()

    def test_a_library_that_comes_inside_the_window(self):
        """Its own malloc can't be hooked: the window ends, in the midst of dlopen."""
        own = mwlive.target_path('libplugin_own.so')
        target = mwlive.Target(self, 'dlopens', mwlive.target_path('libplugin_leak.so'), own)
        before = mwlive.Snapshot(target.pid)
        point = ('attach.patch' if mwlive.config.engine == 'jump' else 'attach.plant') + f':{self.last + 1}'
        process = self.start([target.pid], point)
        mwlive.wait_until(lambda: before.touched() and mwlive.state(target.pid) == 'S', 'the window begins')
        target.go()
        self.expect_fault(process, point)
        target.done()
        before.check(self)
        target.finish()

    def test_launched(self):
        """A command that memwatch detached from runs to its end, watched or not."""
        for point in self.points(LAUNCHED):
            with self.subTest(point):
                run = subprocess.run([mwlive.config.memwatch, '--engine', mwlive.config.engine, '--quiet', '--', 'sh',
                                      '-c', 'sleep 0.2; echo alive'],
                                     env={**mwlive.with_fault(point), 'PATH': '/bin'}, stdin=subprocess.DEVNULL,
                                     capture_output=True, text=True, timeout=mwlive.PATIENCE, check=False)
                self.assertEqual((run.returncode, run.stdout), (1, 'alive\n'), run.stderr)
                self.assertEqual(run.stderr.count('\n'), 1, run.stderr)


def cpu_ticks(pid):
    """Ticks that a process has run."""
    with open(f'/proc/{pid}/stat', encoding='utf-8') as f:
        fields = f.read().rsplit(')', 1)[1].split()
    return int(fields[11]) + int(fields[12])


if __name__ == '__main__':
    mwlive.main()
