# SPDX-License-Identifier: MIT
"""What the tests of the command line share: targets, runs of memwatch, and what is asserted of them."""
import argparse
import atexit
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import traceback

NOBODY = 65534
OTHER = 65533
# Where a preflight or an engine would leave a process that it has not detached from.
UNTOUCHED_STATES = "RSDI"

sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import mwlive  # pylint: disable=wrong-import-position

PATIENCE = mwlive.PATIENCE  # seconds that anything may take

_arguments = argparse.ArgumentParser()
_arguments.add_argument("--memwatch", required=True)
_arguments.add_argument("--engine", help="for all runs that name none (default: none, which is auto)")
_arguments.add_argument("only", nargs="*", help="names of tests")
ARGS = _arguments.parse_args()

WORK = tempfile.mkdtemp(prefix="memwatch-cli-")
os.chmod(WORK, 0o755)
# A copy, as the build directory may be closed to other users.
MEMWATCH = os.path.join(WORK, "memwatch")
shutil.copy(ARGS.memwatch, MEMWATCH)
os.chmod(MEMWATCH, 0o755)

_children = []


class Skip(Exception):
    """The machine lacks what the test needs."""


def not_under(reason, *tools):
    """Leave a test out that can't be done with memwatch under these tools (all, by default), and say why."""
    if mwlive.TOOL and mwlive.TOOL in (tools or (mwlive.TOOL,)):
        raise Skip(f"under {mwlive.TOOL}: {reason}")


def _clean_up():
    # All before any is waited for: what is traced can't be reaped while its tracer lives.
    for child in _children:
        child.kill()
    for child in _children:
        child.wait()
    shutil.rmtree(WORK, ignore_errors=True)


atexit.register(_clean_up)


def spawn(command, **options):
    """Start a program that is ended with the test."""
    child = subprocess.Popen(command, **options)
    _children.append(child)
    return child


def as_user(uid):
    """Options of Popen for running as another user."""
    if os.geteuid() != 0:
        raise Skip("not root: can't become another user")
    return {"user": uid, "group": uid, "extra_groups": []}


def sleeper(**options):
    child = spawn(["sleep", "1000"], **options)
    wait_until(lambda: comm(child.pid) == "sleep" and sleeps(child.pid), "sleep to be started")
    return child


def sleeps(pid):
    """It waits, with its libraries mapped."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat, open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            return stat.read().rsplit(")", 1)[1].split()[0] == "S" and "libc.so" in maps.read()
    except OSError:
        return False


def python(code, **options):
    """A Python program that has printed a line once it is ready; (child, line)."""
    child = spawn([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, **options)
    return child, child.stdout.readline().strip()


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def status(pid, field):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name == field:
                return value.strip()
    raise KeyError(field)


def wait_until(condition, what, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s for {what}")
        time.sleep(0.02)


def command(*arguments):
    """memwatch with arguments, and with the engine that is tested."""
    words = [str(word) for word in arguments]
    own = words[:words.index("--")] if "--" in words else words
    at = 1 if words[:1] == ["doctor"] else 0
    if ARGS.engine and words[at:] and words[at].startswith("-") and "--engine" not in own:
        words[at:at] = ["--engine", ARGS.engine]
    return [MEMWATCH, *words]


def memwatch(*arguments, **options):
    """Run memwatch to its end."""
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.run(command(*arguments), text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, check=False,
                          **options)


def assert_message(result, code, *mentions):
    """Ended with this status and exactly one message, which says this and that."""
    assert result.returncode == code, f"status {result.returncode}, not {code}: {result.stderr}"
    assert re.fullmatch(r"memwatch: [^\n]+\n", result.stderr), f"not one message: {result.stderr!r}"
    for mention in mentions:
        assert re.search(mention, result.stderr), f"{mention!r} is not in {result.stderr!r}"


def assert_untouched(pid, tracer=0):
    for tid in os.listdir(f"/proc/{pid}/task"):
        # A first thread that has ended stays a zombie while others live.
        assert status(tid, "State")[0] in UNTOUCHED_STATES + "Z" * (tid == str(pid)), status(tid, "State")
        assert int(status(tid, "TracerPid")) == tracer, status(tid, "TracerPid")
    assert len(os.listdir(f"/proc/{pid}/task")) > 1 or status(pid, "State")[0] != "Z", f"{pid} has ended"


class Code:
    """A process's code before it is watched."""

    def __init__(self, pid):
        self.pid = pid
        self.before = mwlive.Snapshot(pid)

    def is_hooked(self):
        """Has the window begun?"""
        return self.before.touched() and status(self.pid, "State")[0] != "t"

    def is_as_before(self):
        return not self.before.touched() and status(self.pid, "TracerPid") == "0"


class Output:
    """A report that was there before, in a directory of its own."""

    BEFORE = '{ "schema": "memwatch.report/1" }'

    def __init__(self):
        self.directory = tempfile.mkdtemp(dir=WORK)
        os.chmod(self.directory, 0o777)
        self.path = os.path.join(self.directory, "report.json")
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(self.BEFORE)
        os.chmod(self.path, 0o666)

    def assert_unchanged(self):
        assert os.listdir(self.directory) == ["report.json"], os.listdir(self.directory)
        with open(self.path, encoding="utf-8") as file:
            assert file.read() == self.BEFORE


def refuse(code, mentions, *arguments, target=None, tracer=0, **options):
    """A run that must be refused: one message, nothing on stdout, the target and an existing output as before."""
    output = Output()
    result = memwatch("--json", output.path, *arguments, **options)
    assert_message(result, code, *mentions)
    assert not result.stdout, result.stdout
    output.assert_unchanged()
    if target is not None:
        assert_untouched(target, tracer)


def elf(bits, code, name):
    """A static program of one segment, that has no symbols and no libc."""
    path = os.path.join(WORK, name)
    ident = b"\x7fELF" + bytes([2 if bits == 64 else 1, 1, 1]) + bytes(9)
    base = 0x400000
    if bits == 64:
        start = 64 + 56
        size = start + len(code)
        header = ident + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, base + start, 64, 0, 0, 64, 56, 1, 0, 0, 0)
        segment = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 0x1000)
    else:
        start = 52 + 32
        size = start + len(code)
        header = ident + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + start, 52, 0, 0, 52, 32, 1, 0, 0, 0)
        segment = struct.pack("<IIIIIIII", 1, 0, base, base, size, size, 5, 0x1000)
    with open(path, "wb") as file:
        file.write(header + segment + code)
    os.chmod(path, 0o755)
    return path


def compile_c(source, name, *flags):
    """Build a program, or skip where the compiler can't."""
    path = os.path.join(WORK, name)
    result = subprocess.run([os.environ.get("CC", "cc"), "-x", "c", "-", "-o", path, *flags], input=source, text=True,
                            capture_output=True, check=False)
    if result.returncode != 0:
        raise Skip(f"the compiler can't build with {' '.join(flags)}")
    return path


def run_all(namespace):
    """Run every test_… of a module, in order; the process ends with 0 if none failed."""
    failed = 0
    for name, function in list(namespace.items()):
        if not name.startswith("test_") or (ARGS.only and name not in ARGS.only):
            continue
        try:
            function()
            print(f"ok    {name}", flush=True)
        except Skip as reason:
            print(f"skip  {name}: {reason}", flush=True)
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print(f"FAIL  {name}", flush=True)
            traceback.print_exc()
    sys.exit(1 if failed else 0)


