# SPDX-License-Identifier: MIT
"""Exports as the programs read them that they are for. Each reader gives what that program says of the file: `totals`,
four figures by measure (those that the format has), in bytes and blocks."""
import gzip
import json
import os
import re
import subprocess
import tempfile

MEASURES = ('inuse_space', 'inuse_objects', 'alloc_space', 'alloc_objects')


def run(*command):
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding='utf-8', timeout=120, check=False,
                              env={**os.environ, 'PPROF_TMPDIR': home, 'HOME': home, 'GOCACHE': 'off', 'LC_ALL': 'C'})
    if done.returncode != 0:
        raise AssertionError(f'{" ".join(command)} ended with {done.returncode}: {done.stdout} {done.stderr}')
    return done.stdout


def wanted(report):
    """The same figures as memwatch's report (an object, or an array of them) has them: of its views, where it has any."""
    totals = dict.fromkeys(MEASURES, 0)
    reports = report.get('processes', [report])
    grouped = reports[0].get('groups')
    parts = [grouped['total']] if grouped else [one['totals'][kind] for one in reports for kind in ('heap', 'vm')
                                                if one['totals'][kind]]
    for part in parts:
        totals['inuse_space'] += part['impacting']['bytes']
        totals['inuse_objects'] += part['impacting']['count']
        totals['alloc_space'] += part['size']['bytes']
        totals['alloc_objects'] += part['size']['count']
    return totals


# --- pprof ---------------------------------------------------------------------------------------------------------------

class Pprof:
    """What `go tool pprof -raw` and -top say."""

    def __init__(self, path):
        self.raw = run('go', 'tool', 'pprof', '-raw', path)
        head, rest = self.raw.split('Samples:\n', 1)
        names, rest = rest.split('\n', 1)
        samples, rest = rest.split('Locations\n', 1)
        locations, mappings = rest.split('Mappings\n', 1)
        self.head = dict(line.split(': ', 1) for line in head.splitlines() if ': ' in line)
        self.types = names.split()
        self.samples, self.labels = [], []
        for line in samples.splitlines():
            match = re.match(r'^ *((?:\d+ +)+) *(\d+): ([\d ]*)$', line)
            if match:
                values = [int(word) for word in (match[1] + match[2]).split()]
                self.samples.append((values, [int(word) for word in match[3].split()]))
                self.labels.append({})
            else:
                self.labels[-1].update(re.findall(r'(\w+):\[([^\]]*)\]', line))
        self.locations, number = {}, 0
        for line in locations.splitlines():
            match = re.match(r'^ +(\d+): 0x([0-9a-f]+) M=(\d+) (.*)$', line)
            number = int(match[1]) if match else number
            text = match[4] if match else line.strip()
            name, file, line_number = re.match(r'^(.*) ([^ ]*):(\d+)(?::\d+)?(?:\(\))?(?: s=0)?(?:\(\))?$', text).groups()
            self.locations.setdefault(number, []).append((name, file, int(line_number)))
        self.mappings = mappings.splitlines()
        sums = [sum(values[i] for values, _ in self.samples) for i in range(4)]
        self.totals = dict(zip(('alloc_objects', 'alloc_space', 'inuse_objects', 'inuse_space'), sums))

    def check(self, path):
        """It has the types in their order, no location without a mapping, and -top has the same totals."""
        assert self.types == ['alloc_objects/count', 'alloc_space/bytes', 'inuse_objects/count', 'inuse_space/bytes[dflt]'], self.types
        assert all(re.search(r'\[FN\]\[FL\]\[LN\]\[IN\]$', line) for line in self.mappings), self.mappings
        assert 'M=0' not in self.raw
        assert sorted(self.locations) == list(range(1, len(self.locations) + 1)), 'ids are dense'
        for measure in MEASURES:
            unit = 'B' if 'space' in measure else ''
            top = run('go', 'tool', 'pprof', '-top', '-nodecount=100000', '-nodefraction=0', '-edgefraction=0',
                      *(['-unit=B'] if unit else []), f'-sample_index={measure}', path)
            total = self.totals[measure]
            assert f'Showing nodes accounting for {total}{unit if total else ""}, ' in top, (total, top[:400])

    def functions(self):
        """Names, files and lines that the samples' stacks have, outermost last."""
        return [[line for number in numbers for line in self.locations[number]] for _, numbers in self.samples]


# --- collapsed -----------------------------------------------------------------------------------------------------------

def fold(text):
    """Stacks and their sums, as flamegraph.pl takes lines apart: by the last blank and number, then at each ';'."""
    stacks = {}
    for line in text.splitlines():
        stack, figure = re.match(r'^(.*)\s+?(\d+(?:\.\d*)?)$', line).groups()
        # A number before that would be taken for a first figure, of two to be compared.
        assert not re.match(r'^(.*)\s+?(\d+(?:\.\d*)?)$', stack), line
        frames = tuple(stack.split(';'))
        assert all(frames), line
        stacks[frames] = stacks.get(frames, 0) + int(figure)
    return stacks


# --- callgrind -----------------------------------------------------------------------------------------------------------

class Callgrind:
    """What callgrind_annotate says: totals, and for each function (with its file) what it costs, with what it calls."""
    EVENTS = ('Impacting', 'ImpactingBlocks', 'Allocated', 'AllocatedBlocks')

    def __init__(self, path):
        text = run('callgrind_annotate', '--inclusive=yes', '--threshold=100', '--show-percs=no', '--auto=no', path)
        assert 'malformed' not in text and f'Events shown:     {" ".join(self.EVENTS)}' in text, text
        self.functions, self.totals = {}, None
        for line in text.splitlines():
            match = re.match(r'^ *([\d,.]+) +([\d,.]+) +([\d,.]+) +([\d,.]+) +(.*)$', line)
            if not match:
                continue
            figures = [int(figure.replace(',', '').replace('.', '0')) for figure in match.groups()[:4]]
            if 'PROGRAM TOTALS' in match[5]:
                self.totals = dict(zip(MEASURES, figures))
            else:
                self.functions[match[5]] = dict(zip(MEASURES, figures))


