# SPDX-License-Identifier: MIT
"""The manual page as groff sees it, and the completions as bash, zsh and fish have them."""
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

DOCUMENTS = ''


def run(*command, **more):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
                          **more)


BASH = r'''
. "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_memwatch
printf '%s\n' "${COMPREPLY[@]}"
'''


def bash(line):
    """What bash offers at the end of the line."""
    words = line.replace('=', ' = ').split()
    if line.endswith((' ', '=')):
        words.append('')
    return bash_words(*words)


def bash_words(*words):
    done = run('bash', '--norc', '-c', BASH, 'bash', f'{DOCUMENTS}/memwatch', *words)
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout.splitlines()


def fish(line, described=False):
    done = run('fish', '--no-config', '-c', f'source {DOCUMENTS}/memwatch.fish; complete -C "$argv[1]"', line)
    assert done.returncode == 0, done
    return done.stdout.splitlines() if described else [each.split('\t')[0] for each in done.stdout.splitlines()]


# A shell with its line editor, in a terminal of its own; what is offered is told by the widget that completes.
ZSH = r'''
zmodload zsh/zpty || exit 1
zpty shell zsh -f -i
say() { zpty -w shell "$1" }
hear() { local out; while zpty -r shell out; do print -rn -- "$out"; [[ $out == *$1* ]] && return; done }
say "fpath=($1 \$fpath); PROMPT=; LISTMAX=100000; unsetopt zle_bracketed_paste; autoload -Uz compinit; compinit -u -D"
say "compadd() { local -a got; builtin compadd -A got \"\$@\"; print -rl -- '' OFFER:\$^got; builtin compadd \"\$@\" }"
say "offer() { zle complete-word; print -r -- '' OFFERED=\$((1+1)) }; zle -N offer; bindkey '^I' offer"
say "print READY=\$((1+1))"
hear READY=2 >/dev/null
zpty -n -w shell "$2"$'\t'
hear OFFERED=2
zpty -n -w shell $'\x15'
say "print OVER=\$((1+1))"
hear OVER=2
zpty -d shell
'''


def zsh(line):
    done = run('zsh', '-f', '-c', ZSH, 'zsh', DOCUMENTS, line, env={**os.environ, 'TERM': 'dumb', 'COLUMNS': '400'})
    assert done.returncode == 0, done
    return [each.split('OFFER:')[1].strip() for each in done.stdout.splitlines() if 'OFFER:' in each]


def comm(pid):
    try:
        with open(f'/proc/{pid}/comm', encoding='utf-8') as f:
            return f.read().strip()
    except OSError:
        return None


class Documents(unittest.TestCase):
    def test_manual(self):
        done = run('groff', '-man', '-ww', '-z', '-Tutf8', f'{DOCUMENTS}/memwatch.1')
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, '', ''))
        page = run('groff', '-man', '-Tascii', '-P-cbou', f'{DOCUMENTS}/memwatch.1').stdout
        for text in ('NAME', 'SYNOPSIS', '-p, --pid PID|NAME,...', '--max-memory SIZE', 'memwatch report',
                     "function:~'^shop::(Order|Basket)'", 'EXIT STATUS'):
            self.assertIn(text, page)

    def test_words(self):
        """What the process does while its threads are stopped has one name everywhere."""
        for name in ('memwatch.1', '_memwatch', 'memwatch.fish'):
            with open(f'{DOCUMENTS}/{name}', encoding='utf-8') as f:
                text = f.read()
            self.assertNotRegex(text, r'st(ands?|ood) still', name)
            self.assertRegex(text, 'paused for', name)

    def offers(self, complete):
        for line, wanted, unwanted in (
                ('memwatch ', {'report', 'diff', 'doctor', 'top'}, {'--pid'}),
                ('memwatch re', {'report'}, {'diff'}),
                ('memwatch --en', {'--engine'}, {'--json'}),
                ('memwatch --engine ', {'auto', 'jump', 'trap'}, {'report'}),
                ('memwatch --engine j', {'jump'}, {'auto'}),
                ('memwatch top --max-s', {'--max-stopped'}, {'--json'}),
                ('memwatch doctor --c', {'--clean'}, {'--json'}),
                ('memwatch report --by', {'--by'}, {'--clean'}),
                ('memwatch report --tree ', {'down', 'up'}, {'all'}),
                ('memwatch diff --to st', {'start'}, {'end'})):
            got = {each.rstrip('= ') for each in complete(line)}
            self.assertLessEqual(wanted, got, line)
            self.assertFalse(unwanted & got, (line, got))
        for line in ('memwatch help ', 'memwatch '):
            self.assertLessEqual({'report', 'help', 'top'}, set(complete(line)), line)
        self.assertEqual({each.rstrip() for each in complete('memwatch help re')}, {'report'})

    def processes(self, complete, beside):
        """Ids, with names beside them where several fit, and no threads of the kernel."""
        sleepers = [subprocess.Popen(['sleep', '100']) for _ in range(2)]
        try:
            pids = [str(each.pid) for each in sleepers]
            for pid in pids:
                while comm(pid) != 'sleep':
                    time.sleep(0.01)
                self.assertIn(f'{pid}{beside[0]}sleep{beside[1]}', complete('memwatch -p '))
            got = [each.replace(beside[0], ' ').split()[0] for each in complete(f'memwatch -p {pids[0]},')]
            self.assertIn(f'{pids[0]},{pids[1]}', got)
            if comm('2') == 'kthreadd':
                self.assertFalse([each for each in complete('memwatch -p 2') if 'kthreadd' in each])
        finally:
            for each in sleepers:
                each.kill()
                each.wait()

    def test_bash(self):
        self.offers(bash)
        self.processes(bash, (' (', ')'))
        # What is inserted at once has no name beside it.
        pid = str(os.getpid())
        got = bash(f'memwatch top -p {pid}')
        self.assertEqual([each.split()[0] for each in got if each.split()[0] == pid], [pid])
        self.assertTrue(len(got) > 1 or got == [pid], got)
        self.assertEqual(bash('memwatch --engine=tr'), ['trap'])
        self.assertEqual(bash('memwatch report --by thread,st'), ['thread,stack'])
        self.assertNotIn('thread,thread', bash('memwatch report --by thread,'))
        self.assertIn('bash', bash('memwatch -d 5 -- bas'))
        with tempfile.TemporaryDirectory() as directory:
            open(f'{directory}/a leak.mw', 'w', encoding='utf-8').close()
            self.assertEqual(bash_words('memwatch', 'report', f'{directory}/a'), [f'{directory}/a leak.mw'])

    @unittest.skipUnless(shutil.which('fish'), 'fish is not installed')
    def test_fish(self):
        self.offers(fish)
        self.processes(lambda line: fish(line, described=True), ('\t', ''))
        self.assertEqual(fish('memwatch --engine=tr'), ['--engine=trap'])

    @unittest.skipUnless(shutil.which('zsh'), 'zsh is not installed')
    def test_zsh(self):
        self.offers(zsh)
        self.assertIn(str(os.getpid()), zsh('memwatch -p '))


if __name__ == '__main__':
    DOCUMENTS = sys.argv.pop(1)
    unittest.main()
