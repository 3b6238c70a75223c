#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What doctor says of real processes: the answer, the lists, where debug information is missing and how to get it."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from harness import (ARGS, NOBODY, WORK, Skip, as_user, assert_untouched, compile_c, memwatch, run_all, sleeper,
                     spawn, status, wait_until)

LEAKY = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
void *kept;
__attribute__((noinline)) static void leak_of_mine(void) { kept = malloc(1000); *(char *)kept = 1; }
int main(void) { puts("ready"); fflush(stdout); for (;;) { leak_of_mine(); usleep(10000); } }
"""
LEADERLESS = """
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *work(void *leader)
{
	pthread_join(*(pthread_t *)leader, NULL);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
int main(void)
{
	static pthread_t leader;
	pthread_t thread;
	leader = pthread_self();
	pthread_create(&thread, NULL, work, &leader);
	pthread_exit(NULL);
}
"""
EVIL = "it's $(reboot) `x` \"\\ \n\x1b[2J;"
INSIDE_ID = "00112233445566778899"
# os-release, and what the command is for /usr/bin/prog and other files.
SYSTEMS = {
    "debian": ('ID=debian\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
               r"find-dbgsym-packages --install /usr/bin/prog( /\S+)*"),
    "ubuntu": ('ID=ubuntu\nID_LIKE=debian\nPRETTY_NAME="Ubuntu 24.04 LTS"\n',
               r"find-dbgsym-packages --install /usr/bin/prog( /\S+)*"),
    "fedora": ('ID=fedora\nPRETTY_NAME="Fedora Linux 40"\n',
               r"dnf debuginfo-install \$\(rpm -qf /usr/bin/prog( /\S+)*\)"),
    "rocky": ('ID="rocky"\nID_LIKE="rhel centos fedora"\nPRETTY_NAME="Rocky Linux 9.4"\n',
              r"dnf debuginfo-install \$\(rpm -qf /usr/bin/prog( /\S+)*\)"),
    "suse": ('ID="opensuse-leap"\nID_LIKE="suse opensuse"\nPRETTY_NAME="openSUSE Leap 15.6"\n',
             rf"zypper --plus-content debug install -C 'debuginfo\(build-id\)={INSIDE_ID}'"
             r"( 'debuginfo\(build-id\)=[0-9a-f]{40}')*"),
    "alpine": ('ID=alpine\nPRETTY_NAME="Alpine Linux v3.19"\n',
               r"apk info -qW /usr/bin/prog( /\S+)* \| xargs -rn1 apk list -I \| sed -n \S+ \| sort -u \| "
               r"xargs -rn1 apk add"),
    "arch": ('ID=arch\nPRETTY_NAME="Arch Linux"\n', None),
    "unknown": ('ID=nixos\nPRETTY_NAME="NixOS 24.05"\n', None),
}


def doctor(pid, code=0, **options):
    """What it prints; nothing else is said where all is well."""
    result = memwatch("doctor", "-p", pid, **options)
    assert result.returncode == code, result.stdout + result.stderr
    assert code or not result.stderr, result.stderr
    assert not re.search("[\\x00-\\x09\\x0b-\\x1f\\x7f-\\x9f]", result.stdout), repr(result.stdout)
    assert_untouched(pid)
    return result.stdout


def section(text, title):
    """The lines that follow a title, up to an empty one, the breaks of lines undone."""
    found = re.search(rf"(?ms)^{title}[^\n]*\n(.*?)\n(?:\n|\Z)", text)
    assert found, f"no {title!r} in {text}"
    return found.group(1)


def joined(text):
    return re.sub(r"\s+", " ", text)


def commands(text):
    """Lines to be copied to a shell, with what goes on in the next one."""
    return [re.sub(r"( \\|(?<=\|))\n\s*", " ", line) for line in
            re.findall(r"(?m)^    ((?:sudo )?(?:find-dbgsym-packages|apk|dnf|zypper) .*(?:(?<=[\\|])\n.*)*)", text)]


def levels(text):
    """Of which modules what is known: path to the level's first words."""
    found, level = {}, None
    for line in section(text, "Debug information of").splitlines():
        if re.match(r"  [a-z]", line):
            level = line.strip()
        elif re.match(r"    /", line):
            found[re.sub(r" (\(|(no )?build-id).*", "", line.strip())] = level
    return found


def lacking(found):
    return [path for path, level in found.items() if not level.startswith("names of functions, files and lines")]


def ready(arguments, **options):
    child = spawn(arguments, stdout=subprocess.PIPE, **options)
    assert child.stdout.readline() == b"ready\n"
    return child


def mapped(pid):
    """Files with code."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        return {fields[5].strip() for fields in (line.split(None, 5) for line in maps)
                if "x" in fields[1] and len(fields) > 5 and fields[5].startswith("/")}


# The answer, and what may be done

def test_answer():
    text = doctor(sleeper().pid)
    engine = ARGS.engine if ARGS.engine in ("jump", "trap") else "jump"
    lines = text.splitlines()
    assert re.fullmatch(rf"Process \d+ \(sleep\) can be watched: [1-9]\d* functions, by engine {engine}\.", lines[0]), text
    assert re.fullmatch(r"Process \d+ can be watched\.", lines[-1]), text
    for line in lines:
        assert len(line) <= 80 or " " not in line.strip(), line
    hooked = section(text, "Would be hooked: ")
    assert re.match(r"  \S+/libc\.so\.6 at [0-9a-f]+: \d+ by a " + ("jump" if engine == "jump" else "breakpoint"), hooked)
    for name in ("malloc", "calloc", "realloc", "free", "mmap"):
        assert len(re.findall(rf"(?<=[0-9a-f]) {name}\b", hooked)) == 1, hooked
    count = int(re.search(r"Would be hooked: (\d+) ", text).group(1))
    assert len(re.findall(r"\b[0-9a-f]{3,} [a-z]", "\n".join(hooked.splitlines()[1:]))) == count, hooked


def test_offsets():
    """What is reported of a function is where it lies."""
    target = sleeper()
    hooked = section(doctor(target.pid), "Would be hooked: ")
    path, base = re.match(r"  (\S+) at ([0-9a-f]+):", hooked).groups()
    symbols = subprocess.run(["readelf", "-W", "--dyn-syms", path], capture_output=True, text=True, check=False).stdout
    malloc = int(re.search(r"(?m)^.*: ([0-9a-f]+) .* malloc@@", symbols).group(1), 16)
    assert int(re.search(r"([0-9a-f]+) malloc\b", hooked).group(1), 16) == malloc, hooked
    with open(f"/proc/{target.pid}/maps", encoding="utf-8") as maps:
        assert min(int(line.split("-")[0], 16) for line in maps if path in line) == int(base, 16)


def test_may_as_root():
    if os.geteuid() != 0:
        raise Skip("not root")
    text = doctor(sleeper().pid)
    assert "attach to it: memwatch runs as root" in joined(section(text, "memwatch may$")), text
    assert "CAP_SYS_PTRACE" not in section(text, "memwatch may not$") or status(os.getpid(), "CapEff") != "f" * 16, text


def test_may_as_user():
    target = sleeper(**as_user(NOBODY))
    text = doctor(target.pid, **as_user(NOBODY))
    may, may_not = joined(section(text, "memwatch may$")), joined(section(text, "memwatch may not$"))
    assert "attach to it: the process is of the same user" in may, text
    for name in ("CAP_SYS_PTRACE", "CAP_SYS_ADMIN", "CAP_SYS_NICE"):
        assert f"it takes {name}" in may_not and name not in may, text
    assert "sudo memwatch" in may_not and "setcap cap_sys_ptrace+ep /" in may_not, text
    for command in commands(text):
        assert command.startswith("sudo "), command
    refused = doctor(sleeper().pid, 1, **as_user(NOBODY))
    assert re.match(r"Process \d+ \(sleep\) can't be watched\.\n", refused), refused
    assert "attach to it, which is refused: " in joined(section(refused, "memwatch may not$")), refused
    assert "belongs to root" in joined(refused) and "Would be hooked" not in refused, refused


def test_facts():
    code = ("import ctypes, time\nassert ctypes.CDLL(None).prctl(38, 1, 0, 0, 0) == 0\nprint('ready', flush=True)\n"
            "time.sleep(1000)")
    path = os.path.join(WORK, "replaced")
    shutil.copy(os.path.realpath(sys.executable), path)
    text = doctor(ready([path, "-c", code]).pid)
    assert re.search(r"(?m)^no_new_privs +set", text) and re.search(rf"(?m)^program +{path}$", text), text
    child = ready([path, "-c", code])
    os.unlink(path)
    text = doctor(child.pid)
    assert f"program {path}, deleted or replaced since it was started user" in joined(text), text
    assert re.search(rf"(?m)^    {path}\s+\(deleted\)", text), text
    static = compile_c(LEAKY, "static", "-static")
    text = doctor(ready([static]).pid, memwatch("doctor", "-p", ready([static]).pid).returncode)
    assert re.search(r"(?m)^linked +statically$", text), text


def test_first_thread_has_ended():
    """What it knew is asked of those that live."""
    path = compile_c(LEADERLESS, "leaderless")
    text = doctor(ready([path]).pid)
    assert re.match(r"Process \d+ \(leaderless\) can be watched: [1-9]\d* functions", text), text
    assert re.search(rf"(?m)^program +{path}$", text), text
    assert re.search(r"(?m)^state +its first thread has ended; 2 threads$", text), text
    assert re.search(r"(?m)^namespaces +pid: same, mount: same, user: same$", text), text
    assert "libc.so.6" in section(text, "Would be hooked: "), text


# Debug information

def test_levels():
    for flags, level in ((["-g"], "names of functions"), ([], "names of functions"), (["-s"], "names of exported")):
        path = compile_c(LEAKY, "leaky", *flags, "-Wl,--build-id=0x0123456789abcdef")
        text = doctor(ready([path]).pid)
        found = levels(text)
        assert found[path].startswith(level), text
        if flags == ["-g"]:
            assert re.search(rf"(?m)^    {path} \(in itself\)$", text), text
            assert "01/23456789abcdef" not in text and "build-id 0123456789abcdef" not in text, text
        else:
            assert re.search(rf"(?m)^    {path}\s+build-id 0123456789abcdef$", text), text
            assert "neither" in text or flags, text
            assert re.search(rf"(?m)^    {path}\n      /usr/lib/debug/.build-id/01/23456789abcdef.debug$", text), text
        os.unlink(path)


def build_id(path):
    """readelf's word for it."""
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=False).stdout
    found = re.search("Build ID: ([0-9a-f]+)", notes)
    return "build-id " + found.group(1) if found else "no build-id"


