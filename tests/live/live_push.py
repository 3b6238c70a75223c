#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Profiles that are sent to a server (--push): their forms, their labels, and what happens where they can't be sent."""
import base64
import email
import email.policy
import gzip
import http.server
import json
import os
import re
import socket
import subprocess
import tempfile
import threading
import unittest
import urllib.parse

import mwlive


class Receiver:
    """Takes what is sent to it. `answers`: the statuses that it answers with, the last one from then on."""

    def __init__(self, test, answers=(200,)):
        received = self.received = []
        self.answers = list(answers)
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers['Content-Length']))
                received.append((self.path, self.headers, body))
                answers = receiver.answers
                self.send_response(answers.pop(0) if len(answers) > 1 else answers[0])
                self.send_header('Content-Length', '0')
                self.end_headers()

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.url = f'http://127.0.0.1:{self.server.server_port}'
        thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        thread.start()
        test.addCleanup(thread.join, mwlive.PATIENCE)
        test.addCleanup(self.server.server_close)
        test.addCleanup(self.server.shutdown)


def total(profile):
    """The bytes that a profile (gzip) says are in use, by go tool pprof."""
    with tempfile.TemporaryDirectory(prefix='mwpush-') as directory:
        path = os.path.join(directory, 'profile.pb.gz')
        with open(path, 'wb') as f:
            f.write(profile)
        shown = subprocess.run(['go', 'tool', 'pprof', '-top', '-unit=B', '-sample_index=inuse_space', path], capture_output=True, text=True,
                               env=dict(os.environ, HOME=directory, PPROF_TMPDIR=directory), timeout=mwlive.PATIENCE, check=True).stdout
    return int(re.search(r'of (\d+)B total', shown).group(1))


def used(report):
    return sum(report['totals'][kind]['impacting']['bytes'] for kind in ('heap', 'vm'))


