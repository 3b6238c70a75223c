/* SPDX-License-Identifier: MIT */
/*
 * shared_list.h: pointers by number, added by one thread and read by any other without a lock.
 *
 * They lie in chunks, each as large as all before it together, that never move: growing copies nothing.
 */
#ifndef MW_BASE_SHARED_LIST_H
#define MW_BASE_SHARED_LIST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define MW_SHARED_LIST_FIRST 64u /* pointers in the first chunk */

/* Zero-initialise; mw_shared_list_deinit frees, but for what is pointed to. */
struct mw_shared_list {
	void **chunks[27];
	_Atomic uint32_t count;
};

static inline uint32_t mw_shared_list_count(const struct mw_shared_list *list)
{
	return atomic_load_explicit(&list->count, memory_order_acquire);
}

/* Where a number stands, in a chunk that may not be there yet. */
static inline unsigned mw_shared_list_chunk(uint32_t number, size_t *at)
{
	uint64_t place = (uint64_t)number + MW_SHARED_LIST_FIRST;
	unsigned chunk = (unsigned)__builtin_clzll(MW_SHARED_LIST_FIRST) - (unsigned)__builtin_clzll(place);

	*at = place - ((uint64_t)MW_SHARED_LIST_FIRST << chunk);
	return chunk;
}

/* NULL: there is none of that number (yet). */
static inline void *mw_shared_list_get(const struct mw_shared_list *list, uint32_t number)
{
	size_t at;
	unsigned chunk;

	if (number >= mw_shared_list_count(list))
		return NULL;
	chunk = mw_shared_list_chunk(number, &at);
	return list->chunks[chunk][at];
}

/* The next number is its. False without memory. */
static inline bool mw_shared_list_add(struct mw_shared_list *list, void *item)
{
	uint32_t number = atomic_load_explicit(&list->count, memory_order_relaxed);
	size_t at;
	unsigned chunk = mw_shared_list_chunk(number, &at);

	if (number == UINT32_MAX)
		return false;
	if (!list->chunks[chunk])
		list->chunks[chunk] = calloc((size_t)MW_SHARED_LIST_FIRST << chunk, sizeof(void *));
	if (!list->chunks[chunk])
		return false;
	list->chunks[chunk][at] = item;
	atomic_store_explicit(&list->count, number + 1, memory_order_release);
	return true;
}

/* Take back the last one, which nobody may have read; the list must not be empty. */
static inline void *mw_shared_list_pop(struct mw_shared_list *list)
{
	uint32_t last = atomic_load_explicit(&list->count, memory_order_relaxed) - 1;
	void *item = mw_shared_list_get(list, last);

	atomic_store_explicit(&list->count, last, memory_order_release);
	return item;
}

static inline void mw_shared_list_deinit(struct mw_shared_list *list)
{
	for (size_t i = 0; i < sizeof(list->chunks) / sizeof(list->chunks[0]); i++) {
		free((void *)list->chunks[i]);
		list->chunks[i] = NULL;
	}
	atomic_store(&list->count, 0);
}

#endif
