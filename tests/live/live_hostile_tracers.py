#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Targets that strace or gdb has a hold of: before memwatch comes, and while it is there."""
import shutil
import signal
import subprocess
import tempfile
import unittest

import mwjump
import mwlive

TOOLS = ('strace', 'gdb')


class Tool:
    """strace or gdb attached to a process (strace with `threads` false: to that thread alone). It lets it run on."""

    def __init__(self, test, name, tid, threads=True):
        if not shutil.which(name):
            test.skipTest(f'{name} is not installed')
        self.test, self.name, self.tid = test, name, tid
        self.log = tempfile.NamedTemporaryFile(prefix='mwlive-tool-')  # pylint: disable=consider-using-with
        test.addCleanup(self.log.close)
        command = {
            'strace': ['strace', *(['-f'] if threads else []), '-o', self.log.name, '-p', str(tid)],
            'gdb': ['gdb', '-nx', '-batch', '-iex', 'set debuginfod enabled off', '-p', str(tid), '-ex', 'continue',
                    '-ex', 'detach'],
        }[name]
        # A session of its own: gdb without a terminal would give the target's to itself.
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, start_new_session=True)
        test.addCleanup(self.kill)
        mwlive.wait_until(lambda: self.process.poll() is not None or self.holds_all(threads), f'{name} attaches')

    def kill(self):
        # Not before the target: that could die of a breakpoint of gdb's.
        mwlive.kill_quietly(self.process)

    def holds_all(self, threads):
        tids = mwlive.tids(self.tid) if threads else [self.tid]
        return self.holds(*tids) and not any(mwlive.state(t) == 't' for t in tids)

    def holds(self, *tids):
        return {mwlive.status(t).get('TracerPid') for t in tids or (self.tid,)} == {str(self.process.pid)}

    def attached(self):
        return self.process.poll() is None

    def end(self):
        """It lets go as it does when its user ends it."""
        self.process.send_signal(signal.SIGINT)
        out, _ = self.process.communicate(timeout=mwlive.PATIENCE)
        return out

    def until_exit(self):
        """It has seen the target's end."""
        out, _ = self.process.communicate(timeout=mwlive.PATIENCE)
        with open(self.log.name, encoding='utf-8', errors='replace') as f:
            return out + f.read()


