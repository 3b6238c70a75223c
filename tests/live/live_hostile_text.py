#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that read their own code, and more. They may notice; nothing else may happen to them."""
import unittest

import mwlive


class Text(unittest.TestCase):
    def test_sums_of_its_own_code(self):
        answer, report = mwlive.observe(self, 'selfread', 'watch')
        mwlive.compare(self, answer, report)
        self.assertEqual(answer['unchanged'], 0, 'the window had not begun')

    def test_reads_every_mapping(self):
        """What memwatch has mapped there can be read like the rest."""
        answer, report = mwlive.observe(self, 'selfread', 'every')
        mwlive.compare(self, answer, report)

    def test_puts_its_own_code_back(self):
        if mwlive.config.engine == 'trap':
            self.skipTest('returns of calls lead to a breakpoint in code: to take that away is more than reading')
        target = mwlive.Target(self, 'selfread', 'mend')
        watch = mwlive.Watch(self, target.pid, complete=None)
        target.go()
        answer = target.done()
        report = watch.stop()
        self.assertGreater(answer['changed'], 0)
        seen = mwlive.total_of(mwlive.select(report, 'selfread_pair'))['size']['count']
        self.assertLessEqual(seen, answer['pairs'])
        target.finish()


if __name__ == '__main__':
    mwlive.main()
