#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kill -9 of memwatch at any instant: the target lives, works right, and can be cleaned and watched again.

KILLS times a target, half of them together with memwatch's guard, which would clean otherwise: then the target has to
work with what is in it. `scripts/soak killed` does it at random for as long as one likes.
"""
import contextlib
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import mwlive

KILLS = mwlive.attempts(2, 10)
PHASES = ('attach', 'window', 'detach', 'anywhere')
ROUNDS = 3  # that a target must do more than it had done, to count as going on
MODES = ('idle', 'busy', 'brief', 'spawn', 'fork', 'vfork', 'masked', 'sections', 'trap', 'handler', 'changing', 'load',
         'made', 'seccomp', 'full_busy', 'full_fork', 'python')
# Threads whose masks are what they were whenever one looks.
CALM = ('idle', 'busy', 'masked', 'made')

PYTHON = '''
import mmap, os, struct, subprocess, sys, threading
board = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 4096)
may_trap = -5 if 'SURVIVOR_MAY_TRAP' in os.environ else 0
def work(number):
    blocks = [bytes(i % 300) for i in range(number)]
    assert all(len(blocks[i]) == i % 300 for i in range(number))
def step():
    work(2000)
    thread = threading.Thread(target=work, args=(500,))
    thread.start()
    assert subprocess.run(['/bin/true']).returncode in (0, may_trap)
    assert subprocess.run('exit 3', shell=True).returncode in (3, may_trap)
    child = os.fork()
    if child == 0:
        work(500)
        os._exit(17)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
    thread.join()
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.buffer.read(1), over.set()), daemon=True).start()
print('ready', os.getpid(), flush=True)
while not over.is_set():
    step()
    struct.pack_into('Q', board, 0, struct.unpack_from('Q', board)[0] + 1)
print('done', flush=True)
'''

BLOCKS_TRAP = '''
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTRAP])
print('ready', os.getpid(), flush=True)
sys.stdin.buffer.read(1)
missing = sum(signal.SIGTRAP not in signal.pthread_sigmask(signal.SIG_BLOCK, []) for _ in range(1000))
print(f'missing={missing}\\ndone', flush=True)
sys.stdin.buffer.read(1)
'''


def traced(pid):
    return mwlive.status(pid).get('TracerPid', '0') != '0'


def descendants(pid):
    """Processes that memwatch has made."""
    found = []
    with contextlib.suppress(OSError):
        for tid in mwlive.tids(pid):
            with open(f'/proc/{pid}/task/{tid}/children', encoding='utf-8') as f:
                found += map(int, f.read().split())
    return found


def copies(pid):
    """Forked copies of it, running or left as zombies."""
    return [child for child in descendants(pid) if mwlive.status(child).get('Name') == 'memwatch copy']


class Victim:
    """A target, and how it was before anybody came to it."""

    def __init__(self, test, mode):
        self.test, self.mode = test, mode
        self.board = tempfile.NamedTemporaryFile(prefix='mwlive-')
        test.addCleanup(self.board.close)
        self.board.truncate(4096)
        library = mwlive.target_path('libplugin_leak.so')
        may_trap = {'SURVIVOR_MAY_TRAP': '1'} if mwlive.spawned_may_trap() else {}
        if mode == 'python':
            self.target = mwlive.Target(test, 'python', argv=[sys.executable, '-c', PYTHON, self.board.name],
                                        env={'PYTHONMALLOC': 'malloc', **may_trap})
        elif mode == 'no_restorer_musl_static':
            self.target = mwlive.Target(test, mode, self.board.name)
        elif mode.startswith('full_'):  # no room for copies of instructions behind its code
            self.target = mwlive.Target(test, 'survivor_full', mode[len('full_'):], self.board.name, library)
        else:
            self.target = mwlive.Target(test, 'survivor', mode, self.board.name, library,
                                        env=may_trap if mode == 'spawn' else None)
        self.pid = self.target.pid
        self.goes_on('at its start')
        self.snapshot = mwlive.Snapshot(self.pid)
        for m in self.snapshot.maps:  # code in no file, too
            if 'x' in m[2] and not m[4]:
                self.snapshot.text[m] = mwlive.read_memory(self.pid, m[0], m[1] - m[0])
        # libc begins threads with all signals blocked, its own too.
        mwlive.wait_until(lambda: not any(int(m or '0', 16) >> 31 & 3 for m in self.signals_now()[2] or ()),
                          'its threads have begun')
        self.signals = self.signals_now()

    def rounds(self):
        return struct.unpack('Q', os.pread(self.board.fileno(), 8, 0))[0]

    def goes_on(self, when):
        """It lives, and does more than it has done."""
        first = self.rounds()

        def more():
            code = self.target.process.poll()
            if code is not None:
                said = self.target.process.stdout.read()
                self.test.fail(f'{self.mode} has ended {when} with {code}: {said!r}')
            return self.rounds() >= first + ROUNDS
        mwlive.wait_until(more, f'{self.mode} goes on {when}')

    def signals_now(self):
        """What its first thread handles and ignores; where masks are the same at all times, each thread's."""
        status = mwlive.status(self.pid)
        masks = [mwlive.status(tid).get('SigBlk') for tid in mwlive.tids(self.pid)] if self.mode in CALM else None
        return status.get('SigCgt'), status.get('SigIgn'), masks

    def is_clean(self):
        return not any('x' in m[2] and m[2][1] != 'w' and not m[4] for m in self.extra())

    def extra(self):
        return [m for m in mwlive.mappings(self.pid) if m not in self.snapshot.maps]

    def check_clean(self, when):
        end = time.monotonic() + 5
        while True:
            try:
                self.snapshot.check(self.test)
                self.test.assertTrue(self.is_clean(), f'{self.mode} {when}: {self.extra()}')
                break
            except (OSError, StopIteration):  # a thread has ended, or a library was unloaded
                if time.monotonic() > end:
                    raise
        # A thread may just be making another one.
        with contextlib.suppress(AssertionError):
            mwlive.wait_until(lambda: self.mode == 'changing' or self.signals_now() == self.signals, 'signals', 5)
            return
        self.test.assertEqual(self.signals_now(), self.signals, f'{self.mode} {when}')

    def end(self):
        self.target.go()
        answer = self.target.done()
        self.target.finish()
        return answer


