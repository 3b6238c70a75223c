// SPDX-License-Identifier: MIT
/*
 * known.c: blocks that were allocated in the window (recorder.h): a free of one needs no stack.
 *
 * An entry's place and value together are the block's address: what does not fit that is not kept.
 */
#include "stub/recorder.h"

static bool place(struct mw_ring_control *control, uint64_t block, uint32_t **entry, uint32_t *value)
{
	uint32_t *known = stub_at(control, control->known);
	uint64_t n = block >> 4, rest = n >> __builtin_ctz(control->known_count);

	*entry = &known[n & (control->known_count - 1)];
	*value = (uint32_t)rest + 1;
	return likely(!(block & 15) && rest < UINT32_MAX);
}

void stub_known_add(struct mw_ring_control *control, uint64_t block)
{
	uint32_t *entry, value;

	if (place(control, block, &entry, &value))
		__atomic_store_n(entry, value, __ATOMIC_RELAXED);
}

bool stub_known_take(struct mw_ring_control *control, uint64_t block)
{
	uint32_t *entry, value;

	if (!place(control, block, &entry, &value) || __atomic_load_n(entry, __ATOMIC_RELAXED) != value)
		return false;
	__atomic_store_n(entry, 0, __ATOMIC_RELAXED);
	return true;
}
