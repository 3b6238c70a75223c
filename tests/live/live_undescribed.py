#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stacks through code without unwind information: true as far as they go, marked where they end, and walked by few."""
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


if __name__ == '__main__':
    mwlive.main()
