#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a Java virtual machine has its memory for: in the account of a heap and in a window's report, against what the
virtual machine itself tells (-XX:NativeMemoryTracking, jcmd GC.heap_info) and what the kernel does (smaps); growth of the
Java heap. Other virtual machines: as in live_java_frames.py."""
import json
import os
import re
import shutil
import signal
import subprocess
import unittest

import mwlive
import mwrec
from live_java_frames import PROGRAMS, machines

PAGE, KIB, MIB = 1 << 12, 1 << 10, 1 << 20
FIRST, MORE = 40, 60  # MiB kept by the program
# What the virtual machine tells by category, and the account by name. Of the first three all is reserved for it alone.
CATEGORIES = {'Java heap': r'Java Heap \((reserved=(\d+)KB, committed=(\d+)KB)',
              'class space': r'Class space:\)\s+\( *(reserved=(\d+)KB, committed=(\d+)KB)',
              'metaspace': r'Metaspace \([^-]*?\(mmap: (reserved=(\d+)KB, committed=(\d+)KB)',
              'code cache': r'Code \([^-]*?\(mmap: (reserved=(\d+)KB, committed=(\d+)KB)',
              'card table': r'GC \([^-]*?\(mmap: (reserved=(\d+)KB, committed=(\d+)KB)'}
EXACT = ('Java heap', 'class space', 'metaspace')
# The archive of classes is left out: parts of the heap may be mapped from it, as files' data.
# And nothing is compiled, once it is idle.
OPTIONS = ('-Xshare:off', '-Xms256m', '-Xmx256m', '-XX:NativeMemoryTracking=summary', '-XX:-UsePerfData', '-Xint')
COLLECTORS = ('-XX:+UseSerialGC', '-XX:+UseParallelGC', '-XX:+UseG1GC')
OTHERS = (('-XX:+UseShenandoahGC',), ('-XX:+UseZGC',), ('-XX:+UseZGC', '-XX:+ZGenerational'), ('-XX:+UseEpsilonGC',))
# How jcmd tells what is committed and used, by generation or of all.
RANGE = r' \[0x(\w+), ?0x(\w+), ?0x\w+\)'
GENERATION = re.compile(r'(?:new generation|tenured generation|DefNew|Tenured|PSYoungGen|ParOldGen) +total \d+K, used (\d+)K' + RANGE)
EPSILON = re.compile(r'Epsilon.*space (\d+)K, +\d+% used' + RANGE, re.DOTALL)
COMMITTED = re.compile(r'(?:total|committed|capacity) (\d+)([KMG])\b|\b(\d+)([KMG]) committed')
USED = re.compile(r'\bused (\d+)([KMG])\b|\b(\d+)([KMG]) used')
UNITS = {'K': KIB, 'M': MIB, 'G': MIB << 10}


def resident(pid):
    """As smaps has it."""
    with open(f'/proc/{pid}/smaps', encoding='utf-8') as smaps:
        return sum(int(line.split()[1]) * KIB for line in smaps if line.startswith('Rss:'))


def jcmd(pid, *words):
    return subprocess.run(['jcmd', str(pid), *words], capture_output=True, text=True, timeout=2 * mwlive.PATIENCE,
                          check=True).stdout


def heap_info(pid):
    """What is committed of the heap, and used, as the collector counts."""
    text = jcmd(pid, 'GC.heap_info')
    generations, epsilon = GENERATION.findall(text), EPSILON.search(text)
    if generations:
        return (sum(int(high, 16) - int(low, 16) for _, low, high in generations), sum(int(used) * KIB for used, *_ in generations))
    if epsilon:
        return int(epsilon[1]) * KIB, int(epsilon[3], 16) - int(epsilon[2], 16)
    found = (next(pattern.finditer(text)).groups() for pattern in (COMMITTED, USED))
    return tuple(int(groups[0] or groups[2]) * UNITS[groups[1] or groups[3]] for groups in found)


@unittest.skipUnless(shutil.which('javac') and shutil.which('jcmd'), 'there is no JDK')
class Space(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = mwlive.tempfile.mkdtemp(prefix='mwlive-java-')
        subprocess.run(['javac', '--release', '17', '-d', cls.directory, os.path.join(PROGRAMS, 'Spaces.java')], check=True,
                       timeout=4 * mwlive.PATIENCE)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.directory, ignore_errors=True)

    def start(self, java, *options):
        return mwlive.Target(self, 'java', argv=[java, *OPTIONS, *options, '-cp', self.directory, 'Spaces', str(FIRST), str(MORE)])

    def by_native_memory(self, pid):
        """By name: reserved and committed."""
        text = jcmd(pid, 'VM.native_memory', 'summary')
        found = {name: re.search(pattern, text) for name, pattern in CATEGORIES.items()}
        self.assertEqual([name for name, match in found.items() if not match], [], text)
        return {name: (int(match[2]) * KIB, int(match[3]) * KIB) for name, match in found.items()}

    def check_regions(self, regions, expected):
        for name, region in regions.items():
            reserved, committed = expected[name]
            with self.subTest(name):
                self.assertLessEqual(region['resident'], committed)
                if name in EXACT:
                    self.assertEqual((region['reserved'], region['committed']), (reserved, committed))
                else:
                    self.assertLessEqual(region['reserved'], reserved)

    def check_use(self, region, told):
        """jcmd tells whole units, of each generation."""
        self.assertEqual(region['committed'], told[0])
        self.assertAlmostEqual(region['used'], told[1], delta=2 * KIB)

    def check_window(self, java, collector):
        target = self.start(java, collector)
        heap_info(target.pid)  # the first time it starts a thread, and so uses memory
        kept = mwrec.Kept(self, target.pid)
        target.go()
        target.done()
        # To be compared, all of its code would become resident.
        report = kept.watch.stop(intact=False)
        told = heap_info(target.pid)
        kept.check_same()
        idle = resident(target.pid)
        expected = self.by_native_memory(target.pid)
        space = report['address_space']
        named = {item['name']: item for item in space['named']}
        self.assertEqual(set(named), set(CATEGORIES))
        self.check_regions({name: item['end'] for name, item in named.items()}, expected)
        self.check_use(named['Java heap']['end'], told)
        self.assertEqual({item['end']['used'] for name, item in named.items() if name != 'Java heap'}, {None})
        self.assertGreaterEqual(named['Java heap']['start']['used'], FIRST * MIB)
        self.assertGreaterEqual(named['Java heap']['end']['used'], (FIRST + MORE) * MIB)
        for moment in ('start', 'end'):
            for what in ('reserved', 'resident'):
                self.assertLess(sum(item[moment][what] for item in named.values()), space[moment]['anonymous'][what])
        found = sum(kind['resident'] for name, kind in space['end'].items() if name != 'memwatch')
        self.assertAlmostEqual(found, idle, delta=4 * PAGE)
        self.check_growth(report, named['Java heap'], kept, collector)
        target.finish()

    def check_growth(self, report, heap, kept, collector):
        grown = heap['end']['resident'] - heap['start']['resident']
        runtime, = report['runtimes']
        self.assertEqual((runtime['name'], runtime['growth'], runtime['blocks']), ('jvm', grown, min(grown, heap['blocks'])))
        if collector != '-XX:+UseSerialGC':
            return
        # All of the heap is committed before the window. Its old generation takes what is kept, its young one is used as well.
        self.assertGreaterEqual(grown, MORE * MIB)
        self.assertEqual(heap['blocks'], 0)
        self.assertTrue(report['rss_growth']['unexplained'])
        text = ' '.join(mwlive.memwatch(self, 'report', kept.path, '--all')[0].split())
        self.assertRegex(text, r'OPEN RSS \+\S+ MiB: \S+ \S+ explained by blocks not freed, \S+ MiB anonymous mappings '
                               r'\(\S+ MiB of it in the Java heap\)')
        self.assertIn('jcmd PID GC.heap_dump FILE', text)
        self.assertRegex(text, r' Java heap 256\.0 MiB 256\.0 MiB 0 B \S+ MiB \S+ MiB \+\S+ MiB '
                               r'256\.0 MiB reserved, 256\.0 MiB committed, \S+ MiB used \(\+\S+ MiB\) ')

    def check_account(self, java, collector):
        target = self.start(java, collector)
        expected = self.by_native_memory(target.pid)
        os.kill(target.pid, signal.SIGSTOP)
        mwlive.wait_until(lambda: all(mwlive.state(tid) == 'T' for tid in mwlive.tids(target.pid)), 'it has stopped')
        account = json.loads(mwlive.memwatch(self, 'heap', '-p', target.pid, '--json', '-')[0])
        # To be copied, it touches a page or two.
        self.assertEqual(account['rss'], resident(target.pid))
        os.kill(target.pid, signal.SIGCONT)
        self.assertEqual(sum(line['bytes'] for line in account['account']), account['rss'])
        lines = {line['detail']: line['bytes'] for line in account['account'] if line['name'] == 'Java virtual machine'}
        self.assertEqual(set(lines), set(CATEGORIES))
        for name, size in lines.items():
            self.assertLessEqual(size, expected[name][1], name)
        self.assertGreaterEqual(lines['Java heap'], FIRST * MIB)
        stacks = [line for line in account['account'] if line['name'] == 'stacks']
        self.assertEqual(len(stacks), 1)
        target.finish()

    def each(self, check):
        for version, java in machines().items():
            for collector in COLLECTORS:
                with self.subTest(version=version, collector=collector):
                    check(java, collector)

    def test_committed_in_the_window(self):
        """Pieces of the heap touch each other, and are touched by and by: it is known what is resident of each."""
        for version, java in machines().items():
            with self.subTest(version):
                target = self.start(java, '-XX:+UseSerialGC', '-Xms16m')
                watch = mwlive.Watch(self, target.pid)
                target.go()
                target.done()
                report = watch.stop(intact=False)
                target.finish()
                heap, = (item for item in report['address_space']['named'] if item['name'] == 'Java heap')
                made = [stack for stack in report['stacks'] if stack['kind'] == 'vm' and stack['impacting']['count']]
                self.assertGreater(sum(stack['impacting']['count'] for stack in made), 1)
                self.assertNotIn(None, [stack['resident'] for stack in made])
                self.assertTrue(0 < heap['blocks'] <= sum(stack['resident'] for stack in made))

    def check_heap(self, java, options):
        target = mwlive.Target(self, 'java', argv=[java, '-XX:+UnlockExperimentalVMOptions', '-XX:-UsePerfData', '-Xlog:disable',
                                                   '-Xms64m', '-Xmx256m', *options, '-cp', self.directory, 'Spaces',
                                                   str(FIRST), '0'])
        before = heap_info(target.pid)
        kept = os.path.join(mwrec.directory(self), 'look')
        account = json.loads(mwlive.memwatch(self, 'heap', '-p', target.pid, '-o', kept, '--json', '-')[0])
        self.assertEqual(heap_info(target.pid), before)
        heap, = (line for line in account['account'] if line['detail'] == 'Java heap')
        self.check_use(heap, before)
        self.assertLessEqual(FIRST * MIB, heap['used'])
        self.assertEqual(json.loads(mwlive.memwatch(self, 'report', kept, '--json', '-')[0])['account'], account['account'])
        self.assertRegex(mwlive.memwatch(self, 'report', kept)[0], r'Java virtual machine: Java heap, \S+ MiB reserved, \S+ MiB committed, \S+ MiB used\n')
        self.assertEqual(sum(line['bytes'] for line in account['account']), account['rss'])
        if '-XX:+UseZGC' in options:  # shared memory, of others check_window() has windows
            named = {item['name']: item for item in mwlive.Watch(self, target.pid).stop()['address_space']['named']}
            self.check_use(named['Java heap']['end'], before)
        target.finish()

    def test_heaps(self):
        """By each collector that a virtual machine has: what is committed is not all of the heap."""
        for version, java in machines().items():
            for options in (*((option,) for option in COLLECTORS), *OTHERS):
                run = subprocess.run([java, '-XX:+UnlockExperimentalVMOptions', *options, '-version'], capture_output=True,
                                     timeout=mwlive.PATIENCE, check=False)
                if run.returncode == 0 and b'Ignoring option' not in run.stderr:
                    with self.subTest(version=version, options=options):
                        self.check_heap(java, options)

    def test_windows(self):
        self.each(self.check_window)

    def test_accounts(self):
        self.each(self.check_account)


if __name__ == '__main__':
    mwlive.main()
