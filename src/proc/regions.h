/* SPDX-License-Identifier: MIT */
/*
 * regions.h: what an address space is made of: its mappings, what each is for, and how much of it is resident.
 *
 * The process may run meanwhile: what is read is true of each mapping at some moment during the call. In this order:
 * read, mark, measure. A process may have 65,000 mappings and more: each step takes time linear in them.
 */
#ifndef MW_PROC_REGIONS_H
#define MW_PROC_REGIONS_H

#include <memwatch/error.h>
#include <memwatch/types.h>

#include <sys/types.h>

struct mw_region {
	mw_addr start, end;
	enum mw_region_kind kind;
	bool read, write, exec;
	uint64_t resident;        /* bytes; MW_SIZE_UNKNOWN until measured, and where it can't be */
	char *path;               /* as in mw_mapping, or a mark's; "" for none */
	uint64_t committed, used; /* the mark's, which stand at the first region of it; 0: not known */
};

/* In address order. Zero-initialise; mw_regions_deinit frees. */
struct mw_regions {
	struct mw_region *items;
	size_t count;
};

/* What is known better of some addresses. */
struct mw_region_mark {
	mw_addr start, end;
	enum mw_region_kind kind; /* MW_REGION_KIND_COUNT: leave the kind, only make them regions of their own */
	const char *path;         /* NULL: leave it */
	uint64_t committed, used; /* what a runtime says of it; 0: nothing */
};

/*
 * The mappings of a process by way of one of its threads that lives, with their kinds: no arenas yet. Those of stacks
 * are known from the threads' stack pointers; a thread that runs has none to be read, and its stack is known from what
 * its C library keeps in it. Errors: GONE, DENIED, DATA, MEMORY.
 */
struct mw_error *mw_regions_read(pid_t tid, struct mw_regions *out) MW_MUST_CHECK;
void mw_regions_deinit(struct mw_regions *regions);

/*
 * Split regions where marks begin and end, and give what they cover their kind. A mark of a kind is for anonymous
 * memory alone; MW_REGION_OWN is for all, and MW_REGION_ANONYMOUS for shared memory as well. `marks` is put in order and
 * used up; where two overlap the one that begins later has what is left. Errors: MEMORY, with the regions as they were.
 */
struct mw_error *mw_regions_mark(struct mw_regions *regions, struct mw_region_mark *marks, size_t count) MW_MUST_CHECK;

/* See how much is resident: pages that are in memory, whoever shares them. What can't be read stays unknown. */
void mw_regions_measure(struct mw_regions *regions, pid_t tid);

/* From a mapping alone, as the kernel names it. */
struct mw_mapping;
enum mw_region_kind mw_region_kind_of(const struct mw_mapping *mapping);
/* The regions of mappings whose paths they take (they become NULL), with the stacks of this process; 0: without (for
 * tests and fuzzing). Errors: MEMORY. */
struct mw_maps;
struct mw_error *mw_regions_of(struct mw_maps *maps, pid_t tid, struct mw_regions *out) MW_MUST_CHECK;

#endif
