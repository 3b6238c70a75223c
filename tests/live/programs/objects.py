# SPDX-License-Identifier: MIT
"""Makes objects of all kinds and keeps them: objects.py COUNT [ANSWER]

With ANSWER it says what CPython itself knows of them (tracemalloc): for each line of this file the blocks and bytes that
were allocated there and are still there, as JSON. What is made and dropped meanwhile is nobody's. Without it, the same
is done for somebody else to count.
"""
import array
import collections
import functools
import gc
import io
import json
import os
import sys
import threading
import tracemalloc

COUNT = int(sys.argv[1])
ANSWER = sys.argv[2] if len(sys.argv) > 2 else None
kept, dropped = [], []
gc.disable()


class Plain:
    def __init__(self, n):
        self.n, self.text = n, 'text'

    def method(self):
        return self.n


class Slotted:
    __slots__ = ('a', 'b')


def closure(n):
    def inner():
        return n
    return inner


def generator(n):
    yield n


def objects():
    """A kind a line."""
    for n in range(1000, 1000 + COUNT):
        kept.append({})
        kept.append({n: None})
        kept.append({str(n + i): i for i in range(20)})
        kept.append([])
        kept.append([n, n])
        kept.append([n] * 70)
        kept.append(list(range(40)))
        kept.append((n, n, n))
        kept.append((n,) * 30)
        kept.append(str(n) * 3)
        kept.append('\u20ac' * (n % 200 + 2))
        kept.append('x' * 600)
        kept.append(bytes(n % 500 + 1))
        kept.append(bytes(700))
        kept.append(bytearray(n % 300 + 1))
        kept.append(1 << 40 + n % 900)
        kept.append(n * 1.5)
        kept.append(complex(n, n))
        kept.append({n, n + 1})
        kept.append(set(range(100)))
        kept.append(frozenset((n,)))
        kept.append(Plain(n))
        kept.append(Slotted())
        kept.append(closure(n))
        kept.append(lambda: n)
        kept.append(functools.partial(closure, n))
        kept.append(Plain(n).method)
        kept.append(generator(n))
        kept.append(ValueError(n))
        kept.append(object())
        kept.append(slice(n, n + 1))
        kept.append(memoryview(b'x' * 10))
        kept.append(collections.deque((n,)))
        kept.append(collections.OrderedDict(a=n))
        kept.append(array.array('d', [n] * 20))
        kept.append(io.BytesIO(bytes(300)))
        kept.append(iter([n]))
        kept.append(threading.Lock())
        dropped.append(bytes(100))
        dropped.append([n] * 100)
        dropped.append({n: n})
        if n % 5 == 0:
            dropped.clear()
    grows, shrinks = [], bytearray(400 * COUNT)
    for n in range(40 * COUNT):
        grows.append(None)
    for n in range(1000, 1000 + COUNT):
        kept.append(type('Made', (), {'n': n}))
    del shrinks[100:]
    kept.append(grows)
    kept.append(shrinks)


def drain():
    """So that no object comes out of a list of free ones, of whose block nobody knows when it was allocated."""
    return [[n * 0.5, [], {}, {n}, (n,), (n, n), (n, n, n), slice(n, n + 1), Plain(n).method, generator(n)] for n in range(300)]


ballast = drain()
objects()
print('ready', os.getpid(), flush=True)
os.read(0, 1)
if ANSWER:
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
