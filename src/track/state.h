/* SPDX-License-Identifier: MIT */
/* state.h: what a tracker consists of; for the files of this module only. */
#ifndef MW_TRACK_STATE_H
#define MW_TRACK_STATE_H

#include "track/block_table.h"
#include "track/late.h"
#include "track/pending.h"
#include "track/range_tree.h"
#include "track/stack_table.h"
#include "track/thread_table.h"

struct mw_track {
	struct mw_block_table heap;
	struct mw_range_tree ranges; /* owners are numbers in vm_blocks, or MW_VM_BEFORE */
	struct mw_pool vm_blocks;
	struct mw_pool pending;
	struct mw_stack_table stacks;
	struct mw_thread_table threads;
	struct mw_tally totals[MW_KIND_COUNT];
	struct mw_series_clock clock;
	uint64_t now_ns; /* the latest time of all events until now */
	uint64_t missed;
	void (*fate)(void *context, const struct mw_track_fate *fate); /* NULL: nobody watches */
	void *fate_context;
	struct mw_late late; /* blocks of late events, since somebody watches */
};

/* Tell who watches. Whoever fills in a fate first asks whether anybody does. */
static inline bool mw_track_is_watched(const struct mw_track *track)
{
	return __builtin_expect(track->fate != NULL, 0);
}

/* mw_track_fate.since_ns of a block of the interval; `thread` may have MW_THREAD_OLDER. */
static inline uint64_t mw_track_since(const struct mw_track *track, uint64_t born_ns, uint32_t thread)
{
	return born_ns == MW_TIME_UNKNOWN || (thread & MW_THREAD_OLDER) ? born_ns
									: mw_late_since(&track->late, born_ns, thread);
}

/* Of two failures one is reported. */
static inline struct mw_error *mw_track_first_error(struct mw_error *first, struct mw_error *second)
{
	if (!first)
		return second;
	mw_error_destroy(second);
	return first;
}

/* The heap family of events (heap.c), whose thread and stack have been checked. Errors: memory. */
struct mw_error *mw_heap_alloc(struct mw_track *track, const struct mw_event *event) MW_MUST_CHECK;
struct mw_error *mw_heap_free(struct mw_track *track, const struct mw_event *event) MW_MUST_CHECK;
struct mw_error *mw_heap_begin(struct mw_track *track, const struct mw_event *event) MW_MUST_CHECK;
struct mw_error *mw_heap_end(struct mw_track *track, const struct mw_event *event) MW_MUST_CHECK;
struct mw_error *mw_heap_fail(struct mw_track *track, const struct mw_event *event) MW_MUST_CHECK;

#endif
