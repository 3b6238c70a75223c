# SPDX-License-Identifier: MIT
"""inside.py: what an engine that records inside the target costs; rows of scripts/bench.

Everything is a share of what the same program does unwatched in the same run, or a multiple of a trivial system call
timed in the same run. Each measurement also says what the target does after the window, when it should be bare again.
"""
import contextlib
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time

import peers
import recordings
from window import EXACT, Window, run_ns, until

# What is to be reached: (key, what, at least or at most, limit, unit).
GOALS = [
    ("pair 8 deep", "calls", "a pair, 8 deep", "at most", 0.5, "system calls"),
    ("pair 30 deep", "calls", "a pair, 30 deep", "at most", 0.6, "system calls"),
    ("pair two threads", "kept", "two threads at full rate keep", "at least", 0.15, "of the bare rate"),
    ("pair, as many spinning processes as CPUs", "waited", "waits beside as many spinning processes as CPUs", "at most",
     0.05, "of the time"),
    ("pair, twice as many", "waited", "waits beside twice as many", "at most", 0.05, "of the time"),
    ("pair two threads, by default", "waited", "two threads at full rate wait, by default", "at most", 0.05, "of the time"),
    ("pair two threads, by default, as many spinning", "waited", "beside as many spinning processes as CPUs", "at most",
     0.05, "of the time"),
    ("pair 8 deep, every stack another", "calls", "a pair, 8 deep, every stack another", "at most", 0.6, "system calls"),
    ("pair 30 deep, every stack another", "calls", "a pair, 30 deep, every stack another", "at most", 1.1, "system calls"),
    ("pair 8 deep", "after", "after the window", "at least", 0.95, "of the bare rate"),
    ("sampled, 8 deep", "calls", "a pair that is not sampled, 8 deep", "at most", 0.1, "system calls"),
    ("sampled, 30 deep", "calls", "a pair that is not sampled, 30 deep", "at most", 0.1, "system calls"),
    ("sampled, two threads", "waited", "sampled, two threads at full rate wait", "at most", 0.0001, "of the time"),
    ("sampled, python dicts", "kept", "sampled, python3 allocating dicts keeps", "at least", 0.8, "of the bare rate"),
    ("sampled, redis SET", "kept", "sampled, redis SET, 20 clients, keeps", "at least", 0.99, "of the bare throughput"),
    ("redis SET", "kept", "redis SET, 20 clients, keeps", "at least", 0.95, "of the bare throughput"),
    ("redis LPUSH", "kept", "redis LPUSH, 20 clients, keeps", "at least", 0.95, "of the bare throughput"),
    ("short-lived threads", "watched_per_second", "short-lived threads, watched", "at least", 2000,
     "threads a second"),
    ("python dicts", "kept", "python3 allocating dicts keeps", "at least", 0.2, "of the bare rate"),
    ("java 8 deep", "kept", "Java allocating and freeing 8 calls deep keeps", "at least", 0.15, "of the bare rate"),
    ("java 30 deep", "kept", "Java allocating and freeing 30 calls deep keeps", "at least", 0.15, "of the bare rate"),
    ("memory", "all_mib", "shared memory at 16 threads", "at most", 64, "MiB"),
    ("stops", "attach_ms", "attach stops 200 threads for", "at most", 50, "ms"),
    ("stops", "detach_ms", "detach stops 200 threads for", "at most", 50, "ms"),
    ("drain", "long", "drain, a million live blocks", "at least", 5, "million events a second"),
    ("drain", "short", "drain, blocks that live briefly", "at least", 10, "million events a second"),
    ("idle", "share", "memwatch on an idle target takes", "at most", 0.01, "of a core"),
    *recordings.GOALS,
]

SAMPLE = ("--sample", "512K")
DEFAULTS = ()  # every block is recorded as long as no thread has to wait for more than 5 % of its time
BEST_LINE, BEST_BATCH = 32, 256  # pairs.c

PYTHON = """
import mmap, struct, sys
file = open(sys.argv[1], 'r+b')
board = mmap.mmap(file.fileno(), 4096)
count = 0
while True:
    for i in range(500):
        one = {'number': i, 'name': 'a name %d' % i, 'list': [i] * 8, 'inner': {'a': i, 'b': None}}
    count += 500
    struct.pack_into('=Q', board, 0, count)
"""

