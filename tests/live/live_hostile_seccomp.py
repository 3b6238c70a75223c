#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Targets under seccomp, strict and by filters, and without new privileges: watched or refused, never let out."""
import signal
import unittest

import mwjump
import mwlive
import mwusers

# Modes of seccomp_filtered: how it ends of what it may not do, and which engines a filter permits that is as this one.
MODES = {
    'strict': (-signal.SIGKILL, ()),
    'few': (-signal.SIGSYS, ()),
    'deaf': (-signal.SIGSYS, ('jump',)),
    'errno': (0, ('jump', 'trap')),
    'service': (-signal.SIGSYS, ('jump', 'trap')),
    'container': (0, ('jump', 'trap')),
    'sleeper': (0, ()),
    'one-thread': (0, ('jump',)),
    'first-thread': (0, ('jump',)),
    'later': (-signal.SIGSYS, ('jump', 'trap')),
    'none': (0, ('jump', 'trap')),
}
# Those that are there before memwatch comes.
FILTERED = [mode for mode in MODES if mode not in ('later', 'none')]


class HostileSeccomp(unittest.TestCase):
    @staticmethod
    def filters(pid):
        """What each thread may do."""
        fields = ('Seccomp', 'Seccomp_filters', 'NoNewPrivs')
        return [[mwlive.status(tid).get(field) for field in fields] for tid in mwlive.tids(pid)]

    def watched(self, mode, engine=None, target_prefix=(), memwatch_prefix=(), options=()):
        """It works and ends as it would, its filters are what they were, whether memwatch could watch it or not."""
        if target_prefix:
            target = mwusers.target_as(self, target_prefix, 'seccomp_filtered', mode)
        else:
            target = mwlive.Target(self, 'seccomp_filtered', mode)
        filters = self.filters(target.pid)
        attempt = mwjump.Attempt(self, target, engine, memwatch_prefix, options)
        self.assertEqual(self.filters(target.pid), filters)
        attempt.finish(MODES[mode][0])
        return attempt

    def check_as_root(self, *modes):
        """Watched where the filter permits what that takes; else refused, and watched at the user's word."""
        mwusers.need(self, ('true',))
        for mode in modes:
            permitted = MODES[mode][1]
            for engine in (mwlive.config.engine, 'auto'):
                with self.subTest(mode, engine=engine):
                    attempt = self.watched(mode, engine)
                    if engine in permitted or (permitted and engine == 'auto'):
                        self.assertIsNotNone(attempt.report, attempt.error)
                        self.assertIn(attempt.report['engine']['name'], permitted)
                        continue
                    self.assertIsNone(attempt.report, attempt.error)
                    self.assertRegex(attempt.error, r"engine \w+ can't be used on process \d+: its seccomp filter .*"
                                                    r'\([a-z_0-9, ]+\)')
                    self.assertIn('--unsafe', attempt.error)
                    attempt = self.watched(mode, engine, options=('--unsafe',))
                    self.assertIsNotNone(attempt.report, attempt.error)

    def check_as_user(self, target_prefix, memwatch_prefix, *modes):
        """memwatch may not suspend seccomp then: what it needs that for it does not do, and says so."""
        for mode in modes:
            for engine in (mwlive.config.engine, 'auto'):
                with self.subTest(mode, engine=engine):
                    attempt = self.watched(mode, engine, target_prefix, memwatch_prefix)
                    if attempt.report is None:
                        self.assertRegex(attempt.error, 'seccomp|time stamp counter')
                        # Of the other engine, too: what it can do only its user's word may keep it from.
                        self.assertTrue(engine != 'auto' or '--unsafe' in attempt.error, attempt.error)

    def test_seccomp_strict(self):
        """It may not read the time stamp counter either, which recording inside it takes."""
        mwusers.need(self, ('true',))
        for engine in ('trap', 'jump', 'auto'):
            with self.subTest(engine):
                attempt = self.watched('strict', engine)
                self.assertIsNone(attempt.report)
                self.assertRegex(attempt.error, r'its seccomp filter .*\((mmap, munmap|rt_sigaction)')
                attempt = self.watched('strict', engine, options=('--unsafe',))
                if engine == 'jump':
                    self.assertIn('time stamp counter', attempt.error)
                else:
                    self.assertEqual(attempt.report['engine']['name'], 'trap')

    def test_seccomp_filter_of_few_calls(self):
        self.check_as_root('few', 'errno')

    def test_seccomp_filter_of_signal_actions(self):
        self.check_as_root('deaf')

    def test_seccomp_filters_of_services(self):
        """What those who start services and containers put them under is no obstacle."""
        self.check_as_root('service', 'container')

    def test_seccomp_filter_of_restarts(self):
        """One thread waits for long. That it is stopped must not end it, whether it is watched then or not."""
        self.check_as_root('sleeper')

    def test_seccomp_filter_in_one_thread(self):
        self.check_as_root('one-thread', 'first-thread')

    def test_seccomp_filter_inside_the_window(self):
        self.check_as_root('later')

    def test_seccomp_without_cap_sys_admin(self):
        prefix = mwusers.need(self, mwusers.NO_SYS_ADMIN)
        self.check_as_user((), prefix, *FILTERED)

    def test_seccomp_as_user(self):
        nobody = mwusers.need(self, mwusers.NOBODY)
        mwusers.share_memwatch(self)
        self.check_as_user(nobody, nobody, *FILTERED)

    def test_no_new_privs(self):
        """Of the target, of memwatch, of both."""
        prefix = mwusers.need(self, mwusers.NO_NEW_PRIVILEGES)
        for target_prefix in (), prefix:
            for memwatch_prefix in (), prefix:
                with self.subTest(target=target_prefix, memwatch=memwatch_prefix):
                    attempt = self.watched('none', None, target_prefix, memwatch_prefix)
                    self.assertIsNotNone(attempt.report, attempt.error)

    def test_no_new_privs_as_user(self):
        nobody = mwusers.need(self, mwusers.NOBODY)
        mwusers.share_memwatch(self)
        attempt = self.watched('none', None, nobody, nobody)
        self.assertIsNotNone(attempt.report, attempt.error)


if __name__ == '__main__':
    mwlive.main()
