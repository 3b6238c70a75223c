// SPDX-License-Identifier: MIT
/* preflight.c: what can be said against watching a process before anything is done to it, and why it is denied. */
#include "tracee/preflight.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "proc/file.h"
#include "proc/maps.h"
#include "proc/program.h"
#include "proc/status.h"
#include "tracee/tracee.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define NAME      "memwatch"
#define GUARD     "memwatch-guard"
#define MOMENT_NS 20000000
#define MOMENTS   500 /* on a busy machine a process of a thousand threads takes seconds */

/* Who has a name that begins so and traces any of the threads, or 0. It may have detached from the first already. */
static pid_t traced_by(pid_t pid, const char *beginning)
{
	MW_FREE pid_t *tids = NULL;
	size_t count = 0;
	pid_t last = 0;

	mw_error_destroy(mw_tasks_read(pid, &tids, &count));
	for (size_t i = 0; i < count; i++) {
		struct mw_status status;
		char name[17];

		if (!mw_error_none(mw_status_read(tids[i], &status)) || !status.tracer || status.tracer == gettid() ||
		    status.tracer == last)
			continue;
		last = status.tracer;
		mw_comm_read(last, last, name);
		if (strncmp(name, beginning, strlen(beginning)) == 0)
			return last;
	}
	return 0;
}

bool mw_preflight_await_guard(pid_t pid)
{
	const struct timespec moment = {.tv_nsec = MOMENT_NS};
	pid_t guard = traced_by(pid, GUARD);

	/* It may let go and come again, until it has done what it can. */
	for (unsigned i = 0; guard && i < MOMENTS && !mw_state_is_end(mw_state_read(guard)); i++)
		nanosleep(&moment, NULL);
	return guard != 0;
}

#define MOST_MAKERS 256 /* they come and go while the chain is climbed */

/* Without these lists none is found by its maker. */
static bool are_lists_of_children(void)
{
	return access("/proc/thread-self/children", F_OK) == 0;
}

/* Was it made by `pid`, or by one that was? Then it is found and held with it. */
static bool comes_of(pid_t child, pid_t pid)
{
	struct mw_status status;

	for (unsigned i = 0; i < MOST_MAKERS && child > 1 && mw_error_none(mw_status_read(child, &status)); i++) {
		if (status.ppid == pid)
			return true;
		child = status.ppid;
	}
	return false;
}

/* None is shared by all that have none. */
static bool has_memory(pid_t pid)
{
	struct mw_status status;

	return mw_error_none(mw_status_read(pid, &status)) && !status.kernel_thread && !mw_state_is_end(status.state);
}

/* Its maker, where it is that: it is named in the advice. */
static pid_t find_other(pid_t pid, pid_t live, DIR *directory)
{
	struct mw_status status = {.ppid = 0};
	const struct dirent *entry;

	mw_error_destroy(mw_status_read(pid, &status));
	if (status.ppid > 0 && mw_shares_memory(live, status.ppid) == 1)
		return status.ppid;
	while ((entry = readdir(directory))) {
		pid_t other = (pid_t)strtol(entry->d_name, NULL, 10);

		if (other <= 0 || other == pid || mw_shares_memory(live, other) != 1 ||
		    (are_lists_of_children() && comes_of(other, pid)))
			continue;
		/* Whose child it is can't be known of one that has just ended. */
		if (has_memory(other) && mw_shares_memory(live, other) == 1)
			return other;
	}
	return 0;
}

struct mw_error *mw_preflight_sharing(pid_t pid)
{
	DIR *directory = opendir("/proc");
	pid_t other = directory ? find_other(pid, mw_live_thread(pid), directory) : 0;
	struct mw_error *err;

	if (directory)
		closedir(directory);
	if (!other)
		return NULL;
	err = mw_error_create(MW_ERROR_UNSUPPORTED, 0,
			      "process %d shares its memory with process %d, which is not watched and would hit the "
			      "breakpoints and jumps there",
			      (int)pid, (int)other);
	if (comes_of(pid, other))
		return mw_error_hint(err, "Watch process %d, or try again when %d runs a program of its own",
				     (int)other, (int)pid);
	return mw_error_hint(err, "Try again when one of them has ended or runs another program");
}

#define LOOKS 5 /* at who traces it */

#define QEMU "qemu-"

