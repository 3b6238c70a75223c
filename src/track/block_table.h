/* SPDX-License-Identifier: MIT */
/*
 * block_table.h: the live heap blocks by address.
 *
 * 32 bytes a slot, between 1/3 and 3/4 full (1/2 while growing): 43 to 96 bytes a block. In shards that
 * grow and shrink one at a time, so that the old and the new array of all blocks never stand side by side.
 */
#ifndef MW_TRACK_BLOCK_TABLE_H
#define MW_TRACK_BLOCK_TABLE_H

#include "base/hash.h"

#include <memwatch/error.h>
#include <memwatch/types.h>

struct mw_block {
	mw_addr addr; /* never 0 in the table */
	uint64_t bytes;
	uint64_t time_ns;
	uint32_t stack;
	uint32_t thread; /* with MW_THREAD_OLDER where it is so */
};

#define MW_BLOCK_SHARDS 256U

/* A block under the hash of its address, which no other address has: nothing need be hashed again to move it. */
struct mw_block_slot {
	uint64_t hash; /* 0: empty */
	uint64_t bytes;
	uint64_t time_ns;
	uint32_t stack, thread;
};

struct mw_block_shard {
	struct mw_block_slot *slots;
	uint32_t capacity, count;
};

/* Zero-initialise; mw_block_table_deinit frees. */
struct mw_block_table {
	struct mw_block_shard shards[MW_BLOCK_SHARDS];
};

void mw_block_table_deinit(struct mw_block_table *table);
/* Call `visit` for each block in no order until it returns false; so does this then. */
bool mw_block_table_each(const struct mw_block_table *table,
			 bool (*visit)(const void *context, const struct mw_block *block), const void *context);

/* Make room for one more; take room away of which there is too much. For the functions below. */
struct mw_error *mw_block_shard_grow(struct mw_block_shard *shard) MW_MUST_CHECK MW_COLD;
void mw_block_shard_shrink(struct mw_block_shard *shard) MW_COLD;

#define MW_BLOCK_FIRST_CAPACITY 16U

/* The shard is chosen by the hash's top bits, the place in it by bits further down. */
static inline struct mw_block_shard *mw_block_shard_of(const struct mw_block_table *table, uint64_t hash)
{
	return (struct mw_block_shard *)&table->shards[hash >> 56];
}

static inline uint32_t mw_block_home_of(uint64_t hash, uint32_t capacity)
{
	return mw_hash_place((uint32_t)(hash >> 24), capacity);
}

static inline uint32_t mw_block_next(const struct mw_block_shard *shard, uint32_t at)
{
	return at + 1 == shard->capacity ? 0 : at + 1;
}

static inline struct mw_block mw_block_of(const struct mw_block_slot *slot)
{
	return (struct mw_block){mw_hash_unmix(slot->hash), slot->bytes, slot->time_ns, slot->stack, slot->thread};
}

/* The slot of that hash, or the empty one where it would go. The shard has an empty slot. */
static inline struct mw_block_slot *mw_block_slot_of(const struct mw_block_shard *shard, uint64_t hash)
{
	uint32_t at = mw_block_home_of(hash, shard->capacity);

	while (shard->slots[at].hash != hash && shard->slots[at].hash != 0)
		at = mw_block_next(shard, at);
	return &shard->slots[at];
}

/* Is there a block at `addr`? It is copied to `block` unless that is NULL. */
static inline bool mw_block_table_find(const struct mw_block_table *table, mw_addr addr, struct mw_block *block)
{
	uint64_t hash = mw_hash_mix(addr);
	const struct mw_block_shard *shard = mw_block_shard_of(table, hash);
	const struct mw_block_slot *slot;

	if (shard->count == 0 || addr == 0)
		return false;
	slot = mw_block_slot_of(shard, hash);
	if (slot->hash == 0)
		return false;
	if (block)
		*block = mw_block_of(slot);
	return true;
}

/* Let the processor fetch what is needed to find, put in or take out a block at `addr`. Not a function of its own: gcc
 * takes a call that only fetches for one without effects. */
static inline __attribute__((always_inline)) void mw_block_table_prefetch(const struct mw_block_table *table,
									  mw_addr addr)
{
	uint64_t hash = mw_hash_mix(addr);
	const struct mw_block_shard *shard = mw_block_shard_of(table, hash);

	if (shard->capacity != 0) {
		const struct mw_block_slot *home = &shard->slots[mw_block_home_of(hash, shard->capacity)];

		/* It is seldom further away than in the next line of the cache. */
		__builtin_prefetch(home, 1);
		__builtin_prefetch(home + 2, 1);
	}
}

/* Put a block in. Where one was at its address already, that one is copied to `old` and *replaced is true. */
static inline MW_MUST_CHECK struct mw_error *
mw_block_table_insert(struct mw_block_table *table, const struct mw_block *block, struct mw_block *old, bool *replaced)
{
	uint64_t hash = mw_hash_mix(block->addr);
	struct mw_block_shard *shard = mw_block_shard_of(table, hash);
	struct mw_block_slot *slot;

	if (__builtin_expect(shard->count >= shard->capacity / 4 * 3, 0))
		MW_TRY(mw_block_shard_grow(shard));
	slot = mw_block_slot_of(shard, hash);
	*replaced = slot->hash != 0;
	if (__builtin_expect(*replaced, 0))
		*old = mw_block_of(slot);
	else
		shard->count++;
	*slot = (struct mw_block_slot){hash, block->bytes, block->time_ns, block->stack, block->thread};
	return NULL;
}

/* Close the hole at `hole`: pull back every block behind it that would no longer be found across it. */
static inline void mw_block_close_hole(struct mw_block_shard *shard, uint32_t hole)
{
	uint32_t capacity = shard->capacity;

	for (uint32_t at = mw_block_next(shard, hole); shard->slots[at].hash != 0; at = mw_block_next(shard, at)) {
		uint32_t home = mw_block_home_of(shard->slots[at].hash, capacity);
		uint32_t from_home = at >= home ? at - home : at + capacity - home;
		uint32_t from_hole = at >= hole ? at - hole : at + capacity - hole;

		if (from_home >= from_hole) {
			shard->slots[hole] = shard->slots[at];
			hole = at;
		}
	}
	shard->slots[hole].hash = 0;
}

/* Take the block at `addr` out, into `block`; false where there is none. */
static inline bool mw_block_table_remove(struct mw_block_table *table, mw_addr addr, struct mw_block *block)
{
	uint64_t hash = mw_hash_mix(addr);
	struct mw_block_shard *shard = mw_block_shard_of(table, hash);
	struct mw_block_slot *slot;

	if (shard->count == 0 || addr == 0)
		return false;
	slot = mw_block_slot_of(shard, hash);
	if (slot->hash == 0)
		return false;
	*block = (struct mw_block){addr, slot->bytes, slot->time_ns, slot->stack, slot->thread};
	mw_block_close_hole(shard, (uint32_t)(slot - shard->slots));
	shard->count--;
	if (__builtin_expect(shard->count < shard->capacity / 3 && shard->capacity > MW_BLOCK_FIRST_CAPACITY, 0))
		mw_block_shard_shrink(shard);
	return true;
}

#endif
