/* SPDX-License-Identifier: MIT */
/*
 * blocks.h: all blocks of a process's allocators, as the walkers (walker.h) have found them.
 *
 *      allocator   glibc 2.36
 *        arena     "main", "arena 1", "mmapped"        what malloc hands out blocks from
 *          span    [start, end)                        addresses that are cut into segments, without a gap
 *            segment                                   a block that is live, or memory that is free
 *
 * A span is cut into segments of one size (slabs), or of any size. Of a segment the last `tail` bytes are the
 * allocator's (glibc: the size word of the chunk behind it), the rest is what malloc_usable_size() says. What an
 * allocator owns beside its spans (arena states, page headers, bitmaps) it declares as bookkeeping.
 *
 * Kept as bitmaps: of a span of any sizes two bits for 16 bytes, of a slab one a segment.
 *
 * Filled by one thread; once mw_blocks_finish() has run, any thread may ask.
 */
#ifndef MW_HEAP_BLOCKS_H
#define MW_HEAP_BLOCKS_H

#include <memwatch/error.h>
#include <memwatch/types.h>

#define MW_BLOCK_NONE UINT32_MAX

struct mw_heap_allocator {
	const char *name;   /* static: "glibc", "jemalloc" */
	char version[32];   /* "2.36"; "" where it is not known */
	char *module;       /* path of the file that it is in; owned */
	bool walked;        /* all of its blocks are known; else `why` not, and its memory is roots */
	char *why;          /* one sentence; owned; NULL where walked */
	uint64_t skipped;   /* bytes of its memory that could not be walked, though the rest could (a corrupt chunk) */
	uint64_t trimmable; /* bytes that malloc_trim(0) or the like would give back now; MW_SIZE_UNKNOWN */
	uint64_t cached;    /* of what is free, bytes in threads' caches */
};

struct mw_heap_arena {
	uint32_t allocator;
	char name[24]; /* "main", "arena 3", "mmapped" */
};

/* Memory that was passed over, and why. */
struct mw_heap_skipped {
	mw_addr start;
	uint64_t bytes;
	const char *why; /* static */
};

struct mw_span {
	mw_addr start, end;
	uint64_t segment; /* bytes of each; 0: of any size, in multiples of 16 */
	uint32_t arena;
	uint32_t tail;     /* bytes at each segment's end that are the allocator's */
	uint32_t first;    /* the number of its first segment */
	uint32_t segments; /* how many */
	/* Its own, bits: */
	uint64_t *live;   /* of a slab: by segment; else by 16 bytes, where a live segment begins */
	uint64_t *begins; /* NULL of a slab; else by 16 bytes, where a segment begins */
	uint32_t *ranks;  /* of `begins`: segments before each 512 bits */
};

struct mw_blocks;

/* A segment that is live. */
struct mw_block {
	uint32_t number; /* of the segment, among all spans' */
	uint32_t span;
	mw_addr start;
	uint64_t size; /* usable bytes */
};

/* --- filling -------------------------------------------------------------------------------------------------------- */

struct mw_error *mw_blocks_create(struct mw_blocks **out) MW_MUST_CHECK;
void mw_blocks_destroy(struct mw_blocks *blocks);

/* Errors of all that add: MEMORY. */

/* Takes allocator->module and ->why, also on failure. */
struct mw_error *mw_blocks_add_allocator(struct mw_blocks *blocks, const struct mw_heap_allocator *allocator,
					 uint32_t *number) MW_MUST_CHECK;
struct mw_error *mw_blocks_add_arena(struct mw_blocks *blocks, uint32_t allocator, const char *name,
				     uint32_t *number) MW_MUST_CHECK;
/*
 * A span, in any order, none over another: what overlaps an earlier one is cut off, and counted as skipped. All is free
 * as yet. `segment`: as above; of a slab the rest behind the last whole segment is bookkeeping. Where segments are of any
 * size, the first begins at `start` (a multiple of 16), and each further one is added by mw_span_cut().
 */
struct mw_error *mw_blocks_add_span(struct mw_blocks *blocks, uint32_t arena, mw_addr start, mw_addr end,
				    uint64_t segment, uint32_t tail, uint32_t *number) MW_MUST_CHECK;
