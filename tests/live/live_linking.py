#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One program, linked in every way and with other allocators in front."""
import glob
import os
import unittest

import mwlive


class Linking(unittest.TestCase):
    def check(self, name, env=None):
        if not os.path.exists(mwlive.target_path(name)):
            self.skipTest(f'{name} was not built here')
        answer, report = mwlive.observe(self, name, env=env)
        mwlive.compare(self, answer, report)
        leak, = mwlive.select(report, 'simple_leak')
        self.assertIsNone(leak['cut'])
        self.assertEqual(mwlive.functions(leak)[:3], ['simple_leak', 'simple_round', 'main'])
        return report

    def test_not_position_independent(self):
        self.check('simple_nopie')

    def test_static(self):
        self.check('simple_static')

    def test_static_pie(self):
        self.check('simple_static_pie')

    def test_described_by_debug_frame_alone(self):
        for name in ('simple_debug_frame', 'simple_debug_frame_zlib', 'simple_debug_frame_zstd'):
            with self.subTest(name):
                report = self.check(name)
                self.assertEqual(report['engine']['broken_stacks'], 0)

    def test_without_libpthread(self):
        """As before glibc 2.34: the thread's id is nowhere in its control block."""
        self.check('simple_idless')

    def test_musl(self):
        self.check('simple_musl')

    def test_musl_static(self):
        self.check('simple_musl_static')

    def check_preload(self, pattern):
        libraries = sorted(glob.glob(f'/usr/lib/*/{pattern}') + glob.glob(f'/usr/lib/{pattern}'))
        if not libraries:
            self.skipTest(f'{pattern} is not installed')
        report = self.check('simple', env={'LD_PRELOAD': libraries[0]})
        real = os.path.basename(os.path.realpath(libraries[0]))
        hooked = {os.path.basename(m) for m in mwlive.hooked_modules(report)}
        self.assertIn(real, hooked)

    def test_jemalloc(self):
        self.check_preload('libjemalloc.so.2')

    def test_tcmalloc(self):
        self.check_preload('libtcmalloc_minimal.so.4')

    def test_mimalloc(self):
        self.check_preload('libmimalloc.so.[0-9]*')


if __name__ == '__main__':
    mwlive.main()
