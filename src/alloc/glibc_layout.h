/* SPDX-License-Identifier: MIT */
/*
 * glibc_layout.h: how glibc's arenas lie in memory, on machines of 64 bits.
 *
 * malloc_state, glibc 2.27 and later (before, all from the fast bins on stands 8 lower):
 *
 *      0    mutex, flags, have_fastchunks
 *      16   fast bins              10 lists of chunks
 *      96   top                    the chunk that is cut from where no other fits
 *      104  last remainder
 *      112  bins                   127 × {first, last}; a list's head is 16 before its pair
 *      2144 bin map
 *      2160 next                   the arenas in a ring
 *      2168 next free
 *      2176 attached threads
 *      2184 system_mem, max_system_mem
 *
 * heap_info, at a multiple of 64 MiB: {arena, heap before, size, writable size} and from 2.35 on {page size, pad}. In
 * an arena's first heap its state follows, in later ones the first chunk.
 */
#ifndef MW_ALLOC_GLIBC_LAYOUT_H
#define MW_ALLOC_GLIBC_LAYOUT_H

#include "alloc/glibc_arenas.h"

enum {
	GLIBC_BINS = 127,
	GLIBC_BINS_SIZE = GLIBC_BINS * 16,
	GLIBC_FAST_BINS = 10,
	/* From the first bin. */
	GLIBC_TOP = -16,
	GLIBC_FAST = -96,
	GLIBC_NEXT = GLIBC_BINS_SIZE + 16,
	GLIBC_ATTACHED = GLIBC_NEXT + 16,
	GLIBC_SYSTEM = GLIBC_NEXT + 24,
	GLIBC_MAX_SYSTEM = GLIBC_NEXT + 32,
	GLIBC_STATE_END = GLIBC_NEXT + 40,
	/* The first bin from the state, by release: without fast bins it would be another. */
	GLIBC_BINS_AT = 112,
	GLIBC_BINS_AT_OLD = 104,
	GLIBC_BINS_AT_MOST = 128,
};

#define GLIBC_PREV_INUSE UINT64_C(1)
#define GLIBC_MMAPPED    UINT64_C(2)
#define GLIBC_NON_MAIN   UINT64_C(4)
#define GLIBC_FLAGS      UINT64_C(7)
#define GLIBC_ALIGNMENT  16u
#define GLIBC_LEAST      32u /* bytes of a chunk */

struct glibc_heap_info {
	uint64_t arena, before, size, writable, page;
};

/* A view of memory through pages that were read before. */
struct glibc_window {
	const struct mw_glibc_process *process;
	uint64_t deadline_ns;
	bool late;      /* the deadline is over */
	unsigned looks; /* a list may lead round and round within what was read */
	mw_addr start;
	size_t size;
	unsigned char *bytes;
};

struct mw_error *glibc_window_init(struct glibc_window *window, const struct mw_glibc_process *process,
				   uint64_t deadline_ns) MW_MUST_CHECK;
void glibc_window_deinit(struct glibc_window *window);
/* What was read is forgotten. */
static inline void glibc_window_forget(struct glibc_window *window)
{
	window->size = 0;
}
/*
 * `size` bytes (a page at most) at `addr`; NULL where they can't be read or it is too late. Good until the
 * next call. `ahead`: bytes from `addr` on that will be asked for next, most likely, and may be read at once: at least
 * what reaches into another page.
 */
const void *glibc_window_at(struct glibc_window *window, mw_addr addr, size_t size, uint64_t ahead);

/* What a walk over one arena's chunks finds. */
struct glibc_caches {
	mw_addr *items; /* blocks that look like a thread's cache */
	size_t count, capacity;
};
/* Is the block, of that many bytes, a thread's cache that is not empty? `bytes` are the block's. */
bool glibc_looks_like_cache(const void *bytes, size_t size);
#define GLIBC_CACHE_SIZE     0x280u /* of the block: glibc 2.30 to 2.41 … */
#define GLIBC_CACHE_SIZE_OLD 0x240u /* … and from 2.26 on */

/* The bytes of chunks that an arena's fast bins hold; more than `most` where they make no sense. */
uint64_t glibc_fast_bytes(struct glibc_window *window, struct mw_glibc_arenas *arenas,
			  const struct mw_glibc_arena *arena, uint64_t most);
/* Move the chunks that a thread's cache holds from used to free, each in its own arena. */
void glibc_take_cache(struct glibc_window *window, struct mw_glibc_arenas *arenas, mw_addr cache);

#endif
