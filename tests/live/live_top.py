#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""memwatch top in a terminal: what it shows is right, its keys work, and it lets go whatever happens."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import mwlive
import mwtop

A, B, V, T = 100 * 1000, 10 * 5000, 3 << 20, 7 * 300


@unittest.skipUnless(shutil.which('tmux'), 'tmux is not installed')
class Case(unittest.TestCase):
    def start(self, *orders, **options):
        self.menu = mwtop.Menu(self)
        self.before = mwlive.Snapshot(self.menu.pid)
        screen = mwtop.Screen(self, self.menu.pid, **options)
        screen.wait('^not freed|nothing has been')
        self.menu.order(*orders)
        return screen

    def finish(self, screen):
        screen.quit()
        self.before.check(self)
        self.menu.end()


class Table(Case):
    def test_is_what_the_report_says(self):
        screen = self.start('a', 'b', 'v', 'c')
        for text, bytes_ in (('grow_a', A), ('grow_b', B), ('map_v', V), ('churn', 0)):
            screen.wait_row(text, bytes_)
        self.assertEqual([next(n for n in ('map_v', 'grow_a', 'grow_b', 'churn') if n in row[1])
                          for row in screen.rows()], ['map_v', 'grow_a', 'grow_b', 'churn'])
        self.assertIn(f'not freed {mwtop.size(A + B + V)},', screen.text())
        self.assertIn(f'113 blocks, heap {mwtop.size(A + B)}, vm {mwtop.size(V)}', screen.text())
        self.assertNotIn('not hooked', screen.text())
        self.assertIn(f'orders ({self.menu.pid}), engine {mwlive.config.engine}, ', screen.text())
        screen.keys('Down', 'Enter')
        screen.wait(r'^   = 100,000 bytes in 100 blocks not freed, of 100 allocated, by malloc, stack [0-9a-f]{16}$')
        screen.wait(r'^   #0  orders!grow_a\+0x[0-9a-f]+ \(\S*orders\.c:\d+\)')
        screen.wait(r'^   #\d+ +orders!main\+0x')
        stack = re.search(r'by malloc, stack (\w+)$', screen.text(), re.M).group(1)
        screen.keys('w')
        screen.wait('^write to: memwatch-')
        screen.keys('C-u')
        screen.type(screen.file('seen.mw'))
        screen.keys('Enter')
        screen.wait('^written: ')
        self.assertEqual(os.stat(screen.file('seen.mw')).st_mode & 0o7777, 0o600)
        report = mwtop.report(self, screen.file('seen.mw'))
        mwlive.check_report(self, report)
        by_id = {s['id']: s['impacting'] for s in report['stacks']}
        self.assertEqual(by_id[stack], {'count': 100, 'bytes': A})
        shown = [(row[0], re.search(r'\b(\w+) \(orders\.c', row[1]).group(1)) for row in screen.rows()]
        reported = [(mwtop.size(s['impacting']['bytes']), next(f['function'] for f in s['frames']
                                                             if f['module'].endswith('/orders')))
                for s in report['stacks'] if s['kind'] != 'vm-internal']
        self.assertEqual(sorted(shown), sorted(reported))
        self.assertEqual(report['totals']['heap']['transient']['count'], 1000)
        page = subprocess.run([mwlive.config.memwatch, 'report', screen.file('seen.mw'), '--html', '-', '--quiet'],
                              capture_output=True, timeout=mwlive.PATIENCE, check=True).stdout
        self.assertIn(b'</html>', page)
        self.finish(screen)

    def test_what_is_not_hooked_is_said(self):
        target = mwlive.Target(self, 'refuses')
        screen = mwtop.Screen(self, target.pid)
        screen.wait('^resident .*, lost 0, not hooked: valloc$')
        target.go()
        target.done()
        screen.quit()
        target.finish()

    def test_keys(self):
        screen = self.start('a', 'b', 'v', 't', 'c', width=200)
        screen.wait_row('churn', 0)
        screen.keys('n')
        screen.wait('sorted by name$')
        names = [re.search(r'\+ (\w+) ', row[1]).group(1) for row in screen.rows()]
        self.assertEqual(names, ['churn', 'grow_a', 'grow_b', 'grow_t', 'map_v'])
        screen.keys('r')
        screen.wait('sorted by name, reversed$')
        self.assertEqual([re.search(r'\+ (\w+) ', row[1]).group(1) for row in screen.rows()], names[::-1])
        screen.keys('c')
        screen.wait('sorted by blocks$')
        self.assertIn('grow_a', screen.rows()[0][1])
        screen.keys('a')
        screen.wait('sorted by allocations/s$')
        screen.keys('i')
        screen.wait('sorted by bytes not freed$')
        self.assertIn('map_v', screen.rows()[0][1])
        screen.keys('S')
        screen.wait('sorted by name$')
        screen.keys('s')
        screen.wait('by stack, sorted by bytes not freed$')
        screen.keys('g')
        screen.wait('by module, sorted by bytes not freed$')
        row, = screen.rows()
        self.assertEqual(row[0], mwtop.size(A + B + V + T))
        self.assertTrue(row[1].endswith('/orders'), row)
        screen.keys('Enter')
        screen.wait_row('  + map_v', V)
        self.assertEqual(len(screen.rows()), 6)
        screen.keys('Down', 'Right')
        screen.wait(r'^   #0  orders!map_v\+')
        screen.keys('Left')
        screen.wait_gone('#0')
        screen.keys('3')
        screen.wait_row('orders (', A + B + V)
        screen.wait_row(r'\x1b[31mr\x1b[7mx\u202e (', T)
        screen.keys('Enter')
        screen.wait('are in a report')
        screen.keys('1')
        screen.wait('by stack, ')
        screen.keys('h')
        screen.wait('^Not freed: allocated since the zero point')
        screen.wait('^q Ctrl-C')
        # Where a line does not fit it is as many as it takes.
        screen.resize(40, 10)
        screen.wait('^Not freed: allocated since the zero$')
        screen.wait('^point \\(at first the attach\\), and not$')
        screen.keys(*['Down'] * 100)
        screen.wait('^q Ctrl-C')
        self.assertEqual(len(screen.text().rstrip('\n').split('\n')), 10)
        screen.resize(200, 30)
        screen.keys('Home', 'h')
        screen.wait('^q Ctrl-C')
        screen.keys('x')
        screen.wait('by stack, ')
        screen.keys('C-z')
        screen.wait('^not suspended: the process would be paused')
        self.finish(screen)

    def test_filter(self):
        screen = self.start('a', 'b', 'v', 't', width=160)
        screen.wait_row('map_v', V)
        screen.keys('/')
        screen.wait('^filter:')
        screen.type('function:grow_ and not start_thread')
        screen.keys('Enter')
        screen.wait('sorted by bytes not freed, 2 of filter function:grow_ and not start_thread$')
        self.assertEqual([re.search(r'\+ (\w+) ', row[1]).group(1) for row in screen.rows()],
                         ['grow_a', 'grow_b'])
        # What is wrong is said, and changes nothing; it can be mended.
        screen.keys('/', 'C-u')
        screen.type('size:>4K')
        screen.keys('Enter')
        screen.wait('^size: is not known of these rows. It takes function, ')
        self.assertEqual(len(screen.rows()), 2)
        screen.keys('/')
        screen.wait('^filter: size:>4K$')
        screen.keys('C-u')
        screen.type('kind:vm or (')
        screen.keys('Enter')
        screen.wait('^filter, at character 13 ')
        self.assertEqual(len(screen.rows()), 2)
        screen.keys('/', 'BSpace', 'BSpace', 'BSpace', 'BSpace', 'BSpace', 'Enter')
        screen.wait('1 of filter kind:vm$')
        self.assertIn('map_v', screen.rows()[0][1])
        # Modules are sums of what it takes; threads have one of their own.
        screen.keys('2')
        screen.wait('by module, .*1 of filter kind:vm$')
        self.assertEqual([row[0] for row in screen.rows()], [mwtop.size(V)])
        screen.keys('3')
        screen.wait_row('orders (', A + B + V)
        self.assertEqual(len(screen.rows()), 2)
        screen.keys('/')
        screen.type('not thread:orders')
        screen.keys('Enter')
        screen.wait('1 of filter not thread:orders$')
        self.assertEqual([row[0] for row in screen.rows()], [mwtop.size(T)])
        screen.keys('Escape')
        screen.wait('by thread, sorted by bytes not freed$')
        screen.wait_row('orders (', A + B + V)
        screen.keys('1', '/')
        screen.wait('^filter: kind:vm$')
        screen.type(' function:nothing')
        screen.keys('Enter')
        screen.wait('^nothing that the filter takes')
        screen.keys('/', 'Escape')
        screen.wait('by stack, sorted by bytes not freed$')
        screen.wait_row('grow_t', T)
        self.assertEqual(len(screen.rows()), 4)
        self.finish(screen)

    def test_verdicts(self):
        screen = self.start('a', 'c', width=140)
        screen.wait(r'verdict kind stack$')
        screen.wait_row('grow_a', A)
        def grows(pattern):
            """It goes on growing until the screen says so."""
            def seen():
                self.menu.order('b', 'c')
                text = screen.tmux('capture-pane', '-p', '-e')
                return text if re.search(pattern, text) else None
            return mwlive.wait_until(seen, pattern, step=0.2)
        grows(r' [▁▂▃▄▅▆▇█]{8} .*steady growth\?.* heap \+ grow_b')
        # The selected row has the colours of a selected one.
        screen.keys('Down')
        grown = grows(r'\x1b\[31m *steady growth\?.*grow_b')
        self.assertNotRegex(grown, r'\x1b\[31m *(one-off|plateau|churn)')
        screen.wait(r' [▇█]{8} +(one-off|plateau) heap \+ grow_a')
        screen.wait(r' churn heap \+ churn')
        # A module has a level, and no verdict.
        screen.keys('2')
        screen.wait(r'^ .* [▁▂▃▄▅▆▇█]{8} {20,}\+ /')
        screen.keys('Enter')
        screen.wait(r' (steady growth\?|too short to tell|plateau) heap +\+ grow_b')
        # Of what is allocated since a zero point.
        screen.keys('1', 'z')
        screen.wait('^nothing has been allocated')
        self.menu.order('b')
        screen.wait(r' too short to tell heap \+ grow_b')
        # What is written has the verdicts of all.
        screen.keys('w', 'C-u')
        screen.type('seen.mw')
        screen.keys('Enter')
        screen.wait('^written: ')
        verdicts = {frame['function']: stack['growth']['verdict']
                    for stack in mwtop.report(self, screen.file('seen.mw'))['stacks'] if stack['growth']
                    for frame in stack['frames']}
        self.assertIn(verdicts['grow_b'], ('steady growth', 'too short to tell', 'plateau'))
        self.finish(screen)

    def test_zero_point(self):
        screen = self.start('a', 'b')
        screen.wait_row('grow_a', A)
        screen.wait_row('grow_b', B)
        screen.keys('z')
        screen.wait('^nothing has been allocated')
        since = float(screen.wait(r', since (\d+\.\d+) s').group(1))
        self.menu.order('b', 'A')
        screen.wait_row('grow_b', B)
        screen.wait(f'^not freed {mwtop.size(B)}, ')
        self.assertIsNone(screen.row('grow_a'))
        screen.keys('w', 'C-u')
        screen.type('zero.mw')
        screen.keys('Enter')
        screen.wait('^written: zero.mw')
        whole = mwtop.report(self, screen.file('zero.mw'))
        mwlive.check_report(self, whole)
        self.assertEqual(whole['totals']['heap']['impacting']['bytes'], 2 * B)
        self.assertEqual(whole['memory'][-1]['heap_impacting'], 2 * B)
        part = mwtop.report(self, screen.file('zero.mw'), '--from', since)
        self.assertEqual(part['totals']['heap']['impacting'], {'count': 10, 'bytes': B})
        self.assertEqual(part['totals']['heap']['aofi'], {'count': 100, 'bytes': A})
        self.finish(screen)

    def test_pause(self):
        screen = self.start('a')
        screen.wait_row('grow_a', A)
        screen.keys('p')
        screen.wait('^PAUSED ')
        self.menu.order('b')
        # The recording goes on: what is written has what the screen has not.
        screen.keys('w', 'C-u')
        screen.type('paused.mw')
        screen.keys('Enter')
        screen.wait('^written: ')
        self.assertEqual(mwtop.report(self, screen.file('paused.mw'))['totals']['heap']['impacting']['bytes'], A + B)
        self.assertEqual([row[0] for row in screen.rows()], [mwtop.size(A)])
        screen.keys('p')
        screen.wait_row('grow_b', B)
        self.finish(screen)

    def test_sizes(self):
        screen = self.start('a', 'b', 'v')
        for width, height in ((20, 5), (33, 7), (45, 8), (63, 12), (200, 60), (20, 5)):
            screen.resize(width, height)
            mwlive.wait_until(lambda w=width, h=height: self.fits(screen, w, h), f'{width} by {height}', step=0.1)
        screen.keys('End')
        screen.wait_row('gr', B)
        screen.resize(19, 5)
        screen.wait('^too small for a$')
        screen.resize(1, 1)
        screen.resize(80, 24)
        screen.wait_row('grow_a', A)
        self.finish(screen)

    def fits(self, screen, width, height):
        lines = screen.lines()
        self.assertLessEqual(max(map(len, lines)), width)
        rows = [row for row in screen.rows() if '+ ' in row[1]]
        return len(lines) <= height and rows and rows[0][0] == mwtop.size(V)

    def test_hostile_names(self):
        screen = self.start('w', 'r', 'l', 't')
        screen.wait_row('寿司を食べる (orders.c', 111)
        screen.wait_row(r'\u05e9\u05dc\u05d5\u05dd (orders.c', 222)
        screen.wait_row('long_name_long_name_', 333)
        self.assertTrue(screen.row('long_name')[1].endswith('…'))
        for width in (60, 61, 62, 63):
            screen.resize(width, 20)
            screen.wait(r'^ *333 B .*…$')
        self.finish(screen)

    def test_output(self):
        screen = self.start('a', options=['-o', 'whole.mw'])
        screen.wait_row('grow_a', A)
        self.menu.order('b')
        screen.wait_row('grow_b', B)
        screen.keys('q')
        self.assertEqual(screen.await_status(), 0)
        self.before.check(self)
        report = mwtop.report(self, screen.file('whole.mw'))
        mwlive.check_report(self, report)
        self.assertEqual(report['totals']['heap']['impacting']['bytes'], A + B)
        self.assertEqual({s['frames'][0]['function'] for s in report['stacks'] if s['kind'] == 'heap'}, {'grow_a', 'grow_b'})
        self.menu.end()

    def test_reports_at_its_end(self):
        for more in ([], ['-o', 'whole.mw']):
            with self.subTest(more=more):
                screen = self.start('a', options=['--html', 'page.html', '--json', 'all.json', *more])
                screen.wait_row('grow_a', A)
                # Whatever the table is about, the reports are of all since the attach.
                screen.keys('z')
                screen.wait('^nothing has been allocated')
                since = float(screen.wait(r', since (\d+\.\d+) s').group(1))
                self.menu.order('b', 'A')
                screen.wait_row('grow_b', B)
                self.menu.order('a')
                screen.wait_row('grow_a', A)
                self.assertFalse(os.path.exists(screen.file('all.json')))
                screen.quit()
                self.before.check(self)
                with open(screen.file('all.json'), encoding='utf-8') as f:
                    report = json.load(f)
                mwlive.check_report(self, report)
                self.assertEqual(report['totals']['heap']['impacting'], {'count': 110, 'bytes': A + B})
                self.assertEqual(report['totals']['heap']['transient'], {'count': 100, 'bytes': A})
                self.assertEqual(report['totals']['heap']['aofi']['count'], 0)
                self.assertAlmostEqual(report['marks'][0]['at'], since, places=5)
                self.assertEqual({s['frames'][0]['function'] for s in report['stacks'] if s['kind'] == 'heap'},
                                 {'grow_a', 'grow_b'})
                with open(screen.file('page.html'), encoding='utf-8') as f:
                    page = f.read()
                self.assertIn('</html>', page)
                self.assertEqual(os.stat(screen.file('page.html')).st_mode & 0o7777, 0o600)
                left = {'all.json', 'page.html', *more[1:]}
                self.assertEqual({name for name in os.listdir(screen.directory) if name.split('.')[-1] in
                                  ('json', 'html', 'mw') or 'memwatch' in name}, left)
                if more:
                    self.assertEqual(mwtop.report(self, screen.file('whole.mw'))['totals'], report['totals'])
                self.menu.end()

    def test_what_can_not_be_kept_is_said(self):
        screen = self.start('a', env={'TMPDIR': '/nowhere'})
        screen.wait_row('grow_a', A)
        screen.wait('^resident .*, lost 0, not kept$')
        screen.keys('w', 'Enter')
        screen.wait('^not written: .*/nowhere')
        self.finish(screen)

    def test_reports_need_what_was_seen(self):
        menu = mwtop.Menu(self)
        before = mwlive.Snapshot(menu.pid)
        screen = mwtop.Screen(self, menu.pid, options=['--json', 'x.json'], env={'TMPDIR': '/nowhere'})
        self.assertEqual(screen.await_status(), 1)
        self.assertIn("what is seen can't be kept for the report", screen.errors())
        self.assertFalse(os.path.exists(screen.file('x.json')))
        screen.check_terminal()
        before.check(self)
        screen = mwtop.Screen(self, menu.pid, options=['--json', 'one', '--html', 'one'])
        self.assertEqual(screen.await_status(), 2)
        self.assertIn('are one file', screen.errors())
        # A report that can't be written is a failure, and none is left by halves.
        screen = mwtop.Screen(self, menu.pid, options=['--json', '/dev/full'])
        screen.wait('^not freed|nothing has been')
        screen.keys('q')
        self.assertEqual(screen.await_status(), 1)
        self.assertIn("cannot write '/dev/full'", screen.errors())
        before.check(self)
        menu.end()

    def test_several_processes(self):
        first, second = mwtop.Menu(self), mwtop.Menu(self)
        before = [mwlive.Snapshot(menu.pid) for menu in (first, second)]
        screen = mwtop.Screen(self, first.pid, second.pid, options=['--json', 'all.json'])
        screen.wait(rf'^orders \({first.pid}\), process 1 of 2 \(Tab\), engine ')
        first.order('a')
        second.order('b', 'v')
        screen.wait_row('grow_a', A)
        self.assertIsNone(screen.row('grow_b'))
        # What is shown of one, and in which order, is so of the other.
        screen.keys('n', 'Tab')
        screen.wait(rf'^orders \({second.pid}\), process 2 of 2 \(Tab\), engine ')
        screen.wait_row('grow_b', B)
        screen.wait('sorted by name$')
        self.assertIsNone(screen.row('grow_a'))
        # Verdicts come for the one that is shown; a zero point is its own.
        screen.wait(r' (one-off|too short to tell|plateau) heap \+ grow_b')
        screen.keys('/')
        screen.type('function:grow_')
        screen.keys('Enter')
        screen.wait('1 of filter function:grow_$')
        screen.keys('z')
        screen.wait('^nothing that the filter takes')
        screen.keys('Tab')
        screen.wait('1 of filter function:grow_$')
        screen.wait_row('grow_a', A)
        screen.keys('Enter')
        screen.wait(r'^   #0  orders!grow_a\+')
        # One ends, the other goes on; a recording has both.
        screen.keys('Tab', 'Escape')
        second.exit()
        screen.wait('^ENDED with status 3  orders')
        screen.keys('Tab')
        screen.wait(rf'^orders \({first.pid}\), process 1 of 2')
        first.order('a', 'A')
        screen.wait_row('grow_a', A)
        screen.keys('w', 'C-u')
        screen.type('both.mw')
        screen.keys('Enter')
        screen.wait('^written: ')
        self.check_both(mwtop.report(self, screen.file('both.mw')), 'interrupt')
        screen.quit()
        before[0].check(self)
        with open(screen.file('all.json'), encoding='utf-8') as f:
            self.check_both(json.load(f), 'interrupt')
        first.end()

    def test_one_that_ends_before_it_is_shown(self):
        """Nobody has asked for the verdicts on it."""
        first, second = mwtop.Menu(self), mwtop.Menu(self)
        before = mwlive.Snapshot(first.pid)
        screen = mwtop.Screen(self, first.pid, second.pid)
        screen.wait(rf'^orders \({first.pid}\), process 1 of 2')
        second.order('a', 'b', 'c')
        second.exit()
        first.order('a')
        screen.wait_row('grow_a', A)
        screen.keys('Tab')
        screen.wait('^ENDED with status 3  orders')
        for name in ('grow_a', 'grow_b'):
            screen.wait(rf' (one-off|too short to tell|(plateau|steady growth)\??) heap \+ {name}')
        screen.wait(r' (churn|too short to tell) heap \+ churn')
        screen.quit()
        before.check(self)
        first.end()

    def check_both(self, report, ended):
        one, two = report['processes']
        for each in (one, two):
            mwlive.check_report(self, each)
        self.assertEqual(one['totals']['heap']['impacting'], {'count': 100, 'bytes': A})
        self.assertEqual(one['window']['ended'], ended)
        self.assertEqual(two['totals']['heap']['impacting'], {'count': 10, 'bytes': B})
        self.assertEqual(two['totals']['vm']['impacting']['bytes'], V)
        self.assertEqual((two['window']['ended'], two['target']['exit_status']), ('exit', 3))
        self.assertIn('grow_b', {frame['function'] for stack in two['stacks'] for frame in stack['frames']})


