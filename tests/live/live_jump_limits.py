#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Targets that may do little, a memwatch that is stopped or killed: recorded or refused, never a dead target."""
import json
import os
import resource
import shutil
import signal
import subprocess
import time
import unittest

import mwjump
import mwlive

MEMORY = 24 << 20  # of a small cgroup


def without_sys_admin():
    """A command that runs another without CAP_SYS_ADMIN, or None."""
    for prefix in (('setpriv', '--inh-caps=-sys_admin', '--bounding-set=-sys_admin', '--'),
                   ('capsh', '--drop=cap_sys_admin', '--shell=/usr/bin/env', '--')):
        if shutil.which(prefix[0]) and subprocess.run([*prefix, '/bin/true'] if prefix[0] == 'setpriv' else
                                                      [*prefix, '/bin/true'], capture_output=True,
                                                      check=False).returncode == 0:
            return prefix
    return None


class Limits(unittest.TestCase):
    def watched(self, mode, engine=None, prefix=(), must=True, options=()):
        target = mwlive.Target(self, 'confined', mode)
        attempt = mwjump.Attempt(self, target, engine, prefix, options)
        report = attempt.finish()
        if must:
            self.assertIsNotNone(report, attempt.error)
        return attempt

    def test_seccomp_filters(self):
        if os.geteuid() != 0:
            self.skipTest('not root')
        self.watched('seccomp-errno')
        self.watched('seccomp-kill', options=('--unsafe',))

    def test_seccomp_filters_without_privileges(self):
        """They can't be suspended then."""
        prefix = without_sys_admin()
        if os.geteuid() != 0 or not prefix:
            self.skipTest('not root, or neither setpriv nor capsh')
        for mode in 'seccomp-errno', 'seccomp-kill':
            for engine in {mwlive.config.engine, 'auto'}:
                with self.subTest(mode, engine=engine):
                    attempt = self.watched(mode, engine, prefix, must=False)
                    if attempt.report is None:
                        self.assertIn('seccomp', attempt.error)

    def test_not_dumpable(self):
        if os.geteuid() != 0:
            self.skipTest('not root')
        self.watched('undumpable')

    def test_limits_of_memory(self):
        for mode in 'as', 'data', 'peaks':
            with self.subTest(mode):
                self.watched(mode, must=False)
                self.watched(mode, 'auto')

    def test_no_room_for_either_engine(self):
        """What limits it is named, and that it is to be raised."""
        for engine in {mwlive.config.engine, 'auto'}:
            with self.subTest(engine):
                target = mwlive.Target(self, 'confined', 'plain')
                soft, hard = resource.prlimit(target.pid, resource.RLIMIT_AS)
                size = int(mwlive.status(target.pid)['VmSize'].split()[0]) * 1024
                resource.prlimit(target.pid, resource.RLIMIT_AS, (size, hard))
                attempt = mwjump.Attempt(self, target, engine)
                resource.prlimit(target.pid, resource.RLIMIT_AS, (soft, hard))
                self.assertIsNone(attempt.finish())
                self.assertRegex(attempt.error, r'its limit RLIMIT_AS .* [Rr]aise (that|the) limit')

    def small_cgroup(self):
        """A cgroup of little memory: (directory, undo), or a skip."""
        for root, limit in (('/sys/fs/cgroup/memory', 'memory.limit_in_bytes'), ('/sys/fs/cgroup', 'memory.max')):
            path = os.path.join(root, f'memwatch-test-{os.getpid()}')
            try:
                os.mkdir(path)
            except OSError:
                continue
            self.addCleanup(self.remove_cgroup, path)
            try:
                with open(os.path.join(path, limit), 'w', encoding='ascii') as f:
                    f.write(str(MEMORY))
                return path
            except OSError:
                continue
        return self.skipTest('cgroups are not writable here')

    @staticmethod
    def remove_cgroup(path):
        for _ in range(100):
            try:
                return os.rmdir(path)
            except FileNotFoundError:
                return None
            except OSError:
                time.sleep(0.05)
        return None

    def test_small_cgroup(self):
        for engine in {mwlive.config.engine, 'auto'}:
            with self.subTest(engine):
                path = self.small_cgroup()
                target = mwlive.Target(self, 'confined', 'plain', 100000)
                with open(os.path.join(path, 'cgroup.procs'), 'w', encoding='ascii') as f:
                    f.write(str(target.pid))
                attempt = mwjump.Attempt(self, target, engine)
                report = attempt.finish()
                if engine == 'auto':
                    self.assertIsNotNone(report, attempt.error)
                # Its processes out of it, a cgroup can be removed.
                target.process.kill()
                target.process.wait()
                self.remove_cgroup(path)

    def test_memwatch_killed(self):
        """The recorder turns itself off; what was left is found and removed by the next memwatch."""
        if mwlive.config.engine == 'trap':
            self.skipTest('who is traced dies with the tracer or not: other tests')
        target = mwlive.Target(self, 'threads_sleeping', 8)
        snapshot, mapped = mwlive.Snapshot(target.pid), mwjump.steady_mappings(target.pid)
        watch = mwlive.Watch(self, target.pid)
        target.go()
        time.sleep(0.3)
        mwlive.kill_with_guard(watch.process)
        watch.process.wait(mwlive.PATIENCE)
        time.sleep(2)
        self.assertIsNone(target.process.poll(), 'the target has died')
        # Its jumps may be the very bytes that were left: that they stand tells nothing.
        again = subprocess.run([mwlive.config.memwatch, '-p', str(target.pid), '--engine', mwlive.config.engine,
                                '--quiet', '-d', '0.5', '--json', '-'], stdin=subprocess.DEVNULL, capture_output=True,
                               text=True, check=False, timeout=mwlive.PATIENCE)
        self.assertEqual((again.returncode, again.stderr), (0, ''))
        report = json.loads(again.stdout)
        self.assertGreater(report['totals']['heap']['size']['count'], 0)
        snapshot.check(self)
        self.assertEqual({m[4] for m in mwjump.steady_mappings(target.pid)}, {m[4] for m in mapped})
        target.send()
        target.done()
        target.finish()

    @staticmethod
    def shared_inode(pid):
        """Of the memory that memwatch shares with the process; None where there is none."""
        with open(f'/proc/{pid}/maps', encoding='utf-8') as f:
            return next((line.split()[4] for line in f if 'memfd:memwatch' in line), None)

    def kill_one(self, target, seconds=None, options=()):
        """Attach memwatch, and kill it when it has begun, or after so many seconds wherever it is then."""
        before = self.shared_inode(target.pid)
        process = subprocess.Popen([mwlive.config.memwatch, '-p', str(target.pid), '--engine', mwlive.config.engine,
                                    '--quiet', *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(mwlive.kill_quietly, process)
        if seconds is None:
            mwlive.wait_until(lambda: self.shared_inode(target.pid) not in (before, None) or
                              process.poll() is not None, 'memwatch attaches')
        time.sleep(seconds or 0.2)
        ended = process.poll()
        mwlive.kill_with_guard(process)
        _, err = process.communicate(timeout=mwlive.PATIENCE)
        self.assertIsNone(ended, err)
        self.assertIsNone(target.process.poll(), f'the target has died of a memwatch killed after {seconds} s')

    def clean_up(self, target, engine=None):
        """What a memwatch does first that is attached now."""
        run = subprocess.run([mwlive.config.memwatch, '-p', str(target.pid), '--engine',
                              engine or mwlive.config.engine, '--quiet', '--duration', '0.01'],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=mwlive.PATIENCE,
                             check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIsNone(target.process.poll(), 'the target has died of the removal')

    @staticmethod
    def code_and_shared(pid):
        return [m for m in mwlive.mappings(pid) if 'x' in m[2] or 's' in m[2]]

    def test_exact_after_a_killed_one(self):
        """What the killed one has left neither is seen nor disturbs; doctor tells of it, and touches nothing."""
        if mwlive.config.engine == 'trap':
            self.skipTest('it leaves breakpoints')
        for engine in 'jump', 'trap':
            with self.subTest(engine):
                target = mwlive.Target(self, 'threads', 4, 2000, 50)
                snapshot, mapped = mwlive.Snapshot(target.pid), mwlive.mappings(target.pid)
                killed = mwlive.Watch(self, target.pid, engine='jump').process
                mwlive.kill_with_guard(killed)
                killed.wait(mwlive.PATIENCE)
                doctor = [subprocess.run([mwlive.config.memwatch, 'doctor', '-p', str(target.pid)],
                                         stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                                         timeout=mwlive.PATIENCE) for _ in range(2)]
                for run in doctor:
                    self.assertEqual(run.returncode, 0, run.stderr)
                    self.assertRegex(run.stdout, r'left behind .*[1-9][0-9]* functions still jump to')
                    self.assertRegex(run.stdout, r'Would be hooked: [1-9]')
                self.clean_up(target, engine)
                snapshot.check(self)
                mwjump.check_text_of_files(self, target.pid)
                self.assertEqual(mwlive.mappings(target.pid), mapped)
                watch = mwlive.Watch(self, target.pid, engine=engine)
                target.go()
                answer = target.done()
                mwlive.compare(self, answer, watch.stop())
                target.finish()

    def test_another_at_work(self):
        if mwlive.config.engine == 'trap':
            self.skipTest('a process has one tracer')
        target = mwlive.Target(self, 'threads', 4, 2000, 50)
        watch = mwlive.Watch(self, target.pid)
        for engine in 'jump', 'trap', 'auto':
            run = subprocess.run([mwlive.config.memwatch, '-p', str(target.pid), '--engine', engine],
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                                 timeout=mwlive.PATIENCE)
            self.assertEqual(run.returncode, 1)
            self.assertIn('another memwatch', run.stderr)
        target.go()
        mwlive.compare(self, target.done(), watch.stop())
        target.finish()

    def test_killed_again_and_again(self):
        """Each attach removes what the one before has left, in a process whose threads never rest."""
        if mwlive.config.engine == 'trap':
            self.skipTest('it leaves breakpoints')
        target = mwlive.Target(self, 'threads', 4, 1 << 40, 50)
        snapshot, before = mwlive.Snapshot(target.pid), self.code_and_shared(target.pid)
        target.go()
        for i in range(mwlive.attempts(4, 20)):
            self.kill_one(target, options=('--track', 'heap,vm' if i % 2 else 'heap'))
        self.clean_up(target)
        snapshot.check(self)
        mwjump.check_text_of_files(self, target.pid)
        self.assertEqual(self.code_and_shared(target.pid), before)

    def test_killed_while_it_attaches(self):
        """At any moment: the target goes on, and what there is so far is removed by the next."""
        if mwlive.config.engine == 'trap':
            self.skipTest('it leaves breakpoints')
        target = mwlive.Target(self, 'threads', 4, 1 << 40, 50)
        snapshot, before = mwlive.Snapshot(target.pid), self.code_and_shared(target.pid)
        target.go()
        for i in range(0, 30, mwlive.attempts(5, 1)):
            self.kill_one(target, seconds=0.005 + 0.008 * i)
            self.clean_up(target)
            snapshot.check(self)
            self.assertEqual(self.code_and_shared(target.pid), before)
        self.assertEqual([os.readlink(f'/proc/{target.pid}/fd/{n}') for n in os.listdir(f'/proc/{target.pid}/fd')
                          if mwlive.is_ours(os.readlink(f'/proc/{target.pid}/fd/{n}'))], [])

    def test_memwatch_killed_at_full_speed(self):
        if mwlive.config.engine == 'trap':
            self.skipTest('who is traced dies with the tracer or not: other tests')
        target = mwlive.Target(self, 'threads', 4, 3000000, 50)
        watch = mwlive.Watch(self, target.pid)
        target.go()
        time.sleep(0.2)
        mwlive.kill_with_guard(watch.process)
        watch.process.wait(mwlive.PATIENCE)
        target.done()
        target.finish()

    def test_memwatch_stopped(self):
        """For two seconds: the target may wait or go on, and whatever is not seen is said."""
        target = mwlive.Target(self, 'threads', 4, 20000, 50)
        watch = mwlive.Watch(self, target.pid)
        target.go()
        os.kill(watch.process.pid, signal.SIGSTOP)
        time.sleep(2)
        os.kill(watch.process.pid, signal.SIGCONT)
        answer = target.done()
        if watch.process.poll() is None:
            watch.process.send_signal(signal.SIGINT)
        out, err = watch.process.communicate(timeout=mwlive.PATIENCE)
        self.assertEqual(watch.process.returncode, 0, (out, err))
        self.assertFalse(watch.snapshots[0].touched(), 'code is changed after the window')
        report, = mwlive.load_reports(watch.json)
        mwlive.check_report(self, report, complete=report['complete'])
        if report['window']['ended'] != 'lost' and report['complete']:
            mwlive.compare(self, answer, report)
        watch.check_targets()
        target.finish()


if __name__ == '__main__':
    mwlive.main()
