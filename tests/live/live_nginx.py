#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""nginx's worker under ab's load: every request is answered."""
import os
import re
import shutil
import socket
import subprocess
import tempfile
import unittest

import mwlive

NGINX = shutil.which('nginx') or shutil.which('nginx', path='/usr/sbin:/sbin')

CONFIGURATION = '''
daemon off; master_process off; worker_processes 1; pid {directory}/pid; error_log {directory}/error.log;
events {{ worker_connections 200; }}
http {{
  access_log {directory}/access.log;
  client_body_temp_path {directory}/a; proxy_temp_path {directory}/b; fastcgi_temp_path {directory}/c;
  uwsgi_temp_path {directory}/d; scgi_temp_path {directory}/e;
  server {{ listen 127.0.0.1:{port}; root {directory}; }}
}}
'''


def sockets(pid):
    directory = f'/proc/{pid}/fd'
    return sum(os.readlink(os.path.join(directory, fd)).startswith('socket:') for fd in os.listdir(directory))


@unittest.skipUnless(NGINX and shutil.which('ab'), 'nginx or ab is not installed')
class Nginx(unittest.TestCase):
    def connect(self, port):
        """A connection that is kept after its request."""
        connection = socket.create_connection(('127.0.0.1', port), mwlive.PATIENCE)
        connection.sendall(b'GET /index.html HTTP/1.1\r\nHost: localhost\r\n\r\n')
        self.assertIn(b'200 OK', connection.recv(4096))
        return connection

    def test_under_load(self):
        directory = tempfile.mkdtemp(prefix='mwlive-nginx-')
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        os.chmod(directory, 0o755)
        port = mwlive.free_port()
        path = os.path.join(directory, 'nginx.conf')
        with open(path, 'w', encoding='utf-8') as f:
            f.write(CONFIGURATION.format(directory=directory, port=port))
        with open(os.path.join(directory, 'index.html'), 'w', encoding='utf-8') as f:
            f.write('x' * 5000)
        server = subprocess.Popen([NGINX, '-c', path, '-p', directory, '-e', os.path.join(directory, 'error.log')],
                                  stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(mwlive.kill_quietly, server)

        def load(requests):
            run = subprocess.run(['ab', '-q', '-n', str(requests), '-c', str(min(8, requests)),
                                  f'http://127.0.0.1:{port}/index.html'],
                                 capture_output=True, text=True, check=False, timeout=mwlive.PATIENCE)
            return run.returncode == 0 and run.stdout
        mwlive.wait_until(lambda: load(1), 'nginx answers')
        mwlive.wait_until(lambda: sockets(server.pid) == 1, 'only the socket that listens')
        watch = mwlive.Watch(self, server.pid, busy=True)
        out = load(1500)
        # A connection that ab opened and did not use is closed in its turn.
        mwlive.wait_until(lambda: sockets(server.pid) == 1, "nginx has closed ab's connections")
        kept = [self.connect(port) for _ in range(20)]
        report = watch.stop()
        for connection in kept:
            connection.close()
        self.assertTrue(out, 'ab failed')
        self.assertEqual(int(re.search(r'Complete requests:\s+(\d+)', out)[1]), 1500)
        self.assertEqual(int(re.search(r'Failed requests:\s+(\d+)', out)[1]), 0)
        self.assertNotIn('Non-2xx', out)
        self.assertGreater(report['totals']['heap']['size']['count'], 1500)
        # Each connection has a pool, which has no name.
        pooled = [s for s in report['stacks'] if s['impacting']['count'] and
                  {'ngx_create_pool', 'ngx_event_accept'} <= set(mwlive.functions(s))]
        self.assertEqual(sum(s['impacting']['count'] for s in pooled), 20)
        for stack in pooled:
            self.assertEqual((stack['pool']['name'], stack['pool']['users']), ("nginx's pools", []))
            self.assertIn('have no names', stack['pool']['hint'])
        self.assertTrue(load(50), 'nginx works on afterwards')
        self.assertIsNone(server.poll())


if __name__ == '__main__':
    mwlive.main()
