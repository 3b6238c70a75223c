#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Children that live on, libraries with allocators and threads that come inside the window."""
import os
import time
import unittest

import mwjump
import mwlive


def children(pid):
    with open(f'/proc/{pid}/task/{pid}/children', encoding='utf-8') as f:
        return f.read().split()


class Life(unittest.TestCase):
    def exact(self, name, *arguments, seconds=mwlive.PATIENCE):
        answer, report = mwlive.observe(self, name, *arguments, seconds=seconds)
        mwlive.compare(self, answer, report)
        return answer, report

    def test_children_that_live_on(self):
        """They are clean while the window goes on, and work on after it."""
        target = mwlive.Target(self, 'children_forked')
        watch = mwlive.Watch(self, target.pid)
        parent = watch.snapshots[0]
        mapped = {m[4] for m in parent.maps}
        target.go()
        answer = target.done()
        children = [answer.pop(f'child{i}') for i in range(6)]
        for child in children:
            mwlive.wait_until(lambda pid=child: self.clean(parent, pid, mapped), f'child {child} is clean')
        self.assertTrue(parent.touched(), 'the window is over')
        report = watch.stop()
        mwlive.compare(self, answer, report)
        for child in children:
            self.assertTrue(self.clean(parent, child, mapped), 'clean no more')
            ticks = self.switches(child)
            mwlive.wait_until(lambda pid=child, last=ticks: self.switches(pid) != last, 'the child goes on')
        target.finish()

    @staticmethod
    def switches(pid):
        return mwlive.status(pid)['voluntary_ctxt_switches']

    @staticmethod
    def clean(parent, pid, mapped):
        """A child's code is its parent's as it was, nothing of memwatch is mapped, and nobody traces it."""
        for m, text in parent.text.items():
            if mwlive.read_memory(pid, m[0], m[1] - m[0]) != text:
                return False
        now = mwlive.mappings(pid)
        return (not any(mwlive.is_ours(m[4]) for m in now) and {m[4] for m in now if 'x' in m[2]} <= mapped and
                mwlive.status(pid)['TracerPid'] == '0')

    def test_exception_through_a_call_that_a_child_was_forked_in(self):
        for early in (False, True):
            with self.subTest(window_ends_before_it_is_thrown=early):
                target = mwlive.Target(self, 'throwchild')
                watch = mwlive.Watch(self, target.pid)
                target.go()
                if early:
                    mwlive.wait_until(lambda: children(target.pid), 'a child')
                    watch.stop()
                target.done()
                if not early:
                    watch.stop()
                target.finish()

    def test_children_after_the_window(self):
        """A window that ends while they live leaves them working."""
        target = mwlive.Target(self, 'children_forked')
        watch = mwlive.Watch(self, target.pid)
        target.go()
        answer = target.done()
        children = [answer.pop(f'child{i}') for i in range(6)]
        watch.stop()
        for child in children:
            self.assertTrue(os.path.exists(f'/proc/{child}'))
            mwjump.check_text_of_files(self, child)
        # Children can be watched like any process.
        other = mwlive.Watch(self, children[0], busy=True)
        mwlive.wait_until(lambda: time.sleep(0.3) or True, 'some work is done')
        self.assertGreater(other.stop()['totals']['heap']['size']['count'], 0)
        target.finish()

    def test_children_of_every_kind(self):
        self.exact('fork_storm', mwlive.attempts(15, 60))

    def test_libraries_that_bring_an_operator_new(self):
        _, report = self.exact('dlopens', mwlive.target_path('libplugin_leak.so'),
                               mwlive.target_path('libplugin_new.so'))
        self.assertIn(mwlive.target_path('libplugin_new.so'), mwlive.hooked_modules(report))

    def test_libraries_that_bring_an_allocator_by_other_names(self):
        _, report = self.exact('dlopens', mwlive.target_path('libplugin_leak.so'),
                               mwlive.target_path('libplugin_mi.so'))
        self.assertIn(mwlive.target_path('libplugin_mi.so'), mwlive.hooked_modules(report))

    def test_libraries_loaded_by_threads_of_the_window(self):
        for own in ('new', 'mi'):
            with self.subTest(own):
                self.exact('loaders', mwlive.target_path('libplugin_leak.so'),
                           mwlive.target_path(f'libplugin_{own}.so'))

    def test_threads_of_the_program_s_own_making(self):
        """They are switched by signals, amidst calls as well: what they will come back to stays there for them."""
        for place in ((), ('mapped',), ('guarded',), ('local',)):
            with self.subTest(place):
                self.preempted(*place)

    @staticmethod
    def processor_time(pid):
        """Seconds."""
        with open(f'/proc/{pid}/stat', encoding='utf-8') as f:
            fields = f.read().rpartition(')')[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def preempted(self, *place):
        target = mwlive.Target(self, 'preempted', *place, env={'LD_PRELOAD': mwlive.target_path('libbump.so')})
        target.go()
        kept = seen = 0
        times = mwlive.attempts(2, 4)
        for _ in range(times):
            # A call that another context comes between may not be told apart from one that was left: lost, and told.
            watch = mwlive.Watch(self, target.pid, busy=True, complete=None)
            # Enough for many rounds, however busy the machine is.
            used = self.processor_time(target.pid)
            mwlive.wait_until(lambda used=used: target.process.poll() is not None or
                              self.processor_time(target.pid) >= used + 0.3, 'it has had a CPU')
            report = watch.stop(intact=False)
            self.assertIsNone(target.process.poll(), 'it lives')
            mwjump.check_text_of_files(self, target.pid)
            seen += mwlive.total_of(mwlive.select(report, 'preempted_round'))['size']['count']
            if not report['engine']['left_behind']:
                watch.check_targets()
            kept += report['engine']['left_behind'] is not None
            time.sleep(0.1)
        print(f'code kept for them {kept} times of {times}', flush=True)
        self.assertGreater(seen, 0)
        target.send()
        self.assertGreater(target.done()['rounds'], 0)
        target.finish()

    def test_2000_threads_a_second(self):
        began = time.monotonic()
        # With a stop at each call that takes its time where all else is busy as well.
        count = mwlive.attempts(2000, 6000) if mwlive.config.engine == 'jump' else mwlive.attempts(600, 2000)
        self.exact('thread_storm', count, seconds=3 * mwlive.PATIENCE)
        print(f'{count / (time.monotonic() - began):.0f} threads a second, attach and report included', flush=True)


if __name__ == '__main__':
    mwlive.main()
