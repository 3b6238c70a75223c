# SPDX-License-Identifier: MIT
"""Two threads that allocate, one in an interpreter of its own: while they hold the interpreter's lock, and while not."""
import ctypes
import os
import sys
import threading

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

BLOCKS = 20
PROGRAM = '''
import ctypes
def held(size):
    return ctypes.PyDLL(None).calloc(size, 1)
def released(size):
    return ctypes.CDLL(None).calloc(size, 1)
def make(size):
    for _ in range(%d):
        held(size)
        released(size + 1)
''' % BLOCKS


def create():
    """One that has a lock of its own can't have ctypes."""
    for options, words in ((('legacy',), {}), ((), {'isolated': False})):
        try:
            return interpreters.create(*options, **words)
        except TypeError:
            pass
    return interpreters.create()


def inner(go_on):
    number = create()
    interpreters.run_string(number, PROGRAM)
    ready.wait()
    go_on.wait()
    interpreters.run_string(number, 'make(70001)')
    ready.wait()
    over.wait()


def outer(go_on):
    exec(compile(PROGRAM, '<outer>', 'exec'), names)
    ready.wait()
    go_on.wait()
    names['make'](60001)
    ready.wait()
    over.wait()


names = {}
ready, begin, over = threading.Barrier(3), threading.Event(), threading.Event()
threads = [threading.Thread(target=each, args=(begin,)) for each in (inner, outer)]
for each in threads:
    each.start()
ready.wait()
print('ready', os.getpid(), flush=True)
sys.stdin.buffer.raw.read(1)
begin.set()
ready.wait()
print('done', flush=True)
sys.stdin.buffer.raw.read(1)
over.set()
for each in threads:
    each.join()
os._exit(0)
