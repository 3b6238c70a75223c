#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Targets in namespaces of their own: files, processes and users by other names than memwatch knows them by."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import mwjump
import mwlive
import mwusers

# A container's first process: it makes the directory its root and runs the program there, as its process 1.
START = '''
set -e
root=$1
shift
mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
pivot_root . old
umount -l old
exec "$@"
'''


def namespaces(test, *options):
    """A command that runs another in new namespaces, or a skip."""
    command = ['unshare', '--fork', '--kill-child', *options]
    if subprocess.run([*command, 'true'], capture_output=True, check=False).returncode != 0:
        test.skipTest('namespaces may not be made here')
    return command


class HostileNamespaces(unittest.TestCase):
    def root_with(self, name):
        """A directory with a target, its libraries, and what it takes to become a root."""
        root = tempfile.mkdtemp(prefix='mwlive-root-')
        self.addCleanup(shutil.rmtree, root, ignore_errors=True)
        os.chmod(root, 0o755)
        program = mwlive.target_path(name)
        for path, inside in ((program, '/app/program'), (shutil.which('umount'), '/bin/umount'),
                             (shutil.which('sh'), '/bin/sh')):
            listed = subprocess.run(['ldd', path], capture_output=True, text=True, check=False).stdout
            for library in (*re.findall(r'(/\S+) \(0x', listed), path):
                place = root + (inside if library == path else library)
                os.makedirs(os.path.dirname(place), exist_ok=True)
                shutil.copy(os.path.realpath(library), place)
        for directory in 'proc', 'old':
            os.makedirs(os.path.join(root, directory))
        return root

    @staticmethod
    def first_child(process):
        def find():
            with open(f'/proc/{process.pid}/task/{process.pid}/children', encoding='utf-8') as f:
                return [int(pid) for pid in f.read().split()]
        return mwlive.wait_until(find, 'it has a child')[0]

    def contained(self, name, *arguments, options=(), prefix=()):
        """A target that is process 1 of a container of its own."""
        command = namespaces(self, '--mount', '--pid', *options)
        root = self.root_with(name)
        return mwlive.Target(self, name, pid=self.first_child, argv=[
            *prefix, *command, 'sh', '-c', START, 'sh', root, '/app/program', *map(str, arguments)])

    def check(self, target, program, prefix=()):
        """Exact, of the host's pids, with the names that its files have inside."""
        host = mwlive.tids(target.pid)
        inside = [int(mwlive.status(t)['NSpid'].split()[-1]) for t in host]
        self.assertIn(1, inside)
        self.assertNotEqual(host, inside)
        mapped = mwjump.steady_mappings(target.pid)
        attempt = mwjump.Attempt(self, target, None, prefix)
        report = attempt.finish()
        self.assertIsNotNone(report, attempt.error)
        self.assertEqual(report['target']['pid'], target.pid)
        self.assertLessEqual({t['tid'] for t in report['threads']}, set(host))
        self.assertEqual(report['target']['exe'], program)
        self.assertGreater(len(mapped), 0)
        return report

    def check_workers(self, report, program):
        """The stacks of `threads`: whose they are, from which file."""
        names = {t['name']: t for t in report['threads']}
        for number in range(4):
            self.assertEqual(names[f'worker-{number}']['impacting']['count'], 50)
            stack, = mwlive.select(report, f'threads_leak_{number}')
            self.assertEqual(stack['frames'][0]['module'], program)
            self.assertIn('work', mwlive.functions(stack))

    def test_container_with_own_root_and_proc(self):
        if os.geteuid() != 0:
            self.skipTest('not root')
        target = self.contained('threads', 4, 2000, 50)
        self.assertEqual(os.listdir(f'/proc/{target.pid}/root/proc/1/task')[0], '1')
        self.check_workers(self.check(target, '/app/program'), '/app/program')

    def test_container_in_a_user_namespace(self):
        """Its root is nobody outside."""
        nobody = mwusers.need(self, mwusers.NOBODY)
        target = self.contained('threads', 4, 2000, 50, options=('--user', '--map-root-user'), prefix=nobody)
        self.assertEqual(mwlive.status(target.pid)['Uid'].split()[0], '65534')
        self.check_workers(self.check(target, '/app/program'), '/app/program')

    def test_user_namespace_seen_by_its_owner(self):
        """The same user outside has every right to it."""
        nobody = mwusers.need(self, mwusers.NOBODY)
        target = self.contained('threads', 4, 2000, 50, options=('--user', '--map-root-user'), prefix=nobody)
        mwusers.share_memwatch(self)
        report = self.check(target, '/app/program', nobody)
        self.check_workers(report, '/app/program')

    def test_forking_target_in_a_pid_namespace(self):
        """Children whose pids inside are other processes' outside."""
        if os.geteuid() != 0:
            self.skipTest('not root')
        target = self.contained('children_forked')
        watch = mwlive.Watch(self, target.pid)
        target.go()
        answer = target.done()
        for number in range(6):
            answer.pop(f'child{number}')
        mwlive.compare(self, answer, watch.stop())
        for child in self.descendants(target.pid):
            self.assertEqual([m for m in mwlive.mappings(child) if mwlive.is_ours(m[4])], [])
            if mwlive.mappings(child):
                mwjump.check_text_of_files(self, child)
        target.finish()

    def descendants(self, pid):
        with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as f:
            children = [int(child) for child in f.read().split()]
        return children + [other for child in children for other in self.descendants(child)]

    def test_memwatch_inside_the_pid_namespace(self):
        """There the pids are those that it sees itself."""
        if os.geteuid() != 0:
            self.skipTest('not root')
        command = namespaces(self, '--mount', '--pid', '--mount-proc')
        script = '''
            "$1" 4 2000 50 < "$3/in" > "$3/out" &
            target=$!
            exec 3> "$3/in"
            until [ -e "$3/looked" ]; do sleep 0.05; done
            "$2" -p $target -d 1000 --engine "$4" --quiet --json "$3/report" > "$3/log" 2>&1 &
            memwatch=$!
            until [ -e "$3/begun" ]; do sleep 0.05; done
            printf x >&3
            until grep -q done "$3/out"; do sleep 0.05; done
            kill -INT $memwatch
            wait $memwatch && printf x >&3 && wait $target && grep -m 1 ready "$3/out"
        '''
        directory = tempfile.mkdtemp(prefix='mwlive-')
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        os.mkfifo(os.path.join(directory, 'in'))
        process = subprocess.Popen([*command, 'bash', '-c', script, 'bash', mwlive.target_path('threads'),
                                    mwlive.config.memwatch, directory, mwlive.config.engine],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(mwlive.kill_quietly, process)
        shell = self.first_child(process)
        target = mwlive.wait_until(lambda: self.child_called(shell, 'threads'), 'the target starts')
        mwlive.wait_until(lambda: self.says(directory, 'out', 'ready'), 'the target is ready')
        before = mwlive.Snapshot(target)
        self.touch(directory, 'looked')
        mwlive.wait_until(lambda: process.poll() is not None or before.touched() and
                          all(mwlive.state(t) != 't' for t in mwlive.tids(target)), 'memwatch attaches')
        self.touch(directory, 'begun')
        out, err = process.communicate(timeout=mwlive.PATIENCE)
        with open(os.path.join(directory, 'log'), encoding='utf-8') as f:
            self.assertEqual((process.returncode, err, f.read()), (0, '', ''), out)
        report, = mwlive.load_reports(os.path.join(directory, 'report'))
        mwlive.check_report(self, report)
        self.assertEqual(out, f'ready {report["target"]["pid"]}\n')
        self.assertNotEqual(report['target']['pid'], target)
        self.assertEqual(report['totals']['heap']['size']['count'], 4 * 2050)
        self.check_workers(report, mwlive.target_path('threads'))

    @staticmethod
    def touch(directory, name):
        with open(os.path.join(directory, name), 'w', encoding='ascii'):
            pass

    @staticmethod
    def says(directory, name, what):
        path = os.path.join(directory, name)
        if not os.path.exists(path):
            return False
        with open(path, encoding='utf-8') as f:
            return what in f.read()

    @staticmethod
    def child_called(pid, name):
        with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as f:
            return next((int(c) for c in f.read().split() if mwlive.status(c).get('Name') == name), None)

    def check_without_proc(self, prefix, message):
        """Neither a process nor a command is watched, and it is said at once why not."""
        for what in ('-p', '1', '-d', '1'), ('--', 'true'):
            with self.subTest(what):
                run = subprocess.run([*prefix, mwlive.config.memwatch, '--engine', mwlive.config.engine, *what],
                                     stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                     timeout=mwlive.PATIENCE, check=False)
                self.assertEqual((run.returncode, run.stdout), (1, ''), run.stderr)
                self.assertRegex(run.stderr, rf'^memwatch: {message}.*mount -t proc')

    def test_memwatch_without_proc(self):
        prefix = namespaces(self, '--mount')
        self.check_without_proc([*prefix, 'sh', '-c', 'umount -l /proc && exec "$@"', 'sh'], '/proc is not mounted')

    def test_memwatch_with_the_proc_of_another_namespace(self):
        self.check_without_proc(namespaces(self, '--pid'), '/proc is of another pid namespace')


if __name__ == '__main__':
    mwlive.main()
