/* SPDX-License-Identifier: MIT */
/*
 * blocklist.h: the first N blocks of an interval, by size or by how long they lived.
 *
 * Kept while fates stream, before stacks have names. What a filter says of a block's size, kind and type is known then,
 * what it says of its stack, thread and heap is not: so the first N of each (stack, thread, heap) that the filter might
 * tell apart are kept until the end. A mapping that goes, or is there, in pieces is one block of the size that it had.
 */
#ifndef MW_VIEW_BLOCKLIST_H
#define MW_VIEW_BLOCKLIST_H

#include "view/arena.h"
#include "view/cells.h"
#include "view/filter.h"

#define MW_BLOCKLIST_MAX 100000u

struct mw_blocklist_options {
	size_t count;      /* 1 to MW_BLOCKLIST_MAX */
	bool by_age;       /* longest life first; else most bytes first. Blocks that came before the window are last */
	enum mw_fate type; /* only these; MW_FATE_ALL: all */
	uint64_t end_ns;   /* the interval's end: what is there then is so old. 0: mw_blocklist_end() tells it */
	const struct mw_filter *filter; /* NULL: none; must outlive the list */
	mw_cells_heap_of *heap_of;      /* NULL: all unknown */
	void *heap_context;
};

struct mw_blocklist;

struct mw_error *mw_blocklist_create(const struct mw_blocklist_options *options,
				     struct mw_blocklist **out) MW_MUST_CHECK;
void mw_blocklist_destroy(struct mw_blocklist *list);

/* The interval has ended, there; before the survivors. */
void mw_blocklist_end(struct mw_blocklist *list, uint64_t end_ns);
/* For each number that heap_of gave out, which heap it is in truth; after the survivors. */
void mw_blocklist_renumber_heaps(struct mw_blocklist *list, const uint32_t *heap_of);
/* As mw_cells_take(); `list` is a struct mw_blocklist *. */
bool mw_blocklist_take(void *list, const struct mw_track_fate *fate);

struct mw_view_question;

/* The first blocks of all processes' lists, in the arena. Errors: MEMORY, also where a fate could not be taken. */
struct mw_error *mw_blocklist_rows(const struct mw_view_question *question, const struct mw_view_process *processes,
				   size_t count, struct mw_arena *arena,
				   const struct mw_block_list **out) MW_MUST_CHECK;

#endif
