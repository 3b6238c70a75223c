# SPDX-License-Identifier: MIT
"""What the tests of recordings share: keeping them, reporting them again, and what must hold between the two."""
import json
import os
import shutil
import subprocess
import tempfile

import mwlive


def directory(test):
    path = tempfile.mkdtemp(prefix='mwlive-rec-')
    test.addCleanup(shutil.rmtree, path, ignore_errors=True)
    return path


def run_report(path, *options):
    """memwatch report, whatever comes of it."""
    return subprocess.run([mwlive.config.memwatch, 'report', path, '--quiet', '--json', '-', *map(str, options)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=mwlive.PATIENCE,
                          check=False)


NO_SAMPLE = dict.fromkeys(('at', 'rss', 'pss', 'vsize', 'heap_impacting', 'vm_impacting'))


def check(test, report, complete=True):
    """What holds of every report, but that an interval may lie between two samples of memory."""
    mwlive.check_report(test, dict(report, memory=report['memory'] or [NO_SAMPLE]), complete)


def reports(test, path, *options, complete=True):
    """The reports of a recording that is whole, one a process; they are consistent."""
    run = run_report(path, *options)
    test.assertEqual((run.returncode, run.stderr), (0, ''), options)
    document = json.loads(run.stdout)
    found = document.get('processes', [document])
    for report in found:
        check(test, report, complete)
    return found


def interval(test, path, begin=0, end=None, complete=True):
    """The report of [begin, end), seconds."""
    options = ['--from', f'{begin:.9f}'] + (['--to', f'{end:.9f}'] if end is not None else [])
    report, = reports(test, path, *options, complete=complete)
    return report


class Kept:
    """memwatch attached to processes, keeping a recording."""

    def __init__(self, test, *pids, options=(), **more):
        self.test = test
        self.path = os.path.join(directory(test), 'recording.mw')
        self.watch = mwlive.Watch(test, *pids, options=('-o', self.path, *options), **more)

    def stop(self):
        """End the window; the reports of the live run. The recording gives the same."""
        self.watch.stop()
        self.check_same()
        return self.watch.reports

    def check_same(self):
        live = self.watch.reports
        again = reports(self.test, self.path, complete=self.watch.complete)
        self.test.assertEqual(len(live), len(again))
        for one, other in zip(live, again):
            compare(self.test, one, other)


def compare(test, one, other, where='report'):
    """Key by key, so that a difference is found in a large report."""
    test.assertEqual(type(one), type(other), where)
    if isinstance(one, dict):
        test.assertEqual(sorted(one), sorted(other), where)
        for key, value in one.items():
            compare(test, value, other[key], f'{where}.{key}')
    elif isinstance(one, list):
        test.assertEqual(len(one), len(other), where)
        for number, (a, b) in enumerate(zip(one, other)):
            compare(test, a, b, f'{where}[{number}]')
    else:
        test.assertEqual(one, other, where)
