#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""recording.py FILE: say what is in a recording, as `replay FILE` does, from src/store/FORMAT.md alone.

recording.py --compare REPLAY GENERATE: do so for recordings that GENERATE writes, and see that REPLAY says the same.
"""
import os
import struct
import subprocess
import sys
import tempfile

MAGIC = b'\x89MWREC\r\n'
WORD = 1 << 64
THREADS, STACKS, EVENTS, SAMPLES, MARKS, MODULES, SYMBOLS, CLOSE = 5, 6, 7, 8, 9, 3, 11, 13

P1, P2, P3, P4, P5 = (11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579,
                      2870177450012600261)


def rotl(x, r):
    return ((x << r) | (x >> (64 - r))) % WORD


def xxh64(data, seed):
    """XXH64, from its specification."""
    at, size = 0, len(data)

    def mix(acc, lane):
        return rotl((acc + lane * P2) % WORD, 31) * P1 % WORD

    if size >= 32:
        acc = [(seed + P1 + P2) % WORD, (seed + P2) % WORD, seed, (seed - P1) % WORD]
        while at + 32 <= size:
            acc = [mix(a, lane) for a, lane in zip(acc, struct.unpack_from('<4Q', data, at))]
            at += 32
        result = sum(rotl(a, r) for a, r in zip(acc, (1, 7, 12, 18))) % WORD
        for a in acc:
            result = ((result ^ mix(0, a)) * P1 + P4) % WORD
    else:
        result = (seed + P5) % WORD
    result = (result + size) % WORD
    while at + 8 <= size:
        result = (rotl(result ^ mix(0, struct.unpack_from('<Q', data, at)[0]), 27) * P1 + P4) % WORD
        at += 8
    if at + 4 <= size:
        result = (rotl(result ^ (struct.unpack_from('<I', data, at)[0] * P1 % WORD), 23) * P2 + P3) % WORD
        at += 4
    for byte in data[at:]:
        result = rotl(result ^ (byte * P5 % WORD), 11) * P1 % WORD
    result = (result ^ (result >> 33)) * P2 % WORD
    result = (result ^ (result >> 29)) * P3 % WORD
    return result ^ (result >> 32)


def decompress(stored):
    done = subprocess.run(['zstd', '-dc'], input=stored, stdout=subprocess.PIPE, check=True)
    return done.stdout


def chunks(data):
    """Each chunk that is whole as (type, process, count, content); returns (good, why)."""
    if data[:8] != MAGIC or struct.unpack_from('<II', data, 8) != (1, 0):
        sys.exit('no recording of version 1')
    at, sequence = 16, 0
    while at + 40 <= len(data):
        magic, kind, coding, process, count, number, raw, size, wanted = struct.unpack_from('<4sHHIIQIIQ', data, at)
        stored = data[at + 40:at + 40 + size]
        if magic != b'MWCK' or number != sequence or raw > 1 << 20 or size > raw or len(stored) != size:
            return
        if xxh64(stored, xxh64(data[at:at + 32], 0)) != wanted:
            return
        content = decompress(stored) if coding else stored
        if len(content) != raw:
            return
        yield kind, process, count, content
        at += 40 + size
        sequence += 1


class Fields:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    def bytes(self):
        size = self.number()
        self.at += size
        return self.data[self.at - size:self.at]


def records(content, count):
    fields = Fields(content)
    for _ in range(count):
        yield Fields(fields.bytes())
    assert fields.at == len(content)


def column(content, at, count, width):
    planes = [content[at + i * count:at + (i + 1) * count] for i in range(width)]
    if width == 0:
        return [0] * count, at
    padded = planes + [bytes(count)] * (8 - width)
    values = [int.from_bytes(bytes(value), 'little') for value in zip(*padded)]
    return values, at + width * count


def events(content, count):
    """(type, kind, time, address, size or None, stack or None, thread) of each."""
    shift, widths = content[0], content[1:7]
    time, first = struct.unpack_from('<QQ', content, 8)
    what = content[24:24 + count]
    at = 24 + count
    times, at = column(content, at, count, widths[0])
    threads, at = column(content, at, count, widths[1])
    stacks, at = column(content, at, sum(1 for w in what if w & 0x40), widths[2])
    addresses, at = column(content, at, count, widths[3])
    sizes, at = column(content, at, sum(1 for w in what if w & 0x80), widths[4])
    sampled, at = column(content, at, count, widths[5])
    assert at == len(content) and all(value >> 1 <= 1024 for value in sampled)
    last = [first >> shift] * 64
    stacks, sizes = iter(stacks), iter(sizes)
    for i in range(count):
        time = (time + times[i]) % WORD
        value = addresses[i]
        slot = threads[i] % 64
        last[slot] = (last[slot] + (value >> 1 if value % 2 == 0 else -(value >> 1) - 1)) % WORD
        yield (what[i] & 15, what[i] >> 4 & 3, time, last[slot] << shift, next(sizes) if what[i] & 0x80 else None,
               next(stacks) if what[i] & 0x40 else None, threads[i])


def describe(path):
    with open(path, 'rb') as file:
        data = file.read()
    per_type = [[0, 0] for _ in range(12)]
    found = dict.fromkeys((THREADS, STACKS, SAMPLES, MARKS, MODULES, SYMBOLS), 0)
    frames, processes, total, closed, digest = 0, set(), 0, None, 0
    for kind, process, count, content in chunks(data):
        assert closed is None
        if kind == CLOSE:
            closed = next(records(content, count)).number()
            assert closed == total
        else:
            processes.add(process)
        total += 1
        if kind in found:
            found[kind] += count
        if kind == STACKS:
            for fields in records(content, count):
                fields.number(), fields.number(), fields.number(), fields.number(), fields.number()
                frames += fields.number()
        if kind == EVENTS:
            for kind_, _, time, address, size, stack, thread in events(content, count):
                per_type[kind_][0] += 1
                per_type[kind_][1] += size or 0
                none = 0xffffffff if stack is None else stack
                digest = (digest * 31 + (time ^ address ^ none << 8 ^ thread << 40)) % WORD
    lines = [f'event {i}: {count} {size}' for i, (count, size) in enumerate(per_type)]
    lines += [f'digest: {digest:x}', f'threads: {found[THREADS]}', f'stacks: {found[STACKS]} {frames}',
              f'samples: {found[SAMPLES]}', f'marks: {found[MARKS]}', f'modules: {found[MODULES]}',
              f'symbols: {found[SYMBOLS]}', f'processes: {len(processes)}', f'whole: {"yes" if closed else "no"}']
    return '\n'.join(lines) + '\n'


def compare(replay, generate):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, 'x.mw')
        for arguments in (['40000', '1000', '300', '20'], ['10', '5', '3', '20'], ['20000', '100', '70000', '1']):
            subprocess.run([generate, path] + arguments, check=True, stdout=subprocess.DEVNULL)
            theirs = subprocess.run([replay, path], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                    text=True).stdout
            ours = describe(path)
            if ours != theirs:
                sys.exit(f'generate {arguments}: replay says\n{theirs}\nand by the format it is\n{ours}')
        with open(path, 'r+b') as file:
            file.truncate(os.path.getsize(path) - 1)
        if 'whole: no' not in describe(path):
            sys.exit('a recording that was cut off passes for whole')


def main():
    if len(sys.argv) == 4 and sys.argv[1] == '--compare':
        compare(*sys.argv[2:])
    elif len(sys.argv) == 2:
        sys.stdout.write(describe(sys.argv[1]))
    else:
        sys.exit(__doc__)


main()
