# SPDX-License-Identifier: MIT
"""How quickly heaps are looked through for reachable blocks (reach.c): part of scripts/bench."""
import os
import subprocess

# Name, blocks, bytes of each on average, words for a pointer behind a block's first 16 words
HEAPS = [
    ("10 million of 64 bytes", 10_000_000, 64, 16),
    ("of 2 KiB, a pointer in 128 bytes", 200_000, 2048, 16),
    ("of 100 KB, a pointer in 2 KiB", 10_000, 100_000, 256),
    ("a random tree, 15 million of 104 bytes", 15_000_000, 104, 0),
]
MOST = 0  # the row with the most blocks
DATA = 2  # … and with the most data

GB_PER_SECOND = 1.5
DOMINATORS_SECONDS = 30
DOMINATORS_MIB = 2048


def measure(programs):
    rows = []
    for name, *arguments in HEAPS:
        text = subprocess.run([os.path.join(programs, "reach"), *map(str, arguments), "1"], check=True,
                              capture_output=True, text=True).stdout
        rows.append({"heap": name, **{key: float(value) for key, value in (pair.split("=") for pair in text.split())}})
    return rows


def table(rows, number):
    return ("Looking through a heap for reachable blocks, by one thread",
            ["blocks", "GB/s of CPU time", "reading alone", "seconds", "with dominators", "of it their tree", "MiB",
             "with dominators"],
            [[row["heap"], number(row["gb_per_cpu_second"], 2), number(row["copy_gb_per_cpu_second"], 2),
              number(row["cpu_seconds"], 2), number(row["holders_cpu_seconds"], 2), number(row["tree_seconds"], 2), number(row["peak_mib"], 0),
              number(row["holders_peak_mib"], 0)] for row in rows])


def goals(rows):
    """(what, value, relation, limit, unit, met)"""
    if not rows:
        return []
    most, rate = rows[MOST], rows[DATA]["gb_per_cpu_second"]
    seconds = most["holders_cpu_seconds"] - most["cpu_seconds"]
    return [("dominators of 10 million blocks", seconds, "at most", DOMINATORS_SECONDS, "s", seconds <= DOMINATORS_SECONDS),
            ("… in memory", most["holders_peak_mib"], "at most", DOMINATORS_MIB, "MiB",
             most["holders_peak_mib"] <= DOMINATORS_MIB),
            ("a heap of data looked through", rate, "at least", GB_PER_SECOND, "GB/s", rate >= GB_PER_SECOND)]
