#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recordings of live programs: the same report again, any interval of it, and what is left where recording went wrong."""
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import unittest

import mwlive
import mwrec

PROGRAM = '''
import os
keep = []
print('ready', os.getpid(), flush=True)
os.read(0, 1)
for i in range(2000):
    keep.append({'number': i, 'text': str(i) * 5, 'bytes': bytes(i)})
    if i % 3 == 0:
        keep.pop(0)
print('done', flush=True)
os.read(0, 1)
'''


class Redis:
    """redis-server, and those who ask it."""

    def __init__(self, test):
        if not (shutil.which('redis-server') and shutil.which('redis-benchmark')):
            raise unittest.SkipTest('redis is not installed')
        self.port = mwlive.free_port()
        self.process = subprocess.Popen(
            ['redis-server', '--port', str(self.port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no',
             '--daemonize', 'no', '--dir', mwrec.directory(test)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        test.addCleanup(mwlive.kill_quietly, self.process)
        self.pid = self.process.pid
        mwlive.wait_until(self.answers, 'redis answers')

    def answers(self):
        return subprocess.run(['redis-cli', '-p', str(self.port), 'PING'], capture_output=True, text=True, check=False,
                              timeout=mwlive.PATIENCE).stdout.strip() == 'PONG'

    def load(self, count):
        return ['redis-benchmark', '-p', str(self.port), '-q', '-n', str(count), '-c', '10', '-r', '1000000', '-t',
                'set,lpush,lpop,hset']


def add_up(reports, kind, amounts, unit):
    return sum(report['totals'][kind][amount][unit] for report in reports for amount in amounts)


class Same(unittest.TestCase):
    """The recording gives the live run's report, key by key; its intervals together give the whole."""

    def check_intervals(self, path, whole, complete=True):
        seconds = whole['window']['seconds']
        borders = [0, *sorted(seconds * part for part in (0.113, 0.37, 0.6180339, 0.93)), None]
        parts = [mwrec.interval(self, path, begin, end, complete) for begin, end in zip(borders, borders[1:])]
        for unit in ('count', 'bytes'):
            for kind in ('heap', 'vm'):
                self.assertEqual(add_up(parts, kind, ['size'], unit), whole['totals'][kind]['size'][unit], (kind, unit))
            freed = ('transient', 'aofi')
            self.assertEqual(add_up(parts, 'heap', freed, unit), add_up([whole], 'heap', freed, unit), unit)
        # What is there at a moment is what had not been freed by then.
        there, = mwrec.reports(self, path, '--at', f'{borders[3]:.9f}', complete=complete)
        upto = mwrec.interval(self, path, 0, borders[3], complete)
        for kind in ('heap', 'vm'):
            self.assertEqual(there['totals'][kind]['impacting'], upto['totals'][kind]['impacting'])

    def record(self, name, *arguments, options=(), compare=True):
        target = mwlive.Target(self, name, *arguments)
        kept = mwrec.Kept(self, target.pid, options=options)
        target.go()
        answer = target.done()
        report, = kept.stop()
        target.finish()
        if compare:
            mwlive.compare(self, answer, report)
            mwlive.compare(self, answer, mwrec.interval(self, kept.path))
        return report, kept.path

    def test_own_targets(self):
        for name, arguments in (('exact', ()), ('vm', ()), ('threads', (4, 2000, 50)), ('fork_storm', (10,)),
                                ('thread_storm', (200,))):
            with self.subTest(name):
                report, path = self.record(name, *arguments)
                self.check_intervals(path, report)

    def test_options(self):
        for options in (('--track', 'heap'), ('--depth', 2), ('--no-symbols',)):
            with self.subTest(options):
                self.record('simple', 200, options=options)

    def test_peak(self):
        report, path = self.record('simple', 200, options=('--track', 'heap'))
        highest, = mwrec.reports(self, path, '--at', 'peak')
        peak = report['totals']['heap']['peak']
        self.assertEqual(highest['totals']['heap']['impacting'], {'count': peak['count'], 'bytes': peak['bytes']})
        self.assertAlmostEqual(highest['window']['to'], peak['at'], places=6)

    def test_python(self):
        python = '/usr/bin/python3' if os.path.exists('/usr/bin/python3') else os.path.realpath(sys.executable)
        target = mwlive.Target(self, 'python', argv=[python, '-S', '-c', PROGRAM])
        kept = mwrec.Kept(self, target.pid)
        target.go()
        target.done()
        report, = kept.stop()
        target.finish()
        self.assertGreater(report['totals']['heap']['size']['count'], 500)
        self.check_intervals(kept.path, report)

    def test_redis(self):
        redis = Redis(self)
        kept = mwrec.Kept(self, redis.pid, busy=True)
        subprocess.run(redis.load(2000), check=True, capture_output=True, timeout=mwlive.PATIENCE)
        report, = kept.stop()
        self.assertTrue(redis.answers())
        self.assertGreater(report['totals']['heap']['size']['count'], 2000)
        self.check_intervals(kept.path, report)

    def test_two_processes(self):
        targets = [mwlive.Target(self, 'simple', 300), mwlive.Target(self, 'threads', 2, 300, 20)]
        kept = mwrec.Kept(self, *(t.pid for t in targets))
        for target in targets:
            target.go()
        answers = [t.done() for t in targets]
        kept.stop()
        found = {r['target']['pid']: r for r in mwrec.reports(self, kept.path)}
        for target, answer in zip(targets, answers):
            mwlive.compare(self, answer, found[target.pid])
            target.finish()

    def test_launched(self):
        directory = mwrec.directory(self)
        path, live = os.path.join(directory, 'r.mw'), os.path.join(directory, 'live.json')
        run = subprocess.run([mwlive.config.memwatch, '--engine', mwlive.config.engine, '--quiet', '-o', path, '--json',
                              live, '--', mwlive.target_path('exits'), 'status'], stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=mwlive.PATIENCE, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        one, = mwlive.load_reports(live)
        other = mwrec.interval(self, path)
        mwrec.compare(self, one, other)
        self.assertEqual((other['target']['exit_status'], other['window']['ended']), (3, 'exit'))


QUESTIONS = (
    ('--by', 'module,stack'),
    ('--tree', 'up', '--filter', 'kind:heap'),
    ('--tree', 'down', '--type', 'all'),
    ('--blocks', 20),
    ('--blocks', 10, '--sort', 'lifetime', '--filter', 'not thread:nobody', '--by', 'heap,type,thread'),
    ('--by', 'size,api', '--type', 'all', '--sort', 'lifetime', '--filter', 'size:>=16'),
    ('--by', 'heap', '--filter', 'heap:main or heap:arena or heap:mmapped'),
)


class Questions(unittest.TestCase):
    """What is asked of a window while it is watched is answered as it is of its recording, byte for byte."""

    def same(self, pids, question, work):
        path, live = (os.path.join(mwrec.directory(self), name) for name in ('r.mw', 'live.json'))
        process = subprocess.Popen([mwlive.config.memwatch, '-p', ','.join(map(str, pids)), '--engine',
                                    mwlive.config.engine, *mwlive.patient(options=question), '--quiet', '-o', path,
                                    '--json', live, *map(str, question)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(mwlive.kill_quietly, process)
        mwlive.wait_until(lambda: os.path.exists(path) or process.poll() is not None, 'the window has begun')
        self.assertIsNone(process.poll(), process.poll() is not None and process.stderr.read())
        work()
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=mwlive.PATIENCE)
        self.assertEqual((process.returncode, told), (0, ''))
        with open(live, encoding='utf-8') as file:
            found = file.read()
        again = mwrec.run_report(path, *question)
        self.assertEqual((again.returncode, again.stderr), (0, ''))
        if found != again.stdout:
            mwrec.compare(self, json.loads(found), json.loads(again.stdout))
            self.fail('the same, but not byte for byte')
        return json.loads(found)

    def test_own_target(self):
        for question in QUESTIONS:
            with self.subTest(question):
                target = mwlive.Target(self, 'threads', 4, 500, 50)
                target_works = lambda target=target: (target.go(), target.done())
                report = self.same([target.pid], question, target_works)
                target.finish()
                wanted = {'--by': 'groups', '--tree': 'tree', '--blocks': 'blocks'}
                for option, view in wanted.items():
                    self.assertEqual(view in report, option in question, question)

    def test_two_processes(self):
        targets = [mwlive.Target(self, 'simple', 300), mwlive.Target(self, 'vm')]

        def work():
            for target in targets:
                target.go()
                target.done()

        document = self.same([t.pid for t in targets], ('--by', 'process,kind,stack', '--blocks', 5), work)
        self.assertEqual(len(document['processes']), 2)
        for target in targets:
            target.finish()

    def test_redis(self):
        redis = Redis(self)
        self.same([redis.pid], ('--by', 'function,heap', '--tree', 'up', '--blocks', 20, '--type', 'all'),
                  lambda: subprocess.run(redis.load(500), check=True, capture_output=True, timeout=mwlive.PATIENCE))
        self.assertTrue(redis.answers())


class Symbols(unittest.TestCase):
    def test_of_a_program_that_is_gone(self):
        for kept_names in (True, False):
            with self.subTest(kept_names):
                directory = mwrec.directory(self)
                program = os.path.join(directory, 'program')
                shutil.copy(mwlive.target_path('simple'), program)
                target = mwlive.Target(self, 'simple', argv=[program, '50'])
                kept = mwrec.Kept(self, target.pid, options=() if kept_names else ('--no-symbols',))
                target.go()
                answer = target.done()
                kept.stop()
                target.finish()
                away = os.path.join(directory, 'elsewhere')
                os.mkdir(away)
                os.rename(program, os.path.join(away, 'program'))
                report = mwrec.interval(self, kept.path)
                if kept_names:
                    mwlive.compare(self, answer, report)
                else:
                    self.assertEqual(mwlive.select(report, 'simple_leak'), [])
                    frames = [f for s in report['stacks'] for f in s['frames'] if f['module'] == program]
                    self.assertTrue(frames)
                    self.assertEqual([f for f in frames if f['function']], [])
                found, = mwrec.reports(self, kept.path, '--symbols', away)
                mwlive.compare(self, answer, found)
                self.assertEqual([s['id'] for s in found['stacks']], [s['id'] for s in report['stacks']])


class Trouble(unittest.TestCase):
    def start(self, target, path, *options):
        """memwatch on a target whose window has begun, and what its code was before."""
        snapshot = mwlive.Snapshot(target.pid)
        process = subprocess.Popen([mwlive.config.memwatch, '-p', str(target.pid), '--engine', mwlive.config.engine,
                                    *mwlive.patient(), '--quiet', '-o', path, *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(mwlive.kill_quietly, process)
        mwlive.wait_until(lambda: process.poll() is not None or snapshot.touched(), 'memwatch plants its hooks')
        return process, snapshot

    def check_cut(self, path, ended='lost'):
        """It is read as far as it is good, and that is said. The report, or None where not even a window began."""
        run = mwrec.run_report(path)
        self.assertIn(run.returncode, (0, 1), run.stderr)
        self.assertTrue(run.stderr, 'no word')
        if run.returncode == 1:
            self.assertEqual(run.stdout, '')
            return None
        self.assertIn('not complete', run.stderr)
        report = json.loads(run.stdout)
        mwrec.check(self, report, None)
        # Where only the very end is missing it is still known how the window ended.
        self.assertIn(report['window']['ended'], ('lost', ended))
        return report

    @staticmethod
    def size(path):
        try:
            return os.path.getsize(path)
        except FileNotFoundError:
            return 0

    def test_killed(self):
        if mwlive.config.engine != 'jump':
            self.skipTest('breakpoints without their debugger kill')
        redis = Redis(self)
        path = os.path.join(mwrec.directory(self), 'r.mw')
        process, _ = self.start(redis, path)
        load = subprocess.Popen(redis.load(20000), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(mwlive.kill_quietly, load)
        begun = self.size(path)
        mwlive.wait_until(lambda: process.poll() is not None or self.size(path) > begun + 40000, 'much is recorded')
        process.kill()
        process.wait()
        load.communicate(timeout=mwlive.PATIENCE)
        self.assertEqual(load.returncode, 0)
        self.assertTrue(redis.answers())
        report = self.check_cut(path)
        self.assertGreater(report['totals']['heap']['size']['count'], 1000)
        self.assertEqual(report['target']['pid'], redis.pid)
        # The next window finds the process in order, and nothing of this one's in its recording.
        kept = mwrec.Kept(self, redis.pid, busy=True)
        subprocess.run(redis.load(200), check=True, capture_output=True, timeout=mwlive.PATIENCE)
        kept.watch.process.send_signal(signal.SIGINT)
        kept.watch.wait()
        kept.check_same()
        self.assertTrue(redis.answers())

    def test_read_while_it_is_written(self):
        targets = [mwlive.Target(self, 'growers', 400, 'leak') for _ in range(2)]
        path = os.path.join(mwrec.directory(self), 'r.mw')
        other = mwlive.Snapshot(targets[1].pid)
        process, _ = self.start(targets[0], path, '-p', str(targets[1].pid))
        mwlive.wait_until(lambda: process.poll() is not None or other.touched(), 'the other is attached to')
        begun = self.size(path)
        mwlive.wait_until(lambda: process.poll() is not None or self.size(path) > begun, 'something is recorded')
        run = mwrec.run_report(path)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn('not complete: it is still being written', run.stderr)
        reports = json.loads(run.stdout)
        self.assertEqual([report['target']['pid'] for report in reports['processes']], [target.pid for target in targets])
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=mwlive.PATIENCE)
        self.assertEqual(mwrec.run_report(path).stderr, '')

    def test_cut_anywhere(self):
        target = mwlive.Target(self, 'threads', 4, 2000, 50)
        kept = mwrec.Kept(self, target.pid)
        target.go()
        target.done()
        kept.stop()
        target.finish()
        whole = mwrec.interval(self, kept.path)
        with open(kept.path, 'rb') as f:
            data = f.read()
        chance = random.Random(1)
        before = 0
        for size in sorted([0, 1, 16, len(data) - 1, *(chance.randrange(len(data)) for _ in range(mwlive.attempts(8, 25)))]):
            with open(kept.path, 'wb') as f:
                f.write(data[:size])
            report = self.check_cut(kept.path, 'interrupt')
            if report:
                count = report['totals']['heap']['size']['count']
                self.assertTrue(before <= count <= whole['totals']['heap']['size']['count'], (size, before, count))
                before = count
        self.assertGreater(before, 0)
        # A bit that has turned ends it there.
        for _ in range(mwlive.attempts(8, 25)):
            at = chance.randrange(16, len(data))
            with open(kept.path, 'wb') as f:
                f.write(data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1:])
            self.check_cut(kept.path, 'interrupt')

    def test_full_disk(self):
        place = mwrec.directory(self)
        mount = subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=80k', 'tmpfs', place], capture_output=True,
                               check=False)
        if mount.returncode != 0:
            self.skipTest('no file system can be mounted')
        self.addCleanup(subprocess.run, ['umount', '-l', place], check=False)
        # More than there is room for: engine jump's stacks, and so the recording, take a third of engine trap's.
        target = mwlive.Target(self, 'thread_storm', 2000 if mwlive.config.engine == 'trap' else 4000)
        path = os.path.join(place, 'r.mw')
        live = os.path.join(mwrec.directory(self), 'live.json')
        process, snapshot = self.start(target, path, '--json', live)
        target.go()
        answer = target.done()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=mwlive.PATIENCE)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn('No space left', err)
        self.assertIn(path, err)
        snapshot.check(self)
        target.finish()
        self.assertEqual(os.listdir(place), ['r.mw'])
        report = self.check_cut(path)
        self.assertGreater(report['totals']['heap']['size']['count'], 0)
        if os.path.exists(live):
            one, = mwlive.load_reports(live)
            mwlive.compare(self, answer, one)

    def test_attach_fails(self):
        directory = mwrec.directory(self)
        path = os.path.join(directory, 'r.mw')
        with open(path, 'w', encoding='utf-8') as f:
            f.write('what was there')
        gone = subprocess.Popen(['true'])
        gone.wait()
        for command in (['-p', str(gone.pid)], ['-p', '1,2'], ['--', os.path.join(directory, 'nothing')]):
            run = subprocess.run([mwlive.config.memwatch, '--engine', mwlive.config.engine, '-d', '1', '-o', path,
                                  '--force', *command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                 timeout=mwlive.PATIENCE, check=False)
            if run.returncode == 0:  # the first process of this container can be watched
                continue
            self.assertEqual(run.returncode, 1, run.stderr)
            with open(path, encoding='utf-8') as f:
                self.assertEqual(f.read(), 'what was there')
            self.assertEqual(os.listdir(directory), ['r.mw'])

    def test_mode_and_names(self):
        target = mwlive.Target(self, 'simple', 50)
        directory = mwrec.directory(self)
        path = os.path.join(directory, 'r.mw')
        with open(path, 'wb') as f:
            f.write(b'\x89MWREC\r\n')
        os.chmod(path, 0o666)
        process, snapshot = self.start(target, path)
        target.go()
        target.done()
        # Found under its name while the window goes on.
        mwlive.wait_until(lambda: self.size(path) > 8, 'the recording has its name')
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=mwlive.PATIENCE)
        self.assertEqual((process.returncode, err), (0, ''))
        snapshot.check(self)
        target.finish()
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertEqual(os.listdir(directory), ['r.mw'])
        for where, word in ((os.path.join(directory, 'no', 'r.mw'), 'No such file'), (directory, 'directory'),
                            ('/dev/full', '/dev/full')):
            run = subprocess.run([mwlive.config.memwatch, '-p', str(os.getpid()), '-d', '1', '-o', where],
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=mwlive.PATIENCE,
                                 check=False)
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertIn(word, run.stderr)


if __name__ == '__main__':
    mwlive.main()
