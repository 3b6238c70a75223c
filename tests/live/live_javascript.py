#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""JavaScript's frames: each stack of a program that knows all of its own, interpreted and compiled, by function, file and
line. Another node than the one in the path: MEMWATCH_NODE."""
import json
import os
import re
import shutil
import subprocess
import time
import unittest

import mwlive
import mwrec

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'programs')
NODE = os.environ.get('MEMWATCH_NODE') or shutil.which('node')
INTERPRETED = ('--no-opt', '--no-sparkplug')
OBJECTS_MOVE = ('--gc-interval=2000', '--max-semi-space-size=1')
# The oldest V8 that has its middle compiler, and the oldest whose code of that has lines.
MAGLEV, MAGLEV_READ = 11, 13
# An addon whose one function keeps a block: of as many bytes as it is called with.
ADDON = '''#include <stdint.h>
#include <stdlib.h>
typedef struct napi *napi;
int napi_get_cb_info(napi, napi, size_t *, napi *, napi *, void **);
int napi_get_value_uint32(napi, napi, uint32_t *);
int napi_create_function(napi, const char *, size_t, napi (*)(napi, napi), void *, napi *);
void *volatile kept;
static napi keeps_a_block(napi env, napi info)
{
        size_t count = 1;
        uint32_t size = 0;
        napi argument;
        if (!napi_get_cb_info(env, info, &count, &argument, NULL, NULL) && !napi_get_value_uint32(env, argument, &size))
                kept = malloc(size);
        return NULL;
}
napi napi_register_module_v1(napi env, napi exports)
{
        napi function = NULL;
        return napi_create_function(env, "keeps", 5, keeps_a_block, NULL, &function) ? exports : function;
}
'''


def program(name):
    return os.path.join(PROGRAMS, name)


def v8_version():
    return int(subprocess.run([NODE, '-p', 'process.versions.v8'], capture_output=True, text=True, check=True,
                              timeout=mwlive.PATIENCE).stdout.split('.')[0])


def find_version(pid):
    """Where a process's V8 keeps the first number of its version."""
    with open(f'/proc/{pid}/maps', encoding='utf-8') as maps:
        firsts = [(int(line.split('-')[0], 16), line.split()[5]) for line in maps if len(line.split()) == 6 and
                  line.split()[2] == '0' * 8 and 'node' in line.split()[5]]
    for start, path in firsts:
        run = subprocess.run(['nm', '-D', path], capture_output=True, text=True, timeout=mwlive.PATIENCE, check=False)
        with open(path, 'rb') as file:
            fixed = file.read(18)[16] == 2  # ET_EXEC
        for match in re.finditer(r'([0-9a-f]+) \S _ZN2v88internal7Version6major_E', run.stdout):
            return int(match[1], 16) + (0 if fixed else start)
    return None


def scripted(stack):
    return [(f['function'], f['file'], f['line']) for f in stack['frames']
            if f['language'] == 'javascript' and f['file'] and not f['file'].startswith('node:')]


def difference(found, told):
    """What is wrong with frames, None if nothing is: where a line is not known, what is inlined there is missing."""
    left = list(told)
    for function, file, line in found:
        while left and line is None and left[0][:2] != (function, file):
            left.pop(0)
        if not left or left[0][:2] != (function, file) or line not in (None, left[0][2]):
            return f'{(function, file, line)} is not {left[:1]}: {found} for {told}'
        left.pop(0)
    return f'{left} are missing: {found}' if left else None


