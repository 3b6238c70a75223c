#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports of live windows: their totals in the programs that they are for are the report's, and the recording gives the same."""
import os
import subprocess
import unittest

import mwexport
import mwlive
import mwrec

FORMATS = ('pprof', 'heaptrack.gz', 'collapsed', 'speedscope', 'callgrind', 'dhat')  # files' names, too
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'programs', 'frames.py')


class Export(unittest.TestCase):
    def setUp(self):
        self.directory = mwrec.directory(self)

    def path(self, name):
        return os.path.join(self.directory, name)

    def asked(self, *formats):
        return [word for form in formats for word in ('--export', f'{form.split(".")[0]}:{self.path(form)}')]

    def read(self, name):
        with open(self.path(name), 'rb') as file:
            return file.read()

    def check_totals(self, report):
        """Of all formats."""
        wanted = mwexport.wanted(report)
        pprof = mwexport.Pprof(self.path('pprof'))
        pprof.check(self.path('pprof'))
        self.assertEqual(pprof.totals, wanted)
        self.assertEqual(sum(mwexport.fold(self.read('collapsed').decode()).values()), wanted['inuse_space'])
        self.assertEqual(mwexport.Callgrind(self.path('callgrind')).totals, wanted)
        self.assertEqual(mwexport.speedscope(self.path('speedscope')), wanted)
        _, total, totals = mwexport.dhat(self.path('dhat'))
        self.assertEqual(totals, wanted)
        self.assertGreaterEqual(total['gb'], total['eb'])
        heaptrack = mwexport.Heaptrack(self.path('heaptrack.gz'))
        self.assertEqual(heaptrack.totals, {measure: wanted[measure] for measure in heaptrack.totals})
        self.assertEqual(heaptrack.peak, total['gb'])
        return pprof

    def observe(self, argv, *options):
        target = mwlive.Target(self, 'it', argv=argv)
        kept = mwrec.Kept(self, target.pid, options=options)
        target.go()
        target.done()
        report, = kept.stop()
        target.finish()
        return report, kept.path

    def test_native(self):
        report, recording = self.observe([mwlive.target_path('deepstack'), '20', '1'], *self.asked(*FORMATS))
        pprof = self.check_totals(report)
        for form in FORMATS:
            mwlive.memwatch(self, 'export', recording, '--to', form.split('.')[0], '-o', self.path(f'again.{form}'))
            self.assertEqual(self.read(f'again.{form}'), self.read(form), form)
        # A call that was inlined is another line of its caller's location.
        inlined = [numbers for numbers, lines in pprof.locations.items() if len(lines) > 1]
        names = [frame['function'] for stack in report['stacks'] for frame in stack['frames'] if frame['inlined']]
        self.assertEqual(bool(inlined), bool(names))
        for number in inlined:
            self.assertIn(pprof.locations[number][0][0], names)

    def test_mappings_in_parts(self):
        """What went of a mapping in parts is of sizes that never came."""
        report, _ = self.observe([mwlive.target_path('vm')], *self.asked(*FORMATS))
        self.check_totals(report)
        lines = mwexport.Heaptrack(self.path('heaptrack.gz')).lines
        self.assertGreater(sum(line.startswith('a ') for line in lines), len({line for line in lines if line.startswith('+ ')}))

    def test_python(self):
        """Frames of scripts have their functions, files and lines."""
        report, recording = self.observe(['/usr/bin/python3', '-S', PROGRAM, '60', '7', self.path('answer')], *self.asked(*FORMATS))
        pprof = self.check_totals(report)
        shown = {(name, file, line) for stack in pprof.functions() for name, file, line in stack if file.endswith('.py')}
        known = {(frame['function'], frame['file'], frame['line']) for stack in report['stacks'] if stack['size']['count']
                 for frame in stack['frames'] if frame['language'] == 'python' and frame['file'].endswith('.py')}
        self.assertGreater(len(known), 5)
        self.assertEqual(shown, known)
        text, _ = mwlive.memwatch(self, 'export', recording, '--to', 'collapsed', '--frames', 'script')
        stacks = mwexport.fold(text)
        self.assertEqual(sum(stacks.values()), mwexport.wanted(report)['inuse_space'])
        self.assertTrue(any(stack[0].startswith('<module> (frames.py:') and stack[-1].startswith('make_bytes (frames.py:')
                            for stack in stacks), stacks)

    def test_sampled(self):
        """The estimates are exported, and the interval is said."""
        if mwlive.config.engine == 'trap':
            self.skipTest('it is engine jump that samples')
        target = mwlive.Target(self, 'sampled', '1')
        watch = mwlive.Watch(self, target.pid, options=('--sample', '64K', *self.asked(*FORMATS)), complete=False)
        target.go()
        target.done()
        report = watch.stop()
        target.finish()
        pprof = self.check_totals(report)
        self.assertEqual(pprof.head['Period'], '65536')
        self.assertEqual(pprof.head['PeriodType'], 'space bytes')

    def test_two_processes(self):
        """Each has labels or is a root of its own; a format that shows one alone fails, and the others are written."""
        targets = [mwlive.Target(self, 'deepstack', '5', '1') for _ in range(2)]
        watch = subprocess.Popen(
            [mwlive.config.memwatch, '-p', ','.join(str(target.pid) for target in targets), '-d', '1', '--settle', '0', '--quiet',
             '--engine', mwlive.config.engine, *mwlive.patient(), '--json', self.path('json'), *self.asked(*FORMATS)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(mwlive.kill_quietly, watch)
        for target in targets:
            target.go()
        _, says = watch.communicate(timeout=mwlive.PATIENCE)
        self.assertEqual(watch.returncode, 1, says)
        self.assertIn('there are 2 processes, and a heaptrack file has the events of one', says)
        for target in targets:
            target.done()
            target.finish()
        self.assertFalse(os.path.exists(self.path('dhat')) or os.path.exists(self.path('heaptrack.gz')))
        wanted = mwexport.wanted({'processes': mwlive.load_reports(self.path('json'))})
        pprof = mwexport.Pprof(self.path('pprof'))
        self.assertEqual(pprof.totals, wanted)
        self.assertLessEqual({labels['pid'] for labels in pprof.labels}, {str(target.pid) for target in targets})
        for stack in mwexport.fold(self.read('collapsed').decode()):
            self.assertRegex(stack[0], r'^process deepstack_\d+$')
        self.assertEqual(mwexport.speedscope(self.path('speedscope')), wanted)
        self.assertEqual(mwexport.Callgrind(self.path('callgrind')).totals, wanted)

    def test_look_at_a_heap(self):
        """It has no allocations: it is refused, and nothing is written."""
        target = mwlive.Target(self, 'deepstack', '1', '1')
        mwlive.memwatch(self, 'heap', '-p', target.pid, '--quiet', '-o', self.path('look.mw'))
        for command in (('export', self.path('look.mw'), '--to', 'pprof', '-o', self.path('pprof')),
                        ('report', self.path('look.mw'), *self.asked('pprof'))):
            _, err = mwlive.memwatch(self, *command, status=2)
            self.assertIn('is a look at a heap, which has no allocations to export', err)
        self.assertEqual(os.listdir(self.directory), ['look.mw'])
        target.go()
        target.done()
        target.finish()

    def test_refused_before_anything_is_touched(self):
        target = mwlive.Target(self, 'deepstack', '1', '1')
        before = mwlive.Snapshot(target.pid)
        for export, says in ((f'pprof:{self.directory}/nowhere/x', 'Its directory does not exist'), ('pprof:/proc/version', 'cannot write')):
            _, err = mwlive.memwatch(self, '-p', target.pid, '-d', '1', '--quiet', '--export', export, '--force', status=1)
            self.assertIn(says, err)
            self.assertEqual(err.count('\n'), 1, err)
        before.check(self)
        target.go()
        target.done()
        target.finish()


if __name__ == '__main__':
    mwlive.main()
