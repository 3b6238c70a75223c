# SPDX-License-Identifier: MIT
"""scripts/packages on releases and machines that are made up: it finds apt-get and its like in a directory of ours."""
import os
import subprocess
import sys
import tempfile
import unittest

PACKAGES = ''

# Each program is this one under another name. In $WORLD: installed, known, known-after-update, conflicts (a package that
# is asked for, and what apt-get would remove for it), one a line; log: what was done.
PROGRAM = r'''#!/usr/bin/env bash
cd "$WORLD" || exit 1
has() { grep -qx -- "$2" "$1"; }
case ${0##*/} in
id) echo 1000 ;;
sudo)
	case $1 in
	tee) cat >/dev/null ;;
	env) "$@" ;;
	esac
	;;
dpkg-query)
	shift 2
	printf 'installed %s\n' $(printf '%s\n' "$@" | grep -Fx -f installed)
	;;
apt-cache)
	shift
	for name in $(printf '%s\n' "$@" | grep -Fx -f known); do
		printf '%s:\n  Installed: (none)\n  Candidate: 1.0\n  Version table:\n' "$name"
	done
	printf 'other:\n  Installed: (none)\n  Candidate: (none)\n'
	;;
apt-get)
	case " $* " in
	*' update '*)
		echo update >>log
		cat known-after-update >>known
		exit
		;;
	esac
	names=() removed=()
	for word in "$@"; do
		case $word in
		-* | install) ;;
		*) names+=("$word") ;;
		esac
	done
	for name in "${names[@]}"; do
		has known "$name" || { echo "E: Unable to locate package $name"; exit 100; }
		while read -r asked conflict; do
			[ "$asked" != "$name" ] || removed+=("$conflict")
		done <conflicts
	done
	case " $* " in
	*' -s '*)
		for name in "${removed[@]}"; do
			echo "Remv $name [1.0]"
		done
		exit
		;;
	esac
	case " $* " in
	*' --no-remove '*)
		[ ${#removed[@]} = 0 ] || { echo 'E: Packages need to be removed but remove is disabled.'; exit 100; }
		;;
	esac
	for name in "${removed[@]}"; do
		echo "remove $name" >>log
	done
	for name in "${names[@]}"; do
		echo "install $name" >>log
	done
	;;
esac
'''


class TestPackages(unittest.TestCase):
    def setUp(self):
        # pylint: disable=consider-using-with
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.world = self.directory.name
        self.programs = os.path.join(self.world, 'bin')
        os.mkdir(self.programs)
        for name in ('id', 'sudo', 'dpkg-query', 'apt-cache', 'apt-get'):
            path = os.path.join(self.programs, name)
            with open(path, 'w', encoding='utf-8') as out:
                out.write(PROGRAM)
            os.chmod(path, 0o755)
        self.write(installed=[], known=[], known_after_update=[], conflicts=[], log=[])

    def write(self, **files):
        for name, lines in files.items():
            with open(os.path.join(self.world, name.replace('_', '-')), 'w', encoding='utf-8') as out:
                out.writelines(line + '\n' for line in lines)

    def run_it(self, *arguments):
        environment = dict(os.environ, PATH=self.programs + ':' + os.environ['PATH'], WORLD=self.world)
        return subprocess.run([PACKAGES, *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60, check=False)

    def wanted(self, *groups):
        result = self.run_it(*groups)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.split()

    def done(self):
        with open(os.path.join(self.world, 'log'), encoding='utf-8') as log:
            return log.read().splitlines()

    def test_takes_the_name_that_the_release_has(self):
        self.write(known=['libmimalloc2.0', 'libclang-rt-14-dev'])
        self.assertIn('libmimalloc2.0', self.wanted('test'))
        self.assertIn('libclang-rt-14-dev', self.wanted('lint'))
        self.write(known=['libmimalloc3', 'libclang-rt-dev'])
        self.assertIn('libmimalloc3', self.wanted('test'))
        self.assertNotIn('libmimalloc2.0', self.wanted('test'))
        self.assertIn('libclang-rt-dev', self.wanted('lint'))

    def test_keeps_the_name_that_is_installed(self):
        self.write(known=['libmimalloc3', 'libmimalloc2.0'], installed=['libmimalloc2.0'])
        self.assertIn('libmimalloc2.0', self.wanted('test'))

    def test_installs_what_is_missing(self):
        wanted = self.wanted('build')
        self.write(known=wanted, installed=wanted[2:])
        result = self.run_it('--install', 'build')
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.done(), [f'install {name}' for name in wanted[:2]])

    def test_does_nothing_where_nothing_is_missing(self):
        self.write(installed=self.wanted('build'))
        result = self.run_it('--install', 'build')
        self.assertEqual((result.returncode, result.stderr, self.done()), (0, '', []))

    def test_fetches_lists_where_they_are_absent(self):
        wanted = self.wanted('build')
        self.write(known_after_update=wanted)
        result = self.run_it('--install', 'build')
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.done(), ['update'] + [f'install {name}' for name in wanted])

    def test_leaves_out_what_the_release_does_not_have(self):
        wanted = self.wanted('test')
        self.write(known_after_update=[name for name in wanted if not name.startswith('libmimalloc')])
        result = self.run_it('--install', 'test')
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn('libmimalloc3', result.stderr)
        self.assertEqual(len(self.done()), len(wanted))

    def test_removes_nothing(self):
        wanted = self.wanted('build')
        self.write(known=wanted, installed=['libc++-dev'],
                   conflicts=['libunwind-dev libc++-dev', 'libunwind-dev libunwind-14-dev'])
        result = self.run_it('--install', 'build')
        self.assertEqual(result.returncode, 1)
        self.assertIn('libunwind-dev conflicts with what is installed: libc++-dev libunwind-14-dev', result.stderr)
        self.assertNotIn('gcc conflicts', result.stderr)
        self.assertEqual(self.done(), [])


if __name__ == '__main__':
    PACKAGES = sys.argv.pop()
    unittest.main()
