#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How windows begin and end, several processes at once, launching, and programs whose file is gone."""
import datetime
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

import mwlive


class Window(unittest.TestCase):
    def start_service(self):
        service = subprocess.Popen([mwlive.target_path('leak_service'), '100'], stdin=subprocess.DEVNULL)
        self.addCleanup(mwlive.kill_quietly, service)
        mwlive.wait_until(lambda: len(mwlive.tids(service.pid)) == 5, 'the service runs')
        return service

    def test_duration(self):
        service = self.start_service()
        watch = mwlive.Watch(self, service.pid, options=('-d', '1.5'), busy=True)
        report, = watch.wait()
        watch.check_targets()
        self.assertEqual(report['window']['ended'], 'duration')
        self.assertAlmostEqual(report['window']['seconds'], 1.5, delta=0.4)
        self.assertGreaterEqual(len(report['memory']), 2)
        self.assertEqual(mwlive.functions(report['stacks'][0])[0], 'leak_session_record')
        self.assertIsNone(service.poll())

    def test_interrupt_and_terminate(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                service = self.start_service()
                watch = mwlive.Watch(self, service.pid, options=('-d', '50'), busy=True)
                self.assertEqual(watch.stop(number)['window']['ended'], 'interrupt')
                self.assertIsNone(service.poll())

    def test_again_and_again(self):
        service = self.start_service()
        for _ in range(8):
            watch = mwlive.Watch(self, service.pid, busy=True)
            report = watch.stop()
            self.assertGreaterEqual(report['totals']['heap']['size']['count'], 0)
            self.assertIsNone(service.poll())

    def test_two_processes(self):
        targets = [mwlive.Target(self, 'simple', 300), mwlive.Target(self, 'threads', 2, 300, 20)]
        watch = mwlive.Watch(self, *(t.pid for t in targets))
        for target in targets:
            target.go()
        answers = [t.done() for t in targets]
        watch.stop()
        by_pid = {r['target']['pid']: r for r in watch.reports}
        self.assertEqual(set(by_pid), {t.pid for t in targets})
        for target, answer in zip(targets, answers):
            mwlive.compare(self, answer, by_pid[target.pid])
            target.finish()

    def test_several_windows_end_at_one_time(self):
        """Whatever it takes to let each of the processes go. Told by the clock that they were recorded by."""
        targets = [mwlive.Target(self, 'threads_sleeping', 100) for _ in range(3)]
        for target in targets:
            target.go()
        watch = mwlive.Watch(self, *(t.pid for t in targets), busy=True)
        watch.stop()
        ends = [datetime.datetime.fromisoformat(r['window']['started']).timestamp() + r['window']['seconds']
                for r in watch.reports]
        self.assertAlmostEqual(max(ends), min(ends), delta=0.01)
        for target in targets:
            target.send()
            target.done()
            target.finish()

    def test_each_window_is_as_long_as_was_asked_for(self):
        """However long it takes to come to the others and to look at them; of both engines, and none misses a thing."""
        targets = [mwlive.Target(self, name, *arguments) for name, *arguments in
                   (('threads', 2, 'until', 50), ('threads_sleeping', 100), ('threads', 2, 'until', 50), ('unmovable',))]
        for target in targets[:3]:
            target.go()
        watch = mwlive.Watch(self, *(t.pid for t in targets), options=('-d', '0.5'), busy=True, engine='auto')
        watch.wait()
        self.assertEqual([r['window']['seconds'] for r in watch.reports], [0.5] * len(targets))
        self.assertEqual({r['window']['ended'] for r in watch.reports}, {'duration'})
        for report in watch.reports:
            self.assertLessEqual(report['engine']['stopped_share'], 1)
            self.assertLessEqual(max(sample['at'] for sample in report['memory']), 0.5)
        watch.check_targets()
        for target in targets:
            target.process.kill()
            target.process.wait()

    def test_launch(self):
        for command, status in ((['simple', '200'], 0), (['exits', 'status'], 3)):
            with self.subTest(command), tempfile.TemporaryDirectory() as directory:
                path = os.path.join(directory, 'report.json')
                run = subprocess.run([mwlive.config.memwatch, '--engine', mwlive.config.engine, *mwlive.patient(),
                                      '--quiet', '--json', path, '--', mwlive.target_path(command[0]), *command[1:]],
                                     stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=mwlive.PATIENCE, check=False)
                self.assertEqual(run.returncode, 0, run.stderr)
                report, = mwlive.load_reports(path)
                mwlive.check_report(self, report)
                self.assertEqual(report['target']['exit_status'], status)
                self.assertEqual(report['target']['command'], [mwlive.target_path(command[0]), *command[1:]])
                self.assertEqual(report['window']['ended'], 'exit')
                if command[0] == 'simple':
                    answer = dict(line.split('=') for line in run.stdout.splitlines() if '=' in line)
                    mwlive.compare(self, {k: int(v) for k, v in answer.items()}, report)

    def test_deleted_and_replaced_program(self):
        for replace in (False, True):
            with self.subTest(replace=replace), tempfile.TemporaryDirectory() as directory:
                program = os.path.join(directory, 'program')
                shutil.copy(mwlive.target_path('simple'), program)
                target = mwlive.Target(self, 'simple', argv=[program, '200'])
                os.unlink(program)
                if replace:
                    shutil.copy(mwlive.target_path('exact'), program)
                watch = mwlive.Watch(self, target.pid)
                target.go()
                answer = target.done()
                # The snapshot holds the text; there is no file to compare new mappings with.
                mwlive.compare(self, answer, watch.stop())
                target.finish()


if __name__ == '__main__':
    mwlive.main()