/* What qemu's programs that emulate one process are called after "qemu-"; others (system-…, img, ga) do not. */
static const char *const qemu_machines[] = {
	"aarch64", "aarch64_be", "alpha",       "arm",     "armeb",      "cris",         "hexagon",
	"hppa",    "i386",       "loongarch64", "m68k",    "microblaze", "microblazeel", "mips",
	"mips64",  "mips64el",   "mipsel",      "mipsn32", "mipsn32el",  "nios2",        "or1k",
	"ppc",     "ppc64",      "ppc64le",     "riscv32", "riscv64",    "s390x",        "sh4",
	"sh4eb",   "sparc",      "sparc32plus", "sparc64", "x86_64",     "xtensa",       "xtensaeb",
};

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), wanted = strlen(end);

	return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

/* A tool of valgrind's is a static program (…/libexec/valgrind/memcheck-amd64-linux) that maps and translates the
 * other. */
static bool is_valgrind(const char *exe)
{
	return ends_with(exe, "-linux") && (strstr(exe, "/valgrind/") || strstr(exe, "/.in_place/"));
}

static bool is_qemu(const char *exe)
{
	const char *name = mw_path_name(exe);
	size_t length;

	if (strncmp(name, QEMU, strlen(QEMU)) != 0)
		return false;
	name += strlen(QEMU);
	/* qemu-arm, qemu-arm-static */
	length = ends_with(name, "-static") ? strlen(name) - strlen("-static") : strlen(name);
	for (size_t i = 0; i < sizeof(qemu_machines) / sizeof(qemu_machines[0]); i++)
		if (strlen(qemu_machines[i]) == length && strncmp(name, qemu_machines[i], length) == 0)
			return true;
	return false;
}

/* What valgrind preloads into a program that is not static. */
static bool has_preload(const struct mw_maps *maps)
{
	for (size_t i = 0; i < maps->count; i++)
		if (strncmp(mw_path_name(maps->items[i].path), "vgpreload_", strlen("vgpreload_")) == 0)
			return true;
	return false;
}

enum mw_emulator mw_emulator_of(const char *exe, const struct mw_maps *maps)
{
	if (is_valgrind(exe) || has_preload(maps))
		return MW_EMULATOR_VALGRIND;
	return is_qemu(exe) ? MW_EMULATOR_QEMU : MW_EMULATOR_NONE;
}

static struct mw_error *refuse(enum mw_emulator emulator, const char *what)
{
	const bool valgrind = emulator == MW_EMULATOR_VALGRIND;

	if (emulator == MW_EMULATOR_NONE)
		return NULL;
	return mw_error_hint(mw_error_create(MW_ERROR_UNSUPPORTED, 0,
					     "%s runs under %s, which translates the program's code: "
					     "memwatch cannot hook its functions",
					     what, valgrind ? "valgrind" : "qemu"),
			     valgrind ? "Run the program without valgrind; or let valgrind tell: memcheck finds leaks, "
					"massif profiles the heap"
				      : "Watch a build of the program for this machine");
}

/* Is process `pid`, called `what` in the error, run by a translator? Then what is written over its functions is never
 * run, and nothing would ever be seen. */
static struct mw_error *check_emulated(pid_t pid, const char *what)
{
	MW_CLEANUP(mw_maps_deinit) struct mw_maps maps = {0};
	MW_FREE char *exe = NULL;

	/* What can't be read is no reason to refuse: the engine will say what is wrong. */
	mw_error_destroy(mw_exe_read(pid, &exe));
	mw_error_destroy(mw_maps_read(pid, &maps));
	return refuse(mw_emulator_of(exe ? exe : "", &maps), what);
}

/* The program that finds the tool and becomes it; in some distributions a script stands before it. */
static bool becomes_valgrind(const char *exe)
{
	return strcmp(mw_path_name(exe), "valgrind") == 0 || strcmp(mw_path_name(exe), "valgrind.bin") == 0;
}

struct mw_error *mw_preflight_became(pid_t pid, const char *what)
{
	MW_FREE char *exe = NULL;

	mw_error_destroy(mw_exe_read(pid, &exe));
	return exe && becomes_valgrind(exe) ? refuse(MW_EMULATOR_VALGRIND, what) : check_emulated(pid, what);
}

static struct mw_error *refuse_traced(pid_t pid, const struct mw_status *status)
{
	char tracer[17];
	struct mw_error *err;

