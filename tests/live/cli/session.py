#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the command line does around a window: signals, limits, launched commands, outputs."""
import fcntl
import json
import os
import pty
import re
import resource
import shutil
import signal
import stat
import struct
import subprocess
import termios
import time

from harness import (ARGS, PATIENCE, WORK, Code, Output, Skip, assert_untouched, comm, command, memwatch, not_under,
                     python, run_all, sleeper, spawn, wait_until)


def report(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def start(*arguments, **options):
    return spawn(command(*arguments), stderr=subprocess.PIPE, text=True, **options)


def test_signals_end_the_window():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        target = sleeper().pid
        code = Code(target)
        output = Output()
        run = start("-p", target, "--quiet", "--json", output.path)
        wait_until(code.is_hooked, "the attach")
        time.sleep(0.3)
        run.send_signal(number)
        assert run.wait(PATIENCE) == 0, run.stderr.read()
        assert report(output.path)["window"]["ended"] == "interrupt"
        assert_untouched(target)
        assert code.is_as_before()


def test_nohup():
    target = sleeper().pid
    code = Code(target)
    output = Output()
    run = start("-p", target, "--quiet", "-d", "1", "--json", output.path,
                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    wait_until(code.is_hooked, "the attach")
    run.send_signal(signal.SIGHUP)
    assert run.wait(PATIENCE) == 0
    window = report(output.path)["window"]
    assert window["ended"] == "duration" and window["seconds"] >= 1, window


def test_output_file():
    target = sleeper().pid
    output = Output()
    result = memwatch("-p", target, "-d", "0.3", "--json", output.path)
    assert result.returncode == 0 and not result.stderr, result.stderr
    assert stat.S_IMODE(os.stat(output.path).st_mode) == 0o600
    assert os.listdir(output.directory) == ["report.json"]
    found = report(output.path)
    assert found["target"]["pid"] == target and found["target"]["comm"] == "sleep"
    assert found["target"]["command"] == ["sleep", "1000"] and found["target"]["launched"] is False
    assert found["engine"]["name"] == (ARGS.engine if ARGS.engine in ("jump", "trap") else "jump"), found["engine"]
    asked = f"--engine {ARGS.engine}" if ARGS.engine in ("jump", "trap") else "auto: "
    assert asked in found["engine"]["reason"], found["engine"]
    samples = found["memory"]
    assert samples[0]["at"] == 0 and samples[0]["pss"] and samples[-1]["pss"], samples
    assert abs(samples[-1]["at"] - found["window"]["seconds"]) < 0.001, samples
    assert "sleep" in result.stdout


BUSY = """
import ctypes, time
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
print("ready", flush=True)
while True:
    for size in range(1000, 1050):
        libc.free(libc.malloc(size))
    libc.malloc(100000)
    time.sleep(0.05)
"""


class Terminal:
    """A run with a terminal of 120 columns as its standard error, and what it writes there."""

    def __init__(self, *arguments, stopped=False):
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 120, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        if stopped:
            termios.tcflow(theirs, termios.TCOOFF)
        self.run = spawn(command(*arguments), stdout=subprocess.DEVNULL, stderr=theirs, env=environment)
        # Kept open where it is stopped, as that would be forgotten.
        self.theirs = theirs if stopped else os.close(theirs)
        self.said = b""

    def read(self):
        """More of it; False at the end."""
        try:
            piece = os.read(self.ours, 65536)
        except OSError:  # the other end is closed
            piece = b""
        self.said += piece
        return bool(piece)

    def read_until(self, pattern):
        while not re.search(pattern, self.said.decode()):
            assert self.read(), f"{pattern!r} never came: {self.said}"

    def finish(self):
        """All of it, line by line."""
        while self.read():
            pass
        os.close(self.ours)
        assert self.run.wait(PATIENCE) == 0, self.said
        lines = self.said.decode().split("\r")
        assert not lines[-1].strip(), lines  # nothing stays of it
        return lines


def on_terminal(*arguments):
    return "\r".join(Terminal(*arguments).finish())


def test_progress():
    """Lines of a window come until it is ended: at least three of them, however slow all is."""
    busy = python(BUSY)[0].pid
    line = (r"\rmemwatch: (\d+) s left, not freed: ([\d.]+) (\w+) in (\d+) blocks, resident: [\d.]+ MiB, "
            r"events: (\d+)/s, stopped: [\d.]+ % *(?=\r)")
    terminal = Terminal("-p", busy, "-d", "500")
    terminal.read_until(f"({line}.*){{3}}")
    terminal.run.send_signal(signal.SIGINT)
    shown = re.findall(line, "\r".join(terminal.finish()))
    assert 500 >= int(shown[0][0]) > int(shown[-1][0]), shown
    assert int(shown[-1][3]) > int(shown[0][3]) and any(int(match[4]) > 0 for match in shown), shown
    run = spawn(command("-p", busy, "-d", "1.2"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert run.communicate(timeout=PATIENCE)[1] == b"" and run.returncode == 0
    assert "left" not in on_terminal("-p", busy, "-d", "1.2", "--quiet")


def phases(lines):
    """What is told to be done, each once, in order."""
    found = [match.group(1) for match in (re.match(r"memwatch: ([a-z' ]+) \.\.\.", line) for line in lines) if match]
    return list(dict.fromkeys(found))


def slow_pipe(directory):
    """A pipe that takes little until it is read; (its path, our end)."""
    path = os.path.join(directory, "pipe")
    os.mkfifo(path)
    ours = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(ours, 1031, 4096)  # F_SETPIPE_SZ
    return path, ours


def test_progress_of_writing():
    """A report that takes long to be written is seen to be."""
    busy = python(BUSY)[0].pid
    recording = os.path.join(Output().directory, "kept.mw")
    for first, form in ((("-p", busy, "-d", "1", "-o", recording), "--html"), (("report", recording), "--json"),
                        (("report", recording), "--html")):
        path, ours = slow_pipe(Output().directory)
        terminal = Terminal(*first, form, path)
        terminal.read_until(r"\rmemwatch: writing the report \.\.\. [1-9][0-9]* s")
        os.set_blocking(ours, True)
        while os.read(ours, 1 << 20):
            pass
        os.close(ours)
        found = phases(terminal.finish())
        assert "writing the report" in found, found
        if first[0] == "-p":
            assert "reading symbols" in found, found
        else:
            assert found[0] == "looking through the recording", found


def test_progress_of_reading():
    generate = os.path.join(os.path.dirname(ARGS.memwatch), "tests", "bench", "generate")
    if not os.access(generate, os.X_OK):
        raise Skip("tests/bench/generate is not built")
    directory = Output().directory
    recording = os.path.join(directory, "large.mw")
    subprocess.run([generate, recording, "400000"], check=True, stdout=subprocess.DEVNULL)
    for arguments in (("report", recording, "--html", os.path.join(directory, "page")), ("report", recording, "--at", "peak"),
                      ("diff", recording, "--from", "start", "--to", "end")):
        lines = Terminal(*arguments).finish()
        assert phases(lines)[:2] == ["looking through the recording", "reading events"], lines
        shares = [int(share) for line in lines for share in re.findall(r"reading events \.\.\. (\d+) %", line)]
        assert shares and all(share <= 100 for share in shares), lines
    result = memwatch("report", recording)
    assert result.returncode == 0 and not result.stderr, result.stderr
    assert not "".join(Terminal("report", recording, "--quiet").finish()).strip()


def test_progress_never_waits():
    """Who has stopped the terminal (^S) does not hold up the window."""
    busy = python(BUSY)[0].pid
    for engine in "trap", "jump":
        terminal = Terminal("-p", busy, "-d", "2", "--engine", engine, "--json", Output().path, stopped=True)
        assert terminal.run.wait(PATIENCE) == 0
        os.close(terminal.theirs)
        os.close(terminal.ours)


def test_json_on_stdout():
    target = sleeper().pid
    result = memwatch("-p", target, "-d", "0.3", "--json", "-")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["schema"] == "memwatch.report/1"
    result = memwatch("-p", target, "-d", "0.3", "--json", "/dev/stdout", "--quiet")
    assert json.loads(result.stdout)["target"]["pid"] == target


def test_several():
    first, second = sleeper().pid, sleeper().pid
    output = Output()
    result = memwatch("-p", f"{first},{second},{first}", "-d", "0.5", "--json", output.path)
    assert result.returncode == 0, result.stderr
    assert str(first) in result.stdout and str(second) in result.stdout
    assert_untouched(first)
    assert_untouched(second)


def test_launch():
    output = Output()
    result = memwatch("--json", output.path, "--", "sh", "-c", "echo from the command; exit 7")
    assert result.returncode == 0 and not result.stderr, result.stderr
    assert result.stdout.startswith("from the command\n")
    found = report(output.path)
    assert found["target"]["exit_status"] == 7 and found["window"]["ended"] == "exit"
    assert found["target"]["command"] == ["sh", "-c", "echo from the command; exit 7"]
    assert found["target"]["exe"] == shutil.which("sh"), found["target"]
    assert found["target"]["launched"] is True


def test_nothing_is_older_in_a_launched_one():
    recording = os.path.join(WORK, "launched.mw")
    result = memwatch("-o", recording, "--force", "--", "sleep", "0.5")
    assert result.returncode == 0, result.stderr
    again = memwatch("report", recording)
    for text in (result.stdout, again.stdout):
        assert "not freed" in text and not re.search("[Bb]locks from before|older", text), text
    part = memwatch("report", recording, "--from", "300ms")
    assert "Blocks from before the interval" in part.stdout, part.stdout
    target = sleeper().pid
    result = memwatch("-p", target, "-d", "300ms", "--json", Output().path)
    assert "Blocks from before the window" in result.stdout, result.stdout


def test_launch_without_shebang():
    script = os.path.join(WORK, "bare")
    with open(script, "w", encoding="utf-8") as file:
        file.write("echo bare\n")
    os.chmod(script, 0o755)
    result = memwatch("--quiet", "--", script)
    assert result.returncode == 0 and result.stdout == "bare\n", result


def test_launched_runs_on():
    output = Output()
    result = memwatch("-d", "0.5", "--quiet", "--json", output.path, "--", "sleep", "30", stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL)
    assert result.returncode == 0
    found = report(output.path)
    assert found["window"]["ended"] == "duration"
    pid = found["target"]["pid"]
    assert comm(pid) == "sleep"
    assert_untouched(pid)
    os.kill(pid, signal.SIGKILL)


def test_launched_gets_what_memwatch_got():
    not_under("it has descriptors of its own, and a limit that makes room for them", "valgrind")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = min(333, hard)
    code = "ulimit -n; trap '' USR1; grep -E '^Sig(Ign|Blk):' /proc/self/status; ls -l /proc/self/fd | wc -l"
    bare, watched = (
        subprocess.run([*prefix, "sh", "-c", code], capture_output=True, text=True, check=False, timeout=PATIENCE,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)))
        for prefix in ([], command("--quiet", "--")))
    assert watched.returncode == 0, watched.stderr
    assert bare.stdout == watched.stdout and bare.stdout.startswith("333"), (bare.stdout, watched.stdout)


def test_second_signal():
    """It ends memwatch only when nothing is attached any more; here the reader of a report does not read."""
    target, _ = python("import time\nprint(1, flush=True)\ntime.sleep(1000)")
    reader, writer = os.pipe()
    try:
        os.set_blocking(writer, False)
        while True:
            os.write(writer, bytes(4096))
    except BlockingIOError:
        os.set_blocking(writer, True)
    code = Code(target.pid)
    run = start("-p", target.pid, "--json", "-", stdout=writer)
    wait_until(code.is_hooked, "the attach")
    time.sleep(0.3)
    run.send_signal(signal.SIGINT)
    wait_until(code.is_as_before, "the detach")
    time.sleep(0.7)
    assert run.poll() is None
    run.send_signal(signal.SIGINT)
    assert run.wait(PATIENCE) == 1
    assert "interrupted" in run.stderr.read()
    assert_untouched(target.pid)
    os.close(reader)
    os.close(writer)


def test_limit_of_file_size():
    """It is an error of writing, and no death by SIGXFSZ."""
    target, _ = python("import time\nprint(1, flush=True)\nwhile 1: time.sleep(0.01)")
    path = os.path.join(WORK, "limited")
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (512, resource.RLIM_INFINITY))
    with open(path, "wb") as file:
        result = subprocess.run(command("-p", target.pid, "-d", "0.2"), stdout=file, stderr=subprocess.PIPE, text=True,
                                check=False, timeout=PATIENCE, preexec_fn=limit)
    assert result.returncode == 1 and "File too large" in result.stderr, result
    assert_untouched(target.pid)


def test_outputs_are_not_one():
    path = os.path.join(WORK, "one.mw")
    again = os.path.join(WORK, ".", "one.mw")
    result = memwatch("-o", path, "--json", again, "--", "true")
    assert result.returncode == 2 and "one file" in result.stderr and not os.path.exists(path), result
    assert memwatch("-o", path, "--quiet", "--", "true").returncode == 0
    size = os.path.getsize(path)
    result = subprocess.run([*command()[:1], "report", path, "--json", again], capture_output=True, text=True,
                            check=False, timeout=PATIENCE)
    assert result.returncode == 2 and "recording itself" in result.stderr, result
    assert os.path.getsize(path) == size


run_all(globals())
