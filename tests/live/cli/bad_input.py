#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Everything that memwatch must refuse: with one message, the right status, and nothing touched."""
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import tempfile
import time

from harness import (MEMWATCH, NOBODY, OTHER, PATIENCE, WORK, Code, Output, Skip, as_user, assert_message,
                     assert_untouched, comm, command, compile_c, elf, memwatch, python, refuse, run_all, sleeper, spawn,
                     status, wait_until)

PAUSE_32 = bytes.fromhex("b81d000000" "cd80" "ebf7")  # mov $29, %eax; int $0x80; jmp back
PAUSE_64 = bytes.fromhex("b822000000" "0f05" "ebf7")  # mov $34, %eax; syscall; jmp back


def paused(path, **options):
    """Start a program that pauses, and wait until it does."""
    try:
        child = spawn([path], **options)
    except OSError as error:
        raise Skip(f"the kernel does not run it: {error}") from error
    wait_until(lambda: child.poll() is not None or status(child.pid, "State")[0] == "S", path)
    assert child.poll() is None
    return child


# Command lines

def test_usage():
    target = sleeper().pid
    for arguments in (["-d", "abc"], ["-d", "-1"], ["-d", "nan"], ["-d", "inf"], ["-d", "0"], ["-d", "1e99"],
                      ["-d", "5x"], ["-d", ""], ["-d", "1h30"], ["-d", "1m 5s"], ["-d", "5min"], ["--depth", "0"], ["--depth", "1025"], ["--depth", "many"],
                      ["--top", "-1"], ["--top", "1.5"], ["--track", "stack"], ["--track", ""],
                      ["--engine", "jum"], ["--engine", "magic"], ["--engine", ""], ["--json", ""], ["--", "ls"], ["--"],
                      ["--nonsense"], ["-x"], ["-d"], ["--quiet=1"], ["word"]):
        word = arguments[0] if arguments[0] != "--" else "command"
        word = {"-d": "--duration", "word": "'word'"}.get(word, word.split("=", maxsplit=1)[0])
        refuse(2, [word], "-p", target, *arguments, target=target)


def test_pid_lists():
    for pids in ("0", "-1", "99999999999", "1,,2", ",1", "1,", "", "abc", "1 2", "0x10", "4194305"):
        refuse(2, ["--pid"], "-p", pids)


def test_nothing_to_do():
    result = memwatch()
    assert result.returncode == 2 and not result.stdout and "Usage:" in result.stderr, result.stderr
    refuse(2, ["nothing to watch"])
    assert_message(memwatch("docter", "-p", 1), 2, "docter", "doctor")
    assert_message(memwatch("ls", "-l"), 2, "'ls'", "--")
    assert_message(memwatch("29067"), 2, "'29067'", "memwatch -p 29067$")
    assert_message(memwatch("1,29067"), 2, "memwatch -p 1,29067$")
    assert_message(memwatch("-d", "10", "29067"), 2, "memwatch -p 29067$")
    assert_message(memwatch("doctor", "29067"), 2, "memwatch doctor -p 29067$")
    assert_message(memwatch("top", "29067"), 2, "memwatch top -p 29067$")
    assert_message(memwatch(""), 2, "no such command:")


def test_help_fits():
    for arguments in (["--help"], ["doctor", "--help"]):
        result = memwatch(*arguments)
        lines = result.stdout.splitlines()
        assert result.returncode == 0 and not result.stderr
        assert len(lines) <= 30 and max(map(len, lines)) <= 80, lines
    with open("/dev/full", "w", encoding="utf-8") as full:
        assert_message(memwatch("--help", stdout=full), 1, "standard output", "No space left")


def test_help_of_a_command():
    for name in ("top", "doctor", "report", "diff", "help"):
        asked = memwatch("help", name)
        assert asked.returncode == 0 and not asked.stderr and f"memwatch {name} " in asked.stdout, asked
        assert asked.stdout == memwatch(name, "--help").stdout
    assert memwatch("help").stdout == memwatch("--help").stdout
    assert_message(memwatch("help", "docter"), 2, "'docter'", "memwatch help doctor'")
    assert_message(memwatch("help", "top", "diff"), 2, "'diff'")
    assert_message(memwatch("help", "--nonsense"), 2, "--nonsense")


