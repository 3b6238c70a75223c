/* SPDX-License-Identifier: MIT */
/* vector.h: arrays that grow as items are added, and are searched when they are sorted. */
#ifndef MW_BASE_VECTOR_H
#define MW_BASE_VECTOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * See that an array of `count` items of `size` bytes has room for one more. Returns where it is now: the caller's
 * pointer must follow. `*capacity` doubles where it was full; both start as NULL and 0. NULL without memory: the old
 * array is as it was.
 */
void *mw_vector_room(void *items, size_t count, size_t *capacity, size_t size);

/* Of `count` items of `size` bytes, sorted by a uint64_t at `offset` in each: how many have `key` or less there. */
static inline size_t mw_vector_up_to(const void *items, size_t count, size_t size, size_t offset, uint64_t key)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		uint64_t value;

		memcpy(&value, (const char *)items + middle * size + offset, sizeof(value));
		if (value <= key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

#endif
