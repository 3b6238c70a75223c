# SPDX-License-Identifier: MIT
"""peers.py: what the sampling of allocators costs that have it, on the loads of inside.py; rows of scripts/bench.

Their sampling is chosen at the start, so a program is started with it and without in turn. A share is of the rate of the
runs before and after, which have the same allocator.
"""
import contextlib
import glob
import os
import statistics
import subprocess
import tempfile

# name: the library, and the environments that sample one in 512 KiB, and nothing. Neither walks a stack otherwise.
PEERS = {
    "jemalloc": ("libjemalloc.so.2", {"MALLOC_CONF": "prof:true,lg_prof_sample:19"}, {"MALLOC_CONF": "prof:false"}),
    # libtcmalloc_minimal has no sampling.
    "tcmalloc": ("libtcmalloc.so.4", {"TCMALLOC_SAMPLE_PARAMETER": "524288"}, {"TCMALLOC_SAMPLE_PARAMETER": "0"}),
}


def library(name):
    """A library's path, or None."""
    return next(iter(sorted(glob.glob("/usr/lib/*/" + name))), None)


def has_profiler(path, environment):
    """jemalloc says so where it was built without: its sampling would cost nothing."""
    run = subprocess.run(["true"], env=dict(os.environ, LD_PRELOAD=path, **environment), check=False, capture_output=True,
                         text=True)
    return "onf" not in run.stderr


def alternate(measure, sampled, bare, times):
    """`measure` of an environment: (rate, CPU time of one in ns). The row of the two environments."""
    bares, found = [measure(bare)], []
    for _ in range(times):
        found.append(measure(sampled))
        bares.append(measure(bare))
    shares = [2 * found[i][0] / (bares[i][0] + bares[i + 1][0]) for i in range(times)]
    bare_cpu, cpu = (statistics.median(each[1] for each in of) for of in (bares, found))
    return {"peer_kept": statistics.median(shares), "shares": shares, "peer_kept_cpu": bare_cpu / cpu,
            "peer_added_cpu_ns": cpu - bare_cpu, "peer_bare_cpu_ns": bare_cpu}


def measures(bench, start, threads):
    """What a program does that start(board, environment) has started."""
    def measure(environment):
        with tempfile.TemporaryDirectory(prefix="memwatch-bench.") as directory, contextlib.ExitStack() as stack:
            board = bench.board(directory)
            target = start(board, environment)
            stack.callback(target.wait)
            stack.callback(target.kill)
            bench.until_begun(board)
            cpu = bench.cpu(board, target, threads)
            rate = board.rate(threads, bench.options.seconds)
            return rate, bench.cpu(board, target, threads, cpu)
    return measure


def rows(bench):
    """(name, measurement, how often) of each row that can be measured here."""
    times = max(3, bench.options.repeat)
    for name, (file, sampled, bare) in PEERS.items():
        path = library(file)
        if not path or not has_profiler(path, sampled):
            continue

        def pairs(depth, threads, path=path, sampled=sampled, bare=bare):
            return alternate(measures(bench, lambda board, env: bench.start(board, "pairs", depth, threads,
                                                                         env={"LD_PRELOAD": path, **env}), threads),
                             sampled, bare, times)

        def python(path=path, sampled=sampled, bare=bare):
            return alternate(measures(bench, lambda board, env: bench.start_python(board, {"LD_PRELOAD": path, **env}), 1),
                             sampled, bare, times)

        yield "%s samples, 8 deep" % name, lambda pairs=pairs: pairs(8, 1), 1
        yield "%s samples, 30 deep" % name, lambda pairs=pairs: pairs(30, 1), 1
        yield "%s samples, two threads" % name, lambda pairs=pairs: pairs(8, 2), 1
        yield "%s samples, python dicts" % name, python, 1
        if name == "jemalloc" and bench.has_redis():  # redis-server is linked to it
            yield ("jemalloc samples, redis SET",
                   lambda sampled=sampled, bare=bare: alternate(lambda env: bench.redis_once("SET", env), sampled, bare, times), 1)