# Commands to launch

def test_empty_command():
    refuse(2, ["empty"], "--")
    refuse(2, ["empty"], "--", "")


def test_command_not_there():
    refuse(1, ["no-such-command", "No such file"], "--", "no-such-command")
    refuse(1, ["/no/such/command", "No such file"], "--", "/no/such/command")
    refuse(1, ["Is a directory"], "--", "/tmp")
    plain = os.path.join(WORK, "plain")
    with open(plain, "w", encoding="utf-8") as file:
        file.write("text")
    refuse(1, ["Permission denied", "not executable"], "--", plain)


def test_interpreter_not_there():
    """Only the exec itself can tell: it comes when memwatch is attached already."""
    script = os.path.join(WORK, "script")
    with open(script, "w", encoding="utf-8") as file:
        file.write("#!/no/such/interpreter\n")
    os.chmod(script, 0o755)
    refuse(1, ["cannot run", "script"], "--", script)


def test_launch_32_bit():
    refuse(1, ["32-bit"], "--", elf(32, PAUSE_32, "pause32"))


# Processes

def test_no_such_process():
    child = spawn(["true"])
    child.wait()
    refuse(1, [f"no process {child.pid}"], "-p", child.pid)
    other = sleeper()
    refuse(1, [f"no process {child.pid}"], "-p", f"{other.pid},{child.pid}", target=other.pid)


def test_thread():
    child, _ = python("import threading, time\n"
                      "threading.Thread(target=time.sleep, args=(1000,)).start()\n"
                      "print(1, flush=True)")
    threads = [int(tid) for tid in os.listdir(f"/proc/{child.pid}/task") if int(tid) != child.pid]
    refuse(1, [f"{threads[0]} is a thread", f"-p {child.pid}"], "-p", threads[0], target=child.pid)


def test_kernel_thread():
    if comm(2) != "kthreadd":
        raise Skip("no kernel thread is visible")
    refuse(1, ["kernel thread"], "-p", 2)


def test_zombie():
    child = spawn(["true"])
    wait_until(lambda: status(child.pid, "State")[0] == "Z", "a zombie")
    refuse(1, ["zombie", f"pid {os.getpid()}"], "-p", child.pid)


def test_itself():
    result = subprocess.run(["sh", "-c", f'exec "{MEMWATCH}" -p $$'], capture_output=True, text=True, check=False)
    assert_message(result, 1, "memwatch itself")


def test_traced():
    target = sleeper().pid
    tracer, line = python("import ctypes, time\n"
                          "libc = ctypes.CDLL(None, use_errno=True)\n"
                          f"print(libc.ptrace(0x4206, {target}, None, None), flush=True)\n"
                          "time.sleep(1000)")
    assert line == "0", line
    refuse(1, ["already traced", f"pid {tracer.pid}"], "-p", target, target=target, tracer=tracer.pid)


def test_watched_by_another():
    target = sleeper().pid
    code = Code(target)
    other = spawn(command("--quiet", "-p", target))
    wait_until(code.is_hooked, "the other memwatch")
    tracer = int(status(target, "TracerPid"))
    assert tracer in (0, other.pid), tracer
    mentions = ["another memwatch", f"pid {other.pid}"] if tracer else ["another memwatch is still watching"]
    refuse(1, mentions, "-p", target, target=target, tracer=tracer)
    assert code.is_hooked()
    other.send_signal(signal.SIGINT)
    assert other.wait(PATIENCE) == 0
    assert_untouched(target)
    assert code.is_as_before()


def test_not_permitted():
    nobody = as_user(NOBODY)
    root = sleeper().pid
    refuse(1, ["not permitted", r"belongs to root", "sudo"], "-p", root, target=root, **nobody)
    other = sleeper(**as_user(OTHER)).pid
    refuse(1, ["not permitted", f"uid {OTHER}"], "-p", other, target=other, **nobody)
    # One of several: the one that could be watched stays as it was.
    own = sleeper(**nobody).pid
    refuse(1, ["not permitted"], "-p", f"{own},{root}", target=own, **nobody)