class Push(unittest.TestCase):
    def window(self, url, *options, status=0, seconds=1):
        """(report, messages) of a window in which a target works."""
        target = mwlive.Target(self, 'simple', 400, 1000)
        with tempfile.NamedTemporaryFile(suffix='.json') as file:
            process = subprocess.Popen([mwlive.config.memwatch, '-p', str(target.pid), '--engine', mwlive.config.engine, '-d', str(seconds),
                                        '--quiet', '--settle', '0', '--force', '--json', file.name, '--push', url,
                                        *mwlive.patient(), *map(str, options)],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            self.addCleanup(mwlive.kill_quietly, process)
            target.go()
            _, err = process.communicate(timeout=mwlive.PATIENCE)
            self.assertEqual(process.returncode, status, err)
            report = mwlive.load_reports(file.name)[0]
        target.done()
        target.finish()
        return report, err

    def check_labels(self, labels, report):
        self.assertEqual(labels['comm'], 'simple')
        self.assertEqual(labels['pid'], str(report['target']['pid']))
        self.assertEqual(labels['host'], re.sub(r'[{},=]', '_', socket.gethostname()))
        self.assertRegex(labels['build_id'], '^[0-9a-f]{16,}$')
        self.assertEqual(labels['cgroup'][0], '/')
        self.assertEqual(labels['env'], 'production')

    def test_pyroscope(self):
        receiver = Receiver(self)
        report, err = self.window(receiver.url + '/ingest', '--label', 'env=production', '--label', 'service_name=shop')
        self.assertEqual(err, '')
        (path, headers, body), = receiver.received
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)
        self.assertEqual(urllib.parse.urlsplit(path).path, '/ingest')
        self.assertEqual(query['format'], ['pprof'])
        self.assertLessEqual(int(query['from'][0]), int(query['until'][0]))
        name, labels = re.fullmatch(r'([^{]+)\{(.*)\}', query['name'][0]).groups()
        self.assertEqual(name, 'shop')
        self.check_labels(dict(label.split('=') for label in labels.split(',')), report)
        form = email.message_from_bytes(b'Content-Type: ' + headers['Content-Type'].encode() + b'\r\n\r\n' + body, policy=email.policy.HTTP)
        parts = {part.get_param('name', header='content-disposition'): part.get_payload(decode=True) for part in form.iter_parts()}
        self.assertEqual(set(parts), {'profile', 'sample_type_config'})
        self.assertEqual(set(json.loads(parts['sample_type_config'])), {'inuse_space', 'inuse_objects', 'alloc_space', 'alloc_objects'})
        self.assertEqual(total(parts['profile']), used(report))

    def test_json(self):
        """Parca's, and Pyroscope's Connect API."""
        for path in ('/profiles/writeraw', '/push.v1.PusherService/Push'):
            with self.subTest(path):
                receiver = Receiver(self)
                report, _ = self.window(receiver.url + path, '--label', 'env=production')
                (sent, headers, body), = receiver.received
                self.assertEqual((sent, headers['Content-Type']), (path, 'application/json'))
                series, = json.loads(body)['series']
                labels = series['labels']['labels'] if 'writeraw' in path else series['labels']
                labels = {label['name']: label['value'] for label in labels}
                self.assertEqual(labels['__name__'], 'memory')
                self.check_labels(labels, report)
                sample, = series['samples']
                self.assertEqual(total(base64.b64decode(sample['rawProfile'], validate=True)), used(report))

    def test_raw(self):
        receiver = Receiver(self)
        report, _ = self.window(receiver.url + '/any/path?tenant=7')
        (path, headers, body), = receiver.received
        self.assertEqual((path, headers['Content-Type']), ('/any/path?tenant=7', 'application/octet-stream'))
        self.assertTrue(gzip.decompress(body))
        self.assertEqual(total(body), used(report))

    def test_several_processes(self):
        """Each has a profile of its own."""
        receiver = Receiver(self)
        targets = [mwlive.Target(self, 'simple', 400, 1000) for _ in range(6)]
        process = subprocess.Popen([mwlive.config.memwatch, '-p', ','.join(str(target.pid) for target in targets), '--engine',
                                    mwlive.config.engine, '-d', '1', '--quiet', '--settle', '0', '--push', receiver.url + '/ingest',
                                    *mwlive.patient()], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(mwlive.kill_quietly, process)
        for target in targets:
            target.go()
        _, err = process.communicate(timeout=mwlive.PATIENCE)
        self.assertEqual((process.returncode, err), (0, ''))
        names = sorted(re.search(r'pid=(\d+)', urllib.parse.unquote(path))[1] for path, _, _ in receiver.received)
        self.assertEqual(names, sorted(str(target.pid) for target in targets))
        for target in targets:
            target.done()
            target.finish()

    def test_every(self):
        receiver = Receiver(self)
        report, _ = self.window(receiver.url + '/', '--push-every', '500ms', seconds=3)
        self.assertGreaterEqual(len(receiver.received), 3)
        totals = [total(body) for _, _, body in receiver.received]
        self.assertEqual(totals[-1], used(report))
        self.assertEqual(totals, sorted(totals))

    def test_tried_again(self):
        receiver = Receiver(self, (503, 429, 200))
        report, err = self.window(receiver.url + '/')
        self.assertEqual(err, '')
        self.assertEqual(len(receiver.received), 3)
        self.assertEqual(total(receiver.received[-1][2]), used(report))

    def test_refused(self):
        """What the server refuses is not sent again, and said; the window is as good as any."""
        receiver = Receiver(self, (400,))
        report, err = self.window(receiver.url.replace('//', '//user:secret@') + '/ingest', status=1)
        self.assertEqual(len(receiver.received), 1)
        self.assertIn('1 of 1 profiles', err)
        self.assertIn('400', err)
        self.assertNotIn('secret', err)
        self.assertTrue(report['complete'])

    def test_unreachable(self):
        report, err = self.window(f'http://127.0.0.1:{mwlive.free_port()}/ingest', '--push-every', '200ms', status=1, seconds=2)
        self.assertRegex(err, r'profiles could not be sent to http://127\.0\.0\.1')
        self.assertTrue(report['complete'])
        self.assertEqual(report['window']['seconds'], 2)

    def test_bad_options(self):
        for options, message in ((('--push', 'ftp://localhost/'), 'http'), (('--push', 'nothing at all'), 'URL'),
                                 (('--label', 'novalue'), 'label'), (('--label', '1a=b'), 'label'), (('--push-every', 'soon'), 'time'), (('--push-every', '1'), '--push'), (('--label', 'a=b'), '--push'),
                                 (('--listen-token', '/dev/null'), '--listen')):
            with self.subTest(options):
                _, messages = mwlive.memwatch(self, '-p', os.getpid(), '-d', '1', *options, status=2)
                self.assertIn(message, messages)
                self.assertEqual(messages.count('\n'), 1)


if __name__ == '__main__':
    mwlive.main()
