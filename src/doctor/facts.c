// SPDX-License-Identifier: MIT
/* facts.c: what /proc shows of a process (look.h). */
#include "doctor/look.h"

#include "base/cleanup.h"
#include "doctor/paragraph.h"
#include "output/line.h"
#include "proc/file.h"
#include "proc/program.h"
#include "proc/root.h"
#include "symbol/distribution.h"
#include "tracee/preflight.h"
#include "tracee/seccomp_policy.h"
#include "unwind/rows.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct rows {
	FILE *out;
	const struct mw_doctor *doctor;
};

#define COLUMN      15u /* where the second one begins */
#define UNDESCRIBED (UINT64_C(16) << 10)

/* "NAME   TEXT" as one row, in as many lines as it takes. */
static void MW_PRINTF(3, 4) row(const struct rows *rows, const char *name, const char *format, ...)
{
	struct mw_paragraph text;
	va_list args;

	fprintf(rows->out, "%-*s", (int)COLUMN, name);
	mw_paragraph_begin(&text, rows->out, rows->doctor->width, COLUMN, COLUMN);
	va_start(args, format);
	mw_paragraph_vprintf(&text, format, args);
	va_end(args);
	mw_paragraph_end(&text);
}

/* Into `out`: getpwuid()'s answer lasts until the next. */
static const char *user_name(uid_t uid, char out[64])
{
	const struct passwd *entry = getpwuid(uid);

	snprintf(out, 64, "%s", entry ? entry->pw_name : "?");
	return out;
}

static const char *state_text(char state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'S':
	case 'I':
		return "sleeping";
	case 'D':
		return "in uninterruptible sleep: the attach waits for it to end";
	case 'T':
		return "stopped by a signal";
	case 't':
		return "stopped by its tracer";
	case 'Z':
		return "zombie";
	default:
		return "ended";
	}
}

static const char *scope_text(int scope)
{
	switch (scope) {
	case 0:
		return "0: any process of the same user";
	case 1:
		return "1: own children only, but for CAP_SYS_PTRACE";
	case 2:
		return "2: CAP_SYS_PTRACE only";
	default:
		return "3: nobody";
	}
}

static void print_seccomp(const struct rows *rows, pid_t pid)
{
	size_t seccomp_filtered, others;
	struct mw_error *err = mw_seccomp_policy_count(pid, &seccomp_filtered, &others);

	if (err)
		row(rows, "seccomp", "unknown");
	else if (seccomp_filtered == 0)
		row(rows, "seccomp", "none");
	else if (mw_seccomp_shared(pid))
		row(rows, "seccomp",
		    "%zu of %zu threads are under it, by filters that apply to memwatch too: it tries what they permit",
		    seccomp_filtered, seccomp_filtered + others);
	else if (!mw_preflight_may_suspend_seccomp())
		row(rows, "seccomp", "%zu of %zu threads are under it; memwatch can't know what it permits",
		    seccomp_filtered, seccomp_filtered + others);
	else
		row(rows, "seccomp",
		    "%zu of %zu threads are under it; memwatch looks at what it permits when it attaches, "
		    "before it changes anything",
		    seccomp_filtered, seccomp_filtered + others);
	mw_error_destroy(err);
}

/* "same" or "other" than memwatch's own, or "unknown" without permission. */
static const char *namespace_text(pid_t pid, const char *kind)
{
	char ours[48];
	char theirs[48];
	struct stat our_stat;
	struct stat their_stat;

	snprintf(ours, sizeof(ours), "/proc/self/ns/%s", kind);
	snprintf(theirs, sizeof(theirs), "/proc/%d/ns/%s", (int)pid, kind);
	if (stat(ours, &our_stat) != 0 || stat(theirs, &their_stat) != 0)
		return "unknown";
	return our_stat.st_ino == their_stat.st_ino ? "same" : "other";
}

