#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--html: the page of a live window and of a recording, taken apart: it says what JSON reports say, of any interval."""
import os
import random
import shutil
import subprocess
import unittest

import mwhtml
import mwlive
import mwrec

HOSTILE = 'a"\'<script>alert(1)<!-- --></script><b>&amp;'


def memwatch(*arguments):
    return subprocess.run([mwlive.config.memwatch, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=mwlive.PATIENCE, check=False)


class Html(unittest.TestCase):
    def setUp(self):
        self.directory = mwrec.directory(self)
        self.page = self.path('page.html')

    def path(self, name):
        return os.path.join(self.directory, name)

    def watch(self, *targets, options=(), **more):
        """All of the targets' work in one window; the page, its report the same as the JSON's."""
        watch = mwlive.Watch(self, *(target.pid for target in targets), options=('--html', self.page, *options), **more)
        for target in targets:
            target.go()
        answers = [target.done() for target in targets]
        watch.stop()
        for target in targets:
            target.finish()
        page = mwhtml.Page(self, self.page)
        mwhtml.same_report(self, page, watch.json)
        self.assertEqual(os.stat(self.page).st_mode & 0o777, 0o600)
        return page, answers

    def report(self, recording, *options):
        """The page of a recording."""
        page, json = self.path('again.html'), self.path('again.json')
        run = memwatch('report', recording, '--quiet', '--html', page, '--json', json, *options)
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, '', ''))
        found = mwhtml.Page(self, page)
        mwhtml.same_report(self, found, json)
        return found

    def check_zoom(self, recording, page, count, seed):
        """What the page says of bins is what a report of that interval says."""
        (_, process, cells, _), = page.processes
        chance = random.Random(seed)
        stacks = [(stack['id'], stack['api'], stack['kind']) for stack in page.report['stacks']]
        for _ in range(count):
            begin, end = sorted(chance.sample(range(process['bins'] + 1), 2))
            last = end == process['bins']
            edges = [(process['from_ns'] + edge * process['bin_ns']) / 1e9 for edge in (begin, end)]
            # The report's interval may have an end of its own.
            if last and page.report['window']['to'] < page.report['window']['seconds']:
                edges[1], last = process['to_ns'] / 1e9, False
            report = mwrec.interval(self, recording, edges[0], None if last else edges[1])
            sums = mwhtml.zoom(cells, begin, end, lambda row: stacks[row[0]])
            expected = {(stack['id'], stack['api'], stack['kind']): mwhtml.of_report(stack)
                        for stack in report['stacks']}
            expected = {key: value for key, value in expected.items() if value != mwhtml.nothing()}
            self.assertEqual(sums, expected, (begin, end))

    def test_known_answers(self):
        for name in ('exact', 'vm'):
            with self.subTest(name):
                page, (answer,) = self.watch(mwlive.Target(self, name))
                mwlive.compare(self, answer, page.report)

    def test_recording(self):
        """The same page of the recording; then any part of it, and parts of that."""
        recording = self.path('kept.mw')
        for name, arguments in (('threads', (4, 2000, 50)), ('vm', ())):
            with self.subTest(name):
                target = mwlive.Target(self, name, *arguments)
                page, _ = self.watch(target, options=('-o', recording))
                again = self.report(recording)
                self.assertEqual(again.report, page.report)
                (_, process, cells, _), = page.processes
                (_, other, other_cells, _), = again.processes
                # Whose length is known has bins that are cut to it.
                steps = ('bins', 'bin_ns', 'coarse', 'cells', 'owners', 'lifetimes')
                self.assertEqual({key: process[key] for key in process if key not in steps},
                                 {key: other[key] for key in other if key not in steps})
                self.assertEqual(mwhtml.zoom(cells, 0, process['bins'], lambda row: row[:3]),
                                 mwhtml.zoom(other_cells, 0, other['bins'], lambda row: row[:3]))
                self.check_zoom(recording, page, 6, 0)
                if name == 'threads':
                    self.assertEqual(process['heaps'], [f'arena {n}' for n in range(1, 5)])
                self.check_zoom(recording, again, 6, 1)
                seconds = page.report['window']['seconds']
                part = self.report(recording, '--from', f'{seconds * 0.3:.9f}', '--to', f'{seconds * 0.8:.9f}')
                self.check_zoom(recording, part, 6, 2)

    def test_several(self):
        page, answers = self.watch(mwlive.Target(self, 'simple', 50), mwlive.Target(self, 'simple', 70))
        self.assertEqual(len(page.processes), 2)
        for answer, (report, *_) in zip(answers, page.processes):
            mwlive.compare(self, answer, report)

    def test_marks(self):
        """A page has them also where there is no recording."""
        page, _ = self.watch(mwlive.Target(self, 'simple', 50), options=('--mark-every', 0.01))
        count = round(page.report['window']['seconds'] * 1e9) // 10**7
        self.assertGreater(count, 0)
        self.assertEqual([(mark['number'], mark['name'], mark['at']) for mark in page.report['marks']],
                         [(n, f'mark {n}', n / 100) for n in range(1, count + 1)])

    def test_launched(self):
        """To standard output, where the command's own stands before it."""
        run = memwatch('--engine', mwlive.config.engine, '--html', '-', '--', '/bin/sh', '-c', 'exit 3')
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        with open(self.page, 'w', encoding='utf-8') as f:
            f.write(run.stdout)
        page = mwhtml.Page(self, self.page)
        self.assertEqual(page.report['target']['exit_status'], 3)
        self.assertGreater(page.report['totals']['heap']['size']['count'], 0)

    def test_hostile(self):
        """Names say nothing in the page: it is the same, but for what is packed."""
        plain, _ = self.watch(mwlive.Target(self, 'simple', 50))
        program = self.path(HOSTILE.replace('/', ':'))
        shutil.copy(mwlive.target_path('simple'), program)
        page, (answer,) = self.watch(mwlive.Target(self, 'simple', argv=[program, '50', HOSTILE]))
        mwlive.compare(self, answer, page.report)
        self.assertEqual(page.report['target']['exe'], program)
        self.assertEqual(page.report['target']['command'][-1], HOSTILE)
        self.assertEqual(page.plain(), plain.plain())

    def test_refused(self):
        """What --json refuses is refused, before anything is touched."""
        target = mwlive.Target(self, 'simple', 50)
        snapshot = mwlive.Snapshot(target.pid)
        recording = self.path('kept.mw')
        nowhere = self.path('nowhere/page.html')
        at = ('-p', target.pid, '-d', 1, '--engine', mwlive.config.engine)
        for status, arguments, words in (
                (2, (*at, '--html', ''), ('--html',)),
                (1, (*at, '--html', nowhere), (nowhere, 'directory')),
                (1, (*at, '--html', self.directory), (self.directory,)),
                (2, (*at, '--html', '-', '--json', '-'), ('--html', '--json', 'standard output')),
                (2, (*at, '--html', self.page, '--json', self.page), ('--html', '--json', 'one file')),
                (2, (*at, '--html', recording, '-o', recording), ('--html', '--output', 'one file')),
                (2, ('report', '/dev/null', '--html', '/dev/null', '--html', ''), ('--html',))):
            with self.subTest(arguments):
                run = memwatch(*arguments)
                self.assertEqual((run.returncode, run.stdout), (status, ''))
                for word in words:
                    self.assertIn(word, run.stderr)
        self.assertEqual(os.listdir(self.directory), [])
        snapshot.check(self)
        page, _ = self.watch(target, options=('-o', recording))
        self.assertTrue(page.processes)
        run = memwatch('report', recording, '--html', recording)
        self.assertEqual((run.returncode, run.stdout), (2, ''))
        self.assertIn('the recording itself', run.stderr)
        os.unlink(self.page)
        run = memwatch('report', recording, '--quiet', '--from', 1e6, '--html', self.page)
        self.assertEqual((run.returncode, os.path.exists(self.page)), (2, False))


if __name__ == '__main__':
    mwlive.main()
