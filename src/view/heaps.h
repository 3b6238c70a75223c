/* SPDX-License-Identifier: MIT */
/*
 * heaps.h: which heap of its allocator a block lies in: of glibc "main", "arena 1", "arena 2" … (by the address of the
 * arena) or "mmapped"; of another allocator that one's name.
 *
 * Known from the regions of the process (those of kind MW_REGION_HEAP and MW_REGION_ARENA, looked at as often as one
 * likes: arenas stay where they are) and from the entry points. A block is told by its address alone, so one that lay
 * in an arena's heap which came and went between two looks is taken as mmapped if it is large, else it is unknown.
 */
#ifndef MW_VIEW_HEAPS_H
#define MW_VIEW_HEAPS_H

#include "store/store.h"

#define MW_HEAPS_LEAST_MAPPED 65536u /* bytes of a block that has a mapping of its own, if its address does not tell */

struct mw_heaps;

struct mw_error *mw_heaps_create(struct mw_heaps **out) MW_MUST_CHECK;
void mw_heaps_destroy(struct mw_heaps *heaps);
/* What the process has mapped, of any kind, in any order, also again. Numbers of heaps change. Errors: MEMORY. */
struct mw_error *mw_heaps_add_mapping(struct mw_heaps *heaps, const struct mw_stored_mapping *mapping) MW_MUST_CHECK;
/* An entry point, by its number. Errors: MEMORY. */
struct mw_error *mw_heaps_add_hook(struct mw_heaps *heaps, uint32_t number, const char *function,
				   const char *module) MW_MUST_CHECK;

/*
 * The heap of a block that came from an entry point; 0: unknown, as for what is not of kind MW_KIND_HEAP. `hook` may
 * be UINT32_MAX. Good until something is added.
 */
uint32_t mw_heaps_of(struct mw_heaps *heaps, mw_addr addr, uint64_t bytes, enum mw_kind kind, uint32_t hook);
/* Would a block be taken as one with a mapping of its own, if it lies in no known region? */
static inline bool mw_heaps_seems_mapped(mw_addr addr, uint64_t bytes)
{
	/* Two words stand before a block in its mapping. */
	return addr % 4096 == 2 * sizeof(uint64_t) || (bytes != MW_SIZE_UNKNOWN && bytes >= MW_HEAPS_LEAST_MAPPED);
}
/* How many numbers there are, 0 included. */
uint32_t mw_heaps_count(const struct mw_heaps *heaps);
/* Its name, NULL for 0. Good until something is added. */
const char *mw_heaps_name(const struct mw_heaps *heaps, uint32_t heap);

/* The path of a region that belongs to the arena at `state`: what mw_heaps_add_mapping() reads. */
void mw_heaps_arena_path(mw_addr state, char out[40]);

#endif
