// SPDX-License-Identifier: MIT
/* test_passes.c: blocks are lost where each pass over a running process says so. */
#include "unit.h"
#include "world.h"

#include "heap/passes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BLOCKS 6u

/* A process with some blocks; in the bits of `held` those that its data points to. The last block points to the one before. */
static void add_pass(struct mw_passes *passes, unsigned held)
{
	const struct mw_reach_options options = {.suspects = passes->lost, .suspect_count = passes->lost_count};
	struct mw_reached *reached;
	struct world world;
	mw_addr blocks[BLOCKS];

	world_init(&world, UINT64_C(1) << 20, true);
	for (unsigned i = 0; i < BLOCKS; i++) {
		blocks[i] = world_block(&world, 24);
		if (held >> i & 1)
			world_poke(&world, WORLD_DATA + UINT64_C(8) * i, blocks[i]);
	}
	world_poke(&world, blocks[BLOCKS - 1], blocks[BLOCKS - 2]);
	world_finish(&world);
	reached = world_reach(&world, &options);
	assert_null(mw_passes_add(passes, world.blocks, reached));
	mw_reached_destroy(reached);
	world_deinit(&world);
}

static void test_lost_in_all(void **state)
{
	struct mw_passes passes = {0};

	(void)state;
	assert_false(mw_passes_need_more(&passes));
	add_pass(&passes, 0x3);
	assert_int_equal(passes.lost_count, 4);
	assert_true(mw_passes_need_more(&passes));
	add_pass(&passes, 0x5); /* the second is not found now, but was */
	assert_int_equal(passes.lost_count, 3);
	assert_true(passes.lost[0] < passes.lost[1] && passes.lost[1] < passes.lost[2]);
	add_pass(&passes, 0x0);
	assert_int_equal(passes.lost_count, 3);
	add_pass(&passes, 0x20); /* what the last one holds is held */
	assert_int_equal(passes.lost_count, 1);
	mw_passes_deinit(&passes);
}

static void test_ends(void **state)
{
	struct mw_passes passes = {0};
	unsigned count = 0;

	(void)state;
	/* Nothing is lost: nothing is to be confirmed. */
	add_pass(&passes, 0x2f);
	assert_int_equal(passes.lost_count, 0);
	assert_false(mw_passes_need_more(&passes));
	mw_passes_deinit(&passes);
	/* What does not change is certain after seven more. */
	do {
		add_pass(&passes, 0x1);
		count++;
	} while (mw_passes_need_more(&passes));
	assert_int_equal(count, 8);
	mw_passes_deinit(&passes);
}

/* What is no suspect is held, with what it points to. */
static void test_others(void **state)
{
	struct world world;
	struct mw_reached *reached;
	struct mw_root root;
	uint32_t holder;
	mw_addr suspects[2], moved, at;
	const struct mw_reach_options options = {.suspects = suspects, .suspect_count = 2};

	(void)state;
	world_init(&world, UINT64_C(1) << 20, true);
	suspects[0] = world_block(&world, 24);
	moved = world_block(&world, 24);
	suspects[1] = world_block(&world, 24);
	world_poke(&world, moved + 8, suspects[1]);
	world_finish(&world);
	reached = world_reach(&world, &options);
	assert_int_equal(mw_reached_of(reached, world_number(&world, suspects[0])), MW_REACH_DEFINITE);
	assert_int_equal(mw_reached_of(reached, world_number(&world, moved)), MW_REACH_REACHABLE);
	assert_int_equal(mw_reached_of(reached, world_number(&world, suspects[1])), MW_REACH_REACHABLE);
	assert_true(mw_reached_holder(reached, world_number(&world, moved), &holder, &at, &root));
	assert_int_equal(holder, MW_BLOCK_NONE);
	assert_int_equal(root.kind, MW_ROOT_MOVED);
	mw_reached_destroy(reached);
	world_deinit(&world);
}

UNIT_GROUP(passes)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost_in_all),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
