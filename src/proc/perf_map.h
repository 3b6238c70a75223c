/* SPDX-License-Identifier: MIT */
/*
 * perf_map.h: the names that a program gives code in no file: /tmp/perf-PID.map, as perf reads it.
 *
 * A line is "START SIZE name", numbers in hexadecimal. A JIT appends to it as it makes code, so where two lines claim
 * an address the later one counts. The file is the target's own word: it is read only where it is a plain file that
 * belongs to the target's user or to root, never waited for, and no more than its last 64 MiB.
 */
#ifndef MW_PROC_PERF_MAP_H
#define MW_PROC_PERF_MAP_H

#include <memwatch/error.h>
#include <memwatch/types.h>

#include <sys/types.h>

/* Where a process's map will be. Zero-initialise. To be taken while it lives: what it has named is read when it may
 * have ended. */
struct mw_perf_place {
	bool known;
	int root;  /* descriptor of its root directory */
	pid_t pid; /* in its innermost namespace */
	uid_t uid, euid;
	int64_t started; /* its own start, s since 1970: what was written before is of another that had its number */
};

/* What can't be had is left unknown: there are no names then. */
void mw_perf_place_init(struct mw_perf_place *place, pid_t pid);
/* A zeroed place is fine. */
void mw_perf_place_deinit(struct mw_perf_place *place);

struct mw_perf_name {
	mw_addr start, end; /* where it counts */
	mw_addr from;       /* where the code begins, at or before `start` */
	const char *name;
};

/* In order of address, without overlaps. Zero-initialise; mw_perf_map_deinit frees. */
struct mw_perf_map {
	struct mw_perf_name *items;
	size_t count;
	char *text; /* the names are in it */
	bool cut;   /* the file has more than was read */
};

/* Is there one? It may be empty, or not to be trusted. */
bool mw_perf_map_exists(const struct mw_perf_place *place);
/* Read the map. Where there is none, or one from before the process, it is empty. Errors: DENIED where it is not to be
 * trusted, with the reason; SYSTEM, MEMORY. */
struct mw_error *mw_perf_map_read(const struct mw_perf_place *place, struct mw_perf_map *out) MW_MUST_CHECK;
/* From text (for tests and fuzzing): takes `text`, malloc'ed with a NUL behind its `size` bytes, also on failure. Lines
 * that make no sense are passed over. Errors: MEMORY. */
struct mw_error *mw_perf_map_parse(char *text, size_t size, struct mw_perf_map *out) MW_MUST_CHECK;
void mw_perf_map_deinit(struct mw_perf_map *map);
/* What `addr` is named, or NULL. */
const struct mw_perf_name *mw_perf_map_find(const struct mw_perf_map *map, mw_addr addr);

#endif
