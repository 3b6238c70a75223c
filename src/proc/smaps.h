/* SPDX-License-Identifier: MIT */
/* smaps.h: how much of each mapping is in memory, from /proc/PID/smaps. */
#ifndef MW_PROC_SMAPS_H
#define MW_PROC_SMAPS_H

#include <memwatch/error.h>
#include <memwatch/types.h>

#include <sys/types.h>

/* VmFlags */
#define MW_VM_DEVICE  1u /* io, pf: memory of a device, or without pages of its own */
#define MW_VM_CLEARED 2u /* wf: empty in a forked child (MADV_WIPEONFORK) */

struct mw_smap {
	mw_addr start, end;
	uint64_t resident;  /* Rss, and huge pages of hugetlbfs, which the kernel does not count in that */
	uint64_t swapped;   /* Swap */
	uint64_t anonymous; /* of resident: pages of no file */
	uint64_t huge;      /* AnonHugePages */
	unsigned flags;
};

/* In address order. Zero-initialise; mw_smaps_deinit frees. */
struct mw_smaps {
	struct mw_smap *items;
	size_t count;
};

/*
 * Read those of a process. Its memory is locked meanwhile for who maps and unmaps, some 15 ms a GiB: not for one that
 * runs, where that can be helped. Errors: GONE, DENIED, DATA, MEMORY.
 */
struct mw_error *mw_smaps_read(pid_t pid, struct mw_smaps *out) MW_MUST_CHECK;
/* The same from text that ends in NUL (for tests and fuzzing). Errors: MEMORY. */
struct mw_error *mw_smaps_parse(const char *text, struct mw_smaps *out) MW_MUST_CHECK;
void mw_smaps_deinit(struct mw_smaps *smaps);
/* The one that holds `addr`, or NULL. */
const struct mw_smap *mw_smaps_find(const struct mw_smaps *smaps, mw_addr addr);

#endif
