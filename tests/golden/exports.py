#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""exports.py MEMWATCH GENERATE: the recordings of recordings/ in every format, read by the programs that the formats are for: their
totals are those of memwatch's report, to the byte. (What is read in a browser is in tests/browser/exports.test.mjs.)"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'live'))
import mwexport  # pylint: disable=wrong-import-position

RECORDINGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'recordings')
NAMES = sorted(name[:-3] for name in os.listdir(RECORDINGS) if name.endswith('.mw'))
SEVERAL = ('two', 'unnamed')  # processes
SUFFIXES = {'heaptrack': '.gz'}  # without which programs do not open the file
# The last three leave out blocks.
CASES = ('', '--from 0.2 --to 0.6', '--filter kind:heap', '--filter size:>=64', "--filter 'not function:leak_session_record'")
MEMWATCH = GENERATE = ''


def memwatch(*arguments, status=0):
    done = subprocess.run([MEMWATCH, *arguments], cwd=RECORDINGS, stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                          check=False)
    if done.returncode != status:
        raise AssertionError(f'memwatch {" ".join(arguments)} ended with {done.returncode}: {done.stderr.decode()}')
    return done.stdout if status == 0 else done.stderr.decode()


def cases(one_process=False):
    for name in NAMES:
        for case in CASES:
            # One was launched and lived for 88 ms; the other has no events.
            if name in ('launched', 'unnamed') and 'from' in case or one_process and name in SEVERAL:
                continue
            yield name, case