def start_programs():
    directory = tempfile.mkdtemp(dir=WORK)
    programs = {"redis-server": ["redis-server", "--port", "0", "--unixsocket", directory + "/socket", "--dir", directory],
                "sqlite3": ["sqlite3", ":memory:"],
                "python3": ["/usr/bin/python3", "-c", "import ssl, ctypes, time; time.sleep(1000)"]}
    for name, arguments in programs.items():
        if shutil.which(arguments[0]):
            child = spawn(arguments, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait_until(lambda pid=child.pid: any("libc.so" in path for path in mapped(pid)), f"{name} to be started")
            if name == "python3":
                wait_until(lambda pid=child.pid: any("_ctypes" in path for path in mapped(pid)), "its modules")
            yield child.pid


def test_real_programs():
    """Every module is reported, those that lack something with their build-ids, and one command is given for all."""
    seen = 0
    for pid in start_programs():
        text = doctor(pid)
        found = levels(text)
        assert set(found) == mapped(pid), text
        for path in lacking(found):
            noted = rf"(?m)^    {re.escape(path)}(\s+\(runtime or allocator\))?\s+{build_id(path)}$"
            assert re.search(noted, text), (path, text)
        if lacking(found) and os.path.exists("/etc/debian_version"):
            sudo = "" if os.geteuid() == 0 else "sudo "
            assert commands(text) == [f"{sudo}find-dbgsym-packages --install {pid}"], text
            assert re.search(r"deb http://\S+ CODENAME", joined(text)), text
        seen += 1
    if not seen:
        raise Skip("none of the programs is installed")


def test_debuginfod():
    target = sleeper().pid
    environment = {**os.environ, "DEBUGINFOD_URLS": "http://127.0.0.1:1/\x1b", "DEBUGINFOD_CACHE_PATH": WORK + "/cache",
                   "DEBUGINFOD_TIMEOUT": "1"}
    text = joined(doctor(target, env=environment))
    assert "DEBUGINFOD_URLS is set (http://127.0.0.1:1/\\x1b), and has none" in text, text
    environment.pop("DEBUGINFOD_URLS")
    text = doctor(target, env=environment)
    assert re.search(rf"(?m)^    DEBUGINFOD_URLS=https://debuginfod\.\S+ memwatch -p {target}$", text), text


# Other roots

def make_root(release, program):
    """A root directory with a distribution's os-release and /usr/bin/PROGRAM; (root, source of the program)."""
    if os.geteuid() != 0:
        raise Skip("not root: no chroot")
    root = tempfile.mkdtemp(dir=WORK)
    source = compile_c(LEAKY, "inside", "-g", f"-Wl,--build-id=0x{INSIDE_ID}")
    libraries = re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", source], capture_output=True, text=True,
                                                          check=False).stdout)
    for name in libraries:
        os.makedirs(os.path.dirname(root + name), exist_ok=True)
        shutil.copy(os.path.realpath(name), root + name)
    os.makedirs(root + "/usr/bin")
    os.makedirs(root + "/etc")
    subprocess.run(["strip", "-o", f"{root}/usr/bin/{program}", source], check=True)
    with open(root + "/etc/os-release", "w", encoding="utf-8") as file:
        file.write(release)
    return root, source


