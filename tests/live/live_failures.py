#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""memwatch's own failures: whatever they are, it first detaches from the process that it watches, unharmed.

Calls of malloc that fail are sampled: a few, evenly spread; by scripts/soak at random. `MEMWATCH_TEST_SWEEP=1` makes each
fail in turn, which takes hours, `=7` each seventh.
"""
import contextlib
import json
import os
import pty
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import mwlive

CRASHES = signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL
CALLS = mwlive.attempts(12, 200)  # that fail in a sampled sweep, each way
RENEWED = 200  # windows after which another target is taken: it does not live for ever
EVERY = int(os.environ.get('MEMWATCH_TEST_SWEEP', '0'))


def with_failmalloc(**wishes):
    """The environment of a memwatch whose calls of malloc fail, or are counted."""
    library = os.path.join(os.path.dirname(mwlive.config.targets), 'tools', 'libfailmalloc.so')
    quiet = os.path.join(os.path.dirname(__file__), '..', 'tools', 'lsan_failmalloc.supp')
    # AddressSanitizer need not be loaded first.
    sanitizers = {'ASAN_OPTIONS': os.environ.get('ASAN_OPTIONS', '') + ':verify_asan_link_order=0',
                  'LSAN_OPTIONS': f'suppressions={os.path.abspath(quiet)}:print_suppressions=0'}
    return {**os.environ, **sanitizers, 'LD_PRELOAD': library, **wishes}


def command(pid, *options):
    return [mwlive.config.memwatch, '-p', str(pid), '--engine', mwlive.config.engine, *map(str, options)]


class Steady:
    """A target at work, and what may not change in it."""

    def __init__(self, test, threads=2, *arguments):
        self.test = test
        self.target = mwlive.Target(test, 'steady', threads, *arguments)
        self.pid = self.target.pid
        self.target.go()
        # Arenas of threads come first, and all kinds of blocks.
        mwlive.wait_until(lambda: sum(self.switches(t) >= 50 for t in mwlive.tids(self.pid)) >= threads,
                          'all threads are at work')
        self.snapshot = mwlive.Snapshot(self.pid)

    @staticmethod
    def switches(tid):
        return int(mwlive.status(tid).get('voluntary_ctxt_switches', 0))

    def all_switches(self):
        return sum(self.switches(t) for t in mwlive.tids(self.pid))

    def wait_for_work(self, more=4):
        begin = self.all_switches()
        mwlive.wait_until(lambda: self.all_switches() >= begin + more, 'the target goes on')

    def hooked(self):
        return self.snapshot.touched()

    def wait_for_hooks(self, process):
        mwlive.wait_until(lambda: self.hooked() or process.poll() is not None, 'memwatch plants its hooks')
        self.test.assertIsNone(process.poll(), 'memwatch has ended')

    @staticmethod
    def places(maps):
        """All mappings; an arena may grow into the room that is kept for it."""
        return [(start, path or permissions, end if path and path != '[heap]' else None)
                for start, end, permissions, _, path in maps if path or permissions != '---p']

    def check(self):
        """Alive, at work, code and mappings as before, no descriptor of ours, nobody traces it."""
        self.test.assertIsNone(self.target.process.poll(), 'the target has died')
        self.snapshot.check(self.test)
        self.test.assertEqual(self.places(mwlive.mappings(self.pid)), self.places(self.snapshot.maps))
        names = [os.readlink(f'/proc/{self.pid}/fd/{n}') for n in os.listdir(f'/proc/{self.pid}/fd')]
        self.test.assertEqual([n for n in names if mwlive.is_ours(n)], [])
        self.wait_for_work()

    def finish(self):
        self.target.send()
        self.target.done()
        self.target.finish()


class Failures(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix='mwlive-failures-')
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.directory, name)

    def start(self, pid, *options, **popen):
        process = subprocess.Popen(command(pid, *options), **{'stdin': subprocess.DEVNULL, 'stdout': subprocess.PIPE,
                                                              'stderr': subprocess.PIPE, 'text': True, **popen})
        self.addCleanup(mwlive.kill_quietly, process)
        return process

    def run_it(self, pid, *options, **popen):
        """To its end; checks that it takes its guard with it."""
        process = self.start(pid, *options, **popen)
        out, err = process.communicate(timeout=mwlive.PATIENCE)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def check_message(self, err, *words):
        """One clear line."""
        self.assertEqual(err.count('\n'), 1, err)
        self.assertTrue(err.startswith('memwatch: '), err)
        for word in words:
            self.assertIn(word, err)

    def ended(self, run):
        return json.loads(run.stdout)['window']['ended']


class Killed(Failures):
    """memwatch is gone in the midst of its work."""

    def watch(self, steady, *options):
        process = self.start(steady.pid, '--quiet', *options)
        steady.wait_for_hooks(process)
        time.sleep(0.2)
        return process

    def test_guard(self):
        """It is of a session of its own, keeps nothing open, and ends with memwatch."""
        steady = Steady(self)
        process = self.watch(steady)
        guard = mwlive.guard_of(process.pid)
        self.assertIsNotNone(guard)
        for number in signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT:
            os.kill(guard, number)
        self.assertEqual(os.getsid(guard), guard)
        # On a busy machine it may still be about to close what it has from memwatch.
        mwlive.wait_until(lambda: len(os.listdir(f'/proc/{guard}/fd')) == 6, 'the guard closes what it does not need')
        files = {n: os.readlink(f'/proc/{guard}/fd/{n}') for n in os.listdir(f'/proc/{guard}/fd')}
        self.assertEqual((files['0'], files['1']), ('/dev/null', '/dev/null'))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=mwlive.PATIENCE)
        self.assertEqual((process.returncode, out, err), (0, '', ''))
        self.assertFalse(os.path.exists(f'/proc/{guard}'), 'the guard is still there')
        steady.check()
        steady.finish()

    @mwlive.not_under('the memory of the tool is in all that memwatch has')
    def test_guard_is_small(self):
        steady = Steady(self)
        process = self.watch(steady)
        self.assertLess(int(mwlive.status(mwlive.guard_of(process.pid))['VmRSS'].split()[0]), 8192)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=mwlive.PATIENCE)
        steady.finish()

    def test_guard_killed(self):
        """Nothing is worse for that."""
        steady = Steady(self)
        process = self.watch(steady)
        os.kill(mwlive.guard_of(process.pid), signal.SIGKILL)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=mwlive.PATIENCE)
        self.assertEqual((process.returncode, out, err), (0, '', ''))
        steady.check()
        steady.finish()

    def test_killed(self):
        """The guard takes out what is left."""
        steady = Steady(self)
        for output in None, self.path('killed.mw'):
            process = self.watch(steady, *(('-o', output) if output else ()))
            time.sleep(1.2 * mwlive.SLOWNESS if output else 0)
            process.kill()
            _, err = process.communicate(timeout=mwlive.PATIENCE)
            self.assertEqual(process.returncode, -signal.SIGKILL)
            self.check_message(err, 'was killed', f'detached from process {steady.pid}', output or '')
            steady.check()
        self.read_recording(output)
        steady.finish()

    def test_killed_when_two_are_watched(self):
        both = [Steady(self), Steady(self)]
        process = self.start(f'{both[0].pid},{both[1].pid}', '--quiet')
        for steady in both:
            steady.wait_for_hooks(process)
        time.sleep(0.2)
        process.kill()
        _, err = process.communicate(timeout=mwlive.PATIENCE)
        self.check_message(err, f'detached from processes {both[0].pid}, {both[1].pid}')
        for steady in both:
            steady.check()
            steady.finish()

    @mwlive.not_under('it has the signals of a crash for itself', 'asan')
    def test_crash(self):
        """It detaches from the process, then says so; a recording keeps what it has, and there is no other output."""
        # All side by side, as it is a second until a recording has something.
        watched = []
        for number in CRASHES:
            steady, recording = Steady(self), self.path(f'{number.name}.mw')
            report = self.path(f'{number.name}.json')
            watched.append((number, steady, recording, report, self.start(steady.pid, '--quiet', '-o', recording, '--json',
                                                                          report)))
        for number, steady, recording, report, process in watched:
            with self.subTest(number.name):
                steady.wait_for_hooks(process)
                mwlive.wait_until(lambda path=recording: self.blocks_in(path), 'the recording has blocks')
                process.send_signal(number)
                out, err = process.communicate(timeout=mwlive.PATIENCE)
                self.assertEqual((process.returncode, out), (1, ''), err)
                self.check_message(err, f'has crashed ({number.name})', f'detached from process {steady.pid}', recording)
                self.assertFalse(os.path.exists(report))
                steady.check()
                self.read_recording(recording)
                steady.finish()
        self.assertEqual(len(os.listdir(self.directory)), len(CRASHES), os.listdir(self.directory))

    def blocks_in(self, recording):
        run = subprocess.run([mwlive.config.memwatch, 'report', recording, '--json', '-'], capture_output=True,
                             text=True, check=True, timeout=mwlive.PATIENCE, stdin=subprocess.DEVNULL)
        report = json.loads(run.stdout)
        self.assertIn('cut', report)
        return report['totals']['heap']['size']['count']

    def read_recording(self, recording):
        self.assertGreater(self.blocks_in(recording), 0)


class Memory(Failures):
    """memwatch is out of memory."""

    def fail_at(self, steady, wish, *options):
        return self.run_it(steady.pid, '-d', 0.1, '--json', self.path('report.json'), '--quiet', *options,
                           env=with_failmalloc(MEMWATCH_TEST_MALLOC=wish))

    def judge(self, steady, run, wish):
        """A right report, or one clear message; the target as it was."""
        if run.returncode == 0:
            report, = mwlive.load_reports(self.path('report.json'))
            mwlive.check_report(self, report, complete=None)
            if run.stderr:
                self.check_message(run.stderr, 'reading symbols has failed')
        else:
            self.assertEqual((run.returncode, run.stdout), (1, ''), f'{wish}: {run.stderr}')
            self.check_message(run.stderr)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path('report.json'))
            self.assertEqual(run.returncode, 0, 'a report without its end')
        self.assertEqual([n for n in os.listdir(self.directory) if n != 'count'], [], 'something else is left')
        try:
            steady.check()
        except AssertionError as failure:
            raise AssertionError(f'call {wish}: {run.stderr}: {failure}') from failure

    def count(self, steady):
        """How many calls a whole run makes."""
        self.run_it(steady.pid, '-d', 0.1, '--json', '-', '--quiet',
                    env=with_failmalloc(MEMWATCH_TEST_COUNT=self.path('count')))
        with open(self.path('count'), encoding='utf-8') as f:
            return int(f.read())

    def sweep(self, suffix):
        """Each call, or a sample of them."""
        steady = Steady(self)
        count = self.count(steady)
        self.assertGreater(count, 100)
        tried = 0
        results, failures = {0: 0, 1: 0}, []
        for number in (range(1, count + 200, EVERY) if EVERY else self.sample(count)):
            if tried % RENEWED == RENEWED - 1:
                steady.finish()
                steady = Steady(self)
            run = self.fail_at(steady, f'{number}{suffix}')
            try:
                self.judge(steady, run, f'{number}{suffix}')
            except AssertionError as failure:
                failures.append(f'{number}{suffix}: {run.returncode}: {run.stderr}{failure}')
                if steady.target.process.poll() is not None or len(failures) > 20:
                    break
                steady = Steady(self)
            results[run.returncode] = results.get(run.returncode, 0) + 1
            tried += 1
            if EVERY and suffix == '+' and number > count and run.returncode == 0:
                break
        print(f'{tried} of {count} calls failed{" for good" if suffix else ""}: {results}', flush=True)
        self.assertFalse(failures, '\n'.join(failures))
        self.assertGreaterEqual(tried, CALLS)
        self.assertGreater(results[1], 0)
        steady.finish()

    def sample(self, count):
        """A few that lie evenly over the whole, or many at random."""
        if mwlive.SOAK:
            chance = mwlive.chance(self.id())
            return [chance.randrange(1, count + 1) for _ in range(CALLS)]
        return [1 + count * i // CALLS for i in range(CALLS)]

    def test_one_call_fails(self):
        self.sweep('')

    def test_all_calls_fail_from_one_on(self):
        self.sweep('+')

    @mwlive.not_under('it takes more address space for itself than the limits allow')
    def test_address_space(self):
        """RLIMIT_AS: the less there is, the sooner it fails; from some size on, it does not."""
        steady = Steady(self)

        def run_with(limit):
            run = self.run_it(steady.pid, '-d', 0.2, '--json', self.path('report.json'), '--quiet',
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
            if run.returncode == 127 or 'error while loading' in run.stderr:
                return 127  # not even the loader has room
            self.judge(steady, run, f'{limit >> 10} KiB')
            return run.returncode

        limits = [mib << 20 for mib in (10, 16, 24, 32, 48, 64, 80, 100, 120, 150, 200, 300, 500)]
        codes = {limit: run_with(limit) for limit in limits}
        self.assertEqual(codes[limits[-1]], 0)
        # Where the loader takes more than memwatch it may be but a narrow space in which memwatch alone has too little.
        low = max(limit for limit in limits if codes[limit])
        high = min(limit for limit in limits if limit > low)
        while 1 not in codes.values() and high - low > 128 << 10:
            middle = (low + high) // 2
            codes[middle] = run_with(middle)
            low, high = (low, middle) if codes[middle] == 0 else (middle, high)
        self.assertTrue(1 in codes.values() or codes[low] == 127, codes)
        steady.finish()


class Outputs(Failures):
    """Nothing can be written."""

    def test_full_disk(self):
        steady = Steady(self)
        for options in ('-o', '/dev/full'), ('--json', '/dev/full'):
            run = self.run_it(steady.pid, '-d', 0.3, '--quiet', *options)
            self.assertEqual(run.returncode, 1)
            self.check_message(run.stderr, '/dev/full')
            steady.check()
        with open('/dev/full', 'wb') as full:
            run = self.run_it(steady.pid, '-d', 0.3, stdout=full)
        self.assertEqual(run.returncode, 1)
        self.check_message(run.stderr, 'standard output', 'No space left')
        steady.check()
        steady.finish()

    def test_full_file_system(self):
        """The disk is full in the midst of a recording: what was written stays good."""
        place = self.path('small')
        os.mkdir(place)
        if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=16k', 'none', place], check=False,
                          capture_output=True).returncode != 0:
            self.skipTest('no file system can be mounted')
        self.addCleanup(subprocess.run, ['umount', '-l', place], check=False)
        steady = Steady(self, 4, 50)
        recording = os.path.join(place, 'r.mw')
        run = self.run_it(steady.pid, '-d', 3, '--json', self.path('r.json'), '--quiet', '-o', recording)
        self.assertEqual(run.returncode, 1)
        self.check_message(run.stderr, recording, 'No space left')
        steady.check()
        steady.finish()

    def test_closed_pipe(self):
        steady = Steady(self)
        reader, writer = os.pipe()
        os.close(reader)
        run = self.run_it(steady.pid, '-d', 0.3, stdout=writer)
        os.close(writer)
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stderr, '')
        steady.check()
        with subprocess.Popen(['head', '-1'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as head:
            run = self.run_it(steady.pid, '-d', 0.3, stdout=head.stdin)
            line, _ = head.communicate(timeout=mwlive.PATIENCE)
        self.assertIn(f'(pid {steady.pid})', line)
        self.assertIn(run.returncode, (0, 1))
        steady.check()
        steady.finish()

    def test_closed_descriptors(self):
        steady = Steady(self)
        for closed in (0,), (1,), (2,), (0, 1, 2):
            with self.subTest(closed):
                redirections = ' '.join({0: '<&-', 1: '>&-', 2: '2>&-'}[fd] for fd in closed)
                run = subprocess.run(['sh', '-c', f'exec "$@" {redirections}', 'sh',
                                      *command(steady.pid, '-d', 0.3)], capture_output=True, text=True, check=False,
                                     timeout=mwlive.PATIENCE)
                self.assertEqual(run.returncode, 1 if 1 in closed else 0, run.stderr)
                if closed == (1,):
                    self.check_message(run.stderr, 'standard output', 'closed')
                steady.check()
        steady.finish()


class Signals(Failures):
    """Somebody wants memwatch to end, or to wait."""

    def watch(self, steady, *options, **popen):
        process = self.start(steady.pid, '--json', '-', '--quiet', *options, **popen)
        steady.wait_for_hooks(process)
        time.sleep(0.4)
        return process

    def test_those_that_end_the_window(self):
        steady = Steady(self)
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            with self.subTest(number.name):
                process = self.watch(steady)
                process.send_signal(number)
                out, err = process.communicate(timeout=mwlive.PATIENCE)
                self.assertEqual((process.returncode, err), (0, ''))
                self.assertEqual(json.loads(out)['window']['ended'], 'interrupt')
                steady.check()
        steady.finish()

    def test_quit(self):
        """At once: no report, and a recording that is whole."""
        steady = Steady(self)
        recording = self.path('quit.mw')
        process = self.watch(steady, '-o', recording)
        process.send_signal(signal.SIGQUIT)
        out, err = process.communicate(timeout=mwlive.PATIENCE)
        self.assertEqual((process.returncode, out), (1, ''))
        self.check_message(err, 'interrupted before the report was written')
        steady.check()
        subprocess.run([mwlive.config.memwatch, 'report', recording], check=True, stdout=subprocess.DEVNULL,
                       timeout=mwlive.PATIENCE)
        steady.finish()

    def test_interrupt_twice(self):
        """Wherever the second one comes, it detaches properly, and nothing of a report is half there."""
        steady = Steady(self)
        ends = {}
        for wait in 0.31, 0.32, 0.34, 0.4, 0.5:
            process = self.watch(steady)
            process.send_signal(signal.SIGINT)
            time.sleep(wait)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=mwlive.PATIENCE)
            if process.returncode == 0:
                json.loads(out)
            else:
                # Standard output keeps what was written to it until then: all, where that was a moment ago.
                self.assertEqual(process.returncode, 1)
                self.check_message(err.lstrip('\n'), 'interrupted')
            ends[process.returncode] = ends.get(process.returncode, 0) + 1
            steady.check()
        print(ends, flush=True)
        steady.finish()

    def test_terminal(self):
        """^Z does not pause the process; ^C ends the window."""
        steady = Steady(self)
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(mwlive.config.memwatch, command(steady.pid, '--json', self.path('pty.json')))
        text = b''

        def read():
            nonlocal text
            with contextlib.suppress(OSError):
                while more := os.read(terminal, 4096):
                    text += more
        reader = threading.Thread(target=read)
        reader.start()
        mwlive.wait_until(steady.hooked, 'memwatch plants its hooks')
        time.sleep(0.3)
        os.write(terminal, b'\x1a')
        mwlive.wait_until(lambda: b'not suspended: the process would be paused' in text, 'it says so')
        self.assertNotIn(mwlive.state(pid), 'T')
        steady.wait_for_work(20)
        os.write(terminal, b'\x03')
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
        reader.join(mwlive.PATIENCE)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0, text)
        with open(self.path('pty.json'), encoding='utf-8') as f:
            self.assertEqual(json.load(f)['window']['ended'], 'interrupt')
        steady.check()
        steady.finish()


class Limits(Failures):
    def test_max_memory(self):
        steady = Steady(self)
        path = self.path('limit.mw')
        run = self.run_it(steady.pid, '-d', 60, '--max-memory', '1M', '-o', path, '--json', self.path('live.json'))
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        self.assertRegex(re.sub(r'\s+', ' ', run.stdout), r'memwatch itself reached 1\.0 MiB of memory')
        with open(self.path('live.json'), encoding='utf-8') as f:
            report = json.load(f)
        mwlive.check_report(self, report)
        self.assertEqual(report['window']['ended'], 'limit')
        self.assertEqual(report['window']['limit'], {'of': 'memory', 'bytes': 1 << 20})
        self.assertLess(report['window']['seconds'], 30)
        steady.check()
        again = subprocess.run([mwlive.config.memwatch, 'report', path, '--json', '-'], capture_output=True, text=True,
                               check=True, timeout=mwlive.PATIENCE)
        self.assertEqual(json.loads(again.stdout)['window'], report['window'])
        run = self.run_it(steady.pid, '-d', 0.5, '--max-memory', '4G', '--json', '-', '--quiet')
        report = json.loads(run.stdout)
        self.assertEqual((report['window']['ended'], report['window']['limit']), ('duration', None))
        steady.finish()

    def test_wrong_limits(self):
        for option, value in (('--max-memory', 'x'), ('--max-memory', '0'), ('--max-stopped', '0'),
                              ('--max-stopped', '100')):
            run = subprocess.run([mwlive.config.memwatch, '-p', '1', option, value], capture_output=True, text=True,
                                 check=False, timeout=mwlive.PATIENCE)
            self.assertEqual((run.returncode, run.stdout), (2, ''))
            self.check_message(run.stderr, option, value)

    def test_max_stopped(self):
        """A process that does nothing but allocate is stopped most of the time, under engine trap."""
        steady = Steady(self, 1, 0)
        began = time.monotonic()
        run = self.run_it(steady.pid, '-d', 8, '--max-stopped', 2, '--json', '-', '--quiet')
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        report = json.loads(run.stdout)
        mwlive.check_report(self, report)
        engine, window = report['engine'], report['window']
        if engine['name'] == 'trap':
            self.assertEqual(window['ended'], 'limit')
            self.assertEqual(window['limit']['of'], 'stopped')
            self.assertTrue(0.02 < window['limit']['share'] <= 1, window)
            self.assertGreaterEqual(window['seconds'], 4.9)
            self.assertGreater(engine['stopped_share'], 0.02)
        else:
            self.assertEqual((window['ended'], window['limit']), ('duration', None))
        self.assertGreater(time.monotonic() - began, 4.9)
        steady.check()
        steady.finish()

    def test_own_cpu(self):
        """memwatch's own CPU time: more than none, and no more than its whole life had; a recording says the same."""
        steady = Steady(self, 4)
        path = self.path('own.mw')
        before = os.times()
        run = self.run_it(steady.pid, '-d', 1, '--json', '-', '--quiet', '-o', path)
        after = os.times()
        whole = after.children_user + after.children_system - before.children_user - before.children_system
        own = json.loads(run.stdout)['engine']['own_cpu_ns']
        self.assertGreater(own, 0)
        # The kernel counts others' time by ticks.
        self.assertLess(own / 1e9, whole + 0.05)
        again = subprocess.run([mwlive.config.memwatch, 'report', path, '--json', '-'], capture_output=True, text=True,
                               check=True, timeout=mwlive.PATIENCE)
        self.assertEqual(json.loads(again.stdout)['engine']['own_cpu_ns'], own)
        steady.check()
        steady.finish()

    def test_stopped_share(self):
        """What it is of, and the parts of it."""
        steady = Steady(self, 4)
        run = self.run_it(steady.pid, '-d', 1, '--json', '-', '--quiet')
        report = json.loads(run.stdout)
        engine, window = report['engine'], report['window']
        whole = window['seconds'] * 1e9 + engine['attach_ns'] + engine['detach_ns']
        self.assertAlmostEqual(engine['stopped_share'], engine['stood_ns'] / whole, places=9)
        self.assertGreaterEqual(engine['stood_ns'], engine['attach_ns'] + engine['detach_ns'])
        self.assertLessEqual(engine['stood_ns'], whole)
        if engine['name'] == 'jump':
            self.assertEqual(engine['stood_ns'], engine['stopped_ns'])
        steady.check()
        steady.finish()


if __name__ == '__main__':
    mwlive.main()
