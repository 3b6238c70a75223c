# SPDX-License-Identifier: MIT
"""What the live tests share: targets, memwatch attached to them, and what must hold after each window.

A test file is run as `live_X.py --memwatch PATH --targets DIR [--engine NAME] [unittest arguments]`. Every
window that is observed through Watch is checked for what must always be so: the report adds up and has
every key that is promised, and the target is left as it was found.
"""
import argparse
import contextlib
import json
import os
import random
import re
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

# What memwatch itself runs under (scripts/sanitize): 'asan', 'valgrind', or nothing. It is slower then.
TOOL = os.environ.get('MEMWATCH_TEST_TOOL', '')
SLOWNESS = int(os.environ.get('MEMWATCH_TEST_SLOWNESS', '1'))
PATIENCE = 60 * SLOWNESS  # seconds that anything may take
# What is to hit a rare moment is tried a few times by the tests, each time alike, and by scripts/soak often and at random.
SOAK = bool(os.environ.get('MEMWATCH_SOAK'))
SEED = int(os.environ.get('MEMWATCH_SEED', '1'))

config = argparse.Namespace(memwatch=None, targets=None, engine='trap')


def attempts(few, many):
    """How often to try what is to hit a rare moment: `few` times as a test, `many` times in a soak."""
    return many if SOAK else few


def chance(name):
    """Random numbers of the run's seed, for the test or the case of that name."""
    return random.Random(f'{SEED} {name}')


def target_path(name):
    return os.path.join(config.targets, name)


def wait_until(condition, what, seconds=PATIENCE, step=0.02):
    """Poll until the condition holds; returns its value."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f'waited {seconds} s in vain: {what}')
        time.sleep(step)


def not_under(reason, *tools):
    """Of a test, or a class of them, that can't be done with memwatch under these tools (all, by default): why."""
    return unittest.skipIf(TOOL and TOOL in (tools or (TOOL,)), f'under {TOOL}: {reason}')


