#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Other runtimes under load: they keep working, and native stacks are right down to the first frame of compiled code."""
import os
import shutil
import subprocess
import unittest

import mwlive

# What a thread's outermost frame may be.
STARTS = ('_start', '__clone3', '__clone', 'clone', 'clone3', '__clone_internal')


def path_of(name):
    return os.path.join(mwlive.config.targets, 'runtimes', name)


class Runtimes(unittest.TestCase):
    def run_in_window(self, name, argv):
        """The program's whole work in one window: (answer, report). Its results are its own to check."""
        if not shutil.which(argv[0]) or not os.path.exists(path_of(name)):
            self.skipTest(f'no {name}: its runtime or its compiler is not installed')
        target = mwlive.Target(self, name, argv=argv)
        watch = mwlive.Watch(self, target.pid, busy=True)
        target.go()
        answer = target.done()
        report = watch.stop(intact=False)
        self.check_left_alone(watch.snapshots[0], report['engine']['left_behind'])
        target.finish()
        return answer, report

    def check_left_alone(self, before, left_behind):
        """Its files' code is as it was. What it compiles by itself comes and goes.

        Old words on the stacks of a runtime may look like a call that will come back: then what it would come back to
        may stay, unused, if that is told.
        """
        now = mwlive.mappings(before.pid)
        for m, text in before.text.items():
            if m in now:
                self.assertTrue(mwlive.read_memory(before.pid, m[0], m[1] - m[0]) == text, f'{m[4]} is changed')
        ours = [m for m in now if mwlive.is_ours(m[4]) and m not in before.maps]
        if left_behind:
            self.assertRegex(left_behind, r'calls were still going on')
        else:
            self.assertEqual(ours, [])
        for tid in mwlive.tids(before.pid):
            self.assertEqual(mwlive.status(tid).get('TracerPid', '0'), '0')

    def check_ends(self, report, native):
        """Each stack ends where its thread begins, or at code that is in no file or that `native` says no to."""
        self.assertGreater(len(report['stacks']), 0)
        for stack in report['stacks']:
            last = stack['frames'][-1]
            names = mwlive.functions(stack)
            if last['language'] == 'java':
                if stack['cut'] != 'depth':
                    self.assertIn('__restore_rt', names, 'only where a signal has interrupted Java code is its frame not known')
                    self.assertEqual(stack['cut'], 'no unwind information', names)
            elif last['module'] in (None, '[jit]'):
                self.assertEqual(stack['cut'], 'no unwind information', names)
                self.assertNotIn(None, [f['module'] for f in stack['frames'][:-1]], names)
            elif native(last):
                self.assertIn(names[-1], STARTS, names)
                self.assertIsNone(stack['cut'], names)

    def check_few_slow(self, report):
        """Where code that nothing describes ends all stacks alike, only the first of them is memwatch's to walk."""
        engine = report['engine']
        if engine['name'] == 'jump':
            self.assertLess(engine['slow_walks'], engine['walks'] / 4, engine)

    def by_name(self, report, *inner):
        """The stacks that begin with these functions, innermost first."""
        found = [s for s in report['stacks'] if mwlive.functions(s)[:len(inner)] == list(inner)]
        self.assertGreater(len(found), 0, inner)
        return found

    def check_go_with_cgo(self, name):
        answer, report = self.run_in_window(name, [path_of(name)])
        mwlive.compare(self, answer, report)
        for name in ('cgo_leak', 'cgo_pair', 'cgo_there_and_back'):
            for stack in self.by_name(report, name):
                names = mwlive.functions(stack)
                self.assertRegex(names[1], rf'^_cgo_[0-9a-f]+_Cfunc_{name}$')
                # It changes stacks in its own way: who has called it is on another one, of Go's, up to where that begins.
                self.assertEqual((names[2], names[-1]), ('runtime.asmcgocall', 'runtime.goexit'), (names, stack['size']))
                self.assertEqual((stack['cut'], stack['end']), (None, None))
                self.assertRegex(names[3], rf'^main\._Cfunc_{name}$')
                self.assertTrue(any(function.startswith('main.') for function in names[4:]), names)
        self.check_few_slow(report)

    def test_go_with_cgo(self):
        self.check_go_with_cgo('cgo')

    def test_go_with_plain_debug_information(self):
        """Its .debug_frame can be read, and says nothing of the change of stacks."""
        self.check_go_with_cgo('cgo_plain')

    def test_go_alone(self):
        """Without C there is nothing to hook: memwatch says what it is, and what shows its heap."""
        if not os.path.exists(path_of('gostatic')):
            self.skipTest('no Go compiler is installed')
        program = subprocess.Popen([path_of('gostatic')], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(mwlive.kill_quietly, program)
        self.assertTrue(program.stdout.readline())
        pid = str(program.pid)
        for arguments in (['-p', pid, '-d', '1', '--engine', mwlive.config.engine],
                          ['-p', pid, '-d', '1', '--engine', mwlive.config.engine, '--track', 'vm'],
                          ['doctor', '-p', pid]):
            run = subprocess.run([mwlive.config.memwatch] + arguments, capture_output=True, timeout=mwlive.PATIENCE)
            self.assertEqual(run.returncode, 1, run)
            self.assertIn(b'It is a Go program', run.stderr)
            self.assertIn(b'go tool pprof http://HOST:PORT/debug/pprof/heap', run.stderr)
        self.assertIsNone(program.poll())

    def test_rust(self):
        answer, report = self.run_in_window('rust', [path_of('rust')])
        mwlive.compare(self, answer, report)
        self.check_ends(report, lambda frame: True)
        stacks = mwlive.select(report, 'forget_one')
        self.assertGreater(len(stacks), 0)
        for stack in stacks:
            names = [f['function'] for f in stack['frames']]
            # The older mangling does not tell of what type it is.
            self.assertTrue({'rust::hostile::Keeper<T>::forget_one',
                             '<rust::hostile::Keeper<[u8; 24]>>::forget_one'} & set(names), names)
            self.assertIn('rust::work', names)
            self.assertNotRegex(' '.join(n for n in names if n), r'\b_(ZN|R[A-Z])')

    @staticmethod
    def is_unnamed_libnode(frame):
        """Where libnode is stripped, functions that it does not export have no names."""
        return not frame['function'] and 'libnode' in (frame['module'] or '')

    def test_node(self):
        answer, report = self.run_in_window('node.js', ['node', '--expose-gc', path_of('node.js'), '1'])
        # V8 has pieces of machine code of its own in the file, without unwind information, and without names where that
        # is stripped. What stacks look like that come through them is another test's affair (live_node.py).
        for stack in report['stacks']:
            if not stack['cut']:
                self.assertIn(mwlive.functions(stack)[-1], STARTS)
        self.check_few_slow(report)
        kept = [s for s in report['stacks'] if 'NodeArrayBufferAllocator' in (s['frames'][0]['function'] or '')]
        held = mwlive.total_of(kept)['impacting']
        self.assertGreaterEqual(held['count'], answer['kept'])
        self.assertGreaterEqual(held['bytes'], answer['kept'] * 77777)
        for stack in kept:
            callers = [f for f in stack['frames'][1:] if f['module'] and not self.is_unnamed_libnode(f)]
            self.assertTrue(not callers or any('v8::' in (f['function'] or '') for f in callers[:2]),
                            mwlive.functions(stack))
        packing = [s for s in mwlive.select(report, 'deflateInit2_') if s['kind'] == 'heap']
        self.assertGreater(len(packing), 0)
        for stack in packing:
            self.assertTrue(any('node::' in (f['function'] or '') or self.is_unnamed_libnode(f)
                                for f in stack['frames']), mwlive.functions(stack))

    def test_java(self):
        answer, report = self.run_in_window('Work.class', ['java', '-Xmx48m', '-Xss512k', '-cp', path_of(''), 'Work'])
        self.check_ends(report, lambda frame: True)
        # Since Java 25 Unsafe_AllocateMemory0 ends by a jump to os::malloc, so it has no frame.
        kept = [s for s in report['stacks'] if s['frames'][0]['function'].startswith('os::malloc') and
                'jdk.internal.misc.Unsafe.allocateMemory0' in [f['function'] for f in s['frames'][1:3]]]
        self.assertEqual(mwlive.total_of(kept)['impacting']['count'], answer['kept'])
        for stack in kept:
            names = mwlive.functions(stack)
            self.assertTrue(any(name.startswith('Work.') for name in names if name), names)
            self.assertIsNone(stack['end'], names)
        for call in ('deflateInit2_', 'inflateInit2_'):
            name = 'Deflater' if call[0] == 'd' else 'Inflater'
            stacks = self.by_name(report, call, f'Java_java_util_zip_{name}_init')
            total = mwlive.total_of(stacks)
            # So many blocks each time, and they are given back.
            self.assertEqual(total['size']['count'] % answer['deflaters'], 0)
            self.assertEqual(total['impacting'], {'count': 0, 'bytes': 0})


if __name__ == '__main__':
    mwlive.main()