def inside(root, program):
    return ready(["chroot", root, f"/usr/bin/{program}"])


def test_other_roots():
    for release, command in SYSTEMS.values():
        root, _ = make_root(release, "prog")
        child = inside(root, "prog")
        text = doctor(child.pid)
        pretty = re.search('PRETTY_NAME="(.*)"', release).group(1)
        assert re.search(rf"(?m)^root +a directory of its own \({re.escape(pretty)}\)$", text), text
        assert f"root directory of its own ({pretty})" in joined(text[text.index("Debug information"):]), text
        assert f"    memwatch report FILE --symbols /proc/{child.pid}/root/usr/lib/debug\n" in text, text
        assert re.search(rf"(?m)^    /usr/bin/prog\s+build-id {INSIDE_ID}$", text), text
        assert len(commands(text)) == (command is not None), text
        assert command is None or re.fullmatch(command, commands(text)[0]), text
        child.kill()
        child.wait()


def test_many_modules():
    """One command has all of them."""
    if os.geteuid() != 0 or not os.path.exists("/usr/lib/os-release"):
        raise Skip("not root, or no os-release to mount another over")
    release = os.path.join(WORK, "os-release")
    for name in ("fedora", "suse"):
        with open(release, "w", encoding="utf-8") as file:
            file.write(SYSTEMS[name][0])
        child = ready(["unshare", "--mount", "sh", "-c", 'mount --bind "$1" /usr/lib/os-release && exec "$2" -c "$3"',
                       "sh", release, sys.executable, "import ssl, ctypes, time; "
                       "assert ctypes.CDLL(None).dlmopen(ctypes.c_long(-1), b'libz.so.1', 2); "  # mapped twice
                       "print('ready', flush=True); time.sleep(1000)"])
        text = doctor(child.pid)
        files = [path for path in lacking(levels(text)) if re.match("/(usr/(?!local/)|lib)", path)]
        assert len(files) > 1, text
        command, = commands(text)
        if name == "fedora":
            assert command == f"dnf debuginfo-install $(rpm -qf {' '.join(files)})", text
        else:
            ids = [f"'debuginfo(build-id)={build_id(path).split()[-1]}'" for path in files]
            assert command == f"zypper --plus-content debug install -C {' '.join(ids)}", text
        assert "root directory of its own" not in text, text
        child.kill()
        child.wait()