	mw_comm_read(status->tracer, status->tracer, tracer);
	if (strcmp(tracer, "memwatch") == 0) {
		err = mw_error_create(MW_ERROR_DENIED, 0,
				      "process %d (%s) is already watched by another memwatch (pid %d)", (int)pid,
				      status->name, (int)status->tracer);
		return mw_error_hint(err, "Wait for it to end, or end it with: kill -INT %d", (int)status->tracer);
	}
	err = mw_error_create(MW_ERROR_DENIED, 0, "process %d (%s) is already traced by '%s' (pid %d)", (int)pid,
			      status->name, tracer, (int)status->tracer);
	return mw_error_hint(err, "A process can have only one tracer: quit '%s' first, or detach it", tracer);
}

/* What the process is, as far as anyone may know. */
static struct mw_error *check_status(pid_t pid, struct mw_status *status)
{
	struct mw_error *err = mw_status_read(pid, status);

	if (err && mw_error_kind(err) == MW_ERROR_GONE) {
		mw_error_destroy(err);
		err = mw_error_create(MW_ERROR_GONE, 0, "there is no process %d", (int)pid);
		return mw_error_hint(err, "It may have ended; 'ps -e' lists those that run");
	}
	MW_TRY(err);
	if (status->tgid == getpid()) {
		err = mw_error_create(MW_ERROR_UNSUPPORTED, 0, "%d is memwatch itself", (int)pid);
		return mw_error_hint(err, "Name another process");
	}
	if (status->tgid != pid) {
		err = mw_error_create(MW_ERROR_UNSUPPORTED, 0, "%d is a thread (%s) of process %d, not a process",
				      (int)pid, status->name, (int)status->tgid);
		return mw_error_hint(err, "Use -p %d: all its threads are watched", (int)status->tgid);
	}
	if (status->kernel_thread) {
		err = mw_error_create(MW_ERROR_UNSUPPORTED, 0, "%d (%s) is a kernel thread", (int)pid, status->name);
		return mw_error_hint(err, "It has no memory of its own; name an ordinary process");
	}
	return NULL;
}

/* A leader that has ended shows as a zombie while other threads go on: those can be watched. */
static struct mw_error *check_alive(pid_t pid, const struct mw_status *status)
{
	if ((status->state == 'Z' && status->threads <= 1) || status->state == 'X') {
		struct mw_error *err = mw_error_create(
			MW_ERROR_UNSUPPORTED, 0, "process %d (%s) has ended and is a zombie", (int)pid, status->name);

		return mw_error_hint(err, "Its parent (pid %d) has not waited for it", (int)status->ppid);
	}
	return NULL;
}

/*
 * Ask the kernel for one byte at address 0, which nobody has mapped: it checks the permission that
 * ptrace needs first (EPERM), then finds no memory there (EFAULT).
 */
static int access_errno(pid_t pid)
{
	char byte;
	struct iovec local = {&byte, 1};
	struct iovec remote = {NULL, 1};

	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) >= 0 || errno == EFAULT)
		return 0;
	return errno;
}

static struct mw_error *judge_header(const unsigned char *header, const char *what)
{
	uint16_t machine = (uint16_t)(header[EI_NIDENT + 2] | header[EI_NIDENT + 3] << 8);
	struct mw_error *err;

	if (memcmp(header, ELFMAG, SELFMAG) != 0)
		return NULL;
	if (header[EI_CLASS] != ELFCLASS64) {
		err = mw_error_create(MW_ERROR_UNSUPPORTED, 0, "%s is a 32-bit program", what);
		return mw_error_hint(err, "memwatch watches 64-bit programs only: use a 64-bit build of it");
	}
	if (header[EI_DATA] != ELFDATA2LSB || machine != mw_target_machine()) {
		err = mw_error_create(MW_ERROR_UNSUPPORTED, 0, "%s is built for another architecture (ELF machine %u)",
				      what, (unsigned)machine);
		return mw_error_hint(err, "memwatch watches programs for x86-64 only");
	}
	return NULL;
}

static struct mw_error *check_program(const char *path, const char *what)
{
	unsigned char header[EI_NIDENT + 4]; /* up to e_machine, which stands at one place in both classes */
	MW_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	/* No right to read it: the engine looks again once it is attached. */
	if (fd < 0 || pread(fd, header, sizeof(header), 0) != (ssize_t)sizeof(header))
		return NULL;
	return judge_header(header, what);
}

struct mw_error *mw_preflight_program(const char *path)
{
	const struct mw_maps none = {0};
	MW_FREE char *real = NULL;
	char what[300];