class HostileTracers(unittest.TestCase):
    def memwatch(self, pid, engine=None):
        return subprocess.run([mwlive.config.memwatch, '-p', str(pid), '-d', '0.1', '--quiet', '--json', '/dev/null',
                               '--engine', engine or mwlive.config.engine], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=mwlive.PATIENCE, check=False)

    def refused(self, pid, tool):
        """One message that names who is in the way."""
        for engine in (mwlive.config.engine, 'auto'):
            run = self.memwatch(pid, engine)
            self.assertEqual((run.returncode, run.stdout), (1, ''), run.stderr)
            self.assertEqual(run.stderr.count('memwatch: '), 1, run.stderr)
            self.assertIn(f"by '{tool.name}' (pid {tool.process.pid})", run.stderr)

    def under(self, name, threads=True):
        """A target that is under a tool already, and stays so."""
        target = mwlive.Target(self, 'threads', 4, 2000, 50)
        tid = target.pid if threads else mwlive.tids(target.pid)[2]
        tool = Tool(self, name, tid, threads)
        self.assertTrue(tool.attached(), name)
        before = mwlive.Snapshot(target.pid)  # with gdb's breakpoints in it
        self.refused(target.pid, tool)
        self.assertTrue(tool.holds())
        self.assertFalse(before.touched())
        for other in set(mwlive.tids(target.pid)) - {tid}:
            self.assertEqual(mwlive.status(other)['TracerPid'], str(tool.process.pid) if threads else '0')
            self.assertNotIn(mwlive.state(other), 'tT')
        target.go()
        target.done()
        self.refused(target.pid, tool)
        self.assertTrue(tool.holds())
        target.finish()
        return tool.until_exit()

    def test_under_strace(self):
        self.assertIn('+++ exited with 0 +++', self.under('strace'))

    def test_under_gdb(self):
        self.assertIn('exited normally', self.under('gdb'))

    def test_one_thread_under_strace(self):
        """It had attached to the others; it detaches from them."""
        self.assertIn('+++ exited with 0 +++', self.under('strace', threads=False))

    def test_strace_lets_go_of_what_memwatch_was_refused(self):
        target = mwlive.Target(self, 'threads', 4, 2000, 50)
        tool = Tool(self, 'strace', target.pid)
        self.refused(target.pid, tool)
        tool.end()
        watch = mwlive.Watch(self, target.pid)
        target.go()
        mwlive.compare(self, target.done(), watch.stop())
        target.finish()

    def test_tools_that_come_and_go_inside_the_window(self):
        """Refused where memwatch traces; else they see a program that works, and take nothing away from the report."""
        for name in TOOLS:
            with self.subTest(name):
                target = mwlive.Target(self, 'threads', 4, 2000, 50)
                watch = mwlive.Watch(self, target.pid)
                tool = Tool(self, name, target.pid)
                self.assertEqual(tool.attached() and tool.holds(), mwlive.config.engine != 'trap')
                target.go()
                answer = target.done()
                if tool.attached():
                    tool.end()
                self.assertIsNone(target.process.poll(), 'the target has died')
                mwlive.compare(self, answer, watch.stop())
                target.finish()

    def test_tool_that_stays_when_the_window_ends(self):
        """What is in there can't be taken out: that is told, it does nothing any more, and goes when it can."""
        if mwlive.config.engine == 'trap':
            self.skipTest('nobody can attach to who is traced')
        for name in TOOLS:
            with self.subTest(name):
                self.stay(name)
        with self.subTest('at one thread only'):
            self.stay('strace', threads=False)

    def stay(self, name, threads=True):
        target = mwlive.Target(self, 'threads_sleeping', 8)
        before, mapped = mwlive.Snapshot(target.pid), mwjump.steady_mappings(target.pid)
        watch = mwlive.Watch(self, target.pid)
        target.go()
        tool = Tool(self, name, target.pid if threads else mwlive.tids(target.pid)[3], threads)
        watch.process.send_signal(signal.SIGINT)
        out, err = watch.process.communicate(timeout=mwlive.PATIENCE)
        self.assertEqual((watch.process.returncode, out), (1, b''), err)
        message = err.decode()
        self.assertEqual(message.count('memwatch: '), 1, message)
        self.assertIn('could not be removed', message)
        self.assertIn(f"by '{name}' (pid {tool.process.pid})", message)
        self.assertTrue(tool.holds())
        # It works on, with code in it that does nothing.
        self.assertTrue(before.touched())
        worker = mwlive.tids(target.pid)[-1]
        switches = mwlive.status(worker)['voluntary_ctxt_switches']
        mwlive.wait_until(lambda: mwlive.status(worker)['voluntary_ctxt_switches'] != switches, 'its threads go on')
        self.refused(target.pid, tool)
        tool.end()
        self.assertIsNone(target.process.poll(), 'the target has died')
        run = self.memwatch(target.pid)
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        before.check(self)
        self.assertEqual({m[4] for m in mwjump.steady_mappings(target.pid)}, {m[4] for m in mapped})
        target.send()
        target.done()
        target.finish()

    def test_tool_and_memwatch_killed_together(self):
        if mwlive.config.engine == 'trap':
            self.skipTest('nobody can attach to who is traced')
        target = mwlive.Target(self, 'threads_sleeping', 8)
        before = mwlive.Snapshot(target.pid)
        watch = mwlive.Watch(self, target.pid)
        target.go()
        tool = Tool(self, 'strace', target.pid)
        guard = mwlive.guard_of(watch.process.pid)
        watch.process.kill()
        watch.process.wait(mwlive.PATIENCE)
        tool.process.kill()
        tool.process.wait(mwlive.PATIENCE)
        self.assertIsNone(target.process.poll(), 'the target has died')
        # The guard may be about to let the last threads go.
        mwlive.await_end_of(guard)
        run = self.memwatch(target.pid)
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        before.check(self)
        target.send()
        target.done()
        target.finish()


if __name__ == '__main__':
    mwlive.main()