def test_symbols_of_another_root():
    """What doctor advises for such a process does what it says."""
    root, source = make_root(SYSTEMS["fedora"][0], "prog")
    os.makedirs(root + "/usr/lib/debug/.build-id/00")
    shutil.copy(source, root + "/usr/lib/debug/.build-id/00/112233445566778899.debug")
    os.unlink(source)
    child = inside(root, "prog")
    recording = os.path.join(WORK, "other.mw")
    result = memwatch("-p", child.pid, "-d", "0.5", "--no-symbols", "-o", recording, "--quiet")
    assert result.returncode == 0, result.stderr
    text = memwatch("report", recording, "--symbols", f"/proc/{child.pid}/root/usr/lib/debug").stdout
    assert re.search(r"prog!leak_of_mine\+0x[0-9a-f]+ \(.*:6\)", text), text


def test_hostile_names():
    """A file's name gets to a shell as it is, and to a terminal not at all."""
    root, _ = make_root(SYSTEMS["fedora"][0], EVIL)
    text = doctor(inside(root, EVIL).pid)
    assert "reboot" in text and "\\x1b[2J" in text, text
    line = commands(text)[0]
    assert line.startswith("dnf debuginfo-install $(rpm -qf ") and line.endswith(")"), line
    words = line.removeprefix("dnf debuginfo-install $(rpm -qf ").removesuffix(")")
    shell = subprocess.run(["bash", "-c", f"printf '%s\\0' {words}"], capture_output=True, check=True)
    assert shell.stdout.startswith(f"/usr/bin/{EVIL}\0".encode()), (line, shell.stdout)
    # A distribution that is none.
    root, _ = make_root('ID="$(reboot)"\nPRETTY_NAME="\x1b[2J$(reboot)"\nID_LIKE="x;reboot debian2"\n', "prog")
    text = doctor(inside(root, "prog").pid)
    assert "\\x1b[2J$(reboot)" in text and "x;reboot" not in text and not commands(text), text


run_all(globals())
