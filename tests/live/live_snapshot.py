#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Snapshots by a forked copy: what is read is of one moment and complete, the process notices nothing and keeps nothing,
whatever it does meanwhile and whenever memwatch is killed."""
import contextlib
import os
import signal
import struct
import subprocess
import sys
import time
import unittest

import mwlive
import mwusers

PAGE = 4096
COUNTERS = 64
PAGES = 16  # of each kind of memory; each fourth is never written to
# Where memwatch is made to fail, and to stop to be killed.
POINTS = ('quiesce.seize', 'quiesce.stop', 'copy.make', 'call.begin', 'call.result', 'copy.settle', 'copy.stand',
          'copy.reap')
# At these a copy is left, or about to be made.
LEAVE_ONE = {'call.begin', 'call.result', 'copy.settle', 'copy.stand', 'copy.reap'}


# Two children that have ended: one made by clone() without an exit signal, one that goes by a copy's name.
ZOMBIES = '''
import ctypes, os, sys
libc = ctypes.CDLL(None)
first = libc.syscall(56, 0, 0, 0, 0, 0)
if first == 0:
    libc._exit(3)
second = os.fork()
if second == 0:
    libc.prctl(15, b'memwatch copy', 0, 0, 0)
    libc._exit(4)
os.waitid(os.P_PID, second, os.WEXITED | os.WNOWAIT)
os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT | 0x40000000)
print('ready', os.getpid(), flush=True)
sys.stdin.buffer.read(1)
waited = 0
for child, options in ((first, 0x40000000), (second, 0)):
    waited += os.waitpid(child, options)[0] == child
print(f'waited={waited}\\ndone', flush=True)
sys.stdin.buffer.read(1)
'''


class Snap:
    """A snapshot that is being taken, as tests/targets/snapshots.c tells of it."""

    def __init__(self, test, pid, *options, fault=None, wait=True):
        self.test = test
        self.process = subprocess.Popen([mwlive.target_path('snapshots'), str(pid), *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=mwlive.with_fault(fault))
        test.addCleanup(mwlive.kill_quietly, self.process)
        self.said, self.mappings, self.threads, self.registers, self.error = {}, [], {}, {}, None
        if wait:
            self.listen()

    def listen(self):
        for line in self.process.stdout:
            key, _, rest = line.rstrip('\n').partition(' ')
            if key == 'ready':
                return
            if key == 'error':
                self.error = rest
                return
            if key == 'mapping':
                fields = rest.split(' ', 8)
                self.mappings.append([int(f) if i != 2 and i != 8 else f for i, f in enumerate(fields)])
            elif key == 'thread':
                tid, count, sp, name = rest.split(' ', 3)
                self.threads[int(tid)] = (int(count), int(sp), name)
            elif key == 'register':
                tid, word = rest.split(' ')
                self.registers.setdefault(int(tid), set()).add(int(word))
            else:
                self.said[key] = rest
        self.test.fail(f'no snapshot: {self.said}')

    def is_fork(self):
        return self.said.get('fork') == '1'

    def ask(self, line):
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip('\n').partition(' ')[2]

    def read(self, addr, size):
        return bytes.fromhex(self.ask(f'read {addr} {size}'))

    def word(self, addr):
        got = self.read(addr, 8)
        return struct.unpack('Q', got)[0] if len(got) == 8 else None

    def release(self):
        out, _ = self.process.communicate(timeout=mwlive.PATIENCE)
        self.test.assertEqual((out, self.process.returncode), ('released\n', 0))


def rss(pid):
    """By mapping, in bytes: {(start, end): Rss}."""
    found = {}
    with open(f'/proc/{pid}/smaps', encoding='utf-8') as f:
        for line in f:
            if line[0].islower() or line[0].isdigit():
                at = tuple(int(a, 16) for a in line.split()[0].split('-'))
            elif line.startswith('Rss:'):
                found[at] = int(line.split()[1]) * 1024
    return found


def private(pid):
    """Bytes that no other process shares with it."""
    with open(f'/proc/{pid}/smaps_rollup', encoding='utf-8') as f:
        return sum(int(line.split()[1]) * 1024 for line in f if line.startswith('Private_'))


class Copied:
    """The target, and where it has its memory."""

    def __init__(self, test, mode, *arguments, target=None):
        self.test = test
        self.target = target or mwlive.Target(test, 'copied', mode, *arguments)
        self.pid = self.target.pid
        self.target.go()
        self.at = {}
        while (line := self.target.line()) != 'working':
            key, _, value = line.partition('=')
            self.at[key] = int(value)
        self.maps = mwlive.mappings(self.pid)

    def end(self):
        """It worked as if nobody had come, and keeps nothing."""
        mwlive.wait_until(lambda: not mwlive.copies(self.pid), f'no copy is left: {mwlive.copies(self.pid)}')
        self.target.go()
        answer = self.target.done()
        self.test.assertEqual(answer['wrong'], 0, answer)
        self.target.finish()
        return answer

    def check_regions(self, snap, kinds):
        for kind in kinds:
            for i in range(PAGES):
                addr = self.at[kind] + i * PAGE
                expected = 0 if i % 4 == 3 or kind == 'zeros' and i % 4 == 3 else addr
                # Shared memory that nobody has touched is not to be touched by a look at it.
                if i % 4 == 3 and kind in ('shared',):
                    continue
                self.test.assertEqual(snap.word(addr), expected, f'{kind}, page {i}')

    def counters(self, snap):
        return [snap.word(self.at['counters'] + i * PAGE) for i in range(COUNTERS)]


class SnapshotTest(unittest.TestCase):
    def check_consistent(self, snap, copied):
        counters = copied.counters(snap)
        self.assertEqual(sorted(counters, reverse=True), counters)
        self.assertLessEqual(counters[0] - counters[-1], 1)
        return counters

    def check_sums(self, snap):
        """Of each mapping what runs of pages add up to is what the kernel has counted."""
        self.assertTrue(snap.mappings)
        for m in snap.mappings:
            start, end, access, resident, found, swapped, found_swapped, _huge, path = m
            if 'd' in access:
                continue
            self.assertEqual((resident, swapped), (found, found_swapped), (hex(start), hex(end), access, path))
        self.assertEqual(int(snap.said['rss']), sum(m[3] for m in snap.mappings))

    def test_one_moment(self):
        copied = Copied(self, 'busy')
        last = 0
        for _ in range(mwlive.attempts(5, 50)):
            snap = Snap(self, copied.pid)
            self.assertTrue(snap.is_fork(), snap.said)
            counters = self.check_consistent(snap, copied)
            time.sleep(0.02)
            self.assertEqual(copied.counters(snap), counters)
            self.assertGreater(counters[0], last)
            last = counters[0]
            self.check_sums(snap)
            copied.check_regions(snap, ('private', 'shared', 'memfd', 'dontfork', 'wipeonfork', 'inaccessible', 'zeros'))
            self.assertEqual(len(snap.threads), 4)
            for count, sp, name in snap.threads.values():
                self.assertGreater(count, 8)
                self.assertGreater(sp, 0)
                self.assertEqual(name, 'copied')
            snap.release()
            self.assertEqual(mwlive.children(copied.pid), [])
        copied.end()

    def test_nothing_comes_into_memory(self):
        copied = Copied(self, 'idle')
        snap = Snap(self, copied.pid)
        [copy] = mwlive.copies(copied.pid)
        before, before_copy = rss(copied.pid), rss(copy)
        private_copy = private(copy)
        total = 0
        for m in snap.mappings:
            for at in range(m[0], m[1], 1 << 20):
                total += len(snap.read(at, min(1 << 20, m[1] - at)))
        self.assertGreater(total, 4 << 20)
        self.assertEqual(rss(copied.pid), before)
        self.assertEqual(rss(copy), before_copy)
        # The copy has its memory together with the process still.
        self.assertLess(private(copy) - private_copy, 64 << 10)
        self.check_sums(snap)
        # As the process has it, to the byte.
        self.assertEqual({(m[0], m[1]): m[3] for m in snap.mappings}, before)
        self.assertEqual(int(snap.said['rss']), sum(before.values()))
        # Of a file: a page of its own, one that was never touched, and what lies behind its end.
        at = copied.at['file']
        self.assertEqual(snap.read(at, 2), b'\x01\x01')
        self.assertEqual(snap.read(at + PAGE, 2), b'W\x02')
        self.assertEqual(snap.read(at + 2 * PAGE + 98, 4), b'\x03\x03\x00\x00')
        snap.release()
        self.assertEqual(mwlive.mappings(copied.pid), copied.maps)
        copied.end()

    def test_live(self):
        copied = Copied(self, 'idle')
        before = rss(copied.pid)
        snap = Snap(self, copied.pid, '--no-fork')
        self.assertFalse(snap.is_fork())
        self.assertEqual(snap.said['why'], '')
        self.check_sums(snap)
        copied.check_regions(snap, ('private', 'shared', 'memfd', 'dontfork', 'wipeonfork', 'inaccessible', 'zeros'))
        for m in snap.mappings:
            snap.read(m[0], m[1] - m[0] if m[1] - m[0] < 1 << 24 else 1 << 24)
        self.assertEqual(rss(copied.pid), before)
        self.assertEqual(mwlive.children(copied.pid), [])
        snap.release()
        copied.end()

    def test_program_waits_for_its_own(self):
        copied = Copied(self, 'waits')
        for _ in range(mwlive.attempts(5, 50)):
            snap = Snap(self, copied.pid)
            self.assertTrue(snap.is_fork(), snap.said)
            self.check_consistent(snap, copied)
            snap.release()
        answer = copied.end()
        self.assertGreater(answer['reaped'], 0)
        # Signals of one kind that come at once are one.
        self.assertLessEqual(answer['told'], answer['reaped'])

    def test_vforks(self):
        copied = Copied(self, 'vforks')
        for _ in range(mwlive.attempts(5, 50)):
            snap = Snap(self, copied.pid)
            self.assertTrue(snap.is_fork(), snap.said)
            self.check_consistent(snap, copied)
            snap.release()
        self.assertGreater(copied.end()['reaped'], 0)

    def test_exec_meanwhile(self):
        copied = Copied(self, 'execs')
        snap = Snap(self, copied.pid)
        counters = self.check_consistent(snap, copied)
        self.assertEqual(snap.ask('stale'), '0')
        copied.target.go()
        mwlive.wait_until(lambda: mwlive.status(copied.pid).get('Name') == 'sleep', 'it executes another program')
        self.assertEqual(snap.ask('stale'), '1')
        self.assertEqual(copied.counters(snap), counters)
        # What was to be read of the process itself is no more.
        self.assertEqual(snap.read(copied.at['dontfork'], 8), b'')
        snap.release()
        self.assertEqual(mwlive.children(copied.pid), [])
        self.assertIsNone(copied.target.process.poll())

    def test_end_meanwhile(self):
        copied = Copied(self, 'ends')
        snap = Snap(self, copied.pid)
        [copy] = mwlive.copies(copied.pid)
        counters = self.check_consistent(snap, copied)
        copied.target.go()
        self.assertEqual(copied.target.process.wait(mwlive.PATIENCE), 0)
        self.assertEqual(snap.ask('stale'), '1')
        self.assertEqual(copied.counters(snap), counters)
        snap.release()
        mwlive.wait_until(lambda: not os.path.exists(f'/proc/{copy}'), 'the copy is gone')

    def test_stopped(self):
        copied = Copied(self, 'busy')
        def wait_stopped():
            """A thread that was just detached from has yet to run to its stop, which it does in the kernel."""
            mwlive.wait_until(lambda: {mwlive.state(t) for t in mwlive.tids(copied.pid)} == {'T'}, 'it is stopped')

        os.kill(copied.pid, signal.SIGSTOP)
        wait_stopped()
        snap = Snap(self, copied.pid)
        self.assertTrue(snap.is_fork(), snap.said)
        counters = self.check_consistent(snap, copied)
        wait_stopped()
        snap.release()
        wait_stopped()
        # It has executed nothing of its own.
        memory = mwlive.read_memory(copied.pid, copied.at['counters'], COUNTERS * PAGE)
        self.assertEqual([struct.unpack_from('Q', memory, i * PAGE)[0] for i in range(COUNTERS)], counters)
        self.assertEqual(mwlive.children(copied.pid), [])
        os.kill(copied.pid, signal.SIGCONT)
        copied.end()

    def check_no_copy(self, copied, why):
        snap = Snap(self, copied.pid)
        self.assertFalse(snap.is_fork())
        self.assertRegex(snap.said['why'], why)
        copied.check_regions(snap, ('private', 'inaccessible'))
        self.check_sums(snap)
        snap.release()
        self.assertEqual(mwlive.children(copied.pid), [])
        copied.end()

    def test_no_more_processes(self):
        mwusers.need(self, mwusers.NOBODY)
        self.check_no_copy(Copied(self, 'nproc', target=mwusers.target_as(self, mwusers.NOBODY, 'copied', 'nproc')),
                           'RLIMIT_NPROC')

    def test_children_in_another_namespace(self):
        mwusers.need(self, ('unshare', '--pid', '--fork'))
        self.check_no_copy(Copied(self, 'namespace'), 'pid namespace')

    def test_provides_pages(self):
        self.check_no_copy(Copied(self, 'provides'), 'userfaultfd')

    def in_cgroup(self, controller, pid, **limits):
        """Put a process into a control group of its own with these limits (version 1 of them)."""
        path = f'/sys/fs/cgroup/{controller}/mwlive-{os.getpid()}-{pid}'
        try:
            os.mkdir(path)
            self.addCleanup(self.remove_cgroup, path)
            for name, value in (*limits.items(), ('cgroup.procs', pid)):
                with open(f'{path}/{name.replace("__", ".")}', 'w', encoding='ascii') as f:
                    f.write(str(value))
        except OSError as error:
            self.skipTest(f'no control group can be made: {error}')

    @staticmethod
    def remove_cgroup(path):
        """What is in it has ended by now, or is about to."""
        def removed():
            with contextlib.suppress(OSError):
                os.rmdir(path)
            return not os.path.exists(path)
        mwlive.wait_until(removed, f'{path} is empty')

    def limited(self, controller, mib, **limits):
        """A target in such a group; it ends before that is removed."""
        target = mwlive.Target(self, 'copied', 'idle', mib)
        self.in_cgroup(controller, target.pid, **limits)
        self.addCleanup(mwlive.kill_quietly, target.process)
        return Copied(self, 'idle', target=target)

    def test_memory_cgroup(self):
        self.check_no_copy(self.limited('memory', 96, memory__limit_in_bytes=128 << 20), 'memory cgroup has')

    def test_pids_cgroup(self):
        self.check_no_copy(self.limited('pids', 4, pids__max=1), 'pids cgroup')

    def test_in_a_pid_namespace(self):
        """The process knows the copy by another number than memwatch."""
        unshare = mwusers.need(self, ('unshare', '--pid', '--fork', '--kill-child'))
        target = mwlive.Target(self, 'copied', argv=[*unshare, mwlive.target_path('copied'), 'waits'],
                               pid=lambda process: next(iter(mwlive.children(process.pid))))
        copied = Copied(self, 'waits', target=target)
        snap = Snap(self, copied.pid)
        self.assertTrue(snap.is_fork(), snap.said)
        snap.release()
        copied.end()

    def test_seccomp(self):
        """Forked where the filter lets it live if memwatch is killed meanwhile."""
        mwusers.need(self, ('true',))
        for mode, end, forks in (('none', 0, True), ('container', 0, True), ('errno', 0, True),
                                 ('few', -signal.SIGSYS, False), ('strict', -signal.SIGKILL, False),
                                 ('first-thread', 0, True), ('one-thread', 0, True)):
            with self.subTest(mode):
                target = mwlive.Target(self, 'seccomp_filtered', mode)
                snap = Snap(self, target.pid)
                self.assertEqual(snap.is_fork(), forks, snap.said)
                if not forks:
                    self.assertRegex(snap.said['why'], 'seccomp')
                snap.release()
                target.go()
                target.done()
                with contextlib.suppress(BrokenPipeError):
                    target.send()
                self.assertEqual(target.process.wait(mwlive.PATIENCE), end)

    def test_failures(self):
        """Whatever fails, the process goes on, and keeps at most what --clean takes away."""
        copied = Copied(self, 'waits')
        for point in POINTS:
            with self.subTest(point):
                snap = Snap(self, copied.pid, fault=point)
                if snap.error is None:
                    out, _ = snap.process.communicate(timeout=mwlive.PATIENCE)
                    self.assertTrue(point == 'copy.reap' or out == 'released\n', out)
                    self.assertTrue(snap.is_fork() or snap.said['why'], snap.said)
                else:
                    self.assertIn(point, snap.error)
                    snap.process.communicate(timeout=mwlive.PATIENCE)
                self.assertEqual(set(mwlive.copies(copied.pid).values()) - {'Z'}, set())
                self.assertEqual(self.clean(copied), point == 'copy.reap')
        copied.end()

    def clean(self, copied):
        """What there is of copies is taken away; returns how many there were. One may just be ending."""
        count = 0

        def cleaned():
            nonlocal count
            done = subprocess.run([mwlive.target_path('snapshots'), str(copied.pid), '--clean'], capture_output=True,
                                  text=True, timeout=mwlive.PATIENCE, check=False)
            self.assertRegex(done.stdout, r'^cleaned \d+\n$')
            count += int(done.stdout.split()[1])
            return not mwlive.copies(copied.pid)
        mwlive.wait_until(cleaned, f'no copy is left: {mwlive.children(copied.pid)}')
        return count

    def killed(self, copied, snap):
        snap.process.kill()
        snap.process.wait()
        # It ends by itself, under its name.
        mwlive.wait_until(lambda: set(mwlive.copies(copied.pid).values()) <= {'Z'}, 'the copy ends')
        mwlive.wait_until(lambda: all(mwlive.status(t).get('TracerPid', '0') == '0' for t in mwlive.tids(copied.pid)),
                          'nobody traces it')

    def test_killed_at_points(self):
        copied = Copied(self, 'waits')
        left = {}
        for point in POINTS:
            snap = Snap(self, copied.pid, fault=f'{point}!', wait=False)
            if point == 'copy.reap':
                snap.listen()
                snap.process.stdin.close()
            mwlive.wait_until(lambda tool=snap.process.pid: mwlive.state(tool) == 'T', f'memwatch stops at {point}')
            self.killed(copied, snap)
            # The target may come to make it only now; one that was just made may not have its name yet.
            if point in LEAVE_ONE:
                mwlive.wait_until(lambda: mwlive.children(copied.pid), f'there is a copy after {point}')
            mwlive.wait_until(lambda: all(mwlive.state(child) == 'Z' for child in mwlive.children(copied.pid)),
                              'the copy ends')
            left[point] = self.clean(copied)
        self.assertEqual({point for point, count in left.items() if count}, LEAVE_ONE)
        copied.end()

    def test_next_memwatch_cleans(self):
        copied = Copied(self, 'waits')
        for command in (['doctor', '-p', str(copied.pid), '--clean'],
                        ['heap', '-p', str(copied.pid), '--quiet'],
                        ['heap', '-p', str(copied.pid), '--quiet', '--no-fork'],
                        ['-p', str(copied.pid), '--engine', mwlive.config.engine, '--quiet', '-d', '0.01']):
            snap = Snap(self, copied.pid, fault='copy.stand!', wait=False)
            mwlive.wait_until(lambda tool=snap.process.pid: mwlive.state(tool) == 'T', 'memwatch stops')
            self.killed(copied, snap)
            self.assertEqual(len(mwlive.copies(copied.pid)), 1)
            done = subprocess.run([mwlive.config.memwatch, *command], capture_output=True, text=True,
                                  timeout=mwlive.PATIENCE, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(mwlive.copies(copied.pid), {})
        copied.end()

    def test_others_zombies_stay(self):
        """A zombie of exit signal 0 that is no copy is for the program to wait for; so is one of that name alone."""
        target = mwlive.Target(self, 'python', argv=[sys.executable, '-c', ZOMBIES])
        self.assertEqual([mwlive.state(child) for child in mwlive.children(target.pid)], ['Z', 'Z'])
        self.assertEqual(len(mwlive.copies(target.pid)), 1)
        done = subprocess.run([mwlive.target_path('snapshots'), str(target.pid), '--clean'], capture_output=True,
                              text=True, timeout=mwlive.PATIENCE, check=False)
        self.assertEqual((done.stdout, done.returncode), ('cleaned 0\n', 0))
        self.assertEqual(len(mwlive.children(target.pid)), 2)
        target.go()
        self.assertEqual(target.done()['waited'], 2)
        target.finish()

    def test_killed_at_random(self):
        chance = mwlive.chance(self.id())
        for mode in ('waits', 'vforks', 'idle'):
            copied = Copied(self, mode, 64)
            for _ in range(mwlive.attempts(10, 100)):
                snap = Snap(self, copied.pid, wait=False)
                time.sleep(chance.uniform(0, 0.08))
                self.killed(copied, snap)
                if chance.random() < 0.5:
                    self.clean(copied)
            self.clean(copied)
            copied.end()


if __name__ == '__main__':
    mwlive.main()
