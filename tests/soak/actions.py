# SPDX-License-Identifier: MIT
"""What the soak does to targets and to memwatch: one function an action, drawn with weights."""
import datetime
import os
import signal
import subprocess
import time
import unittest

import mwlive
from member import METERED, Fault
from run import LOOK, Run

test = unittest.TestCase()  # for mwlive's checks of reports

# Where memwatch has a thread of the target perform a system call; and how many of them there are while it attaches.
CALL_POINTS = ('call.begin', 'call.result')
MOST_CALLS = 14

ENDS = {'INT': signal.SIGINT, 'TERM': signal.SIGTERM, 'HUP': signal.SIGHUP}


class Pace:
    """How long attaching and detaching take at present, by engine and kind: kills are aimed by it."""

    def __init__(self):
        self.times = {}

    def tell(self, run):
        # Where a memwatch was killed before, hooks have been seen too early.
        if not any(m.dirty for m in run.members):
            self.took('attach', run, run.begun_after)
            self.took('detach', run, run.unhooked_after)

    def took(self, what, run, value):
        key = what, run.engine, run.members[0].kind
        if value is not None:
            self.times[key] = value if key not in self.times else 0.8 * self.times[key] + 0.2 * value

    def get(self, what, run):
        return self.times.get((what, run.engine, run.members[0].kind), 0.05)


def started(report):
    """When its window began, in seconds as time.time() has them."""
    return datetime.datetime.fromisoformat(report['window']['started'].replace('Z', '+00:00')).timestamp()


def run_meters(members):
    """By member, when it was asked for it and what it has allocated then."""
    return {m: (time.time(), m.meter()) for m in members if m.kind in METERED}


