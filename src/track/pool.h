/* SPDX-License-Identifier: MIT */
/*
 * pool.h: elements of one size with small numbers for names.
 *
 * Elements lie in chunks that never move: growing copies nothing, and pointers stay good until the
 * element is given back.
 */
#ifndef MW_TRACK_POOL_H
#define MW_TRACK_POOL_H

#include <memwatch/error.h>

#include <stddef.h>
#include <stdint.h>

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

/* Make an empty pool of elements of `element_size` (at least 4) bytes. */
void mw_pool_init(struct mw_pool *pool, uint32_t element_size);
void mw_pool_deinit(struct mw_pool *pool);
/* Make sure that the next `count` calls of mw_pool_take() cannot fail. */
struct mw_error *mw_pool_reserve(struct mw_pool *pool, uint32_t count) MW_MUST_CHECK;
/* Take a zeroed element that mw_pool_reserve() made room for. */
uint32_t mw_pool_take(struct mw_pool *pool);
/* Give an element back. */
void mw_pool_give(struct mw_pool *pool, uint32_t id);
/* Bytes that the pool occupies. */
uint64_t mw_pool_memory(const struct mw_pool *pool);

static inline void *mw_pool_at(const struct mw_pool *pool, uint32_t id)
{
	return (char *)pool->chunks[id >> MW_POOL_SHIFT] + (size_t)(id & (MW_POOL_CHUNK - 1)) * pool->element_size;
}

#endif
