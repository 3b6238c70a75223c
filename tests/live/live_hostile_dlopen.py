#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Libraries loaded and unloaded in a loop by several threads, ordinary ones and such as bring an allocator."""
import os
import subprocess
import unittest

import mwjump
import mwlive

LIBRARIES = ('leak', 'mi', 'new', 'own')


class Dlopen(unittest.TestCase):
    def begin(self, rounds):
        return mwlive.Target(self, 'reload', rounds, *(mwlive.target_path(f'libplugin_{n}.so') for n in LIBRARIES))

    def test_loop_in_several_threads(self):
        target = self.begin(30)
        watch = mwlive.Watch(self, target.pid)
        target.go()
        answer = target.done()
        report = watch.stop()
        mwlive.compare(self, answer, report)
        # One library lies where another was: each block is told to be that of the one that was there then.
        for name, size in (('plugin_leak', 57), ('plugin_pair', 57), ('plugin_pair', 59)):
            modules = {os.path.basename(f['module']) for s in mwlive.select(report, name, size=size)
                       for f in s['frames'] if mwlive.plain(f['function']) == name}
            expected = {'libplugin_leak.so'} if size == 57 else {f'libplugin_{n}.so' for n in LIBRARIES[1:]}
            self.assertEqual(modules, expected, size)
        target.finish()

    def test_windows_begin_and_end_amidst_the_loop(self):
        target = self.begin(0)
        before = {m[4] for m in mwlive.mappings(target.pid)}
        target.go()
        watched = 0
        times = mwlive.attempts(5, 12)
        for number in range(times):
            run = subprocess.run([mwlive.config.memwatch, '-p', str(target.pid), '--engine', mwlive.config.engine,
                                  '--quiet', '-d', '0.1'], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                 check=False, timeout=mwlive.PATIENCE)
            watched += run.returncode == 0
            # A library may be another while it is looked at; then it may refuse, and says so.
            self.assertIn((run.returncode, run.stdout), ((0, ''), (1, '')), f'window {number}: {run.stderr}')
            self.assertRegex(run.stderr, r'^memwatch: .{20,}\n$' if run.returncode else r'^$', f'window {number}')
        print(f'{watched} of {times} windows began amidst loads of libraries', flush=True)
        self.assertGreater(watched, 0)
        target.send()
        target.done()
        mwjump.check_text_of_files(self, target.pid)
        self.assertEqual({m[4] for m in mwlive.mappings(target.pid)} - before, set())
        target.finish()


if __name__ == '__main__':
    mwlive.main()
