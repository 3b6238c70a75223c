/* SPDX-License-Identifier: MIT */
/* memory_limit.h: how much memory a process may still take, by its cgroups and by the machine. */
#ifndef MW_PROC_MEMORY_LIMIT_H
#define MW_PROC_MEMORY_LIMIT_H

#include <memwatch/types.h>

#include <sys/types.h>

/* How many bytes the cgroups of a process leave free (memory.max less memory.current of it and of those around it; v1
 * too); UINT64_MAX where nothing limits it or it can't be known. */
uint64_t mw_cgroup_room(pid_t pid);

/*
 * The limit that a process which grows comes to first: of one of its cgroups, or of the machine. Of a cgroup `used` is
 * without the page cache that the kernel gives up at once (inactive_file), as Kubernetes counts it; of the machine it
 * is all but MemAvailable. MW_LIMIT_NONE: not known.
 */
void mw_memory_limit_read(pid_t pid, struct mw_memory_limit *out);

/* By the text of a /proc/PID/cgroup and a directory in the place of /sys/fs/cgroup: the cgroup that leaves least room,
 * with or without its inactive page cache as used. MW_LIMIT_NONE: none does. */
void mw_cgroup_limit_in(const char *root, const char *membership, bool with_cache, struct mw_memory_limit *out);
/* By the text of a /proc/meminfo. */
void mw_machine_limit_in(const char *meminfo, struct mw_memory_limit *out);

static inline uint64_t mw_memory_limit_room(const struct mw_memory_limit *limit)
{
	if (limit->of == MW_LIMIT_NONE)
		return UINT64_MAX;
	return limit->bytes > limit->used ? limit->bytes - limit->used : 0;
}

#endif
