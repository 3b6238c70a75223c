# SPDX-License-Identifier: MIT
"""Debian's package, the portable tarball, and an installation right after scripts/quickstart."""
import filecmp
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = sys.argv.pop(1), sys.argv.pop(1)
DOCUMENTS = ('memwatch.1', 'memwatch', '_memwatch', 'memwatch.fish')


def run(*command, **more):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200, check=False,
                          **more)
    if done.returncode != 0:
        raise AssertionError(f'{command}: {done.returncode}: {done.stdout}{done.stderr}')
    return done.stdout


def package(directory, umask=-1, **environment):
    """What scripts/package makes of the build there is: the paths that it prints, by their ends."""
    os.mkdir(directory)
    printed = run(f'{SOURCE}/scripts/package', '-o', directory, umask=umask,
                  env={**os.environ, 'MEMWATCH_BUILD': BUILD, **environment})
    return {os.path.splitext(path)[1]: path for path in printed.splitlines()}


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix='memwatch-package-')
        cls.made = package(cls.path('made'))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.directory)

    @classmethod
    def path(cls, *parts):
        return os.path.join(cls.directory, *parts)

    def test_prints_what_it_makes(self):
        self.assertEqual(sorted(self.made), ['.deb', '.xz'])
        self.assertEqual(sorted(self.made.values()), sorted(glob.glob(self.path('made', '*'))))

    def test_same_each_time(self):
        """Neither the time nor the caller's mask, zone or language is in it."""
        again = package(self.path('again'), umask=0o077, TZ='Pacific/Kiritimati', LC_ALL='C')
        for kind, path in self.made.items():
            self.assertTrue(filecmp.cmp(path, again[kind], shallow=False), path)

    def test_deb(self):
        names = {line.split()[5]: line.split()[:2] for line in run('dpkg-deb', '-c', self.made['.deb']).splitlines()}
        for name in ('bin/memwatch', 'share/man/man1/memwatch.1.gz', 'share/bash-completion/completions/memwatch',
                     'share/zsh/vendor-completions/_memwatch', 'share/fish/vendor_completions.d/memwatch.fish',
                     'lib/systemd/system/memwatch@.service', 'share/doc/memwatch/copyright',
                     'share/doc/memwatch/changelog.Debian.gz', 'share/doc/memwatch/README.Debian'):
            self.assertIn(f'./usr/{name}', names)
        self.assertEqual({owner for _, owner in names.values()}, {'root/root'})
        fields = run('dpkg-deb', '-f', self.made['.deb'])
        for needed in ('libc6 ', 'libdw1', 'libcapstone', 'libcap2-bin'):
            self.assertRegex(fields, rf'(?m)^Depends:.*\b{needed}')
        run('dpkg-deb', '-x', self.made['.deb'], self.path('tree'))
        self.assertIn('.TH MEMWATCH', run('zcat', self.path('tree/usr/share/man/man1/memwatch.1.gz')))
        with open(self.path('tree/usr/lib/systemd/system/memwatch@.service'), encoding='utf-8') as file:
            self.assertIn("exec /usr/bin/memwatch --cgroup", file.read())
        self.assertIn('dynamic', run(self.path('tree/usr/bin/memwatch'), '--version'))

    @unittest.skipUnless(shutil.which('lintian'), 'lintian is not installed')
    def test_lintian(self):
        self.assertNotRegex(run('lintian', '--allow-root', '--fail-on', 'none', self.made['.deb']), '(?m)^E:')

    def test_capability(self):
        """Set only once nobody but the group can run it."""
        run('dpkg-deb', '-e', self.made['.deb'], self.path('control'))
        with open(self.path('control/postinst'), encoding='utf-8') as file:
            script = file.read()
        self.assertLess(script.index('chmod 0750 /usr/bin/memwatch'), script.index('setcap cap_sys_ptrace+ep'))

    def test_tarball(self):
        run('tar', '-xf', self.made['.xz'], '-C', self.directory)
        root, = glob.glob(self.path('memwatch-*-linux-x86_64'))
        self.assertEqual(sorted(os.listdir(root)), ['LICENSE', 'README', 'completions', 'licences', 'memwatch', 'memwatch.1'])
        self.assertTrue({'libdw-dev', 'libc6-dev', 'libbz2-dev'} <= set(os.listdir(f'{root}/licences')))
        self.assertRegex(run(f'{root}/memwatch', '--version'), r'\nportable; .*libdw 0\.\d+.* glibc 2\.\d+\n')
        # It starts its guard from its own file, wherever that is.
        out = run(f'{root}/memwatch', '--json', '-', '--quiet', '--settle', '0', '--', 'sleep', '0.1')
        self.assertEqual(json.loads(out)['target']['exit_status'], 0)

    def test_knows_no_path_of_the_build(self):
        for program in ('memwatch', 'memwatch-portable'):
            with open(os.path.join(BUILD, program), 'rb') as file:
                self.assertNotIn(os.fsencode(SOURCE) + b'/src', file.read())

    def test_install_after_quickstart(self):
        """Quickstart builds all that is installed."""
        for name in DOCUMENTS:
            os.unlink(os.path.join(BUILD, 'documents', name))
        # Some process to watch, so that none is compiled.
        with subprocess.Popen(['sleep', '100']) as sleeper:
            try:
                run(f'{SOURCE}/scripts/quickstart', str(sleeper.pid), env={**os.environ, 'MEMWATCH_BUILD': BUILD})
            finally:
                sleeper.send_signal(signal.SIGKILL)
        run('cmake', '--install', BUILD, '--prefix', self.path('prefix'))
        installed = {os.path.relpath(os.path.join(directory, name), self.path('prefix'))
                     for directory, _, names in os.walk(self.path('prefix')) for name in names}
        self.assertEqual(installed, {
            'bin/memwatch', 'share/man/man1/memwatch.1', 'share/bash-completion/completions/memwatch',
            'share/zsh/site-functions/_memwatch', 'share/fish/vendor_completions.d/memwatch.fish',
            'lib/systemd/system/memwatch@.service'})
        self.assertTrue(re.match(r'memwatch \d', run(self.path('prefix/bin/memwatch'), '--version')))


if __name__ == '__main__':
    unittest.main()
