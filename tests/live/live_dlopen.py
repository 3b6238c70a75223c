#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Libraries that come and go inside the window, one with an allocator of its own."""
import unittest

import mwlive


class Dlopen(unittest.TestCase):
    def test_libraries_come_and_go(self):
        answer, report = mwlive.observe(self, 'dlopens', mwlive.target_path('libplugin_leak.so'),
                                        mwlive.target_path('libplugin_own.so'))
        mwlive.compare(self, answer, report)
        self.assertIn(mwlive.target_path('libplugin_own.so'), mwlive.hooked_modules(report))


if __name__ == '__main__':
    mwlive.main()
