# SPDX-License-Identifier: MIT
"""Programs that know the stack of each of their own allocations, and the report's stacks compared with these."""
import collections
import json

import mwlive


def run(test, argv, *options, patience=4):
    """Such a program in a window: the report."""
    target = mwlive.Target(test, argv[0].rpartition('/')[2], argv=argv)
    watch = mwlive.Watch(test, target.pid, options=options)
    target.go()
    target.done(patience * mwlive.PATIENCE)
    report = watch.stop()
    target.finish()
    return report


def load(answer):
    """What the program has written of its stacks: {frames, innermost first: (blocks, bytes)}."""
    with open(answer, encoding='utf-8') as f:
        return {tuple(map(tuple, stack)): tuple(amount) for stack, amount in json.load(f)}


def compare(test, report, known, frames_of):
    """The same blocks and bytes at the same frames. `frames_of` says what the program would call a stack of the report;
    nothing for one that is not its own."""
    found = collections.defaultdict(lambda: [0, 0])
    for stack in report['stacks']:
        frames = frames_of(stack)
        if frames and stack['impacting']['count']:
            found[tuple(frames)][0] += stack['impacting']['count']
            found[tuple(frames)][1] += stack['impacting']['bytes']
    found = {stack: tuple(amount) for stack, amount in found.items()}
    wrong = [(stack, known.get(stack), found.get(stack)) for stack in known.keys() | found.keys()
             if known.get(stack) != found.get(stack)]
    for stack, expected, got in sorted(wrong, key=str)[:5]:
        print('DIFF', expected, got, *stack, sep='\n   ')
    test.assertEqual(len(wrong), 0, f'of {len(known)} stacks')
