#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts and bytes of every entry point, to the last one, single-threaded."""
import os
import shutil
import subprocess
import tempfile
import unittest

import mwlive


class Exact(unittest.TestCase):
    def test_every_entry_point(self):
        answer, report = mwlive.observe(self, 'exact')
        mwlive.compare(self, answer, report)

    def test_functions(self):
        answer, report = mwlive.observe(self, 'simple')
        mwlive.compare(self, answer, report)
        leak = mwlive.select(report, 'simple_leak')
        self.assertEqual(len(leak), 1)
        self.assertEqual(mwlive.functions(leak[0])[:3], ['simple_leak', 'simple_round', 'main'])
        self.assertTrue(leak[0]['frames'][0]['file'].endswith('simple.c'))
        self.assertFalse(leak[0]['truncated'])
        self.assertEqual(report['modules'][0]['module'], mwlive.target_path('simple'))

    def test_lifetimes(self):
        answer, report = mwlive.observe(self, 'simple', 200, 500)
        mwlive.compare(self, answer, report)
        for stack in mwlive.select(report, 'simple_churn'):
            life = stack['lifetime_ns']
            self.assertLessEqual(life['min'], life['median'])
            self.assertLessEqual(life['median'], life['p99'] * 1.05)
            self.assertLessEqual(life['p99'], life['max'] * 1.05)
            self.assertLess(life['max'], report['window']['seconds'] * 1e9)
        for stack in mwlive.select(report, 'simple_leak'):
            self.assertIsNone(stack['lifetime_ns'])

    def test_same_stack_ids_in_every_process(self):
        ids = []
        for _ in range(2):
            _, report = mwlive.observe(self, 'simple', 10)
            ids.append({s['id']: mwlive.functions(s) for s in mwlive.select(report, 'simple_round')})
        self.assertGreater(len(ids[0]), 2)
        self.assertEqual(ids[0], ids[1])

    def test_result_is_the_same_when_watched(self):
        alone = subprocess.run([mwlive.target_path('checksum')], stdin=subprocess.DEVNULL, capture_output=True,
                               text=True, timeout=mwlive.PATIENCE, check=True).stdout
        answer, report = mwlive.observe(self, 'checksum')
        self.assertIn(f'checksum={answer["checksum"]}\n', alone)
        mwlive.compare(self, answer, report)

    def test_no_room_behind_the_code(self):
        answer, report = mwlive.observe(self, 'exact_full')
        mwlive.compare(self, answer, report)

    def test_what_is_not_hooked_is_missed(self):
        target = mwlive.Target(self, 'refuses')
        doctor = subprocess.run([mwlive.config.memwatch, 'doctor', '-p', str(target.pid)], stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=mwlive.PATIENCE, check=True).stdout
        self.assertIn('no call would be seen of valloc', doctor.split('\n\n')[0])
        watch = mwlive.Watch(self, target.pid, complete=False, options=('-o', self.recording()))
        target.go()
        answer = target.done()
        report = watch.stop()
        target.finish()
        mwlive.compare(self, answer, report)
        self.assertEqual(report['lost']['events'], 0)
        self.assertEqual([h['function'] for h in report['lost']['not_hooked']], ['valloc'])
        text = subprocess.run([mwlive.config.memwatch, 'report', self.recording()], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=mwlive.PATIENCE, check=True).stdout
        self.assertIn('INCOMPLETE, no call was seen of valloc', text.split('\n\n')[0])

    def recording(self):
        if not hasattr(self, 'directory'):
            self.directory = tempfile.mkdtemp(prefix='mwlive-')
            self.addCleanup(shutil.rmtree, self.directory)
        return os.path.join(self.directory, 'run.mw')

    def test_free_that_jumps_to_its_own_start(self):
        answer, report = mwlive.observe(self, 'restarts')
        mwlive.compare(self, answer, report)

    def test_only_heap(self):
        answer, report = mwlive.observe(self, 'simple', 50, options=('--track', 'heap'))
        mwlive.compare(self, answer, report)
        self.assertEqual([s for s in report['stacks'] if s['kind'] != 'heap'], [])

    def test_cut_stacks_are_marked(self):
        _, report = mwlive.observe(self, 'simple', 50, options=('--depth', 2))
        stacks = mwlive.select(report, 'simple_leak')
        self.assertTrue(stacks and all(s['truncated'] for s in stacks))
        self.assertTrue(all(len([f for f in s['frames'] if not f['inlined']]) == 2 for s in stacks))


class CxxOperators(unittest.TestCase):
    def test_of_the_library(self):
        answer, report = mwlive.observe(self, 'cxxnew')
        mwlive.compare(self, answer, report)

    def test_of_the_program(self):
        answer, report = mwlive.observe(self, 'cxxnew_own')
        mwlive.compare(self, answer, report)
        leak = mwlive.select(report, 'cxx_leak')
        self.assertEqual([s['api'] for s in leak], ['operator new(unsigned long)'])

    def test_linked_into_the_program(self):
        # The last one has no room for copies of instructions behind its code.
        for name in ('cxxnew_linked', 'cxxnew_static', 'cxxnew_full'):
            with self.subTest(name):
                answer, report = mwlive.observe(self, name)
                mwlive.compare(self, answer, report)


if __name__ == '__main__':
    mwlive.main()
