/* SPDX-License-Identifier: MIT */
/* maps.h: a process's mappings, from /proc/TID/maps. */
#ifndef MW_PROC_MAPS_H
#define MW_PROC_MAPS_H

#include <memwatch/error.h>
#include <memwatch/types.h>

#include <sys/types.h>

struct mw_mapping {
	mw_addr start, end;
	uint64_t offset; /* in the file */
	uint64_t inode;  /* 0: no file */
	uint32_t major, minor;
	bool read, write, exec, shared;
	bool deleted; /* the file's name is gone (" (deleted)" is cut off `path`) */
	char *path;   /* "" for anonymous memory, "[heap]", "[vdso]", "[stack]" as the kernel has it */
};

/* Mappings in address order. Zero-initialise; mw_maps_deinit frees. */
struct mw_maps {
	struct mw_mapping *items;
	size_t count;
};

/* Read the mappings of a process or thread (any live thread's id will do, also where the leader is
 * a zombie). Errors: GONE where there is no such process, DENIED, DATA on a line that is invalid. */
struct mw_error *mw_maps_read(pid_t tid, struct mw_maps *out) MW_MUST_CHECK;
/* The same from text (for tests and fuzzing); `text` need not end in NUL. `torn`: it may have been read while the
 * process ran; what overlaps what stands before it is cut, not refused. */
struct mw_error *mw_maps_parse(const char *text, size_t size, bool torn, struct mw_maps *out) MW_MUST_CHECK;
void mw_maps_deinit(struct mw_maps *maps);
/* The mapping that holds `addr`, or NULL. */
const struct mw_mapping *mw_maps_find(const struct mw_maps *maps, mw_addr addr);

#endif
