# SPDX-License-Identifier: MIT
"""How many stacks of an HTTP server on node are cut: part of scripts/bench."""
import http.client
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time

SERVER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "targets", "runtimes", "node_server.js")
WARM, RATE, SECONDS = 3000, 200, 3  # requests before, requests a second, of the window
SHARE = 0.005


class Load(threading.Thread):
    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.asked, self.gap, self.ended = port, 0, 0, False

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while not self.ended:
            connection.request("GET", "/%d/%s" % (self.asked, "zshtc"[self.asked % 5]))
            connection.getresponse().read()
            self.asked += 1
            time.sleep(self.gap)


def is_generated(frame):
    """Built-in functions of a stripped library have no names."""
    function = frame["function"] or ""
    return frame["module"] == "[jit]" or function.startswith("Builtins_") or (
        not function and "libnode" in (frame["module"] or ""))


def window(memwatch, engine, pid, directory):
    report = os.path.join(directory, "report.json")
    subprocess.run([memwatch, "-p", str(pid), "-d", str(SECONDS), "--engine", engine, "--track", "heap", "--quiet",
                    "--json", report], check=True, stdin=subprocess.DEVNULL, timeout=120)
    with open(report, encoding="utf-8") as file:
        stacks = json.load(file)["stacks"]
    count = {"all": 0, "cut": 0, "cut_at_generated": 0}
    for stack in stacks:
        blocks = stack["size"]["count"]
        count["all"] += blocks
        count["cut"] += blocks if stack["cut"] else 0
        count["cut_at_generated"] += blocks if stack["cut"] and stack["frames"] and is_generated(stack["frames"][-1]) else 0
    return {"engine": engine, "blocks": count["all"], "cut": count["cut"] / count["all"],
            "cut_at_generated": count["cut_at_generated"] / count["all"]}


def measure(memwatch, engines):
    node = os.environ.get("MEMWATCH_NODE") or shutil.which("node")
    if not node:
        raise RuntimeError("node is not installed")
    server = subprocess.Popen([node, SERVER, "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        server.stdout.readline()
        load = Load(int(server.stdout.readline().split("=")[1]))
        load.start()
        while load.asked < WARM and load.is_alive():
            time.sleep(0.05)
        load.gap = 1 / RATE
        with tempfile.TemporaryDirectory(prefix="mwbench-") as directory:
            rows = [window(memwatch, engine, server.pid, directory) for engine in engines]
        load.ended = True
        load.join(60)
    finally:
        server.kill()
        server.wait()
    return rows


def table(rows, number):
    return ("An HTTP server on node under load: share of blocks whose stack is cut",
            ["engine", "blocks", "cut", "… at generated code"],
            [[row["engine"], number(row["blocks"], 0), number(row["cut"], 4), number(row["cut_at_generated"], 4)] for row in rows])


def goals(rows):
    """(what, value, relation, limit, unit, met)"""
    return [("stacks cut at generated code, node HTTP server, %s" % row["engine"], row["cut_at_generated"], "at most", SHARE, "",
             row["cut_at_generated"] <= SHARE) for row in rows or [] if row["engine"] == "jump"]
