/* SPDX-License-Identifier: MIT */
/*
 * index.h: a hash table that finds the elements of an array by their contents.
 *
 * The elements are the caller's: an array, a vector or a pool of them, numbered from 0 in the order in which they were
 * put in. The index holds only their numbers, 4 bytes a slot and 5.3 to 8 bytes an element. It names those whose hash
 * is alike, and the caller compares. To find an element, or to add it where it is new:
 *
 *	MW_INDEX_EACH(&index, hash, number)
 *		if (same(&items[number], key))
 *			return &items[number];
 *	if (!mw_index_reserve(&index, hash_of_item, items) || !MW_VECTOR_ROOM(items, index.count, capacity))
 *		return NULL;
 *	number = mw_index_put(&index, hash);
 *	items[number] = *key;
 *
 * Nothing is taken out but all at once; map.h has keys that come and go. Not thread-safe.
 *
 * Hashes have 32 bits, of which all must be good (hash.h): the high ones say where a number is, the low ones are kept
 * beside it. There is no secret in them: a program built for the purpose can give many elements the same hash, which
 * costs time, but changes no answer, since the elements themselves are compared.
 */
#ifndef MW_BASE_INDEX_H
#define MW_BASE_INDEX_H

#include "base/hash.h"

#include <stdbool.h>
#include <stdint.h>

/* Zero-initialise; mw_index_deinit frees. */
struct mw_index {
	uint32_t *slots;   /* number + 1 in the low `bits` bits, above it as many of the hash's low ones; 0: empty */
	uint32_t capacity; /* slots; 0: none yet */
	uint32_t bits;     /* that numbers below it have */
	uint32_t limit;    /* elements that have room: 3/4 of the slots */
	uint32_t count;    /* elements: their numbers are below this */
};

/* The hash of an element that is in the index. */
typedef uint32_t mw_index_hash(const void *context, uint32_t number);

/* Where mw_index_next() begins. */
static inline uint32_t mw_index_first(const struct mw_index *index, uint32_t hash)
{
	return mw_hash_place(hash, index->capacity);
}

/* The next element whose hash seems to be `hash`; false where there is no other. */
static inline bool mw_index_next(const struct mw_index *index, uint32_t hash, uint32_t *at, uint32_t *number)
{
	uint32_t mask = (UINT32_C(1) << index->bits) - 1, slot;

	if (!index->slots)
		return false;
	while ((slot = index->slots[*at]) != 0) {
		*at = *at + 1 == index->capacity ? 0 : *at + 1;
		if ((slot ^ hash << index->bits) <= mask) {
			*number = (slot & mask) - 1;
			return true;
		}
	}
	return false;
}

/* For each element whose hash seems to be `hash`: `number`, a uint32_t, is set. The index must not change meanwhile. */
#define MW_INDEX_EACH(index, hash, number)                                                                             \
	for (uint32_t at_ = mw_index_first(index, hash); mw_index_next(index, hash, &at_, &(number));)

/* Let the processor fetch what mw_index_next() looks at first. */
static inline void mw_index_prefetch(const struct mw_index *index, uint32_t hash)
{
	if (index->slots)
		__builtin_prefetch(&index->slots[mw_index_first(index, hash)]);
}

/* Make the table half as large again; see mw_index_reserve(). */
bool mw_index_grow(struct mw_index *index, mw_index_hash *hash, const void *context);

/*
 * See that the next mw_index_put() has room. `hash`, called with `context`, gives the hash of each element there is,
 * with which it was put in: a larger table is filled anew. False without memory, or beyond 2^30 elements: the index is
 * as it was.
 */
static inline bool mw_index_reserve(struct mw_index *index, mw_index_hash *hash, const void *context)
{
	return index->count < index->limit || mw_index_grow(index, hash, context);
}

/* Add an element, for which mw_index_reserve() has made room. Returns its number: how many there were before. */
uint32_t mw_index_put(struct mw_index *index, uint32_t hash);

/* Take all elements out. The room stays: as many can be put in again without mw_index_reserve(). */
void mw_index_clear(struct mw_index *index);

void mw_index_deinit(struct mw_index *index);

/* Bytes behind the index. */
static inline uint64_t mw_index_memory(const struct mw_index *index)
{
	return (uint64_t)index->capacity * sizeof(*index->slots);
}

#endif
