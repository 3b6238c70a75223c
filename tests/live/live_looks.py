#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two looks at a heap: kept and compared, and at both ends of a window."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import mwlive

# Grows as it is asked to: each line of its input is a number of blocks, and their size; "free" drops those it has.
GROWS = r'''
import mmap, sys
held, maps = [], []
print('ready', flush=True)
for line in sys.stdin:
    what, count, size = line.split()
    if what == 'blocks':
        held.append([bytes(b'x' * int(size)) for _ in range(int(count))])
    elif what == 'map':
        for _ in range(int(count)):
            maps.append(mmap.mmap(-1, int(size), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
            maps[-1].write(b'x' * int(size))
    elif what == 'free':
        held.clear()
    print('done', flush=True)
'''
MALLOC_OVERHEAD = 33  # of bytes in python3


class Grows:
    """python3 on that program."""

    def __init__(self, test):
        self.process = subprocess.Popen([sys.executable, '-S', '-c', GROWS], stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE)
        test.addCleanup(mwlive.kill_quietly, self.process)
        self.pid = self.process.pid
        assert self.process.stdout.readline() == 'ready\n'

    def do(self, what, count=0, size=0):
        self.process.stdin.write(f'{what} {count} {size}\n')
        self.process.stdin.flush()
        assert self.process.stdout.readline() == 'done\n'


def resident(pid):
    """Bytes, as smaps counts them."""
    with open(f'/proc/{pid}/smaps_rollup', encoding='ascii') as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith('Rss:'))