/* The control group, which names a container where there is one. */
static void print_cgroup(const struct rows *rows, pid_t pid)
{
	char text[4096], *line;
	size_t size;

	if (!mw_error_none(mw_proc_file_read_small(text, sizeof(text), &size, "/proc/%d/cgroup", (int)pid)))
		return;
	/* Version 2's line is "0::PATH", and the last one where version 1 is there too. */
	line = strstr(text, "0::");
	if (!line || (line != text && line[-1] != '\n'))
		return;
	line[strcspn(line, "\n")] = '\0';
	row(rows, "control group", "%s", line + 3);
}

static void print_tracer(const struct rows *rows, const struct mw_status *status)
{
	char name[17];

	if (!status->tracer) {
		row(rows, "traced", "no");
		return;
	}
	mw_comm_read(status->tracer, status->tracer, name);
	row(rows, "traced", "by %s (pid %d)", name, (int)status->tracer);
}

/* Has /proc something to say about the file of the program? */
static const char *exe_note(pid_t pid)
{
	static const char mark[] = " (deleted)";
	MW_FREE char *link = NULL;
	char path[32];
	size_t length;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	mw_error_destroy(mw_proc_link_read(&link, path));
	length = link ? strlen(link) : 0;
	if (length >= sizeof(mark) && strcmp(link + length - strlen(mark), mark) == 0)
		return ", deleted or replaced since it was started";
	return "";
}

/* What a security module holds it to; nothing where there is none, or where that is nothing. */
static void print_label(const struct rows *rows, const char *name, const char *process)
{
	char text[256];
	size_t size;

	if (!mw_error_none(mw_proc_file_read_small(text, sizeof(text), &size, "/proc/%s/attr/current", process)))
		return;
	text[strcspn(text, "\n")] = '\0';
	if (*text && strcmp(text, "unconfined") != 0)
		row(rows, name, "%s (%s)", text,
		    access("/sys/fs/selinux/enforce", F_OK) == 0 ? "SELinux" : "AppArmor or another");
}

