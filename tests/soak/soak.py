#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""soak MINUTES: attach, detach and kill memwatch at random, on targets that check themselves; see README.md here.

Prints what was done and what came of it. Exit status: 0 nothing was harmed, 1 something was, 2 bad usage. What is done
is drawn from the seed, action by action, so a run can be done again; its moments vary.
"""
import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'live'))
sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import tally as tallies  # noqa: E402
from actions import Actor  # noqa: E402
from member import KINDS, Fault, Member  # noqa: E402

ENGINES = ('trap', 'jump', 'auto')
KILL_KINDS = ('idle', 'busy', 'many', 'forking', 'http')
WEIGHTS = {'window': 28, 'kill': 40, 'kill paused': 5, 'twice': 5, 'early': 9, 'crash': 6, 'rival': 4, 'paused': 8,
           'target killed': 3, 'look': 6, 'kill look': 8}
KILL_WEIGHTS = {'window': 2, 'kill': 86, 'kill paused': 5, 'kill look': 7}
FAULTS_MAX = 20  # more of them tell nothing new


class Worker(threading.Thread):
    """Some of the targets, and what is done to them, one thing after the other. Owns their processes."""

    def __init__(self, config, number, kinds, tally):
        super().__init__(name=f'worker {number}')
        self.config = config
        self.number = number
        self.tally = tally
        self.index = config.first
        self.actor = Actor(config, [Member(kind, config) for kind in kinds], tally)

    def run(self):
        members = self.actor.members
        try:
            for member in members:
                self.attempt([member], lambda m=member: self.actor.restart(m))
            while time.monotonic() < self.config.end and not self.config.stopping.is_set():
                draw = random.Random(f'{self.config.seed} {self.number} {self.index}')
                self.attempt(members, lambda d=draw: self.actor.act(d))
                self.index += 1
                if self.config.one:
                    break
            self.actor.draw = random.Random(0)
            for member in members:
                if member.dirty and not self.config.stopping.is_set():
                    self.attempt([member], lambda m=member: self.actor.clean([m]))
        except Exception:  # pylint: disable=broad-except
            text = f'worker {self.number}, action {self.index}: the soak itself has failed: {traceback.format_exc()}'
            self.tally.fault('-', '-', 'memwatch', text)
            print(text, flush=True)
            self.config.stopping.set()
        finally:
            for member in members:
                member.stop()

    def attempt(self, members, action):
        """Do it; tell and count what is wrong with it or has gone wrong since."""
        told = ''
        try:
            action()
        except Fault as fault:
            if fault.kind == 'ended' or self.config.stopping.is_set():
                return
            told = str(fault)
            self.blame(fault)
        for member in members:
            try:
                member.check()
            except Fault as fault:
                if str(fault) != told:
                    self.blame(fault)
                self.revive(member)

    def blame(self, fault):
        words = self.actor.last.split()
        engine = words[words.index('--engine') + 1] if '--engine' in words else '-'
        kind = next((k for k in KINDS if str(fault).startswith(k)), '-')
        dirty = [f'{m.kind} ({m.pid}): {m.dirty}' for m in self.actor.members if m.dirty]
        text = (f'worker {self.number}, action {self.index}, {time.strftime("%H:%M:%S")}: {fault.kind}: {fault}\n'
                f'    {self.actor.action}; last: {self.actor.last}\n    killed before in: {", ".join(dirty) or "none"}')
        self.tally.fault(engine, kind, fault.kind, text)
        print(text, flush=True)
        if self.config.stop_at_fault or len(self.tally.faults) >= FAULTS_MAX:
            self.config.stopping.set()
        if fault.kind in ('hung', 'left'):
            for member in self.actor.members:
                if member.kind == kind:
                    self.revive(member)

    def revive(self, member):
        """Another one in its place."""
        for _ in range(3):
            try:
                self.actor.restart(member)
                return
            except Fault as fault:
                if fault.kind == 'ended':
                    return
                self.tally.fault('-', member.kind, fault.kind, f'at its start: {fault}')
        self.config.stopping.set()


def divide(kinds, workers):
    """The targets of each worker."""
    return [kinds[i::workers] for i in range(workers) if kinds[i::workers]]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('minutes', type=float, metavar='MINUTES')
    parser.add_argument('--build', metavar='DIR', default=os.path.join(ROOT, 'build'),
                        help='a build with the target "soak" made (default: build)')
    parser.add_argument('--memwatch', metavar='FILE', help='the program to test, if not that build\'s')
    parser.add_argument('--seed', type=int, default=None, help='do what a run with that seed did')
    parser.add_argument('--kinds', default=None, help=f'targets, of {",".join(KINDS)}')
    parser.add_argument('--engines', default='trap,jump,auto', help='engines to attach with')
    parser.add_argument('--kill-engines', default='trap,jump', help='engines during which memwatch is killed')
    parser.add_argument('--spare', default='', metavar='TARGET:ENGINE,...',
                        help='where memwatch is not killed all the same (default: nowhere)')
    parser.add_argument('--who', default='', help='which of memwatch\'s processes are killed: all, first or guard '
                        '(default: any of these)')
    parser.add_argument('--when', default='', help='at what memwatch is killed: attach, window, detach, or call, amid a '
                        'system call that a thread of the target performs for it (default: at any of these)')
    parser.add_argument('--kills-only', action='store_true', help=f'on {",".join(KILL_KINDS)}')
    parser.add_argument('--workers', type=int, default=2, help='actions at a time, each on its share of the targets')
    parser.add_argument('--first', type=int, default=0, metavar='N', help='begin with the action number N')
    parser.add_argument('--one', action='store_true', help='no more than one action')
    parser.add_argument('--least-kills', type=int, default=0, metavar='N', help='fail with fewer kills an engine')
    parser.add_argument('--stop-at-fault', action='store_true', help='end at the first fault')
    parser.add_argument('--keep', action='store_true', help='keep the directory with output, reports and recordings')
    parser.add_argument('--json', metavar='FILE', help='the table, for machines')
    return parser.parse_args()


def help_text(*command):
    return subprocess.run([*command, '--help'], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60,
                          check=True).stdout


def configure(arguments):
    config = arguments
    config.build = os.path.abspath(arguments.build)
    config.memwatch = os.path.abspath(arguments.memwatch or os.path.join(config.build, 'memwatch'))
    config.seed = random.randrange(1 << 31) if arguments.seed is None else arguments.seed
    default = KILL_KINDS if arguments.kills_only else KINDS
    config.kinds = arguments.kinds.split(',') if arguments.kinds else list(default)
    config.engines = arguments.engines.split(',')
    config.kill_engines = arguments.kill_engines.split(',')
    config.spare = arguments.spare.split(',')
    if set(config.kinds) - set(KINDS) or set(config.engines + config.kill_engines) - set(ENGINES):
        sys.exit('soak: no such target or engine')
    for kind, program in (('redis', 'redis-server'), ('sqlite', 'sqlite3')):
        if kind in config.kinds and not shutil.which(program):
            print(f'soak: {program} is not installed: left out')
            config.kinds.remove(kind)
    if 'http' in config.kinds and not os.path.exists(os.path.join(config.build, 'tests', 'soak', 'http')):
        print('soak: there was no Go compiler to build http with: left out')
        config.kinds.remove('http')
    config.weights = KILL_WEIGHTS if arguments.kills_only else WEIGHTS
    config.life = int(arguments.minutes * 60) + 900
    config.stopping = threading.Event()
    config.end = time.monotonic() + arguments.minutes * 60
    config.doctor = '--clean' in help_text(config.memwatch, 'doctor')
    config.limits = '--max-memory' in help_text(config.memwatch)
    return config


def soak(config, tally):
    workers = [Worker(config, i, kinds, tally) for i, kinds in enumerate(divide(config.kinds, config.workers))]
    for worker in workers:
        worker.start()
    shown = time.monotonic()
    while any(w.is_alive() for w in workers):
        for worker in workers:
            worker.join(0.5)
        if time.monotonic() - shown > 300:
            shown = time.monotonic()
            print(f'{time.strftime("%H:%M:%S")} {tally.summary()}', flush=True)


def main():
    config = configure(parse())
    tally = tallies.Tally()
    config.directory = tempfile.mkdtemp(prefix='mwsoak-')
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: config.stopping.set())
    print(f'soak of {config.minutes:g} minutes, seed {config.seed}: engines {",".join(config.engines)}, killed in '
          f'{",".join(config.kill_engines)}; targets {",".join(config.kinds)}; {os.cpu_count()} CPUs, '
          f'{os.uname().release}', flush=True)
    begun = time.monotonic()
    try:
        soak(config, tally)
    finally:
        if not config.keep:
            shutil.rmtree(config.directory, ignore_errors=True)
        else:
            print(f'kept: {config.directory}')
    print(f'\n{tally.table()}\n\n{tallies.LEGEND}\n')
    print(f'{(time.monotonic() - begun) / 60:.1f} minutes, seed {config.seed}: {tally.summary()}')
    if config.json:
        with open(config.json, 'w', encoding='utf-8') as f:
            json.dump({'seed': config.seed, 'faults': tally.faults,
                       'cells': [[*key, n] for key, n in sorted(tally.cells.items())]}, f, indent=1)
            f.write('\n')
    few = [e for e in config.kill_engines if tally.total('kills', e) < config.least_kills]
    if few:
        print(f'soak: fewer than {config.least_kills} kills by {",".join(few)}')
    sys.exit(1 if tally.faults or few else 0)


if __name__ == '__main__':
    main()