@unittest.skipUnless(NODE, 'node is not installed')
class JavaScript(unittest.TestCase):
    def watch(self, *argv, seconds):
        target = mwlive.Target(self, 'node', argv=[NODE, *argv])
        target.done()
        watch = mwlive.Watch(self, target.pid, options=('--track', 'heap'), busy=True)
        time.sleep(seconds)
        # Its compiler makes code meanwhile.
        report = watch.stop(intact=False)
        target.finish()
        return target, report

    def check_places(self, *options, lines=0.9, seconds=4):
        target, report = self.watch(*options, program('places.js'), seconds=seconds)
        told = {int(size): [(function or '(anonymous)', file, line) for function, file, line in sites
                            if not file.startswith('node:')]
                for size, sites in json.loads(target.answer['places']).items()}
        self.assertEqual(report['frames_missing'], None)
        seen, frames, placed = set(), 0, 0
        for stack in report['stacks']:
            count = stack['size']['count']
            size = stack['size']['bytes'] // count if count else 0
            if size not in told or size * count != stack['size']['bytes'] or stack['cut']:
                continue
            found = scripted(stack)
            wrong = difference(found, told[size])
            if wrong:
                self.fail(f'{size}: {wrong}')
            seen.add(size)
            frames += len(found) * count
            placed += sum(f[2] is not None for f in found) * count
        self.assertEqual(seen, set(told))
        self.assertGreaterEqual(placed, lines * frames)
        return report

    def test_places(self):
        self.check_places()

    def test_interpreted(self):
        report = self.check_places(*INTERPRETED, lines=1)
        frames = [(f, s['size']['count']) for s in report['stacks'] for f in s['frames'] if not s['cut']]
        # What it calls before it has put down what it runs.
        entered = sum(n for f, n in frames if f['function'] == 'Builtins_InterpreterEntryTrampoline')
        self.assertLessEqual(entered, sum(n for f, n in frames if f['language'] == 'javascript') / 20)

    def test_baseline(self):
        # Of the newest one's code some may have been moved or given up before it is read, on a busy machine.
        self.check_places('--no-opt', '--always-sparkplug', *(['--no-maglev'] if v8_version() >= MAGLEV else []),
                          lines=0.9 if v8_version() >= MAGLEV_READ else 1)

    def test_maglev(self):
        if v8_version() < MAGLEV:
            self.skipTest('this V8 has no Maglev')
        self.check_places('--maglev', '--stress-maglev', '--no-turbofan' if v8_version() >= MAGLEV_READ else '--no-sparkplug',
                          lines=0.9 if v8_version() >= MAGLEV_READ else 0)

    def test_objects_move(self):
        self.check_places(*OBJECTS_MOVE, lines=0.3)

    def test_other_version(self):
        """It is refused by its version, and native stacks stay."""
        target = mwlive.Target(self, 'node', argv=[NODE, program('leaks.js'), 'buffers'])
        target.done()
        at = find_version(target.pid)
        self.assertIsNotNone(at)
        with open(f'/proc/{target.pid}/mem', 'r+b', buffering=0) as memory:
            number = os.pread(memory.fileno(), 4, at)
            self.assertEqual(int.from_bytes(number, 'little'), v8_version())
            os.pwrite(memory.fileno(), (99).to_bytes(4, 'little'), at)
            watch = mwlive.Watch(self, target.pid, options=('--track', 'heap'), busy=True)
            time.sleep(2)
            report = watch.stop(intact=False)
            os.pwrite(memory.fileno(), number, at)
        target.finish()
        self.assertRegex(report['frames_missing'], r'^V8 99\.\d+ is not known to this memwatch: JavaScript frames are missing$')
        names = {f['function'] for stack in report['stacks'] for f in stack['frames']}
        self.assertIn('Builtins_JSEntry', names)
        self.assertFalse(any(scripted(stack) for stack in report['stacks']))

    def check_leak(self, kind, *arguments, function=None):
        """`function`: what the first suspect is charged to, where it is not the JavaScript line."""
        with open(program('leaks.js'), encoding='utf-8') as source:
            line = next(n for n, text in enumerate(source, 1) if text.rstrip().endswith(f'// leak: {kind}'))
        _, report = self.watch(program('leaks.js'), kind, *arguments, seconds=6)
        first = report['suspects'][0]
        places = [[(f['file'], f['line']) for f in s['frames']] for s in report['stacks'] if s['id'] in first['stacks']]
        self.assertTrue(places and all((program('leaks.js'), line) in frames for frames in places), report['suspects'][:3])
        if function:
            self.assertEqual(first['function'], function)
        else:
            self.assertEqual((first['file'], first['line']), (program('leaks.js'), line), report['suspects'][:3])

    def test_buffers(self):
        self.check_leak('buffers')

    def test_streams(self):
        self.check_leak('streams')

    def test_connections(self):
        self.check_leak('connections')

    @unittest.skipUnless(shutil.which('cc'), 'there is no C compiler')
    def test_addon(self):
        addon = os.path.join(mwrec.directory(self), 'keeps.node')
        subprocess.run(['cc', '-shared', '-fPIC', '-O2', '-g', '-x', 'c', '-', '-o', addon], input=ADDON, text=True, check=True,
                       timeout=mwlive.PATIENCE)
        self.check_leak('addon', addon, function='keeps_a_block')


if __name__ == '__main__':
    mwlive.main()
