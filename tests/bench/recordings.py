# SPDX-License-Identifier: MIT
"""recordings.py: what it costs to keep a recording, and to look at it again; rows of scripts/bench."""
import json
import os
import re
import subprocess
import tempfile
import time

from window import EXACT

# As in inside.py.
GOALS = [
    ("recording", "bytes_an_event", "a recording takes", "at most", 12, "bytes an event"),
    ("recording", "kept", "two threads at full rate, recorded, keep", "at least", 0.5, "of what they keep watched"),
    ("report", "whole_s", "a report of 100 million events", "at most", 20, "s"),
    ("report", "interval_s", "… of a tenth of them, in the middle", "at most", 20, "s"),
    ("report", "mib", "… takes", "at most", 1024, "MiB"),
    ("report", "html_ratio", "… with a page of it (--html) takes", "at most", 1.75, "times as long"),
    ("report", "page_mib", "… the page has", "at most", 16, "MiB"),
]
HUNDRED_MILLION = 100000000


def events_of(report):
    """How many events there were, nearly: each block's beginning, and its end where it had one."""
    return sum(kind[part]["count"] for kind in report["totals"].values() if kind
               for part in ("size", "transient", "aofi"))


def record(bench):
    """Two threads that allocate, write, read and free as quickly as they can: watched, and recorded."""
    with tempfile.TemporaryDirectory(prefix="memwatch-bench.") as directory:
        board = bench.board(directory)
        target = bench.start(board, "pairs", 8, 2, "use")
        path = os.path.join(directory, "pairs.mw")
        try:
            rates, complete, size, events = [], True, 0, 0
            for options in ((), ("-o", path)):
                with bench.window(target.pid, directory, (*EXACT, *options)) as window:
                    rates.append(board.rate(2, bench.options.seconds))
                    window.end(bench.load)
                complete = complete and window.report["complete"]
                if options:
                    size, events = os.path.getsize(path), events_of(window.report)
        finally:
            target.kill()
            target.wait()
        return {"bytes_an_event": size / max(1, events), "kept": rates[1] / max(1, rates[0]), "recorded": events,
                "complete": complete}


def timed(memwatch, path, options, directory):
    """(seconds, MiB at most) of a report."""
    out = os.path.join(directory, "report.json")
    begin = time.monotonic()
    child = subprocess.Popen([memwatch, "report", path, "--quiet", "--json", out, *options],
                             stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError("memwatch report ended with status %d" % child.returncode)
    with open(out, encoding="utf-8") as file:
        report = json.load(file)
    os.unlink(out)
    return time.monotonic() - begin, usage.ru_maxrss / 1024, report


def report(bench):
    """A made-up recording of 100 million events (10 million where it is to be quick, and times as of 100)."""
    count = HUNDRED_MILLION // (10 if bench.options.quick else 1)
    with tempfile.TemporaryDirectory(prefix="memwatch-bench.", dir=os.environ.get("TMPDIR")) as directory:
        path = os.path.join(directory, "made-up.mw")
        begin = time.monotonic()
        made = subprocess.run([os.path.join(bench.programs, "generate"), path, str(count)], check=True,
                              capture_output=True, text=True)
        written = time.monotonic() - begin
        whole, most, found = timed(bench.memwatch, path, (), directory)
        length = found["window"]["seconds"]
        interval = ("--from", "%.3f" % (length * 0.45), "--to", "%.3f" % (length * 0.55))
        part, some, _ = timed(bench.memwatch, path, interval, directory)
        page = os.path.join(directory, "page.html")
        drawn, more, _ = timed(bench.memwatch, path, ("--html", page), directory)
        scale = HUNDRED_MILLION / count
        bytes_an_event = re.search(r"bytes_per_event=([0-9.]+)", made.stdout + made.stderr)
        return {"whole_s": whole * scale, "interval_s": part * scale, "mib": max(most, some, more),
                # Writing the page takes a second, however few events there were: with fewer it says little.
                "html_ratio": None if bench.options.quick else drawn / whole,
                "page_mib": os.path.getsize(page) / (1 << 20),
                "written_millions_a_second": count / written / 1e6,
                "bytes_an_event": float(bytes_an_event[1]) if bytes_an_event else None}


def tables(rows, number):
    lines = [[name + ", " + key.replace("_", " "), number(value, 3)] for name in ("recording", "report")
             for key, value in rows.get(name, {}).items() if key not in ("samples", "complete")]
    if lines:
        yield "Recordings", ["", ""], lines
