# SPDX-License-Identifier: MIT
"""annotate.py: where in the recorder the time of a row goes, by samples of perf (scripts/bench --annotate ROW).

A row of pairs is measured with memwatch attached, one of tests/unit/stub/bench_image.c with nobody at the ring.

The recorder's code is in no file that perf knows of: samples there are held against the image that the build has linked,
which has the same addresses and debug information.
"""
import collections
import os
import re
import subprocess
import tempfile

from window import Window

RATE = 20000  # samples a second that are asked for
ROUNDS = "10000"
LEAST = 0.004  # share of the recorder's samples from which an instruction is shown


def image_of(pid, image):
    """Where the recorder is in a process: anonymous code that begins as the image does."""
    with open(image + ".bin", "rb") as file:
        begin = file.read(8)
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps, open("/proc/%d/mem" % pid, "rb", buffering=0) as memory:
        for line in maps:
            part = line.split(None, 5)
            start, end = (int(x, 16) for x in part[0].split("-"))
            if part[1] != "r-xp" or len(part) > 5:
                continue
            memory.seek(start)
            if memory.read(8) == begin:
                return start
    raise RuntimeError("the recorder is not there")


def record(what, directory):
    """How often each (address, what perf knows of it) was met, and what was printed."""
    data = os.path.join(directory, "perf.data")
    out = subprocess.run(["perf", "record", "-q", "-F", str(RATE), "-o", data, *what], check=True, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    text = subprocess.run(["perf", "script", "-i", data, "-F", "ip,sym,dso"], check=True, capture_output=True,
                          text=True).stdout
    found = collections.Counter()
    for line in text.splitlines():
        match = re.match(r"\s*([0-9a-f]+) (.*)$", line)
        if match:
            found[int(match[1], 16), match[2].strip()] += 1
    return found, out


def places(image, addresses):
    """Function and line of each address, of the innermost of the functions that are inlined there."""
    text = subprocess.run(["addr2line", "-f", "-e", image], check=True, capture_output=True, text=True,
                          input="\n".join(hex(address) for address in addresses)).stdout.splitlines()
    return {address: (text[2 * i], re.sub(r"^.*/| \(.*$", "", text[2 * i + 1])) for i, address in enumerate(addresses)}


def instructions(image):
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", image], check=True, capture_output=True, text=True).stdout
    return [(int(match[1], 16), match[2].expandtabs()) for match in re.finditer(r"(?m)^ *([0-9a-f]+):\t(.*)$", text)]


def show(found, start, image):
    end = start + os.path.getsize(image + ".bin")
    total = sum(found.values())
    inside = collections.Counter()
    others = collections.Counter()
    for (address, what), count in found.items():
        if start <= address < end:
            inside[address - start] += count
        else:
            others[re.sub(r"^\[unknown\] ", "", what)] += count
    recorded = sum(inside.values())
    if not recorded:
        raise RuntimeError("no sample is of the recorder")
    print("%d samples; the recorder has %.1f %% of them, of the rest the most:" % (total, 100 * recorded / total))
    for what, count in others.most_common(8):
        print("  %5.1f %%  %s" % (100 * count / total, what))
    listing = instructions(image)
    place = places(image, [address for address, _ in listing])
    functions = collections.Counter()
    for address, count in inside.items():
        functions[place.get(address, ("?", ""))[0]] += count
    print("\nIn the recorder, by function (as inlined), share of its samples")
    for function, count in functions.most_common(30):
        print("  %5.1f %%  %s" % (100 * count / recorded, function))
    print("\nBy instruction, from %.1f %% on" % (100 * LEAST))
    skipped = False
    for address, text in listing:
        share = inside[address] / recorded
        if share < LEAST:
            skipped = True
            continue
        if skipped:
            print("          …")
        skipped = False
        print("  %5.1f %%  %5x  %-52s %s %s" % (100 * share, address, text, *place[address]))


def alone(build, row):
    """Print it for a row of bench_stub."""
    image = os.path.join(build, "src", "stub", "stub_image")
    with tempfile.TemporaryDirectory(prefix="memwatch-bench.") as directory:
        found, out = record(["--", os.path.join(build, "tests", "unit", "stub", "bench_stub"), ROUNDS, row], directory)
    start = re.match(r"image at 0x([0-9a-f]+)\n(.+)", out)
    if not start:
        raise RuntimeError("bench_stub has no such row: " + row)
    print(start[2])
    show(found, int(start[1], 16), image)


def attached(bench, board_class, depth, threads, mode, options):
    """Print it for pairs, while memwatch is attached."""
    image = os.path.join(bench.options.build, "src", "stub", "stub_image")
    with tempfile.TemporaryDirectory(prefix="memwatch-bench.") as directory:
        board = board_class(directory)
        target = bench.start(board, "pairs", depth, threads, *([mode] if mode else []))
        try:
            with Window(bench.memwatch, target.pid, "jump", directory, options):
                found, _ = record(["-p", str(target.pid), "--", "sleep", str(bench.options.seconds)], directory)
                show(found, image_of(target.pid, image), image)
        finally:
            target.kill()
            target.wait()