/* A segment begins at `at` (of a span of any sizes). False: that is not in the span, or no multiple of 16 from its start. */
bool mw_span_cut(struct mw_blocks *blocks, uint32_t span, mw_addr at);
/* Both at once: a segment begins at `at`, and is live or free. */
bool mw_span_add(struct mw_blocks *blocks, uint32_t span, mw_addr at, bool live);
/* The span ends at `end`, a multiple of 16 from its start, no later than it did: what is behind is its no more. It goes where
 * nothing is left of it, and was the last that was added. */
void mw_blocks_end_span(struct mw_blocks *blocks, uint32_t span, mw_addr end);
/* Live or free is the segment that begins at exactly `at`. False: none does. */
bool mw_span_set_live(struct mw_blocks *blocks, uint32_t span, mw_addr at, bool live);
/* The same by address alone, in any span (slow: a binary search until mw_blocks_finish()): a block in a cache is free. */
bool mw_blocks_set_live(struct mw_blocks *blocks, mw_addr at, bool live);
/* Memory of the allocator that is in no span. */
struct mw_error *mw_blocks_add_bookkeeping(struct mw_blocks *blocks, uint32_t arena, mw_addr start,
					   mw_addr end) MW_MUST_CHECK;
/* May lie in a span: then over segments that are not live, and they are skipped, not free. */
struct mw_error *mw_blocks_add_skipped(struct mw_blocks *blocks, mw_addr start, uint64_t bytes,
				       const char *why) MW_MUST_CHECK;
struct mw_heap_allocator *mw_blocks_allocator_mutable(struct mw_blocks *blocks, uint32_t number);

/* Sort and number; nothing is added from now on, but mw_blocks_set_live() may be called. Errors: MEMORY. */
struct mw_error *mw_blocks_finish(struct mw_blocks *blocks) MW_MUST_CHECK;

/* --- asking --------------------------------------------------------------------------------------------------------- */

const struct mw_heap_allocator *mw_blocks_allocators(const struct mw_blocks *blocks, size_t *count);
const struct mw_heap_arena *mw_blocks_arenas(const struct mw_blocks *blocks, size_t *count);
/* By address, once finished. */
const struct mw_span *mw_blocks_spans(const struct mw_blocks *blocks, size_t *count);
const struct mw_heap_skipped *mw_blocks_skipped(const struct mw_blocks *blocks, size_t *count);
/* By address, joined where they touch and are of one arena. */
struct mw_bookkeeping {
	mw_addr start, end;
	uint32_t arena;
};
const struct mw_bookkeeping *mw_blocks_bookkeeping(const struct mw_blocks *blocks, size_t *count);

/* Segments of all spans, live or free: numbers are below this. */
uint32_t mw_blocks_segments(const struct mw_blocks *blocks);
/* The live block that `addr` points into (its usable bytes); false: none. Fast: a few ns. */
bool mw_blocks_find(const struct mw_blocks *blocks, mw_addr addr, struct mw_block *out);
/* May `addr` point into a span at all? Two loads: for the words of a scan. */
bool mw_blocks_may_hold(const struct mw_blocks *blocks, mw_addr addr);
/* The span that holds `addr`, or NULL. */
const struct mw_span *mw_blocks_span_of(const struct mw_blocks *blocks, mw_addr addr);
/* Does a live block start at exactly `addr`? Faster, for the words of a scan: most pointers are to a block's start. */
bool mw_blocks_find_start(const struct mw_blocks *blocks, mw_addr addr, uint32_t *number);
/* Let the processor fetch what these will look at. */
void mw_blocks_prefetch(const struct mw_blocks *blocks, mw_addr addr);
/* The block of a number; false: that segment is free. */
bool mw_blocks_get(const struct mw_blocks *blocks, uint32_t number, struct mw_block *out);
/* The blocks of ascending numbers, at most MW_BLOCKS_AT_ONCE, in less time; how many of them are live. */
#define MW_BLOCKS_AT_ONCE 512u
size_t mw_blocks_get_all(const struct mw_blocks *blocks, const uint32_t *numbers, size_t count, struct mw_block *out);

/* Goes through a span's segments, live and free, by address. `at` begins at the span's start; false at its end. */
struct mw_segment {
	mw_addr start;
	uint64_t size; /* usable bytes; behind them span->tail more */
	bool live;
	uint32_t number;
};
bool mw_span_next(const struct mw_span *span, mw_addr *at, struct mw_segment *out);
/* The next stretch of segments that are not live, from *at on, where a segment begins, or the span ends; *at is then
 * behind it. Not of slabs. */
bool mw_span_next_free(const struct mw_span *span, mw_addr *at, mw_addr *start, mw_addr *end);

#endif