	snprintf(what, sizeof(what), "'%.280s'", path);
	MW_TRY(check_program(path, what));
	real = realpath(path, NULL);
	return refuse(mw_emulator_of(real ? real : path, &none), "the command");
}

struct mw_error *mw_preflight_proc(void)
{
	char self[16];
	ssize_t length = readlink("/proc/self", self, sizeof(self) - 1);
	struct mw_error *err;

	self[length > 0 ? length : 0] = '\0';
	if (length <= 0) {
		err = mw_error_create(MW_ERROR_UNSUPPORTED, 0, "/proc is not mounted, and memwatch needs it");
		return mw_error_hint(err, "Mount it, as root: mount -t proc proc /proc");
	}
	if (strtol(self, NULL, 10) == getpid())
		return NULL;
	err = mw_error_create(MW_ERROR_UNSUPPORTED, 0, "/proc is of another pid namespace than memwatch's");
	return mw_error_hint(err, "Mount the one of this namespace, as root: mount -t proc proc /proc");
}

struct mw_error *mw_preflight(pid_t pid)
{
	struct mw_status status;
	char what[64];
	int errnum;

	MW_TRY(mw_preflight_proc());
	MW_TRY(check_status(pid, &status));
	/* It may let go, and come again, between one look and the next. */
	for (unsigned i = 0; status.tracer && i < LOOKS; i++) {
		(void)mw_preflight_await_guard(pid);
		MW_TRY(check_status(pid, &status));
	}
	MW_TRY(check_alive(pid, &status));
	if (status.tracer)
		return refuse_traced(pid, &status);
	errnum = access_errno(pid);
	/* ENOSYS and the like say nothing of the target: the attach itself will tell. */
	if (errnum == EPERM || errnum == EACCES)
		return mw_preflight_explain_denied(pid, errnum);
	snprintf(what, sizeof(what), "process %d (%s)", (int)pid, status.name);
	MW_TRY(check_program(mw_path("/proc/%d/exe", (int)mw_live_thread(pid)).text, what));
	return check_emulated(pid, what);
}

struct mw_error *mw_preflight_heap(pid_t pid)
{
	const struct mw_path path = mw_path("/proc/%d/mem", (int)mw_live_thread(pid));
	MW_CLOSE int fd = open(path.text, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 || errno != EACCES)
		return NULL;
	return mw_error_hint(mw_error_create(MW_ERROR_DENIED, EACCES,
					     "the heap of process %d can't be looked at: %s can't be opened", (int)pid,
					     path.text),
			     "It is the file of the process's user: run memwatch as root or as that user, or give it "
			     "CAP_DAC_READ_SEARCH as well as CAP_SYS_PTRACE");
}

struct mw_error *mw_preflight_rival(pid_t pid)
{
	const pid_t rival = traced_by(pid, NAME);
	struct mw_status status;

	if (!rival)
		return NULL;
	MW_TRY(check_status(pid, &status));
	status.tracer = rival;
	return refuse_traced(pid, &status);
}

/*
 * Which of the kernel's many reasons to deny a ptrace was it? It says EPERM to all of them. The order here is its own
 * (kernel/ptrace.c, __ptrace_may_access, then the security modules), but for what no user can overrule, said first.
 */

static bool read_text(const char *path, char *out, size_t size)
{
	return mw_error_none(mw_proc_file_read_small(out, size, NULL, "%s", path));
}

/* The link is exact but needs the permission that is in question; the id map is open to all. */
static bool other_user_namespace(pid_t pid)
{
	char ours[4096], theirs[4096];
	struct stat our_stat, their_stat;

	if (stat("/proc/self/ns/user", &our_stat) == 0 &&
	    stat(mw_path("/proc/%d/ns/user", (int)pid).text, &their_stat) == 0)
		return our_stat.st_ino != their_stat.st_ino;
	return read_text("/proc/self/uid_map", ours, sizeof(ours)) &&
	       read_text(mw_path("/proc/%d/uid_map", (int)pid).text, theirs, sizeof(theirs)) &&
	       strcmp(ours, theirs) != 0;
}

static bool in_container(void)
{
	static const char *const marks[] = {"/.dockerenv", "/run/.containerenv", "/run/systemd/container"};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (access(marks[i], F_OK) == 0)
			return true;
	return false;
}

