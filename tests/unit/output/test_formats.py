#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_formats.py GOLDEN MEMWATCH: JUnit reports are valid XML of its schema and count what is in them, and SARIF reports hang
together: those that the unit tests made, of hostile names too, and those of real recordings, which hold what JSON has.
tests/browser/sarif.test.mjs has the schema of SARIF."""
import glob
import json
import os
import re
import subprocess
import sys
import unittest
import urllib.parse
import xml.etree.ElementTree as ET

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN, MEMWATCH = sys.argv[1:3]
GROWS = {'steady growth', 'stepwise growth', 'accelerating', 'growing container'}
OUTCOMES = {'failures': 'failure', 'errors': 'error', 'skipped': 'skipped'}


def read(path):
    with open(path, 'rb') as f:
        return f.read()


def report(recording, *options):
    return subprocess.run([MEMWATCH, 'report', recording, *options], check=True, stdin=subprocess.DEVNULL, timeout=60,
                          capture_output=True).stdout


RECORDINGS = sorted(glob.glob(f'{GOLDEN}/recordings/*.mw'))


class Formats(unittest.TestCase):
    def documents(self, ending, option):
        golden = sorted(glob.glob(f'{GOLDEN}/*.{ending}'))
        self.assertTrue(golden and RECORDINGS)
        yield from ((path, read(path)) for path in golden)
        yield from ((path, report(path, option, '-')) for path in RECORDINGS)

    def check_counts(self, element):
        for name, tag in OUTCOMES.items():
            if name in element.attrib:
                self.assertEqual(int(element.get(name)), len(list(element.iter(tag))), (element.get('name'), name))
        self.assertEqual(int(element.get('tests')), len(list(element.iter('testcase'))))

    def test_junit(self):
        for path, text in self.documents('junit.xml', '--junit'):
            with self.subTest(path):
                done = subprocess.run(['xmllint', '--noout', '--nonet', '--schema', f'{HERE}/junit.xsd', '-'], input=text,
                                      capture_output=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                root = ET.fromstring(text)
                self.check_counts(root)
                names = [case.get('classname') + '\n' + case.get('name') for case in root.iter('testcase')]
                self.assertEqual(len(names), len(set(names)), 'each case has a name of its own')
                for suite in root:
                    self.check_counts(suite)

    def check_location(self, run, location):
        place = location.get('physicalLocation')
        if not place:
            return
        uri, base = place['artifactLocation']['uri'], place['artifactLocation'].get('uriBaseId')
        self.assertRegex(uri, r'\A[A-Za-z0-9._~/%-]+\Z' if not uri.startswith('file:///') else r'\Afile:///[A-Za-z0-9._~/%-]+\Z')
        self.assertTrue(urllib.parse.unquote_to_bytes(uri))
        self.assertFalse(uri.startswith(('.', '/')), uri)
        if base:
            self.assertRegex(run['originalUriBaseIds'][base]['uri'], r'\Afile:///.*/\Z')
        self.assertGreater(place.get('region', {}).get('startLine', 1), 0)

    def test_sarif(self):
        for path, text in self.documents('sarif', '--sarif'):
            with self.subTest(path):
                (run,) = json.loads(text.decode())['runs']
                for result in run['results']:
                    self.assertEqual(run['tool']['driver']['rules'][result['ruleIndex']]['id'], result['ruleId'])
                    # Braces are doubled, or they would be placeholders.
                    self.assertNotRegex(re.sub(r'\{\{|\}\}', '', result['message']['text']), '[{}]')
                    self.assertNotRegex(result['message']['text'], r'(?<!\\)\]\(')
                    frames = [frame for stack in result.get('stacks', []) for frame in stack['frames']]
                    steps = [step for flow in result.get('codeFlows', []) for thread in flow['threadFlows']
                             for step in thread['locations']]
                    self.assertTrue(all('physicalLocation' in step['location'] for step in steps))
                    for location in result.get('locations', []) + [each['location'] for each in frames + steps]:
                        self.check_location(run, location)

    def test_content(self):
        """Both have what JSON has."""
        found = 0
        for path in RECORDINGS:
            document = json.loads(report(path, '--json', '-'))
            reports = document.get('processes', [document])
            (run,) = json.loads(report(path, '--sarif', '-'))['runs']
            suites = ET.fromstring(report(path, '--junit', '-'))
            suspects = [each for process in reports for each in process['suspects']]
            growing = [each for each in suspects if each['verdict'] in GROWS]
            found += len(suspects)
            self.assertEqual([(r['properties']['bytes'], r['properties']['blocks'], r['properties']['stackIds'])
                              for r in run['results']],
                             [(each['bytes'], each['blocks'], each['stacks']) for each in growing], path)
            self.assertEqual(len(list(suites.iter('testcase'))), len(suspects) + len(reports))
            self.assertEqual(len(list(suites.iter('failure'))), len(growing))
            self.assertEqual([suite.find('properties/property[@name="pid"]').get('value') for suite in suites],
                             [str(process['target']['pid']) for process in reports])
        self.assertTrue(found)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
