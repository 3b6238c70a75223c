/* SPDX-License-Identifier: MIT */
/* pages.h: which pages of a process are in memory or in swap, from /proc/PID/pagemap. */
#ifndef MW_HEAP_PAGES_H
#define MW_HEAP_PAGES_H

#include "heap/image.h"

#include <memwatch/error.h>

struct mw_pages {
	int fd;            /* of pagemap; -1: it can't be read */
	bool scans;        /* by the ioctl PAGEMAP_SCAN (Linux 6.7), which tells pages of zeros from others */
	bool guards;       /* … and guard pages (Linux 6.16) */
	bool brief;        /* the process runs: its memory is not to be locked for long at a time */
	uint64_t zero_pfn; /* else the page of zeros is known by its frame, if that may be known; 0: not */
};

/* What a range was found to have, in bytes. */
struct mw_pages_sum {
	uint64_t resident, swapped;
	uint64_t huge; /* of resident, in huge pages; 0 where `scans` is not */
	uint64_t zero; /* pages of zeros: in no run, as the kernel counts them nowhere */
};

/* Runs that are being gathered, by address. */
struct mw_page_runs {
	struct mw_image_run *items;
	size_t count, capacity;
};

/* `scans` false: do without the ioctl, as on an older kernel. */
void mw_pages_open(struct mw_pages *pages, pid_t pid, bool scans);
void mw_pages_close(struct mw_pages *pages);
/*
 * Add the runs of [start, end), of one mapping, behind those that are there, and add up. No more is looked for once
 * `most` bytes are found (UINT64_MAX: all). False: it can't be known, and nothing is added. *err: MEMORY.
 */
bool mw_pages_read(struct mw_pages *pages, mw_addr start, mw_addr end, uint64_t most, struct mw_page_runs *runs,
		   struct mw_pages_sum *sum, struct mw_error **err);
/* Where it can't be known: all of it may be there. Errors: MEMORY. */
struct mw_error *mw_pages_assume(mw_addr start, mw_addr end, struct mw_page_runs *runs) MW_MUST_CHECK;

#endif
