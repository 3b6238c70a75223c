#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""soak TOPIC… [--minutes N]: tests that are to hit a rare moment, over and over, with another seed each time.

Each topic takes N minutes; an attempt is one test, with many more rounds than it has in scripts/test. In the end there is
a line a topic with its attempts and failures. Exit status: 0 nothing failed, 1 something did, 2 bad usage.
"""
import argparse
import importlib
import os
import random
import re
import signal
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LIVE = os.path.join(ROOT, 'tests', 'live')
sys.path.insert(0, LIVE)
sys.dont_write_bytecode = True
ENGINES = ('trap', 'jump')
PEERS = ('clang', 'clang-dwarf4', 'clang-split-zstd', 'gcc', 'gcc-dwarf4-zstd', 'gcc-lto', 'gcc-types', 'gcc-dwz', 'rust',
         'rust-lto')
SKIPS = re.compile(r'^OK \(skipped=1\)$', re.M)
RESULTS = re.compile(r'^result: (.*)$', re.M)  # figures that an attempt has to show
LONGEST = 1800  # seconds of an attempt
SKIPPED = 77

# topic: live tests, and a word in the name of each of their methods that is meant (all, where there is none).
LIVE_TOPICS = {
    'killed': {'killed': (), 'signals_kept': (), 'snapshot': ('killed', 'failures'),
               'guarded': ('killed', 'two_at_once'),
               'jump_limits': ('killed_again', 'killed_while')},
    'threads': {'hostile_threads': ('1000', 'come_and_go', 'cpu'), 'threads': ('start_each_other',),
                'jump_life': ('2000_threads', 'making')},
    'snapshots': {'snapshot': ('moment', 'waits', 'vforks')},
    'forks': {'hostile_threads': ('fork', 'children'), 'jump_life': ('every_kind',)},
    'execs': {'corners': ('exec',)},
    'caches': {'redis': ('full_cache',)},
    'children': {'children': ('killed', 'storm')},
    'windows': {'rollback': (), 'jump_code': ('over_and_over',), 'hostile_credentials': (), 'hostile_dlopen': ('begin_and_end',),
                'faults': ('busy_threads', 'second_of_two'),
                'corners': ('restartable', 'two_kinds')},
    'malloc': {'failures': ('call_fails', 'calls_fail')},
    'damage': {'recording': ('cut_anywhere',), 'scribble': ()},
    'stacks': {'oracle': (), 'same': ()},
    'sampling': {'estimates': ('truth',)},
}
# topic: a program of unit tests, and groups of it.
UNIT_TOPICS = {
    'quiesce': ('unit/tracee/unit_tracee', ('quiesce', 'quiesce_children', 'quiesce_gone', 'sigframe')),
}


def cases(suite):
    """The tests of a suite, one by one."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from cases(test)
        else:
            yield test


def live(build, memwatch, name, words):
    """Each test whose name has one of the words, with each engine."""
    module = importlib.import_module(f'live_{name}')
    program = [sys.executable, '-B', os.path.join(LIVE, f'live_{name}.py'), '--memwatch', memwatch, '--targets',
               os.path.join(build, 'tests', 'targets')]
    tests = [test.id().split('.', 1)[1] for test in cases(unittest.defaultTestLoader.loadTestsFromModule(module))]
    chosen = [test for test in tests if not words or any(word in test for word in words)]
    assert chosen, f'{name} has no test that is called {words}'
    return [[*program, '--engine', engine, test] for test in chosen for engine in ENGINES]


def commands(topic, build, memwatch):
    """What a topic runs in turn."""
    if topic == 'random':
        # 30,000 lists of events each time, from another seed on.
        program = os.path.join(build, 'tests/unit/track/unit_track')
        return [[program, 'intervals_random', '{seed}', '30000']]
    if topic == 'peers':
        program = os.path.join(ROOT, 'tests/unit/symbolizer/peers.py')
        return [[sys.executable, '-B', program, os.path.join(build, 'tests/tools/symbols'), kind] for kind in PEERS]
    if topic in UNIT_TOPICS:
        program, groups = UNIT_TOPICS[topic]
        return [[os.path.join(build, 'tests', program), group] for group in groups]
    return [command for name, words in LIVE_TOPICS[topic].items() for command in live(build, memwatch, name, words)]