class Killed(unittest.TestCase):
    def setUp(self):
        self.chance = mwlive.chance(self.id())

    def start(self, pid, seconds, fault=None):
        process = subprocess.Popen([mwlive.config.memwatch, '-p', str(pid), '--engine', mwlive.config.engine,
                                    '--quiet', '-d', str(seconds)],
                                   env=mwlive.with_fault(fault), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(mwlive.kill_quietly, process)
        return process

    def await_phase(self, victim, process, phase):
        """Until shortly before what is to be hit."""
        def reached():
            if process.poll() is not None:
                return True
            if phase == 'attach':
                return traced(victim.pid)
            with contextlib.suppress(OSError):
                return victim.snapshot.touched()
            return False
        mwlive.wait_until(reached, f'memwatch comes to the {phase}', step=0.001)

    def kill_once(self, victim, number):
        """Returns what was done, in words."""
        phase = PHASES[number % len(PHASES)]
        alone = number // len(PHASES) % 2 == 0
        process = self.start(victim.pid, 0.05 if phase == 'detach' else 30)
        if phase != 'anywhere':
            self.await_phase(victim, process, phase)
        wait = self.chance.uniform(0, {'attach': 0.03, 'window': 0.2, 'detach': 0.15, 'anywhere': 0.4}[phase])
        time.sleep(wait)
        victims = [] if alone else descendants(process.pid)
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        process.kill()
        _, err = process.communicate(timeout=mwlive.PATIENCE)
        self.assertNotRegex(err.decode(), 'rror|cannot', err)
        return f'after kill {number} at {phase}+{wait:.4f}' + ('' if alone else ' with its guard'), alone

    def clean(self, victim, when, by_doctor):
        if by_doctor:
            command = ['doctor', '-p', str(victim.pid), '--clean']
        else:
            command = ['-p', str(victim.pid), '--engine', mwlive.config.engine, '--quiet', '-d', '0.01']
        done = subprocess.run([mwlive.config.memwatch, *command], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=mwlive.PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, f'{command} {when}: {done.stdout} {done.stderr}')

    def kills(self, mode):
        victim = Victim(self, mode)
        unguarded = 0
        first = MODES.index(mode)
        for number in range(first, first + KILLS):
            with self.subTest(mode, seed=mwlive.SEED, number=number):
                when, guarded = self.kill_once(victim, number)
                unguarded += not guarded
                victim.goes_on(when)
                if guarded:
                    mwlive.wait_until(lambda: victim.is_clean() and not victim.snapshot.touched(),
                                      f'the guard cleans {when}')
                by_doctor = self.chance.random() < 0.5
                self.clean(victim, when, by_doctor)
                when += ', by the doctor' if by_doctor else ', by the next one'
                victim.check_clean(when)
                victim.goes_on(f'{when}, cleaned')
        # One that was being made, and the next: only where all of memwatch was killed.
        self.assertLessEqual(victim.end().get('trapped', 0), 2 * unguarded)

    def test_masked_in_a_pid_namespace(self):
        """Who blocks SIGTRAP is known by the id that it knows itself by."""
        unshare = ['unshare', '--pid', '--fork', '--kill-child']
        if subprocess.run([*unshare, 'true'], capture_output=True, check=False).returncode != 0:
            self.skipTest('namespaces may not be made here')
        target = mwlive.Target(self, 'python', argv=[*unshare, sys.executable, '-c', BLOCKS_TRAP],
                               env={'PYTHONMALLOC': 'malloc'}, pid=lambda process: descendants(process.pid)[0])
        watch = mwlive.Watch(self, target.pid)
        mwlive.kill_with_guard(watch.process)
        watch.process.communicate(timeout=mwlive.PATIENCE)
        target.go()
        missing = target.done()['missing']
        # Where spawned children may trap nobody looks after masks any more.
        if not mwlive.spawned_may_trap():
            self.assertEqual(missing, 0)
        target.finish()

    def test_children_without_actions(self):
        """SIGTRAP would kill them: one that lives when memwatch is killed, and those that come later."""
        target = mwlive.Target(self, 'cleared')
        watch = mwlive.Watch(self, target.pid)
        target.go()
        self.assertEqual(target.line(), 'inside')
        mwlive.kill_with_guard(watch.process)
        watch.process.communicate(timeout=mwlive.PATIENCE)
        target.go()
        self.assertEqual(target.done()['failed'], 0)
        target.finish()

    def test_while_the_target_is_stopped(self):
        """A thread that stands at a breakpoint comes out of that, and is stopped as it was."""
        if not mwlive.SOAK and mwlive.config.engine == 'trap':
            self.skipTest('one run in fifty fails: scripts/soak killed')
        target = mwlive.Target(self, 'threads', 8, 1 << 40, 50)
        snapshot = mwlive.Snapshot(target.pid)
        target.go()
        for number in range(mwlive.attempts(3, 20)):
            watch = mwlive.Watch(self, target.pid, busy=True)
            os.kill(target.pid, signal.SIGSTOP)
            time.sleep(0.01 * number)
            watch.process.kill()
            # Calls that engine jump records can't come back: it waits for that.
            if mwlive.config.engine == 'jump':
                os.kill(target.pid, signal.SIGCONT)
            _, err = watch.process.communicate(timeout=mwlive.PATIENCE)  # the guard's, too
            self.assertIn(b', which runs on\n', err)
            self.assertFalse(snapshot.touched())
            if mwlive.config.engine == 'trap':
                # A thread that has run briefly stops by itself once it is detached from.
                mwlive.wait_until(lambda: {mwlive.state(t) for t in mwlive.tids(target.pid)} == {'T'}, 'all are stopped')
                os.kill(target.pid, signal.SIGCONT)
            self.clean(target, f'after kill {number}', True)
            snapshot.check(self)

    def test_static_without_handlers(self):
        """A program that nothing has to return from a signal in: a thread that performs a call for us gets back."""
        if not os.path.exists(mwlive.target_path('no_restorer_musl_static')):
            self.skipTest('musl-gcc is not installed')
        victim = Victim(self, 'no_restorer_musl_static')
        for number in range(mwlive.attempts(6, 60)):
            process = self.start(victim.pid, 30)
            self.await_phase(victim, process, 'attach')
            time.sleep(self.chance.uniform(0, 0.006))
            mwlive.kill_with_guard(process)
            process.communicate(timeout=mwlive.PATIENCE)
            victim.goes_on(f'after kill {number}')
        self.clean(victim, 'after all', True)
        victim.check_clean('after all')
        victim.end()

    def test_looks_at_the_heap(self):
        """memwatch is killed while it has a forked copy of the process made, reads that, or has it waited for."""
        for mode in ('busy', 'fork', 'vfork', 'spawn', 'handler', 'full_fork', 'python'):
            victim = Victim(self, mode)
            for number in range(mwlive.attempts(6, 60)):
                with self.subTest(mode, seed=mwlive.SEED, number=number):
                    process = subprocess.Popen([mwlive.config.memwatch, 'heap', '-p', str(victim.pid), '--quiet'],
                                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                               stderr=subprocess.PIPE)
                    self.addCleanup(mwlive.kill_quietly, process)
                    wait = self.chance.uniform(0, 0.3)
                    time.sleep(wait)
                    process.kill()
                    process.communicate(timeout=mwlive.PATIENCE)
                    when = f'after kill {number} of a look+{wait:.4f}'
                    victim.goes_on(when)
                    self.clean(victim, when, self.chance.random() < 0.5)
                    mwlive.wait_until(lambda target=victim: not copies(target.pid) or self.clean(target, when, True),
                                      f'no copy is left {when}')
                    victim.check_clean(when)
                    victim.goes_on(f'{when}, cleaned')
            self.assertEqual(victim.end().get('trapped', 0), 0)

    def test_amidst_a_mask(self):
        """All is in place, and nobody has run since: some stand where they are about to block all signals."""
        self.kills_when_in_place('masking')

    def test_amidst_the_making_of_a_thread(self):
        """… where they, or who they make, are about to block again what they had blocked before."""
        self.kills_when_in_place('creating')

    def kills_when_in_place(self, mode):
        victim = Victim(self, mode)
        for number in range(KILLS):
            process = self.start(victim.pid, 30, 'attach.resume!')
            mwlive.wait_until(lambda tool=process.pid: mwlive.state(tool) == 'T', 'all is in place', step=0.001)
            mwlive.kill_with_guard(process)
            process.communicate(timeout=mwlive.PATIENCE)
            victim.goes_on(f'after kill {number}')
            self.clean(victim, f'after kill {number}', True)
        victim.end()


def add_tests():
    for mode in MODES:
        def test(self, mode=mode):
            self.kills(mode)
        setattr(Killed, f'test_{mode}', test)


add_tests()

class Named(unittest.TestCase):
    """Where a file system has no files without a name, a recording has one before it is published."""

    def test_unpublished_recording(self):
        target = mwlive.Target(self, 'steady', 1)
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        env = {**mwlive.with_fault('attach.stop!'), 'LD_PRELOAD': mwlive.target_path('libnamed.so'),
               'ASAN_OPTIONS': os.environ.get('ASAN_OPTIONS', '') + ':verify_asan_link_order=0'}
        process = subprocess.Popen([mwlive.config.memwatch, '-p', str(target.pid), '--engine', mwlive.config.engine,
                                    '--quiet', '-o', os.path.join(directory, 'recording.mw')], env=env,
                                   stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(mwlive.kill_quietly, process)
        mwlive.wait_until(lambda: mwlive.status(process.pid)['State'].startswith('T'), 'memwatch stops')
        self.assertEqual(len(os.listdir(directory)), 1)
        process.kill()
        process.wait()
        mwlive.wait_until(lambda: not os.listdir(directory), 'the guard removes the recording')


if __name__ == '__main__':
    mwlive.main()