def test_not_dumpable():
    path = compile_c("#include <sys/prctl.h>\n#include <unistd.h>\n"
                     "int main(void) { prctl(PR_SET_DUMPABLE, 0); for (;;) pause(); }", "protected")
    child = paused(path, **as_user(NOBODY))
    refuse(1, ["not permitted", "PR_SET_DUMPABLE"], "-p", child.pid, target=child.pid, **as_user(NOBODY))


def test_other_user_namespace():
    child = spawn(["setpriv", "--reuid", str(OTHER), "--regid", str(OTHER), "--clear-groups",
                   "unshare", "--user", "--map-root-user", "sleep", "1000"])
    as_user(NOBODY)
    try:
        wait_until(lambda: child.poll() is not None or comm(child.pid) == "sleep", "a process in a namespace", 5)
    except AssertionError as reason:
        raise Skip("no user namespaces") from reason
    if child.poll() is not None:
        raise Skip("no user namespaces")
    refuse(1, ["not permitted", "user namespace"], "-p", child.pid, target=child.pid, **as_user(NOBODY))


def test_32_bit():
    child = paused(elf(32, PAUSE_32, "pause32"))
    refuse(1, ["32-bit"], "-p", child.pid, target=child.pid)
    assert_message(memwatch("doctor", "-p", child.pid), 1, "32-bit")


def refuse_translated(pid, by):
    refuse(1, [f"runs under {by}", "translates", "Run|Watch"], "-p", pid, "-d", 1, target=pid)
    result = memwatch("doctor", "-p", pid)
    assert_message(result, 1, f"runs under {by}")
    assert "can't be watched" in result.stdout, result.stdout


def test_valgrind():
    if not shutil.which("valgrind"):
        raise Skip("valgrind is not installed")
    source = ("#include <stdlib.h>\n#include <unistd.h>\n"
              "int main(void) { for (;;) { void *volatile block = malloc(1); free(block); usleep(1000); } }")
    # A static program has nothing preloaded.
    for kind in ([], ["-static"]):
        path = compile_c(source, "translated", *kind)
        child = spawn(["valgrind", "--quiet", path])
        wait_until(lambda: any("translated" in line for line in open(f"/proc/{child.pid}/maps", encoding="utf-8")),
                   "valgrind to map the program")
        refuse_translated(child.pid, "valgrind")
        child.kill()
        child.wait()


def test_few_files():
    target = sleeper().pid
    for most in (5, 6, 12, 31):
        refuse(1, ["Too many open files|may have .* files open", "ulimit -n"], "-p", target, "-d", 1, target=target,
               preexec_fn=lambda most=most: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)))


def test_launched_valgrind():
    if not shutil.which("valgrind"):
        raise Skip("valgrind is not installed")
    mark = os.path.join(WORK, "ran")
    path = compile_c("#include <stdio.h>\nint main(void) { FILE *f = fopen(\"" + mark + "\", \"w\"); return fclose(f); }",
                     "leaves")
    refuse(1, ["runs under valgrind", "translates", "Run|Watch"], "--", "valgrind", "--quiet", path)
    # It goes on without memwatch.
    wait_until(lambda: os.path.exists(mark), "the command to do its work")


def test_launched_qemu():
    path = os.path.join(WORK, "qemu-mips")
    shutil.copy(shutil.which("true"), path)
    refuse(1, ["runs under qemu", "translates", "Watch"], "--", path)


def test_qemu():
    # What counts is what the program is called.
    path = os.path.join(WORK, "qemu-riscv64-static")
    shutil.copy(shutil.which("sleep"), path)
    child = spawn([path, "1000"])
    wait_until(lambda: comm(child.pid).startswith("qemu"), "the program to be started")
    refuse_translated(child.pid, "qemu")


def test_no_allocator():
    child = paused(elf(64, PAUSE_64, "pause64"))
    refuse(1, ["allocator"], "-p", child.pid, "-d", 1, target=child.pid)
    result = memwatch("doctor", "-p", child.pid)
    assert_message(result, 1, "allocator")
    # It does not say two things at once.
    assert "can't be watched" in result.stdout and not re.search("can be|record inside it", result.stdout), result.stdout
    assert_untouched(child.pid)


