#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""attach_to_exec.py --memwatch PATH [--engine NAME] [--rounds N] [--ends]: attach while processes become others.

Each round starts a process that becomes another program a random short time later (or, with --ends, ends), attaches to
it meanwhile, and counts how that went and what memwatch said. Run by hand: what comes up depends on the machine.
"""
import argparse
import collections
import os
import random
import re
import subprocess
import sys
import tempfile

MOST_MICROSECONDS = 30000


def attach(arguments, directory):
    """One round: what memwatch said, numbers left out."""
    delay = random.randrange(MOST_MICROSECONDS) / 1e6
    program = ['sleep', '0'] if arguments.ends else ['sleep', '1']
    code = f'import os, time; time.sleep({delay}); os.execvp("sleep", {program})'
    if arguments.small:
        target = subprocess.Popen([arguments.small, str(int(delay * 1e6))], stdin=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL)
    else:
        target = subprocess.Popen([sys.executable, '-S', '-c', code])
    run = subprocess.run([arguments.memwatch, '-p', str(target.pid), '--engine', arguments.engine, '-d', '0.05',
                          '--quiet', '--json', os.path.join(directory, 'report.json')],
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    state = target.poll()
    target.kill()
    target.wait()
    if state is not None and state < 0:
        return f'THE TARGET WAS KILLED BY SIGNAL {-state}: {run.stderr.strip()}'
    if run.returncode == 0:
        return 'was watched'
    return f'{run.returncode}: ' + re.sub(r'0x[0-9a-f]+|\d+', 'N', run.stderr.strip())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(':', maxsplit=1)[0])
    parser.add_argument('--memwatch', required=True)
    parser.add_argument('--engine', default='auto')
    parser.add_argument('--rounds', type=int, default=200)
    parser.add_argument('--ends', action='store_true', help='what it becomes ends at once')
    parser.add_argument('--small', metavar='BECOMES', help='use tests/targets/exec_owns_sigtrap, which starts faster')
    arguments = parser.parse_args()
    said = collections.Counter()
    with tempfile.TemporaryDirectory() as directory:
        for _ in range(arguments.rounds):
            said[attach(arguments, directory)] += 1
    for text, count in said.most_common():
        print(f'{count:5}  {text}')


if __name__ == '__main__':
    main()
