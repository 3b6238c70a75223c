#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stacks, function by function, against gdb's."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import mwlive

GDB_SCRIPT = '''
import gdb, json
out = open({path!r}, 'w')
class AtMalloc(gdb.Breakpoint):
    def stop(self):
        size = int(gdb.parse_and_eval('(unsigned long) $rdi'))
        if not {first} <= size <= {last}:
            return False
        frames = []
        frame = gdb.newest_frame().older()
        # Where code that is inlined begins at the entry that is another frame of the same function.
        while (frame.name() or '').endswith('__libc_malloc'):
            frame = frame.older()
        while frame is not None and frame.is_valid():
            # Tail calls leave no frame: gdb infers them. The trampoline has a name only with libc's debug symbols.
            if frame.type() not in (gdb.SIGTRAMP_FRAME, gdb.TAILCALL_FRAME):
                frames.append([frame.name(), frame.type() == gdb.INLINE_FRAME])
            frame = frame.older()
        out.write(json.dumps([size, frames]) + '\\n')
        return False
gdb.execute('set breakpoint pending on')
gdb.execute('set backtrace past-main on')
gdb.execute('set debuginfod enabled off')
gdb.execute('handle SIGUSR1 SIGUSR2 nostop noprint pass')
AtMalloc('malloc')
gdb.execute('run < /dev/null > /dev/null')
out.close()
'''


def to_main(names):
    """What lies beyond main is libc's affair and named differently with and without its debug symbols."""
    return names[:names.index('main') + 1] if 'main' in names else names


class Stacks(unittest.TestCase):
    maxDiff = None

    def by_gdb(self):
        with tempfile.TemporaryDirectory() as directory:
            script, path = os.path.join(directory, 'stacks.py'), os.path.join(directory, 'stacks.json')
            with open(script, 'w', encoding='utf-8') as f:
                f.write(GDB_SCRIPT.format(path=path, first=70000, last=70999))
            subprocess.run(['gdb', '-nx', '-batch', '-x', script, mwlive.target_path('deepstack')], check=True,
                           capture_output=True, timeout=100)
            with open(path, encoding='utf-8') as f:
                return {size: frames for size, frames in map(json.loads, f)}

    def test_against_gdb(self):
        if not shutil.which('gdb'):
            self.skipTest('gdb is not installed')
        theirs = self.by_gdb()
        answer, report = mwlive.observe(self, 'deepstack')
        self.assertGreaterEqual(answer['stacks'], 50)
        self.assertEqual(len(theirs), answer['stacks'])
        ours = {s['size']['bytes']: s for s in report['stacks']
                if s['kind'] == 'heap' and 70000 <= s['size']['bytes'] <= 70999}
        self.assertEqual(set(ours), set(theirs))
        different = {}
        for size, frames in theirs.items():
            # Without debug symbols of libc its own functions have no names for either.
            expected = to_main([f for f in (mwlive.plain(name) for name, _ in frames) if f is not None])
            got = to_main([f for f in mwlive.functions(ours[size]) if f not in (None, '__restore_rt')])
            if expected != got:
                different[size] = (expected, got)
        self.assertEqual(different, {})
        for stack in ours.values():
            self.assertFalse(stack['truncated'])
            self.assertIn('_start', mwlive.functions(stack), 'the stack reaches the thread\'s start')
        self.assertTrue(all(s['frames'][0]['inlined'] for s in ours.values()), 'take_inlined is inlined')

    def test_signal_frames(self):
        _, report = mwlive.observe(self, 'deepstack')
        stacks = mwlive.select(report, 'deep_handler')
        self.assertGreater(len(stacks), 20)
        if not mwlive.select(report, '__libc_start_call_main'):
            self.skipTest('without debug symbols of libc its trampoline has no name')
        for stack in stacks:
            names = mwlive.functions(stack)
            self.assertEqual(names[names.index('deep_handler') + 1], '__restore_rt')


if __name__ == '__main__':
    mwlive.main()
