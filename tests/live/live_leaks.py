#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A look at the whole heap: memwatch heap, and --leaks at the end of a window."""
import json
import os
import signal
import subprocess
import tempfile
import unittest

import mwlive

SIZES = {'drop': 333, 'drop_pair': 72, 'drop_cycle': 88, 'hold': 400, 'point_inside': 500, 'prepend': 64, 'keep_own': 600}


def heap(test, pid, *options, status=0):
    """memwatch heap: (what it prints as JSON, its messages)."""
    done = subprocess.run([mwlive.config.memwatch, 'heap', '-p', str(pid), '--quiet', '--json', '-', *options],
                          capture_output=True, text=True, timeout=mwlive.PATIENCE, check=False)
    test.assertEqual(done.returncode, status, done.stderr)
    return json.loads(done.stdout) if done.stdout else None, done.stderr


def resident(pid):
    """Bytes, as smaps counts them."""
    with open(f'/proc/{pid}/smaps_rollup', encoding='ascii') as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith('Rss:'))


class Leaks(unittest.TestCase):
    def worked(self):
        target = mwlive.Target(self, 'loses')
        target.go()
        return target, target.done()['each']

    def blocks(self, report, size, verdict):
        """How many blocks that were asked for with that size: glibc rounds them up."""
        usable = (size + 8 + 15) // 16 * 16 - 8
        return sum(group['blocks']['count'] for group in report['groups']
                   if group['size'] == usable and group['verdict'] == verdict)

    def test_heap(self):
        target, each = self.worked()
        before = resident(target.pid)
        report, _ = heap(self, target.pid)
        self.assertEqual(report['schema'], 'memwatch.heap/1')
        self.assertEqual(report['method'], 'fork')
        self.assertEqual(sum(line['bytes'] for line in report['account']), report['rss'])
        # The first look has the process perform system calls: their code and a frame on the stack are in memory then.
        self.assertGreaterEqual(report['rss'], before)
        settled = resident(target.pid)
        self.assertEqual(heap(self, target.pid)[0]['rss'], settled)
        self.assertEqual(resident(target.pid), settled, 'looking has made the process larger')
        self.assertEqual(mwlive.children(target.pid), [], 'the copy is still there')
        for verdict in ('definite', 'indirect', 'possible', 'reachable'):
            grouped = [group['blocks'] for group in report['groups'] if group['verdict'] == verdict]
            self.assertEqual(report['leaks'][verdict], {key: sum(g[key] for g in grouped) for key in ('count', 'bytes')})
        # The last of each kind may be found where its pointer was left.
        for function, verdict, count in (('drop', 'definite', each), ('drop_pair', 'definite', each),
                                         ('drop_pair', 'indirect', each), ('drop_cycle', 'definite', each),
                                         ('drop_cycle', 'indirect', each), ('hold', 'reachable', each),
                                         ('point_inside', 'possible', each), ('prepend', 'reachable', each),
                                         ('keep_own', 'reachable', 8)):
            found = self.blocks(report, SIZES[function], verdict)
            self.assertIn(found, (count, count + 1), f'{function}: {verdict}')
        held = next(group for group in report['groups'] if group['size'] == 408 and group['verdict'] == 'reachable')
        self.assertRegex(held['holder'][0], r'^global held(\+\d+)? \(loses\.c:\d+\)$')
        glibc = next(a for a in report['allocators'] if a['name'] == 'glibc')
        self.assertTrue(glibc['walked'], glibc['why'])
        self.assertEqual(glibc['live']['count'], sum(group['blocks']['count'] for group in report['groups']))
        target.finish()

    def test_without_fork(self):
        target, each = self.worked()
        report, _ = heap(self, target.pid, '--no-fork')
        self.assertEqual(report['method'], 'live')
        self.assertIn(self.blocks(report, SIZES['drop'], 'definite'), (each, each + 1))
        self.assertIn(self.blocks(report, SIZES['hold'], 'reachable'), (each, each + 1))
        target.finish()

    def test_pointers_move(self):
        """Read while it runs, too, nothing that is held is called lost."""
        target = mwlive.Target(self, 'moves')
        target.go()
        lost = target.done()['lost']
        for options in ((), ('--no-fork',), ('--no-fork', '--holders')):
            report, _ = heap(self, target.pid, *options)
            found = {verdict: self.blocks(report, 300, verdict) for verdict in ('definite', 'indirect', 'reachable')}
            # The last one may be found where its pointer was left.
            self.assertIn(found['definite'], (lost - 1, lost), options)
            self.assertEqual(report['leaks']['definite']['count'], found['definite'], options)
            self.assertEqual(report['leaks']['indirect']['count'], 0, options)
            self.assertEqual(report['passes'] > 1, bool(options))
        target.finish()

    def test_groups(self):
        target, _ = self.worked()
        for by in ('class', 'size', 'arena', 'class,size,arena'):
            report, _ = heap(self, target.pid, '--by', by)
            self.assertEqual(sum(group['blocks']['bytes'] for group in report['groups']),
                             sum(report['leaks'][verdict]['bytes'] for verdict in report['leaks']), by)
            self.assertEqual({group['arena'] is not None for group in report['groups']}, {'arena' in by})
        target.finish()

    def test_window(self):
        """The stacks of a window, live and from its recording."""
        target = mwlive.Target(self, 'loses')
        recording = os.path.join(self.directory(), 'window.mw')
        watch = mwlive.Watch(self, target.pid, options=('--leaks', '-o', recording))
        target.go()
        each = target.done()['each']
        report = watch.stop()
        expected = {'drop': ('definite', each), 'hold': ('reachable', each), 'point_inside': ('possible', each),
                    'prepend': ('reachable', each), 'keep_own': ('reachable', 8)}
        for function, (verdict, count) in expected.items():
            leaks = self.leaks_of(report, function)
            self.assertIn(leaks[verdict], (count, count + 1), f'{function}: {leaks}')
        for function in ('drop_pair', 'drop_cycle'):
            leaks = self.leaks_of(report, function)
            self.assertIn(leaks['definite'], (each, each + 1), f'{function}: {leaks}')
            self.assertIn(leaks['indirect'], (each, each + 1), f'{function}: {leaks}')
        self.assertRegex(mwlive.select(report, 'hold')[0]['holder'][0], r'^global held(\+\d+)? \(loses\.c:\d+\)$')
        self.assertIsNone(mwlive.select(report, 'drop')[0]['holder'])
        self.assertEqual(report['suspects'][0]['function'], 'drop')
        self.assertEqual(mwlive.children(target.pid), [])
        again = subprocess.run([mwlive.config.memwatch, 'report', recording, '--leaks', '--quiet', '--json', '-'],
                               capture_output=True, timeout=mwlive.PATIENCE, check=True)
        with open(watch.json, 'rb') as f:
            self.assertEqual(again.stdout, f.read())
        text = subprocess.run([mwlive.config.memwatch, 'report', recording], capture_output=True, text=True,
                              timeout=mwlive.PATIENCE, check=True)
        self.assertRegex(text.stdout, r'(?m)^LOST  drop\(?\)? ')
        target.finish()

    def test_kept(self):
        """A look that is kept says the same again; in what is no look, or half of one, there is none."""
        target, _ = self.worked()
        directory = self.directory()
        kept, report = os.path.join(directory, 'look.mw'), os.path.join(directory, 'look.json')
        text, _ = mwlive.memwatch(self, 'heap', '-p', target.pid, '-o', kept, '--json', report, '--by', 'class,size,arena')
        with open(report, encoding='utf-8') as f:
            self.assertEqual(mwlive.memwatch(self, 'report', kept, '--json', '-')[0], f.read())
        self.assertEqual(mwlive.memwatch(self, 'report', kept)[0], text)
        self.assertIn('definitely lost', text.lower())
        # With --leaks as well: it is a look. It replaces an older one, and nothing else.
        mwlive.memwatch(self, 'report', kept, '--leaks', '--quiet')
        mwlive.memwatch(self, 'heap', '-p', target.pid, '-o', kept, '--quiet')
        other = os.path.join(directory, 'other')
        with open(other, 'w', encoding='ascii') as f:
            f.write('something else')
        _, err = mwlive.memwatch(self, 'heap', '-p', target.pid, '-o', other, status=1)
        self.assertRegex(err, 'is a file that is not a recording .*--force')
        with open(other, encoding='ascii') as f:
            self.assertEqual(f.read(), 'something else')
        mwlive.memwatch(self, 'heap', '-p', target.pid, '-o', other, '--force', '--quiet')
        for options in (('--from', '1'), ('--at', 'peak'), ('--by', 'module'), ('--filter', 'main')):
            _, err = mwlive.memwatch(self, 'report', kept, *options, status=2)
            self.assertIn('is a look at a heap, not a window', err)
        with open(kept, 'rb') as f:
            whole = f.read()
        for size in range(0, len(whole), max(1, len(whole) // 50)):
            with open(other, 'wb') as f:
                f.write(whole[:size])
            out, err = mwlive.memwatch(self, 'report', other, status=1)
            self.assertEqual((out, err.count('\n')), ('', 1), f'{size} bytes: {err}')
        self.assertEqual(mwlive.children(target.pid), [])
        target.finish()

    def leaks_of(self, report, function):
        found = {}
        for stack in mwlive.select(report, function):
            for verdict, amount in (stack['leaks'] or {}).items():
                found[verdict] = found.get(verdict, 0) + amount['count']
        return found

    def directory(self):
        directory = tempfile.TemporaryDirectory(prefix='mwlive-')
        self.addCleanup(directory.cleanup)
        return directory.name

    def test_refused(self):
        target, _ = self.worked()
        for options, message in ((('--by', 'colour'), 'not a list of what blocks are grouped by'),
                                 (('--tag-bits', 'xyz'), 'not a mask of bits')):
            _, err = heap(self, target.pid, *options, status=2)
            self.assertIn(message, err)
        gone = subprocess.Popen(['true'])
        gone.wait()
        _, err = heap(self, gone.pid, status=1)
        self.assertRegex(err, 'there is no process')
        target.finish()

    def test_stopped(self):
        """A stopped process stays stopped."""
        target, each = self.worked()
        os.kill(target.pid, signal.SIGSTOP)
        mwlive.wait_until(lambda: mwlive.state(target.pid) == 'T', 'it stops')
        report, _ = heap(self, target.pid)
        self.assertIn(self.blocks(report, SIZES['drop'], 'definite'), (each, each + 1))
        self.assertEqual(mwlive.state(target.pid), 'T')
        os.kill(target.pid, signal.SIGCONT)
        target.finish()


if __name__ == '__main__':
    mwlive.main()
