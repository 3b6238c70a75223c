# SPDX-License-Identifier: MIT
"""peers.py TOOL KIND: builds a program as KIND says, and compares what memwatch's symbolizer (TOOL: tests/tools/symbols.c)
says of 1,000 addresses (10,000 by scripts/soak), evenly spread over its code, with llvm-symbolizer: functions, files,
lines, inlined frames.

Everything is to be equal, but for these:
- Names are compared as memwatch demangles them. Of functions without a linkage name llvm-symbolizer tells the bare name,
  memwatch the namespaces and classes around it too. So it does where a linkage name is not mangled (an asm label, Rust's
  export_name): the source's name is told, not the assembler's.
- Where several symbols have the function's address (the compiler or the linker has made one of equal functions) it may
  be any of them: memwatch prefers DWARF's, llvm-symbolizer takes one out of the symbol table.
- Paths are compared without "." and "..". Where DWARF has one relative to where the compiler ran memwatch leaves it so.
- Of code without debug information llvm-symbolizer shows the name in the symbol table's STT_FILE; memwatch shows no file.

The line of the innermost frame is compared with binutils' addr2line as well. Not its functions: release 2.40 loses the
inlined frames of DWARF 5's range lists and of split DWARF, and tells bare names in many places. Nor its lines of what
belongs to no function: it tells that of the last instruction before such padding."""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
COUNT = 10000 if os.environ.get('MEMWATCH_SOAK') else 1000
HERE = os.path.dirname(os.path.abspath(__file__))
CXX = ['-std=c++17', '-pthread', '-O2', '-g', os.path.join(HERE, 'peers.cpp')]
RUST = ['-O', '-g', os.path.join(HERE, 'peers.rs')]
KINDS = {
    'clang': ['clang++', *CXX],
    'clang-dwarf4': ['clang++', *CXX, '-gdwarf-4', '-gz'],
    'clang-split-zstd': ['clang++', *CXX, '-gsplit-dwarf'],
    'gcc': ['g++', *CXX],
    'gcc-dwarf4-zstd': ['g++', *CXX, '-gdwarf-4'],
    'gcc-lto': ['g++', *CXX, '-flto'],
    'gcc-types': ['g++', *CXX, '-fdebug-types-section'],
    'gcc-dwz': ['g++', *CXX],
    'rust': ['rustc', *RUST],
    'rust-lto': ['rustc', *RUST, '-C', 'lto=fat'],
}
# Programs whose objects do not tell where they were compiled but in the name of a directory that nothing looks into.
REMEMBERED = ('clang', 'clang-dwarf4', 'gcc', 'gcc-dwarf4-zstd', 'gcc-types', 'gcc-dwz')


def run(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, timeout=300).stdout


def compile_once(command, directory):
    """By ccache, which has the object of an earlier run: the compiler takes most of the time of this test."""
    environment = {**os.environ, 'CCACHE_NOHASHDIR': '1', 'CCACHE_BASEDIR': ''}
    subprocess.run(['ccache', *command, '-c', '-o', 'program.o'], check=True, cwd=directory, timeout=500, env=environment)
    subprocess.run([command[0], '-pthread', 'program.o', '-o', 'program'], check=True, cwd=directory, timeout=500)


def build(kind, directory):
    """The program's path; it has never heard of the directory's name, so that runs do not differ."""
    command = KINDS[kind]
    needed = [command[0], 'llvm-symbolizer', 'addr2line', 'readelf', 'nm'] + (['dwz'] if kind == 'gcc-dwz' else [])
    for name in needed:
        if not shutil.which(name):
            print(f'{name} is not installed')
            sys.exit(SKIPPED)
    if kind in REMEMBERED and shutil.which('ccache'):
        compile_once(command, directory)
    else:
        subprocess.run([*command, '-o', 'program'], check=True, cwd=directory, timeout=500)
    if kind == 'gcc-dwz':
        run('dwz', os.path.join(directory, 'program'))
    return os.path.join(directory, 'program')


def compress(directory):
    """Debug sections of the program and its .dwo files by zstd, which not all of the peers can read."""
    for path in [os.path.join(directory, 'program'), *glob.glob(os.path.join(directory, '*.dwo'))]:
        if 'zstd' not in run('objcopy', '--help'):
            print('objcopy does not know zstd')
            sys.exit(SKIPPED)
        size = os.path.getsize(path)
        run('objcopy', '--compress-debug-sections=zstd', path)
        assert os.path.getsize(path) < size


