// SPDX-License-Identifier: MIT
/* block_table.c: sharded linear probing with backward-shift deletion (block_table.h). */
#include "track/block_table.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FIRST_CAPACITY 16U

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

/* The shard is chosen by the hash's top bits, the place in it by bits further down. */
static uint32_t shard_of(uint64_t hash)
{
	return (uint32_t)(hash >> 56);
}

static uint32_t home_of(uint64_t hash, uint32_t capacity)
{
	return mw_hash_place((uint32_t)(hash >> 24), capacity);
}

static uint32_t next_of(const struct mw_block_shard *shard, uint32_t at)
{
	return at + 1 == shard->capacity ? 0 : at + 1;
}

static struct mw_block block_of(const struct mw_block_slot *slot)
{
	return (struct mw_block){mw_hash_unmix(slot->hash), slot->bytes, slot->time_ns, slot->stack, slot->thread};
}

/* The slot of that hash, or the empty one where it would go. The shard has an empty slot. */
static struct mw_block_slot *slot_of(const struct mw_block_shard *shard, uint64_t hash)
{
	uint32_t at = home_of(hash, shard->capacity);

	while (shard->slots[at].hash != hash && shard->slots[at].hash != 0)
		at = next_of(shard, at);
	return &shard->slots[at];
}

static bool resize(struct mw_block_shard *shard, uint32_t capacity)
{
	struct mw_block_shard to = {array_alloc(capacity, sizeof(*to.slots)), capacity, shard->count};

	if (!to.slots)
		return false;
	for (uint32_t i = 0; i < shard->capacity; i++) {
		const struct mw_block_slot *slot = &shard->slots[i];

		if (slot->hash != 0)
			*slot_of(&to, slot->hash) = *slot;
	}
	array_free(shard->slots, shard->capacity, sizeof(*shard->slots));
	*shard = to;
	return true;
}

static struct mw_error *make_room(struct mw_block_shard *shard)
{
	uint32_t capacity = shard->capacity ? shard->capacity + shard->capacity / 2 : FIRST_CAPACITY;

	if (shard->count < shard->capacity / 4 * 3)
		return NULL;
	if (capacity < shard->capacity || !resize(shard, capacity))
		return mw_error_nomem();
	return NULL;
}

bool mw_block_table_find(const struct mw_block_table *table, mw_addr addr, struct mw_block *block)
{
	uint64_t hash = mw_hash_mix(addr);
	const struct mw_block_shard *shard = &table->shards[shard_of(hash)];
	const struct mw_block_slot *slot;

	if (shard->count == 0 || addr == 0)
		return false;
	slot = slot_of(shard, hash);
	if (slot->hash == 0)
		return false;
	if (block)
		*block = block_of(slot);
	return true;
}

void mw_block_table_prefetch(const struct mw_block_table *table, mw_addr addr)
{
	uint64_t hash = mw_hash_mix(addr);
	const struct mw_block_shard *shard = &table->shards[shard_of(hash)];

	if (shard->capacity != 0)
		__builtin_prefetch(&shard->slots[home_of(hash, shard->capacity)], 1);
}

struct mw_error *mw_block_table_insert(struct mw_block_table *table, const struct mw_block *block, struct mw_block *old,
				       bool *replaced)
{
	uint64_t hash = mw_hash_mix(block->addr);
	struct mw_block_shard *shard = &table->shards[shard_of(hash)];
	struct mw_block_slot *slot;

	MW_TRY(make_room(shard));
	slot = slot_of(shard, hash);
	*replaced = slot->hash != 0;
	if (*replaced)
		*old = block_of(slot);
	else
		shard->count++;
	*slot = (struct mw_block_slot){hash, block->bytes, block->time_ns, block->stack, block->thread};
	return NULL;
}

/* Close the hole at `hole`: pull back every block behind it that would no longer be found across it. */
static void close_hole(struct mw_block_shard *shard, uint32_t hole)
{
	uint32_t capacity = shard->capacity;

	for (uint32_t at = next_of(shard, hole); shard->slots[at].hash != 0; at = next_of(shard, at)) {
		uint32_t home = home_of(shard->slots[at].hash, capacity);
		uint32_t from_home = at >= home ? at - home : at + capacity - home;
		uint32_t from_hole = at >= hole ? at - hole : at + capacity - hole;

		if (from_home >= from_hole) {
			shard->slots[hole] = shard->slots[at];
			hole = at;
		}
	}
	shard->slots[hole].hash = 0;
}

bool mw_block_table_remove(struct mw_block_table *table, mw_addr addr, struct mw_block *block)
{
	uint64_t hash = mw_hash_mix(addr);
	struct mw_block_shard *shard = &table->shards[shard_of(hash)];
	struct mw_block_slot *slot;

	if (shard->count == 0 || addr == 0)
		return false;
	slot = slot_of(shard, hash);
	if (slot->hash == 0)
		return false;
	*block = (struct mw_block){addr, slot->bytes, slot->time_ns, slot->stack, slot->thread};
	close_hole(shard, (uint32_t)(slot - shard->slots));
	shard->count--;
	/* Without memory for the smaller array the larger one serves on. */
	if (shard->capacity > FIRST_CAPACITY && shard->count < shard->capacity / 3)
		(void)resize(shard, shard->capacity / 3 * 2);
	return true;
}

bool mw_block_table_each(const struct mw_block_table *table,
			 bool (*visit)(const void *context, const struct mw_block *block), const void *context)
{
	for (uint32_t i = 0; i < MW_BLOCK_SHARDS; i++) {
		const struct mw_block_shard *shard = &table->shards[i];

		for (uint32_t j = 0; j < shard->capacity; j++) {
			struct mw_block block = block_of(&shard->slots[j]);

			if (block.addr != 0 && !visit(context, &block))
				return false;
		}
	}
	return true;
}