def with_fault(point=None):
    """The environment of a memwatch that is to fail at a point."""
    return {**os.environ, **({'MEMWATCH_FAULT': point} if point else {})}


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def memwatch(test, *arguments, status=0):
    """Run it to its end: (standard output, messages)."""
    done = subprocess.run([config.memwatch, *map(str, arguments)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False)
    test.assertEqual(done.returncode, status, done.stderr)
    return done.stdout, done.stderr


def kill_quietly(process):
    """End a process of ours, and reap it."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            # What it was not there any more to read.
            with contextlib.suppress(BrokenPipeError):
                stream.close()


def children(pid):
    """The processes that a process's threads have made."""
    found = []
    for tid in tids(pid):
        with contextlib.suppress(OSError):
            with open(f'/proc/{pid}/task/{tid}/children', encoding='utf-8') as f:
                found += map(int, f.read().split())
    return found


def copies(pid):
    """The forked copies of a process by which memwatch looks, or has looked, at its heap: {pid: state}."""
    return {child: state(child) for child in children(pid) if status(child).get('Name') == 'memwatch copy'}


def guard_of(pid):
    """The process that waits for the end of a memwatch, to take out what it left; None where there is none."""
    return next((child for child in children(pid) if status(child).get('Name') == 'memwatch-guard'), None)


def await_end_of(guard):
    """Until it has ended, whoever is to reap it and when."""
    wait_until(lambda: state(guard) in 'ZX', 'the guard ends')


def kill_with_guard(process):
    """kill -9 a memwatch and its guard at once: whatever it has put into a process stays there."""
    process.send_signal(signal.SIGSTOP)
    # A guard that was just forked has the name of memwatch until it runs.
    name = status(process.pid).get('Name')
    wait_until(lambda: not any(status(child).get('Name') == name and state(child) not in 'ZX'
                               for child in children(process.pid)), 'the guard has its name', step=0.002)
    guard = guard_of(process.pid)
    if guard:
        with contextlib.suppress(ProcessLookupError):
            os.kill(guard, signal.SIGKILL)
    process.kill()


# --- what /proc tells of a process -------------------------------------------------------------------

def tids(pid):
    try:
        return sorted(int(t) for t in os.listdir(f'/proc/{pid}/task'))
    except FileNotFoundError:
        return []


def status(tid):
    """Fields of /proc/TID/status; {} where the thread is gone."""
    try:
        with open(f'/proc/{tid}/status', encoding='utf-8', errors='replace') as f:
            return dict(line.rstrip('\n').split(':\t', 1) for line in f if ':\t' in line)
    except (FileNotFoundError, ProcessLookupError):
        return {}


def state(tid):
    return status(tid).get('State', 'X')[0]


def live_tid(pid):
    """A thread whose memory can be looked at: the leader, unless it has ended before the others."""
    for tid in (pid, *tids(pid)):
        if state(tid) not in 'ZX':
            return tid
    return None


def spawned_may_trap():
    """From glibc 2.38 on posix_spawn and system make children without actions for signals: README, Limits."""
    name, _, version = (os.confstr('CS_GNU_LIBC_VERSION') or '').partition(' ')
    return config.engine == 'trap' and name == 'glibc' and [int(part) for part in version.split('.')] >= [2, 38]


def mappings(pid):
    """(start, end, permissions, offset, path) of each mapping."""
    tid = live_tid(pid)
    found = []
    if tid is None:
        return found
    with open(f'/proc/{tid}/maps', encoding='utf-8', errors='replace') as f:
        for line in f:
            part = line.rstrip('\n').split(None, 5)
            start, end = (int(x, 16) for x in part[0].split('-'))
            found.append((start, end, part[1], int(part[2], 16), part[5] if len(part) > 5 else ''))
    return found


def is_ours(path):
    """Is it what memwatch maps or opens in a target? Its checkout may have any name."""
    return path.startswith('/memfd:memwatch')


def read_memory(pid, start, size):
    with open(f'/proc/{live_tid(pid)}/mem', 'rb', buffering=0) as f:
        f.seek(start)
        data = b''
        while len(data) < size:
            more = f.read(size - len(data))
            if not more:
                break
            data += more
        return data


class Snapshot:
    """What of a process may not change by being watched: its code, and where its files are mapped."""

    def __init__(self, pid):
        self.pid = pid
        end = time.monotonic() + PATIENCE
        while True:
            self.maps = mappings(pid)
            try:
                self.text = {m: read_memory(pid, m[0], m[1] - m[0])
                             for m in self.maps if 'x' in m[2] and m[4] and m[4] != '[vsyscall]'}
                return
            except OSError:  # a library was unloaded meanwhile
                if time.monotonic() > end:
                    raise

    def touched(self):
        """Has any code changed since?"""
        try:
            return any(read_memory(self.pid, m[0], m[1] - m[0]) != old for m, old in self.text.items())
        except (OSError, TypeError):
            return False

    def check(self, test):
        """The process is as it was: its code byte for byte, its mappings of code, its threads running."""
        now = mappings(self.pid)
        for m in now:
            if 'x' not in m[2] or m[4] == '[vsyscall]':
                continue
            text = read_memory(self.pid, m[0], m[1] - m[0])
            old = self.text.get(m)
            if old is None and (m in self.maps or ('w' in m[2] and any(m[2] == was[2] and not was[4] for was in self.maps))):
                continue  # the program makes code there itself; none of memwatch's can be written to
            if old is None and m[4].startswith('/'):
                # Mapped inside the window: must be what the file says.
                with open(f'/proc/{live_tid(self.pid)}/root{m[4]}', 'rb') as f:
                    f.seek(m[3])
                    old = f.read(m[1] - m[0]).ljust(m[1] - m[0], b'\0')
            test.assertIsNotNone(old, f'new code without a file is mapped: {m}')
            if text != old:
                at = next(i for i in range(len(text)) if text[i] != old[i])
                test.fail(f'{m[4]}+{m[3] + at:#x}: {old[at]:#04x} before, {text[at]:#04x} after the window')
        ours = [m for m in now if is_ours(m[4]) and m not in self.maps]
        test.assertEqual(ours, [], 'mappings left behind')
        for tid in tids(self.pid):
            s = status(tid)
            test.assertIn(s.get('TracerPid', '0'), ('0',), f'thread {tid} is still traced')
            test.assertNotIn(s.get('State', 'R')[0], 'tT', f'thread {tid} is stopped')


# --- targets -----------------------------------------------------------------------------------------

class Target:
    """A program of tests/targets that follows the protocol of target.h."""

    def __init__(self, test, name, *arguments, env=None, argv=None, pid=None):
        self.test = test
        self.name = name
        environment = dict(os.environ, **(env or {}))
        self.process = subprocess.Popen(argv or [target_path(name), *map(str, arguments)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=environment)
        test.addCleanup(kill_quietly, self.process)
        self.buffer = b''
        self.answer = {}
        line = self.line()
        test.assertRegex(line, r'^ready \d+$', f'{name} is not ready')
        self.pid = pid(self.process) if pid else int(line.split()[1])

    def line(self, seconds=PATIENCE):
        end = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b'\n' not in self.buffer:
                if not selector.select(max(0, end - time.monotonic())):
                    states = {t: (state(t), status(t).get('TracerPid')) for t in tids(self.process.pid)}
                    raise AssertionError(f'{self.name} says nothing for {seconds} s; its threads: {states}')
                data = os.read(self.process.stdout.fileno(), 65536)
                if not data:
                    code = self.process.wait(PATIENCE)
                    raise AssertionError(f'{self.name} ended with {code} before it was done; last: {self.buffer}')
                self.buffer += data
        line, _, self.buffer = self.buffer.partition(b'\n')
        return line.decode()

    def send(self):
        self.process.stdin.write(b'x')
        self.process.stdin.flush()

    def go(self):
        try:
            self.send()
        except BrokenPipeError:
            code = self.process.wait(PATIENCE)
            rest = self.buffer + self.process.stdout.read()
            raise AssertionError(f'{self.name} ended with {code} before it was told to go; last: {rest}') from None

    def done(self, seconds=PATIENCE):
        """Wait for the work to be done; the answer as a dict."""
        while True:
            line = self.line(seconds)
            if line == 'done':
                return self.answer
            self.test.assertFalse(line.startswith('failed '), f'{self.name}: {line} {self.answer}')
            key, _, value = line.partition('=')
            self.answer[key] = int(value) if value.isdigit() else value

    def finish(self, expected=0):
        """Let it end, and check how."""
        with contextlib.suppress(BrokenPipeError):
            self.send()
            self.process.stdin.close()
        rest = b''
        while True:
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                break
            rest += more
        code = self.process.wait(PATIENCE)
        self.test.assertNotIn(b'failed', self.buffer + rest)
        self.test.assertEqual(code, expected, f'{self.name} ended with {code}')


# --- memwatch ----------------------------------------------------------------------------------------

def patient(engine=None, options=()):
    """Options with which every block is recorded, however long the process has to wait for that: where nothing is said of it."""
    asked = {'--sample', '--budget', '--overload', '--max-wait'} & set(options)
    return () if (engine or config.engine) == 'trap' or asked else ('--max-wait', '100')


class Watch:
    """memwatch attached to processes."""

    def __init__(self, test, *pids, options=(), busy=False, engine=None, complete=True, env=None, settle=0, terminal=None,
                 exact=True, status=0):
        """`terminal`: standard error, where progress is shown. `exact`: every block is recorded. `status`: memwatch's; None: any
        with which there is a report."""
        self.test = test
        engine = engine or config.engine
        # Nobody is to wait for what is not looked at. None: as memwatch does it by itself.
        settling = () if settle is None or '--settle' in options else ('--settle', settle)
        self.complete = complete
        self.status = status
        self.pids = pids
        self.directory = tempfile.mkdtemp(prefix='mwlive-')
        test.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.json = os.path.join(self.directory, 'report.json')
        self.snapshots = [Snapshot(pid) for pid in pids]
        self.process = subprocess.Popen(
            [config.memwatch, '-p', ','.join(map(str, pids)), '--engine', engine, *(('--quiet',) if terminal is None else ()),
             '--json', self.json, *(patient(engine, options) if exact else ()), *map(str, (*settling, *options))],
            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE if terminal is None else terminal)
        test.addCleanup(kill_quietly, self.process)
        self.wait_for_window(busy)

    def wait_for_window(self, busy):
        """The window has begun when the code has changed and no thread is stopped for it any more."""
        calm = 0

        def begun():
            nonlocal calm
            if self.process.poll() is not None:
                out, err = self.process.communicate()
                raise AssertionError(f'memwatch ended with {self.process.returncode}: {out!r} {err!r}')
            if not all(s.touched() for s in self.snapshots):
                return False
            if busy or not any(state(t) == 't' for p in self.pids for t in tids(p)):
                calm += 1
            return calm >= 2
        wait_until(begun, 'memwatch plants its hooks')

    def wait(self, seconds=PATIENCE):
        """Wait for memwatch to end by itself; the reports, one a process."""
        try:
            out, err = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f'memwatch does not end: state {state(self.process.pid)}') from None
        self.test.assertIn(self.process.returncode, (0, 1, 3) if self.status is None else (self.status,),
                           f'memwatch failed: {out!r} {err!r}')
        self.messages = (err or b'').decode()
        self.reports = load_reports(self.json)
        for report in self.reports:
            check_report(self.test, report, self.complete)
        return self.reports

    def stop(self, number=signal.SIGINT, intact=True):
        """End the window as Ctrl-C does; the report. Checks that the targets are as they were."""
        self.process.send_signal(number)
        self.wait()
        if intact:
            self.check_targets()
        return self.reports[0]

    def check_targets(self):
        for snapshot in self.snapshots:
            snapshot.check(self.test)


def load_reports(path):
    with open(path, encoding='utf-8') as f:
        document = json.load(f)
    return document.get('processes', [document])


def observe(test, name, *arguments, env=None, options=(), seconds=PATIENCE):
    """A target's whole work inside one window: (answer, report). The target goes on and ends well."""
    target = Target(test, name, *arguments, env=env)
    watch = Watch(test, target.pid, options=options)
    target.go()
    answer = target.done(seconds)
    report = watch.stop()
    target.finish()
    return answer, report


# --- reports -----------------------------------------------------------------------------------------

AMOUNTS = ('size', 'impacting', 'transient', 'aofi')


def add(total, amount):
    # Where blocks are sampled it is not known what was freed that is older.
    total['count'] += amount['count'] if amount else 0
    total['bytes'] += (amount['bytes'] or 0) if amount else 0


def nothing():
    return {'count': 0, 'bytes': 0}


def check_sampling(test, report):
    """Estimates have errors, and nothing else has; of older blocks that were freed nothing is claimed."""
    sampled = report['sampling'] is not None
    for amount in AMOUNTS[:3]:
        for kind, total in report['totals'].items():
            if total:
                test.assertEqual('error' in total[amount], sampled and kind == 'heap', (kind, amount))
        for stack in report['stacks']:
            test.assertEqual('error' in stack[amount], sampled and stack['kind'] == 'heap', stack['id'])
        for row in (*report['threads'], *report['modules']):
            test.assertEqual('error' in row[amount], sampled, amount)
    if not sampled:
        return
    test.assertFalse(report['complete'], 'not all blocks were recorded')
    test.assertGreater(report['sampling']['interval'], 0)
    if report['totals']['heap'] and report['window']['from'] == 0:
        test.assertIsNone(report['totals']['heap']['aofi'])


def check_report(test, report, complete=True):
    """What SPEC promises of every report. `complete` None: something may be lost, if it is told."""
    test.assertEqual(report['schema'], 'memwatch.report/1')
    for part, keys in {
            'target': ('pid', 'comm', 'exe', 'command', 'exit_status'),
            'window': ('started', 'seconds', 'from', 'to', 'ended'),
            'engine': ('name', 'reason', 'hooks', 'stops', 'longest_stop_ns'),
            'totals': ('heap', 'vm')}.items():
        for key in keys:
            test.assertIn(key, report[part], part)
    test.assertRegex(report['window']['started'], r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d')
    test.assertIn(report['window']['ended'], ('duration', 'interrupt', 'exit', 'exec', 'trigger', 'limit', 'lost'))
    test.assertGreaterEqual(report['window']['seconds'], 0)
    for hook in report['engine']['hooks']:
        for key in ('function', 'module', 'address', 'role'):
            test.assertIn(key, hook)
    test.assertGreaterEqual(len(report['memory']), 1)
    for sample in report['memory']:
        for key in ('at', 'rss', 'pss', 'vsize', 'heap_impacting', 'vm_impacting'):
            test.assertIn(key, sample)
    if complete is not None:
        test.assertEqual(report['complete'], complete, report.get('lost'))
    check_sampling(test, report)
    sums = {kind: {a: nothing() for a in AMOUNTS} for kind in ('heap', 'vm', 'vm-internal')}
    seen = set()
    for stack in report['stacks']:
        for key in ('id', 'kind', 'api', 'truncated', 'frames', 'peak', 'lifetime_ns', 'threads', *AMOUNTS):
            test.assertIn(key, stack)
        test.assertRegex(stack['id'], r'^[0-9a-f]{16}$')
        test.assertNotIn((stack['id'], stack['api'], stack['kind']), seen, 'one stack twice')
        seen.add((stack['id'], stack['api'], stack['kind']))
        for key in ('count', 'bytes'):
            test.assertEqual(stack['size'][key], stack['impacting'][key] + stack['transient'][key], stack['api'])
        for amount in AMOUNTS:
            add(sums[stack['kind']][amount], stack[amount])
        for frame in stack['frames']:
            for key in ('function', 'module', 'offset', 'address', 'file', 'line', 'inlined'):
                test.assertIn(key, frame)
        held = sum(t['impacting']['count'] for t in stack['threads'])
        test.assertEqual(held, stack['impacting']['count'], 'threads of a stack')
    for kind, total in report['totals'].items():
        if total is None:  # a kind that was not recorded
            test.assertEqual(sums[kind], {a: nothing() for a in AMOUNTS})
            continue
        for key in (*AMOUNTS, 'peak'):
            test.assertIn(key, total)
        for amount in AMOUNTS:
            got = total[amount] and {key: total[amount][key] for key in ('count', 'bytes')}
            test.assertEqual(got or nothing(), sums[kind][amount], f'stacks do not add up to totals.{kind}.{amount}')
        test.assertGreaterEqual(total['peak']['bytes'], total['impacting']['bytes'])
    for module in report['modules']:
        for key in ('module', 'size', 'impacting', 'transient'):
            test.assertIn(key, module)
    for thread in report['threads']:
        for key in ('tid', 'name', 'size', 'impacting', 'transient'):
            test.assertIn(key, thread)


def without(text, opening, closing):
    """The text without what stands in brackets of a kind, nested ones too."""
    depth, out = 0, ''
    for c in text:
        depth += c == opening
        if depth == 0:
            out += c
        depth -= c == closing and depth > 0
    return out


def plain(function):
    """A function's own name: without scope, parameters, template arguments, clones and versions."""
    if function is None:
        return None
    name = re.sub(r'operator ?\(\)', 'operator_call', function)
    name = re.sub(r' \[clone [^]]*\]|\[abi:\w+\]', '', name).replace('(anonymous namespace)', 'anonymous')
    name = without(without(name, '(', ')'), '<', '>')
    name = re.sub(r'(\.(constprop|isra|part|cold|lto_priv)\.?\d*)+$|@.*$| const$', '', name.strip())
    name = name.split('::')[-1]
    return name if name.startswith('operator') else name.split(' ')[-1].removeprefix('__GI_')


def hooked_modules(report):
    return {h['module'] for h in report['engine']['hooks'] if not h.get('refused')}


def functions(stack):
    return [plain(f['function']) for f in stack['frames']]


def select(report, function=None, api=None, kinds=('heap', 'vm'), size=None):
    """The stacks through a function, from an entry point, of blocks of one size."""
    found = []
    for stack in report['stacks']:
        if stack['kind'] not in kinds or (function and function not in functions(stack)):
            continue
        if api and stack['api'] not in api:
            continue
        if size and (stack['size']['count'] == 0 or stack['size']['bytes'] != size * stack['size']['count']):
            continue
        found.append(stack)
    return found


def total_of(stacks):
    total = {a: nothing() for a in AMOUNTS}
    for stack in stacks:
        for amount in AMOUNTS:
            add(total[amount], stack[amount])
    return total


# Names that are one function in glibc.
ALIASES = ({'memalign', 'aligned_alloc', '__libc_memalign'},)


def aliases(api):
    return next((group for group in ALIASES if api in group), {api})


def compare(test, answer, report):
    """Hold each line of a target's answer that speaks of amounts against the report."""
    compared = 0
    wrong = []
    named = {key.split('.')[0] for key in answer} - {'heap', 'vm', 'api'}
    for key, expected in answer.items():
        match = re.match(r'^(\w+)(?:\.(\w+))?\.(size|impacting|transient|aofi)\.(count|bytes)$', key)
        if match:
            who, size, amount, unit = match.groups()
            if who in ('heap', 'vm'):
                got = report['totals'][who][amount][unit]
            else:
                kind = 'vm' if who.startswith('vm_') else 'heap'
                # A signal handler's blocks are not those of the function that it interrupted.
                stacks = [s for s in select(report, who, kinds=(kind,), size=int(size) if size else None)
                          if next(f for f in functions(s) if f in named) == who]
                got = total_of(stacks)[amount][unit]
        elif key.startswith('api.'):
            _, api, unit = key.split('.')
            expected = sum(answer.get(f'api.{a}.{unit}', 0) for a in aliases(api))
            got = total_of(select(report, api=aliases(api), kinds=('heap',)))['size'][unit]
        else:
            continue
        compared += 1
        if got != expected:
            wrong.append(f'{key}: expected {expected}, got {got}')
    test.assertEqual(wrong, [], 'what the target says it did, and what memwatch says it did')
    test.assertGreater(compared, 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--memwatch', required=True)
    parser.add_argument('--targets', required=True)
    parser.add_argument('--engine', default='trap')
    known, rest = parser.parse_known_args()
    config.memwatch = os.path.abspath(known.memwatch)
    config.targets = os.path.abspath(known.targets)
    config.engine = known.engine
    unittest.main(argv=[sys.argv[0], *rest])
