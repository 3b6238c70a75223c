# SPDX-License-Identifier: MIT
"""One target of the soak: how it is started, whether it is well, and whether anything was left behind in it."""
import collections
import contextlib
import os
import signal
import subprocess
import sys
import time

import board as boards
import mwlive

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 60  # seconds without any progress of a thread that count as a hang
SPARE_MAPPINGS = 100  # that a target's own work may add

# Programs of ours that have a meter: they allocate on demand what a report has to know exactly.
METERED = ('idle', 'busy', 'many', 'forking', 'signals', 'dlopen')
KINDS = (*METERED, 'exceptions', 'cxx', 'http', 'python', 'redis', 'sqlite')
# Whose signal masks and actions stay as they are.
STEADY_SIGNALS = ('idle', 'busy', 'many', 'exceptions', 'cxx', 'sqlite')


class Fault(Exception):
    """What must not be: `kind` is a column of the table."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def watched_names(mappings):
    """Of memwatch's making, as far as the name tells."""
    return [m for m in mappings if m[4].startswith(('/memfd:memwatch', '/dev/shm/memwatch', '/anon_hugepage'))]


class Member:
    def __init__(self, kind, config):
        self.kind = kind
        self.config = config
        self.path = os.path.join(config.directory, f'board-{kind}')
        self.dirty = None  # the engine of a memwatch that was killed here
        self.hooks = []    # (function, address, bytes) of functions that are hooked
        self.process = self.client = self.board = None

    # --- start and end ---

    def start(self):
        self.board = boards.Board(self.path, make=True)
        getattr(self, f'start_{self.kind}', self.start_fleet)()
        self.pid = self.process.pid
        self.wait(lambda: self.board.get(boards.READY), 'it is ready')
        self.progress()
        self.dirty, self.hooks = None, []
        self.snapshot = mwlive.Snapshot(self.pid)
        self.signals = self.signal_state()

    def spawn(self, *command, environment=None, **streams):
        """A process that does not outlive this one, and writes where one can read it later."""
        log = os.path.join(self.config.directory, f'log-{self.kind}')
        with open(log, 'ab') as output:
            streams = {'stdin': subprocess.DEVNULL, 'stdout': output, 'stderr': output, **streams}
            return subprocess.Popen(['setpriv', '--pdeathsig', 'KILL', *command], start_new_session=True,
                                    env={**os.environ, **(environment or {})}, **streams)

    def start_fleet(self):
        program = 'fleetxx' if self.kind in ('exceptions', 'cxx') else 'fleet'
        libraries = [os.path.join(self.config.build, 'tests', 'targets', f'libplugin_{name}.so')
                     for name in ('leak', 'own')] if self.kind == 'dlopen' else []
        self.process = self.spawn(os.path.join(self.config.build, 'tests', 'soak', program), self.kind, self.path,
                                  str(self.config.life), *libraries)

    def start_http(self):
        program = os.path.join(self.config.build, 'tests', 'soak', 'http')
        self.process = self.spawn(program, self.path, str(self.config.life))

    def works(self, *arguments, **keywords):
        return self.spawn(sys.executable, '-B', os.path.join(HERE, 'works.py'), *arguments, **keywords)

    def start_python(self):
        self.process = self.works('python', self.path, environment={'PYTHONMALLOC': 'malloc'})

    def start_redis(self):
        port = mwlive.free_port()
        self.process = self.spawn('redis-server', '--port', str(port), '--bind', '127.0.0.1', '--save', '',
                                  '--appendonly', 'no', '--daemonize', 'no', '--dir', self.config.directory)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(OSError), mwlive.socket.create_connection(('127.0.0.1', port), 1):
                break
            time.sleep(0.05)
        self.client = self.works('redis', self.path, str(port))

    def start_sqlite(self):
        self.process = self.spawn('sqlite3', '-batch', ':memory:', stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.client = self.works('sqlite', self.path, stdin=self.process.stdout, stdout=self.process.stdin)
        self.process.stdin.close()
        self.process.stdout.close()

    def stop(self):
        for process in (self.client, self.process):
            if process:
                mwlive.kill_quietly(process)
        self.client = self.process = None
        if self.board:
            self.board.close()
            self.board = None

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    # --- is it well? ---

    def check(self):
        """It lives, and has found nothing wrong."""
        status = self.process.poll()
        if self.board.get(boards.WRONG):
            raise Fault('wrong', f'{self.kind}: {self.board.text()}')
        if status is not None:
            name = signal.Signals(-status).name if status < 0 else f'status {status}'
            raise Fault('died', f'{self.kind} ({self.pid}) has died: {name}')
        if self.client and self.client.poll() is not None:
            raise Fault('wrong', f'{self.kind}: its client has ended')

    def wait(self, condition, what, sign=lambda: None):
        """Poll until it holds. It hangs when there is no sign of progress for longer than anything should take, on a
        machine that is busy as well."""
        last, end = sign(), time.monotonic() + PATIENCE
        while not condition():
            self.check()
            if self.config.stopping.is_set():
                raise Fault('ended', 'the soak was interrupted')
            now = sign()
            if now != last:
                last, end = now, time.monotonic() + PATIENCE
            if time.monotonic() > end:
                raise Fault('hung', f'{self.kind} ({self.pid}): waited {PATIENCE} s in vain until {what}; '
                            f'{self.describe()}')
            time.sleep(0.005)
        self.check()

    def progress(self):
        """Every thread of it gets on."""
        before = self.board.counters()

        def standing():
            return sum(now < old + 2 for now, old in zip(self.board.counters(), before))
        self.wait(lambda: standing() == 0, 'all of its threads get on', standing)

    def run_on(self, seconds):
        """It works for a while, and each thread goes on at the end."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.config.stopping.is_set():
            self.check()
            time.sleep(0.02)
        self.progress()
        if self.kind in METERED:
            self.meter()

    def meter(self):
        """Let it allocate what it can tell exactly: (count, bytes, count not freed, bytes not freed)."""
        request = self.board.get(boards.REQUEST) + 1
        self.board.set(boards.REQUEST, request)
        self.wait(lambda: self.board.get(boards.SERVED) == request, 'its meter has run',
                  lambda: self.board.counters()[-1])
        return [self.board.get(boards.METERED + i) for i in range(4)]

    def full_speed(self, level):
        self.board.set(boards.FULL, level)

    def describe(self):
        """What its threads are at, for whoever looks for the cause."""
        waits = collections.Counter()
        for tid in mwlive.tids(self.pid):
            told = mwlive.status(tid)
            where = '?'
            with contextlib.suppress(OSError), open(f'/proc/{tid}/wchan', encoding='utf-8') as f:
                where = f.read()
            waits[f'{told.get("State", "?")[:1]} in {where} traced by {told.get("TracerPid")}'] += 1
        return f'counters {self.board.counters()[:8]}; threads: {dict(waits)}'

    # --- was anything left behind? ---

    def signal_state(self):
        """Actions and masks, as far as they don't change by themselves."""
        if self.kind not in STEADY_SIGNALS:
            return None
        return [{mwlive.status(tid).get(key) for tid in mwlive.tids(self.pid)}
                for key in ('SigCgt', 'SigIgn', 'SigBlk')]

    def learn_hooks(self, report):
        """Where to look for whether the window has begun."""
        hooks = []
        for hook in report['engine']['hooks']:
            if hook['refused'] or hook['function'] not in ('malloc', 'free', 'mmap', 'munmap') or \
                    'libplugin' in hook['module']:  # these come and go
                continue
            for m, text in self.snapshot.text.items():
                at = hook['address'] - m[0]
                if 0 <= at < len(text) - 16:
                    hooks.append((hook['function'], hook['address'], text[at:at + 16]))
        self.hooks = hooks

    def hooked(self, tracked):
        """All functions are hooked that are known to be where that is tracked."""
        names = ('malloc', 'free') if 'heap' in tracked else ('mmap', 'munmap')
        looked = False
        try:
            with open(f'/proc/{self.pid}/mem', 'rb', buffering=0) as memory:
                for name, address, text in self.hooks:
                    if name not in names:
                        continue
                    memory.seek(address)
                    if memory.read(16) == text:
                        return False
                    looked = True
        except OSError:
            return False
        return looked

    def look(self):
        """What was left behind, as a text; '' where nothing was."""
        try:
            return '; '.join(self.leftovers())
        except (OSError, TypeError) as error:  # it changes while it is looked at, or has just died
            return f'it can\'t be looked at: {error!r}'

    def leftovers(self):
        found = []
        now = mwlive.mappings(self.pid)
        found += [f'copy {child} ({state})' for child, state in mwlive.copies(self.pid).items()]
        found += [f'mapping {m}' for m in watched_names(now)]
        if len(now) > len(self.snapshot.maps) + SPARE_MAPPINGS:
            found.append(f'{len(now)} mappings where {len(self.snapshot.maps)} were')
        for m in now:
            if 'x' in m[2] and m[4] != '[vsyscall]':
                found += self.changed(m)
        for tid in mwlive.tids(self.pid):
            told = mwlive.status(tid)
            if told.get('TracerPid', '0') != '0':
                found.append(f'thread {tid} is traced')
            if told.get('State', 'R')[0] in 'tT':
                found.append(f'thread {tid} stands still')
        for fd in os.listdir(f'/proc/{self.pid}/fd'):
            with contextlib.suppress(OSError):
                if os.readlink(f'/proc/{self.pid}/fd/{fd}').startswith('/memfd:memwatch'):
                    found.append(f'file descriptor {fd}')
        if self.signals is not None and self.signal_state() != self.signals:
            found.append(f'signals {self.signal_state()} where {self.signals} were')
        return found

    def changed(self, mapping):
        """Code that is not as it was, or, if it has come since, not as its file says."""
        start, end, _, offset, path = mapping
        text = mwlive.read_memory(self.pid, start, end - start)
        old = self.snapshot.text.get(mapping)
        if old is None and path.startswith('/'):
            with open(f'/proc/{self.pid}/root{path}', 'rb') as f:
                f.seek(offset)
                old = f.read(end - start).ljust(end - start, b'\0')
        if old is None:
            return [] if mapping in self.snapshot.maps else [f'code without a file {mapping}']
        if text == old:
            return []
        at = next(i for i in range(min(len(text), len(old))) if text[i] != old[i])
        return [f'{path}+{offset + at:#x} holds {text[at:at + 8].hex()}, not {old[at:at + 8].hex()}']

    def check_clean(self):
        """Nothing may be left. Libraries come and go while one looks: what is seen once only is not believed."""
        for attempt in range(6):
            found = self.look()
            self.check()
            if not found:
                return
            time.sleep(0.02 * (attempt + 1))
        raise Fault('left', f'{self.kind} ({self.pid}): {found}')