def test_libraries_not_mapped():
    # Its loader sleeps.
    path = compile_c("int main(void) { return 0; }", "loading", f"-Wl,--dynamic-linker={elf(64, PAUSE_64, 'loader')}")
    child = paused(path)
    refuse(1, ["allocator", "just been started", "attach again"], "-p", child.pid, "-d", 1, target=child.pid)


def test_stripped_static():
    path = compile_c("#include <unistd.h>\nint main(void) { for (;;) pause(); }", "stripped", "-static", "-s")
    child = paused(path)
    refuse(1, ["symtab|symbol|stripped", "stripped"], "-p", child.pid, "-d", 1, target=child.pid)
    assert_message(memwatch("doctor", "-p", child.pid), 1, "stripped")


# Outputs

def test_unwritable():
    target = sleeper().pid
    output = Output()
    for name, why in ((f"{output.directory}/none/report.json", "directory does not exist"),
                      (output.directory, "Is a directory"), (f"{output.path}/report.json", "Not a directory"),
                      ("x" * 300, "too long"), (f"{output.directory}/new/", "directory does not exist")):
        assert_message(memwatch("-p", target, "--json", name), 1, "cannot write", why)
        output.assert_unchanged()
        assert_untouched(target)


def test_unwritable_by_mode():
    nobody = as_user(NOBODY)
    target = sleeper(**nobody).pid
    output = Output()
    os.chmod(output.path, 0o444)
    assert_message(memwatch("-p", target, "--json", output.path, **nobody), 1, "Permission denied")
    os.chmod(output.path, 0o666)
    os.chmod(output.directory, 0o755)
    assert_message(memwatch("-p", target, "--json", output.path, **nobody), 1, "Permission denied")
    assert_message(memwatch("-p", target, "--json", output.directory + "/new", **nobody), 1, "Permission denied")
    os.chmod(output.directory, stat.S_ISVTX | 0o777)
    assert_message(memwatch("-p", target, "--json", output.path, **nobody), 1, "not permitted")
    output.assert_unchanged()
    assert_untouched(target)


def test_full_disk():
    target = sleeper().pid
    result = memwatch("-p", target, "-d", "0.3", "--quiet", "--json", "/dev/full")
    assert_message(result, 1, "/dev/full", "No space left")
    with open("/dev/full", "w", encoding="utf-8") as full:
        assert_message(memwatch("-p", target, "-d", "0.3", stdout=full), 1, "standard output", "No space left")
        assert_message(memwatch("-p", target, "-d", "0.3", "--json", "-", stdout=full), 1, "standard output")
    assert_untouched(target)


def test_closed_output():
    target = sleeper().pid
    result = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command("-p", target, "-d", 0.3)], stderr=subprocess.PIPE,
                            text=True, check=False)
    assert_message(result, 1, "standard output", "closed")
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        assert_silent(memwatch("-p", target, "-d", "0.3", stdout=pipe))
        assert_silent(memwatch("doctor", "-p", target, stdout=pipe))
        assert_silent(memwatch("--help", stdout=pipe))
        # What else fails is reported.
        assert_message(memwatch("-p", target, "-d", "0.3", "--json", "-", "--html", "/dev/full", stdout=pipe), 1,
                       "/dev/full", "No space left")
        kept = os.path.join(WORK, "kept.mw")
        assert_silent(memwatch("-p", target, "-d", "0.3", "-o", kept, stdout=pipe))
        assert memwatch("report", kept).returncode == 0
        assert_silent(memwatch("report", kept, stdout=pipe))
        assert_silent(memwatch("diff", kept, "--from", "start", "--to", "end", stdout=pipe))
    assert_untouched(target)


def assert_silent(result):
    """Not all was written, and whoever has closed the pipe knows."""
    assert result.returncode == 1 and not result.stderr, result


def test_head():
    """A reader that has read enough in the middle of a report."""
    target, _ = python("import time\nprint(1, flush=True)\nwhile 1: time.sleep(0.01)")
    code = Code(target.pid)
    kept = os.path.join(WORK, "head.mw")
    for form in (["--top", "100"], ["--json", "-"]):
        result = subprocess.run(["bash", "-c", '"$@" | head -1; echo "${PIPESTATUS[0]}"', "bash",
                                 *command("-p", target.pid, "-d", "1", "-o", kept, *form)], capture_output=True, text=True,
                                check=False, timeout=PATIENCE)
        first, *_, status_of = result.stdout.splitlines()
        assert first and status_of in ("0", "1") and not result.stderr, result
        assert_untouched(target.pid)
        assert code.is_as_before()
        assert memwatch("report", kept).returncode == 0


