#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A target in a mount and pid namespace of its own, whose files the host's names do not lead to."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import mwlive


class Container(unittest.TestCase):
    def build_root(self, name):
        root = tempfile.mkdtemp(prefix='mwlive-root-')
        # Of a name that no other test's target has.
        inside = f'/app/{os.path.basename(root)}'
        self.addCleanup(shutil.rmtree, root, ignore_errors=True)
        program = mwlive.target_path(name)
        files = [program]
        listed = subprocess.run(['ldd', program], capture_output=True, text=True, check=False).stdout
        files += re.findall(r'(/\S+) \(0x', listed)
        for path in files:
            there = root + (inside if path == program else path)
            os.makedirs(os.path.dirname(there), exist_ok=True)
            shutil.copy(os.path.realpath(path), there)
        return root, inside

    def check(self, name):
        unshare = ['unshare', '--mount', '--pid', '--fork', '--kill-child']
        if os.geteuid() != 0:
            unshare[1:1] = ['--user', '--map-root-user']
        if subprocess.run([*unshare, 'true'], capture_output=True, check=False).returncode != 0:
            self.skipTest('namespaces may not be made here')
        root, inside = self.build_root(name)

        def find(process):
            with open(f'/proc/{process.pid}/task/{process.pid}/children', encoding='utf-8') as f:
                return int(f.read().split()[0])
        target = mwlive.Target(self, name, argv=[*unshare, 'chroot', root, inside, '500'], pid=find)
        watch = mwlive.Watch(self, target.pid)
        target.go()
        answer = target.done()
        report = watch.stop()
        mwlive.compare(self, answer, report)
        leak, = mwlive.select(report, 'simple_leak')
        self.assertEqual(leak['frames'][0]['module'], inside)
        # By the path that it has there, which no process of the host's has.
        document, _ = mwlive.memwatch(self, '-p', inside, '-d', '0.1', '--engine', mwlive.config.engine, '--json', '-')
        self.assertEqual(json.loads(document)['target']['pid'], target.pid)
        target.finish()

    def test_dynamic(self):
        self.check('simple')

    def test_static(self):
        self.check('simple_static')


if __name__ == '__main__':
    mwlive.main()
