#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Processes that are named by what they are called, by their user or their cgroup: all of them are watched, with what comes
and goes meanwhile.
"""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import mwlive

NAME = f'mwnamed{os.getpid() % 100000}'


class Named(unittest.TestCase):
    def setUp(self):
        directory = tempfile.mkdtemp(prefix='mwlive-named-')
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        self.path = os.path.join(directory, NAME)
        shutil.copy(mwlive.target_path('simple'), self.path)
        self.json = os.path.join(directory, 'report.json')

    def start(self, count):
        return [mwlive.Target(self, 'simple', argv=[self.path]) for _ in range(count)]

    def watch(self, *arguments, seconds='0.5', status=0):
        """(the reports by pid, messages)."""
        _, messages = mwlive.memwatch(self, *arguments, '-d', seconds, '--engine', mwlive.config.engine, '--quiet',
                                      '--json', self.json, '--force', status=status)
        if status:
            return {}, messages
        with open(self.json, encoding='utf-8') as f:
            report = json.load(f)
        reports = report['processes'] if 'processes' in report else [report]
        return {r['target']['pid']: r for r in reports}, messages

    def test_name(self):
        targets = self.start(3)
        pids = {t.pid for t in targets}
        for name in (NAME, self.path):
            reports, messages = self.watch('-p', name)
            self.assertEqual((set(reports), messages), (pids, ''))
        # Beside one that is named by its id, and is among them.
        self.assertEqual(list(self.watch('-p', f'{targets[2].pid},{NAME}')[0])[0], targets[2].pid)
        for target in targets:
            target.go()
            target.done()
            target.finish()

    def test_report(self):
        """All of them in one table, summed by place; of a recording any of them."""
        targets = self.start(5)
        recording = self.json + '.mw'
        watch = subprocess.Popen([mwlive.config.memwatch, '-p', NAME, '--engine', mwlive.config.engine, '-o', recording],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(mwlive.kill_quietly, watch)
        mwlive.wait_until(lambda: os.path.exists(recording), 'the windows have begun')
        for target in targets:
            target.go()
            target.done()
        watch.send_signal(signal.SIGINT)
        text = watch.communicate(timeout=mwlive.PATIENCE)[0]
        self.assertEqual(watch.returncode, 0)
        self.assertRegex(text, r'^5 processes, watched .*; nothing lost\n')
        self.assertIn(' in 5 of 5 processes: ', text)
        self.assertNotIn('=== process', text)
        for target in targets:
            self.assertRegex(text, rf'(?m)^ +{target.pid}  mwnamed\d* ')
        for options, pids in ((['--pid', targets[3].pid], [targets[3].pid]), (['-p', NAME], [t.pid for t in targets]),
                              (['-p', f'{targets[4].pid},{targets[1].pid}'], [targets[1].pid, targets[4].pid])):
            report = json.loads(mwlive.memwatch(self, 'report', recording, '--json', '-', '--quiet', *options)[0])
            self.assertEqual([r['target']['pid'] for r in report.get('processes', [report])], pids)
        by = mwlive.memwatch(self, 'report', recording, '--by', 'process', '-p', targets[0].pid)[0]
        self.assertIn(str(targets[0].pid), by)
        self.assertNotIn(str(targets[1].pid), by)
        self.assertIn('the recording has no such process',
                      mwlive.memwatch(self, 'report', recording, '-p', '1', status=2)[1])
        for target in targets:
            target.finish()

    def test_one_is_wanted(self):
        first, second = self.start(2)
        for command in ('heap', 'doctor'):
            _, messages = mwlive.memwatch(self, command, '-p', NAME, status=2)
            self.assertIn(f'{first.pid} ({self.path})'[:30], messages)
            self.assertIn(str(second.pid), messages)
            self.assertIn(f'memwatch {command} -p ', messages)
        second.process.kill()
        second.process.wait()
        for command in ('heap', 'doctor'):
            out, _ = mwlive.memwatch(self, command, '-p', NAME)
            self.assertIn(str(first.pid), out)

    def test_group(self):
        [target] = self.start(1)
        with open(f'/proc/{target.pid}/cgroup', encoding='utf-8') as f:
            path = max((line.rstrip('\n').split(':', 2)[2] for line in f), key=len)
        user = str(os.geteuid())
        for arguments in (['--user', user], ['--cgroup', path], ['--user', user, '--cgroup', path]):
            self.assertEqual(set(self.watch('-p', NAME, *arguments)[0]), {target.pid}, arguments)
        for arguments in (['--user', '4242424'], ['--cgroup', '/no/such/group'], ['--container', 'nosuchthing']):
            _, messages = self.watch('-p', NAME, *arguments, status=2)
            self.assertIn(f"--pid '{NAME}': there is no such process that is also in the given group", messages)

    def test_none(self):
        for arguments, message in ((['-p', 'no such name'], "--pid 'no such name'"),
                                   (['--user', 'no-such-user'], 'there is no such user'),
                                   (['--cgroup', 'no-such-unit'], "--cgroup 'no-such-unit'"),
                                   (['--container', 'no-such-one'], "--container 'no-such-one'")):
            self.assertIn(message, self.watch(*arguments, status=2)[1])

    def test_not_watchable(self):
        """One of those that have the name can't be watched: the others are, and it is not left out in silence."""
        targets = self.start(2)
        other = subprocess.Popen([mwlive.target_path('cxxnew_static')], executable=self.path, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE)
        self.addCleanup(mwlive.kill_quietly, other)
        tracer = subprocess.Popen(['gdb', '-q', '-nx', '-batch', '-p', str(other.pid), '-ex', 'shell sleep 60'],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(mwlive.kill_quietly, tracer)
        mwlive.wait_until(lambda: mwlive.status(other.pid).get('TracerPid', '0') != '0', 'gdb has attached')
        reports, messages = self.watch('-p', NAME)
        self.assertEqual(set(reports), {t.pid for t in targets})
        self.assertRegex(messages, rf'process {other.pid} \(.*\) is not watched: .*traced')
        self.watch('-p', f'{NAME},{other.pid}', status=1)
        # That there is no leak in the others is no success.
        self.assertIn('--fail-on leak: nothing was found, but 1 process could not be watched',
                      self.watch('-p', NAME, '--fail-on', 'leak', status=1)[1])

    def test_come_and_go(self):
        """Processes that end while memwatch finds and attaches to them."""
        stays = self.start(2)
        ended = threading.Event()

        def spawn():
            number = 0
            while not ended.is_set():
                number += 1
                with subprocess.Popen([self.path], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as run:
                    time.sleep(number % 7 * 0.02)
                    run.kill()
        threads = [threading.Thread(target=spawn) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(mwlive.attempts(4, 40)):
                reports, messages = self.watch('-p', NAME)
                self.assertLessEqual({t.pid for t in stays}, set(reports))
                for line in messages.splitlines():
                    self.assertRegex(line, rf'process \d+ \(.*\) is not watched: ')
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        for target in stays:
            target.go()
            target.done()
            target.finish()


if __name__ == '__main__':
    mwlive.main()