# Files that are there

def test_other_files_stay():
    """Nothing but what memwatch itself has written is replaced, unless that is asked for."""
    target = sleeper().pid
    directory = tempfile.mkdtemp(dir=WORK)
    names = {option: os.path.join(directory, option.strip("-")) for option in ("--output", "--json", "--html")}
    record = ["-p", target, "-d", "0.2", "--quiet"]
    # Nothing is there, then one of its kind, then an empty file.
    for _ in range(2):
        result = memwatch(*record, *(word for pair in names.items() for word in pair))
        assert result.returncode == 0, result.stderr
    recording = names["--output"] + ".mw"
    shutil.copy(names["--output"], recording)
    own = {option: open(name, "rb").read() for option, name in names.items()}
    texts = [b"a letter\n", b"{}", b'{"schema": "another"}', b"\x89MWRE", b"<!doctype html><title>diary</title>"]
    for option, name in names.items():
        for text in texts + [own[other] for other in own if other != option]:
            for words in (record, ["top", "-p", target]) if option == "--output" else (record, ["report", recording]):
                with open(name, "wb") as file:
                    file.write(text)
                assert_message(memwatch(*words, option, name), 1, option, "--force", re.escape(name))
                assert_untouched(target)
                with open(name, "rb") as file:
                    assert file.read() == text
        result = memwatch(*record, option, name, "--force")
        assert result.returncode == 0 and not result.stderr, result.stderr
        assert open(name, "rb").read(9) == own[option][:9]
    with open(names["--json"], "w", encoding="utf-8"):
        pass
    assert memwatch("report", recording, "--quiet", "--json", names["--json"]).returncode == 0
    link = os.path.join(directory, "link")
    os.symlink(__file__, link)
    size = os.path.getsize(__file__)
    assert_message(memwatch(*record, "--html", link), 1, "--html")
    assert os.path.getsize(__file__) == size
    # A comparison is a JSON report as well.
    moments = ["diff", recording, "--from", "start", "--to", "end", "--quiet"]
    assert memwatch(*moments, "--json", names["--json"]).returncode == 0
    assert memwatch("report", recording, "--quiet", "--json", names["--json"]).returncode == 0
    with open(names["--json"], "w", encoding="utf-8") as file:
        file.write("a letter")
    assert_message(memwatch(*moments, "--json", names["--json"]), 1, "--json")
    assert memwatch(*moments, "--json", names["--json"], "--force").returncode == 0


def test_moments_outside():
    path = os.path.join(WORK, "moments.mw")
    result = memwatch("-o", path, "--quiet", "--", "sleep", "0.2")
    assert result.returncode == 0, result.stderr
    assert_message(memwatch("report", path, "--at", "1000"), 2, "--at", "1000.000 s", "the end of the window")
    assert_message(memwatch("report", path, "--from", "1000"), 2, "--from", "1000.000 s", "the window ends")
    assert_message(memwatch("report", path, "--at", "16m40s"), 2, "1000.000 s", "the end of the window")
    assert_message(memwatch("diff", path, "--to", "16m40s"), 2, "16m40s", "the window ends")
    result = memwatch("report", path, "--at", "100ms")
    assert result.returncode == 0 and not result.stderr, result.stderr


def test_doctor():
    target = sleeper()
    result = memwatch("doctor", "-p", target.pid)
    assert result.returncode == 0 and not result.stderr, result.stderr
    assert "malloc" in result.stdout and "can be watched" in result.stdout
    assert_untouched(target.pid)
    assert_message(memwatch("doctor"), 2, "-p")
    assert_message(memwatch("doctor", "-p", f"{target.pid},1"), 2, "one process")
    root = memwatch("doctor", "-p", target.pid, **as_user(NOBODY))
    assert_message(root, 1, "not permitted", "belongs to root")
    assert "refused" in root.stdout and "can't be watched" in root.stdout


run_all(globals())
