/* SPDX-License-Identifier: MIT */
/* symbolizer_ranges.h: ranges of addresses, sorted, which may overlap: which one holds an address. */
#ifndef MW_SYMBOL_SYMBOLIZER_RANGES_H
#define MW_SYMBOL_SYMBOLIZER_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
bool mw_ranges_add(struct mw_ranges *ranges, uint64_t start, uint64_t end, uint64_t value);
void mw_ranges_sort(struct mw_ranges *ranges);
void mw_ranges_deinit(struct mw_ranges *ranges);
/* Of the ranges that hold `address` the one that begins last, of those the shortest, of those the one of the smallest
 * value; NULL where there is none. */
const struct mw_range *mw_ranges_find(const struct mw_ranges *ranges, uint64_t address);

#endif
