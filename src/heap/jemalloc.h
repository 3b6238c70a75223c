/* SPDX-License-Identifier: MIT */
/*
 * jemalloc.h: jemalloc 5's structures as they lie in memory, for the files that walk it.
 *
 *      data or bss of the file that has jemalloc
 *        root of the radix tree ──► leaf of 1 GiB ──► edata of an extent: address, size, state, and the bitmap of a slab
 *        arenas[0…] ──► arena: list of caches ──► tcache: bins ──► stack of blocks that are cached
 *                              base ──► base blocks, which have all of the above but the stacks
 *
 * None of it has a symbol: each is found by what it looks like, and believed where all that it leads to agrees.
 */
#ifndef MW_HEAP_JEMALLOC_H
#define MW_HEAP_JEMALLOC_H

#include "heap/walk.h"

#define JE_PAGE         UINT64_C(4096)
#define JE_SIZE_CLASSES 232u /* 64-bit, pages of 4 KiB, sizes in steps of 16 */
#define JE_MAX_ARENAS   4095u

enum je_state { JE_ACTIVE, JE_DIRTY, JE_MUZZY, JE_RETAINED };

struct je_extent {
	mw_addr start, end;
	mw_addr block; /* where a large one's begins */
	mw_addr edata;
	uint32_t span;
	uint16_t arena;
	uint8_t size_class;
	uint8_t state;
	bool slab;
};

struct je_arena {
	mw_addr at, base; /* at 0: there is none of that number */
	uint32_t number;  /* of mw_blocks; MW_BLOCK_NONE: not added yet */
};

struct je_heap {
	const struct mw_image *image;
	struct mw_reader *reader;
	struct mw_blocks *blocks;
	const struct mw_walk_file *file;
	uint32_t allocator;
	struct je_extent *extents; /* by address */
	size_t extent_count, extent_capacity;
	uint64_t strange;        /* what was inconsistent in the tree */
	struct je_arena *arenas; /* JE_MAX_ARENAS */
	struct mw_walk_in_flight in_flight;
};

/* The extent that an address lies in, or NULL. */
const struct je_extent *je_extent_of(const struct je_heap *heap, mw_addr addr);
uint64_t je_size_of_class(unsigned size_class);

/* Find the radix tree and all extents; *found: there is one. Errors: MEMORY. */
struct mw_error *je_extents_find(struct je_heap *heap, bool *found) MW_MUST_CHECK;
/* The number of an arena, which is added where it is not yet. Errors: MEMORY. */
struct mw_error *je_arena_number(struct je_heap *heap, unsigned index, uint32_t *number) MW_MUST_CHECK;
/* Once the extents are spans: set free what is in caches, and add arenas' base blocks as bookkeeping. Errors: MEMORY. */
struct mw_error *je_arenas_take(struct je_heap *heap) MW_MUST_CHECK;

#endif
