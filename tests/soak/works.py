#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""works.py MODE BOARD: works whose results are checked, for programs that don't check themselves.

`python`: this very interpreter is what memwatch attaches to. `redis PORT`: a client of a redis-server. `sqlite`: a
client of the sqlite3 shell, whose output is our standard input, and whose input is our standard output.
"""
import hashlib
import json
import random
import re
import socket
import sys
import threading
import time
import zlib

import board as boards

KEYS = 300


class Wrong(Exception):
    pass


def check(condition, what):
    if not condition:
        raise Wrong(what)


# --- python ------------------------------------------------------------------------------------------

def python_round(number):
    rows = {f'key {i}': [i * number, 'x' * (i % 50), {'a': i, 'b': [None, True, i / 7]}] for i in range(40)}
    check(json.loads(json.dumps(rows)) == rows, 'json gives something else back')
    words = ' '.join(f'w{i}z{i * 3}' for i in range(100))
    check(sum(int(x) for x in re.findall(r'w(\d+)z', words)) == 4950, 'a regular expression finds something else')
    data = bytes(random.Random(number).randrange(256) for _ in range(500)) * 20
    check(zlib.decompress(zlib.compress(data)) == data, 'zlib gives something else back')
    check(hashlib.sha256(data).digest() == hashlib.sha256(bytearray(data)).digest(), 'sha256 differs from itself')
    check(3 ** 400 // 3 ** 399 == 3, 'big numbers are wrong')
    check(sorted([str(i) for i in range(200)], key=int) == [str(i) for i in range(200)], 'sorted is wrong')


def python_thread(board, counter):
    number = counter
    while True:
        number += 1
        try:
            python_round(number)
        except BaseException as error:  # pylint: disable=broad-except
            board.wrong(f'python: {error!r}')
            return
        board.advance(counter)
        time.sleep(0.01)


def python_work(board):
    for counter in (1, 2):
        threading.Thread(target=python_thread, args=(board, counter), daemon=True).start()
    board.set(boards.COUNTERS, 3)
    while True:
        python_round(board.get(boards.COUNTER))
        board.advance(0)
        time.sleep(0.01)


# --- redis -------------------------------------------------------------------------------------------

class Redis:
    def __init__(self, port):
        self.socket = socket.create_connection(('127.0.0.1', port))
        self.file = self.socket.makefile('rb')

    def send(self, *words):
        data = [b'*%d\r\n' % len(words)]
        for word in words:
            word = str(word).encode()
            data.append(b'$%d\r\n%s\r\n' % (len(word), word))
        self.socket.sendall(b''.join(data))

    def receive(self):
        line = self.file.readline()
        check(line.endswith(b'\r\n'), 'redis: the connection has ended')
        kind, rest = line[:1], line[1:-2].decode()
        if kind == b'+':
            return rest
        if kind == b':':
            return int(rest)
        if kind == b'$':
            return None if rest == '-1' else self.file.read(int(rest) + 2)[:-2].decode()
        if kind == b'*':
            return [self.receive() for _ in range(int(rest))]
        raise Wrong(f'redis: {line!r}')

    def ask(self, *words):
        self.send(*words)
        return self.receive()


def redis_work(board, port):
    redis, known, draw, total = Redis(port), {}, random.Random(1), 0
    check(redis.ask('FLUSHALL') == 'OK', 'redis: FLUSHALL')
    while True:
        batch = [(f'key{draw.randrange(KEYS)}', f'{draw.random()}' * draw.choice((1, 5, 50, 500))) for _ in range(20)]
        for key, value in batch:
            redis.send('SET', key, value)
        for key, value in batch:
            check(redis.receive() == 'OK', 'redis: SET')
            known[key] = value
        for key in draw.sample(sorted(known), min(20, len(known))):
            check(redis.ask('GET', key) == known[key], 'redis: a key has another value')
        key = draw.choice(sorted(known))
        check(redis.ask('DEL', key) == 1 and redis.ask('GET', key) is None, 'redis: a deleted key is there')
        del known[key]
        total += 1
        check(redis.ask('INCR', 'total') == total, 'redis: another sum')
        check(redis.ask('RPUSH', 'list', *range(30)) == 30, 'redis: another length')
        check(redis.ask('LRANGE', 'list', 0, -1) == [str(i) for i in range(30)], 'redis: another list')
        check(redis.ask('DEL', 'list') == 1, 'redis: the list is gone')
        check(redis.ask('DBSIZE') == len(known) + 1, 'redis: another count of keys')
        board.advance()
        time.sleep(0.005)


# --- sqlite ------------------------------------------------------------------------------------------

class Sqlite:
    def __init__(self):
        self.count = 0

    def ask(self, *statements):
        """The rows that statements give."""
        self.count += 1
        end = f'end {self.count}'
        sys.stdout.write('\n'.join(f'{s};' for s in (*statements, f"SELECT '{end}'")) + '\n')
        sys.stdout.flush()
        rows = []
        while True:
            line = sys.stdin.readline()
            check(line, 'sqlite: the shell has ended')
            if line == end + '\n':
                return rows
            rows.append(line.rstrip('\n'))


def sqlite_work(board):
    sqlite, known, draw, number = Sqlite(), {}, random.Random(2), 0
    check(not sqlite.ask('CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, n INTEGER)',
                         'CREATE INDEX names ON t (name)'), 'sqlite: the table is not made')
    while True:
        number += 1
        statements = ['BEGIN']
        for _ in range(20):
            key, n = draw.randrange(KEYS), draw.randrange(1000000)
            name = f'{n} ' * draw.choice((1, 5, 100))
            statements.append(f"INSERT OR REPLACE INTO t VALUES ({key}, '{name}', {n})")
            known[key] = (name, n)
        gone = draw.choice(sorted(known))
        statements.append(f'DELETE FROM t WHERE id = {gone}')
        del known[gone]
        check(not sqlite.ask(*statements, 'COMMIT'), 'sqlite: a change says something')
        got = sqlite.ask('SELECT count(*), sum(n), sum(length(name)) FROM t')
        check(got == [f'{len(known)}|{sum(n for _, n in known.values())}|{sum(len(s) for s, _ in known.values())}'],
              f'sqlite: other sums: {got}')
        key = draw.choice(sorted(known))
        check(sqlite.ask(f"SELECT name FROM t WHERE name = '{known[key][0]}' AND id = {key} ORDER BY n") ==
              [known[key][0]], 'sqlite: another row')
        if number % 20 == 0:
            check(sqlite.ask('PRAGMA integrity_check') == ['ok'], 'sqlite: the database is damaged')
        board.advance()
        time.sleep(0.01)


def main():
    mode, path, *arguments = sys.argv[1:]
    board = boards.Board(path)
    board.set(boards.COUNTERS, 1)
    board.set(boards.READY, 1)
    try:
        if mode == 'python':
            python_work(board)
        elif mode == 'redis':
            redis_work(board, int(arguments[0]))
        else:
            sqlite_work(board)
    except (Wrong, OSError, ValueError) as error:
        board.wrong(f'{error}' if isinstance(error, Wrong) else f'{mode}: {error!r}')
        sys.exit(3)


if __name__ == '__main__':
    main()
