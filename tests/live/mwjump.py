# SPDX-License-Identifier: MIT
"""What the tests of the jump engine share: the tool that tells events (tests/tools/events.c), and what /proc says."""
import os
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
            elif '=' in line:
                key, _, value = line.partition('=')
                self.answer[key] = int(value)
        self.test.assertTrue(out.endswith('done\n'), out)
        return self.answer
