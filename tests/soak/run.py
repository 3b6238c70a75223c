# SPDX-License-Identifier: MIT
"""One memwatch at work, with all the processes that it may have."""
import contextlib
import json
import os
import signal
import subprocess
import time

import mwlive
from member import Fault

PATIENCE = 120  # seconds that memwatch may take to end
LOOK = 'look'  # in an engine's place: a look at the heap


def kill_pid(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class Run:
    count = 0

    def __init__(self, config, members, engine, options=(), report=True, tracked='heap,vm', fault=None):
        Run.count += 1
        self.config = config
        self.members = members
        self.engine = engine
        self.tracked = tracked
        self.token = f'{os.getpid()}-{id(self)}-{Run.count}'
        self.base = os.path.join(config.directory, f'run-{self.token}')
        self.json = f'{self.base}.json' if report else None
        how = ['heap'] if engine == LOOK else ['--engine', engine, '--track', tracked]
        self.command = [config.memwatch, *how, '-p', ','.join(str(m.pid) for m in members), '--quiet',
                        *(['--json', self.json] if report else []), *map(str, options)]
        self.started = time.monotonic()
        self.begun_after = self.unhooked_after = None
        self.was_dirty = False
        self.patient = 0  # seconds that wait_begun() takes at least
        with open(f'{self.base}.out', 'wb') as out:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                            start_new_session=True,
                                            env={**mwlive.with_fault(fault), 'MEMWATCH_SOAK': self.token})

    def output(self):
        with open(f'{self.base}.out', encoding='utf-8', errors='replace') as f:
            return f.read(4000).strip()

    def ended(self):
        return self.process.poll() is not None

    def sleep_until(self, moment):
        """Until so long after the start; False if it has ended before."""
        while not self.ended():
            left = self.started + moment - time.monotonic()
            if left <= 0:
                return True
            time.sleep(min(left, 0.02))
        return False

    def wait_stopped(self, seconds):
        """Until it has come to the fault point at which it stops, or has not in this time."""
        end = time.monotonic() + seconds
        while not self.ended() and time.monotonic() < end and mwlive.state(self.process.pid) != 'T':
            time.sleep(0.002)

    def wait_begun(self):
        """Until every target is hooked. False where it has ended instead."""
        end = time.monotonic() + PATIENCE
        self.sleep_until(self.patient)
        while not all(m.hooked(self.tracked) for m in self.members):
            if self.ended():
                return False
            if time.monotonic() > end:
                raise Fault('memwatch', f'no window begins in {PATIENCE} s: {" ".join(self.command)}')
            time.sleep(0.001)
        # The threads go on a moment after the code has been changed. With breakpoints they may be seen standing later.
        if self.engine != 'jump':
            end = min(end, time.monotonic() + 2)
        while any(mwlive.state(tid) == 't' for m in self.members for tid in mwlive.tids(m.pid)[:1]):
            if self.ended() or time.monotonic() > end:
                break
            time.sleep(0.001)
        if self.begun_after is None:
            self.begun_after = time.monotonic() - self.started
        return not self.ended()

    def wait_end(self, time_unhook=False):
        """Its status. It is killed if it does not end, which is a fault."""
        asked = time.monotonic()
        while not self.ended():
            if time_unhook and self.unhooked_after is None and \
                    not any(m.hooked(self.tracked) for m in self.members):
                self.unhooked_after = time.monotonic() - asked
            if time.monotonic() > asked + PATIENCE:
                state = [(tid, mwlive.state(tid)) for tid in mwlive.tids(self.process.pid)]
                self.kill()
                raise Fault('memwatch', f'it did not end in {PATIENCE} s, {state}: {" ".join(self.command)}')
            time.sleep(0.001)
        return self.process.returncode

    # --- killing ---

    def family(self):
        """Every process that came of this run and lives."""
        mark = b'MEMWATCH_SOAK=' + self.token.encode()
        found = []
        for name in os.listdir('/proc'):
            if not name.isdigit():
                continue
            with contextlib.suppress(OSError):
                with open(f'/proc/{name}/environ', 'rb') as f:
                    if mark in f.read(65536).split(b'\0') and mwlive.state(name) not in 'ZX':
                        found.append(int(name))
        return found

    def kill(self, who='all'):
        """SIGKILL: to all of its processes at once (all), to the one that was started alone (first), or to its guard
        and then to it (guard). True if a guard was there that could take out what was left, and is done with that."""
        guard = mwlive.guard_of(self.process.pid)
        if guard and who != 'first':
            kill_pid(guard)
        if who == 'guard':
            time.sleep(0.02)
        if not self.ended():
            self.process.kill()
        if who != 'first':
            self.kill_others()
        self.process.wait()
        end = time.monotonic() + PATIENCE
        # One that just executes memwatch anew has no environment to be known by.
        while self.family() or (guard and mwlive.state(guard) not in 'ZX'):
            if who != 'first':
                self.kill_others()
            elif time.monotonic() > end:
                others = self.family()
                self.kill_others()
                raise Fault('memwatch', f'processes {others} of a killed memwatch do not end')
            time.sleep(0.005)
        return who == 'first' and guard is not None

    def kill_others(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        for pid in self.family():
            kill_pid(pid)

    # --- what it says ---

    def reports(self):
        with open(self.json, encoding='utf-8') as f:
            document = json.load(f)
        return document.get('processes', [document])

    def forget(self, keep=False):
        """Remove its files."""
        if keep:
            return
        for ending in ('.json', '.out', '.mw'):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.base + ending)
