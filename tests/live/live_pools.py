#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pools on top of malloc: who uses their blocks, by their own names, and none where these are wrong."""
import collections
import glob
import json
import os
import pwd
import shutil
import subprocess
import tempfile
import time
import unittest

import mwlive

STATEMENTS = 400


def users_of(stacks, kind=None):
    """{(path, name): (blocks, bytes)} of these stacks' pools."""
    found = collections.defaultdict(lambda: [0, 0])
    for stack in stacks:
        pool = stack.get('pool')
        for user in pool['users'] if pool and kind in (None, pool['name']) else []:
            of = found[user['path'], user['name']]
            of[0] += user['blocks']['count']
            of[1] += user['blocks']['bytes']
    return {key: tuple(of) for key, of in found.items()}


class Pools(unittest.TestCase):
    def observe(self, name, *arguments):
        """The report, which its recording gives as well."""
        directory = tempfile.mkdtemp(prefix='mwlive-pools-')
        self.addCleanup(shutil.rmtree, directory)
        recording = os.path.join(directory, 'x.mw')
        answer, report = mwlive.observe(self, name, *arguments, options=['-o', recording])
        again = json.loads(mwlive.memwatch(self, 'report', recording, '--json', '-', '--quiet')[0])
        again = again[0] if isinstance(again, list) else again
        for part in ('stacks', 'suspects'):
            self.assertEqual([x.get('pool') for x in again[part]], [x.get('pool') for x in report[part]])
        return answer, report

    def test_talloc(self):
        if not os.path.exists(mwlive.target_path('talloc')):
            self.skipTest('built without talloc')
        answer, report = self.observe('talloc', 300)
        users = users_of(report['stacks'], "talloc's chunks")
        self.assertEqual(users.pop(('server', 'struct session')), (300, 300 * int(answer['session_bytes'])))
        self.assertEqual(users.pop(('server > struct session', 'uint64_t')), (300, 300 * int(answer['array_bytes'])))
        self.assertEqual(users.pop(('server > struct session', '(string)'))[0], 300)
        self.assertEqual(users.pop(('server', 'messages')), (1, int(answer['pool_bytes'])))
        self.assertEqual(users, {})

    def test_wrong(self):
        """Heads that are nearly right, and random ones."""
        _, report = self.observe('pools')
        pools = [stack['pool'] for stack in report['stacks'] if 'pool' in stack]
        self.assertEqual({pool['name'] for pool in pools}, {"PostgreSQL's memory contexts", "talloc's chunks", "nginx's pools"})
        for pool in pools:
            self.assertEqual(pool['users'], [])
            self.assertTrue(pool['hint'])
            if pool['name'] != "nginx's pools":
                self.assertEqual(pool['looked'], pool['others'])
                self.assertGreater(pool['looked']['count'], 0)


def find_postgres():
    """Its programs' directory, where there is a user to run it; None."""
    found = sorted(glob.glob('/usr/lib/postgresql/*/bin/initdb'))
    try:
        pwd.getpwnam('nobody')
    except KeyError:
        return None
    return os.path.dirname(found[-1]) if found and shutil.which('psql') and os.geteuid() == 0 else None


