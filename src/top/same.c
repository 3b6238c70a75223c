// SPDX-License-Identifier: MIT
/* same.c: see same.h. */
#include "top/same.h"

#include "base/clock.h"
#include "base/hash.h"

#include <string.h>

#define LOOK_NS UINT64_C(1000000000)

void mw_top_same_deinit(struct mw_top_same *same)
{
	mw_map_deinit(&same->first);
}

static mw_addr address_of(const struct mw_raw_frame *frame)
{
	return frame->module == MW_MODULE_NONE ? 0 : frame->addr;
}

static uint64_t hash_of(const struct mw_top_stack *stack)
{
	uint64_t hash = mw_hash_add((uint64_t)stack->kind << 8 | (uint64_t)stack->cut, stack->frame_count);

	for (uint32_t i = 0; i < stack->frame_count; i++)
		hash = mw_hash_add(mw_hash_add(hash, address_of(&stack->frames[i])), stack->frames[i].module);
	return hash;
}

static bool has_code(const struct mw_top_stack *stack)
{
	for (uint32_t i = stack->frame_count; i-- > 0;)
		if (stack->frames[i].module == MW_MODULE_NONE)
			return true;
	return false;
}

static bool equal(const struct mw_top_stack *a, const struct mw_top_stack *b)
{
	bool same_api = a->api == b->api || (a->api && b->api && strcmp(a->api, b->api) == 0);

	if (a->kind != b->kind || a->cut != b->cut || !same_api || a->frame_count != b->frame_count)
		return false;
	for (uint32_t i = 0; i < a->frame_count; i++)
		if (a->frames[i].module != b->frames[i].module ||
		    address_of(&a->frames[i]) != address_of(&b->frames[i]))
			return false;
	return true;
}

/* A program begins to name its code when it likes. */
static bool is_named(struct mw_top_same *same, const struct mw_perf_place *place)
{
	uint64_t now_ns = mw_clock_ns();

	if (!same->named && (!same->looked_ns || now_ns - same->looked_ns >= LOOK_NS)) {
		same->looked_ns = now_ns;
		same->named = mw_perf_map_exists(place);
	}
	return same->named;
}

uint32_t mw_top_same_find(struct mw_top_same *same, const struct mw_perf_place *place,
			  const struct mw_top_stack *const *stacks, size_t count, const struct mw_top_stack *stack)
{
	uint64_t hash;
	uintptr_t first;

	if (!has_code(stack) || is_named(same, place))
		return (uint32_t)count;
	hash = hash_of(stack);
	first = (uintptr_t)mw_map_get(&same->first, hash);
	if (first && first <= count && equal(stacks[first - 1], stack))
		return (uint32_t)(first - 1);
	/* Without memory it is one by itself. */
	if (!first)
		mw_error_destroy(mw_map_set(&same->first, hash,
					    (void *)(uintptr_t)(count + 1))); // NOLINT(performance-no-int-to-ptr)
	return (uint32_t)count;
}
