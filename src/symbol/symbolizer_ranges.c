// SPDX-License-Identifier: MIT
/* symbolizer_ranges.c: see symbolizer_ranges.h. */
#include "symbol/symbolizer_ranges.h"

#include "base/vector.h"

#include <stdlib.h>

bool mw_ranges_add(struct mw_ranges *ranges, uint64_t start, uint64_t end, uint64_t value)
{
	if (!MW_VECTOR_ROOM(ranges->items, ranges->count, ranges->capacity))
		return false;
	ranges->items[ranges->count++] = (struct mw_range){.start = start, .end = end, .value = value};
	return true;
}

/* So that of those that hold an address the wanted one comes last. */
static int compare(const void *a, const void *b)
{
	const struct mw_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return (x->value < y->value) - (x->value > y->value);
}

void mw_ranges_sort(struct mw_ranges *ranges)
{
	uint64_t reach = 0;

	if (ranges->count)
		qsort(ranges->items, ranges->count, sizeof(*ranges->items), compare);
	for (size_t i = 0; i < ranges->count; i++) {
		reach = ranges->items[i].end > reach ? ranges->items[i].end : reach;
		ranges->items[i].reach = reach;
	}
}

void mw_ranges_deinit(struct mw_ranges *ranges)
{
	free(ranges->items);
	*ranges = (struct mw_ranges){0};
}

const struct mw_range *mw_ranges_find(const struct mw_ranges *ranges, uint64_t address)
{
	size_t before = mw_vector_up_to(ranges->items, ranges->count, sizeof(*ranges->items),
					offsetof(struct mw_range, start), address);

	for (size_t i = before; i > 0 && ranges->items[i - 1].reach > address; i--)
		if (ranges->items[i - 1].end > address)
			return &ranges->items[i - 1];
	return NULL;
}
