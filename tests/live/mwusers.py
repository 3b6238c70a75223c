# SPDX-License-Identifier: MIT
"""What the tests of privileges share: programs run as nobody, or without some privilege."""
import os
import shlex
import shutil
import subprocess
import tempfile

import mwlive

NOBODY = ('setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--')
NO_SYS_ADMIN = ('setpriv', '--inh-caps=-sys_admin', '--bounding-set=-sys_admin', '--')
# CAP_SYS_NICE: it keeps up while other tests run.
ONLY_PTRACE = ('setpriv', '--inh-caps=-all,+sys_ptrace,+sys_nice', '--bounding-set=-all,+sys_ptrace,+sys_nice', '--')
PTRACE_AND_READ = ('setpriv', '--inh-caps=-all,+sys_ptrace,+sys_nice,+dac_read_search',
                   '--bounding-set=-all,+sys_ptrace,+sys_nice,+dac_read_search', '--')
NO_NEW_PRIVILEGES = ('setpriv', '--no-new-privs', '--')


def need(test, prefix):
    """A command that runs others, or a skip."""
    if os.geteuid() != 0 or not shutil.which(prefix[0]):
        test.skipTest(f'not root, or no {prefix[0]}')
    if subprocess.run([*prefix, '/bin/true'], capture_output=True, check=False).returncode != 0:
        test.skipTest(f'{" ".join(prefix)} is not possible here')
    return prefix


def copy_for_all(test, path):
    """A copy of a program that anybody may run, wherever it was built."""
    directory = tempfile.mkdtemp(prefix='mwlive-users-')
    test.addCleanup(shutil.rmtree, directory, ignore_errors=True)
    os.chmod(directory, 0o755)
    copy = os.path.join(directory, os.path.basename(path))
    shutil.copy(path, copy)
    os.chmod(copy, 0o755)
    return copy


def target_as(test, prefix, name, *arguments):
    """A target run by such a command, which becomes it."""
    program = copy_for_all(test, mwlive.target_path(name))
    return mwlive.Target(test, name, argv=[*prefix, program, *map(str, arguments)])


def share_memwatch(test):
    """Have the test's memwatch be one that anybody may run; its path."""
    test.addCleanup(setattr, mwlive.config, 'memwatch', mwlive.config.memwatch)
    mwlive.config.memwatch = copy_for_all(test, mwlive.config.memwatch)
    return mwlive.config.memwatch


def limit_memwatch(test, prefix):
    """Have the test's memwatch be run by such a command."""
    path = share_memwatch(test)
    script = os.path.join(os.path.dirname(path), 'limited')
    with open(script, 'w', encoding='utf-8') as file:
        file.write(f'#!/bin/sh\nexec {shlex.join((*need(test, prefix), path))} "$@"\n')
    os.chmod(script, 0o755)
    mwlive.config.memwatch = script
