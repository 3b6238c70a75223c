# SPDX-License-Identifier: MIT
"""The statically linked program where there is nothing but it: no library, no /etc, in the extreme no /sys."""
import functools
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest

import mwlive

PORTABLE = 'memwatch-portable'
LOADER = '/lib/ld-musl-x86_64.so.1'

# Becomes a program whose root is the directory.
START = '''
root=$1
shift
mount --make-rprivate / && mount -t proc proc "$root/proc" || exit
[ ! -e "$root/sys" ] || mount -t sysfs -o ro sysfs "$root/sys" || exit
exec chroot "$root" "$@"
'''


def portable():
    return os.path.join(os.path.dirname(mwlive.config.memwatch), PORTABLE)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@mwlive.not_under('the statically linked program is another one')
class Portable(unittest.TestCase):
    def setUp(self):
        if not os.path.exists(portable()):
            self.skipTest(f'{PORTABLE} is not built where static libraries are missing')
        self.directory = tempfile.mkdtemp(prefix='mwlive-portable-')
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def path(self, *parts):
        return os.path.join(self.directory, *parts)

    def test_version(self):
        """Says what is linked in, by name and version; the other says that it is not."""
        for program, kind, end in ((portable(), 'portable', r'glibc 2\.\d+'), (mwlive.config.memwatch, 'dynamic', 'libiberty')):
            out = subprocess.run([program, '--version'], check=True, capture_output=True, text=True,
                                 timeout=mwlive.PATIENCE).stdout
            self.assertRegex(out, rf'\Amemwatch \d+\.\d+\.\d+\n{kind}; .*libdw 0\.\d+, .*zlib 1\..*{end}\n\Z')

    def test_needs_no_library(self):
        headers = subprocess.run(['readelf', '-lW', portable()], check=True, capture_output=True, text=True).stdout
        self.assertNotRegex(headers, 'INTERP|DYNAMIC')

    def watch(self, name, files=()):
        """A program's work, from within a root that has only these files, /proc and, for jump, /sys: the report."""
        if os.geteuid() != 0 or subprocess.run(['unshare', '--mount', 'true'], check=False).returncode != 0:
            self.skipTest('a root of its own may not be made here')
        if not os.path.exists(mwlive.target_path(name)):
            self.skipTest(f'{name} was not built here')
        for directory in ('proc', 'lib', *(('sys',) if mwlive.config.engine == 'jump' else ())):
            os.mkdir(self.path(directory))
        shutil.copy(portable(), self.path('memwatch'))
        shutil.copy(mwlive.target_path(name), self.path('program'))
        for file in files:
            shutil.copy(file, self.path(file.lstrip('/')))
        target = mwlive.Target(self, name, argv=['unshare', '--mount', 'sh', '-c', START, 'sh', self.directory, '/program'])
        before = mwlive.Snapshot(target.pid)
        process = subprocess.Popen(
            ['nsenter', '-t', str(target.pid), '-m', 'chroot', self.directory, '/memwatch', '-p', str(target.pid),
             '--engine', mwlive.config.engine, *mwlive.patient(), '--settle', '0', '--quiet', '--json', '-'],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(mwlive.kill_quietly, process)
        mwlive.wait_until(lambda: process.poll() is not None or
                          before.touched() and all(mwlive.state(t) != 't' for t in mwlive.tids(target.pid)), 'it is attached')
        if process.poll() is None:
            target.go()
            answer = target.done()
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=mwlive.PATIENCE)
        self.assertEqual((process.returncode, err), (0, ''))
        before.check(self)
        target.finish()
        report = json.loads(out)
        self.assertEqual(report['engine']['name'], mwlive.config.engine)
        mwlive.compare(self, answer, report)
        leak, = mwlive.select(report, 'simple_leak')
        self.assertEqual(mwlive.functions(leak)[:3], ['simple_leak', 'simple_round', 'main'])

    def test_empty_root(self):
        self.watch('simple_static')

    def test_static_program_of_musl(self):
        self.watch('simple_musl_static')

    def test_root_of_musl(self):
        if not os.path.exists(LOADER):
            self.skipTest('musl is not installed')
        self.watch('simple_musl', [LOADER])

    def serve(self, build_id, debug):
        """A debuginfod that has one file; its address."""
        os.makedirs(self.path('www', 'buildid', build_id))
        os.rename(debug, self.path('www', 'buildid', build_id, 'debuginfo'))
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Quiet, directory=self.path('www')))
        self.addCleanup(server.server_close)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        return f'http://127.0.0.1:{server.server_port}'

    @unittest.skipUnless(shutil.which('debuginfod-find') and shutil.which('objcopy'), 'debuginfod-find or objcopy is not installed')
    def test_debuginfod(self):
        """Asked by its client program, as libdebuginfod can't be loaded; without that names of lines are missing."""
        program, debug = self.path('simple'), self.path('simple.debug')
        subprocess.run(['objcopy', '--only-keep-debug', mwlive.target_path('simple'), debug], check=True)
        subprocess.run(['objcopy', '--strip-debug', mwlive.target_path('simple'), program], check=True)
        notes = subprocess.run(['readelf', '-n', program], check=True, capture_output=True, text=True).stdout
        url = self.serve(re.search(r'Build ID: ([0-9a-f]+)', notes).group(1), debug)
        self.addCleanup(setattr, mwlive.config, 'memwatch', mwlive.config.memwatch)
        mwlive.config.memwatch = portable()
        for path, file in ((os.environ['PATH'], 'simple.c'), ('/nonexistent', '')):
            with self.subTest(path):
                target = mwlive.Target(self, 'simple', argv=[program])
                watch = mwlive.Watch(self, target.pid, env={**os.environ, 'PATH': path, 'DEBUGINFOD_URLS': url,
                                                            'DEBUGINFOD_CACHE_PATH': self.path('cache'), 'no_proxy': '127.0.0.1'})
                target.go()
                target.done()
                leak, = mwlive.select(watch.stop(), 'simple_leak')
                target.finish()
                self.assertEqual(os.path.basename(leak['frames'][0]['file'] or ''), file)


if __name__ == '__main__':
    mwlive.main()