class Ends(Case):
    def test_of_the_target(self):
        screen = self.start('a')
        screen.wait_row('grow_a', A)
        self.menu.exit()
        screen.wait('^ENDED with status 3')
        screen.wait_row('grow_a', A)
        screen.keys('w', 'C-u')
        screen.type('ended.mw')
        screen.keys('Enter')
        screen.wait('^written: ')
        report = mwtop.report(self, screen.file('ended.mw'))
        mwlive.check_report(self, report)
        self.assertEqual((report['window']['ended'], report['target']['exit_status']), ('exit', 3))
        self.assertEqual(report['totals']['heap']['impacting']['bytes'], A)
        screen.quit()

    def test_of_the_time(self):
        screen = self.start('a', options=['-d', 3])
        screen.wait('^LET GO ')
        self.before.check(self)
        # Until the table is left there is who would put back the terminal.
        self.assertIsNotNone(mwlive.guard_of(screen.pid()))
        self.menu.order('b')
        screen.wait_row('grow_a', A)
        self.finish(screen)

    def test_by_signals(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with self.subTest(signal=number):
                screen = self.start('a')
                screen.wait_row('grow_a', A)
                os.kill(screen.pid(), number)
                self.assertEqual((screen.await_status(), screen.errors()), (0, ''))
                screen.check_terminal()
                self.before.check(self)
                self.menu.end()

    @mwlive.not_under('it has the signals of a crash for itself', 'asan')
    def test_by_a_crash(self):
        for number in (signal.SIGSEGV, signal.SIGABRT):
            with self.subTest(signal=number):
                screen = self.start('a')
                screen.wait_row('grow_a', A)
                os.kill(screen.pid(), number)
                self.assertEqual(screen.await_status(), 1)
                self.assertIn(f'memwatch has crashed ({number.name}): detached from process {self.menu.pid}',
                              screen.errors())
                screen.check_terminal()
                self.before.check(self)
                self.menu.end()

    def test_by_being_killed(self):
        screen = self.start('a')
        screen.wait_row('grow_a', A)
        pid = screen.pid()
        guard = mwlive.guard_of(pid)
        os.kill(pid, signal.SIGKILL)
        self.menu.order('b')
        self.assertEqual(screen.await_status(), 128 + signal.SIGKILL)
        mwlive.await_end_of(guard)
        self.before.check(self)
        self.menu.end()


class Refusals(Case):
    def run_top(self, *arguments, **environment):
        done = subprocess.run([mwlive.config.memwatch, 'top', *map(str, arguments)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=mwlive.PATIENCE, check=False,
                              env={**os.environ, **environment})
        self.assertEqual((done.stdout, done.stderr.count('\n')), ('', 1), done)
        return done.returncode, done.stderr

    def test_without_a_terminal(self):
        menu = mwtop.Menu(self)
        before = mwlive.Snapshot(menu.pid)
        status, text = self.run_top('-p', menu.pid)
        self.assertEqual(status, 1)
        self.assertIn('top shows its table on a terminal, and standard input is none', text)
        before.check(self)
        for wrong in ((), ('-p', ','), ('-p', menu.pid, '--top', '3'), ('-p', menu.pid, 'x')):
            self.assertEqual(self.run_top(*wrong)[0], 2, wrong)
        menu.end()

    def test_terminals(self):
        for term, says in (('dumb', 'the terminal type in TERM can show only lines'),
                           ('no-such-terminal', 'the terminal type in TERM is unknown')):
            menu = mwtop.Menu(self)
            before = mwlive.Snapshot(menu.pid)
            screen = mwtop.Screen(self, menu.pid, env={'TERM': term})
            self.assertEqual(screen.await_status(), 1)
            self.assertIn(says, screen.errors())
            before.check(self)
            menu.end()
        for environment in ({'TERM': 'vt100'}, {'NO_COLOR': '1'}, {'LC_ALL': 'C'}):
            screen = self.start('a', 'w', env=environment)
            screen.wait_row('grow_a', A)
            screen.wait_row(r'\u5bff\u53f8' if 'LC_ALL' in environment else 'orders.c', 111)
            if environment.get('TERM') == 'vt100':  # which has nothing to put back
                screen.keys('q')
                self.assertEqual((screen.await_status(), screen.errors()), (0, ''))
                self.before.check(self)
                self.menu.end()
            else:
                self.finish(screen)

    def test_no_such_process(self):
        screen = mwtop.Screen(self, 4194303)
        self.assertEqual(screen.await_status(), 1)
        self.assertIn('4194303', screen.errors())
        screen.check_terminal()


class Real(Case):
    def test_python(self):
        program = ('import sys\nheld = []\n'
                   'def leak():\n    held.append(bytearray(100000))\n'
                   'print("ready", flush=True)\n'
                   'for line in sys.stdin:\n    leak()\n    print("done", flush=True)\n')
        process = subprocess.Popen([sys.executable, '-c', program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(mwlive.kill_quietly, process)
        self.assertEqual(process.stdout.readline(), b'ready\n')

        def leak(count):
            for _ in range(count):
                process.stdin.write(b'x\n')
                process.stdin.flush()
                self.assertEqual(process.stdout.readline(), b'done\n')
        # Python changes its instructions after the first times: then it calls from elsewhere in its own code.
        leak(20)
        before = mwlive.Snapshot(process.pid)
        screen = mwtop.Screen(self, process.pid)
        screen.wait('^not freed|nothing has been')
        leak(20)
        # A bytearray has room for a NUL behind it.
        screen.wait(r'^ *1\.9 MiB .* 20 .*heap')
        # It is called by who wanted it, not by what Python allocates through.
        mwlive.wait_until(lambda: not re.search('PyObject_Malloc|PyMem_', screen.rows()[0][1]), 'its own name')
        screen.keys('Enter')
        screen.wait('^   = 2,000,020 bytes in 20 blocks not freed, of 20 allocated, by ')
        screen.wait(r'^   #0 ')
        screen.quit()
        before.check(self)
        process.stdin.close()
        self.assertEqual(process.wait(mwlive.PATIENCE), 0)


if __name__ == '__main__':
    mwlive.main()
