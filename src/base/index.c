// SPDX-License-Identifier: MIT
/* index.c: open addressing with linear probing over numbers (index.h). */
#include "base/index.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 64u

uint32_t mw_index_put(struct mw_index *index, uint32_t hash)
{
	uint32_t at = mw_index_first(index, hash);

	while (index->slots[at])
		at = at + 1 == index->capacity ? 0 : at + 1;
	index->slots[at] = hash << index->bits | ++index->count;
	return index->count - 1;
}

void mw_index_clear(struct mw_index *index)
{
	if (index->slots)
		memset(index->slots, 0, (size_t)index->capacity * sizeof(*index->slots));
	index->count = 0;
}

/* In place where that can be: two tables side by side would take more than twice as much for a moment. */
bool mw_index_grow(struct mw_index *index, mw_index_hash *hash, const void *context)
{
	uint32_t capacity = index->capacity ? index->capacity / 2 * 3 : FIRST_CAPACITY, count = index->count;
	uint32_t *slots;

	if (index->capacity > UINT32_MAX / 3)
		return false;
	slots = realloc(index->slots, (size_t)capacity * sizeof(*slots));
	if (!slots)
		return false;
	*index = (struct mw_index){
		.slots = slots,
		.capacity = capacity,
		.limit = capacity / 4 * 3,
		.bits = 32 - (uint32_t)__builtin_clz(capacity),
	};
	mw_index_clear(index);
	while (index->count < count)
		mw_index_put(index, hash(context, index->count));
	return true;
}

void mw_index_deinit(struct mw_index *index)
{
	free(index->slots);
	*index = (struct mw_index){0};
}
