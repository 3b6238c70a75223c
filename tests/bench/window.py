# SPDX-License-Identifier: MIT
"""window.py: memwatch on a running process, for scripts/bench, and what /proc tells of both."""
import os
import signal
import subprocess
import sys
import time

EXACT = ("--max-wait", "100")  # every block is recorded, however long threads wait for that


def code_of(pid):
    """The code of a process's files as it is in memory now."""
    found = []
    with open("/proc/%d/maps" % pid, encoding="utf-8") as file:
        lines = file.readlines()
    with open("/proc/%d/mem" % pid, "rb", buffering=0) as memory:
        for line in lines:
            part = line.split(None, 5)
            if "x" not in part[1] or len(part) < 6 or not part[5].startswith("/"):
                continue
            start, end = (int(x, 16) for x in part[0].split("-"))
            try:
                memory.seek(start)
                found.append((start, memory.read(end - start)))
            except OSError:
                pass
    return found


def states(pid):
    found = ""
    for tid in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/stat" % (pid, tid), encoding="utf-8") as file:
                found += file.read().rsplit(")", 1)[1].split()[0]
        except OSError:
            pass
    return found


def run_ns(pid):
    """Time that all threads of a process have had a CPU, ns."""
    total = 0
    for tid in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/schedstat" % (pid, tid), encoding="utf-8") as file:
                total += int(file.read().split()[0])
        except OSError:
            pass
    return total


def until(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError("waited in vain: " + what)
        time.sleep(0.01)


class Window:
    """memwatch on a process, from when it records to when it is gone; `report` after it."""

    def __init__(self, memwatch, pid, engine, directory, options=()):
        self.path = os.path.join(directory, "report.json")
        self.pid = pid
        self.report = None
        self.before = code_of(pid)
        self.process = subprocess.Popen([memwatch, "-p", str(pid), "--engine", engine, "--quiet", "--json", self.path,
                                         *options], stdin=subprocess.DEVNULL)
        try:
            until(self.begun, "memwatch attaches")
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        time.sleep(0.2)  # caches fill

    def begun(self):
        if self.process.poll() is not None:
            raise RuntimeError("memwatch ended with status %d" % self.process.returncode)
        return code_of(self.pid) != self.before and "t" not in states(self.pid)

    def end(self, load):
        self.process.send_signal(signal.SIGINT)
        if self.process.wait(120) != 0:
            raise RuntimeError("memwatch failed with status %d" % self.process.returncode)
        self.report = load(self.path)
        # A sampled window is never complete.
        if any(self.report["lost"].values()):
            print("bench: events were lost: %s" % self.report.get("lost"), file=sys.stderr)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