# --- heaptrack -----------------------------------------------------------------------------------------------------------

class Heaptrack:
    """What heaptrack_print says of the file: `totals` (it has no number of what was not freed), the peak, and the lines of its
    summary. It rounds bytes there: they are the sums of what it writes for flame graphs, and of its histogram of sizes. And what
    the lines say, read here: what was not freed by stack, with inlined calls, innermost first."""

    def __init__(self, path):
        sums, self.histogram = {}, {}
        with tempfile.TemporaryDirectory() as directory:
            for cost in ('allocations', 'leaked', 'peak'):
                stacks, sizes = os.path.join(directory, 'stacks'), os.path.join(directory, 'sizes')
                # Known leaks of system libraries are left out otherwise.
                done = subprocess.run(['heaptrack_print', '--disable-builtin-suppressions', '-F', stacks, '--flamegraph-cost-type', cost,
                                       '-H', sizes, path], stdin=subprocess.DEVNULL, capture_output=True, encoding='utf-8',
                                      timeout=120, check=False)
                assert (done.returncode, done.stderr) == (0, ''), done.stderr
                with open(stacks, encoding='utf-8') as file:
                    sums[cost] = sum(int(line.rsplit(' ', 1)[1]) for line in file)
                with open(sizes, encoding='utf-8') as file:
                    self.histogram = dict([int(word) for word in line.split()] for line in file)
        self.says = dict(re.findall(r'^([a-zA-Z() ]+): (\S+)', done.stdout, re.M))
        assert int(self.says['calls to allocation functions']) == sums['allocations'], (self.says, sums)
        self.peak = sums['peak']
        self.totals = {'inuse_space': sums['leaked'], 'alloc_objects': sums['allocations'],
                       'alloc_space': sum(size * count for size, count in self.histogram.items())}
        with gzip.open(path, 'rt', encoding='utf-8', newline='\n') as file:
            self.lines = file.read().splitlines()
        self.replay()

    def replay(self):
        """Every line names what is there already, time goes on, and nothing goes that did not come."""
        strings, places, traces, kinds = [''], [None], [()], []
        self.stacks, self.times, self.rss, outstanding, most, seen = {}, [0], [], 0, 0, 0
        for line in self.lines:
            mode, rest = line[0], line[2:]
            if mode == 's':
                strings.append(rest)
                continue
            if mode in 'vXIA':
                continue
            numbers = [int(word, 16) for word in rest.split()]
            if mode == 'i':
                places.append(tuple((strings[function], strings[file], number)
                                    for function, file, number in zip(*[iter(numbers[2:])] * 3)))
            elif mode == 't':
                traces.append(places[numbers[0]] + traces[numbers[1]])
            elif mode == 'a':
                kinds.append((numbers[0], traces[numbers[1]]))
            elif mode in '+-':
                size, stack = kinds[numbers[0]]
                size = size if mode == '+' else -size
                outstanding += size
                most = max(most, outstanding)
                # heaptrack_gui counts on it, but for those of which nothing comes.
                assert mode == '-' or numbers[0] <= seen, line
                seen += mode == '+' and numbers[0] == seen
                self.stacks[stack] = self.stacks.get(stack, 0) + size
                assert self.stacks[stack] >= 0, line
            elif mode == 'c':
                assert numbers[0] > self.times[-1], line
                self.times.append(numbers[0])
            else:
                assert mode == 'R', line
                self.rss.append(numbers[0] * 4096)
        assert (outstanding, most) == (self.totals['inuse_space'], self.peak), (outstanding, most, self.totals, self.peak)
        assert len(set(strings)) == len(strings) and len(set(places)) <= len(places)


# --- JSON ----------------------------------------------------------------------------------------------------------------

def speedscope(path):
    with open(path, encoding='utf-8') as file:
        found = json.load(file)
    return {profile['name']: sum(profile['weights']) for profile in found['profiles']}


def sqlite(path, question):
    """What the program sqlite3 answers: rows as objects."""
    return json.loads(run('sqlite3', '-json', '-readonly', path, question) or '[]')


def sqlite_totals(path):
    """The database is sound, and its sums are these."""
    assert sqlite(path, 'PRAGMA integrity_check') == [{'integrity_check': 'ok'}]
    assert sqlite(path, 'PRAGMA foreign_key_check') == []
    found, = sqlite(path, 'SELECT sum(not_freed_bytes) AS inuse_space, sum(not_freed_blocks) AS inuse_objects, '
                          'sum(allocated_bytes) AS alloc_space, sum(allocated_blocks) AS alloc_objects '
                          'FROM blocks')
    return {measure: found[measure] or 0 for measure in MEASURES}


def dhat(path):
    with open(path, encoding='utf-8') as file:
        found = json.load(file)
    places = found['pps']
    assert len({tuple(place['fs']) for place in places}) == len(places), 'each stack once'
    for place in places:
        assert place['tb'] >= place['mb'] >= max(place['gb'], place['eb']), place
        assert place['tbk'] >= place['mbk'] >= max(place['gbk'], place['ebk']), place
    total = {name: sum(place[name] for place in places) for name in ('eb', 'ebk', 'tb', 'tbk', 'gb', 'gbk', 'tl')}
    return found, total, dict(zip(MEASURES, (total['eb'], total['ebk'], total['tb'], total['tbk'])))
