// SPDX-License-Identifier: MIT
/* pool.c: numbered elements in chunks (pool.h). */
#include "track/pool.h"

#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

void mw_pool_init(struct mw_pool *pool, uint32_t element_size)
{
	*pool = (struct mw_pool){.free_head = MW_POOL_NONE, .element_size = element_size};
}

void mw_pool_deinit(struct mw_pool *pool)
{
	for (uint32_t i = 0; i < pool->chunk_count; i++)
		free(pool->chunks[i]);
	free(pool->chunks);
	mw_pool_init(pool, pool->element_size);
}

static struct mw_error *add_chunk(struct mw_pool *pool)
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

struct mw_error *mw_pool_reserve(struct mw_pool *pool, uint32_t count)
{
	uint64_t wanted;

	if (pool->free_count >= count)
		return NULL;
	wanted = (uint64_t)pool->used + (count - pool->free_count);
	if (wanted >= MW_POOL_NONE - MW_POOL_CHUNK)
		return mw_error_nomem();
	while ((uint64_t)pool->chunk_count << MW_POOL_SHIFT < wanted)
		MW_TRY(add_chunk(pool));
	return NULL;
}

uint32_t mw_pool_take(struct mw_pool *pool)
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

void mw_pool_give(struct mw_pool *pool, uint32_t id)
{
	memcpy(mw_pool_at(pool, id), &pool->free_head, sizeof(pool->free_head));
	pool->free_head = id;
	pool->free_count++;
}

uint64_t mw_pool_memory(const struct mw_pool *pool)
{
	return (uint64_t)pool->chunk_count * MW_POOL_CHUNK * pool->element_size +
	       pool->chunk_capacity * sizeof(*pool->chunks);
}
