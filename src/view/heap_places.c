// SPDX-License-Identifier: MIT
/* heap_places.c: see heap_places.h. */
#include "view/heap_places.h"

#include "base/vector.h"

#include <stdlib.h>

#define PLACE_SHIFT 26u    /* glibc's HEAP_MAX_SIZE, to which its arenas' heaps are aligned */
#define PLACES_MAX  65536u /* blocks in others: heap unknown */

struct mw_heap_place {
	mw_addr lowest; /* of a block in it */
	bool mapped;    /* its blocks seem to have mappings of their own */
};

void mw_heap_places_deinit(struct mw_heap_places *places)
{
	mw_map_deinit(&places->numbering);
	free(places->items);
	*places = (struct mw_heap_places){.items = NULL};
}

/* Its number plus one; 0: there are too many, or there is no memory. */
static uint32_t find(struct mw_heap_places *places, uint64_t key)
{
	uint32_t number = 0;
	struct mw_heap_place *items;

	if (key + 1 == places->last_key)
		return places->last;
	items = mw_vector_room(places->items, places->numbering.count, &places->capacity, sizeof(*items));
	if (!items)
		return 0;
	places->items = items;
	items[places->numbering.count] = (struct mw_heap_place){.lowest = UINT64_MAX, .mapped = key & 1};
	if (places->numbering.count >= PLACES_MAX || !mw_map_number(&places->numbering, key, &number))
		return 0;
	places->last_key = key + 1;
	places->last = number + 1;
	return places->last;
}

uint32_t mw_heap_places_of(struct mw_heap_places *places, mw_addr addr, uint64_t bytes, enum mw_kind kind)
{
	uint32_t number;

	if (kind != MW_KIND_HEAP)
		return 0;
	number = find(places, addr >> PLACE_SHIFT << 1 | mw_heaps_seems_mapped(addr, bytes));
	if (number && addr < places->items[number - 1].lowest)
		places->items[number - 1].lowest = addr;
	return number;
}

size_t mw_heap_places_count(const struct mw_heap_places *places)
{
	return (size_t)places->numbering.count + 1;
}

struct mw_error *mw_heap_places_find(const struct mw_heap_places *places, struct mw_heaps *heaps, uint32_t **heap_of)
{
	uint32_t *found = calloc(mw_heap_places_count(places), sizeof(*found));

	if (!found)
		return mw_error_nomem();
	for (uint32_t i = 0; i < places->numbering.count; i++) {
		const struct mw_heap_place *place = &places->items[i];
		uint64_t bytes = place->mapped ? MW_SIZE_UNKNOWN - 1 : 0;

		found[i + 1] = mw_heaps_of(heaps, place->lowest, bytes, MW_KIND_HEAP, UINT32_MAX);
	}
	*heap_of = found;
	return NULL;
}
