/* SPDX-License-Identifier: MIT */
/* processes.h: processes by what they are called, by their cgroup, container or user: what /proc says, no daemon is asked. */
#ifndef MW_PROC_PROCESSES_H
#define MW_PROC_PROCESSES_H

#include <memwatch/error.h>
#include <memwatch/types.h>

#include <sys/types.h>

/* All that is given must hold. Strings are borrowed. */
struct mw_process_match {
	/*
	 * NULL: any. Without a slash the name of the process (comm), of its program's file, or what its first argument
	 * begins with (a title, as in "postgres: checkpointer"); with one, the program's path as the process sees it.
	 */
	const char *name;
	/* NULL: any. With a slash a path below /sys/fs/cgroup, with all below it; else a unit of systemd's ("nginx.service",
	 * "nginx"), or any other part of such a path. */
	const char *cgroup;
	/* NULL: any. An id, of which the beginning is enough, or the name of a container: as its cgroup has it, the name of
	 * its host, or what podman's monitor has started it by. */
	const char *container;
	bool by_user;
	uid_t user; /* effective */
};

/* Such processes, by number; not memwatch itself, no kernel threads, none that have ended. `*pids` is malloc'ed. Errors:
 * MEMORY, SYSTEM. */
struct mw_error *mw_processes_find(const struct mw_process_match *match, pid_t **pids, size_t *count) MW_MUST_CHECK;

/* --- its parts, pure ------------------------------------------------------------------------------------------------- */

/* Is a process in that cgroup? `lines`: /proc/PID/cgroup. */
bool mw_cgroup_matches(const char *lines, const char *wanted);

/* Is that a container's cgroup, by its id or the name that it has there? */
bool mw_container_matches(const char *lines, const char *wanted);

#endif
