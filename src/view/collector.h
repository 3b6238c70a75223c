/* SPDX-License-Identifier: MIT */
/*
 * collector.h: what the views of one process need beside its report: its cells, the first of its blocks, and its
 * timeline, summed up while the tracker reports what becomes of blocks.
 */
#ifndef MW_VIEW_COLLECTOR_H
#define MW_VIEW_COLLECTOR_H

#include "view/cube.h"
#include "view/heap_places.h"
#include "view/metadata.h"
#include "view/views.h"

struct mw_collector_options {
	const struct mw_view_question *question; /* NULL: none. Must outlive the collector */
	bool timeline;                           /* there is to be one … */
	uint64_t from_ns, to_ns;                 /* … of that interval; to_ns 0: its end is not known yet */
	/* They know where heaps are, and must outlive the collector; NULL: that is known at the interval's end. */
	const struct mw_metadata *metadata;
};

/* Zero-initialise. */
struct mw_collector {
	struct mw_cells *cells;
	struct mw_blocklist *blocks;
	struct mw_cube *cube;
	struct mw_heaps *heaps;
	bool late;                       /* where heaps are is known at the end */
	struct mw_heap_places places[2]; /* until then: for cells and blocks, and for the timeline, in its thread */
	uint32_t *heap_of[2];            /* … and which heaps they are */
	uint32_t *stack_of, *thread_of;  /* for mw_summary_input */
	struct mw_view_thread *threads;
	size_t thread_count;
	const char **heap_names;
	size_t heap_count;
	struct mw_space_moment moments[2]; /* mw_collector_view() */
};

/* Errors: MEMORY; what there is by then is for mw_collector_deinit(). */
struct mw_error *mw_collector_init(struct mw_collector *collector,
				   const struct mw_collector_options *options) MW_MUST_CHECK;
void mw_collector_deinit(struct mw_collector *collector);
/* The interval begins: from now on the tracker reports what becomes of blocks. */
void mw_collector_watch(struct mw_collector *collector, struct mw_track *track);
/* It has ended, there. Errors: MEMORY. */
struct mw_error *mw_collector_finish(struct mw_collector *collector, const struct mw_metadata *metadata,
				     struct mw_track *track, uint64_t end_ns) MW_MUST_CHECK;
/* The timeline of an interval that has ended there, once the report is made. Errors: MEMORY. */
struct mw_error *mw_collector_timeline(struct mw_collector *collector, uint64_t to_ns, size_t stack_count,
				       struct mw_timeline **out) MW_MUST_CHECK;
/* For mw_views_create(), once the report is made; borrows from the collector. `at_end`: the interval ends with the
 * window. */
void mw_collector_view(struct mw_collector *collector, const struct mw_metadata *metadata,
		       const struct mw_report *report, size_t stack_count, bool at_end, struct mw_view_process *out);

#endif
