/* SPDX-License-Identifier: MIT */
/* vector.h: arrays that grow as items are added, and are searched when they are sorted. */
#ifndef MW_BASE_VECTOR_H
#define MW_BASE_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * See that an array of `size` bytes an item has room for one more than `count`. Returns where it is now: the caller's
 * pointer must follow. `*capacity` doubles until there is room; both start as NULL and 0. NULL without memory: the old
 * array is as it was.
 */
void *mw_vector_room(void *items, size_t count, size_t *capacity, size_t size);

/* The same, where `items` is the array itself, which follows, and `capacity` is its own. False without memory. */
#define MW_VECTOR_ROOM(items, count, capacity) mw_vector_grow(&(items), count, &(capacity), sizeof(*(items)))

/* Behind MW_VECTOR_ROOM(): `array` is the address of a pointer to the items, whatever they are. */
static inline bool mw_vector_grow(void *array, size_t count, size_t *capacity, size_t size)
{
	void *items;

	memcpy(&items, array, sizeof(items));
	items = mw_vector_room(items, count, capacity, size);
	if (items)
		memcpy(array, &items, sizeof(items));
	return items != NULL;
}

/* The item `number` of an array of `count`, which grows by zeroed ones as far as that. NULL without memory: it is as it
 * was. */
#define MW_VECTOR_AT(items, count, number)                                                                             \
	((__typeof__(items))mw_vector_reach(&(items), &(count), number, sizeof(*(items))))

/* Behind MW_VECTOR_AT(): `array` is the address of a pointer to the items, whatever they are. */
static inline void *mw_vector_reach(void *array, size_t *count, size_t number, size_t size)
{
	char *items, *grown;

	memcpy(&items, array, sizeof(items));
	if (number >= *count) {
		grown = reallocarray(items, number + 1, size);
		if (!grown)
			return NULL;
		items = grown;
		memset(items + *count * size, 0, (number + 1 - *count) * size);
		memcpy(array, &items, sizeof(items));
		*count = number + 1;
	}
	return items + number * size;
}

/* For each of an array's `count` items, which may be NULL where there are none: `item` points to it. */
#define MW_EACH_MUTABLE(item, items, count)                                                                            \
	for (__typeof__(*(items)) *item = (items); (size_t)(item - (items)) < (size_t)(count); item++)

/* The same, where none is written to. */
#define MW_EACH(item, items, count)                                                                                    \
	for (const __typeof__(*(items)) *item = (items); (size_t)(item - (items)) < (size_t)(count); item++)

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
