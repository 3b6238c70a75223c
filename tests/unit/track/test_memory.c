// SPDX-License-Identifier: MIT
/* test_memory.c: bytes a live block and a stack, every allocation counted. */
#include "counting.h"
#include "rig.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#define BLOCKS           1000000U
#define MAPS             60000U
#define STACKS           20000U
#define FRAMES           30U
#define BYTES_PER_BLOCK  100U
#define BYTES_PER_STACK  1100U
#define BYTES_PER_SERIES 700U   /* and the lifetimes of as many blocks */
#define ENOUGH           20000U /* blocks from which on constant costs no longer matter */

static uint64_t random_state = 42;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static mw_addr heap_address(uint32_t i)
{
	return UINT64_C(0x7f1200000010) + (mw_addr)i * 48;
}

static void assert_per(const char *what, uint64_t bytes, uint64_t count, uint64_t limit)
{
	if (bytes > count * limit)
		fail_msg("%s: %.1f bytes each at %llu", what, (double)bytes / (double)count, (unsigned long long)count);
}

/* At every moment of growing and of shrinking, and what the tracker says of itself is true. */
static void test_bytes_per_live_block(void **state)
{
	struct rig *rig = *state;
	uint64_t base = counting_now(), held;
	struct mw_track_memory before, after;
	double worst = 0;

	mw_track_memory(rig->track, &before);
	counting_reset_peak();
	for (uint32_t i = 0; i < BLOCKS; i++) {
		rig_alloc(rig, i, heap_address(i), 32);
		if (i >= ENOUGH) {
			double each = (double)(counting_peak() - base) / (i + 1);

			worst = each > worst ? each : worst;
			assert_per("growing", counting_peak() - base, i + 1, BYTES_PER_BLOCK);
		}
	}
	held = counting_now() - base;
	print_message("%.1f bytes a live block at %u, %.1f at worst while growing\n", (double)held / BLOCKS, BLOCKS,
		      worst);
	mw_track_memory(rig->track, &after);
	assert_in_range((after.blocks - before.blocks) * 100, held * 98, held * 102);
	for (uint32_t i = BLOCKS; i > ENOUGH; i--) {
		counting_reset_peak();
		rig_free(rig, BLOCKS, heap_address(i - 1));
		assert_per("shrinking", counting_peak() - base, i, BYTES_PER_BLOCK + 4);
	}
}

static void test_bytes_per_mapped_block(void **state)
{
	struct rig *rig = *state;
	uint64_t base = counting_now();

	counting_reset_peak();
	for (uint32_t i = 0; i < MAPS; i++) {
		rig_vm(rig, MW_EVENT_MAP, i, 0, UINT64_C(0x7f0000000000) + i * UINT64_C(8192), 4096);
		if (i >= ENOUGH)
			assert_per("mapping", counting_peak() - base, i + 1, BYTES_PER_BLOCK);
	}
	print_message("%.1f bytes a mapped block\n", (double)(counting_now() - base) / MAPS);
}

static void touch(struct rig *rig, uint32_t stack, uint32_t frees, uint64_t spread)
{
	for (uint32_t i = 0; i < frees; i++) {
		uint64_t lifetime = 1000 + next_random() % spread;

		rig_send(rig, (struct mw_event){0, 0x100, 64, stack, rig->thread[0], MW_EVENT_ALLOC, MW_KIND_HEAP, 0,
						false});
		rig_free(rig, lifetime, 0x100);
	}
}

static void intern(struct rig *rig, const struct mw_raw_frame *frames, uint32_t frees, uint64_t spread)
{
	struct mw_raw_stack stack = {frames, FRAMES, MW_STACK_COMPLETE, 0, MW_KIND_HEAP};
	uint32_t id;

	assert_null(rig->sink.stack(rig->sink.context, &stack, &id));
	touch(rig, id, frees, spread);
}

static void report_stacks(const struct rig *rig, const char *what, uint64_t base, const struct mw_track_memory *before)
{
	struct mw_track_memory after;
	uint64_t held = counting_now() - base;

	mw_track_memory(rig->track, &after);
	print_message("%.1f bytes a stack %s, %.1f at worst\n", (double)held / STACKS, what,
		      (double)(counting_peak() - base) / STACKS);
	assert_per(what, counting_peak() - base, STACKS, BYTES_PER_STACK);
	/* The histograms' chunk headers are malloc's, not the tracker's. */
	assert_in_range((after.stacks - before->stacks) * 100, held * 95, held * 101);
	assert_int_equal(mw_track_stack_count(rig->track), STACKS + 3);
}

