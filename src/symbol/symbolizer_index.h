/* SPDX-License-Identifier: MIT */
/*
 * symbolizer_index.h: ranges of addresses, sorted, which may overlap: which ones hold an address.
 *
 * And a module's symbols in such ranges, for questions that come by the thousand: libdwfl looks
 * through all symbols for each. The answers are libdwfl's; where they would depend on more than the symbols around, it
 * is left to be asked.
 */
#ifndef MW_SYMBOL_SYMBOLIZER_INDEX_H
#define MW_SYMBOL_SYMBOLIZER_INDEX_H

#include "base/vector.h"

#include <elfutils/libdwfl.h>

struct mw_range {
	uint64_t start, end;
	uint64_t reach; /* the last end of this and all that are before it */
	uint64_t value; /* the caller's */
};

/* Zero-initialise. Add all, then sort, then find. */
struct mw_ranges {
	struct mw_range *items;
	size_t count, capacity;
};

/* False without memory. */
static inline bool mw_ranges_add(struct mw_ranges *ranges, uint64_t start, uint64_t end, uint64_t value)
{
	if (!MW_VECTOR_ROOM(ranges->items, ranges->count, ranges->capacity))
		return false;
	ranges->items[ranges->count++] = (struct mw_range){.start = start, .end = end, .value = value};
	return true;
}

/* So that of those that hold an address the wanted one comes last. */
static inline int mw_ranges_compare(const void *a, const void *b)
{
	const struct mw_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return (x->value < y->value) - (x->value > y->value);
}

static inline void mw_ranges_sort(struct mw_ranges *ranges)
{
	uint64_t reach = 0;

	if (ranges->count)
		qsort(ranges->items, ranges->count, sizeof(*ranges->items), mw_ranges_compare);
	for (size_t i = 0; i < ranges->count; i++) {
		reach = ranges->items[i].end > reach ? ranges->items[i].end : reach;
		ranges->items[i].reach = reach;
	}
}

/* How many begin at or before the address. */
static inline size_t mw_ranges_up_to(const struct mw_ranges *ranges, uint64_t address)
{
	return mw_vector_up_to(ranges->items, ranges->count, sizeof(*ranges->items), offsetof(struct mw_range, start),
			       address);
}

/* Of the ranges that hold `address` the last of the first `*before`, which goes on to those before it; NULL where there
 * is none. Begun with mw_ranges_up_to() it is the one that begins last, of those the shortest, of those the one of the
 * smallest value. */
static inline const struct mw_range *mw_ranges_next(const struct mw_ranges *ranges, uint64_t address, size_t *before)
{
	while (*before > 0 && ranges->items[*before - 1].reach > address)
		if (ranges->items[--*before].end > address)
			return &ranges->items[*before];
	return NULL;
}

static inline const struct mw_range *mw_ranges_find(const struct mw_ranges *ranges, uint64_t address)
{
	size_t before = mw_ranges_up_to(ranges, address);

	return mw_ranges_next(ranges, address, &before);
}

static inline void mw_ranges_deinit(struct mw_ranges *ranges)
{
	free(ranges->items);
	*ranges = (struct mw_ranges){0};
}

/* Zero-initialise. */
struct mw_symbol_index {
	/* As libdwfl has them, start and end equal where a symbol has no size. Their values are its number in libdwfl's
	 * table, and in the upper half the strength of its binding. */
	struct mw_ranges symbols;
	uint32_t first_global; /* number */
};

enum mw_index_answer {
	MW_INDEX_FOUND,
	MW_INDEX_NOTHING,
	MW_INDEX_ASK, /* libdwfl itself */
};

/* False, and nothing in it, without memory or where there are too many symbols for it: 64 MiB at most. */
bool mw_symbol_index_init(struct mw_symbol_index *index, Dwfl_Module *module);
/* What dwfl_module_addrinfo says of `address`: `*symbol` is good as long as the index. */
enum mw_index_answer mw_symbol_index_find(const struct mw_symbol_index *index, uint64_t address,
					  const struct mw_range **symbol);

#endif
