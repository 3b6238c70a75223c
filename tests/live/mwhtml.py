# SPDX-License-Identifier: MIT
"""HTML reports taken apart (src/output/html/FORMAT.md), and what must hold of them."""
import base64
import json
import re
import zlib

import mwrec

PART = re.compile(r'(<script type="application/octet-stream" id="memwatch-(?:report|cells)">)'
                  r'([A-Za-z0-9+/=]*)(</script>)')
FATES = ('impacting', 'transient', 'aofi', 'aofo')
KINDS = ('heap', 'vm', 'vm-internal')


class Reader:
    """LEB128 numbers, one behind the other."""

    def __init__(self, raw, place):
        self.raw = raw[place['offset']:place['offset'] + place['length']]
        self.at = 0

    def next(self):
        value = shift = 0
        while True:
            byte = self.raw[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def signed(self):
        value = self.next()
        return -(value + 1) // 2 if value % 2 else value // 2


def later(born, died):
    """The bin of an end, counted from 1; 0: none."""
    return died and (born or 1) + died - 1


def columns(raw, place, lifetimes):
    """Rows of a table, whose columns stand one behind the other."""
    reader = Reader(raw, place)
    some = range(place['rows'])
    first, born = [], []
    for _ in some:
        first.append((first[-1] if first else 0) + reader.signed())
    second, third = ([reader.next() for _ in some] for _ in range(2))
    for _ in some:
        born.append((born[-1] if born else 0) + reader.signed())
    died = [later(one, reader.next()) for one in born]
    count = [reader.next() for _ in some]
    size = []
    blocks = total = 0
    for i in some:
        if i and first[i] != first[i - 1]:
            blocks = total = 0
        each = total // blocks if blocks and total < 1 << 46 else 0
        size.append((count[i] * each if count[i] <= 1 << 20 and each <= 1 << 32 else 0) + reader.signed())
        blocks += count[i]
        total += size[i]
    rest = [] if lifetimes else [[reader.next() for _ in some] for _ in range(2)]
    if rest:
        rest[1] = [expand(code) * blocks for code, blocks in zip(rest[1], count)]
    assert reader.at == len(reader.raw)
    return list(zip(first, second, third, born, died, count, size, *rest))


def expand(code):
    """What stands for a number of 8 bits, and how many bits follow them."""
    shift = 0 if code < 256 else (code >> 7) - 1
    return code - shift * 128 << shift


def cells_of(raw, process, table='cells'):
    """Rows (stack, thread, heap, born, died, count, bytes, unknown, lived); bins counted from 1, 0: none."""
    return columns(raw, process[table], False)


def lifetimes_of(raw, process):
    """Rows (size class, lifetime class, kind, born, died, count, bytes)."""
    return columns(raw, process['lifetimes'], True)


def fate(born, died, begin, end):
    """What bins [begin, end) see of a block; None: nothing."""
    if (born and born > end) or (died and died <= begin):
        return None
    older, gone = born <= begin, died and died <= end
    return ('aofi' if gone else 'aofo') if older else 'transient' if gone else 'impacting'


def nothing():
    return {**{name: [0, 0] for name in FATES}, 'unknown': 0}


def zoom(rows, begin, end, key):
    """Sums of the cells that bins [begin, end) see, by key(row)."""
    sums = {}
    for row in rows:
        what = fate(row[3], row[4], begin, end)
        if what is None or (what == 'aofo' and not row[1]):
            continue
        into = sums.setdefault(key(row), nothing())
        into[what][0] += row[5]
        into[what][1] += row[6]
        into['unknown'] += row[7]
    return sums


def of_report(part):
    """The same, as a report tells it of a stack."""
    return {**{name: [part[name]['count'], part[name]['bytes']] for name in FATES}, 'unknown': part['aofi_unknown']}


class Page:
    """One page: `processes` of (report, cells' process, its cells, its lifetimes)."""

    def __init__(self, test, path):
        self.test = test
        with open(path, encoding='utf-8') as f:
            self.text = f.read()
        found = PART.findall(self.text)
        test.assertEqual(len(found), 2)
        report, self.raw = (zlib.decompress(base64.b64decode(text, validate=True)) for _, text, _ in found)
        self.document = json.loads(report)
        test.assertEqual(self.document['version'], 2)
        self.report = self.document['report']
        reports = self.report.get('processes', [self.report])
        for one in reports:
            frames = one.pop('frames')
            for stack in one['stacks']:
                stack['frames'] = [frames[number] for number in stack['frames']]
        test.assertEqual(len(reports), len(self.document['processes']))
        self.processes = [(one, process, cells_of(self.raw, process), lifetimes_of(self.raw, process))
                          for one, process in zip(reports, self.document['processes'])]
        for part in self.processes:
            self.check(*part)

    def plain(self):
        """The page but for what is packed."""
        return PART.sub(r'\1\3', self.text)

    def check(self, report, process, cells, lifetimes):
        """The rows are in order, and over all bins they give the report's own figures."""
        test = self.test
        test.assertEqual(process['from_ns'], round(report['window']['from'] * 1e9))
        test.assertEqual(process['to_ns'], round(report['window']['to'] * 1e9))
        test.assertEqual(process['space'], report['address_space'])
        test.assertEqual([(m['at_ns'], m['name']) for m in process['marks']],
                         [(round(m['at'] * 1e9), m['name']) for m in report['marks']])
        for table, rows, keys in ((process['cells'], cells, 5), (process['lifetimes'], lifetimes, 5)):
            keys = [row[:keys] for row in rows]
            test.assertEqual(keys, sorted(set(keys)))
            test.assertTrue(all(row[3] <= table['bins'] and row[4] <= table['bins'] for row in rows))
            test.assertTrue(all(row[4] == 0 or row[4] >= row[3] for row in rows))
        bins = process['bins']
        test.assertGreaterEqual(bins * process['bin_ns'], process['to_ns'] - process['from_ns'])
        test.assertEqual(process['lifetimes']['bin_ns'] % process['bin_ns'], 0)
        stacks = zoom(cells, 0, bins, lambda row: row[0])
        for number, stack in enumerate(report['stacks']):
            test.assertEqual(stacks.pop(number, nothing()), of_report(stack), stack['id'])
        test.assertEqual(stacks, {})
        # How long a single block lived is told to within half a hundredth.
        for number, stack in enumerate(report['stacks']):
            if stack['transient']['count'] == 1:
                lived = sum(row[8] for row in cells
                            if row[0] == number and fate(row[3], row[4], 0, bins) == 'transient')
                exact = stack['lifetime_ns']['min']
                test.assertLessEqual(abs(lived - exact), exact / 200, stack['id'])
        kind_of = [stack['kind'] for stack in report['stacks']]
        kinds = zoom(cells, 0, bins, lambda row: kind_of[row[0]])
        for kind in KINDS:
            if report['totals'][kind]:
                test.assertEqual(kinds.get(kind, nothing()), of_report(report['totals'][kind]), kind)
        owners = cells_of(self.raw, process, 'owners') if 'owners' in process else cells
        self.check_threads(report, process, owners, kind_of)
        self.check_lifetimes(report, process, lifetimes)
        for row in owners:
            test.assertLessEqual(row[2], len(process['heaps']))
            test.assertTrue(row[2] == 0 or kind_of[row[0]] == 'heap')

    def check_threads(self, report, process, cells, kind_of):
        test = self.test
        threads = zoom([row for row in cells if kind_of[row[0]] != 'vm-internal'], 0,
                       process.get('owners', process)['bins'], lambda row: row[1])
        if process['coarse'] and 'owners' not in process:
            test.assertEqual(process['threads'], [None])
            return
        test.assertEqual(sorted(process['threads']), list(range(len(report['threads']))))
        for number, index in enumerate(process['threads']):
            got = threads.pop(number + 1, nothing())
            for what in ('impacting', 'transient'):
                amount = report['threads'][index][what]
                test.assertEqual(got[what], [amount['count'], amount['bytes']], report['threads'][index])
        # Only what is from before the window is of no thread.
        test.assertLessEqual(set(threads), {0})
        test.assertTrue(all(row[3] == 0 for row in cells if row[1] == 0))

    def check_lifetimes(self, report, process, lifetimes):
        test = self.test
        for number, kind in enumerate(KINDS):
            if not report['totals'][kind]:
                continue
            for what in ('impacting', 'transient'):
                rows = [row for row in lifetimes
                        if row[2] == number and fate(row[3], row[4], 0, process['lifetimes']['bins']) == what]
                test.assertEqual({'count': sum(row[5] for row in rows), 'bytes': sum(row[6] for row in rows)},
                                 report['totals'][kind][what], (kind, what))
                test.assertEqual({row[1] == 255 for row in rows} - {what == 'impacting'}, set())


def same_report(test, page, json_path):
    """The page's report is what --json gave in the same run."""
    with open(json_path, encoding='utf-8') as f:
        expected = json.load(f)
    test.assertEqual(page.report, expected)
    for report in expected.get('processes', [expected]):
        mwrec.check(test, report, report['complete'])
