// SPDX-License-Identifier: MIT
/* block_table.c: sharded linear probing with backward-shift deletion (block_table.h). */
#include "track/block_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/*
 * From this size on an array is a mapping of its own. Hundreds of shards that outgrow their arrays at about
 * the same time would leave the heap full of holes of the old size, too small for the new one.
 */
#define MAP_FROM ((size_t)64 * 1024)

static void *array_alloc(size_t count, size_t size)
{
	void *array;

	if (size != 0 && count > SIZE_MAX / size)
		return NULL;
	if (count * size < MAP_FROM)
		return calloc(count, size);
	array = mmap(NULL, count * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return array == MAP_FAILED ? NULL : array;
}

static void array_free(void *array, size_t count, size_t size)
{
	if (!array)
		return;
	if (count * size < MAP_FROM)
		free(array);
	else
		munmap(array, count * size);
}

void mw_block_table_deinit(struct mw_block_table *table)
{
	for (uint32_t i = 0; i < MW_BLOCK_SHARDS; i++) {
		struct mw_block_shard *shard = &table->shards[i];

		array_free(shard->slots, shard->capacity, sizeof(*shard->slots));
	}
	memset(table, 0, sizeof(*table));
}

static bool resize(struct mw_block_shard *shard, uint32_t capacity)
{
	struct mw_block_shard to = {array_alloc(capacity, sizeof(*to.slots)), capacity, shard->count};

	if (!to.slots)
		return false;
	for (uint32_t i = 0; i < shard->capacity; i++) {
		const struct mw_block_slot *slot = &shard->slots[i];

		if (slot->hash != 0)
			*mw_block_slot_of(&to, slot->hash) = *slot;
	}
	array_free(shard->slots, shard->capacity, sizeof(*shard->slots));
	*shard = to;
	return true;
}

struct mw_error *mw_block_shard_grow(struct mw_block_shard *shard)
{
	uint32_t capacity = shard->capacity ? shard->capacity + shard->capacity / 2 : MW_BLOCK_FIRST_CAPACITY;

	if (capacity < shard->capacity || !resize(shard, capacity))
		return mw_error_nomem();
	return NULL;
}

void mw_block_shard_shrink(struct mw_block_shard *shard)
{
	/* Without memory for the smaller array the larger one serves on. */
	(void)resize(shard, shard->capacity / 3 * 2);
}

bool mw_block_table_each(const struct mw_block_table *table,
			 bool (*visit)(const void *context, const struct mw_block *block), const void *context)
{
	for (uint32_t i = 0; i < MW_BLOCK_SHARDS; i++) {
		const struct mw_block_shard *shard = &table->shards[i];

		for (uint32_t j = 0; j < shard->capacity; j++) {
			struct mw_block block = mw_block_of(&shard->slots[j]);

			if (block.addr != 0 && !visit(context, &block))
				return false;
		}
	}
	return true;
}
