/* SPDX-License-Identifier: MIT */
/*
 * glibc_chunks.h: from chunk to chunk through one of glibc's arenas, and through the lists of those chunks that look in
 * use and are not: in fast bins, and in threads' caches.
 *
 *      main arena          [heap]:   (others' memory) | chunk | chunk | … | top |
 *      thread's arena      heap:     info, state      | chunk | chunk | … | fences |
 *                          heap:     info             | chunk | … | top |
 *
 * A chunk says in its size's lowest bit whether the one before it is in use. Where somebody else has moved the break,
 * two fences of 16 bytes end a stretch of the main arena, and the next begins somewhere behind.
 *
 * All that is read may be anything.
 */
#ifndef MW_ALLOC_GLIBC_CHUNKS_H
#define MW_ALLOC_GLIBC_CHUNKS_H

#include "alloc/glibc_arenas.h"

#define MW_GLIBC_WINDOW ((size_t)128 << 10) /* what is copied is in the CPU's cache still when it is looked at */

/* --- memory, read page by page or more at once ------------------------------------------------------------------ */

/* A view of memory through pages that were read before. */
struct mw_glibc_window {
	const struct mw_glibc_process *process;
	uint64_t deadline_ns; /* UINT64_MAX: none */
	unsigned char *bytes; /* MW_GLIBC_WINDOW of them; the caller's */
	uint64_t looks;       /* so far: a list may lead round and round within what was read */
	uint64_t most_looks;  /* 0: as many as it takes */
	bool late;            /* the deadline is over, or there were too many looks: nothing is read any more */
	mw_addr start;
	size_t size;
};

/* What was read is forgotten. */
void mw_glibc_window_forget(struct mw_glibc_window *window);
/* `size` bytes at `addr`, good until the next call, or NULL. What is read for them reaches `ahead` bytes from `addr` on. */
const void *mw_glibc_window_at(struct mw_glibc_window *window, mw_addr addr, size_t size, uint64_t ahead);

/* --- chunks ----------------------------------------------------------------------------------------------------- */

/* A stretch of chunks. */
struct mw_glibc_stretch {
	mw_addr first, end;
	mw_addr top;      /* 0: not in here */
	uint64_t foreign; /* flags that a chunk may not have */
};

enum mw_glibc_kind {
	MW_GLIBC_USED, /* or in a fast bin or a thread's cache */
	MW_GLIBC_FREE,
	MW_GLIBC_TOP,
	MW_GLIBC_FENCE, /* the remains of a top that was too small to be freed */
};

struct mw_glibc_chunk {
	mw_addr at;
	uint64_t size; /* with its header */
	enum mw_glibc_kind kind;
	uint64_t torn; /* of a free one: bytes by which its two ends disagree about its size */
};

/* Visits chunks, each once the header behind it has made sense. */
struct mw_glibc_visitor {
	void *context;
	void (*begin)(void *context); /* of a search: what was visited since the last is no run. May be NULL */
	void (*chunk)(void *context, const struct mw_glibc_chunk *chunk);
};

enum mw_glibc_outcome {
	MW_GLIBC_WHOLE,  /* up to the top */
	MW_GLIBC_FENCED, /* up to a fence */
	MW_GLIBC_TORN,   /* up to what is invalid */
};

/* One run from chunk to chunk. */
struct mw_glibc_run {
	mw_addr start, at; /* where it began; where it is, or ended: behind a fence, at a top, or at what is invalid */
	uint64_t before;   /* size of the chunk that ends at `at` and was not visited yet; 0: there is none */
};

/* Go on from run->at. `visitor` may be NULL. */
enum mw_glibc_outcome mw_glibc_run_on(struct mw_glibc_window *window, const struct mw_glibc_stretch *stretch,
				      const struct mw_glibc_visitor *visitor, struct mw_glibc_run *run);
/* The next chunk from `from` on, within `gap` bytes, from which a run is whole or fenced, behind memory of others. */
enum mw_glibc_outcome mw_glibc_run_from_next(struct mw_glibc_window *window, const struct mw_glibc_stretch *stretch,
					     const struct mw_glibc_visitor *visitor, mw_addr from, uint64_t gap,
					     struct mw_glibc_run *out);
/* Is that the size of a chunk at `at` that ends within the stretch, with its flags? */
bool mw_glibc_is_chunk(const struct mw_glibc_stretch *stretch, mw_addr at, uint64_t head);
/* Where the first chunk of a thread's heap is. */
mw_addr mw_glibc_first_chunk(const struct mw_glibc_arena *arena, const struct mw_glibc_heap *heap);

/* --- lists ------------------------------------------------------------------------------------------------------ */

/* Visits chunks on lists. */
struct mw_glibc_members {
	void *context;
	bool (*may_hold)(void *context, mw_addr addr);             /* may a chunk of an arena be there? */
	bool (*each)(void *context, mw_addr chunk, uint64_t size); /* false: enough */
	bool torn; /* also of a cache's lists that do not fit, as far as they lead; a chunk may be visited twice */
};

/* All that an arena's fast bins hold. False: one of them leads to what is no such chunk. */
bool mw_glibc_fast_chunks(struct mw_glibc_window *window, const struct mw_glibc_arena *arena,
			  const struct mw_glibc_members *members);

/* Blocks that look like a thread's cache which is not empty. Zero-initialise; free `items`. */
struct mw_glibc_caches {
	mw_addr *items;
	size_t count, capacity;
};

/* Of the size that a cache's chunk has in some release? */
static inline bool mw_glibc_is_cache_size(uint64_t size)
{
	return size - 0x250 <= 0x310 - 0x250;
}

/* Add it if it looks like one. Errors: MEMORY. */
struct mw_error *mw_glibc_caches_see(struct mw_glibc_caches *caches, struct mw_glibc_window *window,
				     const struct mw_glibc_chunk *chunk) MW_MUST_CHECK;
/*
 * All that the cache whose block is at `cache` holds. A list that is not as long as the cache says, give or take the
 * one that its thread may be about to put there or to take, does not fit, and is left out. Returns how many do not.
 */
unsigned mw_glibc_cache_chunks(struct mw_glibc_window *window, mw_addr cache, const struct mw_glibc_members *members);

#endif
