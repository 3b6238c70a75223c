/* SPDX-License-Identifier: MIT */
/*
 * pending.h: what calls that have begun and not ended hold, until it is known whether they succeed.
 *
 * Each thread has a list of them a family, newest first: calls of a signal handler come before the call that it
 * interrupted. What is pending still counts as live.
 */
#ifndef MW_TRACK_PENDING_H
#define MW_TRACK_PENDING_H

#include "track/block_table.h"
#include "track/thread_table.h"

#include <memwatch/error.h>
#include <memwatch/event.h>

struct mw_track;

enum mw_pending_holds {
	MW_PENDING_NOTHING, /* realloc(NULL, …) */
	MW_PENDING_BLOCK,   /* `block`, which was in the table */
	MW_PENDING_UNKNOWN, /* a heap block from before the window, of block.bytes or MW_SIZE_UNKNOWN */
	MW_PENDING_RANGES,  /* `ranges`, cut out of the tree */
};

struct mw_pending {
	uint32_t next;   /* older call of the same thread and family, or MW_POOL_NONE */
	uint8_t holds;   /* enum mw_pending_holds */
	uint32_t stack;  /* of the BEGIN, or MW_STACK_NONE */
	uint32_t ranges; /* their root, or MW_RANGE_NONE */
	uint64_t time_ns;
	struct mw_block block;
};

/* Begin a call of the event's thread; gives what it holds, to be filled in. */
struct mw_error *mw_pending_push(struct mw_track *track, const struct mw_event *event, enum mw_pending_family family,
				 struct mw_pending **out) MW_MUST_CHECK;
/* The newest call of this family that the thread has open, or NULL. */
struct mw_pending *mw_pending_find(const struct mw_track *track, uint32_t thread, enum mw_pending_family family);
/* Forget what mw_pending_find() found. */
void mw_pending_drop(struct mw_track *track, uint32_t thread, enum mw_pending_family family);

#endif
