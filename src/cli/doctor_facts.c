// SPDX-License-Identifier: MIT
/* doctor_facts.c: what /proc tells of a process (src/cli/doctor_facts.h). */
#include "cli/doctor_facts.h"

#include "cli/message.h"
#include "target/cage.h"
#include "target/preflight.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void mw_doctor_row(FILE *out, const char *name, const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	fprintf(out, "%-14s ", name);
	mw_cli_put_clean(out, text ? text : "");
	fputc('\n', out);
	free(text);
}

static const char *user_name(uid_t uid)
{
	struct passwd *entry = getpwuid(uid);

	return entry ? entry->pw_name : "?";
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
		return "in uninterruptible sleep: attaching waits for its end";
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

static void print_seccomp(FILE *out, pid_t pid)
{
	size_t caged, others;
	struct mw_error *err = mw_cage_count(pid, &caged, &others);

	if (err)
		mw_doctor_row(out, "seccomp", "unknown");
	else if (caged == 0)
		mw_doctor_row(out, "seccomp", "none");
	else if (!mw_preflight_may_suspend_seccomp())
		mw_doctor_row(out, "seccomp", "%zu of %zu threads are under it; memwatch can't know what it permits",
			      caged, caged + others);
	else
		mw_doctor_row(out, "seccomp",
			      "%zu of %zu threads are under it; memwatch looks at what it permits when it attaches, "
			      "before it changes anything",
			      caged, caged + others);
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
static void print_cgroup(FILE *out, pid_t pid)
{
	char path[48];
	char text[4096];
	char *line;
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		close(fd);
	if (length <= 0)
		return;
	text[length] = '\0';
	/* Version 2's line is "0::PATH", and the last one where version 1 is there too. */
	line = strstr(text, "0::");
	if (!line || (line != text && line[-1] != '\n'))
		return;
	line[strcspn(line, "\n")] = '\0';
	mw_doctor_row(out, "control group", "%s", line + 3);
}

static void print_tracer(FILE *out, const struct mw_status *status)
{
	char name[17];

	if (!status->tracer) {
		mw_doctor_row(out, "traced", "no");
		return;
	}
	mw_comm_read(status->tracer, status->tracer, name);
	mw_doctor_row(out, "traced", "by %s (pid %d)", name, (int)status->tracer);
}

void mw_doctor_facts(FILE *out, pid_t pid, const struct mw_status *status, const char *permission)
{
	char *exe = NULL;

	mw_error_destroy(mw_exe_read(pid, &exe));
	mw_doctor_row(out, "process", "%d (%s)", (int)pid, status->name);
	mw_doctor_row(out, "program", "%s", exe ? exe : "unknown");
	free(exe);
	mw_doctor_row(out, "user", "%s (%u); memwatch runs as %s (%u)", user_name(status->euid), (unsigned)status->euid,
		      user_name(geteuid()), (unsigned)geteuid());
	mw_doctor_row(out, "state", "%s", state_text(status->state));
	mw_doctor_row(out, "threads", "%zu", status->threads);
	print_tracer(out, status);
	mw_doctor_row(out, "permission", "%s", permission);
	if (access("/proc/sys/kernel/yama/ptrace_scope", F_OK) == 0)
		mw_doctor_row(out, "ptrace_scope", "%s", scope_text(mw_ptrace_scope()));
	else
		mw_doctor_row(out, "ptrace_scope", "this kernel has none");
	print_seccomp(out, pid);
	mw_doctor_row(out, "shadow stack", "%s", status->shadow_stack ? "yes" : "no");
	if (status->ns_pid && status->ns_pid != pid)
		mw_doctor_row(out, "pid inside", "%d, in its own pid namespace", (int)status->ns_pid);
	mw_doctor_row(out, "namespaces", "pid: %s, mount: %s, user: %s", namespace_text(pid, "pid"),
		      namespace_text(pid, "mnt"), namespace_text(pid, "user"));
	print_cgroup(out, pid);
}
