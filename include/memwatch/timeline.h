/* SPDX-License-Identifier: MIT */
/*
 * timeline.h: all blocks of an interval, summed up by the bins of time in which they came and went: from it every
 * figure of every interval between two bins' edges can be had (src/output/html/FORMAT.md).
 */
#ifndef MEMWATCH_TIMELINE_H
#define MEMWATCH_TIMELINE_H

#include <memwatch/types.h>

#include <stdbool.h>
#include <stddef.h>

#define MW_TIMELINE_UNKNOWN UINT32_MAX
#define MW_TIMELINE_BINS    8192u /* at most */

/* Blocks that have key and bins in common. */
struct mw_timeline_row {
	uint32_t key[3];
	uint16_t born;     /* bin, plus 1; 0: before the interval */
	uint16_t died;     /* bin, plus 1; 0: not by the interval's end */
	uint64_t count;    /* a mapping that goes in pieces counts with the last */
	uint64_t bytes;    /* of those whose size is known */
	uint64_t unknown;  /* of count, those whose size is not known */
	uint64_t lived_ns; /* the lifetimes of those that died and whose birth is known */
};

/* Sorted by key, born and died; no two rows have them the same. Bin i is [i * bin_ns, (i + 1) * bin_ns) from the
 * interval's begin; the last may end later than the interval. */
struct mw_timeline_table {
	struct mw_timeline_row *rows;
	size_t count;
	uint64_t bin_ns;
	uint32_t bins;
};

/* Of one process. */
struct mw_timeline {
	uint64_t from_ns, to_ns; /* the interval, since the window's start */
	/* Keys: index of the report's stack; number of the thread plus 1, 0 for what is from before the window; number
	 * of the heap plus 1, or 0. */
	struct mw_timeline_table cells;
	/* Where there are too many threads and heaps for that (`coarse`), cells have thread number 1 or 0 and heap 0;
	 * the same blocks with their threads and heaps, in bins that are longer: 2^n of those of cells. No rows, and
	 * bins 0: they are not distinguished at all. */
	struct mw_timeline_table owners;
	/* Of all stacks together, without what is from before the window. Keys: class of the size of the whole block: 0
	 * for no bytes, else 1 + floor(4 * log2(size)); class of the lifetime: floor(4 * log2(ns)), 0 for 0,
	 * MW_TIMELINE_NO_LIFETIME where it did not end; enum mw_kind. Its bins may be longer
	 * than those of cells: 2^n of them. */
	struct mw_timeline_table lifetimes;
	uint32_t *threads; /* by number: index in the report's threads, or MW_TIMELINE_UNKNOWN */
	size_t thread_count;
	char **heaps; /* names by number */
	size_t heap_count;
	bool coarse;
};

#define MW_TIMELINE_NO_LIFETIME 255u

void mw_timeline_destroy(struct mw_timeline *timeline);

#endif
