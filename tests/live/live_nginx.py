#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""nginx's worker under ab's load: every request is answered."""
import os
import re
import shutil
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


@unittest.skipUnless(NGINX and shutil.which('ab'), 'nginx or ab is not installed')
class Nginx(unittest.TestCase):
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
        watch = mwlive.Watch(self, server.pid, busy=True)
        out = load(1500)
        report = watch.stop()
        self.assertTrue(out, 'ab failed')
        self.assertEqual(int(re.search(r'Complete requests:\s+(\d+)', out)[1]), 1500)
        self.assertEqual(int(re.search(r'Failed requests:\s+(\d+)', out)[1]), 0)
        self.assertNotIn('Non-2xx', out)
        self.assertGreater(report['totals']['heap']['size']['count'], 1500)
        self.assertTrue(load(50), 'nginx works on afterwards')
        self.assertIsNone(server.poll())


if __name__ == '__main__':
    mwlive.main()
