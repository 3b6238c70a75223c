# SPDX-License-Identifier: MIT
"""What the soak has done, and what came of it: counted by engine and kind of target."""
import collections
import threading

# What was done, and what may not be.
DONE = ('attaches', 'time', 'INT', 'TERM', 'HUP', 'twice', 'early', 'rival', 'paused', 'crashed', 'target killed',
        'kills', 'too late', 'cleaned', 'looks', 'metered', 'sampled', 'lossy')
FAULTS = ('died', 'wrong', 'hung', 'left', 'figures', 'memwatch')

LEGEND = """attaches: memwatch was started on it. Ended by: time (-d), INT, TERM, HUP, twice (a second signal), early (a
signal at any moment of attaching), crashed (a SIGSEGV or the like); rival: two memwatches at one time; paused: SIGSTOP
and SIGCONT to the target meanwhile; target killed: SIGKILL to it in the window. kills: SIGKILL to memwatch; too late:
it had ended by itself before; cleaned: by its guard, by the next memwatch or by doctor, and nothing left. looks: at the
heap, whose account added up. metered: windows whose figures were compared with what the target knows; sampled: windows
that memwatch could not keep up with; lossy: windows that reported lost events.
died: targets that did; wrong: wrong results found by targets; hung: a thread that made no progress; left: something of
memwatch stayed after a proper end; figures: a report or a recording was wrong; memwatch: it failed or did not end."""


class Tally:
    def __init__(self):
        self.lock = threading.Lock()
        self.cells = collections.Counter()
        self.sums = collections.Counter()
        self.faults = []

    def count(self, engine, kind, what):
        with self.lock:
            self.cells[engine, kind, what] += 1

    def count_all(self, what):
        with self.lock:
            self.sums[what] += 1

    def fault(self, engine, kind, what, text):
        with self.lock:
            self.cells[engine, kind, what] += 1
            self.faults.append((engine, kind, what, text))

    def total(self, what, engine=None):
        return sum(n for (e, _, w), n in self.cells.items() if w == what and engine in (None, e))

    def table(self):
        with self.lock:
            pairs = sorted({(e, k) for e, k, _ in self.cells if e != '-' or k != '-'})
            rows = [[e, k, *(self.cells[e, k, w] for w in DONE + FAULTS)] for e, k in pairs]
            for engine in sorted({e for e, _ in pairs}):
                rows.append([engine, 'all', *(self.total(w, engine) for w in DONE + FAULTS)])
        head = ['engine', 'target', *DONE, *FAULTS]
        # Long names stand on two lines.
        upper = [h.split(' ')[0] if ' ' in h else '' for h in head]
        lower = [h.split(' ')[-1] for h in head]
        return '\n'.join(layout([upper, lower, *rows]))

    def summary(self):
        kills = ', '.join(f'{self.total("kills", e)} by engine {e}'
                          for e in sorted({e for e, _, w in self.cells if w == 'kills'}))
        others = ', '.join(f'{n} {what}' for what, n in sorted(self.sums.items()))
        faults = ', '.join(f'{self.total(w)} {w}' for w in FAULTS)
        return f'{self.total("attaches")} attaches; SIGKILLs of memwatch: {kills or "none"} ({others}); {faults}'


def layout(rows):
    """Columns, numbers to the right; nothing is shown as a dot."""
    rows = [['.' if cell == 0 else str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ['  '.join(cell.ljust(w) if i < 2 else cell.rjust(w)
                      for i, (cell, w) in enumerate(zip(row, widths))).rstrip() for row in rows]
