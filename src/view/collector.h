/* SPDX-License-Identifier: MIT */
/*
 * collector.h: what the views of one process need beside its report: its cells, the first of its blocks, and its
 * timeline, summed up while the tracker reports what becomes of blocks.
 */
#ifndef MW_VIEW_COLLECTOR_H
#define MW_VIEW_COLLECTOR_H

#include "base/map.h"
#include "view/cube.h"
#include "view/heaps.h"
#include "view/metadata.h"
#include "view/views.h"

struct mw_collector_options {
	const struct mw_view_question *question; /* NULL: none. Must outlive the collector */
	bool timeline;                           /* there is to be one … */
	uint64_t from_ns, to_ns;                 /* … of that interval; to_ns 0: its end is not known yet */
	bool samples;                            /* exports are to be made (samples.h) … */
	const struct mw_filter *filter;          /* … of these blocks; NULL: all. Must outlive the collector */
	/* They know where heaps are, and must outlive the collector; NULL: that is known at the interval's end. */
	const struct mw_metadata *metadata;
};

struct mw_heap_place;

/* By places heaps are told apart where they are not known yet. For one thread at a time. */
struct mw_heap_places {
	struct mw_map numbering;
	struct mw_heap_place *items; /* by number */
	size_t capacity;
	uint64_t last_key; /* the key that was asked for last, plus one, and its number */
	uint32_t last;
};

/* Zero-initialise. */
struct mw_collector {
	struct mw_cells *cells;
	struct mw_cells *samples;
	struct mw_blocklist *blocks;
	struct mw_cube *cube;
	struct mw_heaps *heaps;
	bool late;                       /* where heaps are is known at the end */
	struct mw_heap_places places[2]; /* until then: for cells and blocks, and for the timeline, in its thread */
	uint32_t *heap_of[2];            /* … and which heaps they are */
	uint32_t *stack_of, *thread_of;  /* for mw_summary_input */
	struct mw_view_thread *threads;
	size_t thread_count;
	const char *const *heap_names; /* of `heaps` */
	size_t heap_count;
	struct mw_space_moment moments[2]; /* mw_watched_view() */
	/* Are there blocks of CPython's allocator? */
	const struct mw_metadata *metadata;
	const struct mw_track *track;
	size_t hooks_seen;
	bool has_pymalloc;
};

void mw_collector_deinit(struct mw_collector *collector);
/* The interval begins: from now on the tracker reports what becomes of blocks. */
void mw_collector_watch(struct mw_collector *collector, struct mw_track *track);
/* The number of the heap that a block lies in, where it is known where heaps are. */
uint32_t mw_collector_heap(struct mw_collector *collector, const struct mw_track_fate *fate);

#endif
