/* SPDX-License-Identifier: MIT */
/*
 * replaced.h: which stack's new block took the place of a block that was freed.
 *
 * A ring, an LRU cache or a growing container frees an old block in the call in which it allocates a new one. Of blocks
 * from before the window the allocating stack is not known; what the thread allocated right before or after the free
 * tells it. A block takes the place of another where
 * - it is realloc's new block;
 * - the same thread allocated it within the last or next NEAR calls, and both have the same usable size (a slot of a
 *   ring, an entry of a cache); or the allocation comes right before or after, and the sizes are not too different: the
 *   storage of a container, entries of any size;
 * - the freed block was allocated in the window by the same stack.
 * What a function frees of older blocks again and again where it allocates is its own: mw_track_find_kin tells whose, by the
 * stacks of both calls, whatever comes between them.
 * Each new block takes the place of one other at most. Where blocks of several stacks could have taken a place the
 * choice is ambiguous, and counted as such.
 */
#ifndef MW_TRACK_REPLACED_H
#define MW_TRACK_REPLACED_H

#include "track/tally.h"

#define MW_RECENT 8u /* allocations that are remembered for each thread, and frees */

struct mw_recent_call {
	mw_addr addr; /* of an allocation */
	uint64_t bytes;
	uint32_t
		stack; /* of an allocation that took no place; of a free: that took its place; MW_STACK_NONE: neither */
	uint32_t call; /* number among the thread's calls */
};

/* The latest calls of a thread. Zero-initialise. */
struct mw_recent {
	struct mw_recent_call allocations[MW_RECENT], frees[MW_RECENT]; /* frees: of older blocks */
	struct mw_recent_call own_free; /* the latest of a block of the window; `stack` allocated it */
	uint32_t calls;
	uint8_t next_allocation, next_free;
	uint8_t free_count;
};

/*
 * What blocks of a stack took the place of. Of a stack whose calls only free, which took no place (`count` is 0): the blocks from
 * before the window that they freed; `older` is of older_count then, and older_bytes of those whose size is known.
 * Zero-initialise; mw_replaced_deinit frees.
 */
struct mw_replaced {
	struct mw_series older; /* of older_bytes */
	uint64_t older_bytes;   /* of blocks from before the window: usable, or, where not known, the new block's */
	uint64_t older_count, unknown;
	uint64_t count, larger; /* of all: how many, and where the new block is larger than the old one */
	uint64_t ambiguous;     /* of older_count */
};

void mw_replaced_deinit(struct mw_replaced *replaced);

struct mw_track;
struct mw_block;

/* A block was allocated, not by a realloc that took another. Errors: MEMORY. */
struct mw_error *mw_replaced_alloc(struct mw_track *track, uint32_t thread, const struct mw_block *block) MW_MUST_CHECK;
/* A block that was allocated in the window was freed. Errors: MEMORY. */
struct mw_error *mw_replaced_free(struct mw_track *track, uint32_t thread, const struct mw_block *block) MW_MUST_CHECK;
/* A block from before the window was freed by a call with that stack; bytes: usable, or MW_SIZE_UNKNOWN. Errors: MEMORY. */
struct mw_error *mw_replaced_free_older(struct mw_track *track, uint32_t thread, uint32_t stack,
					uint64_t bytes) MW_MUST_CHECK;
/* realloc gave a block of `bytes` for one of `old_bytes`; `older`: from before the window. Errors: MEMORY. */
struct mw_error *mw_replaced_realloc(struct mw_track *track, uint32_t stack, uint64_t bytes, uint64_t old_bytes,
				     bool older) MW_MUST_CHECK;

/* What glibc's malloc gives for `bytes`. */
static inline uint64_t mw_replaced_usable(uint64_t bytes)
{
	if (bytes <= 24)
		return 24;
	/* Large blocks are mappings of whole pages. */
	if (bytes >= (128u << 10))
		return ((bytes + 16 + 4095) & ~UINT64_C(4095)) - 16;
	return ((bytes + 8 + 15) & ~UINT64_C(15)) - 8;
}

/*
 * Classes of sizes: one for each usable size up to 128, then eight to the power of two; 0: not known. All heap blocks that
 * are allocated and freed, older ones included, are counted by them.
 */
#define MW_SIZE_CLASSES (9u + 8u * 57u)

static inline uint32_t mw_size_class(uint64_t usable)
{
	uint32_t octave;

	if (usable == MW_SIZE_UNKNOWN)
		return 0;
	if (usable <= 128)
		return (uint32_t)((usable + 15) / 16) ? (uint32_t)((usable + 15) / 16) : 1;
	octave = 63 - (uint32_t)__builtin_clzll(usable);
	return 9 + (octave - 7) * 8 + (uint32_t)((usable >> (octave - 3)) & 7);
}

/*
 * Usable bytes (of unknown sizes: blocks). Summed up with every event; series are brought up to date when a moment is
 * over. Zero-initialise; mw_class_flows_deinit frees.
 */
struct mw_class_flows {
	uint64_t born[MW_SIZE_CLASSES], gone[MW_SIZE_CLASSES];
	uint64_t older[MW_SIZE_CLASSES]; /* of those gone: from before the window */
	struct mw_series born_series[MW_SIZE_CLASSES], gone_series[MW_SIZE_CLASSES], older_series[MW_SIZE_CLASSES];
};

static inline void mw_class_flow_add(uint64_t *flow, uint64_t usable)
{
	flow[mw_size_class(usable)] += usable == MW_SIZE_UNKNOWN ? 1 : usable;
}

void mw_class_flows_deinit(struct mw_class_flows *flows);
/* The clock has advanced. Errors: MEMORY. */
struct mw_error *mw_class_flows_follow(struct mw_class_flows *flows, const struct mw_series_clock *clock) MW_MUST_CHECK;
/* Bytes behind the structure. */
uint64_t mw_class_flows_memory(const struct mw_class_flows *flows);

#endif