class Actor:
    """Of one worker: its members, and what befalls them."""

    def __init__(self, config, members, tally):
        self.config = config
        self.members = members
        self.tally = tally
        self.pace = Pace()
        self.draw = None
        self.last = self.action = ''

    # --- drawing ---

    def options(self):
        draw, options = self.draw, []
        tracked = draw.choices(('heap,vm', 'heap', 'vm'), (6, 3, 1))[0]
        if draw.random() < 0.4:
            options += ['--depth', draw.choice((2, 3, 16, 64))]
        if draw.random() < 0.2:
            options += ['--top', draw.randrange(1, 30)]
        if self.config.limits and draw.random() < 0.1:
            options += ['--max-memory', '2G']
        return tracked, options

    def recorded(self, run_options, chance):
        """Sometimes with a recording beside the report."""
        if self.draw.random() < chance:
            path = os.path.join(self.config.directory, f'recording-{id(self)}.mw')
            if os.path.exists(path):
                os.unlink(path)
            run_options += ['-o', path]
            if self.draw.random() < 0.3:
                run_options += ['--mark-every', 0.05]
            return path
        return None

    def killing(self, members):
        """Engines during which memwatch may be killed on these."""
        return [e for e in self.config.kill_engines if not any(f'{m.kind}:{e}' in self.config.spare for m in members)]

    def begin(self, members, options, engine=None, report=True, tracked='heap,vm', fault=None):
        engine = engine or self.draw.choice(self.config.engines)
        run = Run(self.config, members, engine, options, report, tracked, fault)
        # Hooks of a killed memwatch may be there still; who waits for those of this one waits longer.
        run.was_dirty = any(m.dirty for m in members)
        run.patient = self.pace.get('attach', run) if run.was_dirty else 0
        self.last = ' '.join(run.command)
        for member in members:
            self.tally.count(engine, member.kind, 'attaches')
        return run

    # --- what must hold afterwards ---

    def check_ended(self, run, expected=(0,), timed=False):
        """memwatch has ended as it should, and nothing is left of it in the targets. Its status."""
        status = run.process.returncode
        if run.was_dirty and not timed:
            # The hooks that were waited for may have been the old ones, and the signal have come before the window.
            expected = (*expected, 1, *(-number for number in ENDS.values()))
        for member in run.members:
            member.check()
            # One that has failed before it got to it has not cleaned what another left.
            if status == 0 or not member.dirty:
                self.check_clean(member, run)
            member.progress()
        if status not in expected:
            raise Fault('memwatch', f'memwatch ended with {status}: {run.output()}')
        if status == 0 and run.output():
            raise Fault('memwatch', f'memwatch says: {run.output()}')
        return status

    @staticmethod
    def check_clean(member, run):
        try:
            member.check_clean()
        except Fault as fault:
            told = f'memwatch ended with {run.process.returncode}: {run.output()}'
            raise Fault(fault.kind, f'{fault}; {told}') from None
        member.dirty = None

    def check_reports(self, run, metered):
        """The figures agree with each other, and with those of the meter."""
        for report in run.reports():
            member = next(m for m in run.members if m.pid == report['target']['pid'])
            try:
                mwlive.check_report(test, report, None)
                if report['engine']['left_behind']:
                    raise Fault('left', f'{member.kind}: {report["engine"]["left_behind"]}')
                if report['sampling']:
                    self.tally.count(run.engine, member.kind, 'sampled')
                elif not report['complete']:
                    self.tally.count(run.engine, member.kind, 'lossy')
                elif member in metered and 'heap' in run.tracked and metered[member][0] >= started(report):
                    self.tally.count(run.engine, member.kind, 'metered')
                    self.compare(report, metered[member][1])
            except AssertionError as error:
                raise Fault('figures', f'{member.kind}: {error}'.replace('\n', ' ')) from None

    @staticmethod
    def compare(report, expected):
        total = mwlive.total_of(mwlive.select(report, 'fleet_meter', kinds=('heap',)))
        got = [total[what][unit] for what in ('size', 'impacting') for unit in ('count', 'bytes')]
        test.assertEqual(got, expected, 'what the meter allocated, and what the report says of it')

    def check_recording(self, path, whole):
        """It can be read; if memwatch was killed there may be none."""
        if not path or not os.path.exists(path):
            if path and whole:
                raise Fault('figures', f'no recording {path}')
            return
        self.tally.count_all('recordings')
        out = subprocess.run([self.config.memwatch, 'report', path, '--json', '-', '--quiet'], capture_output=True,
                             stdin=subprocess.DEVNULL, timeout=mwlive.PATIENCE * 2, check=False, text=True)
        # Of a window that had not begun there is nothing to report.
        if out.returncode not in ((0,) if whole else (0, 1)):
            raise Fault('figures', f'report of {path} ended with {out.returncode}: {out.stderr[:500]}')
        os.unlink(path)

    # --- actions ---

    def window(self, members, engine=None):
        """A window as users have it: by time, or ended by a signal."""
        draw = self.draw
        tracked, options = self.options()
        path = self.recorded(options, 0.3)
        how = draw.choices(('time', *ENDS), (4, 3, 1, 1))[0]
        seconds = draw.choice((0.05, 0.1, 0.3, 0.3, 1, 2))
        if how == 'time':
            options += ['-d', seconds]
        run = self.begin(members, options, engine, tracked=tracked)
        try:
            metered = {}
            if how != 'time' and run.wait_begun():
                metered = run_meters(members)
                run.sleep_until(run.begun_after + seconds / 2)
                run.process.send_signal(ENDS[how])
            run.wait_end(how != 'time')
            self.pace.tell(run)
            whole = self.check_ended(run, timed=how == 'time') == 0
            if whole:
                self.check_reports(run, metered)
            self.check_recording(path, whole)
        finally:
            self.finish(run)
        for member in members:
            self.tally.count(run.engine, member.kind, how)

    def learn(self, member):
        """The first window of a new target tells where its functions are."""
        run = self.begin([member], ['-d', 0.1], self.config.engines[0])
        try:
            run.wait_end()
            self.check_ended(run)
            member.learn_hooks(run.reports()[0])
            self.tally.count(run.engine, member.kind, 'time')
        finally:
            self.finish(run)

    def twice(self, members):
        """An impatient user: the second signal comes while it detaches or reports."""
        run = self.begin(members, [])
        try:
            if run.wait_begun():
                time.sleep(self.draw.random() * 0.1)
                run.process.send_signal(signal.SIGINT)
                time.sleep(self.draw.random() ** 2 * 0.1)
                if not run.ended():
                    run.process.send_signal(self.draw.choice((signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)))
            run.wait_end()
            self.check_ended(run, (0, 1))
        finally:
            self.finish(run)
        for member in members:
            self.tally.count(run.engine, member.kind, 'twice')

    def early(self, members):
        """A signal at any moment, also before memwatch has looked at its command line."""
        number = self.draw.choice((*ENDS.values(), signal.SIGQUIT))
        after = self.draw.random() * 1.3
        run = self.begin(members, ['-d', 5])
        try:
            run.sleep_until(after * self.pace.get('attach', run))
            if not run.ended():
                run.process.send_signal(number)
            run.wait_end()
            self.check_ended(run, (0, 1, -number))
        finally:
            self.finish(run)
        for member in members:
            self.tally.count(run.engine, member.kind, 'early')

    def crash(self, members):
        """memwatch gets a signal as a fault of its own would send it."""
        number = self.draw.choice((signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL))
        moment = self.draw.random()
        engines = self.killing(members)
        if not engines:
            return
        run = self.begin(members, [], self.draw.choice(engines))
        try:
            if self.draw.random() < 0.5:
                run.sleep_until(moment * 1.2 * self.pace.get('attach', run))
            elif run.wait_begun():
                time.sleep(moment * 0.2)
            if not run.ended():
                run.process.send_signal(number)
            run.wait_end()
            # What has not begun to watch may just die.
            self.check_ended(run, (1, -number))
        finally:
            self.finish(run)
        for member in members:
            self.tally.count(run.engine, member.kind, 'crashed')

    def rival(self, members):
        """Two memwatches come to one target, one after the other or at the same time: one of them gives way."""
        runs = [self.begin(members[:1], ['-d', 1])]
        try:
            runs[0].sleep_until(self.draw.random() * 1.5 * self.pace.get('attach', runs[0]))
            runs.append(self.begin(members[:1], ['-d', 0.2]))
            for run in runs:
                run.wait_end()
            for run in runs:
                self.last = ' '.join(run.command)
                self.check_ended(run, (0, 1))
        finally:
            for run in runs:
                self.finish(run)
        for run in runs:
            self.tally.count(run.engine, members[0].kind, 'rival')

    def paused(self, members):
        """The target is stopped and continued inside the window, or while memwatch comes or goes."""
        draw, member = self.draw, members[0]
        run = self.begin(members, [])
        try:
            moment = draw.choice(('attach', 'window', 'detach'))
            if moment == 'attach':
                run.sleep_until(draw.random() * 1.2 * self.pace.get('attach', run))
                self.pause(member, draw.random() * 0.2)
            begun = run.wait_begun()
            if moment == 'window':
                self.pause(member, draw.random() * 0.2)
            metered = run_meters(members) if begun else {}
            run.process.send_signal(signal.SIGINT)
            if moment == 'detach':
                time.sleep(draw.random() * 1.2 * self.pace.get('detach', run))
                self.pause(member, draw.random() * 0.2)
            # It may say that a target can't be watched that stands still.
            run.wait_end()
            if self.check_ended(run, (0, 1) if moment == 'attach' else (0,)) == 0:
                self.check_reports(run, metered)
        finally:
            member.signal(signal.SIGCONT)
            self.finish(run)
        self.tally.count(run.engine, member.kind, 'paused')

    @staticmethod
    def pause(member, seconds):
        member.signal(signal.SIGSTOP)
        time.sleep(seconds)
        member.signal(signal.SIGCONT)

    def target_killed(self, members):
        """The target is killed inside the window: memwatch reports what it has seen."""
        member = members[0]
        run = self.begin(members, [])
        try:
            if run.wait_begun():
                time.sleep(self.draw.random() * 0.2)
            member.process.kill()
            status = run.wait_end()
            # From outside the window seems to begin as soon as the code is changed; memwatch knows better.
            if status != 0 and run.begun_after is not None and 'ended while memwatch attached' not in run.output():
                raise Fault('memwatch', f'memwatch ended with {status} when its target was killed: {run.output()}')
            self.tally.count(run.engine, member.kind, 'target killed')
        finally:
            self.finish(run)
            self.restart(member)

    def kill(self, members, paused=False):
        """SIGKILL to memwatch: the targets go on, cleaned or not, and can be watched again."""
        draw, engines = self.draw, self.killing(members)
        if not engines:
            self.window(members)
            return
        engine = draw.choice(engines)
        phase = draw.choices(('attach', 'window', 'detach', 'call'), (9, 4, 7, 10))[0]
        phase = self.config.when or phase
        who = draw.choices(('all', 'first', 'guard'), (6, 3, 1))[0]
        who = self.config.who or who
        part, rest, clean = draw.random(), draw.random(), draw.random() < 0.5
        tracked, options = self.options()
        path = self.recorded(options, 0.3)
        fault = f'{draw.choice(CALL_POINTS)}:{draw.randint(1, MOST_CALLS)}!' if phase == 'call' else None
        run = self.begin(members, options, engine, tracked=tracked, fault=fault)
        try:
            if phase == 'call':
                run.wait_stopped(2 * self.pace.get('attach', run) + 0.5)
            elif phase == 'attach':
                # Most of what can go wrong is at the end, where code is changed.
                run.sleep_until((1.2 - part ** 1.5) * self.pace.get('attach', run))
            elif run.wait_begun():
                self.pace.tell(run)
                time.sleep(rest * 0.1)
                if phase == 'window':
                    time.sleep(part * 0.3)
                else:
                    run.process.send_signal(signal.SIGINT)
                    time.sleep(part ** 2 * 2 * self.pace.get('detach', run))
            if paused:
                members[0].signal(signal.SIGSTOP)
                time.sleep(part * 0.05)
            guarded = self.killed(run, phase, who)
            if paused:
                time.sleep(rest * 0.1)
                members[0].signal(signal.SIGCONT)
            for member in members:
                member.run_on(rest * (0.3 if clean else 1.5))
                # Calls that can't come back, as the target is stopped, keep code there that the guard would take out.
                if guarded and not (paused and member.look()):
                    self.check_clean(member, run)
                    self.tally.count(engine, member.kind, 'cleaned')
            self.check_recording(path, False)
        finally:
            if paused:
                members[0].signal(signal.SIGCONT)
            self.finish(run)
        if clean and any(m.dirty for m in members):
            self.clean(members)

    def killed(self, run, phase, who):
        late = run.ended()
        guarded = run.kill(who)
        for member in run.members:
            if late and run.process.returncode != -signal.SIGKILL:
                self.tally.count(run.engine, member.kind, 'too late')
                continue
            self.tally.count(run.engine, member.kind, 'kills')
            self.tally.count_all(f'at {phase}')
            self.tally.count_all(f'of {who}')
            if not guarded:
                self.tally.count_all('with something left' if member.look() else 'with nothing left')
            member.dirty = run.engine
        return guarded

    def look(self, members, kill=False):
        """A look at the heap, to its end or until memwatch is killed."""
        draw, member, who = self.draw, members[0], self.draw.choice(('all', 'first', 'guard'))
        options, part, rest = ['--no-fork'] if draw.random() < 0.3 else [], draw.random(), draw.random()
        fault = f'{draw.choice(CALL_POINTS)}:{draw.randint(1, 3)}!' if kill and draw.random() < 0.3 else None
        if kill and not self.killing([member]):
            return
        run = self.begin([member], options, LOOK, fault=fault)
        try:
            if not kill:
                run.wait_end()
                self.pace.took('attach', run, time.monotonic() - run.started)
                if self.check_ended(run, timed=True) == 0:
                    self.check_look(run, member)
                return
            if fault:
                run.wait_stopped(2 * self.pace.get('attach', run) + 0.5)
            else:
                run.sleep_until(part * self.pace.get('attach', run))
            self.killed(run, 'look', who)
            member.run_on(rest * 0.3)
        finally:
            self.finish(run)
        if draw.random() < 0.5:
            self.clean([member])

    def check_look(self, run, member):
        """Every resident byte of the process is on one line of its account."""
        [report] = run.reports()
        self.tally.count(run.engine, member.kind, 'looks')
        if sum(line['bytes'] for line in report['account']) != report['rss']:
            raise Fault('figures', f'{member.kind}: the account of its heap does not add up to {report["rss"]}')

    def clean(self, members):
        """The next memwatch, of whatever engine, takes out what was left; so does doctor."""
        if self.config.doctor and self.draw.random() < 0.4:
            for member in members:
                command = [self.config.memwatch, 'doctor', '-p', str(member.pid), '--clean']
                self.last = ' '.join(command)
                out = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, text=True, check=False,
                                     timeout=mwlive.PATIENCE * 2)
                if out.returncode != 0:
                    raise Fault('memwatch', f'doctor --clean ended with {out.returncode}: {out.stdout}{out.stderr}')
                member.check_clean()
                member.progress()
                self.tally.count(member.dirty or '-', member.kind, 'cleaned')
                member.dirty = None
            return
        dirty = [(m.dirty, m) for m in members if m.dirty]
        self.window(members)
        for engine, member in dirty:
            if not member.dirty:
                self.tally.count(engine, member.kind, 'cleaned')

    # --- the worker's round ---

    def finish(self, run):
        """No memwatch stays, whatever has happened."""
        if not run.ended():
            run.kill()
            for member in run.members:
                member.dirty = run.engine
        run.forget(keep=self.config.keep)

    def restart(self, member):
        member.stop()
        member.start()
        self.learn(member)

    def act(self, draw):
        """One action. A Fault tells what went wrong with it."""
        self.draw = draw
        names, weights = zip(*self.config.weights.items())
        action = draw.choices(names, weights)[0]
        members = draw.sample(self.members, min(len(self.members), draw.choices((1, 2, 3), (88, 9, 3))[0]))
        level = draw.choices((0, 1), (2, 3))[0]
        self.last = self.action = action
        for member in members:
            member.check()
            member.full_speed(level)
        try:
            if action == 'kill paused':
                self.kill(members[:1], paused=True)
            elif action == 'kill look':
                self.look(members[:1], kill=True)
            elif action in ('look', 'paused', 'target killed'):
                getattr(self, action.replace(' ', '_'))(members[:1])
            else:
                getattr(self, action)(members)
        finally:
            for member in members:
                if member.board:
                    member.full_speed(0)
        return action
