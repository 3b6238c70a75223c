// SPDX-License-Identifier: MIT
/* bench_image: what the recorder adds to a malloc+free pair, 8 and 30 frames deep, with a thread that reads the ring.
 */
#include "image.h"
#include "shared.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef void chain(uint64_t pairs, void *alloc, void *release);
extern const char chain_start[], chain_1_end[], chain_end[];
chain chain_1, chain_8, chain_30;

static struct shared shared;

/* All that was recorded has been read. */
static void drain(void)
{
	for (uint32_t i = 0; i < shared.plan.slots; i++)
		shared_slot(&shared, i)->drained = shared_slot(&shared, i)->reserved;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double measure(chain *f, void *alloc, void *release)
{
	double best = 1e9;

	for (int i = 0; i < 300; i++) {
		double start = now(), took;

		f(2000, alloc, release);
		took = (now() - start) / 2000;
		best = took < best ? took : best;
		drain();
	}
	return best;
}

int main(void)
{
	struct shared_plan plan = {.slots = 16,
				   .rings = 4,
				   .ring_units = 8192,
				   .depth = 64,
				   .stacks = 1024,
				   .known = 1u << 16,
				   .cache = 4096,
				   .dictionary = 64,
				   .codes = 8,
				   .rows = 8};
	struct mw_stub_hook malloc_hook = {.original = (uint64_t)(uintptr_t)malloc,
					   .role = 0,
					   .flags = 5,
					   .pointer = 0xff,
					   .count = 0xff},
			    free_hook = {.original = (uint64_t)(uintptr_t)free,
					 .role = 4,
					 .flags = 5,
					 .count = 0xff,
					 .argument = 0xff};
	struct image *image;
	struct mw_ring_slot *slot;
	void *my_malloc, *my_free;
	uint64_t sp = (uint64_t)(uintptr_t)&plan;
	static chain *const chains[] = {chain_1, chain_8, chain_30};

	shared_create(&shared, &plan);
	shared.control->wait_limit = UINT64_C(3000000000);
	shared.control->heartbeat = __builtin_ia32_rdtsc();
	image = image_create(&shared);
	my_malloc = image_trampoline(image, 0, &malloc_hook, 0);
	my_free = image_trampoline(image, 1, &free_hook, 0);
	shared_code(&shared, 0x1000, (uint64_t)(uintptr_t)chain_start, mw_row(MW_ROW_END, 0, 0, 0));
	shared_code(&shared, (uint64_t)(uintptr_t)chain_start, (uint64_t)(uintptr_t)chain_1_end,
		    mw_row(MW_ROW_SP, 48, MW_ROW_FP_SAME, 0));
	shared_code(&shared, (uint64_t)(uintptr_t)chain_1_end, (uint64_t)(uintptr_t)chain_end,
		    mw_row(MW_ROW_SP, 16, MW_ROW_FP_SAME, 0));
	shared_code(&shared, (uint64_t)(uintptr_t)chain_end, UINT64_MAX, mw_row(MW_ROW_END, 0, 0, 0));
	slot = shared_slot(&shared, mw_ring_slot_first((uint64_t)pthread_self(), plan.slots));
	slot->owner = (uint64_t)pthread_self();
	slot->tid = (uint32_t)gettid();
	slot->regions[0] = (struct mw_ring_region){sp - 65536, sp + 256};
	for (int i = 0; i < 3; i++) {
		static const int frames[] = {1, 8, 30};
		double bare = measure(chains[i], (void *)(uintptr_t)malloc, (void *)(uintptr_t)free), off, on;

		image_guard(image, 0);
		shared.control->recording = 0;
		off = measure(chains[i], my_malloc, my_free);
		shared.control->recording = 1;
		image_guard(image, 1);
		on = measure(chains[i], my_malloc, my_free);
		printf("%2d frames: bare %.1f ns, off %+.1f, recording %+.1f; walks %lu slow %lu lost %lu %lu stacks "
		       "%u "
		       "waited %lu\n",
		       frames[i], bare, off - bare, on - bare, slot->walks, slot->slow_walks, slot->lost_events,
		       slot->lost_stacks, shared.control->next_stack, slot->waited);
	}
	image_destroy(image);
	return 0;
}
