#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--fail-on: status 3 and a line that says why where a process leaks or grows, 0 where it does not, and 1 where that could not be
seen; and the reports for pipelines of the same windows."""
import json
import os
import re
import shutil
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ET

import mwlive

STEPS = 450
LEAK = r'memwatch: --fail-on leak: growers \(pid (\d+)\): grow_leak\(\) growers\.c:\d+: \w+( growth)?, ' \
       r'[\d.,]+ [KM]iB in \d+ blocks not freed in [\d.]+ s, [\d.]+ [KMG]iB an hour\n'


class FailOn(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix='mwlive-fail-')
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.recording, self.junit, self.sarif = (os.path.join(self.directory, name) for name in ('r.mw', 'r.xml', 'r.sarif'))

    def watch(self, status, *all_modes, options):
        """Processes that grow in these ways, in a window that the machine did not hold up: what is said of them."""
        for _ in range(5):
            targets = [mwlive.Target(self, 'growers', STEPS, *modes) for modes in all_modes]
            watch = mwlive.Watch(self, *(target.pid for target in targets), status=None, options=(
                '-o', self.recording, '--junit', self.junit, '--sarif', self.sarif, '--force', *options))
            for target in targets:
                target.go()
            longest = max(target.done()['longest_step_ns'] for target in targets)
            watch.stop()
            for target in targets:
                target.finish()
            if longest < 0.05e9 * watch.reports[0]['window']['seconds']:
                break
        self.pids = [target.pid for target in targets]
        self.assertEqual(watch.process.returncode, status, watch.messages)
        return watch.messages

    def report(self, status, *options):
        """The recording's: messages."""
        return mwlive.memwatch(self, 'report', self.recording, '--quiet', *options, status=status)[1]

    def forms(self):
        found = []
        for path in (self.junit, self.sarif):
            with open(path, encoding='utf-8') as f:
                found.append(f.read())
        return found

    def results(self):
        with open(self.sarif, encoding='utf-8') as f:
            return json.load(f)['runs'][0]['results']

    def failures(self):
        return ET.parse(self.junit).getroot().findall('testsuite/testcase[failure]')

    def test_leak(self):
        said = self.watch(3, ('leak', 'requests'), options=('--fail-on', 'leak'))
        self.assertRegex(said, rf'\A{LEAK}\Z')
        self.check_forms()
        # The recording comes to the same, and has the same forms.
        live = self.forms()
        self.assertEqual(self.report(3, '--fail-on', 'leak', '--junit', self.junit, '--sarif', self.sarif), said)
        self.assertEqual(self.forms(), live)
        self.assertEqual(self.report(0), '')
        # Above and below its rate.
        rate = self.results()[0]['properties']['bytesPerHour']
        self.assertIn('grow_leak()', self.report(3, '--fail-on', f'growth:{int(rate / 2)}'))
        self.assertEqual(self.report(0, '--fail-on', 'growth:1T', '--sarif', self.sarif), '')
        self.assertEqual([result['level'] for result in self.results()], ['warning'])
        # A file that can't be written comes first.
        self.assertIn('cannot write', self.report(1, '--fail-on', 'leak', '--json', '/dev/full'))

    def check_forms(self):
        case, = self.failures()
        self.assertEqual(case.get('classname'), 'memwatch.growers')
        self.assertRegex(case.get('name'), r'\Agrow_leak\(\) growers\.c:\d+\Z')
        self.assertEqual(case.find('failure').get('type'), 'leak')
        self.assertIn('growers!grow_leak', case.find('failure').text)
        result, = self.results()
        place = result['locations'][0]['physicalLocation']
        self.assertEqual((result['ruleId'], result['level']), ('leak', 'error'))
        self.assertRegex(place['artifactLocation']['uri'], r'(\A|/)tests/targets/growers\.c\Z')
        self.assertEqual(f'growers.c:{place["region"]["startLine"]}', case.get('name').split()[1])
        names = [re.sub(r'.*!|\+.*', '', step['location']['message']['text'])
                 for step in result['codeFlows'][0]['threadFlows'][0]['locations']]
        self.assertLess(names.index('main'), names.index('grow_leak'))

    def test_no_leak(self):
        said = self.watch(0, ('requests', 'cache'), options=('--fail-on', 'leak', '--fail-on', 'growth'))
        self.assertNotIn('grow_', said)
        self.assertEqual((self.failures(), self.results()), ([], []))
        self.report(0, '--fail-on', 'leak')

    def test_container(self):
        self.assertEqual(self.watch(0, ('buffer', 'requests'), options=('--fail-on', 'leak')).count('grow_buffer'), 0)
        self.assertIn(': grow_buffer()', self.report(3, '--fail-on', 'growth'))

    def test_several(self):
        """The process that leaks is named."""
        said = self.watch(3, ('requests',), ('leak', 'requests'), options=('--fail-on', 'leak'))
        self.assertEqual(int(re.fullmatch(LEAK, said)[1]), self.pids[1])
        suites = ET.parse(self.junit).getroot().findall('testsuite')
        self.assertEqual([(suite.get('name'), suite.get('failures')) for suite in suites], [('growers', '0'), ('growers 2', '1')])
        self.assertEqual(self.report(0, '--fail-on', 'leak', '-p', self.pids[0]).count('grow_leak'), 0)

    def test_command(self):
        """It ends before the window does, and what leaks is its child; children that live for a moment do no harm."""
        options = ('--quiet', '--engine', mwlive.config.engine, *mwlive.patient(), '--fail-on', 'leak', '-d', '60')
        service = mwlive.target_path('leak_service')
        mwlive.memwatch(self, *options, '--', 'sh', '-c', 'ls / >/dev/null; sleep 2; true')
        said = mwlive.memwatch(self, *options, '--', 'sh', '-c', f'ls / >/dev/null; {service} 3; true', status=3)[1]
        self.assertRegex(said, r'--fail-on leak: leak_service \(pid \d+\): leak_session_record\(\) leak_service\.c:\d+: ')

    def test_left_out(self):
        """A child that can't be watched: its tracer has it from before its exec on, as it asks for that itself."""
        traced = ('import ctypes, os\n'
                  'ptrace = ctypes.CDLL(None).ptrace\n'
                  'child = os.fork()\n'
                  'if not child:\n'
                  '    ptrace(0, 0, 0, 0)\n'
                  '    os.execvp("sleep", ["sleep", "3"])\n'
                  'os.waitpid(child, 0)\n'
                  'ptrace(7, child, 0, 0)\n'
                  'os.waitpid(child, 0)\n')
        _, said = mwlive.memwatch(self, '--quiet', '--engine', mwlive.config.engine, '--fail-on', 'leak', '--', 'sh', '-c',
                                  f"{sys.executable} -c '{traced}'; true", status=1)
        self.assertIn('nothing was found, but 1 process could not be watched', said)

    def test_ended_early(self):
        """The process is gone long before the end of the window: that is no success."""
        target = mwlive.Target(self, 'growers', 5, 'requests')
        watch = mwlive.Watch(self, target.pid, options=('-d', '60', '--fail-on', 'leak'), status=1)
        target.go()
        target.done()
        target.finish()
        watch.wait()
        self.assertRegex(watch.messages, r'--fail-on leak: nothing was found, but the window ended before its time: the process '
                                         r'(ended|exited)')
        self.assertTrue(os.path.exists(watch.json), 'the report is there')

    def test_too_short(self):
        target = mwlive.Target(self, 'growers', STEPS, 'leak')
        watch = mwlive.Watch(self, target.pid, options=('-d', '0.5', '--fail-on', 'leak'), status=1)
        target.go()
        watch.wait()
        self.assertRegex(watch.messages, 'nothing was found, but a window of .* is too short for a verdict')
        target.done()
        target.finish()

    def test_heap(self):
        """A look at a heap: blocks that are lost."""
        target = mwlive.Target(self, 'loses')
        target.go()
        target.done()
        _, said = mwlive.memwatch(self, 'heap', '-p', target.pid, '--quiet', '-o', self.recording, '--fail-on', 'leak', status=3)
        self.assertRegex(said, rf'\Amemwatch: --fail-on leak: loses \(pid {target.pid}\): [\d.]+ [KM]iB in [\d,]+ blocks are lost')
        self.assertEqual(self.report(3, '--fail-on', 'leak'), said)
        self.report(2, '--fail-on', 'growth')
        self.assertIn('--junit', self.report(2, '--junit', self.junit))
        target.finish()
        target = mwlive.Target(self, 'steady')
        mwlive.memwatch(self, 'heap', '-p', target.pid, '--quiet', '--fail-on', 'leak')
        target.finish()


if __name__ == '__main__':
    mwlive.main()
