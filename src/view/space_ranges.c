// SPDX-License-Identifier: MIT
/* space_ranges.c: sets of addresses (space.h). */
#include "view/space.h"

#include "base/vector.h"

#include <stdlib.h>

struct mw_error *mw_space_ranges_add(struct mw_space_ranges *ranges, mw_addr start, mw_addr end)
{
	if (start >= end)
		return NULL;
	if (!MW_VECTOR_ROOM(ranges->items, ranges->count, ranges->capacity))
		return mw_error_nomem();
	ranges->items[ranges->count++] = (struct mw_space_range){start, end};
	return NULL;
}

void mw_space_ranges_deinit(struct mw_space_ranges *ranges)
{
	free(ranges->items);
	*ranges = (struct mw_space_ranges){0};
}

static int compare(const void *left, const void *right)
{
	const struct mw_space_range *a = left, *b = right;

	return (a->start > b->start) - (a->start < b->start);
}

void mw_space_ranges_join(struct mw_space_ranges *ranges)
{
	size_t kept = 0;

	if (!ranges->count)
		return;
	qsort(ranges->items, ranges->count, sizeof(*ranges->items), compare);
	for (size_t i = 1; i < ranges->count; i++) {
		struct mw_space_range *last = &ranges->items[kept];

		if (ranges->items[i].start > last->end)
			ranges->items[++kept] = ranges->items[i];
		else if (ranges->items[i].end > last->end)
			last->end = ranges->items[i].end;
	}
	ranges->count = kept + 1;
}

/* The first range that ends behind `addr`. */
static size_t first_behind(const struct mw_space_ranges *ranges, mw_addr addr)
{
	return mw_vector_up_to(ranges->items, ranges->count, sizeof(*ranges->items),
			       offsetof(struct mw_space_range, end), addr);
}

struct mw_error *mw_space_ranges_without(const struct mw_space_ranges *ranges, mw_addr start, mw_addr end,
					 struct mw_error *(*each)(void *context, mw_addr start, mw_addr end),
					 void *context)
{
	for (size_t i = first_behind(ranges, start); i < ranges->count && ranges->items[i].start < end; i++) {
		if (ranges->items[i].start > start)
			MW_TRY(each(context, start, ranges->items[i].start));
		start = ranges->items[i].end;
		if (start >= end)
			return NULL;
	}
	return start < end ? each(context, start, end) : NULL;
}
