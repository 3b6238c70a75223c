# SPDX-License-Identifier: MIT
"""memwatch top in a terminal of tmux's, its keys pressed and its screen read."""
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile

import mwlive

NUMBERS = itertools.count()

SETTINGS = '''set -g status off
set -g escape-time 0
set -g default-terminal screen-256color
set -g remain-on-exit on
'''

# What a user sees of it: the terminal's modes before and after, and the status. ./went: it has gone.
SHELL = '''stty -g >before; "$@" 2>errors; echo "status $?" >went; cat errors; stty -g >after; exec sleep 600'''


def size(count):
    """As reports show sizes."""
    if count < 1024:
        return f'{count} B'
    value = count / 1024
    for unit in ('KiB', 'MiB', 'GiB'):
        if value < 1023.95:
            return f'{value:.1f} {unit}'
        value /= 1024
    return f'{value:.1f} TiB'


class Screen:
    """A terminal with a memwatch top in it."""

    def __init__(self, test, *pids, options=(), width=110, height=30, env=None, command=None):
        self.test = test
        self.directory = tempfile.mkdtemp(prefix='mwtop-')
        test.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.name = f'mwtop-{os.getpid()}-{next(NUMBERS)}'
        settings = os.path.join(self.directory, 'tmux.conf')
        with open(settings, 'w', encoding='utf-8') as f:
            f.write(SETTINGS)
        command = command or [mwlive.config.memwatch, 'top', '-p', ','.join(map(str, pids)), '--engine',
                              mwlive.config.engine, *map(str, options)]
        environment = {k: v for k, v in os.environ.items() if k not in ('TMUX', 'NO_COLOR', 'COLUMNS', 'LINES')}
        environment.update(LC_ALL='C.UTF-8', TMUX_TMPDIR=self.directory, TMPDIR=self.directory)
        self.environment = environment
        test.addCleanup(self.close)
        inner = [f'{k}={v}' for k, v in (env or {}).items()]
        self.tmux('-f', settings, 'new-session', '-d', '-x', str(width), '-y', str(height), '-c', self.directory,
                  'sh', '-c', SHELL, 'sh', *(['env', *inner] if inner else []), *command)

    def tmux(self, *arguments):
        done = subprocess.run(['tmux', '-L', self.name, *arguments], env=self.environment, capture_output=True,
                              timeout=mwlive.PATIENCE, check=False)
        self.test.assertEqual(done.returncode, 0, (arguments, done.stderr))
        return done.stdout.decode('utf-8', 'replace')

    def close(self):
        subprocess.run(['tmux', '-L', self.name, 'kill-server'], env=self.environment, capture_output=True,
                       timeout=mwlive.PATIENCE, check=False)

    def file(self, name):
        return os.path.join(self.directory, name)

    def pid(self):
        """memwatch's process."""
        shell = int(self.tmux('display-message', '-p', '#{pane_pid}'))

        def child():
            try:
                with open(f'/proc/{shell}/task/{shell}/children', encoding='utf-8') as f:
                    return [int(c) for c in f.read().split() if mwlive.status(int(c)).get('Name') == 'memwatch']
            except FileNotFoundError:
                return []
        return mwlive.wait_until(child, 'memwatch runs')[0]

    def text(self):
        return self.tmux('capture-pane', '-p')

    def lines(self):
        return self.text().splitlines()

    def keys(self, *keys):
        self.tmux('send-keys', *keys)

    def type(self, text):
        self.tmux('send-keys', '-l', text)

    def resize(self, width, height):
        self.tmux('resize-window', '-x', str(width), '-y', str(height))

    def wait(self, pattern, what=None):
        """Until the screen has that; the match."""
        last = ['']

        def found():
            last[0] = self.text()
            return re.search(pattern, last[0], re.M)
        try:
            return mwlive.wait_until(found, what or pattern, step=0.1)
        except AssertionError as error:
            raise AssertionError(f'{error}; the screen:\n{last[0]}') from None

    def wait_gone(self, pattern):
        last = ['']

        def gone():
            last[0] = self.text()
            return not re.search(pattern, last[0], re.M)
        try:
            mwlive.wait_until(gone, f'gone: {pattern}', step=0.1)
        except AssertionError as error:
            raise AssertionError(f'{error}; the screen:\n{last[0]}') from None

    def rows(self):
        """(impacting, the rest) of each row."""
        return [m.groups() for m in (re.match(r'^ *(\d[\d.]* (?:B|[KMGT]iB)) (.*)$', line) for line in self.lines())
                if m]

    def row(self, text):
        return next((row for row in self.rows() if text in row[1]), None)

    def wait_row(self, text, impacting):
        """Until the row with that text has so many bytes."""
        self.wait(rf'^ *{re.escape(size(impacting))} .*{re.escape(text)}')

    def await_status(self):
        def status():
            try:
                with open(self.file('went'), encoding='utf-8') as f:
                    return f.read()
            except FileNotFoundError:
                return ''
        text = mwlive.wait_until(lambda: status().endswith('\n') and status(), 'memwatch ends')
        return int(text.split()[1])

    def errors(self):
        with open(self.file('errors'), encoding='utf-8', errors='replace') as f:
            return f.read()

    def check_terminal(self):
        """The terminal is as it was: its modes, the screen that it shows, its cursor."""
        def read(name):
            with open(self.file(name), encoding='utf-8') as f:
                return f.read()
        mwlive.wait_until(lambda: os.path.exists(self.file('after')) and read('after').endswith('\n'), 'stty')
        self.test.assertEqual(read('before'), read('after'))
        self.test.assertEqual(self.tmux('display-message', '-p', '#{alternate_on} #{cursor_flag}').split(), ['0', '1'])

    def quit(self, key='q'):
        self.keys(key)
        status = self.await_status()
        self.test.assertEqual((status, self.errors()), (0, ''))
        self.check_terminal()


class Menu(mwlive.Target):
    """The target that does what it is told."""

    def __init__(self, test):
        super().__init__(test, 'orders')
        self.go()

    def order(self, *orders):
        for order in orders:
            self.process.stdin.write(order.encode())
            self.process.stdin.flush()
            self.test.assertEqual(self.line(), 'done', order)

    def exit(self):
        self.process.stdin.write(b'x')
        self.process.stdin.flush()
        self.test.assertEqual(self.process.wait(mwlive.PATIENCE), 3)

    def goes_on(self):
        self.order('c', 'a', 'A')

    def end(self):
        self.goes_on()
        self.process.stdin.close()
        self.test.assertEqual(self.process.wait(mwlive.PATIENCE), 0)


def report(test, recording, *options):
    """The report of a recording."""
    done = subprocess.run([mwlive.config.memwatch, 'report', recording, '--json', '-', *map(str, options)],
                          capture_output=True, timeout=mwlive.PATIENCE, check=False)
    test.assertEqual(done.returncode, 0, done.stderr)
    return json.loads(done.stdout)


def end(pid, number=signal.SIGKILL):
    os.kill(pid, number)