/* The profile that AppArmor holds memwatch to ("docker-default (enforce)"), or NULL. */
static const char *confinement(void)
{
	static char profile[256];

	if (!read_text("/proc/self/attr/current", profile, sizeof(profile)))
		return NULL;
	profile[strcspn(profile, "\n")] = '\0';
	return strstr(profile, "(enforce)") ? profile : NULL;
}

/* What can't be read stays at zero. `confinement` points into static memory. */
static void read_denied_facts(pid_t pid, int errnum, struct mw_denied_facts *out)
{
	struct mw_status ours = {.uid = 0}, theirs = {.uid = 0};
	struct stat file;

	mw_error_destroy(mw_status_read(getpid(), &ours));
	mw_error_destroy(mw_status_read(pid, &theirs));
	*out = (struct mw_denied_facts){.pid = pid,
					.errnum = errnum,
					.our_uid = getuid(),
					.our_ptrace_capability = ours.capabilities >> CAP_SYS_PTRACE & 1,
					.our_seccomp = ours.seccomp > 0,
					.our_permitted = ours.permitted,
					.container = in_container(),
					.confinement = confinement(),
					.uids = {theirs.uid, theirs.euid, theirs.suid},
					.their_permitted = theirs.permitted,
					.other_user_namespace = other_user_namespace(pid),
					.ptrace_scope = mw_ptrace_scope(),
					.descendant = comes_of(pid, getpid())};
	mw_comm_read(pid, pid, out->name);
	for (int i = 0; i < 3; i++)
		out->groups_differ |= theirs.gids[i] != getgid();
	/* The kernel gives the files (not the directory) of what may not be dumped to root. */
	if (stat(mw_path("/proc/%d/status", (int)pid).text, &file) == 0)
		out->protected = file.st_uid != theirs.euid;
}

/* "name (uid)" */
static const char *user_name(uid_t uid, char *out, size_t size)
{
	struct passwd *entry = getpwuid(uid);

	if (entry)
		snprintf(out, size, "%s (uid %u)", entry->pw_name, (unsigned)uid);
	else
		snprintf(out, size, "uid %u", (unsigned)uid);
	return out;
}

static struct mw_error *denied(const struct mw_denied_facts *facts, const char *why)
{
	return mw_error_create(MW_ERROR_DENIED, 0, "not permitted to watch process %d (%s): %s", (int)facts->pid,
			       facts->name, why);
}

/* "Run as root" means nothing to root, and not enough to a container's users. */
static struct mw_error *hint_capability(const struct mw_denied_facts *facts, struct mw_error *err)
{
	if (facts->our_uid == 0)
		return mw_error_hint(err,
				     "Give memwatch CAP_SYS_PTRACE: start its container with --cap-add=SYS_PTRACE, "
				     "or run memwatch outside of it");
	if (facts->container)
		return mw_error_hint(err, "Run memwatch as root, in a container that was started with "
					  "--cap-add=SYS_PTRACE, or outside of it (sudo memwatch ...)");
	return mw_error_hint(err, "Run memwatch as root (sudo memwatch ...) or give it CAP_SYS_PTRACE");
}

static struct mw_error *explain_user(const struct mw_denied_facts *facts)
{
	char theirs[128], ours[128];
	char why[400];
	uid_t other = facts->uids[0];

	for (int i = 1; i < 3 && other == facts->our_uid; i++)
		other = facts->uids[i];
	if (other != facts->our_uid)
		snprintf(why, sizeof(why), "it belongs to %s, memwatch runs as %s and has no CAP_SYS_PTRACE",
			 user_name(other, theirs, sizeof(theirs)), user_name(facts->our_uid, ours, sizeof(ours)));
	else
		snprintf(why, sizeof(why), "its group ids are not those of memwatch, which has no CAP_SYS_PTRACE");
	return hint_capability(facts, denied(facts, why));
}

static struct mw_error *explain_yama(const struct mw_denied_facts *facts)
{
	struct mw_error *err;

	if (facts->ptrace_scope >= 3) {
		err = denied(facts, "kernel.yama.ptrace_scope is 3: nobody may trace, not even root");
		return mw_error_hint(
			err, "It can't be lowered while the system runs: change it in /etc/sysctl.d and reboot");
	}
	if (facts->ptrace_scope == 2) {
		err = denied(facts, "kernel.yama.ptrace_scope is 2: only CAP_SYS_PTRACE may trace");
		return hint_capability(facts, err);
	}
	err = denied(facts, "kernel.yama.ptrace_scope is 1: a process may trace its own children only");
	return mw_error_hint(err,
			     "Run memwatch as root (sudo memwatch ...), or allow it until the next boot with "
			     "'sysctl kernel.yama.ptrace_scope=0', or launch the program with 'memwatch -- COMMAND'");
}

