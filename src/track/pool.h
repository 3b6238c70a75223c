/* SPDX-License-Identifier: MIT */
/*
 * pool.h: elements of one size with small numbers for names.
 *
 * Elements lie in chunks that never move: growing copies nothing, and pointers stay good until the
 * element is given back.
 */
#ifndef MW_TRACK_POOL_H
#define MW_TRACK_POOL_H

#include "base/vector.h"

#include <memwatch/error.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MW_POOL_SHIFT 9
#define MW_POOL_CHUNK (1U << MW_POOL_SHIFT)
#define MW_POOL_NONE  UINT32_MAX

struct mw_pool {
	void **chunks;
	uint32_t chunk_count;
	size_t chunk_capacity;
	uint32_t used;                  /* numbers handed out so far; a number given back is handed out again */
	uint32_t free_head, free_count; /* those given back, linked through their first bytes */
	uint32_t element_size;
};

static inline void *mw_pool_at(const struct mw_pool *pool, uint32_t id)
{
	return (char *)pool->chunks[id >> MW_POOL_SHIFT] + (size_t)(id & (MW_POOL_CHUNK - 1)) * pool->element_size;
}

/* The same, without a look at the size, where many are looked up. */
#define MW_POOL_AT(pool, type, id) ((type *)(pool)->chunks[(id) >> MW_POOL_SHIFT] + ((id) & (MW_POOL_CHUNK - 1)))

/* Make an empty pool of elements of `element_size` (at least 4) bytes. */
static inline void mw_pool_init(struct mw_pool *pool, uint32_t element_size)
{
	*pool = (struct mw_pool){.free_head = MW_POOL_NONE, .element_size = element_size};
}

static inline void mw_pool_deinit(struct mw_pool *pool)
{
	for (uint32_t i = 0; i < pool->chunk_count; i++)
		free(pool->chunks[i]);
	free(pool->chunks);
	mw_pool_init(pool, pool->element_size);
}

static inline struct mw_error *mw_pool_add_chunk(struct mw_pool *pool)
{
	void *chunk;

	if (!MW_VECTOR_ROOM(pool->chunks, pool->chunk_count, pool->chunk_capacity))
		return mw_error_nomem();
	chunk = malloc((size_t)MW_POOL_CHUNK * pool->element_size);
	if (!chunk)
		return mw_error_nomem();
	pool->chunks[pool->chunk_count++] = chunk;
	return NULL;
}

/* Make sure that the next `count` calls of mw_pool_take() cannot fail. */
static inline MW_MUST_CHECK struct mw_error *mw_pool_reserve(struct mw_pool *pool, uint32_t count)
{
	uint64_t wanted;

	if (pool->free_count >= count)
		return NULL;
	wanted = (uint64_t)pool->used + (count - pool->free_count);
	if (wanted >= MW_POOL_NONE - MW_POOL_CHUNK)
		return mw_error_nomem();
	while ((uint64_t)pool->chunk_count << MW_POOL_SHIFT < wanted)
		MW_TRY(mw_pool_add_chunk(pool));
	return NULL;
}

/* Take a zeroed element that mw_pool_reserve() made room for. */
static inline uint32_t mw_pool_take(struct mw_pool *pool)
{
	uint32_t id = pool->free_head;

	if (id == MW_POOL_NONE) {
		id = pool->used++;
	} else {
		memcpy(&pool->free_head, mw_pool_at(pool, id), sizeof(pool->free_head));
		pool->free_count--;
	}
	memset(mw_pool_at(pool, id), 0, pool->element_size);
	return id;
}

/* Give an element back. */
static inline void mw_pool_give(struct mw_pool *pool, uint32_t id)
{
	memcpy(mw_pool_at(pool, id), &pool->free_head, sizeof(pool->free_head));
	pool->free_head = id;
	pool->free_count++;
}

/* Bytes that the pool occupies. */
static inline uint64_t mw_pool_memory(const struct mw_pool *pool)
{
	return (uint64_t)pool->chunk_count * MW_POOL_CHUNK * pool->element_size +
	       pool->chunk_capacity * sizeof(*pool->chunks);
}

#endif
