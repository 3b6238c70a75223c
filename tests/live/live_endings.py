#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Processes that end by themselves are looked at before; children that end in their parent's memory are not it."""
import os
import shutil
import signal
import subprocess
import unittest

import mwlive
import mwrec

PAGE = 4096
STATUS = {'return': 7, 'exit': 7, '_exit': 7, 'thread': 7, 'last': 0, 'handler': 7, 'together': 7}
RUNS_ATEXIT = ('return', 'exit', 'thread', 'last')
PYTHON = 'import sys; keep = [bytes(n) for n in range(600, 3000)]; sys.stdout.write(str(len(keep)))'
SQL = 'create table t(a, b); insert into t values(1, zeroblob(200000)); select count(*) from t;'


def launch(test, *command, engine=None):
    """A command run under memwatch, without its children: its report, and the recording."""
    directory = mwrec.directory(test)
    json, recording = (os.path.join(directory, name) for name in ('report.json', 'recording.mw'))
    run = subprocess.run(
        [mwlive.config.memwatch, '--engine', engine or mwlive.config.engine, *mwlive.patient(engine), '--no-children',
         '--quiet', '--json', json, '-o', recording, '--', *command], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=mwlive.PATIENCE, check=False, env=dict(os.environ, PYTHONHASHSEED='0', LC_ALL='C'))
    test.assertEqual(run.returncode, 0, run.stderr)
    report, = mwlive.load_reports(json)
    mwlive.check_report(test, report)
    return report, recording


