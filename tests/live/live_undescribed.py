#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stacks through code without unwind information: true as far as they go, marked where they end, and walked by few."""
import os
import subprocess
import unittest

import mwlive

KINDS = {'a': ['many'], 'b': ['large'], 'c': ['variable'], 'd': ['returns'], 'e': ['table'],
         'f': ['arguments', 'pushes'], 'g': ['compare', 'sorts'], 'h': ['large', 'nested'], 'i': ['odd_enter'],
         'j': ['odd_stack'], 'k': ['odd_late'], 'l': ['odd_shared']}
UNTOLD = 'j'  # its code does not say where its caller's frame is
LIBRARY = 'libundescribed'
WARM, FIRST, PATHS = 20000, 30000, 96


def true_stack(kinds):
    """Of (function, in the library), innermost first, from take() to work(); libc's frames left out."""
    frames = [('take', False), ('down', False)]
    for kind in reversed(kinds):
        frames += [(name, True) for name in KINDS[kind]] + [('undescribed_go', True), ('down', False)]
    return frames + [('work', False), ('run', False)]


def seen_stack(stack):
    """The same of a report's; what lies beyond run() is libc's affair."""
    return [(f['function'], LIBRARY in f['module']) for f in stack['frames']
            if f['module'] and (LIBRARY in f['module'] or 'undescribed_' in f['module'])]


class Undescribed(unittest.TestCase):
    maxDiff = None

    def same(self, seen, true):
        """A stripped library's functions have no names but the one that is exported."""
        return len(seen) <= len(true) and all(
            there == inside and name in ((function, None) if inside else (function,))
            for (name, there), (function, inside) in zip(seen, true))

    def watch(self, name, rounds, threads):
        """(paths, {(first or not, kinds): allocations whose stack was seen whole}, allocations a path, report)"""
        answer, report = mwlive.observe(self, name, rounds, threads)
        paths = [answer[f'path.{i}'] for i in range(PATHS)]
        whole, taken = {}, 0
        for stack in report['stacks']:
            seen, count = seen_stack(stack), stack['size']['count']
            if stack['kind'] != 'heap' or seen[:1] != [('take', False)]:
                continue
            taken += count
            fitting = {kinds for kinds in paths if self.same(seen, true_stack(kinds))}
            if stack['cut']:
                self.assertTrue(fitting, f'{name}: there is no such stack: {seen}')
                self.assertTrue(seen[-1][1], f'{name}: cut outside of the library: {seen}')
                continue
            fitting = {kinds for kinds in fitting if len(true_stack(kinds)) == len(seen)}
            # What has no names may be several.
            self.assertTrue(fitting, f'{name}: there is no such stack: {seen}')
            key = stack['size']['bytes'] // count >= FIRST, tuple(sorted(fitting))
            whole[key] = whole.get(key, 0) + count
        self.assertEqual(taken, 2 * PATHS * answer['calls'])
        return paths, whole, answer['calls'], report

    def check(self, name, untold=''):
        rounds, threads = (120, 4) if mwlive.config.engine == 'jump' else (3, 2)
        paths, whole, calls, report = self.watch(name, rounds, threads)
        walks, slow = report['engine']['walks'], report['engine']['slow_walks']
        self.assertLessEqual(slow, max(64, walks // 100))
        missing = {}
        for kinds in {p for p in paths if not set(p) & set(UNTOLD + untold)}:
            seen = sum(c for (first, fitting), c in whole.items() if first and kinds in fitting)
            wanted = calls * sum(p == kinds for p in paths)
            if seen < wanted:
                missing[kinds] = seen, wanted
        self.assertEqual(missing, {}, name)

    def test_frame_pointers(self):
        self.check('undescribed_fp')

    def test_no_frame_pointers(self):
        self.check('undescribed_nofp')

    def test_frame_pointers_stripped(self):
        self.check('undescribed_fp_stripped')

    def test_no_frame_pointers_stripped(self):
        # compare() is called through a pointer only: nothing says where it begins.
        self.check('undescribed_nofp_stripped', untold='g' if mwlive.config.engine == 'jump' else '')

    def test_libc_of_musl(self):
        """Its functions allocate for their callers, and nothing describes them."""
        rounds = 3000 if mwlive.config.engine == 'jump' else 20
        for name in ('muslstack', 'muslstack_static'):
            if not os.path.exists(mwlive.target_path(name)):
                self.skipTest('musl-gcc is not installed')
            _, report = mwlive.observe(self, name, rounds)
            for caller, function, calls in (('by_strdup', 'strdup', 1), ('by_getline', 'getdelim', 2),
                                            ('by_asprintf', 'vasprintf', 1), ('by_calloc', None, 1)):
                inside = [s for s in report['stacks'] if s['kind'] == 'heap' and mwlive.functions(s)[:1] ==
                          [function or caller]]
                through = [s for s in inside if (not function or mwlive.functions(s)[-1] != function) and
                           caller in mwlive.functions(s) and 'main' in mwlive.functions(s)]
                total, seen = (sum(s['size']['count'] for s in part) for part in (inside, through))
                self.assertEqual(total, calls * rounds, f'{name}: {caller}')
                # Until the recorder knows the code some end in it.
                self.assertGreaterEqual(seen * 2, total, f'{name}: {caller}')
                for stack in inside:
                    self.assertTrue(stack['cut'] or stack in through, f'{name}: {stack}')
            if mwlive.config.engine == 'jump':
                self.assertLessEqual(report['engine']['slow_walks'], max(64, report['engine']['walks'] // 100))

    def test_endless_loop(self):
        """That such code never returns does not make it where the thread begins."""
        answer, report = mwlive.observe(self, 'endless')
        stacks = [s for s in report['stacks'] if mwlive.functions(s)[:1] == ['work']]
        self.assertGreaterEqual(sum(s['size']['count'] for s in stacks), answer['rounds'])
        for stack in stacks:
            self.assertTrue(stack['cut'] or 'thread_main' in mwlive.functions(stack), stack)

    def doctor(self, name):
        target = mwlive.Target(self, name)
        run = subprocess.run([mwlive.config.memwatch, 'doctor', '-p', str(target.pid)], capture_output=True, text=True,
                             stdin=subprocess.DEVNULL, check=False, timeout=mwlive.PATIENCE)
        target.go()
        target.done()
        target.finish()
        return ' '.join(run.stdout.split())

    def test_doctor_tells_before(self):
        self.assertNotIn('unwinding', self.doctor('simple'))
        if not os.path.exists(mwlive.target_path('muslstack')):
            self.skipTest('musl-gcc is not installed')
        self.assertRegex(self.doctor('muslstack'), r'unwinding libc\.so has [0-9.]+ KiB of code without unwind information')


if __name__ == '__main__':
    mwlive.main()
