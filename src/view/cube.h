/* SPDX-License-Identifier: MIT */
/*
 * cube.h: the blocks of an interval summed up by stack, thread, heap, and the bins of time in which they came and went
 * (memwatch/timeline.h).
 *
 * Fed with fates as the tracker tells them, from the interval's begin on; then with the survivors. Memory is bounded:
 * bins become longer. It is to be called from one thread; a thread of its own adds up.
 */
#ifndef MW_VIEW_CUBE_H
#define MW_VIEW_CUBE_H

#include "track/track.h"

#include <memwatch/timeline.h>

#define MW_CUBE_SHORTEST_NS 62500u /* the shortest bin; all are 2^n as long */
/* As defaults: */
#define MW_CUBE_ROWS        3500000u
#define MW_CUBE_OWNERS      1000000u
#define MW_CUBE_LIFETIMES   250000u
#define MW_CUBE_LEAST_BINS  256u /* before there are fewer, threads and heaps have rows of their own … */
#define MW_CUBE_OWNERS_BINS 8u   /* … and none any more before these have fewer */

/* Zeros: the defaults; what is not given is not known. */
struct mw_cube_options {
	uint64_t from_ns;               /* the interval's begin */
	uint64_t length_ns;             /* of the interval: the shortest bins are to be as many as there may be */
	size_t rows, owners, lifetimes; /* at most */
	/* Which heap of the allocator a block lies in: a number from 1, 0 for unknown. Called in the cube's thread
	 * until mw_cube_stop() or mw_cube_finish(). */
	uint32_t (*heap_of)(void *context, mw_addr addr, uint64_t bytes, enum mw_kind kind, bool pymalloc);
	void *heap_context;
};

struct mw_cube;

struct mw_error *mw_cube_create(const struct mw_cube_options *options, struct mw_cube **out) MW_MUST_CHECK;
void mw_cube_destroy(struct mw_cube *cube);

/* Take the fate of a block: `cube` is a struct mw_cube *, to fit mw_track_each_survivor(). False without memory: nothing
 * more is taken then, and mw_cube_finish() says so. */
bool mw_cube_take(void *cube, const struct mw_track_fate *fate);
/* No more fates come, and all are taken when this returns: heap_of is not called any more. Fine to be called again. */
void mw_cube_stop(struct mw_cube *cube);

/* Before a fork: all that was handed to its thread is added up when this returns. */
void mw_cube_rest(struct mw_cube *cube);
/* In the forked child, which has no such thread. */
void mw_cube_forked(struct mw_cube *cube);

/* What the tracker's numbers stand for. All is borrowed. */
struct mw_cube_names {
	uint64_t to_ns;           /* the interval's end */
	const uint32_t *stack_of; /* mw_summary_input.stack_of */
	size_t stack_count;
	const uint32_t *thread_of; /* mw_summary_input.thread_of */
	size_t thread_count;
	/* For each number that heap_of gave out, what heap it is in truth; NULL: that one. */
	const uint32_t *heap_of;
	size_t heap_of_count;
	const char *const *heaps; /* names of these; 0 is unknown whatever stands there */
	size_t heap_count;
};

/* Stops the cube, too: all that there was, sorted. The cube is empty then. Errors: MEMORY, also where a fate could not
 * be taken. */
struct mw_error *mw_cube_finish(struct mw_cube *cube, const struct mw_cube_names *names,
				struct mw_timeline **out) MW_MUST_CHECK;

/* Have a timeline's rows, which have the tracker's numbers, sorted with its own. Errors: MEMORY. */
struct mw_error *mw_timeline_name(struct mw_timeline *timeline, const struct mw_cube_names *names) MW_MUST_CHECK;

#endif