TOPICS = sorted([*LIVE_TOPICS, *UNIT_TOPICS, 'random', 'peers'])


def attempt(command, seed):
    """Run it; (exit status or None when it took too long, output)."""
    environment = {**os.environ, 'MEMWATCH_SOAK': '1', 'MEMWATCH_SEED': str(seed), 'PYTHONDONTWRITEBYTECODE': '1'}
    command = [word.format(seed=seed) for word in command]
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, errors='replace',
                          stderr=subprocess.STDOUT, start_new_session=True, text=True) as process:
        try:
            out, _ = process.communicate(timeout=LONGEST)
            return process.returncode, out
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, process.communicate()[0]
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def soak(topic, config):
    """Attempts until the time is over, all kinds of them before one comes again; the number of failures."""
    ways = commands(topic, config.build, config.memwatch)
    chance = random.Random(f'{config.seed} {topic}')
    end = time.monotonic() + 60 * config.minutes
    attempts = skipped = failures = 0
    while attempts == 0 or time.monotonic() < end:
        if attempts % len(ways) == 0:
            chance.shuffle(ways)
        command, seed = ways[attempts % len(ways)], chance.randrange(1 << 31)
        status, out = attempt(command, seed)
        attempts += 1
        skipped += status == SKIPPED or status == 0 and bool(SKIPS.search(out))
        for line in RESULTS.findall(out):
            print(line, flush=True)
        if status not in (0, SKIPPED):
            failures += 1
            why = 'took too long' if status is None else f'ended with {status}'
            print(f'soak: {topic}, attempt {attempts} {why}: MEMWATCH_SOAK=1 MEMWATCH_SEED={seed} '
                  f'{" ".join(command).format(seed=seed)}\n{out}', flush=True)
    left_out = f', {skipped} skipped' if skipped else ''
    print(f'{topic}: {attempts} attempts, {failures} failures{left_out}', flush=True)
    return failures


def parse():
    parser = argparse.ArgumentParser(prog='soak', description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('topics', nargs='+', metavar='TOPIC', help=f'of {", ".join(TOPICS)}, or all')
    parser.add_argument('--minutes', type=float, default=10, metavar='N', help='that each takes (default: 10)')
    parser.add_argument('--seed', type=int, default=None, help='do what a run with that seed did')
    parser.add_argument('--list', action='store_true', help='what the topics run, and run nothing')
    parser.add_argument('--build', metavar='DIR', default=os.path.join(ROOT, 'build'))
    parser.add_argument('--memwatch', metavar='FILE', help='the program to test, if not that build\'s')
    config = parser.parse_args()
    if config.topics == ['all']:
        config.topics = TOPICS
    unknown = sorted(set(config.topics) - set(TOPICS))
    if unknown:
        parser.error(f'no such topic: {", ".join(unknown)}; there are: {", ".join(TOPICS)}')
    config.build = os.path.abspath(config.build)
    config.memwatch = os.path.abspath(config.memwatch or os.path.join(config.build, 'memwatch'))
    if config.seed is None:
        config.seed = random.randrange(1 << 31)
    return config


def main():
    config = parse()
    if config.list:
        for topic in config.topics:
            for command in commands(topic, config.build, config.memwatch):
                if not os.path.exists(command[2 if command[0] == sys.executable else 0]):
                    sys.exit(f'soak: there is no {command}')
                print(f'{topic}: {" ".join(command)}')
        return
    print(f'soak of {config.minutes:g} minutes a topic, seed {config.seed}: {os.cpu_count()} CPUs, {os.uname().release}',
          flush=True)
    sys.exit(1 if sum([soak(topic, config) for topic in config.topics]) else 0)


if __name__ == '__main__':
    main()
