#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--children: what a watched process forks is watched, and what it or its children become by exec; all of them are left as
they were, whatever becomes of memwatch or of their parent.
"""
import copy
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import mwlive


def recorders(pid):
    """The recorders' memory in a process, by inode."""
    with open(f'/proc/{pid}/maps', encoding='utf-8', errors='replace') as f:
        return {line.split()[4] for line in f if '/memfd:memwatch' in line}


class Children(unittest.TestCase):
    def start(self, *mode):
        self.mode = mode
        self.family = mwlive.Target(self, 'family', *mode)
        directory = tempfile.mkdtemp(prefix='mwlive-children-')
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        self.recording = os.path.join(directory, 'r.mw')
        self.watch = mwlive.Watch(self, self.family.pid, options=('--children', '-o', self.recording))
        self.family.go()
        answer = self.family.done()
        self.workers = [answer[f'worker{k}'] for k in range(4)]
        # They are copies of their parent, or run the same program.
        self.before = [copy.copy(self.watch.snapshots[0]) for _ in self.workers]
        for snapshot, pid in zip(self.before, self.workers):
            snapshot.pid = pid
        mwlive.wait_until(lambda: all(self.is_watched(pid, self.family.pid) for pid in self.workers), 'the workers are watched', seconds=15)

    def is_watched(self, pid, parent=None):
        """A forked child has its parent's hooks for a moment, and its recorder's memory: it is, and still is later."""
        if not self.is_hooked(pid, parent):
            return False
        time.sleep(0.1)
        return self.is_hooked(pid, parent)

    def is_hooked(self, pid, parent):
        if any(mwlive.state(tid) == 't' for tid in mwlive.tids(pid)):
            return False
        if mwlive.config.engine == 'jump' and not recorders(pid) - (recorders(parent) if parent else set()):
            return False
        code = [m for m in mwlive.mappings(pid) if 'x' in m[2] and '/libc' in m[4]]
        if not code:
            return False
        with open(code[0][4], 'rb') as f:
            f.seek(code[0][3])
            return f.read(code[0][1] - code[0][0]) != mwlive.read_memory(pid, code[0][0], code[0][1] - code[0][0])

    def check_workers(self, reports):
        by_pid = {}
        for report in reports:
            if report['target']['pid'] in self.workers:
                by_pid[report['target']['pid']] = report  # the last: what it has become
        self.assertEqual(set(by_pid), set(self.workers))
        for k, pid in enumerate(self.workers):
            count = 10 * (k + 1)
            self.assertEqual(mwlive.total_of(mwlive.select(by_pid[pid], 'family_leak'))['impacting'],
                             {'count': count, 'bytes': count * (60 + k)}, f'worker {k}')

    def let_work(self):
        self.family.go()
        self.family.done()

    def finish(self):
        for snapshot in self.before:
            if self.mode:  # at other addresses
                snapshot.text = {m: mwlive.read_memory(snapshot.pid, m[0], m[1] - m[0])
                                 for m in mwlive.mappings(snapshot.pid) if m[4] == '[vdso]'}
            snapshot.check(self)
        self.family.finish()

    def test_forked(self):
        self.start()
        self.let_work()
        self.watch.stop()
        reports = self.watch.reports
        self.assertEqual(len(reports), 5)
        self.check_workers(reports)
        document = json.loads(mwlive.memwatch(self, 'report', self.recording, '--json', '-', '--quiet')[0])
        self.check_workers(document['processes'])
        self.assertEqual({(c['pid'], c['watched']) for c in reports[0]['children']}, {(pid, True) for pid in self.workers})
        self.finish()

    def test_exec(self):
        self.start('exec')
        self.let_work()
        self.watch.stop()
        self.check_workers(self.watch.reports)
        self.finish()

    def test_daemons(self):
        """Who has forked them has ended before anybody can look."""
        if os.geteuid() != 0 or [int(n) for n in re.findall('[0-9]+', os.uname().release)[:2]] < [6, 6]:
            self.skipTest('the kernel does not tell of forks')
        self.start('daemon')
        self.let_work()
        self.watch.stop()
        self.check_workers(self.watch.reports)
        self.finish()

    def test_number_is_reused(self):
        """A worker that has the number of one that has ended is another process."""
        family = mwlive.Target(self, 'family', 'reuse')
        watch = mwlive.Watch(self, family.pid, options=('--children',))
        family.go()
        workers = []
        for k in range(2):
            workers.append(family.done()[f'worker{k}'])
            if workers[k] == 0:
                self.skipTest('the kernel does not give the numbers that are asked for')
            mwlive.wait_until(lambda: self.is_watched(workers[-1], family.pid), f'worker {k} is watched', seconds=15)
            family.go()
        family.done()
        watch.stop()
        self.assertEqual(workers[0], workers[1])
        leaks = [(r['target']['pid'], mwlive.total_of(mwlive.select(r, 'family_leak'))['impacting'])
                 for r in watch.reports[1:]]
        self.assertEqual(leaks[0], (workers[0], {'count': 10, 'bytes': 600}))
        self.assertEqual(leaks[-1], (workers[0], {'count': 20, 'bytes': 1220}))
        family.finish()

    def test_parent_is_killed(self):
        self.start()
        self.let_work()
        os.kill(self.family.pid, signal.SIGKILL)
        self.family.process.wait(mwlive.PATIENCE)
        self.watch.stop(intact=False)
        self.check_workers(self.watch.reports)

    def test_memwatch_is_killed(self):
        for mode in ((), ('exec',)):
            with self.subTest(mode):
                self.start(*mode)
                guard = mwlive.guard_of(self.watch.process.pid)
                self.watch.process.kill()
                self.watch.process.wait(mwlive.PATIENCE)
                mwlive.await_end_of(guard)
                self.let_work()
                self.watch.check_targets()
                self.finish()

    def test_newcomers(self):
        """What comes to have a name that is watched is watched as well, whoever has started it."""
        directory = tempfile.mkdtemp(prefix='mwlive-children-')
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        path, report = os.path.join(directory, f'mwkin{os.getpid() % 100000}'), os.path.join(directory, 'report.json')
        shutil.copy(mwlive.target_path('simple'), path)
        targets = [mwlive.Target(self, 'simple', argv=[path])]
        watch = subprocess.Popen([mwlive.config.memwatch, '-p', os.path.basename(path), '--children', '--engine',
                                  mwlive.config.engine, '--quiet', '--json', report], stderr=subprocess.PIPE, text=True)
        self.addCleanup(mwlive.kill_quietly, watch)
        mwlive.wait_until(lambda: self.is_watched(targets[0].pid), 'the first is watched')
        targets.append(mwlive.Target(self, 'simple', argv=[path]))
        mwlive.wait_until(lambda: self.is_watched(targets[1].pid), 'the second is watched', seconds=15)
        for target in targets:
            target.go()
            target.done()
        watch.send_signal(signal.SIGINT)
        self.assertEqual((watch.communicate(timeout=mwlive.PATIENCE)[1], watch.returncode), ('', 0))
        reports = mwlive.load_reports(report)
        self.assertEqual([r['target']['pid'] for r in reports], [t.pid for t in targets])
        for target, found in zip(targets, reports):
            mwlive.compare(self, target.answer, found)
            target.finish()

    def test_storm(self):
        """Children that come and go all the time, of every kind, all of whose ends their parent checks."""
        answer, report = mwlive.observe(self, 'fork_storm', 20, options=('--children',))
        mwlive.compare(self, answer, report)

    def test_killed_in_storm(self):
        """At whatever moment of following them memwatch is killed, none of them comes to harm."""
        chance = mwlive.chance(self.id())
        for _ in range(mwlive.attempts(2, 8)):
            target = mwlive.Target(self, 'fork_storm', 30)
            before = mwlive.Snapshot(target.pid)
            watch = subprocess.Popen([mwlive.config.memwatch, '-p', str(target.pid), '--children', '--engine',
                                      mwlive.config.engine, '--quiet'], stderr=subprocess.DEVNULL)
            self.addCleanup(mwlive.kill_quietly, watch)
            mwlive.wait_until(lambda: mwlive.guard_of(watch.pid), 'it stands by')
            guard = mwlive.guard_of(watch.pid)
            target.go()
            time.sleep(chance.uniform(0, 1.5))
            watch.kill()
            watch.wait(mwlive.PATIENCE)
            mwlive.await_end_of(guard)
            target.done()
            before.check(self)
            target.finish()

    def launch(self, *arguments):
        document, _ = mwlive.memwatch(self, '--engine', mwlive.config.engine, '--quiet', '--json', '-', '--html', '/dev/null', *arguments)
        document = json.loads(document)
        return document.get('processes', [document])

    def test_launched(self):
        """A command that becomes another program is still the command."""
        reports = self.launch('--', 'sh', '-c', 'exec sleep 1')
        self.assertEqual([(r['target']['comm'], r['window']['ended']) for r in reports], [('sh', 'exec'), ('sleep', 'exit')])
        self.assertEqual(reports[0]['target']['pid'], reports[1]['target']['pid'])
        self.assertGreater(reports[1]['window']['seconds'], 0.5)
        reports = self.launch('--no-children', '--', 'sh', '-c', 'exec sleep 1')
        self.assertEqual([(r['target']['comm'], r['window']['ended']) for r in reports], [('sh', 'exec')])
        # What it starts is watched, and what outlives it does not keep memwatch.
        reports = self.launch('--', 'sh', '-c', 'sleep 30 & sleep 1; kill $!')
        # One that takes its time to become sleep is watched as a sh before.
        self.assertEqual(sorted(r['target']['comm'] for r in reports if r['window']['ended'] != 'exec'), ['sh', 'sleep', 'sleep'])

    def test_outlived(self):
        process = subprocess.Popen([mwlive.config.memwatch, '--engine', mwlive.config.engine, '--quiet', '--', 'sh', '-c',
                                    'sleep 60 >/dev/null 2>&1 & echo $!; sleep 0.7'], stdout=subprocess.PIPE, text=True)
        self.addCleanup(mwlive.kill_quietly, process)
        pid = int(process.communicate(timeout=mwlive.PATIENCE)[0])
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        self.assertEqual(process.returncode, 0)
        self.assertEqual((mwlive.state(pid), mwlive.status(pid)['TracerPid'], recorders(pid)), ('S', '0', set()))

    def test_both(self):
        _, messages = mwlive.memwatch(self, '--children', '--no-children', '-p', os.getpid(), status=2)
        self.assertIn('opposites', messages)


if __name__ == '__main__':
    mwlive.main()