/* Five frames shared, 25 of each stack's own. */
static void test_bytes_per_stack_with_little_in_common(void **state)
{
	struct rig *rig = *state;
	uint64_t base = counting_now();
	struct mw_track_memory before;

	mw_track_memory(rig->track, &before);
	counting_reset_peak();
	for (uint32_t i = 0; i < STACKS; i++) {
		struct mw_raw_frame frames[FRAMES];

		for (uint32_t j = 0; j < FRAMES; j++)
			frames[j] = (struct mw_raw_frame){j < FRAMES - 5 ? next_random() >> 16 : j, j % 4};
		intern(rig, frames, 20, 1000000000);
		assert_per("growing", counting_peak() - base, i + 200, BYTES_PER_STACK);
	}
	report_stacks(rig, "with little in common", base, &before);
}

/* No frame shared at all, and never freed. */
static void test_bytes_per_stack_with_nothing_in_common(void **state)
{
	struct rig *rig = *state;
	uint64_t base = counting_now();
	struct mw_track_memory before;

	mw_track_memory(rig->track, &before);
	counting_reset_peak();
	for (uint32_t i = 0; i < STACKS; i++) {
		struct mw_raw_frame frames[FRAMES];

		for (uint32_t j = 0; j < FRAMES; j++)
			frames[j] = (struct mw_raw_frame){next_random() >> 16, j % 4};
		intern(rig, frames, 4, 1000000);
	}
	report_stacks(rig, "with nothing in common", base, &before);
}

/* A tree of calls as programs have it, and lifetimes over nine decades. */
static void test_bytes_per_stack_of_a_call_tree(void **state)
{
	struct rig *rig = *state;
	uint64_t base = counting_now();
	struct mw_track_memory before;

	mw_track_memory(rig->track, &before);
	counting_reset_peak();
	for (uint32_t i = 0; i < STACKS; i++) {
		struct mw_raw_frame frames[FRAMES];

		for (uint32_t j = 0; j < FRAMES; j++) {
			uint32_t level = FRAMES - 1 - j; /* from the thread's start */

			frames[j] =
				(struct mw_raw_frame){0x1000 + level * 64 + (i >> (FRAMES - 1 - level) / 2) % 1024, 0};
		}
		intern(rig, frames, 100, UINT64_C(1) << (10 + i % 30));
	}
	report_stacks(rig, "of a call tree", base, &before);
}

/* Each stack has one block, of `moment` + 1 bytes now. */
static void renew_all(struct rig *rig, uint32_t moment)
{
	for (uint32_t i = 0; i < STACKS; i++)
		rig_send(rig, (struct mw_event){moment * UINT64_C(1000000), 16 + i * 16, moment + 1, 3 + i,
						rig->thread[0], MW_EVENT_ALLOC, MW_KIND_HEAP, 0, false});
}

/* Whoever's bytes differ at every moment has as many values to keep as there can be. */
static void test_bytes_per_series(void **state)
{
	struct rig *rig = *state;
	struct mw_track_memory before, after;
	uint64_t base, held;

	for (uint32_t i = 0; i < STACKS; i++)
		rig_stack(rig, MW_KIND_HEAP, 10 + i);
	mw_track_memory(rig->track, &before);
	/* Twice, as there is room for one more block before it turns out to be in the place of an old one. */
	renew_all(rig, 0);
	renew_all(rig, 0);
	base = counting_now();
	for (uint32_t moment = 1; moment <= MW_SERIES_MAX; moment++)
		renew_all(rig, moment);
	held = counting_now() - base;
	mw_track_memory(rig->track, &after);
	print_message("%.1f bytes a series with all values different\n", (double)held / STACKS);
	assert_per("series", held, STACKS, BYTES_PER_SERIES);
	assert_in_range(after.stacks - before.stacks, held * 90 / 100, held * 110 / 100);
	/* They go with the interval. */
	assert_null(mw_track_interval(rig->track, MW_SERIES_MAX * UINT64_C(1000000)));
	assert_true(counting_now() <= base);
	mw_track_memory(rig->track, &after);
	assert_int_equal(after.stacks, before.stacks);
}

static int check_all_freed(void **state)
{
	static uint64_t base = UINT64_MAX;

	(void)state;
	if (base == UINT64_MAX)
		base = counting_now();
	else
		assert_int_equal(counting_now(), base);
	return 0;
}

int test_memory_failure(void);

UNIT_GROUP(memory)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_bytes_per_live_block),
		TEST(test_bytes_per_mapped_block),
		TEST(test_bytes_per_stack_with_little_in_common),
		TEST(test_bytes_per_stack_with_nothing_in_common),
		TEST(test_bytes_per_stack_of_a_call_tree),
		TEST(test_bytes_per_series),
	};
	int failures = cmocka_run_group_tests(tests, check_all_freed, check_all_freed);

	return failures + test_memory_failure();
}
