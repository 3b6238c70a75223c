// SPDX-License-Identifier: MIT
/*
 * bench_image [ROUNDS [ROW]]: what the recorder alone adds to a malloc+free pair, the best of ROUNDS rounds: with the
 * stack the same every time, with return addresses that vary in a way that no branch predictor learns, and with frames'
 * sizes that vary, too. Nobody else is at the ring, so that a busy machine matters little: to compare two recorders.
 *
 * scripts/bench --annotate ROW tells by instruction what perf samples of it: the image's address is in the first line.
 */
#include "image.h"
#include "shared.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PAIRS 900 /* a round; what they record fits into the ring */
#define WAYS  128
#define BITS  7

typedef void chain(uint64_t pairs, void *alloc, void *release);
extern const char chain_start[], chain_1_end[], chain_end[], wide_start[], wide_end[];
chain chain_8, chain_30, vary_8, vary_30, frames_8, frames_30;

static const struct row {
	const char *name;
	chain *go;
	unsigned depth; /* of those that vary, else 0 */
} rows[] = {
	{"8 same", chain_8, 0},   {"8 vary", vary_8, 8},    {"8 frames", frames_8, 8},
	{"30 same", chain_30, 0}, {"30 vary", vary_30, 30}, {"30 frames", frames_30, 30},
};

static struct shared shared;
static unsigned ways[WAYS];

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

/* Levels 2 to `depth` have a bit each; those that differ are as far apart as can be. */
static void plan_ways(unsigned depth)
{
	unsigned levels = depth - 1, bits = levels < BITS ? levels : BITS;

	memset(ways, 0, sizeof(ways));
	for (unsigned i = 0; i < WAYS; i++)
		for (unsigned bit = 0; bit < bits; bit++)
			ways[i] |= (i >> bit & 1) << (2 + bit * levels / bits);
}

static void make_pairs(const struct row *row, void *alloc, void *release)
{
	static uint32_t random = 2463534242u;

	if (!row->depth) {
		row->go(PAIRS, alloc, release);
		return;
	}
	for (int i = 0; i < PAIRS; i++) {
		random ^= random << 13;
		random ^= random >> 17;
		random ^= random << 5;
		row->go(ways[random >> (32 - BITS)], alloc, release);
	}
}

static double measure(const struct row *row, unsigned long rounds, void *alloc, void *release)
{
	double best = 1e9;

	for (unsigned long i = 0; i < rounds; i++) {
		double start = now(), took;

		make_pairs(row, alloc, release);
		took = (now() - start) / PAIRS;
		best = took < best ? took : best;
		drain();
	}
	return best;
}

static void describe_code(void)
{
	const struct {
		const char *start, *end;
		uint64_t row;
	} code[] = {
		{(const char *)0x1000, chain_start, mw_row(MW_ROW_END, 0, 0, 0)},
		{chain_start, chain_1_end, mw_row(MW_ROW_SP, 48, MW_ROW_FP_SAME, 0)},
		{chain_1_end, chain_end, mw_row(MW_ROW_SP, 16, MW_ROW_FP_SAME, 0)},
		{wide_start, wide_end, mw_row(MW_ROW_SP, 48, MW_ROW_FP_SAME, 0)},
		{wide_end, (const char *)UINTPTR_MAX, mw_row(MW_ROW_END, 0, 0, 0)},
	};

	for (size_t i = 0; i < sizeof(code) / sizeof(code[0]); i++)
		shared_code(&shared, (uint64_t)(uintptr_t)code[i].start, (uint64_t)(uintptr_t)code[i].end, code[i].row);
}

int main(int argc, char **argv)
{
	struct shared_plan plan = {.slots = 1024,
				   .rings = 4,
				   .ring_units = 4096,
				   .depth = 64,
				   .stacks = 1u << 17,
				   .known = 1u << 20,
				   .cache = 1u << 14,
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
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 300;
	struct image *image;
	struct mw_ring_slot *slot;
	void *my_malloc, *my_free;
	uint64_t sp = (uint64_t)(uintptr_t)&plan;

	shared_create(&shared, &plan);
	shared.control->wait_limit = UINT64_C(3000000000);
	shared.control->heartbeat = __builtin_ia32_rdtsc();
	image = image_create(&shared);
	image_use_rdfsbase(image);
	image_guard(image, 1);
	printf("image at 0x%lx\n", (unsigned long)image_start(image));
	my_malloc = image_trampoline(image, 0, &malloc_hook, 0);
	my_free = image_trampoline(image, 1, &free_hook, 0);
	describe_code();
	slot = shared_slot(&shared, mw_ring_slot_first((uint64_t)pthread_self(), plan.slots));
	slot->owner = (uint64_t)pthread_self();
	slot->tid = (uint32_t)gettid();
	slot->regions[0] = (struct mw_ring_region){sp - 65536, sp + 256};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double bare, on;

		if (argc > 2 && strcmp(argv[2], rows[i].name) != 0)
			continue;
		plan_ways(rows[i].depth ? rows[i].depth : 2);
		bare = measure(&rows[i], rounds, (void *)(uintptr_t)malloc, (void *)(uintptr_t)free);
		on = measure(&rows[i], rounds, my_malloc, my_free);
		printf("%-9s bare %5.1f recording %+6.1f ns; walks %lu slow %lu lost %lu %lu stacks %u waited %lu\n",
		       rows[i].name, bare, on - bare, slot->walks, slot->slow_walks, slot->lost_events,
		       slot->lost_stacks, shared.control->next_stack, slot->waited);
		fflush(stdout);
	}
	image_destroy(image);
	return 0;
}
