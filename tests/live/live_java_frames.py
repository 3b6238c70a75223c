#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Java's frames: each stack of a program that knows all of its own, interpreted and compiled, by method, file and line.
Other virtual machines than the one in the path: below /usr/lib/jvm, and those of MEMWATCH_JAVAS (PATH/bin/java:…)."""
import glob
import os
import re
import shutil
import subprocess
import unittest

import mwframes
import mwlive
import mwrec

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'programs')
PATTERN = re.compile(r'openjdk version "(\d+)')
KINDS = {'mixed': [], 'interpreted': ['-Xint'], 'compiled early': ['-XX:TieredStopAtLevel=1'],
         'compiled at once': ['-XX:-TieredCompilation'], 'small code cache': ['-XX:ReservedCodeCacheSize=6m']}


def machines():
    """Java virtual machines, one a version."""
    found = {}
    for path in [*filter(None, os.environ.get('MEMWATCH_JAVAS', '').split(':')), '/usr/bin/java', *sorted(glob.glob('/usr/lib/jvm/*/bin/java'))]:
        if not os.path.exists(path):
            continue
        run = subprocess.run([path, '-version'], capture_output=True, text=True, timeout=mwlive.PATIENCE, check=False)
        version = PATTERN.search(run.stderr)
        if version and int(version[1]) >= 17:
            found.setdefault(version[1], path)
    return found


def plain(name):
    """A class that is made for a lambda has a number after its name, and a native method a line of -2."""
    return re.sub(r'(\$\$Lambda|LambdaForm\$\w+|MethodAccessor\w*|Accessor\d+)[^.]*', r'\1', name).replace(':-2', ':-1')


def own_part(frames):
    """Behind a virtual thread's own frames is what the thread does that carries it."""
    last = next((i for i, frame in enumerate(frames) if frame.startswith('jdk.internal.vm.Continuation.')), len(frames))
    return frames[:last]


def as_written(frame):
    """As the program writes it."""
    return plain(f'{frame["function"]}:{frame["line"] or -1}')


@unittest.skipUnless(shutil.which('javac'), 'there is no Java compiler')
class Frames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = mwlive.tempfile.mkdtemp(prefix='mwlive-java-')
        subprocess.run(['javac', '--release', '17', '-g', '-d', cls.directory,
                        *(os.path.join(PROGRAMS, name) for name in ('Frames.java', 'Overflow.java', 'Unloaded.java'))],
                       check=True, timeout=4 * mwlive.PATIENCE)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.directory, ignore_errors=True)

    def run_frames(self, java, rounds, *options, program='Frames', words=()):
        answer = os.path.join(mwrec.directory(self), 'answer')
        report = mwframes.run(self, [java, '-XX:+UseSerialGC', '-XX:CompileCommand=quiet',
                                     '-XX:CompileCommand=dontinline,Frames.helper', *options, '-cp', self.directory, program,
                                     str(rounds), answer, *words], patience=8)
        known = {}
        with open(answer, encoding='utf-8') as lines:
            for line in lines:
                blocks, size, stack = line.rstrip().split(' ', 2)
                frames = own_part(tuple(map(plain, stack.split())))
                before = known.get(frames, (0, 0))
                known[frames] = (before[0] + int(blocks), before[1] + int(size))
        return report, known

    @staticmethod
    def frames_of(stack, take='Frames.take:'):
        frames = [as_written(f) for f in stack['frames'] if f['language'] == 'java' and not f['function'].startswith('~')]
        native = next((i for i, f in enumerate(stack['frames']) if f['language'] == 'java'), 0)
        # What the virtual machine needs itself for a line, as to find a native method, is not the program's.
        if not frames or not frames[0].startswith('jdk.internal.misc.Unsafe.allocateMemory0') or native > 2:
            return None
        return own_part(frames[next((i for i, frame in enumerate(frames) if frame.startswith(take)), len(frames)):])

    def compare(self, report, known, take='Frames.take:'):
        mwframes.compare(self, report, known, lambda stack: self.frames_of(stack, take))

    def check(self, java, *options):
        report, known = self.run_frames(java, 100, *options)
        self.assertGreater(len(known), 20)
        self.compare(report, known)

    def test_kinds_of_code(self):
        for kind, options in KINDS.items():
            with self.subTest(kind):
                self.check('java', *options)

    def test_versions(self):
        for version, java in machines().items():
            with self.subTest(version):
                self.check(java)

    def test_virtual_threads(self):
        """Of one that has slept the outermost frames are not on the stack of the thread that carries it."""
        found = {version: java for version, java in machines().items() if int(version) >= 21}
        if not found:
            self.skipTest('there is no Java with virtual threads')
        for version, java in found.items():
            with self.subTest(version):
                report, known = self.run_frames(java, 50, words=['virtual'])
                self.assertTrue(any(stack[-1].startswith('java.lang.VirtualThread') for stack in known))
                blocks = 0
                for stack in report['stacks']:
                    frames = tuple(self.frames_of(stack) or ())
                    if frames:
                        self.assertTrue(any(frames == whole[:len(frames)] for whole in known), frames)
                        blocks += stack['impacting']['count']
                self.assertEqual(blocks, sum(count for count, _ in known.values()))

    def test_unloaded_classes(self):
        """Where a class and its code were, others come to be: each stack keeps its own names."""
        for kind, options in {'interpreted': ['-Xint'], 'compiled': ['-XX:TieredStopAtLevel=1', '-Xbatch']}.items():
            with self.subTest(kind):
                report, known = self.run_frames('java', 15, *options, program='Unloaded')
                self.assertEqual(len(known), 15)
                self.compare(report, known, 'Unloaded.take:')

    def test_signals_at_a_method_s_beginning(self):
        """A frame that is not set up yet leads nowhere: the stack ends there, and says so."""
        target = mwlive.Target(self, 'java', argv=['java', '-XX:+UseSerialGC', '-cp', self.directory, 'Overflow', '3000'])
        watch = mwlive.Watch(self, target.pid)
        target.go()
        target.done(4 * mwlive.PATIENCE)
        report = watch.stop()
        target.finish()
        interrupted = [[f['function'] for f in stack['frames']] for stack in report['stacks']
                  if any(f['function'] == '__restore_rt' for f in stack['frames'])]
        if not interrupted:
            self.skipTest('no signal has interrupted a method and made the virtual machine allocate')
        for stack in interrupted:
            self.assertIn('Overflow.deep', stack[stack.index('__restore_rt') + 1:])
            self.assertNotIn(None, stack)


if __name__ == '__main__':
    mwlive.main()