class Looks(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix='mwlive-')
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def path(self, name):
        return os.path.join(self.directory, name)

    def look(self, pid, name, *options):
        """A look that is kept; its report."""
        out, _ = mwlive.memwatch(self, 'heap', '-p', pid, '-o', self.path(name), '--json', '-', *options)
        return json.loads(out)

    def compare(self, old, new, *options):
        out, err = mwlive.memwatch(self, 'diff', self.path(old), self.path(new), '--json', '-', *options)
        self.assertEqual(err, '')
        found = json.loads(out)
        self.assertEqual(found['schema'], 'memwatch.heap-diff/1')
        return found

    def check(self, found, old, new):
        """What holds of every comparison: it is of these looks, its changes are differences and sum, largest first."""
        for key in ('rss', 'swapped'):
            self.assertEqual((found[key]['old'], found[key]['new']), (old[key], new[key]))
        self.assertEqual(sum(line['change'] for line in found['account']), new['rss'] - old['rss'])
        self.assertEqual(found['rss']['change'], new['rss'] - old['rss'])
        for side, look in (('old', old), ('new', new)):
            self.assertEqual(sum(line[side] for line in found['account']), look['rss'])
            for key in ('count', 'bytes'):
                self.assertEqual(sum(group[side][key] for group in found['groups']),
                                 sum(group['blocks'][key] for group in look['groups']))
                for verdict, amount in look['leaks'].items():
                    self.assertEqual(found['leaks'][verdict][side][key], amount[key])
        for part in found['groups']:
            for key in ('count', 'bytes'):
                self.assertEqual(part['change'][key], part['new'][key] - part['old'][key])
        for changes in ([line['change'] for line in found['account']],
                        [group['change']['bytes'] for group in found['groups']]):
            self.assertEqual(changes, sorted(changes, reverse=True))

    def test_growth(self):
        target = Grows(self)
        target.do('blocks', 100, 5000)
        old = self.look(target.pid, 'old.mw')
        target.do('blocks', 1000, 5000)
        target.do('map', 3, 1 << 20)
        new = self.look(target.pid, 'new.mw')
        found = self.compare('old.mw', 'new.mw')
        self.check(found, old, new)
        self.assertEqual((found['process'], found['executables']), ('same', 'same'))
        grown = found['groups'][0]
        self.assertTrue(5000 + MALLOC_OVERHEAD <= grown['size'] <= 5000 + MALLOC_OVERHEAD + 24, grown)
        self.assertIn(grown['change']['count'], range(1000, 1010))
        daily = grown['change']['bytes'] * 86400 / found['seconds']
        self.assertAlmostEqual(grown['per_day']['bytes'], daily, delta=1)
        mapped = next(line for line in found['account'] if line['name'] == 'other anonymous memory')
        self.assertGreaterEqual(mapped['change'], 3 << 20)
        text, _ = mwlive.memwatch(self, 'diff', self.path('old.mw'), self.path('new.mw'))
        self.assertRegex(text, r'(?m)^GREW  \+[\d.]+ MiB resident in [^,]*, \+[\d.]+ \w+ a day; most by live blocks')
        self.assertRegex(text, r'(?m)^Groups of blocks that have grown\n +\+4\.[89] MiB +\+[\d.]+ \w+ a day  5,0\d\d bytes')
        # And less.
        target.do('free')
        less = self.look(target.pid, 'less.mw')
        found = self.compare('new.mw', 'less.mw')
        self.check(found, new, less)
        self.assertEqual(found['groups'][-1]['size'], grown['size'])
        self.assertLess(found['groups'][-1]['change']['count'], -1000)

    def test_other_processes(self):
        """A process that was started again, with other groups."""
        first, second = Grows(self), Grows(self)
        old = self.look(first.pid, 'old.mw', '--by', 'class,size,arena')
        second.do('blocks', 50, 7000)
        new = self.look(second.pid, 'new.mw')
        found = self.compare('old.mw', 'new.mw')
        self.check(found, old, new)
        self.assertEqual((found['process'], found['rss']['per_day'], found['by']), ('other', None, ['class', 'size']))
        text, _ = mwlive.memwatch(self, 'diff', self.path('old.mw'), self.path('new.mw'))
        self.assertIn('two processes', text)
        self.assertNotIn('a day', text)

    def test_executables(self):
        """A warning where they differ."""
        target, other = Grows(self), mwlive.Target(self, 'loses')
        self.look(target.pid, 'old.mw')
        self.look(other.pid, 'new.mw')
        self.assertIn(self.compare('old.mw', 'new.mw')['executables'], ('rebuilt', 'other'))
        text, _ = mwlive.memwatch(self, 'diff', self.path('old.mw'), self.path('new.mw'))
        self.assertRegex(' '.join(text.split()), r'Warning: the executables differ .*python.*loses')
        other.finish()

    def test_refused(self):
        target = Grows(self)
        for name in ('old.mw', 'new.mw'):
            self.look(target.pid, name)
        mwlive.memwatch(self, '-p', target.pid, '-d', '0.1', '-o', self.path('window.mw'), '--quiet')
        for arguments, message in ((('old.mw', 'window.mw'), "old.mw' is a look at a heap, and .*window.mw' a window"),
                                   (('window.mw', 'old.mw'), "old.mw' is a look at a heap, and .*window.mw' a window"),
                                   (('new.mw', 'old.mw'), 'is later than'),
                                   (('old.mw', 'old.mw'), 'are the same recording'),
                                   (('old.mw', 'new.mw', '--from', '1'), 'it has no moments'),
                                   (('old.mw', 'new.mw', '--process', '1'), 'is of one process'),
                                   (('old.mw', 'new.mw', '--kind', 'vm'), "--kind can't be used"),
                                   (('old.mw', '--from', 'start'), 'it has no moments')):
            words = [self.path(word) if word.endswith('.mw') else word for word in arguments]
            out, err = mwlive.memwatch(self, 'diff', *words, status=2)
            self.assertEqual(out, '')
            self.assertRegex(err, message)
            self.assertEqual(err.count('\n'), 1, err)

    def window(self, target, *actions, options=()):
        """The report of a window with looks at both its ends, in which the target does this; it is shown again alike."""
        recording = self.path('window.mw')
        watch = mwlive.Watch(self, target.pid, options=('--heap-before', '-o', recording, *options))
        for action in actions:
            target.do(*action)
        report = watch.stop()
        again, _ = mwlive.memwatch(self, 'report', recording, '--json', '-')
        with open(watch.json, encoding='utf-8') as f:
            self.assertEqual(again, f.read())
        self.assertNotIn('heap_change', json.loads(mwlive.memwatch(self, 'report', recording, '--to', '0.001', '--json', '-')[0]))
        return report

    def check_change(self, change):
        """It sums to the byte."""
        kinds = ('blocks', 'older_freed', 'allocator', 'mappings', 'rest')
        self.assertEqual(change['change'], change['after'] - change['before'])
        self.assertEqual(sum(change[kind] for kind in kinds), change['change'])
        for kind in kinds:
            self.assertEqual(sum(part['bytes'] for part in change['parts'] if part['kind'] == kind), change[kind], kind)
        sizes = [abs(part['bytes']) for part in change['parts']]
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        self.assertNotIn('not explained', [part['name'] for part in change['parts']])

    def test_window(self):
        """Blocks and mappings of a window by who made them, what was freed of older blocks, and all the rest: the whole of
        what the process grew by."""
        target = Grows(self)
        target.do('blocks', 1000, 6000)
        # What memwatch and this test read, and the code of memwatch's system calls, is in memory then.
        mwlive.memwatch(self, '-p', target.pid, '-d', '0.1', '--heap-before', '--engine', mwlive.config.engine, '--quiet')
        mwlive.Snapshot(target.pid)
        before = resident(target.pid)
        report = self.window(target, ('free',), ('blocks', 2000, 5000), ('map', 6, 1 << 20))
        change = report['heap_change']
        self.check_change(change)
        self.assertEqual(change['before'], before)
        if mwlive.config.engine == 'trap':  # hooks are lifted before the look
            self.assertNotIn("memwatch's own memory", [part['name'] for part in change['parts']])
        self.assertTrue(10_000_000 <= change['blocks'] <= 10_500_000, change['blocks'])
        self.assertTrue(-6_100_000 <= change['older_freed'] <= -5_900_000, change['older_freed'])
        made = next(part for part in change['parts'] if part['name'] == 'anonymous mappings')
        self.assertEqual((made['kind'], made['bytes']), ('mappings', 6 << 20))
        stacks = {stack['id']: stack for stack in report['stacks']}
        self.assertEqual((stacks[made['stack']]['kind'], stacks[made['stack']]['impacting']['count']), ('vm', 6))
        blocks = next(part for part in change['parts'] if part['kind'] == 'blocks')
        self.assertEqual(stacks[blocks['stack']]['kind'], 'heap')
        text, _ = mwlive.memwatch(self, 'report', self.path('window.mw'), '--all')
        words = ' '.join(text.split())
        self.assertRegex(words, r'RSS \+[\d.]+ MiB: \+9\.[\d]+ MiB blocks not freed, \+6\.0 MiB anonymous mappings of ')
        self.assertRegex(words, r'-5\.[78] MiB older blocks freed')
        self.assertIn('Growth of memory between the looks', text)

    def test_nothing(self):
        """A process that does nothing: only what memwatch itself has in it, if anything."""
        target = Grows(self)
        mwlive.memwatch(self, 'heap', '-p', target.pid, '--quiet')
        change = self.window(target)['heap_change']
        self.check_change(change)
        self.assertEqual((change['blocks'], change['older_freed'], change['allocator']), (0, 0, 0))

    def test_without(self):
        """--leaks alone has no account; a command has no heap before."""
        target = Grows(self)
        watch = mwlive.Watch(self, target.pid, options=('--leaks',))
        self.assertNotIn('heap_change', watch.stop())
        _, err = mwlive.memwatch(self, '--heap-before', '--', 'true', status=2)
        self.assertIn('has no heap yet', err)


if __name__ == '__main__':
    mwlive.main()
