#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Targets that make threads and processes without end: a thousand threads, storms of them, fork bombs, vforks."""
import contextlib
import glob
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import mwjump
import mwlive

# Several, as the one that is to starve gets what it has saved up.
HOG = '''
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.setpriority(os.PRIO_PROCESS, 0, -20)
first = os.getpid()
end = time.monotonic() + 9
for _ in range(3):
    if os.getpid() == first and os.fork() == 0:
        while time.monotonic() < end and os.getppid() == first:
            pass
        os._exit(0)
print(flush=True)
while time.monotonic() < end:
    pass
'''


class HostileThreads(unittest.TestCase):
    def test_1000_threads(self):
        """Half of them sleep in waits that nothing may cut short, half of them allocate: none is lost or doubled."""
        target = mwlive.Target(self, 'threads_waiting', 1000, 20)
        mapped = mwjump.steady_mappings(target.pid)
        watch = mwlive.Watch(self, target.pid)
        target.go()
        answer = target.done()
        report = watch.stop()
        mwlive.compare(self, answer, report)
        self.assertEqual(len([t for t in report['threads'] if t['size']['count'] == 21]), 500)
        self.assertEqual(self.extra(mapped, target.pid), [])
        target.finish()

    def test_1000_threads_attached_to_again_and_again(self):
        target = mwlive.Target(self, 'threads_waiting', 1000, 20)
        before = mwlive.Snapshot(target.pid)
        for _ in range(mwlive.attempts(2, 3)):
            self.once(target)
        before.check(self)
        target.go()
        target.done()
        target.finish()

    @staticmethod
    def extra(before, pid):
        """Mappings that were not there, but for memory that a program takes by itself."""
        return [m for m in mwjump.steady_mappings(pid) if m not in before and (m[4] or 'x' in m[2] or 's' in m[2])]

    def once(self, target, seconds='0.02', engine=None):
        # Where a thread waits for a child each time that memwatch looks, it is refused, to be tried again in a moment.
        for _ in range(5):
            run = subprocess.run([mwlive.config.memwatch, '-p', str(target.pid), '-d', seconds, '--quiet', '--json',
                                  '/dev/null', '--engine', engine or mwlive.config.engine], stdin=subprocess.DEVNULL,
                                 capture_output=True, timeout=mwlive.PATIENCE, check=False)
            if b'Try again in a moment' not in run.stderr:
                break
        self.assertEqual((run.returncode, run.stderr), (0, b''))
        self.assertIsNone(target.process.poll(), 'the target has died')

    def test_threads_come_and_go_during_attach_and_detach(self):
        """Windows in a storm: each is exact for a thread that does a known amount, whatever the others do."""
        rounds = mwlive.attempts(3, 12)
        others = 0
        target = mwlive.Target(self, 'storm', rounds)
        mapped = mwjump.steady_mappings(target.pid)
        for number in range(rounds):
            with self.subTest(number):
                # The stack of a thread that has just begun may not be known in time, and is told as lost then.
                watch = mwlive.Watch(self, target.pid, busy=True, complete=None)
                target.go()
                answer = target.done()
                report = watch.stop()
                self.assertEqual(report['lost']['events'] if not report['complete'] else 0, 0)
                mwlive.compare(self, answer, report)
                # How many turns they get beside it in so short a window is the scheduler's to say.
                others += mwlive.total_of(mwlive.select(report, 'storm_alloc'))['size']['count']
                self.assertEqual(self.extra(mapped, target.pid), [])
        self.assertGreater(others, 0)
        target.go()
        self.assertGreater(target.done()['started'], rounds)
        target.finish()

    def test_fork_bomb_inside_the_window(self):
        """Processes that fork on and on: all of them work, none has anything of ours when the window is over."""
        target = mwlive.Target(self, 'forkbomb', 'stay', 3, 3)
        snapshot = mwlive.Snapshot(target.pid)
        watch = mwlive.Watch(self, target.pid)
        target.go()
        answer = target.done()
        members = [value for key, value in answer.items() if key.startswith('process')]
        self.assertEqual(len(members), 120)
        report = watch.stop()
        mwlive.compare(self, {k: v for k, v in answer.items() if not k.startswith('process')}, report)
        for member in members:
            self.check_clean(snapshot, member)
        target.finish()

    def check_clean(self, parent, pid, must_live=True):
        """A process that was forked from another is as that one was."""
        for m, text in parent.text.items():
            now = mwlive.read_memory(pid, m[0], m[1] - m[0])
            if len(now) < len(text) and not must_live:
                return  # it has just ended
            self.assertEqual(now == text, True, f'{m[4]} of {pid}')
        mapped = {m[4] for m in parent.maps}
        self.assertEqual([m for m in mwlive.mappings(pid) if mwlive.is_ours(m[4])], [])
        self.assertEqual({m[4] for m in mwlive.mappings(pid) if 'x' in m[2]} - mapped, set())
        status = mwlive.status(pid)
        self.assertEqual(status['TracerPid'], '0')
        self.assertNotIn(status['State'][0], 'tT')

    def test_fork_bomb_during_attach_and_detach(self):
        """Attaches and detaches that fall anywhere into a bomb: nobody of it dies, nobody is left with our code."""
        target = mwlive.Target(self, 'forkbomb', 'flow', 2, 3)
        before = mwlive.Snapshot(target.pid)
        chance = mwlive.chance(self.id())
        target.go()
        for number in range(mwlive.attempts(4, 15)):
            with self.subTest(number, seed=mwlive.SEED):
                self.once(target, f'{chance.uniform(0.001, 0.15):.4f}')
                for pid in self.descendants(target.pid):
                    # May end while it is looked at: then there is nothing to look at.
                    with contextlib.suppress(OSError, KeyError, TypeError):
                        self.check_clean(before, pid, must_live=False)
                time.sleep(chance.uniform(0, 0.02))
        before.check(self)
        target.go()
        self.assertGreater(target.done()['trees'], 0)
        target.finish()

    def test_fork_by_a_child_that_is_about_to_be_cleaned(self):
        """Its number is less than those of processes that have been looked at: it is found all the same."""
        if mwlive.config.engine != 'jump':
            self.skipTest('the kernel reports each fork to engine trap')
        target = mwlive.Target(self, 'grandchild')
        before = mwlive.Snapshot(target.pid)
        process = subprocess.Popen([mwlive.config.memwatch, '-p', str(target.pid), '-d', '1', '--quiet', '--engine', 'jump'],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                   env=mwlive.with_fault('detach.child?'))
        self.addCleanup(mwlive.kill_quietly, process)
        mwlive.wait_until(lambda: any(mwlive.is_ours(m[4]) for m in mwlive.mappings(target.pid)), 'memwatch is attached')
        target.go()
        first = int(target.line().partition('=')[2])
        mwlive.wait_until(lambda: mwlive.state(process.pid) == 'T', 'memwatch is about to clean the child')
        try:
            pathlib.Path('/proc/sys/kernel/ns_last_pid').write_text('2', encoding='ascii')
        except OSError as err:
            self.skipTest(f'numbers of processes can\'t be chosen: {err}')
        target.go()
        second = target.done()['second']
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.communicate(timeout=mwlive.PATIENCE)[1], '')
        self.assertLess(second, first)
        for pid in (first, second):
            self.check_clean(before, pid)
        target.finish()

    def test_fork_bomb_attached_to_while_it_forks_and_left_when_it_rests(self):
        """The stop of a fork takes an interrupt that came before it along: the next must be made all the same,
        or it is waited for in vain."""
        for number in range(mwlive.attempts(4, 25)):
            with self.subTest(number):
                target = mwlive.Target(self, 'forkbomb', 'flow', 0, 20, 16, 100)
                target.go()
                watch = mwlive.Watch(self, target.pid, busy=True, env=mwlive.with_fault('hold.patience!'))
                target.go()
                target.done()
                watch.stop()
                target.finish()

    def own_cpu(self):
        """Engines' suites that run at the same time do not take the CPU from one another.

        As nothing else gets that CPU for seconds, only one of them does as a test.
        """
        if not mwlive.SOAK and mwlive.config.engine != 'jump':
            self.skipTest('with this engine it is a part of scripts/soak threads')
        cpus = sorted(os.sched_getaffinity(0))
        return cpus[-1 if mwlive.config.engine == 'jump' else 0]

    @contextlib.contextmanager
    def hogged(self, cpu):
        """Nobody of the lowest priority gets anything of a CPU, for some seconds."""
        with subprocess.Popen([sys.executable, '-c', HOG, str(cpu)], stdout=subprocess.PIPE) as other:
            self.addCleanup(mwlive.kill_quietly, other)
            other.stdout.readline()
            yield other
            other.kill()

    def test_thread_that_gets_no_cpu(self):
        """One that is to stop, and can't as others have its CPU, is not taken for one that stands elsewhere."""
        cpu = self.own_cpu()
        target = mwlive.Target(self, 'starved', str(cpu))
        watch = mwlive.Watch(self, target.pid, busy=True, complete=None)
        with self.hogged(cpu):
            report = watch.stop(intact=False)
        self.assertIsNone(target.process.poll(), 'it lives')
        if not report['engine']['left_behind']:
            watch.check_targets()
        target.go()
        target.done()
        target.finish()

    def test_attach_while_a_thread_gets_no_cpu(self):
        """Where it would not outlive a memwatch that is killed before it has stopped, nothing is begun."""
        cpu = self.own_cpu()
        target = mwlive.Target(self, 'starved', str(cpu), 'blocked')
        before = mwlive.Snapshot(target.pid)
        with self.hogged(cpu) as hog:
            time.sleep(0.1)
            run = subprocess.run([mwlive.config.memwatch, '-p', str(target.pid), '-d', '0.1', '--quiet', '--engine',
                                  mwlive.config.engine], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                 timeout=mwlive.PATIENCE, check=False)
            hog.kill()
        self.assertEqual(run.stdout, '')
        # Nothing guarantees that it gets none.
        if run.returncode != 0:
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertRegex(run.stderr, r'^memwatch: (process \d+: )?thread \d+ .*gets no CPU.*\n$')
        before.check(self)
        target.go()
        target.done()
        target.finish()

    def test_kill_while_a_thread_gets_no_cpu(self):
        """Whoever cleans up after a memwatch that was killed knows as little where such a thread is."""
        cpu = self.own_cpu()
        target = mwlive.Target(self, 'starved', str(cpu))
        before = mwlive.Snapshot(target.pid)
        for cleaned_by in mwlive.attempts(('guard',), ('guard', 'next')):
            with self.subTest(cleaned_by):
                watch = mwlive.Watch(self, target.pid, busy=True, complete=None)
                with self.hogged(cpu):
                    if cleaned_by == 'guard':
                        guard = mwlive.guard_of(watch.process.pid)
                        watch.process.kill()
                        mwlive.await_end_of(guard)
                    else:
                        mwlive.kill_with_guard(watch.process)
                        # It may be refused as long as the thread does not stop.
                        subprocess.run([mwlive.config.memwatch, 'doctor', '-p', str(target.pid), '--clean'],
                                       check=False, capture_output=True, timeout=mwlive.PATIENCE)
                    watch.process.wait()
                self.assertIsNone(target.process.poll(), 'it lives')
                # What could not be removed then is now, unless others still have the CPU.
                for _ in range(10):
                    self.once(target)
                    if {m for m in mwlive.mappings(target.pid) if 'x' in m[2]} <= set(before.maps):
                        break
                before.check(self)
        target.go()
        target.done()
        target.finish()

    def test_maker_killed_amidst_its_forks(self):
        """A child whose maker could not tell of it any more is cleaned all the same, by what its own maker had."""
        orphans = 0
        chance = mwlive.chance(self.id())
        for number in range(mwlive.attempts(4, 12)):
            with self.subTest(number, seed=mwlive.SEED):
                makers = [mwlive.Target(self, 'forker') for _ in range(2)]
                for maker in makers:
                    maker.go()
                watch = mwlive.Watch(self, *(maker.pid for maker in makers), busy=True, complete=None)
                for maker in makers[::chance.choice((1, -1))]:
                    time.sleep(chance.uniform(0, 0.2))
                    maker.process.kill()
                watch.wait()
                for maker in makers:
                    maker.process.stdin.close()
                    said = maker.buffer + maker.process.stdout.read()
                    orphans += said.count(b'orphan\n')
                    self.assertEqual(said.count(b'b\n'), said.count(b'e\n'), 'all children have come to their end')
                    self.assertNotIn(b'left', said)
                    self.assertNotIn(b'failed', said)
        print(f'{orphans} children outlived their makers', flush=True)

    def descendants(self, pid):
        """Who has been forked from a process, and from those."""
        found: list[int] = []
        try:
            with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as f:
                children = [int(child) for child in f.read().split()]
        except OSError:
            return found
        for child in children:
            found += [child, *self.descendants(child)]
        return found

    def test_vfork_children_that_allocate(self):
        """Children in the process's own memory: their blocks count, as it is its heap that has them."""
        for threads in 1, 4:
            with self.subTest(threads=threads):
                answer, report = mwlive.observe(self, 'vforks', 20, threads)
                mwlive.compare(self, answer, report)

    def test_vfork_children_when_the_first_thread_has_ended(self):
        """It is listed until all others have ended as well, but has no memory any more that a child could share."""
        for _ in range(mwlive.attempts(1, 3)):
            answer, report = mwlive.observe(self, 'vforks', 20, 2, 'leaderless')
            mwlive.compare(self, answer, report)

    def test_kill_where_the_first_thread_has_ended(self):
        """What a killed memwatch leaves is found in the memory of those that live."""
        target = mwlive.Target(self, 'vforks', 100, 2, 'leaderless')
        before = mwlive.Snapshot(target.pid)
        target.go()
        mwlive.wait_until(lambda: mwlive.state(target.pid) == 'Z', 'the first thread has ended')
        # The program spawns children all the while.
        for cleaned_by in ('guard',) if mwlive.spawned_may_trap() else ('guard', 'doctor', 'next'):
            with self.subTest(cleaned_by):
                watch = mwlive.Watch(self, target.pid, busy=True)
                if cleaned_by == 'guard':
                    watch.process.kill()
                    mwlive.wait_until(lambda: not watch.snapshots[0].touched(), 'the guard has cleaned it')
                    mwlive.wait_until(lambda: all(mwlive.status(tid).get('TracerPid') == '0'
                                                  for tid in mwlive.tids(target.pid)), 'the guard has detached')
                else:
                    mwlive.kill_with_guard(watch.process)
                watch.process.wait()
                if cleaned_by == 'doctor':
                    subprocess.run([mwlive.config.memwatch, 'doctor', '-p', str(target.pid), '--clean'], check=True,
                                   stdout=subprocess.DEVNULL, timeout=mwlive.PATIENCE)
                elif cleaned_by == 'next':
                    self.once(target)
                before.check(self)
        target.done()
        target.finish()

    def test_vfork_children_of_a_single_thread_during_attach_and_detach(self):
        """A child can't be given what its maker needs, and its maker mostly waits for it."""
        target = mwlive.Target(self, 'vforks', 300, 1, 'alone')
        before = mwlive.Snapshot(target.pid)
        target.go()
        for _ in range(mwlive.attempts(3, 10)):
            self.once(target, engine=self.no_jumps())
        before.check(self)
        target.done()
        target.finish()

    def test_vfork_children_that_take_their_time(self):
        """Their maker can do nothing for memwatch before they have ended, so they must run meanwhile."""
        target = mwlive.Target(self, 'vforks', 20, 1, 'alone', 150)
        before = mwlive.Snapshot(target.pid)
        target.go()
        for _ in range(mwlive.attempts(2, 4)):
            self.once(target, engine=self.no_jumps())
            before.check(self)
        target.done()
        target.finish()

    def test_vfork_children_from_before(self):
        """They are in the memory when memwatch comes, and allocate, or run a program, after that."""
        for mode in ((), ('nested',)):
            with self.subTest(mode):
                target = mwlive.Target(self, 'children_vforked', *mode)
                watch = mwlive.Watch(self, target.pid, engine=self.no_jumps(), options=('--unsafe',) if mode else ())
                target.go()
                answer = target.done()
                mwlive.compare(self, answer, watch.stop())
                target.finish()

    @staticmethod
    def no_jumps():
        """Engine jump can't detach from a thread that waits for such a child: auto takes the other one."""
        return 'auto' if mwlive.config.engine == 'jump' else mwlive.config.engine

    def test_vfork_children_of_vfork_children(self):
        """One that waits for its own can't be given what keeps it alive without memwatch."""
        self.refused('nested')

    def test_vfork_child_of_the_only_thread(self):
        """What leads the child's signals does not lead its maker's, and that can do nothing for us."""
        self.refused('alone')

    def refused(self, mode):
        # A child says that it is there, and who made it is to be watched.
        target = mwlive.Target(self, 'children_vforked', mode, pid=lambda process: process.pid)
        before = mwlive.Snapshot(target.pid)
        run = subprocess.run([mwlive.config.memwatch, '-p', str(target.pid), '-d', '0.1', '--quiet', '--engine',
                              mwlive.config.engine], text=True, capture_output=True, stdin=subprocess.DEVNULL,
                             timeout=mwlive.PATIENCE, check=False)
        if mwlive.config.engine == 'trap':
            self.assertEqual((run.returncode, run.stderr.count('\n')), (1, 1), run.stderr)
            self.assertRegex(run.stderr, r'waits for a program to be started .*--unsafe')
        else:
            self.assertEqual((run.returncode, run.stderr.count('\n')), (1, 1), run.stderr)
            self.assertRegex(run.stderr, r'thread \d+ is in an uninterruptible wait|waits for a vfork child that shares')
        before.check(self)
        target.go()
        target.done()
        target.finish()

    def test_vfork_child_for_itself(self):
        """What is put into its memory would be its maker's as well, whom nobody watches."""
        target = mwlive.Target(self, 'children_vforked')
        before = mwlive.Snapshot(target.pid)
        children = [int(child) for task in glob.glob(f'/proc/{target.pid}/task/*/children')
                    for child in pathlib.Path(task).read_text(encoding='ascii').split()]
        self.assertEqual(len(children), 3)
        run = subprocess.run([mwlive.config.memwatch, '-p', str(children[0]), '-d', '0.1', '--quiet', '--engine',
                              mwlive.config.engine], text=True, capture_output=True, stdin=subprocess.DEVNULL,
                             timeout=mwlive.PATIENCE, check=False)
        self.assertEqual((run.returncode, run.stderr.count('\n')), (1, 1), run.stderr)
        self.assertRegex(run.stderr, rf'shares its memory with process \d+, .*Watch process {target.pid},')
        before.check(self)
        target.go()
        target.done()
        target.finish()

    def test_vfork_children_outlive_a_window(self):
        target = mwlive.Target(self, 'children_vforked')
        before = mwlive.Snapshot(target.pid)
        self.once(target, engine=self.no_jumps())
        before.check(self)
        target.go()
        target.done()
        target.finish()

    def test_vfork_children_beside_a_busy_process(self):
        """Who waits for them does not stop; that is seen also while another process never rests."""
        target, busy = mwlive.Target(self, 'children_vforked'), mwlive.Target(self, 'threads', 1, 'until', 50)
        before = [mwlive.Snapshot(process.pid) for process in (target, busy)]
        busy.go()
        run = subprocess.run([mwlive.config.memwatch, '-p', f'{target.pid},{busy.pid}', '-d', '0.5', '--quiet',
                              '--engine', self.no_jumps()], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                             timeout=mwlive.PATIENCE, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        for snapshot in before:
            snapshot.check(self)
        busy.send()
        busy.done()
        busy.finish()
        target.go()
        target.done()
        target.finish()

    def test_vfork_children_outlive_kill(self):
        """kill -9 of all of memwatch while they are held or wait: they, and who made them, go on."""
        target = mwlive.Target(self, 'children_vforked')
        before = mwlive.Snapshot(target.pid)
        watch = mwlive.Watch(self, target.pid, engine=self.no_jumps())
        mwlive.kill_with_guard(watch.process)
        watch.process.communicate(timeout=mwlive.PATIENCE)
        target.go()
        target.done()
        run = subprocess.run([mwlive.config.memwatch, 'doctor', '-p', str(target.pid), '--clean'], text=True,
                             capture_output=True, stdin=subprocess.DEVNULL, timeout=mwlive.PATIENCE, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        before.check(self)
        target.finish()

    def test_vfork_children_during_attach_and_detach(self):
        target = mwlive.Target(self, 'vforks', 300, 4)
        before = mwlive.Snapshot(target.pid)
        target.go()
        for _ in range(mwlive.attempts(3, 10)):
            self.once(target)
        before.check(self)
        target.done()
        target.finish()


if __name__ == '__main__':
    mwlive.main()
