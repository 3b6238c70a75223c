/* SPDX-License-Identifier: MIT */
/* shared.h: where things are in the memory that is shared with a target (memwatch/ring.h), as memwatch laid it out:
 * what the target may write there since is not asked for it. */
#ifndef MW_ENGINE_JUMP_SHARED_H
#define MW_ENGINE_JUMP_SHARED_H

#include <memwatch/error.h>
#include <memwatch/ring.h>

#include <stddef.h>

/* So many stacks of a window may take the slow road, and beyond that one in JUMP_SLOW_SHARE: memwatch walks it at a
 * thousand times the cost of the recorder. */
#define JUMP_SLOW_FREE  64u
#define JUMP_SLOW_SHARE 100u

struct jump_geometry {
	uint32_t slot_count, ring_count, ring_units, queue_count, depth, stack_count, known_count, cache_count;
	uint64_t slots, queue, scratch, memos, stacks, known, cache, dictionary, learned, rings; /* offsets */
	uint64_t dictionary_capacity;                                                            /* rows */
	uint64_t rows, rows_end; /* space for rows and indices */
	uint64_t size;
};

struct jump_shared {
	uint8_t *base;
	struct jump_geometry geometry;
};

/* Plan the layout for a process with `threads` threads and `rows_bytes` of rows to begin with. At most 64 MiB for 16
 * threads. */
void jump_geometry_plan(struct jump_geometry *geometry, size_t threads, uint32_t depth, uint64_t rows_bytes);
/* Write the control block of zeroed memory, and offer the first `rings` rings. */
void jump_shared_format(const struct jump_shared *shared, uint32_t rings);

static inline struct mw_ring_control *jump_control(const struct jump_shared *shared)
{
	return (struct mw_ring_control *)(void *)shared->base;
}

static inline struct mw_ring_slot *jump_slot(const struct jump_shared *shared, uint32_t number)
{
	return (struct mw_ring_slot *)(void *)(shared->base + shared->geometry.slots) + number;
}

static inline uint32_t *jump_queue(const struct jump_shared *shared)
{
	return (uint32_t *)(void *)(shared->base + shared->geometry.queue);
}

/* The first record of a ring. */
static inline struct mw_ring_record *jump_ring(const struct jump_shared *shared, uint32_t ring)
{
	return (struct mw_ring_record *)(void *)(shared->base + shared->geometry.rings) +
	       (uint64_t)ring * shared->geometry.ring_units;
}

#endif
