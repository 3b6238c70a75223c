#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Corners that a hostile reading found: a stopped process, masks, a trap in the way, a heap with its own ideas."""
import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

import mwjump
import mwlive

PR_SET_CHILD_SUBREAPER = 36

EXECUTABLE = '''
import ctypes, os, sys
READ_IMPLIES_EXEC = 0x400000
assert ctypes.CDLL(None).personality(READ_IMPLIES_EXEC) >= 0
print('ready', os.getpid(), flush=True)
sys.stdin.buffer.read(1)
blocks = [bytes(i) for i in range(1000, 2000)]
print('done', flush=True)
sys.stdin.buffer.read(1)
'''


class Adopted(mwlive.Target):
    """A target that was started elsewhere and has not said that it is ready."""

    def __init__(self, test, process):  # pylint: disable=super-init-not-called
        self.test, self.name, self.process, self.pid = test, process.args[0], process, process.pid
        self.buffer, self.answer = b'', {}
        test.addCleanup(mwlive.kill_quietly, process)


class Corners(unittest.TestCase):
    def exact(self, name, *arguments, seconds=mwlive.PATIENCE):
        """The target's whole work in one window, everything as it says."""
        answer, report = mwlive.observe(self, name, *arguments, seconds=seconds)
        mwlive.compare(self, answer, report)
        return answer, report

    def test_stopped_from_before_attach_until_after_detach(self):
        target = mwlive.Target(self, 'threads', 2, 100, 10)
        os.kill(target.pid, signal.SIGSTOP)
        mwlive.wait_until(lambda: self.states(target) == {'T'}, 'every thread is stopped')
        watch = mwlive.Watch(self, target.pid, busy=True)
        watch.process.send_signal(signal.SIGINT)
        watch.wait(10)
        mwlive.wait_until(lambda: self.states(target) == {'T'}, 'still stopped', 5)
        self.assertFalse(watch.snapshots[0].touched(), 'code is changed while it stands')
        self.assertEqual({mwlive.status(t)['TracerPid'] for t in mwlive.tids(target.pid)}, {'0'})
        os.kill(target.pid, signal.SIGCONT)
        mwlive.wait_until(lambda: self.states(target) == {'S'}, 'running again')
        watch.check_targets()
        target.go()
        target.done()
        target.finish()

    @staticmethod
    def states(target):
        return {mwlive.state(t) for t in mwlive.tids(target.pid)}

    def test_masks_with_and_without_sigtrap(self):
        self.exact('trapmask', 'some')

    def test_action_for_sigtrap_from_before_the_window(self):
        for action in ('handler', 'ignore'):
            with self.subTest(action):
                self.exact('trapmask', action)

    def test_action_for_sigtrap_set_inside_the_window(self):
        for action in ('inner_handler', 'inner_ignore'):
            with self.subTest(action):
                self.exact('trapmask', action)

    def test_pending_sigtrap_arrives_once_when_unblocked(self):
        self.exact('trapmask', 'pending')

    def test_trap_of_the_program_behind_a_call_of_malloc(self):
        self.exact('trapbehind')

    def test_headers_two_ways_to_free_and_a_failed_reallocarray(self):
        self.exact('ownheap')

    def test_child_sharing_memory_outlives_an_exit(self):
        self.outlive('exit', 'exit', 0)

    def test_child_sharing_memory_outlives_a_kill(self):
        self.outlive('kill', 'exit', -signal.SIGKILL)

    def test_child_sharing_memory_outlives_an_exec(self):
        self.outlive('exec', 'exec', 0)

    def outlive(self, how, ended, returncode):
        libc = ctypes.CDLL(None)
        # Its parent gone, the child is this process's to wait for.
        self.assertEqual(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0)
        self.addCleanup(libc.prctl, PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        for options in ((), ('--children',)):
            with self.subTest(options):
                self.outlive_with(how, ended, returncode, options)

    def outlive_with(self, how, ended, returncode, options):
        target = mwlive.Target(self, 'clone_vm_outlives', how)
        # Maker and child run at once with one thread control block: the recorder takes them for one thread, and an
        # event of theirs may be lost where they meet. Then it is told.
        watch = mwlive.Watch(self, target.pid, options=options, complete=None)
        target.go()
        key, _, child = target.line().partition('=')
        self.assertEqual(key, 'child')
        self.assertEqual(target.process.wait(mwlive.PATIENCE), returncode)
        watch.wait()
        # A child that shares its memory can't be watched by itself; what it has become by exec can.
        report = watch.reports[0]
        self.assertEqual((report['target']['pid'], report['window']['ended']), (target.pid, ended))
        status = mwlive.wait_until(lambda: self.reaped(int(child)), 'the child ends')
        self.assertEqual(os.waitstatus_to_exitcode(status[1]), 0, 'the child did not end as it wanted to')

    @staticmethod
    def reaped(pid):
        found = os.waitpid(pid, os.WNOHANG)
        return found if found[0] else None

    def test_code_of_two_kinds(self):
        """Threads in 32-bit code, or whose system calls are dispatched to them: the handlers that they need stay.

        Kernels before 6.4 can't tell which calls are dispatched.
        """
        for mode, codes in (('code32', (0,)), ('dispatched', (0, 1)), ('all_dispatched', (1,))):
            with self.subTest(mode):
                if mode == 'code32' and subprocess.run([mwlive.target_path('foreign'), 'try32'], check=False).returncode:
                    self.skipTest('this machine runs no 32-bit code')
                target = mwlive.Target(self, 'foreign', mode)
                target.go()
                for _ in range(mwlive.attempts(2, 4)):
                    run = subprocess.run([mwlive.config.memwatch, '-p', str(target.pid), '-d', '0.1', '--quiet',
                                          '--engine', mwlive.config.engine], text=True, capture_output=True,
                                         stdin=subprocess.DEVNULL, timeout=mwlive.PATIENCE, check=False)
                    self.assertIn(run.returncode, codes, run.stderr)
                    self.assertEqual(run.stderr.count('\n'), run.returncode, run.stderr)
                self.assertGreater(target.done()['handled'], 0)
                target.finish()

    def unharmed(self, name, kill, clean=None):
        """A target that finds by itself what is wrong, through a window and through one whose memwatch is killed."""
        for killed in (False, True):
            with self.subTest(killed=killed):
                target = mwlive.Target(self, name)
                watch = mwlive.Watch(self, target.pid)
                if killed:
                    kill(watch.process)
                target.go()
                answer = target.done()
                self.assertEqual(answer['wrong'], 0)
                if not killed:
                    mwlive.compare(self, answer, watch.stop())
                elif clean:
                    clean(target.pid)
                watch.check_targets()
                target.finish()

    @staticmethod
    def kill_all(memwatch):
        mwlive.kill_with_guard(memwatch)
        memwatch.communicate(timeout=mwlive.PATIENCE)

    @staticmethod
    def clean(pid):
        subprocess.run([mwlive.config.memwatch, 'doctor', '-p', str(pid), '--clean'], check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=mwlive.PATIENCE)

    def test_all_that_is_data_may_be_executed(self):
        """READ_IMPLIES_EXEC: what a killed memwatch leaves is found and taken out as elsewhere."""
        target = mwlive.Target(self, 'executable', argv=['/usr/bin/python3', '-S', '-c', EXECUTABLE])
        watch = mwlive.Watch(self, target.pid)
        self.kill_all(watch.process)
        self.clean(target.pid)
        watch.check_targets()
        target.go()
        target.done()
        target.finish()

    def test_pages_that_the_program_provides(self):
        """Nothing is read that would be waited for while the thread stands that provides it; nor when memwatch is killed."""
        def kill(memwatch):
            guard = mwlive.guard_of(memwatch.pid)
            memwatch.kill()
            memwatch.communicate(timeout=mwlive.PATIENCE)
            mwlive.await_end_of(guard)

        self.unharmed('lazy', kill)

    def test_memory_that_the_program_maps_again(self):
        """What it has unmapped is its own still: nothing of memwatch's lies there, that it would write over."""
        self.unharmed('unmapped_reused', self.kill_all, self.clean)

    def test_code_that_somebody_else_puts_back(self):
        """As a uprobe that goes does: what is called afterwards is not seen, and the report says that it is incomplete."""
        target = mwlive.Target(self, 'exact')
        watch = mwlive.Watch(self, target.pid, complete=None)
        snapshot, = watch.snapshots

        def put_back():
            with open(f'/proc/{target.pid}/mem', 'r+b', buffering=0) as memory:
                for (start, end, *_), before in snapshot.text.items():
                    now = mwlive.read_memory(target.pid, start, end - start)
                    for i in (i for i, byte in enumerate(before) if now[i] != byte):
                        memory.seek(start + i)
                        memory.write(before[i:i + 1])
            return not snapshot.touched()
        mwlive.wait_until(put_back, 'all code is as it was')
        target.go()
        target.done()
        report = watch.stop()
        self.assertEqual((report['complete'], report['lost']['events'] > 0), (False, True), report['lost'])
        target.finish()

    def test_restartable_sequences(self):
        """A thread that is stopped amidst one begins it anew: no other thread's update is written over."""
        target = mwlive.Target(self, 'sequences')
        target.go()
        for _ in range(mwlive.attempts(5, 25)):
            mwlive.Watch(self, target.pid, busy=True).stop()
        target.send()
        answer = target.done()
        target.finish()
        if not answer['registered']:
            self.skipTest('neither of kernel and C library may lack rseq')
        self.assertEqual(answer['lost'], 0, answer)
        self.assertGreater(answer['restarts'], 0)

    def test_frames_of_the_vdso(self):
        _, report = self.exact('vdso')
        stacks = mwlive.select(report, 'vm_vdso_map', kinds=('vm',))
        self.assertGreater(len(stacks), 0)
        for stack in stacks:
            self.assertEqual((mwlive.functions(stack)[-1], stack['cut']), ('_start', None), mwlive.functions(stack))
        if not any(f['module'] == '[vdso]' for s in stacks for f in s['frames']):
            self.skipTest('no signal came in the vdso')

    def test_busy_threads_are_served_alike(self):
        # Where threads are not stopped it is the kernel who shares out the time: enough for many turns.
        answer, report = self.exact('fairness', 20000 if mwlive.config.engine == 'trap' else 3000000)
        counts = {t['name']: t['size']['count'] for t in report['threads'] if t['name'].startswith('busy-')}
        self.assertEqual(counts, {name: n for name, n in answer.items() if name.startswith('busy-')})
        self.assertEqual(len(counts), 4)
        mean = sum(counts.values()) / len(counts)
        self.assertGreaterEqual(min(counts.values()), mean / 10, counts)

    def test_attach_falls_on_an_exec(self):
        """The program that comes then has its own ideas of SIGTRAP: it lives, and if it is watched then rightly."""
        chance = mwlive.chance(self.id())
        watched = 0
        times = mwlive.attempts(4, 30)
        for number in range(times):
            with self.subTest(number, seed=mwlive.SEED):
                watched += self.attach_to_an_exec(chance.randrange(30000))
        print(f'{watched} of {times} were watched after their exec', flush=True)

    def test_attach_falls_on_an_exec_with_the_same_addresses(self):
        """What was put into the one program is not looked for in the other, whose own memory lies there."""
        chance = mwlive.chance(self.id())
        for number in range(mwlive.attempts(4, 20)):
            with self.subTest(number, seed=mwlive.SEED):
                self.attach_to_an_exec(chance.randrange(30000), 'crowded')

    def test_detach_falls_on_an_exec_with_the_same_addresses(self):
        for number in range(mwlive.attempts(2, 10)):
            with self.subTest(number):
                target = mwlive.Target(self, 'exec_owns_sigtrap', 'told', 'crowded')
                watch = mwlive.Watch(self, target.pid, complete=None)
                target.go()
                watch.process.send_signal(signal.SIGINT)
                report, = watch.wait()
                self.assertIn(report['window']['ended'], ('interrupt', 'exec'))
                self.assertEqual(target.line(), f'ready {target.pid}')
                target.go()
                target.done()
                mwjump.check_text_of_files(self, target.pid)
                target.finish()

    def attach_to_an_exec(self, microseconds, *options):
        """True if the new program was watched."""
        directory = tempfile.mkdtemp(prefix='mwlive-')
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        path = os.path.join(directory, 'report.json')
        target = Adopted(self, subprocess.Popen([mwlive.target_path('exec_owns_sigtrap'), str(microseconds), *options],
                                                stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        memwatch = subprocess.Popen([mwlive.config.memwatch, '-p', str(target.pid), '--engine', mwlive.config.engine,
                                     '--quiet', '--json', path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True)
        self.addCleanup(mwlive.kill_quietly, memwatch)
        self.assertEqual(target.line(), f'ready {target.pid}')
        # Watching already, about to, or at its end since the exec.
        mwlive.wait_until(lambda: memwatch.poll() is not None or self.watches(memwatch, target),
                          'memwatch makes up its mind')
        try:
            target.go()
            answer = target.done()
        except AssertionError as e:
            memwatch.send_signal(signal.SIGINT)
            raise AssertionError(f'{e}; memwatch: {memwatch.communicate(timeout=mwlive.PATIENCE)} '
                                 f'{memwatch.returncode}') from e
        if memwatch.poll() is None:
            memwatch.send_signal(signal.SIGINT)
        out, err = memwatch.communicate(timeout=mwlive.PATIENCE)
        self.assertIn((memwatch.returncode, out, err.count('\n')), ((0, '', 0), (1, '', 1)), err)
        ended = None
        if memwatch.returncode == 0:
            report, = mwlive.load_reports(path)
            mwlive.check_report(self, report)
            ended = report['window']['ended']
            if ended == 'interrupt':
                mwlive.compare(self, answer, report)
        self.assertEqual(mwlive.status(target.pid)['TracerPid'], '0')
        mwjump.check_text_of_files(self, target.pid)
        target.finish()
        return ended == 'interrupt'

    @staticmethod
    def watches(memwatch, target):
        """The window of the process as it is now has begun: its code is other than its files'."""
        if mwlive.status(target.pid).get('State', 'X')[0] != 'S' or memwatch.poll() is not None:
            return False
        for m in mwlive.mappings(target.pid):
            if 'x' in m[2] and '/libc' in m[4]:
                with open(m[4], 'rb') as f:
                    f.seek(m[3])
                    return mwlive.read_memory(target.pid, m[0], m[1] - m[0]) != f.read(m[1] - m[0])
        return False

    def test_forks_while_return_sites_are_lifted(self):
        # Processes that fork without end are slow where all else is busy as well.
        answer, _ = self.exact('sites_shared', seconds=3 * mwlive.PATIENCE)
        # Without a stop at each call its work may be done before it first forks.
        if mwlive.config.engine == 'trap':
            self.assertGreater(answer['forks'], 0)


if __name__ == '__main__':
    mwlive.main()
