/* SPDX-License-Identifier: MIT */
/*
 * block_table.h: the live heap blocks by address.
 *
 * 32 bytes a slot, between 1/3 and 3/4 full (1/2 while growing): 43 to 96 bytes a block. In shards that
 * grow and shrink one at a time, so that the old and the new array of all blocks never stand side by side.
 */
#ifndef MW_TRACK_BLOCK_TABLE_H
#define MW_TRACK_BLOCK_TABLE_H

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
/* Is there a block at `addr`? It is copied to `block` unless that is NULL. */
bool mw_block_table_find(const struct mw_block_table *table, mw_addr addr, struct mw_block *block);
/* Let the processor fetch what is needed to find, put in or take out a block at `addr`. */
void mw_block_table_prefetch(const struct mw_block_table *table, mw_addr addr);
/* Put a block in. Where one was at its address already, that one is copied to `old` and *replaced is true. */
struct mw_error *mw_block_table_insert(struct mw_block_table *table, const struct mw_block *block, struct mw_block *old,
				       bool *replaced) MW_MUST_CHECK;
/* Take the block at `addr` out, into `block`; false where there is none. */
bool mw_block_table_remove(struct mw_block_table *table, mw_addr addr, struct mw_block *block);
/* Call `visit` for each block in no order until it returns false; so does this then. */
bool mw_block_table_each(const struct mw_block_table *table,
			 bool (*visit)(const void *context, const struct mw_block *block), const void *context);

#endif
