# SPDX-License-Identifier: MIT
"""Allocates on stacks of all kinds and knows each of them: frames.py COUNT SEED ANSWER [threads] [dumps]

The answer is JSON: for each stack of Python frames, innermost first, as [name, file, line], how many blocks of how many
bytes it has made and kept. The stacks begin in functions whose names begin with "make"; all else is bookkeeping. With
"dumps" it is what faulthandler says of the stack at each block, behind a line with the block's bytes.
"""
import asyncio
import ctypes
import faulthandler
import functools
import json
import os
import random
import sys
import threading

COUNT, SEED, ANSWER = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
QUALIFIED = sys.version_info >= (3, 11)  # code objects have qualified names since
HEADER = bytes.__basicsize__  # what an object of so many bytes has before them, and a NUL behind
kept, known, lock = [], {}, threading.Lock()
CALLBACK = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)


def note(size):
    """The caller's stack as it is now, which is about to make such a block on the same line."""
    frame, stack = sys._getframe(1), []
    while frame:
        code = frame.f_code
        stack.append((code.co_qualname if QUALIFIED else code.co_name, code.co_filename, frame.f_lineno))
        frame = frame.f_back
    with lock:
        amount = known.setdefault(tuple(stack), [0, 0])
        amount[0] += 1
        amount[1] += size + HEADER
    return size


def dump(size):
    with lock:
        os.write(dumps, b'%d\n' % (size + HEADER))
        faulthandler.dump_traceback(dumps, all_threads=False)
    return size


if 'dumps' in sys.argv:
    dumps, note = os.open(ANSWER, os.O_WRONLY | os.O_CREAT), dump


def make_bytes(size):
    kept.append(bytes(note(size)))


class Maker:
    def make(self, size):
        kept.append(bytes(note(size)))

    @staticmethod
    def make_static(size):
        kept.append(bytes(note(size)))

    @classmethod
    def make_of_class(cls, size):
        kept.append(bytes(note(size)))

    def __call__(self, size):
        self.make(size)

    def __lt__(self, other):
        self.make(900)
        return True

    def __enter__(self):
        self.make_static(800)
        return self

    def __exit__(self, *_):
        self.make_of_class(850)


def decorated(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)
    return wrapper


@decorated
def make_decorated(size):
    make_bytes(size)


def generator(size):
    for _ in range(2):
        make_bytes(size)
        yield _


def delegating(size):
    yield from generator(size)


async def make_awaited(size):
    kept.append(bytes(note(size)))


async def coroutine(size):
    await make_awaited(size)
    await asyncio.sleep(0)
    await make_awaited(size)


def recurse(depth, size):
    if depth:
        recurse(depth - 1, size)
    else:
        make_bytes(size)


def through_sort(size):
    sorted([1, 2], key=lambda _: make_bytes(size) or 0)
    min(Maker(), Maker())


def through_map(size):
    list(map(make_bytes, [size, size + 1]))


def through_reduce(size):
    functools.reduce(lambda a, b: make_bytes(a + b) or a, [size, 1])


def through_callback(size):
    callback(size)


# Its code is made before anybody looks.
callback = CALLBACK(make_bytes)


def through_exec(size):
    exec(compile('\n\nmake_bytes(size)\ndef make_inside(n):\n    kept.append(bytes(note(n)))\nmake_inside(size)', '<made>', 'exec'),
         dict(globals(), size=size))


def through_comprehension(size):
    [make_bytes(size + i) for i in range(2)]
    {make_bytes(size + i) for i in range(2)}
    any(make_bytes(size) for _ in range(2))


def through_context(size):
    with Maker() as maker:
        maker(size)


def through_error(size):
    try:
        raise ValueError(size)
    except ValueError as error:
        make_bytes(error.args[0])
    finally:
        make_bytes(size)


def through_class(size):
    class Made:
        value = make_bytes(size)
    return Made


def through_loop(size):
    asyncio.run(coroutine(size))


WAYS = (make_bytes, Maker().make, Maker.make_static, Maker.make_of_class, Maker(), make_decorated,
        lambda size: list(generator(size)), lambda size: list(delegating(size)),
        lambda size: recurse(size % 40, size), through_sort, through_map, through_reduce, through_callback, through_exec,
        through_comprehension, through_context, through_error, through_class,
        functools.partial(make_bytes))


def work(count, seed):
    chance = random.Random(seed)
    for i in range(count):
        chance.choice(WAYS)(600 + chance.randrange(2000))
        if i % 100 == 0:
            through_loop(700)


def main():
    threads = [threading.Thread(target=work, args=(COUNT, SEED + 1 + i)) for i in range(2)] if 'threads' in sys.argv else []
    print('ready', os.getpid(), flush=True)
    os.read(0, 1)
    for thread in threads:
        thread.start()
    work(COUNT, SEED)
    for thread in threads:
        thread.join()
    if known:
        with open(ANSWER, 'w', encoding='utf-8') as f:
            json.dump([[stack, amount] for stack, amount in known.items()], f)
    print('done', flush=True)
    os.read(0, 1)


main()
