# SPDX-License-Identifier: MIT
"""The numbers that a target shows while it works; laid out as in fleet.h."""
import mmap

SIZE = 8192
READY, COUNTERS, WRONG, REQUEST, SERVED, FULL, METERED = 0, 1, 2, 3, 4, 5, 6
TEXT = 10 * 8
TEXT_SIZE = 160
COUNTER = 64
COUNTERS_MAX = 480


class Board:
    def __init__(self, path, make=False):
        if make:
            with open(path, 'wb') as f:
                f.truncate(SIZE)
        with open(path, 'r+b') as f:
            self.map = mmap.mmap(f.fileno(), SIZE)
        # Words are read and written as wholes.
        self.words = memoryview(self.map).cast('Q')

    def get(self, at):
        return self.words[at]

    def set(self, at, value):
        self.words[at] = value

    def counters(self):
        count = min(self.words[COUNTERS], COUNTERS_MAX)
        return list(self.words[COUNTER:COUNTER + count])

    def advance(self, number=0):
        self.words[COUNTER + number] += 1

    def text(self):
        return self.map[TEXT:TEXT + TEXT_SIZE].split(b'\0')[0].decode(errors='replace')

    def wrong(self, what):
        """The first wrong result stays."""
        if not self.words[WRONG]:
            text = what.encode()[:TEXT_SIZE - 1]
            self.map[TEXT:TEXT + len(text)] = text
        self.words[WRONG] += 1

    def close(self):
        self.words.release()
        self.map.close()
