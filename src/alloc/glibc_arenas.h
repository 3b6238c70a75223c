/* SPDX-License-Identifier: MIT */
/*
 * glibc_arenas.h: glibc's arenas in a process that runs: where they are, and how much of them is in use.
 *
 * Found by what they look like, so no symbols are needed: a heap of a thread's arena begins at a multiple of 64 MiB
 * with a header of its own, and each arena's state has 127 list heads in a row, of which those of empty lists point at
 * themselves. The chunks are walked by their sizes, from each heap's first to the top.
 *
 * The process may change all of it meanwhile. A walk that does not go from the first chunk to the last is begun again,
 * and given up after a few times: the figures are unknown then, never guessed.
 */
#ifndef MW_ALLOC_GLIBC_ARENAS_H
#define MW_ALLOC_GLIBC_ARENAS_H

#include <memwatch/error.h>
#include <memwatch/types.h>

#define MW_GLIBC_HEAP_SIZE (UINT64_C(64) << 20) /* what a heap of a thread's arena has reserved, and is aligned to */

struct mw_glibc_span {
	mw_addr start, end;
};

/* What there is to look at. Borrowed. */
struct mw_glibc_process {
	/* Copy up to `size` bytes of its memory; how many were there from `addr` on. */
	size_t (*read)(void *context, mw_addr addr, void *out, size_t size);
	void *context;
	const struct mw_glibc_span *anonymous; /* private memory of no file that can be written */
	size_t anonymous_count;
	const struct mw_glibc_span *data; /* writable data of files that may be glibc or have it linked in */
	size_t data_count;
	struct mw_glibc_span heap; /* [heap]; both 0: none */
};

/*
 * Bytes, all three MW_SIZE_UNKNOWN where they could not be known. `size` is what the arena has of the system (of
 * threads' arenas: what can be written), `free` what malloc can give out of it without asking for more: free chunks,
 * the top, and what is kept for quick reuse (fast bins, and threads' caches). `used` is the rest:
 * blocks with their headers and padding, and the arena's own. Blocks with a mapping of their own are in no arena.
 */
struct mw_glibc_figures {
	uint64_t used, free, size;
};

struct mw_glibc_arena {
	mw_addr state; /* its malloc_state: what names it */
	mw_addr bins;  /* the first list head in it */
	struct mw_glibc_figures figures;
};

struct mw_glibc_heap {
	mw_addr start; /* MW_GLIBC_HEAP_SIZE from here on are reserved */
	mw_addr arena; /* whose state that is */
};

/* Zero-initialise; mw_glibc_arenas_deinit frees. */
struct mw_glibc_arenas {
	struct mw_glibc_arena main;    /* state 0: there is none, or it has not been used */
	bool several;                  /* more than one copy of glibc: the other's main arena is not told */
	struct mw_glibc_arena *arenas; /* of threads, by address of their state */
	size_t arena_count;
	struct mw_glibc_heap *heaps; /* of threads' arenas, by address */
	size_t heap_count;
	struct mw_glibc_figures total; /* of all; unknown where one is, or where there is no glibc */
};

/* Where the arenas are; figures are unknown. A process without glibc has none. Errors: MEMORY. */
struct mw_error *mw_glibc_arenas_find(const struct mw_glibc_process *process,
				      struct mw_glibc_arenas *out) MW_MUST_CHECK;
/*
 * Fill in the figures of arenas that were found now. Takes time in proportion to the pages of the heaps; past
 * `deadline_ns` (CLOCK_MONOTONIC) what is not known yet stays unknown. Errors: MEMORY.
 */
struct mw_error *mw_glibc_arenas_walk(const struct mw_glibc_process *process, uint64_t deadline_ns,
				      struct mw_glibc_arenas *arenas) MW_MUST_CHECK;
void mw_glibc_arenas_deinit(struct mw_glibc_arenas *arenas);
/* The arena that an address lies in, or NULL. The main arena's is [heap]. */
struct mw_glibc_arena *mw_glibc_arena_of(const struct mw_glibc_process *process, struct mw_glibc_arenas *arenas,
					 mw_addr addr);

#endif
