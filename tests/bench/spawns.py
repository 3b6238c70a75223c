# SPDX-License-Identifier: MIT
"""What following children costs a process that starts short programs all the time (spawns.c): part of scripts/bench."""
import os
import statistics
import subprocess

COUNT = 1000
ROUNDS = 3  # before, and while it is watched
SHARE = 0.8


def measure(programs, memwatch):
    """Of one process: programs a second before it is watched, and then."""
    process = subprocess.Popen([os.path.join(programs, "spawns"), str(COUNT), str(2 * ROUNDS + 2)], stdout=subprocess.PIPE, text=True)
    watch = None
    try:
        before = [float(process.stdout.readline()) for _ in range(ROUNDS)]
        watch = subprocess.Popen([memwatch, "-p", str(process.pid), "--children", "--engine", "jump", "--quiet"],
                                 stderr=subprocess.DEVNULL)
        process.stdout.readline()  # memwatch attaches
        watched = [float(process.stdout.readline()) for _ in range(ROUNDS)]
        if watch.poll() is not None:
            raise RuntimeError(f"memwatch has ended with {watch.returncode}")
    finally:
        process.kill()
        process.wait()
        if watch:
            watch.wait(60)
    return {"bare_per_second": statistics.median(before), "watched_per_second": statistics.median(watched)}


def table(row, number):
    return ("A process that starts short programs, its children followed",
            ["", "programs a second, bare", "watched", "kept"],
            [[f"{COUNT} by posix_spawn", number(row["bare_per_second"], 0), number(row["watched_per_second"], 0),
              number(row["watched_per_second"] / row["bare_per_second"], 2)]])


def goals(row):
    """(what, value, relation, limit, unit, met)"""
    if not row:
        return []
    share = row["watched_per_second"] / row["bare_per_second"]
    return [("spawn rate kept with --children", share, "at least", SHARE, "", share >= SHARE)]
