#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Leaks outside the Java heap: the line that leaks is in the first suspect."""
import itertools
import os
import re
import shutil
import subprocess
import unittest

import mwlive
from live_java_frames import PROGRAMS, machines

PROGRAM = os.path.join(PROGRAMS, 'Leaks.java')
COUNTS = {'buffer': 1000, 'inflater': 1000, 'library': 1000, 'thread': 400}  # more threads than had room at the beginning
GROWS = 'steady growth', 'accelerating', 'stepwise growth'
LIBRARY = '#include <stdlib.h>\nvoid *volatile kept;\nlong Java_Leaks_take(void *env, void *type, long size)\n{ return !(kept = malloc(size)); }\n'


@unittest.skipUnless(shutil.which('javac') and shutil.which('cc'), 'there is no Java compiler, or none of C')
class Leaks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = mwlive.tempfile.mkdtemp(prefix='mwlive-java-')
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        cls.library = os.path.join(cls.directory, 'libleaks.so')
        subprocess.run(['cc', '-shared', '-fPIC', '-O2', '-x', 'c', '-', '-o', cls.library], input=LIBRARY, text=True, check=True,
                       timeout=mwlive.PATIENCE)
        subprocess.run(['javac', '--release', '17', '-d', cls.directory, PROGRAM], check=True, timeout=4 * mwlive.PATIENCE)
        with open(PROGRAM, encoding='utf-8') as source:
            cls.lines = {match[1]: number for number, line in enumerate(source, 1)
                         if (match := re.search(r'// leaks: (\w+)', line))}

    def check(self, java, kind):
        count = COUNTS[kind] if mwlive.config.engine == 'jump' else COUNTS[kind] // 4
        target = mwlive.Target(self, 'java', argv=[java, '-XX:+UseSerialGC', '-Xmx64m', '-cp', self.directory, 'Leaks', kind,
                                                   str(count), self.library])
        watch = mwlive.Watch(self, target.pid)
        target.go()
        target.done(4 * mwlive.PATIENCE)
        report = watch.stop()
        target.finish()
        first = report['suspects'][0]
        self.assertIn(first['verdict'], GROWS, first)
        self.assertGreaterEqual(first['blocks'], count)
        if kind == 'library':
            self.assertEqual(first['function'], 'Java_Leaks_take')  # written by the user, too, and without lines
        else:
            self.assertEqual((first['file'], first['line']), ('Leaks.java', self.lines[kind]), first)
        stacks = [stack for stack in report['stacks'] if stack['id'] in first['stacks']]
        self.assertEqual(len(stacks), len(first['stacks']))
        for stack in stacks:
            self.assertIn(('Leaks.java', self.lines[kind]), [(frame['file'], frame['line']) for frame in stack['frames']])

    def test_kinds(self):
        for kind, (version, java) in zip(COUNTS, itertools.cycle(machines().items())):
            with self.subTest(f'{kind}, {version}'):
                self.check(java, kind)


if __name__ == '__main__':
    mwlive.main()
