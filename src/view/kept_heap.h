/* SPDX-License-Identifier: MIT */
/* kept_heap.h: a look at a heap into a recording, and back. */
#ifndef MW_VIEW_KEPT_HEAP_H
#define MW_VIEW_KEPT_HEAP_H

#include "store/store.h"

/* Emit all of a look to a receiver. Errors: UNSUPPORTED where a list is too long to be kept; the receiver's. */
struct mw_error *mw_kept_heap_emit(const struct mw_heap_report *report, uint32_t process,
				   const struct mw_store_visitor *receiver) MW_MUST_CHECK;

/* One that is received, part by part. Zero-initialise. */
struct mw_kept_heap {
	struct mw_heap_report *report; /* NULL: nothing has come */
	/* How long its lists will be, as its head says; those of the report are as long as what has come. */
	size_t lines, allocators, groups, gaps, holders, advice, contents;
	size_t line_room, allocator_room, group_room, gap_room, holder_room, advice_room, content_room, text_room;
};

void mw_kept_heap_deinit(struct mw_kept_heap *kept);
/* Take a part. Errors: MEMORY; DATA: it does not fit to what came before. */
struct mw_error *mw_kept_heap_take(struct mw_kept_heap *kept, const struct mw_stored_heap *part) MW_MUST_CHECK;
/* Has all come that its head says? */
bool mw_kept_heap_is_whole(const struct mw_kept_heap *kept);

#endif
