#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stacks through V8's code, made when it was built and as it runs: to main or the thread's start, by either engine.
Another node than the one in the path: MEMWATCH_NODE."""
import http.client
import os
import shutil
import tempfile
import threading
import time
import unittest

import mwjump
import mwlive

NODE = os.environ.get('MEMWATCH_NODE') or shutil.which('node')
CHAIN = 43210
ONE_FRAME_EACH = '--max-inlined-bytecode-size=0'


class Load(threading.Thread):
    """Requests of each kind in turn."""

    def __init__(self, port, a_second):
        super().__init__()
        self.port, self.gap, self.ended, self.asked = port, 1 / a_second, False, 0
        self.start()

    def run(self):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=mwlive.PATIENCE)
        while not self.ended:
            try:
                connection.request('GET', f'/{self.asked}/{"zshtc"[self.asked % 5]}')
                connection.getresponse().read()
            except (http.client.HTTPException, OSError):
                connection.close()  # node closes what it has not heard of for a while
            self.asked += 1
            time.sleep(self.gap)
        connection.close()

    def end(self):
        self.ended = True
        self.join()


def is_v8(frame):
    """Where node's library is stripped, its built-in functions have no names, as others of it that it does not export."""
    function = frame['function'] or ''
    return frame['module'] in ('[jit]', '[javascript]') or function.startswith('Builtins_') or (
        not function and 'libnode' in (frame['module'] or ''))


def is_deoptimizer(stack):
    """It takes the frame of the function that it is called for apart, so that nothing tells who has called that."""
    return any('::Deoptimizer::' in (f['function'] or '') for f in stack['frames'])


def ends_with(stack, *functions):
    return bool({(f['function'] or '').lstrip('_') for f in stack['frames'][-4:]} & set(functions))


def is_main(stack):
    return ends_with(stack, 'main', 'start', 'libc_start_main')


def shown(stack):
    return [(f['function'], f['module']) for f in stack['frames']]


# Requests until its compiler has been at work, as many as are answered in some seconds.
IN_WINDOW = {'trap': 400, 'jump': 1500}


@unittest.skipUnless(NODE, 'node is not installed')
class Node(unittest.TestCase):
    def start(self, *options, workers=1):
        # Some options make it leave files there.
        directory = tempfile.mkdtemp(prefix='mwlive-node-')
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        server = mwlive.Target(self, 'node_server.js', argv=[
            'env', f'--chdir={directory}', NODE, *options, mwlive.target_path('runtimes/node_server.js'), str(workers)])
        server.done()
        return server

    def load(self, server, warm, a_second):
        """A load, after so many requests."""
        load = Load(server.answer['port'], 1000)
        self.addCleanup(load.end)
        mwlive.wait_until(lambda: load.asked >= warm, 'node answers', seconds=2 * mwlive.PATIENCE)
        load.gap = 1 / a_second
        return load

    def window(self, server, load, requests):
        watch = mwlive.Watch(self, server.pid, options=('--track', 'heap'), busy=True)
        enough = load.asked + requests
        mwlive.wait_until(lambda: load.asked >= enough, 'node answers', seconds=2 * mwlive.PATIENCE)
        # Its compiler makes code meanwhile.
        return watch.stop(intact=False)

    def check_whole(self, report, least):
        """Every stack is whole but for few, once, where the recorder has met code for the first time."""
        stacks = [s for s in report['stacks'] if s['kind'] == 'heap' and not is_deoptimizer(s)]
        events = sum(s['size']['count'] for s in stacks)
        cut = [s for s in stacks if s['cut']]
        self.assertGreater(events, least)
        self.assertLessEqual(sum(s['size']['count'] for s in cut), events / 1000, [shown(s) for s in cut][:5])
        through = [s for s in stacks if not s['cut'] and any(map(is_v8, s['frames']))]
        for stack in through:
            self.assertTrue(is_main(stack) or ends_with(stack, 'start_thread', 'clone', 'clone3'), shown(stack))
        return through

    def test_server(self):
        server = self.start()
        load = self.load(server, 2000, 150)
        report = self.window(server, load, 450)
        load.end()
        through = self.check_whole(report, 2000)
        self.assertGreater(sum(s['size']['count'] for s in through if is_main(s)), 200)
        self.assertGreater(sum(s['size']['count'] for s in through if not is_main(s)), 200)
        server.finish()

    def test_code_made_in_window(self):
        """None had been made of the script's functions before, nor memory been mapped for it."""
        server = self.start(workers=0)
        watch = mwlive.Watch(self, server.pid, options=('--track', 'heap'), busy=True)
        load = self.load(server, IN_WINDOW[mwlive.config.engine], 150)
        time.sleep(1)
        report = watch.stop(intact=False)
        load.end()
        self.check_whole(report, 2000)

    def test_chain(self):
        """No frame is missing, and none is there that is not: interpreted, and compiled."""
        server = self.start(ONE_FRAME_EACH)
        watch = mwlive.Watch(self, server.pid, options=('--track', 'heap'), busy=True)
        load = self.load(server, IN_WINDOW[mwlive.config.engine], 150)
        report = watch.stop(intact=False)
        load.end()
        chains = [s for s in report['stacks'] if not s['cut'] and
                  s['size']['bytes'] == CHAIN * s['size']['count'] and s['size']['count']]
        self.assertGreaterEqual(sum(s['size']['count'] for s in chains), IN_WINDOW[mwlive.config.engine] // 6)
        for stack in chains:
            script = [f['function'] for f in stack['frames'] if (f['file'] or '').endswith('/node_server.js')]
            self.assertEqual(script, ['chainInner', 'chainMiddle', 'chainOuter', 'answer'], shown(stack))
            self.assertTrue(is_main(stack), shown(stack))

    def test_both_ways(self):
        """What the recorder walks, libunwind and the step by frame pointer walk as well."""
        if mwlive.config.engine != 'jump':
            self.skipTest('the engine walks one way')
        server = self.start()
        load = self.load(server, 500, 100)
        events = mwjump.Events(self, server.pid, 'jump', '--compare', 7)
        time.sleep(2)
        answer = events.stop()
        load.end()
        self.assertGreater(answer['compared'], 200)
        v8 = [d for d in events.differences if d]
        self.assertLessEqual(answer['differing'], answer['compared'] / 100, v8[:6])


if __name__ == '__main__':
    mwlive.main()
