#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What others fetch of a window that runs (--listen): figures, profiles, reports; and who may."""
import base64
import concurrent.futures
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.parse
import urllib.request

import mwlive

PROMETHEUS = '''
global:
  scrape_interval: 1s
scrape_configs:
  - job_name: memwatch
    static_configs:
      - targets: ['{place}']
'''


class Listening:
    """A window of a target, with --listen."""

    def __init__(self, test, pid, *options, place='0', engine=None):
        self.test = test
        self.directory = tempfile.mkdtemp(prefix='mwlisten-')
        test.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.json = os.path.join(self.directory, 'report.json')
        self.snapshot = mwlive.Snapshot(pid)
        self.process = subprocess.Popen(
            [mwlive.config.memwatch, '-p', str(pid), '--engine', engine or mwlive.config.engine, '--listen', place, '--json', self.json,
             *mwlive.patient(engine), *map(str, options)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True)
        test.addCleanup(mwlive.kill_quietly, self.process)
        line = self.process.stderr.readline()
        test.assertRegex(line, r'^memwatch: listening at ', line + (self.process.stderr.read() if self.process.poll() else ''))
        self.place = line.split()[-1]
        mwlive.wait_until(self.snapshot.touched, 'memwatch plants its hooks')

    def get(self, path, headers=None):
        request = urllib.request.Request(self.place + path, headers=headers or {})
        with urllib.request.urlopen(request, timeout=mwlive.PATIENCE) as answer:
            return answer.headers, answer.read()

    def status(self, path, headers=None, method='GET'):
        request = urllib.request.Request(self.place + path, headers=headers or {}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=mwlive.PATIENCE) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def metrics(self):
        """{(name, labels): value}"""
        found = {}
        for line in self.get('/metrics')[1].decode().splitlines():
            if not line.startswith('#'):
                series, _, value = line.rpartition(' ')
                self.test.assertNotIn(series, found)
                found[series] = float(value)
        return found

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        _, err = self.process.communicate(timeout=mwlive.PATIENCE)
        self.test.assertEqual(self.process.returncode, 0, err)
        self.snapshot.check(self.test)
        return mwlive.load_reports(self.json)[0], err


def used(report, kind='heap'):
    return report['totals'][kind]['impacting']


class Listen(unittest.TestCase):
    def kept(self):
        """A target that has allocated in the window, keeps some of it, and waits; and the window."""
        target = mwlive.Target(self, 'simple')
        listening = Listening(self, target.pid)
        target.go()
        target.done()
        return target, listening

    def test_reports(self):
        target, listening = self.kept()
        headers, body = listening.get('/report.json')
        self.assertEqual(headers['Content-Type'], 'application/json')
        running = json.loads(body)
        self.assertEqual(running['window']['ended'], 'running')
        self.assertTrue(running['complete'])
        self.assertGreater(used(running)['count'], 0)
        headers, page = listening.get('/report.html')
        self.assertIn('text/html', headers['Content-Type'])
        self.assertIn(b'</html>', page)
        self.assertIn('still runs', listening.get('/report.text')[1].decode())
        self.assertEqual(listening.status('/report.nothing'), 404)
        self.assertEqual(listening.status('/'), 404)
        self.assertEqual(listening.status('/metrics', method='POST'), 405)
        # Nothing has changed since; the window has seen nothing of what was made meanwhile.
        ended, _ = listening.stop()
        self.assertEqual(ended['window']['ended'], 'interrupt')
        self.assertEqual(used(running), used(ended))
        self.assertEqual(sorted(s['id'] for s in running['stacks']), sorted(s['id'] for s in ended['stacks']))
        self.assertEqual(mwlive.children(listening.process.pid), [])
        target.finish()

    def test_metrics(self):
        target, listening = self.kept()
        labels = f'{{pid="{target.pid}",comm="simple",kind="heap"}}'
        report = json.loads(listening.get('/report.json')[1])
        # They are brought up to date once a second.
        mwlive.wait_until(lambda: listening.metrics().get('memwatch_outstanding_bytes' + labels) == used(report)['bytes'],
                          'the figures are those of the report')
        metrics = listening.metrics()
        self.assertEqual(metrics['memwatch_outstanding_blocks' + labels], used(report)['count'])
        self.assertEqual(metrics['memwatch_allocations_total' + labels], report['totals']['heap']['size']['count'])
        self.assertEqual(metrics['memwatch_allocated_bytes_total' + labels], report['totals']['heap']['size']['bytes'])
        self.assertEqual(metrics[f'memwatch_lost_events_total{{pid="{target.pid}",comm="simple"}}'], 0)
        checked = subprocess.run(['promtool', 'check', 'metrics'], input=listening.get('/metrics')[1], capture_output=True,
                                 timeout=mwlive.PATIENCE, check=False)
        self.assertEqual((checked.returncode, checked.stderr), (0, b''), checked.stdout)
        listening.stop()
        target.finish()

    def test_prometheus(self):
        target, listening = self.kept()
        directory = listening.directory
        config = os.path.join(directory, 'prometheus.yml')
        with open(config, 'w', encoding='utf-8') as f:
            f.write(PROMETHEUS.format(place=listening.place.removeprefix('http://')))
        port = mwlive.free_port()
        server = subprocess.Popen(['prometheus', f'--config.file={config}', f'--storage.tsdb.path={directory}/data',
                                   f'--web.listen-address=127.0.0.1:{port}'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(mwlive.kill_quietly, server)
        report = json.loads(listening.get('/report.json')[1])
        query = urllib.parse.quote('memwatch_outstanding_bytes{comm="simple",kind="heap"}')

        def scraped():
            with contextlib.suppress(OSError, http.client.HTTPException):
                with urllib.request.urlopen(f'http://127.0.0.1:{port}/api/v1/query?query={query}', timeout=5) as answer:
                    result = json.load(answer)['data']['result']
                    return result and float(result[0]['value'][1]) == used(report)['bytes']
            return False
        mwlive.wait_until(scraped, 'Prometheus has the figure')
        listening.stop()
        target.finish()

    def test_pprof(self):
        target, listening = self.kept()
        report = json.loads(listening.get('/report.json')[1])
        environment = dict(os.environ, PPROF_TMPDIR=listening.directory, HOME=listening.directory)
        for path, sample_type, expected in (('heap', 'inuse_space', used(report)['bytes'] + used(report, 'vm')['bytes']),
                                            ('allocs', 'alloc_space', sum(report['totals'][kind]['size']['bytes'] for kind in ('heap', 'vm')))):
            shown = subprocess.run(['go', 'tool', 'pprof', '-raw', f'{listening.place}/debug/pprof/{path}'], capture_output=True, text=True,
                                   env=environment, timeout=mwlive.PATIENCE, check=True).stdout
            columns = next(line for line in shown.splitlines() if sample_type in line).split()
            self.assertIn(f'{sample_type}/bytes[dflt]', columns)
            column = columns.index(f'{sample_type}/bytes[dflt]')
            rows = [line.partition(':')[0].split() for line in shown.split('Samples:')[1].split('Locations')[0].splitlines()[2:]
                    if line.partition(':')[0].split() and line.lstrip()[0].isdigit()]
            self.assertEqual(sum(int(row[column]) for row in rows), expected)
        listening.stop()
        target.finish()

    def test_busy(self):
        """While reports are made, the process runs on, and nothing of it is missed."""
        target = mwlive.Target(self, 'simple', 5000, 500)
        listening = Listening(self, target.pid)
        target.go()
        for _ in range(mwlive.attempts(3, 10)):
            report = json.loads(listening.get('/report.json')[1])
            self.assertEqual(report['window']['ended'], 'running')
            self.assertTrue(report['complete'])
        target.done()
        report, _ = listening.stop()
        self.assertTrue(report['complete'])
        target.finish()

    @staticmethod
    def copy_of(listening):
        """The copy of memwatch that makes a report; None: there is none."""
        guard = mwlive.guard_of(listening.process.pid)
        return next((child for child in mwlive.children(listening.process.pid) if child != guard), None)

    def test_nothing_held_by_the_copy(self):
        """By what is mapped and locked others know that memwatch lives: its copy holds none of that."""
        target, listening = self.kept()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            answer = pool.submit(listening.status, '/report.html')
            copy = mwlive.wait_until(lambda: self.copy_of(listening), 'a report is being made', step=0.001)
            free = False
            while not free and mwlive.state(copy) not in 'ZX':
                maps = mwlive.mappings(copy)
                free = bool(maps) and not any(mwlive.is_ours(mapping[4]) for mapping in maps)
            self.assertTrue(free)
            self.assertEqual(answer.result(mwlive.PATIENCE), 200)
        listening.stop()
        target.finish()

    def test_many_wait(self):
        """Eight wait for a report, others are sent away; figures are given all the while."""
        target, listening = self.kept()
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            answers = [pool.submit(listening.status, '/report.text')]
            copy = mwlive.wait_until(lambda: self.copy_of(listening), 'a report is being made', step=0.001)
            os.kill(copy, signal.SIGSTOP)
            answers += [pool.submit(listening.status, '/report.text') for _ in range(11)]
            mwlive.wait_until(lambda: sum(answer.done() for answer in answers) == 4, 'four are sent away')
            self.assertEqual(listening.status('/metrics'), 200)
            os.kill(copy, signal.SIGCONT)
            self.assertEqual(sorted(answer.result(mwlive.PATIENCE) for answer in answers), [200] * 8 + [503] * 4)
        listening.stop()
        target.finish()

    def test_over(self):
        """Who asks while the window settles does not wait for its end."""
        target = mwlive.Target(self, 'simple')
        listening = Listening(self, target.pid, '-d', 1, '--settle', 30)
        target.go()
        target.done()
        mwlive.wait_until(lambda: listening.status('/report.text') == 503, 'the window is over')
        self.assertIsNone(listening.process.poll())
        listening.stop()
        target.finish()

    def test_killed_while_a_report_is_made(self):
        """The copy of memwatch that makes it ends, and the guard does its work."""
        target, listening = self.kept()
        guard = mwlive.guard_of(listening.process.pid)
        with socket.create_connection(('127.0.0.1', int(listening.place.rpartition(':')[2]))) as connection:
            connection.sendall(b'GET /report.html HTTP/1.1\r\nHost: localhost\r\n\r\n')
            copy = mwlive.wait_until(lambda: self.copy_of(listening), 'a report is being made', step=0.001)
            listening.process.kill()
            listening.process.wait()
        mwlive.wait_until(lambda: mwlive.state(copy) in 'ZX', 'the copy ends with memwatch')
        mwlive.await_end_of(guard)
        listening.snapshot.check(self)
        target.finish()

    def test_token(self):
        target = mwlive.Target(self, 'simple')
        token = 'a token of more than 16'
        with tempfile.NamedTemporaryFile('w', suffix='.token') as file:
            file.write(token + '\n')
            file.flush()
            listening = Listening(self, target.pid, '--listen-token', file.name)
        self.assertEqual(listening.status('/metrics'), 401)
        self.assertEqual(listening.status('/report.json', {'Authorization': 'Bearer ' + token + 'x'}), 401)
        self.assertEqual(listening.status('/report.json', {'Authorization': 'Bearer ' + token[:-1]}), 401)
        self.assertEqual(listening.status('/metrics', {'Authorization': 'Bearer ' + token}), 200)
        basic = base64.b64encode(f'anybody:{token}'.encode()).decode()
        self.assertEqual(listening.status('/metrics', {'Authorization': 'Basic ' + basic}), 200)
        basic = base64.b64encode(b'anybody:' + b'b' * len(token)).decode()
        self.assertEqual(listening.status('/metrics', {'Authorization': 'Basic ' + basic}), 401)
        listening.stop()
        target.finish()

    def test_other_host(self):
        """A page that resolves its name to loopback sends that name."""
        target = mwlive.Target(self, 'simple')
        listening = Listening(self, target.pid)
        for host, status in (('evil.example', 403), ('evil.example:80', 403), ('localhost', 200), ('127.0.0.1:1', 200), ('[::1]:1', 200), ('[::1]evil', 403), ('127.evil.example', 403)):
            self.assertEqual(listening.status('/metrics', {'Host': host}), status, host)
        self.assertEqual(listening.status('/metrics', {'Sec-Fetch-Site': 'cross-site'}), 403)
        listening.stop()
        target.finish()

    def test_unix_socket(self):
        target = mwlive.Target(self, 'simple')
        directory = tempfile.mkdtemp(prefix='mwlisten-')
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        path = os.path.join(directory, 'memwatch.sock')
        # One that a killed memwatch has left is replaced.
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(path)
        listening = Listening(self, target.pid, place='unix:' + path)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(mwlive.PATIENCE)
            connection.connect(path)
            connection.sendall(b'GET /metrics HTTP/1.1\r\nHost: whatever\r\nConnection: close\r\n\r\n')
            answer = b''
            while more := connection.recv(65536):
                answer += more
        self.assertTrue(answer.startswith(b'HTTP/1.1 200'), answer[:100])
        self.assertIn(b'memwatch_outstanding_bytes', answer)
        listening.stop()
        self.assertFalse(os.path.exists(path))
        target.finish()

    def test_refused(self):
        target = mwlive.Target(self, 'simple')
        with socket.socket() as taken, tempfile.NamedTemporaryFile('w') as short:
            taken.bind(('127.0.0.1', 0))
            taken.listen()
            short.write('short')
            short.flush()
            for options, status, message in (
                    (('--listen', 'nowhere'), 2, 'port'), (('--listen', '70000'), 2, 'port'), (('--listen', 'example.com:80'), 2, 'address'),
                    (('--listen', '0.0.0.0:0'), 2, '--listen-token'), (('--listen', '[::]:0'), 2, '--listen-token'),
                    (('--listen', 'unix:'), 2, 'path'), (('--listen', '0', '--listen-token', '/nonexistent'), 1, 'cannot read'),
                    (('--listen', '0', '--listen-token', short.name), 2, 'too short'),
                    (('--listen', f'127.0.0.1:{taken.getsockname()[1]}'), 1, 'cannot listen')):
                with self.subTest(options):
                    _, messages = mwlive.memwatch(self, '-p', target.pid, '-d', '1', *options, status=status)
                    self.assertIn(message, messages)
                    self.assertEqual(messages.count('\n'), 1)
        target.go()
        target.done()
        target.finish()


if __name__ == '__main__':
    mwlive.main()
