// SPDX-License-Identifier: MIT
/*
 * preflight_denied.c: which of the kernel's many reasons to deny a ptrace it was.
 *
 * The kernel says EPERM to all of them. The order here is its own (kernel/ptrace.c,
 * __ptrace_may_access, then the security modules), but for what no user can overrule, said first.
 */
#include "tracee/preflight.h"

#include "proc/file.h"
#include "proc/status.h"

#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool read_text(const char *path, char *out, size_t size)
{
	size_t used;

	return mw_error_none(mw_proc_file_read_small(out, size, &used, "%s", path));
}

/* The link is exact but needs the permission that is in question; the id map is open to all. */
static bool other_user_namespace(pid_t pid)
{
	char path[48];
	char ours[4096], theirs[4096];
	struct stat our_stat, their_stat;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	if (stat("/proc/self/ns/user", &our_stat) == 0 && stat(path, &their_stat) == 0)
		return our_stat.st_ino != their_stat.st_ino;
	snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	return read_text("/proc/self/uid_map", ours, sizeof(ours)) && read_text(path, theirs, sizeof(theirs)) &&
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

static bool is_descendant(pid_t pid)
{
	struct mw_status status;

	/* Bounded, as processes come and go while the chain is climbed. */
	for (int depth = 0; depth < 256 && pid > 1 && mw_error_none(mw_status_read(pid, &status)); depth++) {
		if (status.ppid == getpid())
			return true;
		pid = status.ppid;
	}
	return false;
}

void mw_denied_facts_read(pid_t pid, int errnum, struct mw_denied_facts *out)
{
	struct mw_status ours = {.uid = 0}, theirs = {.uid = 0};
	struct stat file;
	char path[48];

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
					.descendant = is_descendant(pid)};
	mw_comm_read(pid, pid, out->name);
	for (int i = 0; i < 3; i++)
		out->groups_differ |= theirs.gids[i] != getgid();
	/* The kernel gives the files (not the directory) of what may not be dumped to root. */
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (stat(path, &file) == 0)
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
