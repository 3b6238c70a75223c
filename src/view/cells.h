/* SPDX-License-Identifier: MIT */
/*
 * cells.h: the blocks of an interval summed up by the finest key that is asked for.
 *
 * Fed with the fates of blocks as the tracker tells them, kept by distinct keys: memory does not grow with events. Not
 * thread-safe. Fates come quicker than memory: some wait for their cell, so that it is there when it is looked at.
 */
#ifndef MW_VIEW_CELLS_H
#define MW_VIEW_CELLS_H

#include "track/histogram.h"
#include "track/track.h"

#include <memwatch/table.h>

/* Which heap of the allocator a block lies in: a number from 1, 0 for unknown. */
typedef uint32_t mw_cells_heap_of(void *context, mw_addr addr, uint64_t bytes, enum mw_kind kind, bool pymalloc);

/* Whose lifetimes are kept. A histogram for each cell is dear; mostly fewer say the same. */
enum mw_cells_lifetimes {
	MW_LIFETIMES_NONE,
	MW_LIFETIMES_OF_STACKS, /* only stacks are distinguished: the tracker has them (mw_cells_end()) */
	MW_LIFETIMES_OF_ALL, /* stacks are not distinguished: of all cells that differ in nothing else, the first has them
			      */
	MW_LIFETIMES_OF_CELLS,
};

/* What is not asked for is not distinguished: 0 bytes, thread UINT32_MAX, heap 0. */
struct mw_cells_options {
	bool threads, sizes, heaps;        /* tell them apart */
	enum mw_cells_lifetimes lifetimes; /* of the transient blocks */
	mw_cells_heap_of *heap_of;         /* NULL: all unknown */
	void *heap_context;
};

struct mw_cell {
	uint64_t bytes; /* that each block was asked for; MW_SIZE_UNKNOWN: unknown */
	uint32_t stack; /* the tracker's; may be MW_STACK_NONE */
	uint32_t thread, heap;
	uint8_t kind, fate; /* enum mw_kind, enum mw_fate */
	bool has_lifetimes; /* mw_cells_lifetimes() */
	struct mw_amount amount;
	struct mw_spread spread; /* of it, where blocks are sampled */
	uint64_t unknown;        /* of amount.count, those of unknown size */
	double lived_ns;         /* how long its blocks lived, together, until mw_cells_until() */
	uint32_t lifetimes;      /* a number of those kept, plus one; 0: none */
};

struct mw_cells;

struct mw_error *mw_cells_create(const struct mw_cells_options *options, struct mw_cells **out) MW_MUST_CHECK;
void mw_cells_destroy(struct mw_cells *cells);

/* Take the fate of a block, from when the interval begins: `cells` is a struct mw_cells *, to fit
 * mw_track_each_survivor(). False without memory: nothing more is taken then, and mw_cells_end() says so. */
bool mw_cells_take(void *cells, const struct mw_track_fate *fate);
/* The interval ended then: so long lived the blocks that are taken from now on, which are the survivors. */
void mw_cells_until(struct mw_cells *cells, uint64_t end_ns);
/* No more fates come. Only now cells may be asked for; of the tracker, which may be NULL, they borrow lifetimes.
 * `heap_of`: for each number that options.heap_of gave out, which heap it is in truth; cells may have the same key then.
 * NULL: that one. Errors: MEMORY where a fate could not be taken. */
struct mw_error *mw_cells_end(struct mw_cells *cells, const struct mw_track *track,
			      const uint32_t *heap_of) MW_MUST_CHECK;
/* All cells, in the order in which their first blocks came. Errors: MEMORY where a fate could not be taken. */
struct mw_error *mw_cells_list(const struct mw_cells *cells, const struct mw_cell **items, size_t *count) MW_MUST_CHECK;
/* How long the blocks of a cell lived; NULL where none is known, or another cell has them. */
const struct mw_histogram *mw_cells_lifetimes(const struct mw_cells *cells, const struct mw_cell *cell);

/* What became of a block, and how long it lived: MW_TIME_UNKNOWN where that can't be known. */
static inline enum mw_fate mw_fate_of(const struct mw_track_fate *fate)
{
	bool freed = fate->died_ns != MW_TIME_UNKNOWN;

	if (fate->older)
		return freed ? MW_FATE_AOFI : MW_FATE_AOFO;
	return freed ? MW_FATE_TRANSIENT : MW_FATE_IMPACTING;
}

static inline uint64_t mw_fate_lifetime(const struct mw_track_fate *fate, uint64_t end_ns)
{
	uint64_t end = fate->died_ns != MW_TIME_UNKNOWN ? fate->died_ns : end_ns;

	if (fate->born_ns == MW_TIME_UNKNOWN)
		return MW_TIME_UNKNOWN;
	/* Threads' clocks may differ by a little. */
	return end > fate->born_ns ? end - fate->born_ns : 0;
}

/* --- sums: adding up what is known of sets of blocks, and putting them in order ----------------------------- */

/* Add the amounts of a cell; lifetimes and peaks are the caller's business. */
void mw_sums_add(struct mw_sums *sums, const struct mw_cell *cell);
/* Add amounts and peaks of another set of blocks. */
void mw_sums_merge(struct mw_sums *sums, const struct mw_sums *other);
/* What a set counts where it is sorted by that. */
uint64_t mw_sums_rank(const struct mw_sums *sums, enum mw_sort sort, enum mw_fate type);
/* <0: `a` comes first; 0: the amounts do not decide. */
int mw_sums_compare(const struct mw_sums *a, const struct mw_sums *b, enum mw_sort sort, enum mw_fate type);
/* Is there any block, or piece of one, of that type? */
bool mw_sums_has(const struct mw_sums *sums, enum mw_fate type);

#endif
