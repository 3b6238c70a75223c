#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which blocks are lost: of a program that holds blocks in all ways, or in none (targets/reaches.cpp), and beside memwatch's
verdicts those of valgrind's memcheck and of LeakSanitizer on the same program. Where they differ, the table says why.
"""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import mwlive

D, I, P, R = 'definite', 'indirect', 'possible', 'reachable'

MAPPING = 'LeakSanitizer takes no mapping of the program for a root'
INTERIOR = 'to LeakSanitizer any pointer into a block holds it'
STACK = 'memcheck takes the stack pointer for a pointer into the middle of a block'
KERNEL = 'the other tools do not ask the kernel what it keeps'

# Case: what memwatch must say, and why another tool says something else.
CASES = {
    'global': (R, ''),
    'lost': (D, ''),
    'lost_tree_head': (D, ''),
    'lost_tree_child': (I, ''),
    'cycle_1': (D, 'LeakSanitizer calls all of a cycle indirect: each is held by another lost block'),
    'cycle_2': (I, ''),
    'interior': (P, INTERIOR),
    'interior_child': (P, INTERIOR),
    'low_tag': (R, 'memcheck knows no tags: to it this is a pointer into the middle'),
    'high_tag': (P, 'the other tools know no tags'),
    'xored': (D, ''),
    'unaligned': (D, ''),
    'old_block': (R, ''),
    'held_by_old_block': (R, ''),
    'held_by_freed': (D, ''),
    'mapping': (R, MAPPING),
    'shared_memory': (R, MAPPING),
    'prot_none': (R, MAPPING + '; memcheck looks only at what is readable now'),
    'in_code': (R, MAPPING + '; memcheck looks at no word that is not aligned'),
    'epoll': (R, KERNEL),
    'timer': (R, KERNEL),
    'pipe': (R, KERNEL),
    'not_forked': (R, MAPPING),
    'second_base': (R, ''),
    'array_with_cookie': (R, ''),
    'old_string': (R, ''),
    'dead_stack': (D, ''),
    'tls': (R, ''),
    'stack': (R, ''),
    'register': (R, ''),
    'vector_register': (R, 'memcheck looks at general registers only'),
    'thread_in_malloc': (R, ''),
    'interrupted_frame': (R, ''),
    'signal_stack': (R, KERNEL),
    'signal_stack_block': (R, KERNEL),
    'alternate_stack': (R, STACK),
    'alternate_stack_frame': (R, STACK),
    'left_for_coroutine': (R, 'memcheck does not know the stack that a thread has left'),
    'coroutine_stack': (R, ''),
    'coroutine_frame': (R, ''),
    'coroutine_away_stack': (R, ''),
    'coroutine_away': (R, ''),
}


def by_case(sizes, verdicts):
    """{case: verdict} of {size: verdict}. An allocator may have given a little more than was asked for."""
    return {case: next((verdicts[size + more] for more in range(0, 25, 8) if size + more in verdicts), None)
            for case, size in sizes.items()}


def heap(pid, *options):
    """memwatch's report of a process's heap."""
    out = subprocess.run([mwlive.config.memwatch, 'heap', '-p', str(pid), '--json', '-', *options], check=True,
                         stdout=subprocess.PIPE, timeout=mwlive.PATIENCE)
    return json.loads(out.stdout)


def verdicts_of(report):
    return {group['size']: group['verdict'] for group in report['groups'] if group['size']}


def sizes_of(answer):
    """The sizes that the program printed."""
    return {case: int(answer[case]) for case in CASES if case in answer}


class Program(mwlive.Target):
    """Has planted all its blocks."""

    def __init__(self, test, name='reaches', *arguments, **more):
        super().__init__(test, name, *arguments, **more)
        self.go()
        self.sizes = sizes_of(self.done())


def memcheck(test):
    """{case: verdict} by valgrind, looking at the same moment."""
    with tempfile.TemporaryDirectory(prefix='mwlive-') as directory:
        prefix = f'--vgdb-prefix={directory}/vgdb'
        run = subprocess.Popen(['valgrind', '-q', '--fair-sched=try', prefix, mwlive.target_path('reaches')],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        test.addCleanup(mwlive.kill_quietly, run)
        run.stdin.write('\n')
        run.stdin.flush()
        answer, pid = {}, None
        for line in run.stdout:
            if line.startswith('ready '):
                pid = int(line.split()[1])
            if line == 'done\n':
                break
            key, _, value = line.strip().partition('=')
            answer[key] = value
        text = subprocess.run(['vgdb', prefix, f'--pid={pid}', 'leak_check', 'full', 'kinds', 'all', 'heuristics', 'all',
                               'any'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True,
                              timeout=mwlive.PATIENCE).stdout
        run.kill()
        run.communicate()
    verdicts = {}
    names = {'definitely': D, 'indirectly': I, 'possibly': P, 'still': R}
    for size, direct, word in re.findall(r'== ([\d,]+) (?:\(([\d,]+) direct, [\d,]+ indirect\) )?bytes in 1 blocks are '
                                         r'(\w+) (?:lost|reachable)', text):
        verdicts[int((direct or size).replace(',', ''))] = names[word]
    return by_case(sizes_of(answer), verdicts)


def lsan(test):
    """{case: verdict} by LeakSanitizer."""
    options = {**os.environ, 'LSAN_OPTIONS': 'fast_unwind_on_malloc=0:exitcode=0:use_tls=1'}
    run = subprocess.run([mwlive.target_path('reaches_lsan'), 'lsan'], input='\n\n', stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, env=options, timeout=mwlive.PATIENCE)
    if 'detected memory leaks' not in run.stderr:
        test.skipTest(f'LeakSanitizer does not work here: {run.stderr[-200:]}')
    answer = dict(line.split('=') for line in run.stdout.splitlines() if '=' in line)
    verdicts = {}
    for kind, size in re.findall(r'(Direct|Indirect) leak of (\d+) byte\(s\) in 1 object', run.stderr):
        verdicts[int(size)] = D if kind == 'Direct' else I
    # It reports lost blocks only.
    return {case: verdict or R for case, verdict in by_case(sizes_of(answer), verdicts).items()}


class Reach(unittest.TestCase):
    maxDiff = None

    def test_verdicts(self):
        program = Program(self)
        report = heap(program.pid)
        self.assertEqual(report['method'], 'fork')
        said = by_case(program.sizes, verdicts_of(report))
        self.assertEqual(said, {case: verdict for case, (verdict, _) in CASES.items()})
        lost = [verdict for verdict, _ in CASES.values()]
        self.assertEqual(report['leaks'][D]['count'], lost.count(D))
        self.assertEqual(report['leaks'][I]['count'], lost.count(I))
        program.finish()

    def test_tag_bits(self):
        program = Program(self)
        said = by_case(program.sizes, verdicts_of(heap(program.pid, '--tag-bits', '0xff00000000000000')))
        self.assertEqual(said, {case: R if case == 'high_tag' else verdict for case, (verdict, _) in CASES.items()})
        program.finish()

    def test_holders(self):
        """The way from a root begins where the program has put the pointer."""
        program = Program(self)
        holders = {group['size']: group['holder'] for group in heap(program.pid)['groups']}
        held_by = by_case(program.sizes, holders)
        for case, text in {'global': 'global held', 'held_by_old_block': 'global parent', 'tls': 'thread-local of_thread of thread',
                           'stack': 'stack of thread', 'register': 'register of thread', 'low_tag': 'global low_tagged',
                           'interrupted_frame': 'stack of thread', 'coroutine_frame': 'stack of thread',
                           'coroutine_away': 'global away', 'epoll': 'data of epoll set', 'timer': 'data of a timer', 'pipe': 'data in a pipe or socket', 'interior_child': 'global into'}.items():
            self.assertTrue(held_by[case][0].startswith(text), f'{case}: {held_by[case]}')
        self.assertEqual(len(held_by['held_by_old_block']), 3)
        for case, text in {'stack': r'stack of thread \d+ \(.*\): hold_on_stack\(void\*\) reaches\.cpp:\d+, frame \d+$',
                           'global': r'global held \(reaches\.cpp:\d+\)$'}.items():
            self.assertRegex(held_by[case][0], text)
        self.assertIsNone(held_by['lost'])
        program.finish()

    def test_contents(self):
        """What is in a block is shown where it is asked for, pointers by what they point at."""
        program = Program(self)
        groups = heap(program.pid, '--show', '1')['groups']
        contents = by_case(program.sizes, {group['size']: group['contents'][0] for group in groups if 'contents' in group})
        old, held = contents['old_block'], contents['held_by_old_block']
        self.assertEqual(old['notes'][0], {'offset': 0, 'text': f"pointer to a block of {held['size']} bytes"})
        self.assertEqual(int.from_bytes(bytes.fromhex(old['hex'][:16]), 'little'), int(held['address'], 16))
        self.assertEqual(len(old['hex']), 2 * min(old['size'], 128))
        self.assertNotIn('contents', heap(program.pid)['groups'][0])
        program.finish()

    def test_retained(self):
        """All live blocks are retained by one root, by several, or by nothing."""
        program = Program(self)
        report = heap(program.pid, '--holders')
        roots = {holder['name']: holder for holder in report['holders']}
        retained = {what: sum(holder['retained'][what] for holder in roots.values()) for what in ('count', 'bytes')}
        self.assertEqual(retained, {what: sum(report['leaks'][verdict][what] for verdict in (D, I, P, R))
                                    for what in ('count', 'bytes')})
        self.assertEqual(roots['nothing: lost blocks']['retained']['count'],
                         report['leaks'][D]['count'] + report['leaks'][I]['count'])
        parent = next(holder for name, holder in roots.items() if name.startswith('global parent ('))
        self.assertEqual(parent['retained']['count'], 2)
        self.assertEqual(parent['own']['count'], 0)
        self.assertEqual([child['own']['count'] for child in parent['children']], [1])
        self.assertEqual([child['own']['count'] for child in parent['children'][0]['children']], [1])
        program.finish()

    @unittest.skipUnless(shutil.which('valgrind') and shutil.which('vgdb'), 'there is no valgrind')
    @mwlive.not_under('another valgrind would run beside it')
    def test_agreement(self):
        """All differences from other tools have their reasons."""
        others = {'memcheck': memcheck(self), 'LeakSanitizer': lsan(self)}
        lines, unexplained = [f'{"case":22} {"memwatch":10} {"memcheck":10} {"LeakSanitizer":14} why'], []
        for case, (verdict, why) in CASES.items():
            said = [tool[case] for tool in others.values()]
            differs = any(other != verdict for other in said)
            lines.append(f'{case:22} {verdict:10} {str(said[0]):10} {str(said[1]):14} {why if differs else ""}'.rstrip())
            if differs and not why:
                unexplained.append(lines[-1])
        print('\n' + '\n'.join(lines))
        self.assertEqual(unexplained, [])


if __name__ == '__main__':
    mwlive.main()