class Session:
    """A connection, whose backend is watched."""

    def __init__(self, test, directory):
        self.psql = subprocess.Popen(['psql', '-h', directory, '-U', 'nobody', '-d', 'postgres', '-qAtX', '-F', '\t'],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        test.addCleanup(self.close)
        self.pid = int(self.ask('select pg_backend_pid()')[0])

    def close(self):
        self.psql.stdin.close()
        self.psql.stdout.close()
        mwlive.kill_quietly(self.psql)

    def ask(self, query):
        self.psql.stdin.write(query + ';\n\\echo END\n')
        self.psql.stdin.flush()
        return [line.rstrip('\n') for line in iter(self.psql.stdout.readline, 'END\n')]

    def contexts(self):
        """{name: (contexts, bytes)}, as the server knows them."""
        rows = self.ask('select name, count(*), sum(total_bytes) from pg_backend_memory_contexts group by 1')
        return {name: (int(count), int(size)) for name, count, size in (row.split('\t') for row in rows)}


@unittest.skipUnless(find_postgres(), 'there is no PostgreSQL, or no user to run it')
class Postgres(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix='mwlive-postgres-', dir='/tmp')
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        shutil.chown(self.directory, 'nobody')
        data = os.path.join(self.directory, 'data')
        programs = find_postgres()
        subprocess.run([os.path.join(programs, 'initdb'), '-D', data, '-A', 'trust', '-N', '-U', 'nobody'], check=True,
                       stdout=subprocess.DEVNULL, user='nobody', extra_groups=[], cwd=self.directory, timeout=mwlive.PATIENCE)
        self.server = subprocess.Popen([os.path.join(programs, 'postgres'), '-D', data, '-k', self.directory, '-c',
                                        'listen_addresses=', '-c', 'fsync=off', '-c', 'shared_buffers=16MB'],
                                       stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user='nobody', extra_groups=[],
                                       cwd=self.directory)
        self.addCleanup(self.stop)
        mwlive.wait_until(lambda: subprocess.run(['psql', '-h', self.directory, '-U', 'nobody', '-d', 'postgres', '-c', ''],
                                                 capture_output=True).returncode == 0, 'PostgreSQL answers')
        self.session = Session(self, self.directory)

    def stop(self):
        """Its children end with it."""
        self.server.terminate()
        try:
            self.server.wait(mwlive.PATIENCE)
        finally:
            mwlive.kill_quietly(self.server)

    def test_contexts(self):
        """Prepared statements, and a query that goes on: as much as the server says of itself."""
        session = self.session
        session.contexts()
        session.ask('prepare first as select 1')
        before = session.contexts()
        watch = mwlive.Watch(self, session.pid, options=['--settle', '0'])
        for i in range(STATEMENTS):
            session.ask(f'prepare p{i} as select {i} as a, $1::int as b from pg_class where relname = $2::text')
            time.sleep(0.002)
        session.ask("begin; declare c cursor for select count(*) over (), g, repeat('x', 100) from generate_series(1, 20000) g "
                    "order by 2 desc; fetch 1 from c")
        report = watch.stop()
        after = session.contexts()
        users = users_of(report['stacks'], "PostgreSQL's memory contexts")
        plans = 'TopMemoryContext > CacheMemoryContext'
        found = users[plans, 'CachedPlanSource'][1], users[plans + ' > CachedPlanSource', 'CachedPlanQuery'][1]
        self.assertEqual(found, tuple(after[name][1] - before.get(name, (0, 0))[1]
                                      for name in ('CachedPlanSource', 'CachedPlanQuery')))
        # The sort's are of another kind (Generation).
        portal = 'TopMemoryContext > TopPortalContext > PortalContext > ExecutorState'
        sort = [size for (path, name), (_, size) in users.items() if path.startswith(portal) and name == 'Caller tuples']
        self.assertEqual(len(sort), 1, users)
        self.assertGreater(sort[0], 1 << 20)
        self.assertLessEqual(sort[0], after['Caller tuples'][1])
        suspect = next(s for s in report['suspects'] if s['function'] == 'CreateCachedPlan')
        self.assertEqual([u['name'] for u in suspect['pool']['users']], ['CachedPlanSource'])
        self.assertIn('prepare p', suspect['pool']['users'][0]['example'])
        unknown = sum(s['pool']['others']['bytes'] for s in report['stacks'] if 'pool' in s)
        self.assertEqual(unknown, 0)

    def test_heap(self):
        """The whole heap by contexts."""
        session = self.session
        session.contexts()
        for i in range(50):
            session.ask(f'prepare p{i} as select {i}')
        truth = session.contexts()
        heap = json.loads(mwlive.memwatch(self, 'heap', '-p', str(session.pid), '--json', '-', '--quiet', '--by', 'class')[0])
        heap = heap[0] if isinstance(heap, list) else heap
        bytes_of = collections.Counter()
        for group in heap['groups']:
            if group['class']:
                bytes_of[group['class']] += group['blocks']['bytes']
        for name, parent in (('CachedPlanSource', 'CacheMemoryContext'), ('CacheMemoryContext', 'TopMemoryContext'),
                             ('index info', 'CacheMemoryContext')):
            found = bytes_of[f'memory context {name} in {parent}']
            # A block has up to 15 bytes more than the server asked for.
            self.assertGreaterEqual(found, truth[name][1])
            self.assertLess(found, truth[name][1] * 1.02 + 100)


if __name__ == '__main__':
    mwlive.main()
