#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""recordings.py MEMWATCH: recordings of an older memwatch give the same JSON, byte for byte, as that gave of them.

recordings/ has them, and what was asked of each and answered: NAME.jsonl.gz, a JSON array a line with the arguments and
the output. They were made with the commit that recordings/COMMIT names; recordings.py --write MEMWATCH makes the answers
anew, by that program.
"""
import difflib
import gzip
import json
import os
import subprocess
import sys

RECORDINGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'recordings')
REPORTS = ('', '--by module,stack,size', '--by type,thread --type all', '--by process,kind,api --sort count',
           '--tree up --filter kind:heap', '--tree down --type all --filter size:>=64', '--blocks 20 --sort lifetime --type all',
           '--from 0.2 --to 0.6', '--from 0.2 --to 0.6 --by function --type aofi', '--at peak --blocks 5', '--at 0.3')
DIFFS = {'jump': ('jump --from 1 --to 2', 'jump --from start --to end', 'jump trap'), 'trap': ('trap --from 1 --to end --all',),
         'two': ('two --from 0.2s --to end', 'two --from 0.2s --to 0.6s --process 2 --kind heap')}


def questions(name):
    """The command lines that are asked of a recording."""
    for options in REPORTS:
        # Processes have their peaks at different times; one was launched and lived for 88 ms.
        if name in ('two', 'unnamed') and 'peak' in options or name == 'launched' and '0.' in options:
            continue
        yield ['report', f'{name}.mw', *options.split(), '--json', '-']
    for words in DIFFS.get(name, ()):
        yield ['diff', *(f'{word}.mw' if os.path.exists(path(f'{word}.mw')) else word for word in words.split()),
               '--json', '-']


def path(name):
    return os.path.join(RECORDINGS, name)


def answer(memwatch, arguments):
    run = subprocess.run([memwatch, *arguments], cwd=RECORDINGS, stdin=subprocess.DEVNULL, capture_output=True,
                         encoding='utf-8', timeout=60, check=False)
    if run.returncode != 0:
        sys.exit(f'recordings: {" ".join(arguments)} ended with {run.returncode}: {run.stderr}')
    return run.stdout


def write(memwatch, name):
    with gzip.GzipFile(path(f'{name}.jsonl.gz'), 'wb', mtime=0) as file:
        for arguments in questions(name):
            file.write(json.dumps([arguments, answer(memwatch, arguments)]).encode() + b'\n')


def check(memwatch, name):
    """How many answers are others than they were."""
    wrong = 0
    with gzip.open(path(f'{name}.jsonl.gz'), 'rt', encoding='utf-8') as file:
        asked = [json.loads(line) for line in file]
    for arguments, expected in asked:
        got = answer(memwatch, arguments)
        if got != expected:
            wrong += 1
            print(f'recordings: memwatch {" ".join(arguments)}:')
            print('\n'.join(list(difflib.unified_diff(expected.splitlines(), got.splitlines(), 'expected', 'got', '', '',
                                                      1))[:40]))
    if len(asked) != len(list(questions(name))):
        sys.exit(f'recordings: {len(asked)} answers of {name}, but other questions: write them anew')
    return wrong


def main():
    arguments = sys.argv[1:]
    do = write if arguments[:1] == ['--write'] else check
    if len(arguments) != 1 + (do is write):
        sys.exit('usage: recordings.py [--write] MEMWATCH')
    names = sorted(name[:-3] for name in os.listdir(RECORDINGS) if name.endswith('.mw'))
    assert names
    if any([do(os.path.abspath(arguments[-1]), name) for name in names]):
        sys.exit('recordings: older recordings give another JSON than they did')


if __name__ == '__main__':
    main()
