#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a report says that it does not show: children, objects of a runtime, growth that no block explains; the name
that a program was executed by; the limit of memory. The report of a recording says the same."""
import os
import re
import shutil
import subprocess
import sys
import unittest

import mwlive
import mwrec

MIB = 1 << 20
PYTHON = '/usr/bin/python3' if os.path.exists('/usr/bin/python3') else os.path.realpath(sys.executable)

# Three children, of which one thread has made one; another has ended, and is a zombie.
PARENT = '''
import os, sys, threading, time
parent = os.getpid()
def fork():
    if os.fork() == 0:
        while os.getppid() == parent:
            time.sleep(0.1)
        os._exit(0)
fork()
fork()
thread = threading.Thread(target=fork)
thread.start()
thread.join()
if os.fork() == 0:
    os._exit(0)
print('ready', parent, flush=True)
time.sleep(1000)
'''

# Memory that was mapped before the window and is touched in it.
GROWS = '''
import mmap, os
memory = mmap.mmap(-1, 64 << 20)
print('ready', os.getpid(), flush=True)
os.read(0, 1)
for at in range(0, 48 << 20, 4096):
    memory[at] = 1
print('done', flush=True)
os.read(0, 1)
'''


def children_of(pid):
    """Those that live."""
    found = []
    for name in os.listdir('/proc'):
        status = mwlive.status(name) if name.isdigit() else {}
        if status.get('PPid') == str(pid) and status['State'][0] != 'Z':
            found.append(int(name))
    return sorted(found)


def three_children_of(pid):
    """When the fourth has ended: it may be seen before it does."""
    mwlive.wait_until(lambda: len(children_of(pid)) == 3, 'the fourth child has ended')
    return children_of(pid)


class Missing(unittest.TestCase):
    def start(self, program, env=None):
        return mwlive.Target(self, 'python', argv=[PYTHON, '-S', '-c', program], env=env)

    def text_of(self, kept):
        run = subprocess.run([mwlive.config.memwatch, 'report', kept.path], capture_output=True, text=True,
                             timeout=mwlive.PATIENCE, check=True)
        return ' '.join(run.stdout.split())

    def test_children(self):
        target = self.start(PARENT)
        children = three_children_of(target.pid)
        kept = mwrec.Kept(self, target.pid)
        report, = kept.stop()
        self.assertEqual([(child['pid'], child['watched']) for child in report['children']],
                         [(child, False) for child in children])
        self.assertEqual({child['comm'] for child in report['children']}, {mwlive.status(target.pid)['Name']})
        self.assertIn('Nothing was allocated in the window, and nothing freed; its 3 children were not watched: '
                      f'-p {",".join(map(str, children))}, or --children ', self.text_of(kept))

    def test_watched_children(self):
        target = self.start(PARENT)
        first, *others = three_children_of(target.pid)
        kept = mwrec.Kept(self, target.pid, first)
        reports = kept.stop()
        self.assertEqual([(child['pid'], child['watched']) for child in reports[0]['children']],
                         [(first, True)] + [(child, False) for child in others])
        self.assertEqual(reports[1]['children'], [])
        self.assertIn(f'its 2 children were not watched: -p {",".join(map(str, others))}, or --children ', self.text_of(kept))

    def test_python(self):
        for setting, expected in (('pymalloc', ['python']), ('malloc', [])):
            with self.subTest(setting):
                target = self.start(GROWS, {'PYTHONMALLOC': setting})
                kept = mwrec.Kept(self, target.pid)
                report, = kept.stop()
                self.assertEqual([runtime['name'] for runtime in report['runtimes']], expected)
                self.assertEqual("Python's objects of up to 512 bytes" in self.text_of(kept), bool(expected))
                mwlive.kill_quietly(target.process)

    @unittest.skipUnless(shutil.which('node'), 'node is not installed')
    def test_node(self):
        program = "console.log('ready', process.pid); setTimeout(() => 0, 1000000)"
        target = mwlive.Target(self, 'node', argv=['node', '-e', program])
        # Its compiler makes code meanwhile.
        report = mwlive.Watch(self, target.pid).stop(intact=False)
        self.assertEqual([runtime['name'] for runtime in report['runtimes']], ['v8'])
        mwlive.kill_quietly(target.process)

    def test_interpreters(self):
        """Of those that are installed: that frames of scripts have no names, and which tool of theirs shows them."""
        programs = {
            'ruby': (['ruby', '-e', '$stdout.sync = true; puts "ready #{$$}"; sleep'], 'rbspy'),
            'php': (['php', '-r', 'echo "ready ", getmypid(), "\\n"; sleep(1000);'], 'phpspy'),
            'perl': (['perl', '-e', '$| = 1; print "ready $$\\n"; sleep'], 'Devel::MAT'),
            'lua': (['lua5.4', '-e', 'io.stdout:setvbuf("no"); local f = io.open("/proc/self/stat"); '
                     'print("ready " .. f:read("n")); io.read()'], 'collectgarbage("count")'),
            'erlang': (['erl', '-noshell', '-eval', 'io:format("ready ~s~n", [os:getpid()]).'], 'recon_alloc'),
        }
        for name, (argv, tool) in programs.items():
            if not shutil.which(argv[0]):
                continue
            with self.subTest(name):
                target = mwlive.Target(self, name, argv=argv)
                kept = mwrec.Kept(self, target.pid)
                report, = kept.stop()
                self.assertEqual([runtime['name'] for runtime in report['runtimes']], [name])
                self.assertIn(tool, re.sub(r'\s+', ' ', self.text_of(kept)))
                mwlive.kill_quietly(target.process)

    def test_growth_without_blocks(self):
        target = self.start(GROWS)
        kept = mwrec.Kept(self, target.pid)
        target.go()
        target.done()
        report, = kept.stop()
        rss = report['rss_growth']
        self.assertTrue(rss['unexplained'])
        self.assertGreaterEqual(rss['bytes'], 47 * MIB)
        self.assertLess(rss['blocks'], 4 * MIB)
        self.assertGreaterEqual(sum(rss['other'].values()), 47 * MIB)
        self.assertRegex(self.text_of(kept), r'RSS \+\d+\.\d MiB: .* explained by blocks not freed, 4\d\.\d MiB ')

    def test_growth_by_blocks(self):
        """64 MiB are allocated and touched: nothing is unexplained."""
        target = mwlive.Target(self, 'python', argv=[PYTHON, '-S', '-c', '''
import os
print('ready', os.getpid(), flush=True)
os.read(0, 1)
keep = [b'x' * 65536 + bytes([i % 7]) for i in range(1000)]
print('done', flush=True)
os.read(0, 1)
'''])
        kept = mwrec.Kept(self, target.pid)
        target.go()
        target.done()
        report, = kept.stop()
        self.assertGreaterEqual(report['rss_growth']['blocks'], 60 * MIB)
        self.assertFalse(report['rss_growth']['unexplained'])
        self.assertNotIn('explained by blocks', self.text_of(kept))

    def executed(self, make, name):
        """A program that has another name is called by the name that it was executed by."""
        directory = os.path.realpath(mwrec.directory(self))
        # A hard link is of the same file system only.
        program, link = os.path.join(directory, 'simple'), os.path.join(directory, name)
        shutil.copy2(mwlive.target_path('simple'), program)
        make(program, link)
        target = mwlive.Target(self, 'simple', argv=[link, '100'])
        kept = mwrec.Kept(self, target.pid)
        target.go()
        target.done()
        report, = kept.stop()
        modules = {frame['module'] for stack in report['stacks'] for frame in stack['frames']}
        target.finish()
        return report['target']['exe'], modules, program, link

    def test_executed_by_another_name(self):
        for make in (os.symlink, os.link):
            with self.subTest(make.__name__):
                exe, modules, program, link = self.executed(make, 'other')
                self.assertEqual(exe, link)
                self.assertIn(link, modules)
                self.assertNotIn(program, modules)

    def test_executed_by_a_name_without_version(self):
        exe, modules, program, link = self.executed(os.symlink, 'simp')
        self.assertEqual(exe, program)
        self.assertIn(program, modules)
        self.assertNotIn(link, modules)

    def test_limit(self):
        target = self.start(PARENT)
        report = mwlive.Watch(self, target.pid).stop()
        limit = report['target']['memory_limit']
        with open('/proc/meminfo', encoding='utf-8') as f:
            total = int(re.search(r'^MemTotal: *(\d+) kB', f.read())[1]) << 10
        self.assertGreater(limit['used'], 0)
        self.assertIn(limit['of'], ('cgroup', 'machine'))
        if limit['of'] == 'machine':
            self.assertEqual(limit['bytes'], total)
            self.assertLess(limit['used'], total)

    def test_time_to_the_limit(self):
        """Of what grows it is known, and it is the room by the rate."""
        target = self.start('''
import os, time
print('ready', os.getpid(), flush=True)
os.read(0, 1)
keep = []
for i in range(300):
    keep.append(bytes(100000))
    time.sleep(0.01)
print('done', flush=True)
os.read(0, 1)
''')
        kept = mwrec.Kept(self, target.pid)
        target.go()
        target.done()
        report, = kept.stop()
        limit = report['target']['memory_limit']
        growing = [s for s in report['suspects'] if s['bytes_per_hour'] > 0]
        self.assertTrue(growing, report['suspects'])
        for suspect in growing:
            self.assertAlmostEqual(suspect['seconds_to_limit'] * suspect['bytes_per_hour'] / 3600,
                                   limit['bytes'] - limit['used'], delta=MIB)
        for suspect in report['suspects']:
            self.assertEqual(suspect['seconds_to_limit'] is None, suspect['bytes_per_hour'] == 0)
        self.assertRegex(self.text_of(kept), r"reaches the (cgroup's limit|machine's memory) \(.*\) in \d+ "
                                             r'(s|min|h|days) at this rate')


if __name__ == '__main__':
    mwlive.main()
