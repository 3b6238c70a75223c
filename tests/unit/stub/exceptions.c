// SPDX-License-Identifier: MIT
#include "test_exceptions.h"

#include "image.h"
#include "shared.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static struct shared shared;
static struct image *image;

allocate *exceptions_begin(void *original, void *next, void **find_fde)
{
	const struct shared_plan plan = SHARED_DEFAULT;
	const struct mw_stub_hook hook = {.original = (uint64_t)(uintptr_t)original,
					  .flags = MW_STUB_IS_HEAP,
					  .pointer = MW_STUB_NO_ARG,
					  .count = MW_STUB_NO_ARG};
	const struct mw_stub_hook unwinder = {.original = (uint64_t)(uintptr_t)next, .role = MW_STUB_UNWINDER};
	uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
	struct mw_ring_slot *slot;

	shared_create(&shared, &plan);
	shared.control->wait_limit = UINT64_C(1) << 20;
	shared.control->heartbeat = __builtin_ia32_rdtsc();
	shared_code(&shared, 0x1000, UINT64_MAX, mw_row(MW_ROW_END, 0, MW_ROW_FP_SAME, 0));
	slot = shared_slot(&shared, mw_ring_slot_first((uint64_t)pthread_self(), plan.slots));
	slot->owner = (uint64_t)pthread_self();
	slot->tid = (uint32_t)gettid();
	slot->regions[0] = (struct mw_ring_region){here - (64u << 10), here + 256};
	image = image_create(&shared);
	image_guard(image, 1);
	*find_fde = image_trampoline(image, 1, &unwinder, 1);
	return (allocate *)(uintptr_t)image_trampoline(image, 0, &hook, 0);
}

void exceptions_sample(void)
{
	shared.control->sampling = mw_ring_sampling(100, 1);
	image_guard(image, MW_STUB_GUARD_SAMPLING);
}

void exceptions_off(void)
{
	image_guard(image, MW_STUB_GUARD_ENDING);
	shared.control->recording = 0;
}

void exceptions_end(void)
{
	struct mw_ring_slot *slot = shared_slot_of(&shared, (uint64_t)pthread_self());
	static struct shared_record record;
	unsigned allocs = 0;

	while (shared_next(&shared, slot, &record))
		allocs += record.type == MW_RING_ALLOC;
	/* The ring holds as many as that; 64 units. */
	if (allocs == 0 || slot->inside)
		abort();
	/* Calls that an exception took away are not to come back. */
	if (slot->open + shared.control->open)
		abort();
}
