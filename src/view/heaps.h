/* SPDX-License-Identifier: MIT */
/*
 * heaps.h: which heap of its allocator a block lies in: of glibc "main", "arena 1", "arena 2" … (by the address of the
 * arena) or "mmapped"; of another allocator that one's name; "pymalloc" of CPython's.
 *
 * Known from the regions of the process (those of kind MW_REGION_HEAP and MW_REGION_ARENA, looked at at the
 * window's start and end: arenas stay where they are) and from the entry points. A block is known by its address alone, so one that lay
 * in an arena's heap which came and went between two looks is taken as mmapped if it is large, else it is unknown.
 */
#ifndef MW_VIEW_HEAPS_H
#define MW_VIEW_HEAPS_H

#include "store/store.h"

#define MW_HEAPS_LEAST_MAPPED 65536u /* bytes of a block that has a mapping of its own, if its address does not tell */

struct mw_heaps;
struct mw_metadata;

/* Errors: MEMORY. */
struct mw_error *mw_heaps_create(const struct mw_metadata *metadata, struct mw_heaps **out) MW_MUST_CHECK;
void mw_heaps_destroy(struct mw_heaps *heaps);

/* The heap of a block; 0: unknown, as for what is not of kind MW_KIND_HEAP. */
uint32_t mw_heaps_of(const struct mw_heaps *heaps, mw_addr addr, uint64_t bytes, enum mw_kind kind);
/* The same where CPython's allocator was asked for it, which has it from malloc where it lies in one of glibc's heaps: it
 * had been larger. */
uint32_t mw_heaps_of_pymalloc(const struct mw_heaps *heaps, mw_addr addr, uint64_t bytes);

/* Would a block be taken as one with a mapping of its own, if it lies in no known region? */
static inline bool mw_heaps_seems_mapped(mw_addr addr, uint64_t bytes)
{
	/* Two words stand before a block in its mapping. */
	return addr % 4096 == 2 * sizeof(uint64_t) || (bytes != MW_SIZE_UNKNOWN && bytes >= MW_HEAPS_LEAST_MAPPED);
}

/* Names by number, NULL for 0. */
const char *const *mw_heaps_names(const struct mw_heaps *heaps, size_t *count);

/* The path of a region that belongs to the arena at `state`: as metadata have it. */
void mw_heaps_arena_path(mw_addr state, char out[40]);

#endif
