#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How much of the process is what: growth that no hook sees, residency, arenas, threads' stacks."""
import errno
import os
import resource
import struct
import unittest

import mwjump
import mwlive
import mwrec

PAGE = 4096
KINDS = ('heap', 'arena', 'stack', 'anonymous', 'file_text', 'file_data', 'shared', 'memwatch', 'special')
CACHE = 64 * 7 * 1040  # a thread's cache holds at most so many bytes


def change(space, kind, what):
    return space['end'][kind][what] - space['start'][kind][what]


def touched_pages(pid, start, end):
    with open(f'/proc/{pid}/pagemap', 'rb', buffering=0) as pagemap:
        entries = os.pread(pagemap.fileno(), (end - start) // PAGE * 8, start // PAGE * 8)
    return sum(entry >> 62 != 0 for entry, in struct.iter_unpack('<Q', entries))


class Space(unittest.TestCase):
    observed = None

    def watch(self):
        """One window of a program as it is, which several tests look at."""
        if not Space.observed:
            Space.observed = self.watch_anew()
        return Space.observed

    def watch_anew(self, **environment):
        answer, report = mwlive.observe(self, 'fragments', env=environment)
        space = report['address_space']
        self.assertIsNotNone(space, 'the address space was not looked at')
        for moment in ('start', 'end'):
            self.assertEqual(set(space[moment]), set(KINDS))
        return answer, report, space

    def test_growth_is_told_by_kind(self):
        answer, report, space = self.watch()
        # Each thread has a stack of that size and may have a page or two more.
        self.assertEqual(space['end']['stack']['count'] - space['start']['stack']['count'], answer['threads'])
        stacks = answer['threads'] * answer['stack']
        self.assertTrue(stacks - answer['threads'] * 4 * PAGE <= change(space, 'stack', 'reserved') <= stacks)
        # An arena each, of 64 MiB.
        self.assertEqual(change(space, 'arena', 'reserved'), answer['threads'] << 26)
        self.assertTrue(0 < change(space, 'arena', 'resident') < answer['threads'] << 18)
        blocks = answer['kept.chunks']
        self.assertTrue(2 * blocks - (1 << 18) <= change(space, 'heap', 'reserved') <= 2 * blocks + (1 << 20))
        # Each page of it has a chunk's header.
        self.assertGreaterEqual(change(space, 'heap', 'resident'), 2 * blocks - (1 << 18))
        self.assertLessEqual(space['end']['heap']['resident'], space['end']['heap']['reserved'])
        # The mappings that were made: those seen, those not, and a guard for each stack.
        mapped = answer['unseen.bytes'] + answer['seen_map.bytes']
        grown = change(space, 'anonymous', 'reserved')
        self.assertTrue(mapped <= grown <= mapped + answer['threads'] * 4 * PAGE, (mapped, grown))
        # The blocks' addresses stand in the program's bss, which is of no file.
        touched = answer['unseen.resident'] + answer['seen_map.resident'] + answer['table']
        self.assertAlmostEqual(change(space, 'anonymous', 'resident'), touched, delta=8 * PAGE)
        for kind in ('file_text', 'file_data', 'shared', 'special', 'memwatch'):
            self.assertEqual(change(space, kind, 'reserved'), 0, kind)
        self.assertEqual(space['end']['memwatch']['reserved'], 0)
        self.check_resident_sum(report, space)

    def check_resident_sum(self, report, space):
        """All that is resident is what the kernel calls RSS."""
        rss = report['memory'][-1]['rss']
        resident = sum(kind['resident'] for kind in space['end'].values())
        self.assertAlmostEqual(resident, rss, delta=rss * 0.1 + (1 << 20))

    def test_what_no_hook_saw_is_unattributed(self):
        answer, _, space = self.watch()
        unseen = space['unattributed']
        self.assertEqual(sum(m['bytes'] for m in unseen), answer['unseen.bytes'], unseen)
        self.assertEqual(sum(m['resident'] for m in unseen), answer['unseen.resident'], unseen)
        # Neighbours may be told as one.
        self.assertTrue(any(0 <= answer['unseen.address'] - m['address'] < m['bytes'] for m in unseen), unseen)
        for mapping in unseen:
            self.assertEqual((mapping['kind'], mapping['path']), ('anonymous', None))
        self.assertEqual(unseen, sorted(unseen, key=lambda m: -m['bytes']))

    def test_resident_bytes_of_vm_blocks(self):
        answer, report, _ = self.watch()
        stack, = (s for s in report['stacks'] if s['kind'] == 'vm' and
                  any(f['function'] == 'seen_map' for f in s['frames']))
        self.assertEqual(stack['impacting']['bytes'], answer['seen_map.bytes'])
        self.assertEqual(stack['resident'], answer['seen_map.resident'])
        for stack in report['stacks']:
            if stack['kind'] == 'heap':
                self.assertIsNone(stack['resident'])

    def test_fragmentation(self):
        answer, _, space = self.watch_anew(GLIBC_TUNABLES='glibc.malloc.tcache_count=0')
        for moment, key in (('start', 'arena.before.'), ('end', 'arena.')):
            arenas = space['arenas'][moment]
            self.assertEqual(arenas['size'], answer[key + 'size'])
            self.assertEqual(arenas['free'], answer[key + 'free'])
            self.assertEqual(arenas['used'], arenas['size'] - arenas['free'])
        # Every second block is free, between two that are not.
        self.assertGreaterEqual(arenas['free'] - space['arenas']['start']['free'], answer['kept.chunks'] - (1 << 18))

    def test_fragmentation_with_caches(self):
        answer, _, space = self.watch()
        arenas = space['arenas']['end']
        self.assertEqual(arenas['size'], answer['arena.size'])
        cached = arenas['free'] - answer['arena.free']
        self.assertTrue(0 <= cached <= CACHE, cached)

    def test_an_idle_process_does_not_change(self):
        target = mwlive.Target(self, 'fragments')
        watch = mwlive.Watch(self, target.pid)
        space = watch.stop()['address_space']
        self.assertEqual(space['unattributed'], [])
        for kind in KINDS:
            self.assertEqual(change(space, kind, 'reserved'), 0, kind)
        self.assertEqual(space['arenas']['start'], space['arenas']['end'])
        target.go()
        target.done()
        target.finish()

    def test_what_was_never_touched_stays_so(self):
        """To read such a page maps one of zeros, which counts as resident: none is read, on no thread's stack."""
        target = mwlive.Target(self, 'untouched')
        mwlive.wait_until(lambda: all(mwlive.state(t) == 'S' for t in mwlive.tids(target.pid)), 'all threads block')
        watch = mwlive.Watch(self, target.pid)
        target.go()
        answer = target.done()
        space = watch.stop()['address_space']
        for kind in ('stack', 'anonymous'):
            self.assertLessEqual(change(space, kind, 'resident'), 8 * PAGE, kind)
        ranges = {key: tuple(int(end, 16) for end in value.split('-')) for key, value in answer.items()}
        self.assertEqual(sum(key.startswith('buffer.') for key in ranges), 50)
        self.assertEqual({key: touched_pages(target.pid, *ends) for key, ends in ranges.items()},
                         dict.fromkeys(ranges, 0))
        target.finish()

    def test_memory_that_is_refused_is_asked_for_once(self):
        """Engine trap wants 4.4 MiB, and 1 MiB near each library that has no such near it."""
        if mwlive.config.engine != 'trap':
            self.skipTest('it is about engine trap')
        libraries = [os.path.join(mwlive.config.targets, f'lib{name}.so')
                     for name in ('deep', 'detlib', 'plugin_leak', 'undescribed_fp', 'undescribed_nofp')]
        target = mwlive.Target(self, 'simple', 500, env={'LD_PRELOAD': ' '.join(libraries)})
        size = int(mwlive.status(target.pid)['VmSize'].split()[0]) << 10
        resource.prlimit(target.pid, resource.RLIMIT_AS, (size + (4900 << 10), resource.RLIM_INFINITY))
        path = os.path.join(mwrec.directory(self), 'trace')
        attempt = mwjump.Attempt(self, target, prefix=mwjump.strace(self, path))
        attempt.finish()
        self.assertIsNotNone(attempt.report, attempt.error)
        # -ENOMEM, where the registers are read at the end of a call that the target was had make.
        refused = 'rax=0x%x,' % ((1 << 64) - errno.ENOMEM)
        self.assertEqual(sum(refused in line for line in mwjump.read_trace(path, attempt.process.pid)), 1)

    def test_other_allocators_arenas_are_unknown(self):
        library = '/usr/lib/x86_64-linux-gnu/libjemalloc.so.2'
        if not os.path.exists(library):
            self.skipTest('no jemalloc here')
        _, report = mwlive.observe(self, 'simple', env={'LD_PRELOAD': library})
        self.assertEqual(report['address_space']['arenas'], {'start': None, 'end': None})


if __name__ == '__main__':
    mwlive.main()
