/* SPDX-License-Identifier: MIT */
/*
 * sampled_set.h: which blocks that were recorded in a sampled window live: for the recorder, which asks at each free, and
 * for memwatch, which adds what was recorded before a window went over to sampling. Freestanding.
 *
 * The filter has a byte for each hash of an address, which counts the blocks: where it is 0, which is nearly everywhere,
 * the block was not recorded; the assembly looks no further. Else the block is in one of two buckets of the set, or it
 * is not. Where both are full when it comes, its byte of the filter stays at its highest for ever, and all frees that
 * find that are recorded: memwatch knows which of them it wants.
 */
#ifndef MW_STUB_SAMPLED_SET_H
#define MW_STUB_SAMPLED_SET_H

#include <memwatch/ring.h>

#include <stdbool.h>

#define SAMPLED_TRIES 256 /* at a byte that others change: no program makes it take more */

enum sampled { NOT_SAMPLED, SAMPLED, MAYBE_SAMPLED /* that was too much to remember */ };

static inline uint8_t *sampled_filter(struct mw_ring_control *control, uint64_t block)
{
	return (uint8_t *)control + control->filter + mw_ring_filter_at(block);
}

/* Where it is contended for too long the count is not known any more. */
static inline void sampled_count(uint8_t *byte, int change)
{
	uint8_t now = __atomic_load_n(byte, __ATOMIC_RELAXED);

	for (unsigned i = 0; i < SAMPLED_TRIES && now != MW_RING_FILTER_STICKY; i++)
		if (__atomic_compare_exchange_n(byte, &now, (uint8_t)(now + change), false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return;
	__atomic_store_n(byte, MW_RING_FILTER_STICKY, __ATOMIC_RELEASE);
}

/* Exchange one `old` in the block's buckets for `new`. */
static inline bool sampled_exchange(struct mw_ring_control *control, uint64_t block, uint64_t old, uint64_t new)
{
	uint64_t *set = (uint64_t *)(void *)((uint8_t *)control + control->set);

	for (unsigned which = 0; which < 2; which++) {
		uint64_t *bucket = set + (uint64_t)mw_ring_bucket(block, which) * MW_RING_BUCKET;

		for (unsigned i = 0; i < MW_RING_BUCKET; i++) {
			uint64_t found = old;

			if (__atomic_load_n(&bucket[i], __ATOMIC_RELAXED) == old &&
			    __atomic_compare_exchange_n(&bucket[i], &found, new, false, __ATOMIC_ACQ_REL,
							__ATOMIC_RELAXED))
				return true;
		}
	}
	return false;
}

/* A block has come to be: before anybody can free it. */
static inline void sampled_add(struct mw_ring_control *control, uint64_t block)
{
	uint8_t *byte = sampled_filter(control, block);

	sampled_count(byte, 1);
	if (!sampled_exchange(control, block, 0, block))
		__atomic_store_n(byte, MW_RING_FILTER_STICKY, __ATOMIC_RELEASE);
}

static inline bool sampled_has(const struct mw_ring_control *control, uint64_t block)
{
	const uint64_t *set = (const uint64_t *)(const void *)((const uint8_t *)control + control->set);

	for (unsigned i = 0; i < 2 * MW_RING_BUCKET; i++)
		if (__atomic_load_n(&set[(uint64_t)mw_ring_bucket(block, i / MW_RING_BUCKET) * MW_RING_BUCKET +
					 i % MW_RING_BUCKET],
				    __ATOMIC_RELAXED) == block)
			return true;
	return false;
}

/* A block goes: was it there? */
static inline enum sampled sampled_take(struct mw_ring_control *control, uint64_t block)
{
	uint8_t *byte = sampled_filter(control, block), now = __atomic_load_n(byte, __ATOMIC_RELAXED);

	if (!now)
		return NOT_SAMPLED;
	if (!sampled_exchange(control, block, block, 0))
		return now == MW_RING_FILTER_STICKY ? MAYBE_SAMPLED : NOT_SAMPLED;
	sampled_count(byte, -1);
	return SAMPLED;
}

#endif
