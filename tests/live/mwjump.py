# SPDX-License-Identifier: MIT
"""What the tests of the jump engine share: the tool that tells events (tests/tools/events.c), and what /proc says."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import mwlive


def events_path():
    return os.path.join(os.path.dirname(mwlive.config.targets), 'tools', 'events')


def has_engine(name):
    """Was memwatch built with that engine?"""
    run = subprocess.run([mwlive.config.memwatch, 'doctor', '-p', str(os.getpid()), '--engine', name],
                         capture_output=True, stdin=subprocess.DEVNULL, check=False, timeout=mwlive.PATIENCE)
    return run.returncode != 2


def need_engine(name):
    if not has_engine(name):
        raise unittest.SkipTest(f'this memwatch has no engine {name}')


class Events:
    """The tool attached to a process with an engine. `answer` after stop(): what it says of itself."""

    def __init__(self, test, pid, engine, *options, out=False):
        self.test = test
        self.directory = tempfile.mkdtemp(prefix='mwlive-events-')
        test.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.path = os.path.join(self.directory, 'events')
        self.answer = {}
        self.differences = []
        out_options = ['--out', self.path] if out else []
        self.process = subprocess.Popen([events_path(), '--engine', engine, '--pid', str(pid), *out_options,
                                         *map(str, options)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        test.addCleanup(mwlive.kill_quietly, self.process)
        line = self.process.stdout.readline()
        if line != 'attached\n':
            _, err = self.process.communicate(timeout=mwlive.PATIENCE)
            raise AssertionError(f'events: {line!r} {err!r}')

    def stop(self, seconds=mwlive.PATIENCE):
        """End the window; the tool's answer."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=seconds)
        self.test.assertEqual((self.process.returncode, err), (0, ''), out)
        telling = False
        for line in out.splitlines():
            if line in ('differences:', 'end of differences'):
                telling = line == 'differences:'
            elif telling:
                self.differences.append(line)
            elif line.startswith('left_behind: '):
                self.test.fail(line)
            elif '=' in line:
                key, _, value = line.partition('=')
                self.answer[key] = int(value)
        self.test.assertTrue(out.endswith('done\n'), out)
        return self.answer


class Attempt:
    """memwatch on a target that it may have to refuse: whichever it is, the target does its work undisturbed.

    `prefix`: a command that runs memwatch, such as one that takes privileges away. `report` is None where it refused,
    and `error` what it said then.
    """

    def __init__(self, test, target, engine=None, prefix=(), options=()):
        self.test = test
        self.target = target
        self.engine = engine or mwlive.config.engine
        self.report, self.error = None, ''
        self.directory = tempfile.mkdtemp(prefix='mwlive-attempt-')
        test.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        os.chmod(self.directory, 0o1777)  # it may run as somebody else
        self.json = os.path.join(self.directory, 'report.json')
        self.before = mwlive.Snapshot(target.pid)
        self.process = subprocess.Popen(
            [*prefix, mwlive.config.memwatch, '-p', str(target.pid), '--engine', self.engine,
             *mwlive.patient(self.engine, options), '--quiet', '--json', self.json, *map(str, options)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        test.addCleanup(mwlive.kill_quietly, self.process)
        mwlive.wait_until(lambda: self.process.poll() is not None or self.begun(), 'memwatch begins or refuses')

    def begun(self):
        return self.before.touched() and all(mwlive.state(t) != 't' for t in mwlive.tids(self.target.pid))

    def finish(self, expected=0):
        """The target's work, and its end with that status; the report, or None."""
        self.target.go()
        answer = self.target.done()
        refused = self.process.poll() is not None
        if not refused:
            self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=mwlive.PATIENCE)
        if refused:
            self.error = err
            self.test.assertEqual((self.process.returncode, out), (1, ''), err)
            self.test.assertRegex(err, r'^memwatch: .{20,}', 'it says what stands in the way')
        else:
            self.test.assertEqual(self.process.returncode, 0, err)
            self.report, = mwlive.load_reports(self.json)
            mwlive.check_report(self.test, self.report)
            mwlive.compare(self.test, answer, self.report)
        self.before.check(self.test)
        self.target.finish(expected)
        return self.report


def strace(test, path):
    """What runs memwatch under strace, which writes down the files that it opens, its forks, and ptrace."""
    if not shutil.which('strace'):
        test.skipTest('no strace here')
    if mwlive.TOOL:
        test.skipTest(f'memwatch is under {mwlive.TOOL}')
    # With -D memwatch is our child, and strace its grandchild.
    return ('strace', '-D', '-f', '-o', path, '-e', 'signal=none',
            '-e', 'trace=open,openat,ptrace,fork,vfork,clone,clone3')


def read_trace(path, pid):
    """The lines of a trace, of all processes, once that one has ended."""
    def lines():
        with open(path, encoding='utf-8', errors='replace') as f:
            found = f.read().splitlines()
        return found if any(re.match(rf'{pid} +\+\+\+ ', line) for line in found) else None
    return mwlive.wait_until(lines, 'strace has written it all')


def steady_mappings(pid):
    """What is mapped where, without what a program changes by itself when it allocates."""
    return [m for m in mwlive.mappings(pid) if m[4] not in ('[heap]', '[stack]')]


def check_text_of_files(test, pid):
    """The code of each file that is mapped is what the file says."""
    checked = 0
    for start, end, permissions, offset, path in mwlive.mappings(pid):
        if 'x' not in permissions or not path.startswith('/') or 'w' in permissions:
            continue
        with open(f'/proc/{mwlive.live_tid(pid)}/root{path}', 'rb') as f:
            f.seek(offset)
            expected = f.read(end - start)
        test.assertEqual(mwlive.read_memory(pid, start, len(expected)) == expected, True, f'{path} is changed')
        checked += 1
    test.assertGreater(checked, 1)
