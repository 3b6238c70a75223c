// SPDX-License-Identifier: MIT
/*
 * ask.c: what the recorder asks: which memory around a stack pointer may be read (jump.h).
 *
 * The answer holds as long as the thread runs on that stack: from the stack pointer up all is the thread's own. A
 * mapping that ends later than the stack does (a coroutine's in the heap) could lose its end to others while the thread
 * runs; so what is unmapped is taken out of the answers.
 */
#include "engine/jump/jump.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

#define GROWTH (UINT64_C(64) << 20) /* a main stack may have grown by so much since it was looked at */
#define GUARD  (UINT64_C(1) << 20)  /* … but not nearer than this to what lies below it */

static bool find_region(const struct mw_maps *maps, mw_addr sp, mw_addr thread, struct mw_ring_region *out)
{
	const struct mw_mapping *mapping = mw_maps_find(maps, sp);
	mw_addr below = 0;

	if (!mapping || !mapping->read || !mapping->write)
		return false;
	*out = (struct mw_ring_region){mapping->start, mapping->end};
	/* A pthread's stack lies below its control block, whatever else has been mapped right behind that. */
	if (thread > sp && thread < mapping->end)
		out->high = thread;
	if (strcmp(mapping->path, "[stack]") != 0)
		return true;
	if (mapping > maps->items)
		below = mapping[-1].end + GUARD;
	if (below < out->low)
		out->low = below > out->low - GROWTH ? below : out->low - GROWTH;
	return true;
}

static void answer(struct mw_ring_slot *slot, const struct mw_maps *maps, uint32_t asked)
{
	uint64_t address = __atomic_load_n(&slot->ask_address, __ATOMIC_RELAXED);
	struct mw_ring_region region;

	if (find_region(maps, address, __atomic_load_n(&slot->owner, __ATOMIC_RELAXED), &region)) {
		uint32_t number = slot->next_region++ % MW_RING_REGIONS;

		/* Never a state in which low and high of different regions are together. */
		__atomic_store_n(&slot->regions[number].high, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&slot->regions[number].low, region.low, __ATOMIC_RELEASE);
		__atomic_store_n(&slot->regions[number].high, region.high, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&slot->answered, asked, __ATOMIC_RELEASE);
}

struct mw_error *jump_answer(struct jump_process *process)
{
	uint32_t asks = __atomic_load_n(&jump_control(&process->shared)->asks, __ATOMIC_ACQUIRE);
	struct mw_maps maps = {0};
	bool read = false;

	if (asks == process->asks_seen)
		return NULL;
	process->asks_seen = asks;

	for (uint32_t i = 0; i < process->shared.geometry.slot_count; i++) {
		struct mw_ring_slot *slot = jump_slot(&process->shared, i);
		uint32_t asked = __atomic_load_n(&slot->asked, __ATOMIC_ACQUIRE);

		if (asked == slot->answered || __atomic_load_n(&slot->owner, __ATOMIC_RELAXED) <= MW_RING_TOMB)
			continue;
		if (!read) {
			struct mw_error *err = mw_maps_read(jump_live_tid(process), &maps);

			if (err) {
				/* It has ended, which is found out elsewhere. */
				mw_error_destroy(err);
				break;
			}
			read = true;
		}
		answer(slot, &maps, asked);
	}
	mw_maps_deinit(&maps);
	return NULL;
}

void jump_forget_region(struct jump_process *process, mw_addr start, mw_addr end)
{
	for (uint32_t i = 0; i < process->shared.geometry.slot_count; i++) {
		struct mw_ring_slot *slot = jump_slot(&process->shared, i);

		if (__atomic_load_n(&slot->owner, __ATOMIC_RELAXED) <= MW_RING_TOMB)
			continue;
		for (unsigned j = 0; j < MW_RING_REGIONS; j++) {
			struct mw_ring_region *region = &slot->regions[j];

			if (region->low < end && start < region->high)
				__atomic_store_n(&region->high, 0, __ATOMIC_RELEASE);
		}
	}
}