def sample(path):
    for line in run('readelf', '-SW', path).splitlines():
        fields = line.replace('[ ', '[').split()
        if len(fields) > 5 and fields[1] == '.text':
            start, size = int(fields[3], 16), int(fields[5], 16)
            return [start + size * i // COUNT for i in range(COUNT)]
    raise AssertionError('no .text')


def ask_memwatch(tool, path, text):
    answers = []
    for line in run(tool, path, text=text).splitlines():
        if line.startswith('= '):
            answers.append([])
        else:
            function, file, number = line.split('\t')
            answers[-1].append((function, file, int(number)))
    return answers


def ask_llvm(path, text, names):
    output = run('llvm-symbolizer', f'--obj={path}', '--no-demangle', f'--functions={names}', '--inlines',
                 '--output-style=JSON', text=text)
    return [[(frame['FunctionName'] or '?', frame['FileName'] or '?', frame['Line']) for frame in
             json.loads(line)['Symbol']] for line in output.splitlines()]


def ask_addr2line(path, text):
    """The lines alone."""
    places = run('addr2line', '-e', path, text=text).splitlines()
    numbers = [place.split(' (discriminator')[0].rpartition(':')[2] for place in places]
    return [int(number) if number.isdigit() else 0 for number in numbers]


class Names:
    """Symbols as memwatch shows them, and which of them have an address in common."""

    def __init__(self, tool, path, others):
        symbols = [line.split(' ', 2) for line in run('nm', path).splitlines() if line[0] != ' ']
        names = sorted({name for _, _, name in symbols} | others)
        shown = run(tool, '--demangle', text=''.join(f'{name}\n' for name in names)).splitlines()
        self.shown = dict(zip(names, shown))
        self.addresses = {}
        for address, _, name in symbols:
            self.addresses.setdefault(self.shown[name], set()).add(address)

    def equal(self, ours, theirs, in_source, is_inlined):
        bare = self.shown[theirs]
        if ours == bare or (bare == theirs and f'::{ours}'.endswith((f'::{bare}', f'::{in_source}'))):
            return True
        return not is_inlined and bool(self.addresses.get(ours, set()) & self.addresses.get(bare, set()))


def equal_files(ours, theirs):
    """Each a file and a line."""
    if ours == ('?', 0) and theirs[1] == 0 and '/' not in theirs[0]:
        return True
    path, other = os.path.normpath(ours[0]), os.path.normpath(theirs[0])
    return ours[1] == theirs[1] and (path == other or (path[0] not in '/?' and other.endswith('/' + path)))


def equal(ours, theirs, in_source, names):
    """Frames of one address."""
    return len(ours) == len(theirs) == len(in_source) and all(
        names.equal(a[0], b[0], c[0], i < len(ours) - 1) and equal_files(a[1:], b[1:])
        for i, (a, b, c) in enumerate(zip(ours, theirs, in_source)))


def main():
    tool, kind = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        path = build(kind, directory)
        addresses = sample(path)
        text = ''.join(f'{address:#x}\n' for address in addresses)
        theirs, in_source = ask_llvm(path, text, 'linkage'), ask_llvm(path, text, 'short')
        lines = ask_addr2line(path, text)
        if kind.endswith('-zstd'):
            compress(directory)
        ours = ask_memwatch(tool, path, text)
        names = Names(tool, path, {frame[0] for frames in theirs for frame in frames})
    assert len(ours) == len(theirs) == len(lines) == COUNT
    wrong = [i for i in range(COUNT) if not equal(ours[i], theirs[i], in_source[i], names)]
    padding = ('?', '?', 0)
    wrong_lines = [i for i in range(COUNT) if ours[i][0][2] != lines[i] and theirs[i] != [padding]]
    for i in sorted({*wrong[:10], *wrong_lines[:10]}):
        print(f'{addresses[i]:#x}', 'memwatch:', *ours[i], 'llvm-symbolizer:',
              *((names.shown[frame[0]], *frame[1:]) for frame in theirs[i]), 'addr2line:', lines[i], sep='\n  ')
    depth = max(map(len, theirs))
    print(f'{kind}: {COUNT} addresses, {sum(len(frames) > 1 for frames in theirs)} in inlined code, at most {depth} frames: '
          f'{len(wrong)} differ from llvm-symbolizer, {len(wrong_lines)} from addr2line')
    # There is something to compare.
    assert depth > 4 and sum(frames[0][2] > 0 for frames in theirs) > COUNT / 2
    return 1 if wrong or wrong_lines else 0


if __name__ == '__main__':
    sys.exit(main())
