# SPDX-License-Identifier: MIT
"""Makes objects of all kinds and keeps them: objects.py COUNT [ANSWER]

With ANSWER it says what CPython itself knows of them (tracemalloc): for each line of this file the blocks and bytes that
were allocated there and are still there, as JSON. Without it, the same is done for somebody else to count.

CPython keeps some objects that are not needed any more for the next of their kind. To whom the block of such a one belongs
is a matter of opinion: to tracemalloc it is the line that has made it anew. So after each kind these are given back,
which a full collection does, and no other line gets one.
"""
import array
import collections
import functools
import gc
import io
import json
import os
import sys
import tempfile
import threading
import tracemalloc

COUNT = int(sys.argv[1])
ANSWER = sys.argv[2] if len(sys.argv) > 2 else None
kept = []
gc.disable()
gc.collect()


class Plain:
    def __init__(self, n):
        self.n, self.text = n, 'text'

    def method(self):
        return self.n


class Slotted:
    __slots__ = ('a', 'b')


# CPython keeps one for the next that is asked for, and a collection does not take it back.
REST = slice(20, None)


# Objects are made from here on.
def closure(n):
    def inner():
        return n
    return inner


def generator(n):
    yield n


def each(make):
    for n in range(1000, 1000 + COUNT):
        kept.append(make(n))
    del n
    gc.collect()


def drop(make):
    for n in range(1000, 1000 + COUNT):
        make(n)
    del n
    gc.collect()


def change(make, after):
    made = [make(n) for n in range(1000, 1000 + COUNT)]
    for one in made:
        after(one)
    kept.append(made)
    del one, made
    gc.collect()


def objects():
    """A kind a line."""
    each(lambda n: {})
    each(lambda n: {n: None})
    each(lambda n: {str(n + i): i for i in range(20)})
    each(lambda n: dict(a=n, b=n))
    each(lambda n: [])
    each(lambda n: [n, n])
    each(lambda n: [n] * 70)
    each(lambda n: list(range(40)))
    each(lambda n: [i for i in range(n % 90)])
    each(lambda n: (n, n, n))
    each(lambda n: (n,) * 30)
    each(lambda n: str(n) * 3)
    each(lambda n: '\u20ac' * (n % 200 + 2))
    each(lambda n: 'x' * 600)
    each(lambda n: bytes(n % 500 + 2))
    each(lambda n: bytes(700))
    each(lambda n: bytes(1 << 18))
    each(lambda n: bytearray(n % 300 + 1))
    each(lambda n: 1 << 40 + n % 900)
    each(lambda n: n * 1.5)
    each(lambda n: complex(n, n))
    each(lambda n: {n, n + 1})
    each(lambda n: set(range(100)))
    each(lambda n: frozenset((n,)))
    each(lambda n: Plain(n))
    each(lambda n: Slotted())
    each(lambda n: closure(n))
    each(lambda n: lambda: n)
    each(lambda n: functools.partial(closure, n))
    each(lambda n: Plain(n).method)
    each(lambda n: generator(n))
    each(lambda n: ValueError(n))
    each(lambda n: object())
    each(lambda n: slice(n, n + 1))
    each(lambda n: memoryview(b'x' * 10))
    each(lambda n: collections.deque((n,)))
    each(lambda n: collections.OrderedDict(a=n))
    each(lambda n: array.array('d', [n] * 20))
    each(lambda n: io.BytesIO(bytes(300)))
    each(lambda n: iter([n]))
    each(lambda n: threading.Lock())
    each(lambda n: type('Made', (), {'n': n}))
    drop(lambda n: bytes(n % 700 + 2))
    drop(lambda n: {n: [n] * (n % 100)})
    # Blocks become larger and smaller where they are, and move from one allocator to the other.
    change(lambda n: [], lambda it: it.extend(range(100)))
    change(lambda n: bytearray(2000), lambda it: it.__delitem__(REST))
    change(lambda n: {}, lambda it: it.update((i, None) for i in range(60)))
    change(lambda n: bytearray(10), lambda it: it.extend(bytes(450)))
# Objects are made up to here.


gc.collect()
objects()
print('ready', os.getpid(), flush=True)
os.read(0, 1)
if ANSWER and not tracemalloc.is_tracing():
    tracemalloc.start(1)
objects()
if ANSWER:
    snapshot = tracemalloc.take_snapshot()
    tracemalloc.stop()
    lines = {}
    for trace in snapshot.traces:
        frame = trace.traceback[0]
        if frame.filename == __file__:
            amount = lines.setdefault(frame.lineno, [0, 0])
            amount[0] += 1
            amount[1] += trace.size
    with open(ANSWER, 'w', encoding='utf-8') as f:
        json.dump(lines, f)
print('done', flush=True)
os.read(0, 1)
# It tells something where the pointers to the allocator are what they were.
with tempfile.TemporaryFile() as told:
    os.dup2(told.fileno(), 2)
    sys._debugmallocstats()
    print('usual allocator' if told.seek(0, os.SEEK_END) else 'other allocator', flush=True)
os._exit(0)
