// SPDX-License-Identifier: MIT
/* index.c: sharded open addressing over numbers (index.h). */
#include "track/index.h"

#include "track/array.h"
#include "base/hash.h"

#include <stddef.h>
#include <string.h>

#define FIRST_CAPACITY 16U

void mw_index_init(struct mw_index *index, const struct mw_index_type *type, const void *context)
{
	memset(index, 0, sizeof(*index));
	index->type = type;
	index->context = context;
}

void mw_index_deinit(struct mw_index *index)
{
	for (uint32_t i = 0; i < MW_INDEX_SHARDS; i++) {
		struct mw_index_shard *shard = &index->shards[i];

		mw_array_free(shard->slots, shard->capacity, sizeof(*shard->slots));
	}
	memset(index->shards, 0, sizeof(index->shards));
}

static uint32_t shard_of(uint32_t hash)
{
	return hash >> (32 - MW_INDEX_SHARD_BITS);
}

static uint32_t home_of(uint32_t hash, uint32_t capacity)
{
	return mw_hash_place(hash << MW_INDEX_SHARD_BITS, capacity);
}

/* The slot of what matches `key`, or NULL. */
static uint32_t *find_slot(const struct mw_index *index, uint32_t hash, const void *key)
{
	const struct mw_index_shard *shard = &index->shards[shard_of(hash)];
	uint32_t at;

	if (shard->capacity == 0)
		return NULL;
	at = home_of(hash, shard->capacity);
	while (shard->slots[at] != 0) {
		if (index->type->matches(index->context, shard->slots[at] - 1, key))
			return &shard->slots[at];
		if (++at == shard->capacity)
			at = 0;
	}
	return NULL;
}

uint32_t mw_index_find(const struct mw_index *index, uint32_t hash, const void *key)
{
	const uint32_t *slot = find_slot(index, hash, key);

	return slot ? *slot - 1 : MW_INDEX_NONE;
}

static void place(uint32_t *slots, uint32_t capacity, uint32_t hash, uint32_t value)
{
	uint32_t at = home_of(hash, capacity);

	while (slots[at] != 0) {
		if (++at == capacity)
			at = 0;
	}
	slots[at] = value;
}

struct mw_error *mw_index_reserve(struct mw_index *index, uint32_t hash)
{
	struct mw_index_shard *shard = &index->shards[shard_of(hash)];
	uint32_t capacity;
	uint32_t *slots;

	/* Between 1/2 and 3/4 full: 5.3 to 8 bytes a number. */
	if (shard->count + 1 <= shard->capacity / 4 * 3)
		return NULL;
	if (shard->capacity > UINT32_MAX / 2)
		return mw_error_nomem();
	capacity = shard->capacity ? shard->capacity + shard->capacity / 2 : FIRST_CAPACITY;
	slots = mw_array_alloc(capacity, sizeof(*slots));
	if (!slots)
		return mw_error_nomem();
	for (uint32_t i = 0; i < shard->capacity; i++) {
		if (shard->slots[i] != 0)
			place(slots, capacity, index->type->hash(index->context, shard->slots[i] - 1), shard->slots[i]);
	}
	mw_array_free(shard->slots, shard->capacity, sizeof(*slots));
	shard->slots = slots;
	shard->capacity = capacity;
	return NULL;
}

void mw_index_put(struct mw_index *index, uint32_t hash, uint32_t id)
{
	struct mw_index_shard *shard = &index->shards[shard_of(hash)];

	place(shard->slots, shard->capacity, hash, id + 1);
	shard->count++;
}

void mw_index_replace(struct mw_index *index, uint32_t hash, const void *key, uint32_t id)
{
	uint32_t *slot = find_slot(index, hash, key);

	if (slot)
		*slot = id + 1;
}

uint64_t mw_index_memory(const struct mw_index *index)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < MW_INDEX_SHARDS; i++)
		bytes += (uint64_t)index->shards[i].capacity * sizeof(uint32_t);
	return bytes;
}
