#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A Python program that keeps a known number of blocks of an unusual size."""
import os
import shutil
import sys
import unittest

import mwlive

PROGRAM = '''
import os, sys
keep = []
def leak(n):
    for i in range(n):
        keep.append(bytes(12345 - 33))
print('ready', os.getpid(), flush=True)
os.read(0, 1)
leak(1000)
print('done', flush=True)
os.read(0, 1)
print(sum(map(len, keep)))
'''


class Python(unittest.TestCase):
    def check(self, env):
        python = '/usr/bin/python3' if os.path.exists('/usr/bin/python3') else os.path.realpath(sys.executable)
        if not shutil.which(python):
            self.skipTest('no python3')
        target = mwlive.Target(self, 'python', argv=[python, '-S', '-c', PROGRAM], env=env)
        watch = mwlive.Watch(self, target.pid)
        target.go()
        target.done()
        report = watch.stop()
        kept = mwlive.total_of(mwlive.select(report, kinds=('heap',), size=12345))['impacting']
        self.assertEqual(kept, {'count': 1000, 'bytes': 12345000})
        target.finish()

    def test_default_allocator(self):
        self.check({})

    def test_malloc(self):
        self.check({'PYTHONMALLOC': 'malloc'})


if __name__ == '__main__':
    mwlive.main()
