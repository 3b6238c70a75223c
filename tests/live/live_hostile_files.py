#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Targets whose program and libraries are deleted, replaced or cut short while they run: an upgrade, a slip."""
import contextlib
import os
import shutil
import tempfile
import unittest

import mwlive


class Installed:
    """A program and two libraries of it in a directory of their own, running."""

    def __init__(self, test, idle='libplugin_own.so'):
        self.test = test
        self.directory = tempfile.mkdtemp(prefix='mwlive-files-')
        test.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.program, self.library, self.idle = (os.path.join(self.directory, name)
                                                 for name in ('program', 'lib.so', 'idle.so'))
        for name, path in (('library_replaced', self.program), ('libplugin_leak.so', self.library), (idle, self.idle)):
            shutil.copy(mwlive.target_path(name), path)
        self.target = mwlive.Target(test, 'library_replaced', argv=[self.program, self.library, self.idle])
        self.before = mwlive.Snapshot(self.target.pid)

    def upgrade(self, path, other):
        """As a package manager does: the new file is made beside the old one, and takes its name."""
        shutil.copy(mwlive.target_path(other), path + '.new')
        os.rename(path + '.new', path)

    def upgrade_all(self):
        self.upgrade(self.program, 'leak_service')
        self.upgrade(self.library, 'libplugin_mi.so')
        self.upgrade(self.idle, 'libplugin_new.so')

    def delete_all(self):
        for path in self.program, self.library, self.idle:
            os.unlink(path)

    def watch(self, during=None):
        """A window around its work, exact, with every function's name and its file's as it was mapped."""
        watch = mwlive.Watch(self.test, self.target.pid)
        if during:
            during()
        self.target.go()
        answer = self.target.done()
        report = watch.stop(intact=False)
        self.check_unchanged(watch)
        mwlive.compare(self.test, answer, report)
        leak, = mwlive.select(report, 'plugin_leak')
        self.test.assertEqual(mwlive.functions(leak)[:2], ['plugin_leak', 'main'])
        self.test.assertEqual([f['module'] for f in leak['frames'][:2]], [self.library, self.program])
        own, = mwlive.select(report, 'upgraded_leak')
        self.test.assertEqual((own['frames'][0]['module'], own['frames'][0]['function']),
                              (self.program, 'upgraded_leak'))
        return report

    def check_unchanged(self, watch, but=()):
        """Its code, by address, is what it was, but for files that somebody else has changed; nothing is left."""
        pid = self.target.pid
        for m, text in watch.snapshots[0].text.items():
            if m[4].removesuffix(' (deleted)') not in but:
                self.test.assertEqual(mwlive.read_memory(pid, m[0], m[1] - m[0]) == text, True, m)
        places = {(m[0], m[1]) for m in self.before.maps}
        self.test.assertEqual([m for m in mwlive.mappings(pid) if mwlive.is_ours(m[4]) or
                               ('x' in m[2] and (m[0], m[1]) not in places)], [])
        for tid in mwlive.tids(pid):
            self.test.assertEqual(mwlive.status(tid)['TracerPid'], '0')
            self.test.assertNotIn(mwlive.state(tid), 'tT')


class HostileFiles(unittest.TestCase):
    def test_program_and_libraries_replaced_before_the_window(self):
        """The names are those of the files that run, not of those that have their places."""
        installed = Installed(self)
        installed.upgrade_all()
        installed.watch()
        installed.target.finish()

    def test_program_and_libraries_deleted_before_the_window(self):
        installed = Installed(self)
        installed.delete_all()
        installed.watch()
        installed.target.finish()

    def test_directory_deleted_before_the_window(self):
        installed = Installed(self)
        shutil.rmtree(installed.directory)
        installed.watch()
        installed.target.finish()

    def test_program_and_libraries_replaced_in_the_window(self):
        installed = Installed(self)
        installed.watch(installed.upgrade_all)
        installed.target.finish()

    def test_program_and_libraries_deleted_in_the_window(self):
        installed = Installed(self)
        installed.watch(installed.delete_all)
        installed.target.finish()

    def test_replaced_by_something_else(self):
        """Not a program at all, a directory, a link to itself, a pipe that nobody writes to."""
        for what in 'text', 'directory', 'link', 'pipe':
            with self.subTest(what):
                installed = Installed(self)
                installed.delete_all()
                for path in installed.program, installed.library:
                    self.put(what, path)
                installed.watch()
                installed.target.finish()

    @staticmethod
    def put(what, path):
        if what == 'text':
            with open(path, 'w', encoding='ascii') as f:
                f.write('\x7fELF' + 'nothing of the kind\n' * 1000)
        elif what == 'directory':
            os.mkdir(path)
        elif what == 'link':
            os.symlink(path, path)
        else:
            os.mkfifo(path)

    def spoiled(self, idle, spoil, early):
        """A library that the target does not call is spoiled in place. What it calls itself is watched as ever."""
        installed = Installed(self, idle)
        target = installed.target
        if early:
            spoil(installed.idle)
            # Code that is not there can't be compared, nor looked at by the harness's own means.
            watch = self.attach_to_spoiled(installed)
        else:
            # What is called of it from then on is not seen, and the report says so.
            watch = mwlive.Watch(self, target.pid, complete=None)
            spoil(installed.idle)
        target.go()
        answer = target.done()
        report = watch.stop(intact=False)
        installed.check_unchanged(watch, but=(installed.idle,))
        mwlive.compare(self, answer, report)
        # In what is left of that file, or has come into it, nothing of ours may stand either.
        with open(installed.idle, 'rb') as f:
            content = f.read()
        for m in installed.before.text:
            if m[4] == installed.idle:
                with contextlib.suppress(OSError):
                    now = mwlive.read_memory(target.pid, m[0], m[1] - m[0])
                    expected = content[m[3]:m[3] + len(now)].ljust(len(now), b'\0')
                    self.assertEqual(now == expected, True, 'what stands in the library is not what its file says')
        target.finish()

    def attach_to_spoiled(self, installed):
        snapshot = mwlive.Snapshot
        self.addCleanup(setattr, mwlive, 'Snapshot', snapshot)
        mwlive.Snapshot = lambda pid: self.without_idle(snapshot, pid, installed.idle)
        watch = mwlive.Watch(self, installed.target.pid)
        mwlive.Snapshot = snapshot
        return watch

    @staticmethod
    def without_idle(snapshot, pid, idle):
        made = snapshot.__new__(snapshot)
        made.pid, made.maps = pid, mwlive.mappings(pid)
        made.text = {m: mwlive.read_memory(pid, m[0], m[1] - m[0]) for m in made.maps
                     if 'x' in m[2] and m[4] and m[4] not in ('[vsyscall]', idle)}
        return made

    @staticmethod
    def truncate(path):
        os.truncate(path, 0)

    @staticmethod
    def truncate_half(path):
        os.truncate(path, 4096)

    @staticmethod
    def overwrite(path):
        """As cp does over a file: its contents are another's."""
        shutil.copyfile(mwlive.target_path('libplugin_leak.so'), path)

    def check_spoiled(self, spoil):
        # One that has nothing to be hooked, one with an operator new.
        for idle in 'libdetlib.so', 'libplugin_new.so':
            for early in False, True:
                with self.subTest(idle, early=early):
                    self.spoiled(idle, spoil, early)

    def test_library_truncated_in_place(self):
        self.check_spoiled(self.truncate)

    def test_library_cut_short_in_place(self):
        self.check_spoiled(self.truncate_half)

    def test_library_overwritten_in_place(self):
        self.check_spoiled(self.overwrite)


if __name__ == '__main__':
    mwlive.main()