static struct mw_error *explain_protected(const struct mw_denied_facts *facts)
{
	struct mw_error *err = denied(facts, "it is protected from being looked at: it was set-user-id or has file "
					     "capabilities, or has called prctl(PR_SET_DUMPABLE, 0)");

	return hint_capability(facts, err);
}

/* What no credential explains: a filter or a security module. */
static struct mw_error *explain_confinement(const struct mw_denied_facts *facts)
{
	char why[400];

	if (facts->confinement) {
		snprintf(why, sizeof(why), "the security profile %s that memwatch runs under forbids it",
			 facts->confinement);
		return mw_error_hint(denied(facts, why), "Run memwatch outside of that profile (docker: --security-opt "
							 "apparmor=unconfined)");
	}
	if (facts->our_seccomp) {
		struct mw_error *err = denied(facts, "memwatch runs under a seccomp filter that forbids ptrace");

		return mw_error_hint(err,
				     "Start its container with --cap-add=SYS_PTRACE, which lets ptrace through the "
				     "filter of docker and podman, or with --security-opt seccomp=unconfined; or run "
				     "memwatch outside of it");
	}
	snprintf(why, sizeof(why),
		 "%s; a security module (SELinux, AppArmor, ...) or a tracer that can't be seen from "
		 "here stands in the way",
		 strerror(facts->errnum));
	return mw_error_hint(denied(facts, why),
			     "The kernel's log (dmesg, journalctl -k) or the audit log may say which");
}

struct mw_error *mw_denied_error(const struct mw_denied_facts *facts)
{
	bool same_user = facts->uids[0] == facts->our_uid && facts->uids[1] == facts->our_uid &&
			 facts->uids[2] == facts->our_uid && !facts->groups_differ;
	struct mw_error *err;

	if (facts->ptrace_scope >= 3)
		return explain_yama(facts);
	if (facts->our_ptrace_capability && !facts->other_user_namespace)
		return explain_confinement(facts);
	if (facts->other_user_namespace) {
		err = denied(facts, "it lives in another user namespace, in which memwatch has no CAP_SYS_PTRACE");
		return mw_error_hint(err, "Run memwatch as root on the host, or inside that namespace");
	}
	if (!same_user)
		return explain_user(facts);
	if (facts->protected)
		return explain_protected(facts);
	if (facts->their_permitted & ~facts->our_permitted) {
		err = denied(facts, "it has capabilities that memwatch has not");
		return hint_capability(facts, err);
	}
	if (facts->ptrace_scope == 2 || (facts->ptrace_scope == 1 && !facts->descendant))
		return explain_yama(facts);
	return explain_confinement(facts);
}

/* The process of a thread, and who traces the thread: 0 where that is nobody, or the caller. */
static pid_t process_of(pid_t tid, pid_t *tracer)
{
	struct mw_status status;
	struct mw_error *err = mw_status_read(tid, &status);

	*tracer = 0;
	if (err) {
		mw_error_destroy(err);
		return tid;
	}
	if (status.tracer != gettid())
		*tracer = status.tracer;
	return status.tgid;
}

struct mw_error *mw_preflight_explain_denied(pid_t tid, int errnum)
{
	struct mw_status status;
	struct mw_denied_facts facts;
	pid_t tracer;
	/* Whoever attaches asks for one thread after the other; what denies one denies the process. */
	pid_t pid = process_of(tid, &tracer);

	MW_TRY(check_status(pid, &status));
	MW_TRY(check_alive(pid, &status));
	/* The first thread may be the caller's already, or nobody's, where another is traced. */
	if (!tracer && status.tracer != gettid())
		tracer = status.tracer;
	if (tracer) {
		status.tracer = tracer;
		return refuse_traced(pid, &status);
	}
	read_denied_facts(pid, errnum, &facts);
	return mw_denied_error(&facts);
}

bool mw_preflight_may_suspend_seccomp(void)
{
	struct mw_status own;

	return mw_error_none(mw_status_read(getpid(), &own)) && own.seccomp <= 0 &&
	       own.capabilities >> CAP_SYS_ADMIN & 1;
}