static bool same_file(const char *one, const char *other)
{
	struct stat first, second;

	return stat(one, &first) == 0 && stat(other, &second) == 0 && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

/* A container's root directory, or a chroot's. */
static void print_root(const struct rows *rows, pid_t pid)
{
	MW_CLOSE int root = mw_root_directory(pid);
	char name[MW_DISTRIBUTION_NAME_MAX], path[32];

	snprintf(path, sizeof(path), "/proc/%d/root/.", (int)pid);
	if (root < 0 || same_file(path, "/."))
		return;
	(void)mw_distribution_find(root, name);
	row(rows, "root", "a directory of its own%s%s%s", *name ? " (" : "", name, *name ? ")" : "");
}

static void print_scope(const struct rows *rows)
{
	int scope = mw_ptrace_scope();

	if (access("/proc/sys/kernel/yama/ptrace_scope", F_OK) == 0)
		row(rows, "ptrace_scope", "%s%s", scope_text(scope),
		    scope == 1 || scope == 2 ? "; root may lower it: sysctl kernel.yama.ptrace_scope=0" : "");
	else
		row(rows, "ptrace_scope", "this kernel has none");
}

static void print_engine(const struct rows *rows)
{
	const struct mw_doctor *doctor = rows->doctor;
	const struct mw_session_options *options = doctor->options;
	const struct mw_error *verdict = doctor->jump.verdict;

	if (doctor->lacking)
		row(rows, "engine", "none: there is nothing to hook, or it can't be looked at");
	else if (strcmp(options->engine, "auto") != 0)
		row(rows, "engine", "%s (%s)", options->engine, options->engine_reason);
	else if (verdict && doctor->no_trap)
		row(rows, "engine", "trap, but only with --unsafe (auto: %s)", mw_error_text(verdict));
	else if (verdict)
		row(rows, "engine", "trap (auto: %s)", mw_error_text(verdict));
	else
		row(rows, "engine", "jump (auto: nothing stands in its way%s)",
		    doctor->seccomp_filtered ? ", if its seccomp filters permit it" : "");
}

/* Or NULL. */
static const struct mw_module *find_program(const struct mw_doctor *doctor, const char *exe)
{
	for (uint32_t i = 0; exe && i < mw_modules_count(doctor->modules); i++) {
		const struct mw_module *module = mw_modules_get(doctor->modules, i);

		if (!module->gone && strcmp(module->path, exe) == 0)
			return module;
	}
	return NULL;
}

/* Much of a file's code, and more than what linkers put between functions. */
static bool is_much(uint64_t undescribed, uint64_t code)
{
	return undescribed >= UNDESCRIBED && undescribed >= code / 4;
}

static void print_undescribed(const struct rows *rows)
{
	const struct mw_doctor *doctor = rows->doctor;

	for (uint32_t i = 0; i < mw_modules_count(doctor->modules); i++) {
		const struct mw_module *module = mw_modules_get(doctor->modules, i);
		const char *slash = strrchr(module->path, '/');
		uint64_t code, undescribed;

		if (module->gone || !module->elf)
			continue;
		if (mw_error_none(mw_rows_undescribed(module->elf, &code, &undescribed)) && is_much(undescribed, code))
			row(rows, "unwinding",
			    "%s has %s of code without unwind information: stacks that pass through it may end there",
			    slash ? slash + 1 : module->path, mw_show_size(undescribed).text);
	}
}

static void print_inside(const struct rows *rows, const char *exe)
{
	const struct mw_doctor *doctor = rows->doctor;
	const struct mw_module *program = find_program(doctor, exe);

	if (program && program->elf)
		row(rows, "linked", "%s", program->elf->is_static ? "statically" : "with shared libraries");
	if (program && program->elf && mw_elf_is_go(program->elf))
		row(rows, "runtime",
		    "Go: its own heap is not seen, only what C code (cgo) allocates; for Go's "
		    "use " MW_ALLOC_GO_PROFILE);
	if (doctor->jump.stale.found)
		row(rows, "left behind",
		    "by a killed memwatch: %zu functions still jump to its recorder, which is inactive",
		    doctor->jump.stale.functions);
	print_engine(rows);
	print_undescribed(rows);
}

void mw_doctor_facts(FILE *out, const struct mw_doctor *doctor)
{
	const struct rows all = {out, doctor}, *rows = &all;
	const struct mw_status *status = &doctor->status;
	pid_t pid = doctor->pid, live = doctor->live;
	char theirs[64], ours[64], number[16];
	MW_FREE char *exe = NULL;

	mw_error_destroy(mw_exe_read(live, &exe));
	row(rows, "program", "%s%s", exe ? exe : "unknown", exe ? exe_note(live) : "");
	row(rows, "user", "%s (%u); memwatch runs as %s (%u)", user_name(status->euid, theirs), (unsigned)status->euid,
	    user_name(geteuid(), ours), (unsigned)geteuid());
	row(rows, "state", "%s; %zu thread%s", live == pid ? state_text(status->state) : "its first thread has ended",
	    status->threads, status->threads == 1 ? "" : "s");
	print_tracer(rows, status);
	print_scope(rows);
	print_seccomp(rows, pid);
	if (status->no_new_privileges)
		row(rows, "no_new_privs", "set: it gains no privileges by exec, which does not affect memwatch");
	snprintf(number, sizeof(number), "%d", (int)pid);
	print_label(rows, "security", number);
	print_label(rows, "of memwatch", "self");
	row(rows, "shadow stack", "%s", status->shadow_stack ? "yes" : "no");
	if (status->ns_pid && status->ns_pid != pid)
		row(rows, "pid inside", "%d, in its own pid namespace", (int)status->ns_pid);
	row(rows, "namespaces", "pid: %s, mount: %s, user: %s", namespace_text(live, "pid"),
	    namespace_text(live, "mnt"), namespace_text(live, "user"));
	print_root(rows, live);
	print_cgroup(rows, pid);
	if (mw_doctor_has_inside(doctor))
		print_inside(rows, exe);
}
