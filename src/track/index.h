/* SPDX-License-Identifier: MIT */
/*
 * index.h: finds the number of an element by its contents.
 *
 * Holds numbers only; the elements live elsewhere (in a pool). In shards that grow one at a time, so
 * that growing never needs much more than the index itself. Nothing is ever taken out.
 */
#ifndef MW_TRACK_INDEX_H
#define MW_TRACK_INDEX_H

#include <memwatch/error.h>

#include <stdbool.h>
#include <stdint.h>

#define MW_INDEX_SHARD_BITS 6
#define MW_INDEX_SHARDS     (1U << MW_INDEX_SHARD_BITS)
#define MW_INDEX_NONE       UINT32_MAX

struct mw_index_type {
	uint32_t (*hash)(const void *context, uint32_t id);
	bool (*matches)(const void *context, uint32_t id, const void *key);
};

struct mw_index_shard {
	uint32_t *slots; /* number + 1; 0 is empty */
	uint32_t capacity, count;
};

struct mw_index {
	const struct mw_index_type *type;
	const void *context;
	struct mw_index_shard shards[MW_INDEX_SHARDS];
};

/* Make an empty index; `context` goes to the type's functions and must outlive it. */
void mw_index_init(struct mw_index *index, const struct mw_index_type *type, const void *context);
void mw_index_deinit(struct mw_index *index);
/* The number of the element that matches `key`, whose hash is `hash`, or MW_INDEX_NONE. */
uint32_t mw_index_find(const struct mw_index *index, uint32_t hash, const void *key);
/* Make sure that the next mw_index_put() of this hash cannot fail. */
struct mw_error *mw_index_reserve(struct mw_index *index, uint32_t hash) MW_MUST_CHECK;
/* Add a number for which mw_index_reserve() made room. */
void mw_index_put(struct mw_index *index, uint32_t hash, uint32_t id);
/* Let `id` stand for what matched `key` before (it must be there). */
void mw_index_replace(struct mw_index *index, uint32_t hash, const void *key, uint32_t id);
/* Bytes behind the index. */
uint64_t mw_index_memory(const struct mw_index *index);

#endif