class Endings(unittest.TestCase):
    def check_end(self, report, status):
        self.assertEqual((report['window']['ended'], report['target']['exit_status']), ('exit', status))
        space = report['address_space']
        self.assertIsNotNone(space, 'nobody looked')
        self.assertIsNotNone(space['end'], 'nobody looked at the end')
        self.assertEqual(space['end']['memwatch']['reserved'], 0)
        last = report['memory'][-1]
        resident = sum(kind['resident'] for kind in space['end'].values())
        self.assertGreater(last['rss'], 0)
        # The kernel counts in batches, and pages come while it is counted.
        self.assertAlmostEqual(resident, last['rss'], delta=last['rss'] * 0.1 + (1 << 20))
        return space

    def check_endings(self, report, how, arenas=True):
        space = self.check_end(report, STATUS[how])
        self.assertEqual(mwlive.total_of(mwlive.select(report, 'endings_heap'))['impacting'],
                         {'count': 10, 'bytes': 10000})
        kept = mwlive.total_of(mwlive.select(report, 'endings_kept_until_exit'))
        freed = how in RUNS_ATEXIT
        self.assertEqual((kept['impacting']['count'], kept['transient']['count']), (int(not freed), int(freed)))
        stack, = (s for s in report['stacks'] if any(f['function'] == 'endings_map' for f in s['frames']))
        self.assertEqual((stack['impacting']['bytes'], stack['resident']), (64 * PAGE, 10 * PAGE))
        figures = space['arenas']['end']
        self.assertEqual(figures is not None, arenas)
        if arenas:
            self.assertEqual(figures['size'], figures['used'] + figures['free'])
        return space

    def heaps_of(self, recording, function):
        report, = mwrec.reports(self, recording, '--blocks', '100', '--filter', f'function:{function} type:impacting')
        return {row['heap'] for row in report['blocks']['rows']}

    def test_attached(self):
        for how in STATUS:
            with self.subTest(how):
                target = mwlive.Target(self, 'endings', how)
                recording = os.path.join(mwrec.directory(self), 'recording.mw')
                watch = mwlive.Watch(self, target.pid, options=('-o', recording))
                target.go()
                self.assertEqual(target.process.wait(mwlive.PATIENCE), STATUS[how])
                report, = watch.wait()
                space = self.check_endings(report, how)
                # pthread_exit has a library loaded.
                self.assertEqual([m for m in space['unattributed'] if not m['path']], [])
                self.assertEqual(self.heaps_of(recording, 'endings_heap'), {'main'})
                again, = mwrec.reports(self, recording)
                mwrec.compare(self, report, again)

    def test_launched(self):
        for how in STATUS:
            with self.subTest(how):
                report, recording = launch(self, mwlive.target_path('endings'), how, 'now')
                self.check_endings(report, how)
                self.assertEqual(self.heaps_of(recording, 'endings_heap'), {'main'})

    def test_musl(self):
        """Its loader and its ways to the end are others."""
        if not os.path.exists(mwlive.target_path('endings_musl')):
            self.skipTest('musl-gcc is not installed')
        for how in STATUS:
            with self.subTest(how):
                report, _ = launch(self, mwlive.target_path('endings_musl'), how, 'now')
                self.check_endings(report, how, arenas=False)

    def test_killed(self):
        """Nobody could look at it, or it is as with the others."""
        target = mwlive.Target(self, 'endings', 'kill')
        watch = mwlive.Watch(self, target.pid)
        target.go()
        self.assertEqual(target.process.wait(mwlive.PATIENCE), -signal.SIGKILL)
        report, = watch.wait()
        self.assertEqual(report['window']['ended'], 'exit')
        space = report['address_space']
        self.assertIsNotNone(space['start'])
        if mwlive.config.engine == 'jump':
            self.assertIsNone(space['end'])
            self.assertEqual(report['memory'][-1]['rss'], 0)

    def test_programs(self):
        """What is exact is the same with both engines."""
        for command in (('/usr/bin/python3', '-c', PYTHON), ('sqlite3', ':memory:', SQL), ('redis-server', '--version'),
                        ('dash', '-c', 'x=1; /bin/true; nosuch 2>/dev/null; (exit 3); exit 5')):
            if not shutil.which(command[0]):
                continue
            with self.subTest(command[0]):
                reports = [launch(self, *command, engine=engine)[0] for engine in ('trap', 'jump')]
                for report in reports:
                    self.check_end(report, 5 if command[0] == 'dash' else 0)
                one, other = ({'heap': {a: report['totals']['heap'][a] for a in mwlive.AMOUNTS},
                               'arenas': report['address_space']['arenas'],
                               'space': {kind: values['reserved'] for kind, values in
                                         report['address_space']['end'].items()}}
                              for report in reports)
                for what in (one, other):
                    # How much of the stack's first page the environment takes is random.
                    del what['space']['stack']
                # redis takes random numbers and the time.
                if command[0] != 'redis-server':
                    mwrec.compare(self, one, other, command[0])


class Children(unittest.TestCase):
    COUNT = 150

    def test_that_end_in_the_memory_of_their_parent(self):
        answer, report = mwlive.observe(self, 'vfork_spawn_fork', self.COUNT, options=('--track', 'heap'))
        self.assertEqual(answer['children'], 4 * self.COUNT)
        self.assertEqual(mwlive.total_of(mwlive.select(report, 'errands_block'))['impacting'],
                         {'count': 1, 'bytes': 500})
        self.check_looks(report)
        self.assertIsNotNone(report['address_space']['end'])

    def check_looks(self, report):
        """Each look at the memory is a sample: one a second, and few for children that began to wait too early."""
        self.assertLess(len(report['memory']), 4 + report['window']['seconds'] + self.COUNT // 10)

    def test_of_a_shell(self):
        for shell in ('dash', 'bash'):
            if not shutil.which(shell):
                continue
            with self.subTest(shell):
                script = f'i=0; while [ $i -lt {self.COUNT} ]; do /bin/true; i=$((i+1)); done; exit 6'
                report, _ = launch(self, shell, '-c', script)
                self.assertEqual((report['window']['ended'], report['target']['exit_status']), ('exit', 6))
                self.assertIsNotNone(report['address_space']['end'])
                self.check_looks(report)


if __name__ == '__main__':
    mwlive.main()