class Exports(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)

    def export(self, name, case, form, *more):
        path = os.path.join(self.directory, f'{name}.{form}' + SUFFIXES.get(form, ''))
        memwatch('export', f'{name}.mw', '--to', form, '-o', path, *shlex.split(case), *more)
        return path

    def wanted(self, name, case):
        views = ['--by', 'stack', '--type', 'all'] if 'filter' in case else []
        return mwexport.wanted(json.loads(memwatch('report', f'{name}.mw', *shlex.split(case), *views, '--quiet', '--json', '-')))

    def test_pprof(self):
        for name, case in cases():
            with self.subTest(name=name, case=case):
                path = self.export(name, case, 'pprof')
                found = mwexport.Pprof(path)
                self.assertEqual(found.totals, self.wanted(name, case))
                if not case:
                    found.check(path)

    def test_pprof_carries_over(self):
        found = mwexport.Pprof(self.export('jump', '', 'pprof'))
        self.assertEqual(found.head['PeriodType'], 'space bytes')
        self.assertEqual(found.head['Period'], '1')
        report = json.loads(memwatch('report', 'jump.mw', '--quiet', '--json', '-'))
        self.assertEqual(found.head['Time'][:19].replace(' ', 'T'), report['window']['started'][:19])
        self.assertEqual({labels['thread'] for labels in found.labels}, {'sessions', 'cache', 'worker-0', 'worker-1'})
        self.assertLessEqual({'steady growth'}, {labels.get('verdict') for labels in found.labels})
        self.assertEqual({(labels['kind'], labels['process'], labels['pid']) for labels in found.labels},
                         {('heap', 'leak_service', '10955')})
        # The innermost frame, with file and line, and the module with its build-id; the program comes first.
        self.assertTrue(any(stack[0][0] == 'leak_session_record' and stack[0][1].endswith('/leak_service.c') and stack[0][2] == 26
                            for stack in found.functions()), found.functions())
        self.assertRegex(found.mappings[0], r'^1: 0x[0-9a-f]+/0x[0-9a-f]+/0x0 .*/leak_service [0-9a-f]{40} ')

    def test_collapsed(self):
        for name, case in cases():
            wanted = self.wanted(name, case)
            for measure in mwexport.MEASURES:
                with self.subTest(name=name, case=case, measure=measure):
                    text = memwatch('export', f'{name}.mw', '--to', 'collapsed', *shlex.split(case), '--measure', measure)
                    stacks = mwexport.fold(text.decode())
                    self.assertEqual(sum(stacks.values()), wanted[measure])
                    roots = {stack[0].split()[0] for stack in stacks}
                    self.assertEqual('process' in roots, name in SEVERAL and bool(stacks))

    def test_callgrind(self):
        for name, case in cases():
            with self.subTest(name=name, case=case):
                found = mwexport.Callgrind(self.export(name, case, 'callgrind'))
                wanted = self.wanted(name, case)
                self.assertEqual(found.totals, wanted)
                # What the processes call is all.
                roots = [figures for function, figures in found.functions.items() if function.startswith('???:process ')]
                self.assertEqual({measure: sum(figures[measure] for figures in roots) for measure in mwexport.MEASURES}, wanted)

    def test_callgrind_counts_a_recursion_once(self):
        """Each function's costs with what it calls are those of the stacks that it is on, however often."""
        for name in NAMES:
            found = mwexport.Callgrind(self.export(name, '', 'callgrind'))
            stacks = mwexport.fold(memwatch('export', f'{name}.mw', '--to', 'collapsed').decode())
            for function in {frame for stack in stacks for frame in stack if not frame.startswith('process ')}:
                wanted = sum(figure for stack, figure in stacks.items() if function in stack)
                got = sum(figures['inuse_space'] for key, figures in found.functions.items()
                          if key.split(' [')[0].rsplit(':', 1)[-1] == function)
                if ':' not in function:
                    self.assertEqual(got, wanted, (name, function))

    def test_speedscope(self):
        for name, case in cases():
            with self.subTest(name=name, case=case):
                self.assertEqual(mwexport.speedscope(self.export(name, case, 'speedscope')), self.wanted(name, case))

    def test_dhat(self):
        for name, case in cases(one_process=True):
            with self.subTest(name=name, case=case):
                found, total, totals = mwexport.dhat(self.export(name, case, 'dhat'))
                self.assertEqual(totals, self.wanted(name, case))
                self.assertLessEqual(found['tg'], found['te'])
                if case:
                    continue
                # As much as there was at the peak says the report of that moment.
                at = self.wanted(name, '--at peak')
                self.assertEqual((total['gb'], total['gbk']), (at['inuse_space'], at['inuse_objects']))

    def test_dhat_of_several_processes(self):
        answer = memwatch('export', 'two.mw', '--to', 'dhat', status=1)
        self.assertIn('there are 2 processes, and a DHAT file shows the peak of one. Choose one', answer)
        _, _, totals = mwexport.dhat(self.export('two', '', 'dhat', '--pid', '10955'))
        report = json.loads(memwatch('report', 'two.mw', '--pid', '10955', '--quiet', '--json', '-'))
        self.assertEqual(totals, mwexport.wanted(report))

    def test_heaptrack(self):
        for name, case in cases(one_process=True):
            with self.subTest(name=name, case=case):
                found = mwexport.Heaptrack(self.export(name, case, 'heaptrack'))
                wanted = self.wanted(name, case)
                self.assertEqual(found.totals, {measure: wanted[measure] for measure in found.totals})
                self.assertLessEqual(found.totals['inuse_space'], found.peak)
                if not case:
                    self.assertEqual(found.peak, self.wanted(name, '--at peak')['inuse_space'])

    def test_heaptrack_peak_of_a_filter(self):
        """That of what is exported: a peak of the heap alone is the report's."""
        for name in ('jump', 'python', 'threads-jump'):
            for interval in ('', '--from 0.2 --to 0.6'):
                report = json.loads(memwatch('report', f'{name}.mw', *interval.split(), '--quiet', '--json', '-'))
                found = mwexport.Heaptrack(self.export(name, f'{interval} --filter kind:heap', 'heaptrack'))
                self.assertEqual(found.peak, report['totals']['heap']['peak']['bytes'], (name, interval))

    def test_heaptrack_filters(self):
        """Events are chosen as the sums are: by thread, heap and size, too."""
        for name, term in (('jump', 'thread:sessions'), ('threads-jump', 'heap:main'), ('threads-jump', 'heap:arena and size:<4K'),
                           ('threads-jump', 'size:<100 or function:main')):
            with self.subTest(name=name, term=term):
                case = f"--filter '{term}'"
                wanted = self.wanted(name, case)
                found = mwexport.Heaptrack(self.export(name, case, 'heaptrack'))
                self.assertEqual(found.totals, {measure: wanted[measure] for measure in found.totals})
                self.assertTrue(0 < wanted['alloc_objects'] < self.wanted(name, '')['alloc_objects'], wanted)

    def test_heaptrack_carries_over(self):
        for name in NAMES:
            if name in SEVERAL:
                continue
            for interval in ('', '--from 0.2 --to 0.6') if name != 'launched' else ('',):
                report = json.loads(memwatch('report', f'{name}.mw', *interval.split(), '--quiet', '--json', '-'))
                found = mwexport.Heaptrack(self.export(name, interval, 'heaptrack'))
                self.assertEqual(found.lines[:2], ['v 10200 2', 'X ' + ' '.join(report['target']['command'])])
                self.assertEqual('A' in found.lines, not report['target']['launched'] or bool(interval))
                window = report['window']
                self.assertLessEqual(abs(found.times[-1] - 1000 * (window['to'] - window['from'])), 1)
                self.assertEqual(found.rss, [sample['rss'] // 4096 * 4096 for sample in report['memory']])
                stacks = {}
                for stack in report['stacks']:
                    if stack['kind'] != 'vm-internal' and stack['size']['count']:
                        frames = tuple((frame['function'], frame['file'] or '', frame['line'] or 0) for frame in stack['frames']
                                       if frame['function'])
                        stacks[frames] = stacks.get(frames, 0) + stack['impacting']['bytes']
                nameless = {}
                for stack, figure in found.stacks.items():
                    frames = tuple(frame for frame in stack if '+0x' not in frame[0] and not frame[0].startswith(('0x', '(')))
                    nameless[frames] = nameless.get(frames, 0) + figure
                self.assertEqual(nameless, stacks, (name, interval))

    def test_heaptrack_refuses(self):
        answer = memwatch('export', 'two.mw', '--to', 'heaptrack', '-o', os.path.join(self.directory, 'it.gz'), status=1)
        self.assertIn('there are 2 processes, and a heaptrack file has the events of one. Choose one', answer)
        found = mwexport.Heaptrack(self.export('two', '', 'heaptrack', '--pid', '10955'))
        wanted = mwexport.wanted(json.loads(memwatch('report', 'two.mw', '--pid', '10955', '--quiet', '--json', '-')))
        self.assertEqual(found.totals, {measure: wanted[measure] for measure in found.totals})
        for arguments in (('export', 'jump.mw', '--to', 'heaptrack', '-o', f'{self.directory}/it.zst'),
                          ('report', 'jump.mw', '--export', f'heaptrack:{self.directory}/it.zst')):
            answer = memwatch(*arguments, status=2)
            self.assertIn('does not end in .gz, and programs open a heaptrack file only if its name does. Name it', answer)
            self.assertEqual(answer.count('\n'), 1, answer)
        self.assertEqual(os.listdir(self.directory), ['two.heaptrack.gz'])

    def test_sqlite(self):
        for name, case in cases():
            with self.subTest(name=name, case=case):
                self.assertEqual(mwexport.sqlite_totals(self.export(name, case, 'sqlite')), self.wanted(name, case))

    def test_sqlite_carries_over(self):
        for name in NAMES:
            path = self.export(name, '', 'sqlite')
            report = json.loads(memwatch('report', f'{name}.mw', '--quiet', '--json', '-'))
            reports = report.get('processes', [report])
            wanted = sorted((one['target']['pid'], stack['id'], bool(stack['truncated'])) for one in reports for stack in one['stacks']
                            if stack['kind'] != 'vm-internal')
            found = mwexport.sqlite(path, 'SELECT pid, stack_id, truncated FROM stacks s JOIN processes p ON p.id = s.process '
                                          'WHERE stack_id IS NOT NULL')
            self.assertEqual(sorted((row['pid'], row['stack_id'], bool(row['truncated'])) for row in found), wanted)
            self.assertEqual([(row['pid'], row['complete'], row['ended']) for row in mwexport.sqlite(path, 'SELECT * FROM processes')],
                             [(one['target']['pid'], int(one['complete']), one['window']['ended']) for one in reports])
            self.assertEqual([(row['verdict'], row['bytes'], row['line']) for row in mwexport.sqlite(path, 'SELECT * FROM suspects')],
                             [(suspect['verdict'], suspect['bytes'], suspect['line'] or None) for one in reports for suspect in one['suspects']])
            self.assertEqual(len(mwexport.sqlite(path, 'SELECT * FROM samples')), sum(len(one['memory']) for one in reports))
            # Innermost first, as the report has them.
            stacks = {stack['id']: stack for one in reports for stack in one['stacks']}
            for row in mwexport.sqlite(path, 'SELECT stack_id, group_concat(file || \':\' || line, \' \') AS lines FROM (SELECT * FROM stack_frames '
                                             'ORDER BY stack, depth) JOIN stacks ON stacks.id = stack JOIN frames ON frames.id = frame GROUP BY stack'):
                if row['stack_id']:
                    frames = stacks[row['stack_id']]['frames']
                    self.assertEqual(row['lines'], ' '.join(f'{frame["file"]}:{frame["line"]}' for frame in frames if frame['line']) or None)

    def test_documented_questions(self):
        """docs/SQL.md: each question has an answer, and the first is the total."""
        with open(os.path.join(RECORDINGS, '../../../docs/SQL.md'), encoding='utf-8') as file:
            questions = re.findall(r'```sql\n(.*?)```', file.read(), re.DOTALL)
        self.assertEqual(len(questions), 10)
        answers = {name: [mwexport.sqlite(self.export(name, '', 'sqlite', '--force'), question) for question in questions] for name in NAMES}
        for name in NAMES:
            wanted = self.wanted(name, '')
            self.assertEqual({column: value or 0 for column, value in answers[name][0][0].items()},
                             {'bytes': wanted['inuse_space'], 'blocks': wanted['inuse_objects']})
        for number in range(len(questions)):
            # No recording has a function of that name, nor a look at the heap.
            self.assertEqual(any(answers[name][number] for name in NAMES), number not in (5, 7), questions[number])
        self.assertEqual(answers['jump'][1][0]['function'], answers['jump'][2][0]['function'])

    def test_beside_a_report(self):
        paths = {form: os.path.join(self.directory, form + SUFFIXES.get(form, ''))
                 for form in ('pprof', 'heaptrack', 'collapsed', 'dhat')}
        text = memwatch('report', 'jump.mw', *(word for form, path in paths.items() for word in ('--export', f'{form}:{path}')))
        self.assertIn(b'leak_session_record', text)
        self.assertEqual(sorted(os.listdir(self.directory)), sorted(os.path.basename(path) for path in paths.values()))
        for form, path in paths.items():
            alone = self.export('jump', '', form)
            with open(path, 'rb') as one, open(alone, 'rb') as other:
                self.assertEqual(one.read(), other.read(), form)
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)

    def test_end_of_the_interval(self):
        """--to takes a format and, where it is a time, the end of the interval."""
        one = memwatch('export', 'jump.mw', '--to', '0.5s', '--to', 'collapsed')
        other = memwatch('export', 'jump.mw', '--to', 'collapsed', '--at', '0.5s')
        self.assertEqual(one, other)
        self.assertNotEqual(one, memwatch('export', 'jump.mw', '--to', 'collapsed'))

    def test_refused(self):
        for arguments, says in (
                (['jump.mw'], 'no format is given. Give it by --to'),
                (['jump.mw', '--to', 'flame'], "--to 'flame': no such format. Formats are pprof, collapsed"),
                (['jump.mw', '--to', 'pprof', '--to', 'dhat'], '--to pprof and --to dhat are both given'),
                (['jump.mw', '--to', 'collapsed', '--measure', 'peak'], "--measure 'peak': no such measure"),
                (['jump.mw', '--to', 'dhat', '--filter', 'type:freed'], 'Leave type: out of the filter'),
                (['jump.mw', '--to', 'heaptrack', '--filter', 'type:freed'], 'a heaptrack file has the events, where it is not known yet'),
                (['jump.mw', '--to', 'collapsed', '-o', 'jump.mw', '--force'], "--output 'jump.mw' is the recording itself"),
                (['--to', 'collapsed'], 'no recording is given')):
            answer = memwatch('export', *arguments, status=2)
            self.assertIn(says, answer)
            self.assertEqual(answer.count('\n'), 1, answer)
        for value, says in (('flame:x', 'no such format'), ('pprof', 'the file is missing'), ('pprof:', 'the file is missing')):
            self.assertIn(says, memwatch('report', 'jump.mw', '--export', value, status=2))
        one = os.path.join(self.directory, 'one')
        self.assertIn('--export and --export are one file',
                      memwatch('report', 'jump.mw', '--export', f'pprof:{one}', '--export', f'dhat:{one}', status=2))
        self.assertIn('both standard output', memwatch('report', 'jump.mw', '--json', '-', '--export', 'dhat:-', status=2))
        self.assertEqual(os.listdir(self.directory), [])

    def test_files(self):
        """A file of somebody else's is not replaced, one of the same format is; what fails leaves what was there."""
        for form in ('pprof', 'collapsed', 'speedscope', 'callgrind', 'dhat', 'sqlite', 'heaptrack'):
            path = os.path.join(self.directory, 'file' + SUFFIXES.get(form, ''))
            with open(path, 'w', encoding='utf-8') as file:
                file.write('precious\n')
            self.assertIn('Give another name, or --force', memwatch('export', 'jump.mw', '--to', form, '-o', path, status=1))
            with open(path, encoding='utf-8') as file:
                self.assertEqual(file.read(), 'precious\n')
            memwatch('export', 'jump.mw', '--to', form, '-o', path, '--force')
            memwatch('export', 'trap.mw', '--to', form, '-o', path)
            with open(path, 'rb') as file:
                before = file.read()
            damaged = os.path.join(self.directory, 'damaged.mw')
            with open(damaged, 'w', encoding='utf-8') as file:
                file.write('no recording')
            answer = memwatch('export', damaged, '--to', form, '-o', path, status=1)
            self.assertEqual(answer.count('\n'), 1, answer)
            os.unlink(damaged)
            with open(path, 'rb') as file:
                self.assertEqual(file.read(), before)
            os.unlink(path)
        self.assertIn('Its directory does not exist', memwatch('export', 'jump.mw', '--to', 'pprof', '-o', f'{path}/x/y', status=1))
        self.assertEqual(os.listdir(self.directory), [])
        self.assertIn('No space left', memwatch('export', 'jump.mw', '--to', 'pprof', '-o', '/dev/full', status=1))

    def test_terminal(self):
        """What is binary is not written to one; text is."""
        for form, status, says in (('pprof', 2, b'a pprof profile is not written to a terminal: it is binary. Name a file'),
                                   ('collapsed', 0, b';leak_session_record ')):
            master, slave = os.openpty()
            with subprocess.Popen([MEMWATCH, 'export', os.path.join(RECORDINGS, 'jump.mw'), '--to', form], stdin=subprocess.DEVNULL,
                                  stdout=slave, stderr=slave) as process:
                self.assertEqual(process.wait(60), status)
            self.assertIn(says, os.read(master, 65536))
            os.close(slave)
            os.close(master)

    def test_cut_recording(self):
        """What there is of it is exported, and a line says so."""
        with open(os.path.join(RECORDINGS, 'jump.mw'), 'rb') as file:
            half = file.read()[:20000]
        path = os.path.join(self.directory, 'half.mw')
        with open(path, 'wb') as file:
            file.write(half)
        done = subprocess.run([MEMWATCH, 'export', path, '--to', 'collapsed'], stdin=subprocess.DEVNULL, capture_output=True,
                              encoding='utf-8', timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('the recording is not complete', done.stderr)
        report = json.loads(memwatch('report', path, '--quiet', '--json', '-'))
        self.assertEqual(sum(mwexport.fold(done.stdout).values()), mwexport.wanted(report)['inuse_space'])

    def test_memory_does_not_grow_with_events(self):
        """Eight times the events take about the memory of the others."""
        with open(MEMWATCH, 'rb') as file:
            if b'__asan_init' in file.read():
                self.skipTest('AddressSanitizer keeps what was freed')
        path = os.path.join(self.directory, 'generated.mw')
        for form in ('pprof', 'dhat', 'heaptrack'):
            peaks = []
            for events in (500000, 4000000):
                subprocess.run([GENERATE, path, str(events), '20000', '500'], stdout=subprocess.DEVNULL, timeout=120, check=True)
                with subprocess.Popen([MEMWATCH, 'export', path, '--to', form, '-o', f'{path}.{form}' + SUFFIXES.get(form, ''),
                                       '--force']) as process:
                    _, status, usage = os.wait4(process.pid, 0)
                    process.returncode = os.waitstatus_to_exitcode(status)
                self.assertEqual(process.returncode, 0)
                peaks.append(usage.ru_maxrss)
            self.assertLess(peaks[1], 1.3 * peaks[0] + 8192, f'{form}: KiB of 500,000 and of 4,000,000 events')


if __name__ == '__main__':
    MEMWATCH = os.path.abspath(sys.argv.pop(1))
    GENERATE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
