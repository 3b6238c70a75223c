/* SPDX-License-Identifier: MIT */
/*
 * heap_places.h: in which heap blocks lie, where that is known only when the window is over and the address space has
 * been looked at. Until then blocks are distinguished by places: stretches of addresses as long as the shortest that
 * one of glibc's arenas has.
 */
#ifndef MW_VIEW_HEAP_PLACES_H
#define MW_VIEW_HEAP_PLACES_H

#include "base/map.h"
#include "view/heaps.h"

struct mw_heap_place;

/* Zero-initialise. For one thread at a time. */
struct mw_heap_places {
	struct mw_map numbering;
	struct mw_heap_place *items; /* by number */
	size_t capacity;
	uint64_t last_key; /* the key that was asked for last, plus one, and its number */
	uint32_t last;
};

void mw_heap_places_deinit(struct mw_heap_places *places);
/* The number of a block's place, from 1; 0 for what is not of kind MW_KIND_HEAP, where there are too many places, and
 * without memory. */
uint32_t mw_heap_places_of(struct mw_heap_places *places, mw_addr addr, uint64_t bytes, enum mw_kind kind);
/* How many numbers there are, 0 included. */
size_t mw_heap_places_count(const struct mw_heap_places *places);
/* For each number the heap that it is in, malloc'ed. Errors: MEMORY. */
struct mw_error *mw_heap_places_find(const struct mw_heap_places *places, struct mw_heaps *heaps,
				     uint32_t **heap_of) MW_MUST_CHECK;

#endif