JAVA = """
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.*;

public class Pairs {
    static sun.misc.Unsafe unsafe;

    static int deep(int depth, int size) {
        if (depth > 0)
            return deep(depth - 1, size) + 1;
        unsafe.freeMemory(unsafe.allocateMemory(64 + size));
        return 0;
    }

    public static void main(String[] arguments) throws Exception {
        var field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        var file = FileChannel.open(Path.of(arguments[0]), StandardOpenOption.READ, StandardOpenOption.WRITE);
        var board = file.map(FileChannel.MapMode.READ_WRITE, 0, 4096).order(ByteOrder.nativeOrder());
        int depth = Integer.parseInt(arguments[1]);

        field.setAccessible(true);
        unsafe = (sun.misc.Unsafe)field.get(null);
        for (long count = 500;; count += 500) {
            for (int i = 0; i < 500; i++)
                deep(depth, i % 64);
            board.putLong(0, count);
        }
    }
}
"""


def exact_share(report):
    """For how much of the window every block was recorded."""
    sampling = report["sampling"]
    return min(1, sampling["from"] / report["window"]["seconds"]) if sampling else 1


class Inside:
    """The measurements. `tools`: the Board class, start() of a bench program, load() of a report."""

    def __init__(self, options, memwatch, programs, tools, engine="jump"):
        self.options, self.memwatch, self.programs, self.engine = options, memwatch, programs, engine
        self.board, self.start, self.load = tools

    def window(self, pid, directory, options=EXACT):
        return Window(self.memwatch, pid, self.engine, directory, options)

    def measure(self, board, target, threads, directory, options=EXACT):
        """Rates before, in and after a window."""
        seconds = self.options.seconds
        bare_cpu = self.cpu(board, target, threads)
        bare = board.rate(threads, seconds / 2)
        bare_cpu = self.cpu(board, target, threads, bare_cpu)
        best_bare = self.best(board)
        with self.window(target.pid, directory, options) as window:
            before, watched_cpu = run_ns(window.process.pid), self.cpu(board, target, threads)
            self.best(board)
            rates = board.rates(threads, seconds)
            best = self.best(board)
            drain, watched_cpu = run_ns(window.process.pid) - before, self.cpu(board, target, threads, watched_cpu)
            window.end(self.load)
        after = board.rate(threads, seconds / 2)
        watched = sum(rates)
        if target.poll() is not None or not bare or not watched:
            raise RuntimeError("the target has died, or stands still")
        stacks = window.report.get("stacks", [])
        return {
            "bare_ns": 1e9 / bare,
            "added_ns": 1e9 / watched - 1e9 / bare,
            "added_cpu_ns": watched_cpu - bare_cpu,
            # Of the batches of pairs that no other process came between.
            "added_best_ns": best - best_bare if best and best_bare else None,
            "kept": watched / bare,
            "kept_cpu": bare_cpu / watched_cpu,
            "after": after / bare,
            "drain_share": drain / 1e9 / seconds,
            "frames": max((len(stack.get("frames", [])) for stack in stacks), default=None),
            "waited": window.report["engine"]["waited_ns"] / 1e9 / window.report["window"]["seconds"] / threads,
            "exact": exact_share(window.report),
            "complete": not any(window.report["lost"].values()),
        }

    @staticmethod
    def best(board):
        """The shortest time of a pair of the first thread since this was asked before, ns; 0: not known (pairs.c)."""
        found = board.get(BEST_LINE) / BEST_BATCH
        board.set(BEST_LINE, 0)
        return found

    @staticmethod
    def cpu(board, target, threads, since=None):
        """(CPU time, count) of the target now; with an earlier one the CPU time of a count since then, ns."""
        now = run_ns(target.pid), sum(board.get(line) for line in range(threads))
        return (now[0] - since[0]) / max(1, now[1] - since[1]) if since else now

    def pair(self, depth, threads, mode=None, spinning=0, options=EXACT):
        """`spinning`: so many other processes for each CPU never rest."""
        with tempfile.TemporaryDirectory(prefix="memwatch-bench.") as directory, contextlib.ExitStack() as stack:
            for _ in range(spinning * len(os.sched_getaffinity(0))):
                spinner = subprocess.Popen(["sh", "-c", "while :; do :; done"], stdin=subprocess.DEVNULL)
                stack.callback(spinner.wait)
                stack.callback(spinner.kill)
            board = self.board(directory)
            target = self.start(board, "pairs", depth, threads, *([mode] if mode else []))
            stack.callback(target.wait)
            stack.callback(target.kill)
            return self.measure(board, target, threads, directory, options)

    @staticmethod
    def until_begun(board):
        until(lambda: board.get(0), "the program begins")

    @staticmethod
    def start_python(board, environment=()):
        return subprocess.Popen(["/usr/bin/python3", "-S", "-c", PYTHON, board.path], stdin=subprocess.DEVNULL,
                                env={**os.environ, "PYTHONMALLOC": "malloc", **dict(environment)})

    def python(self, options=EXACT, environment=()):
        with tempfile.TemporaryDirectory(prefix="memwatch-bench.") as directory:
            board = self.board(directory)
            target = self.start_python(board, environment)
            try:
                self.until_begun(board)
                return self.measure(board, target, 1, directory, options)
            finally:
                target.kill()
                target.wait()

    def java(self, depth):
        with tempfile.TemporaryDirectory(prefix="memwatch-bench.") as directory:
            board, source = self.board(directory), os.path.join(directory, "Pairs.java")
            with open(source, "w", encoding="utf-8") as file:
                file.write(JAVA)
            subprocess.run(["javac", "-nowarn", "-d", directory, source], stderr=subprocess.DEVNULL, check=True)
            target = subprocess.Popen(["java", "-cp", directory, "Pairs", board.path, str(depth)], stdin=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
            try:
                self.until_begun(board)
                return self.measure(board, target, 1, directory)
            finally:
                target.kill()
                target.wait()

    @staticmethod
    def has_redis():
        return bool(shutil.which("redis-server") and shutil.which("redis-benchmark"))

    @contextlib.contextmanager
    def redis_server(self, directory, environment=()):
        """A server, and what samples a command: (requests a second, CPU time of a request in ns)."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        server = subprocess.Popen(["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                                   "--dir", directory], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  env=dict(os.environ, **dict(environment)))

        def say(word):
            return subprocess.run(["redis-cli", "-p", port, word], capture_output=True, text=True,
                                  check=False).stdout.strip()

        def sample(command):
            before = run_ns(server.pid)
            out = subprocess.run(["redis-benchmark", "-p", port, "-t", command.lower(), "-n", str(self.options.requests),
                                  "-c", "20", "-r", "100000", "--csv"], check=True, capture_output=True, text=True).stdout
            found = (float(re.search(r'(?m)^"%s[^"]*","([0-9.]+)"' % command, out)[1]),
                     (run_ns(server.pid) - before) / self.options.requests)
            say("FLUSHALL")  # what is stored makes requests slower
            return found
        try:
            until(lambda: say("PING") == "PONG", "redis answers")
            sample("SET")
            yield server, sample
        finally:
            server.kill()
            server.wait()

    def redis_once(self, command, environment):
        with tempfile.TemporaryDirectory(prefix="memwatch-bench.") as directory, \
                self.redis_server(directory, environment) as (_, sample):
            return sample(command)

    def redis(self, command, options=EXACT):
        """Requests a second and CPU time of a request, bare and watched in turn; a share is of the samples beside."""
        bare, watched = [], []
        with tempfile.TemporaryDirectory(prefix="memwatch-bench.") as directory, \
                self.redis_server(directory) as (server, sample):
            bare.append(sample(command))
            for _ in range(3 if self.options.quick else 5):
                with self.window(server.pid, directory, options) as window:
                    found = sample(command)
                    window.end(self.load)
                watched.append((*found, not any(window.report["lost"].values())))
                bare.append(sample(command))
        shares = [2 * watched[i][0] / (bare[i][0] + bare[i + 1][0]) for i in range(len(watched))]
        return {
            "kept": statistics.median(shares),
            "shares": shares,
            "bare_per_second": statistics.median(each[0] for each in bare),
            "bare_cpu_ns": statistics.median(each[1] for each in bare),
            "watched_cpu_ns": statistics.median(each[1] for each in watched),
            "complete": all(each[2] for each in watched),
        }

    def threads(self):
        """Threads a second that are made, allocate and end, before, in and after a window."""
        seconds = self.options.seconds
        with tempfile.TemporaryDirectory(prefix="memwatch-bench.") as directory:
            board = self.board(directory)
            target = self.start(board, "shortlived")
            try:
                bare = board.rate(1, seconds / 2)
                with self.window(target.pid, directory) as window:
                    watched = board.rate(1, seconds)
                    window.end(self.load)
                after = board.rate(1, seconds / 2)
                if target.poll() is not None or not bare:
                    raise RuntimeError("the target has died, or stands still")
            finally:
                target.kill()
                target.wait()
        return {"bare_per_second": bare, "watched_per_second": watched, "after_per_second": after,
                "complete": window.report["complete"]}

    def memory(self):
        """What is mapped in a target of 16 threads, all at work."""
        with tempfile.TemporaryDirectory(prefix="memwatch-bench.") as directory:
            board = self.board(directory)
            target = self.start(board, "pairs", 8, 16)
            try:
                time.sleep(0.5)
                size = self.size(target.pid)
                with self.window(target.pid, directory, DEFAULTS) as window:
                    time.sleep(1)
                    mapped, resident = self.mapped(target.pid)
                    grown = self.size(target.pid) - size
                    window.end(self.load)
                left = self.mapped(target.pid)[0]
            finally:
                target.kill()
                target.wait()
        if not mapped:
            raise RuntimeError("nothing of memwatch is mapped")
        return {"mapped_mib": mapped / 1024, "resident_mib": resident / 1024, "left_mib": left / 1024,
                "all_mib": grown / 1024}

    @staticmethod
    def size(pid):
        """KiB of address space."""
        with open("/proc/%d/status" % pid, encoding="utf-8") as file:
            return int(re.search(r"(?m)^VmSize:\s+(\d+)", file.read())[1])

    @staticmethod
    def mapped(pid):
        """KiB mapped and resident that bear memwatch's name."""
        mapped = resident = 0
        ours = False
        with open("/proc/%d/smaps" % pid, encoding="utf-8") as file:
            for line in file:
                if re.match(r"^[0-9a-f]+-[0-9a-f]+ ", line):
                    ours = "memfd:memwatch" in line
                elif ours and line.startswith("Size:"):
                    mapped += int(line.split()[1])
                elif ours and line.startswith("Rss:"):
                    resident += int(line.split()[1])
        return mapped, resident

    def stops(self):
        """How long 200 threads stand still, by memwatch's own count and as one of them sees it."""
        with tempfile.TemporaryDirectory(prefix="memwatch-bench.") as directory:
            board = self.board(directory)
            target = self.start(board, "gaps", 200)
            try:
                until(lambda: board.get(1), "the threads begin")
                board.set(0, 0)
                with self.window(target.pid, directory) as window:
                    attach_seen = board.get(0)
                    board.set(0, 0)
                    window.end(self.load)
                detach_seen = board.get(0)
            finally:
                target.kill()
                target.wait()
        engine = window.report["engine"]
        return {"attach_ms": engine["attach_ns"] / 1e6, "detach_ms": engine["detach_ns"] / 1e6,
                "attach_seen_ms": attach_seen / 1e6, "detach_seen_ms": detach_seen / 1e6}

    def idle(self):
        """memwatch's share of a core while the target sleeps."""
        with tempfile.TemporaryDirectory(prefix="memwatch-bench.") as directory:
            target = subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL)
            try:
                time.sleep(0.2)
                with self.window(target.pid, directory) as window:
                    time.sleep(0.5)
                    before, begun = run_ns(window.process.pid), time.monotonic()
                    time.sleep(2 if self.options.quick else 5)
                    share = (run_ns(window.process.pid) - before) / 1e9 / (time.monotonic() - begun)
                    window.end(self.load)
            finally:
                target.kill()
                target.wait()
        return {"share": share}

    def drain(self):
        """tests/bench/drain: million events a second, the slowest number of rings."""
        run = subprocess.run([os.path.join(self.programs, "drain"), "4" if self.options.quick else "20"], check=True,
                             capture_output=True, text=True)
        lines = [[float(x) for x in line.split()] for line in run.stdout.splitlines()
                 if re.match(r"^\s*\d+\s+\d+\s+[0-9.]+\s+[0-9.]+\s*$", line)]
        longest, shortest = max(line[1] for line in lines), min(line[1] for line in lines)
        return {"long": min(line[3] for line in lines if line[1] == longest),
                "short": min(line[3] for line in lines if line[1] == shortest),
                "alone": min(line[2] for line in lines)}

    def heaptrack(self, depth, threads, mode=None):
        """The same pairs under heaptrack -p: what people have today."""
        with tempfile.TemporaryDirectory(prefix="memwatch-bench.") as directory:
            board = self.board(directory)
            target = self.start(board, "pairs", depth, threads, *([mode] if mode else []))
            run = None
            try:
                bare = board.rate(threads, self.options.seconds / 2)
                run = subprocess.Popen(["heaptrack", "-o", os.path.join(directory, "data"), "-p",
                                        str(target.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, start_new_session=True)
                until(lambda: self.injected(target.pid), "heaptrack attaches")
                time.sleep(1)
                watched = board.rate(threads, self.options.seconds)
            finally:
                if run:
                    os.killpg(run.pid, signal.SIGKILL)
                    run.wait()
                target.kill()
                target.wait()
        if not watched or watched > 0.9 * bare:
            return None
        return {"added_ns": 1e9 / watched - 1e9 / bare, "kept": watched / bare}

    @staticmethod
    def injected(pid):
        with open("/proc/%d/maps" % pid, encoding="utf-8") as file:
            there = "libheaptrack_inject" in file.read()
        with open("/proc/%d/status" % pid, encoding="utf-8") as file:
            return there and "TracerPid:\t0\n" in file.read()

    def rows(self):
        """(name, measurement, how often) of each row that can be measured here."""
        repeat = self.options.repeat
        found = [("pair 8 deep", lambda: self.pair(8, 1), repeat), ("pair 30 deep", lambda: self.pair(30, 1), repeat),
                 ("pair two threads", lambda: self.pair(8, 2, "use"), repeat)]
        found += [("pair, as many spinning processes as CPUs", lambda: self.pair(8, 1, spinning=1, options=DEFAULTS), repeat),
                  ("pair, twice as many", lambda: self.pair(8, 1, spinning=2, options=DEFAULTS), repeat),
                  ("pair two threads, by default", lambda: self.pair(8, 2, "use", options=DEFAULTS), repeat),
                  ("pair two threads, by default, as many spinning",
                   lambda: self.pair(8, 2, "use", spinning=1, options=DEFAULTS), repeat)]
        if not self.options.quick:
            found += [("pair two threads, nothing else done", lambda: self.pair(8, 2), repeat),
                      ("pair 8 deep, every stack another", lambda: self.pair(8, 1, "vary"), repeat),
                      ("pair 30 deep, every stack another", lambda: self.pair(30, 1, "vary"), repeat)]
        found += [("sampled, 8 deep", lambda: self.pair(8, 1, options=SAMPLE), repeat),
                  ("sampled, 30 deep", lambda: self.pair(30, 1, options=SAMPLE), repeat),
                  ("sampled, two threads", lambda: self.pair(8, 2, options=SAMPLE), repeat),
                  ("sampled, python dicts", lambda: self.python(SAMPLE), repeat)]
        if self.has_redis():
            found += [("sampled, redis SET", lambda: self.redis("SET", SAMPLE), 1)]
            found += [("redis SET", lambda: self.redis("SET"), 1), ("redis LPUSH", lambda: self.redis("LPUSH"), 1)]
        found.append(("short-lived threads", self.threads, repeat))
        if os.path.exists("/usr/bin/python3"):
            found.append(("python dicts", self.python, repeat))
            found.append(("python objects", lambda: self.python((*EXACT, "--python-objects"), {"PYTHONMALLOC": "pymalloc"}), repeat))
        if shutil.which("javac"):
            found += [("java 8 deep", lambda: self.java(8), repeat), ("java 30 deep", lambda: self.java(30), repeat)]
        found += [("memory", self.memory, 1), ("stops", self.stops, repeat), ("idle", self.idle, 1),
                  ("drain", self.drain, 1), ("recording", lambda: recordings.record(self), 1),
                  ("report", lambda: recordings.report(self), 1)]
        if not self.options.quick:
            found += peers.rows(self)
        if shutil.which("heaptrack") and not self.options.quick:
            found += [("heaptrack 8 deep", lambda: self.heaptrack(8, 1), 1),
                      ("heaptrack two threads", lambda: self.heaptrack(8, 2, "use"), 1)]
        return [row for row in found if re.search(self.options.rows, row[0])]


WORSE_IS_MORE = ("waited", "added_ns", "added_cpu_ns", "added_best_ns", "attach_ms", "detach_ms", "attach_seen_ms", "detach_seen_ms", "bare_ns",
                 "drain_share", "html_ratio", "page_mib")


def gather(samples):
    """Of several measurements of a row the best of each number: other load only ever adds. Losses count always, and
    where blocks were sampled in any."""
    best = {}
    for key in samples[0]:
        values = [sample[key] for sample in samples if sample[key] is not None]
        if key == "complete":
            best[key] = all(values)
        elif key == "exact":
            best[key] = min(values)
        else:
            best[key] = (min(values) if key in WORSE_IS_MORE else max(values)) if values else None
    return {**best, "samples": len(samples)}


def goals(rows, call_ns):
    """What was to be reached, and was it."""
    result = []
    for name, key, what, relation, limit, unit in GOALS:
        row = rows.get(name)
        if not row or (key != "calls" and row[key] is None):
            continue
        value = (row["added_best_ns"] or row["added_ns"]) / call_ns if key == "calls" else row[key]
        result.append({"what": what, "value": value, "relation": relation, "limit": limit, "unit": unit,
                       "met": value <= limit if relation == "at most" else value >= limit})
    for name, row in rows.items():
        if not row.get("complete", True):
            result.append({"what": name + ": events lost", "value": 1, "relation": "at most", "limit": 0, "unit": "",
                           "met": False})
    return result


def tables(rows, call_ns, number):
    """(title, columns, lines) for people."""
    pairs = [[name, number(row["added_best_ns"], 0), number((row["added_best_ns"] or row["added_ns"]) / call_ns, 2),
              number(row["added_ns"], 0), number(row["added_cpu_ns"], 0),
              number(row["waited"], 3), number(row["exact"], 2), number(row["kept"], 2), number(row["kept_cpu"], 2), number(row["after"], 2), number(row["bare_ns"], 0),
              number(row["drain_share"], 2),
              number(row["frames"], 0), "yes" if row["complete"] else "NO"]
             for name, row in rows.items() if "after" in row]
    if pairs:
        yield ("Recorded inside the target: added to each malloc+free pair (python3: to each round), ns",
               ["", "at best", "system calls", "on average", "CPU", "waited", "exact", "of the bare rate", "by CPU", "after the window", "bare",
                "memwatch's CPU", "frames", "complete"], pairs)
    lines = [[name, number(row["kept"], 3), number(row["bare_cpu_ns"] / row["watched_cpu_ns"], 3), number(row["bare_per_second"], 0), number(row["bare_cpu_ns"] / 1000, 2),
              number(row["watched_cpu_ns"] / 1000, 2), "yes" if row["complete"] else "NO"]
             for name, row in rows.items() if "bare_cpu_ns" in row]
    if lines:
        yield ("redis-server under redis-benchmark, 20 clients; the server's CPU time of a request in µs",
               ["", "of the bare throughput", "by CPU", "bare, a second", "CPU, bare", "CPU, watched", "complete"], lines)
    lines = [[name, number(row["bare_per_second"], 0), number(row["watched_per_second"], 0),
              number(row["after_per_second"], 0), "yes" if row["complete"] else "NO"]
             for name, row in rows.items() if "watched_per_second" in row]
    if lines:
        yield ("Threads a second that are made, allocate and end",
               ["", "bare", "watched", "after the window", "complete"], lines)
    lines = [[name, number(row["added_ns"], 0), number(row["added_ns"] / call_ns, 2), number(row["kept"], 2)]
             for name, row in rows.items() if name.startswith("heaptrack")]
    if lines:
        yield "heaptrack -p on the same", ["", "added, ns", "system calls", "of the bare rate"], lines
    lines = [[name, number(row["peer_added_cpu_ns"], 1), number(row["peer_added_cpu_ns"] / call_ns, 2), number(row["peer_kept"], 3),
              number(row["peer_kept_cpu"], 3), number(row["peer_bare_cpu_ns"], 0)]
             for name, row in rows.items() if "peer_kept" in row]
    if lines:
        yield ("What has sampling of its own, one in 512 KiB, started with it and without: a pair, a round, a request, ns",
               ["", "added, CPU", "system calls", "of the bare rate", "by CPU", "bare, CPU"], lines)
    lines = [[name + ", " + key.replace("_", " "), number(value, 4)] for name in ("memory", "stops", "idle", "drain")
             for key, value in rows.get(name, {}).items() if key != "samples"]
    if lines:
        yield "Besides", ["", ""], lines
    yield from recordings.tables(rows, number)
