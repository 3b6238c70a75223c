#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sampled windows: estimates are right within their errors, every sampled block's free is seen, and a recording says the same."""
import glob
import json
import math
import os
import shutil
import signal
import subprocess
import time
import unittest

import mwlive
import mwrec
import mwtop

KEPT = ('keep_small', 'keep_pages', 'keep_large', 'grow')
ERRORS = 6  # standard errors that an estimate may be off by: one in a billion is further off
WHY = 'memwatch could not keep up; --max-wait 100 records every block'
UNSEEN = 20  # intervals' worth of bytes of which no block is sampled


def heap_stacks(report, function, api=None):
    return mwlive.select(report, function, api=api and mwlive.aliases(api), kinds=('heap',))


def estimate(stacks, amount='impacting', unit='bytes'):
    """What stacks have together, and its standard error."""
    return (sum(s[amount][unit] for s in stacks),
            math.sqrt(sum(s[amount]['error'][unit] ** 2 for s in stacks)))


class Sampling(unittest.TestCase):
    def record(self, seconds, *options, env=None):
        """A window of the target's whole work: its answer, the report, and the recording, which says the same."""
        target = mwlive.Target(self, 'sampled', seconds, env=env)
        kept = mwrec.Kept(self, target.pid, options=options, complete=False)
        target.go()
        answer = target.done()
        report, = kept.stop()
        target.finish()
        return answer, report, kept.path

    def text(self, path, *options):
        run = subprocess.run([mwlive.config.memwatch, *options[:1], path, *options[1:]], stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=mwlive.PATIENCE, check=True)
        return run.stdout

    def check_estimates(self, answer, report):
        changes = len(report['sampling']['intervals']) > 1
        for function in KEPT:
            held, error = estimate(heap_stacks(report, function))
            # That none of so many bytes is sampled is as unlikely; so it is after the interval was changed.
            slack = ERRORS * error + (UNSEEN * report['sampling']['interval'] if changes or not held else 0)
            self.assertLessEqual(abs(held - answer[function]), slack, (function, held, answer[function], error))
        # Whatever was freed is not outstanding, of however many of its blocks it is known.
        self.assertEqual(estimate(heap_stacks(report, 'pass')), (0, 0))
        self.assertEqual(estimate(heap_stacks(report, 'grow', 'malloc')), (0, 0))
        freed, error = estimate(heap_stacks(report, 'pass'), 'transient')
        slack = ERRORS * error if freed and not changes else UNSEEN * report['sampling']['interval']
        self.assertLessEqual(abs(freed - 200 * 200 * answer['rounds']), slack)

    def check_sums(self, report, path):
        """Groups sum up to the totals, and so do the squares of their errors."""
        for by in ('function', 'stack,size', 'thread', 'module,type'):
            grouped, = mwrec.reports(self, path, '--by', by, '--type', 'all', complete=False)
            rows = [r for r in grouped['groups']['rows'] if r['level'] == 0]
            for amount in ('size', 'impacting', 'transient'):
                total = report['totals']['heap'][amount]
                vm = report['totals']['vm'][amount]
                for unit in ('count', 'bytes'):
                    self.assertEqual(sum(r[amount][unit] for r in rows), total[unit] + vm[unit], (by, amount))
                    squares = sum(r[amount]['error'][unit] ** 2 for r in rows)
                    self.assertAlmostEqual(squares, total['error'][unit] ** 2, delta=1e-6 * squares, msg=(by, amount))

    def test_estimates(self):
        answer, report, path = self.record(1, '--sample', '32K')
        self.assertEqual(report['sampling']['interval'], 32 << 10)
        self.assertEqual([i['bytes'] for i in report['sampling']['intervals']], [32 << 10])
        self.assertEqual(report['sampling']['exact'], 0)
        self.assertGreater(report['sampling']['intervals'][0]['blocks'], 20)
        self.check_estimates(answer, report)
        self.check_sums(report, path)
        # Of what is far larger than the interval every block is recorded.
        large, = heap_stacks(report, 'keep_large')
        self.assertEqual(large['impacting']['bytes'], answer['keep_large'])
        # A stack's threads have its errors.
        for stack in heap_stacks(report, 'keep_small'):
            squares = sum(t['impacting']['error']['bytes'] ** 2 for t in stack['threads'])
            self.assertAlmostEqual(squares, stack['impacting']['error']['bytes'] ** 2, delta=1e-6 * squares)
        # Blocks that are listed are those that were recorded.
        listed, = mwrec.reports(self, path, '--blocks', 5, complete=False)
        self.assertEqual({b['others'] for b in listed['blocks']['rows'] if b['bytes'] == 1 << 20}, {0})
        # An interval of the window: what is older was sampled too.
        seconds = report['window']['seconds']
        late = mwrec.interval(self, path, seconds / 2, complete=False)
        older = late['totals']['heap']['aofo']
        self.assertEqual(older['bytes'] + late['totals']['heap']['impacting']['bytes'],
                         report['totals']['heap']['impacting']['bytes'])
        self.assertGreater(older['error']['bytes'], 0)
        self.assertIsNotNone(late['totals']['heap']['aofi'])

    def test_work_after_a_rest(self):
        """memwatch rests for longer where a sampled process does little: what it does then, with threads that come, is all seen."""
        if mwlive.config.engine == 'trap':
            self.skipTest('engine trap stops the thread at each call')
        target = mwlive.Target(self, 'sampled', 0.5, 'fast')
        kept = mwrec.Kept(self, target.pid, options=('--sample', '16K'), complete=False)
        time.sleep(3)
        target.go()
        answer = target.done()
        report, = kept.stop()
        target.finish()
        self.assertEqual(report['lost']['events'], 0)
        self.check_estimates(answer, report)

    def test_other_allocators(self):
        tried = 0
        for pattern in ('libjemalloc.so.2', 'libtcmalloc_minimal.so.4', 'libmimalloc.so.[0-9]*'):
            for path in sorted(glob.glob(f'/usr/lib/*/{pattern}'))[:1]:
                with self.subTest(pattern):
                    answer, report, _ = self.record(0, '--sample', '16K', env={'LD_PRELOAD': path})
                    self.check_estimates(answer, report)
                tried += 1
        if not tried:
            self.skipTest('no other allocator is installed')

    def test_switches_to_sampling(self):
        """A window in which every block is recorded, until memwatch can't keep up: nothing is lost."""
        if mwlive.config.engine == 'trap':
            self.skipTest('engine trap stops the thread at each call')
        target = mwlive.Target(self, 'sampled', 2, 1)
        kept = mwrec.Kept(self, target.pid, options=('--overload', 'sample'), complete=None)
        target.go()
        answer = target.done()
        report, = kept.stop()
        target.finish()
        self.check_switched(answer, report, kept.path)

    def check_switched(self, answer, report, path):
        """Every block was recorded up to a time, a sample since then, and the report says so."""
        sampling = report['sampling']
        self.assertEqual(report['lost']['events'], 0)
        self.assertFalse(report['complete'])
        self.assertGreater(sampling['exact'], 0)
        self.assertGreaterEqual(sampling['intervals'][0]['from'], 0)
        self.assertGreater(sampling['from'], 0)
        self.assertEqual(sampling['intervals'][0]['bytes'], 64 << 10)
        self.check_estimates(answer, report)
        # Blocks from before it were freed after it.
        self.assertEqual(estimate(heap_stacks(report, 'hold')), (0, 0))
        self.assertEqual(sampling['why'], WHY)
        text = ' '.join(self.text(path, 'report').split())
        self.assertRegex(text, rf'sampled from [0-9.]+ m?s on \({WHY}\): one heap block in 64.0 KiB')
        # Before that it was as any window.
        early = mwrec.interval(self, path, 0, sampling['from'] / 2)
        self.assertIsNone(early['sampling'])

    def watch_with_defaults(self, seconds, fast, spinning=0):
        """The target's whole work under a memwatch with its defaults, beside so many processes that never rest."""
        for _ in range(spinning):
            spinner = subprocess.Popen(['sh', '-c', 'while :; do :; done'], stdin=subprocess.DEVNULL)
            self.addCleanup(mwlive.kill_quietly, spinner)
        target = mwlive.Target(self, 'sampled', seconds, *(('fast',) if fast else ()))
        kept = mwrec.Kept(self, target.pid, complete=None, exact=False)
        target.go()
        answer = target.done()
        report, = kept.stop()
        target.finish()
        self.assertEqual(report['lost']['events'], 0)
        return answer, report, kept.path

    def test_moderate_rates_stay_exact(self):
        """A program that allocates a few ten thousand times a second, beside spinning processes."""
        answer, report, _ = self.watch_with_defaults(2, False, len(os.sched_getaffinity(0)))
        self.assertIsNone(report['sampling'])
        self.assertTrue(report['complete'])
        for function in KEPT:
            self.assertEqual(sum(s['impacting']['bytes'] for s in heap_stacks(report, function)), answer[function])

    def test_full_rates_are_told(self):
        """Two threads at full rate and as many spinning processes as CPUs: whatever comes of it, the report is right."""
        answer, report, path = self.watch_with_defaults(3, True, len(os.sched_getaffinity(0)))
        if report['sampling']:
            self.check_switched(answer, report, path)
            self.assertFalse(report['complete'])
        else:
            self.assertTrue(report['complete'])
        if mwlive.config.engine == 'jump' and not mwlive.TOOL:
            # Each of the two for a twentieth of its time, and as long as the transition takes.
            self.assertLess(report['engine']['waited_ns'] / 1e9, 2 * (report['window']['seconds'] / 20 + 0.2))

    def test_drops(self):
        """What finds no room is lost, and counted."""
        if mwlive.config.engine == 'trap':
            self.skipTest('engine trap stops the thread at each call')
        target = mwlive.Target(self, 'sampled', 2, 1)
        kept = mwrec.Kept(self, target.pid, options=('--overload', 'drop'), complete=None)
        target.go()
        # A fast machine keeps up with two threads.
        kept.watch.process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        kept.watch.process.send_signal(signal.SIGCONT)
        target.done()
        report, = kept.stop()
        target.finish()
        self.assertGreater(report['lost']['events'], 0)
        self.assertIsNone(report['sampling'])

    def test_text(self):
        _, _, path = self.record(0, '--sample', '512K')
        text = self.text(path, 'report')
        self.assertIn('sampled: one heap block in 512.0 KiB on average', text)
        self.assertIn('±', text)
        self.assertNotIn('nothing lost', text)
        self.assertIn('not known (sampled)', text)
        self.assertIn('may not have been seen', ' '.join(text.split()))
        # Two moments of it: a difference has its error.
        diff = json.loads(self.text(path, 'diff', '--from', 'start', '--to', 'end', '--json', '-'))
        self.assertFalse(diff['new']['complete'])
        self.assertEqual(diff['new']['sampling']['interval'], 512 << 10)
        for stack in diff['stacks']:
            self.assertEqual('error' in stack['delta'], stack['kind'] == 'heap')
            if stack['kind'] == 'heap':
                self.assertFalse(stack['noise'], 'it only grew')

    def test_nothing_sampled(self):
        """That nothing was seen is no proof that there is nothing."""
        target = mwlive.Target(self, 'simple')
        kept = mwrec.Kept(self, target.pid, options=('--sample', '1T'), complete=False)
        target.go()
        target.done()
        report, = kept.stop()
        target.finish()
        self.assertEqual(report['totals']['heap']['size']['count'], 0)
        self.assertIsNone(report['totals']['heap']['aofi'])
        self.assertEqual(report['sampling']['unseen'] >> 40, 2)
        text = ' '.join(self.text(kept.path, 'report').split())
        self.assertIn('Up to 3.0 TiB in any one place may not have been seen', text)
        self.assertNotIn('nothing lost', text)
        self.assertNotIn('othing was allocated', text)

    def refused_budget(self, pid, *options):
        run = subprocess.run([mwlive.config.memwatch, '-p', str(pid), '-d', '0.1', '--quiet', '--budget', '5', *options],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=mwlive.PATIENCE, check=False)
        return run.returncode, run.stderr

    def test_budget_without_jumps(self):
        """Where each call would stop the process it is not watched: nobody who gives a budget wants that."""
        target = mwlive.Target(self, 'unmovable')
        before = mwlive.Snapshot(target.pid)
        status, message = self.refused_budget(target.pid, '--engine', 'trap')
        self.assertEqual(status, 2)
        self.assertIn("--budget can't be kept to with engine trap", message)
        # One of its entry points can't be moved.
        status, message = self.refused_budget(target.pid)
        self.assertEqual(status, 1, message)
        self.assertIn("--budget needs engine jump, which can't be used: ", message)
        self.assertIn('--max-stopped', message)
        before.check(self)
        target.go()
        target.done()
        target.finish()

    def test_budget(self):
        if mwlive.config.engine == 'trap':
            self.skipTest('see test_budget_without_jumps')
        answer, report, _ = self.record(3, '--budget', '5')
        self.assertEqual(report['sampling']['intervals'][0]['bytes'], 512 << 10)
        self.assertEqual(report['sampling']['interval'], max(i['bytes'] for i in report['sampling']['intervals']))
        self.check_estimates(answer, report)

    @unittest.skipUnless(shutil.which('tmux'), 'tmux is not installed')
    def test_top(self):
        menu = mwtop.Menu(self)
        screen = mwtop.Screen(self, menu.pid, options=('--sample', '16K'), width=150)
        screen.wait('^not freed|nothing has been')
        menu.order('a', 'b', 'v')
        screen.wait('sampled, one heap block in 16.0 KiB: amounts are estimates')
        screen.wait('^not freed .* ± ')
        screen.wait('KiB .* grow_a ')
        screen.keys('Down', 'Enter')
        screen.wait('^   = [0-9,]+ ± [0-9,]+ bytes in [0-9,]+ blocks not freed')
        screen.quit()
        menu.end()

    @unittest.skipUnless(shutil.which('tmux'), 'tmux is not installed')
    def test_top_switches(self):
        if mwlive.config.engine == 'trap':
            self.skipTest('engine trap stops the thread at each call')
        target = mwlive.Target(self, 'sampled', 60 * mwlive.SLOWNESS, 'fast')
        screen = mwtop.Screen(self, target.pid, options=('--overload', 'sample'), width=150)
        screen.wait('^not freed|nothing has been')
        target.go()
        screen.wait(r'sampled from [0-9.]+ s on \(exact: --max-wait 100\), one heap block in [0-9.]+ [KM]iB: amounts are estimates')
        screen.quit()

    def test_page(self):
        """The page says that its amounts are estimates."""
        _, _, path = self.record(0, '--sample', '64K')
        page = os.path.join(os.path.dirname(path), 'page.html')
        subprocess.run([mwlive.config.memwatch, 'report', path, '--quiet', '--html', page], check=True, timeout=mwlive.PATIENCE)
        self.assertGreater(os.path.getsize(page), 10000)


if __name__ == '__main__':
    mwlive.main()
