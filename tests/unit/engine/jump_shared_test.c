// SPDX-License-Identifier: MIT
/* jump_shared_test.c: the layout holds what it must, nothing overlaps, and it is no larger than said. */
#include "engine/jump/drain.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MIB UINT64_C(1048576)

static void check_span(uint64_t start, uint64_t size, uint64_t next)
{
	assert_int_equal(start % 64, 0);
	assert_true(size > 0);
	assert_true(start + size <= next);
}

static bool power_of_two(uint64_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

static void check(const struct jump_geometry *g, size_t threads, uint32_t depth, uint64_t rows_bytes)
{
	assert_true(g->slots >= sizeof(struct mw_ring_control));
	check_span(g->slots, g->slot_count * sizeof(struct mw_ring_slot), g->queue);
	check_span(g->queue, g->queue_count * sizeof(uint32_t), g->scratch);
	check_span(g->scratch, (uint64_t)g->ring_count * (depth + 1) * 8, g->memos);
	check_span(g->memos, (uint64_t)g->ring_count * MW_RING_MEMOS * sizeof(struct mw_ring_memo), g->stacks);
	check_span(g->stacks, g->stack_count * sizeof(struct mw_ring_stack_entry), g->known);
	check_span(g->known, g->known_count * sizeof(uint32_t), g->cache);
	check_span(g->cache, g->cache_count * sizeof(struct mw_ring_cached_row), g->tables_end);
	check_span(g->dictionary, g->dictionary_capacity * sizeof(uint64_t), g->learned);
	check_span(g->learned, MW_RING_LEARNED * sizeof(struct mw_ring_cached_row), g->rows);
	check_span(g->rows, g->rows_end - g->rows, g->rings);
	check_span(g->rings, (uint64_t)g->ring_count * g->ring_units * MW_RING_UNIT, g->size);
	assert_true(power_of_two(g->slot_count) && power_of_two(g->ring_units) && power_of_two(g->queue_count));
	assert_true(power_of_two(g->stack_count) && power_of_two(g->known_count) && power_of_two(g->cache_count));
	assert_true(g->queue_count >= g->ring_count);
	assert_true(g->slot_count >= 1024);
	assert_true(g->rows_end - g->rows >= rows_bytes * 2 + 4 * MIB);
	assert_int_equal(g->depth, depth);
	if (threads <= 10000) {
		assert_true(g->slot_count >= 4 * threads);
		assert_true(g->ring_count >= 4 * threads && g->ring_count >= 256);
	}
	/* The largest record fits. */
	assert_true(g->ring_units >= 2 * (1 + (depth + 3) / 4));
}

static void test_plan(void **state)
{
	static const size_t threads[] = {0, 1, 16, 64, 65, 200, 1000, 10000, 1000000, SIZE_MAX};
	static const uint32_t depths[] = {1, 128, 1024};
	struct jump_geometry geometry;

	(void)state;
	for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++) {
		for (size_t j = 0; j < sizeof(depths) / sizeof(depths[0]); j++) {
			for (int small = 0; small < 2; small++) {
				jump_geometry_plan(&geometry, threads[i], depths[j], 4 * MIB + 12345, false, false,
						   small);
				check(&geometry, threads[i], depths[j], 4 * MIB + 12345);
			}
		}
	}
	jump_geometry_plan(&geometry, 16, 128, 4 * MIB, false, false, false);
	assert_true(geometry.size <= 64 * MIB);
	assert_int_equal(geometry.ring_units * MW_RING_UNIT, 128 << 10);
	jump_geometry_plan(&geometry, 1024, 128, 4 * MIB, false, false, false);
	assert_int_equal(geometry.ring_units * MW_RING_UNIT, 128 << 10);
}

static void test_format(void **state)
{
	struct jump_shared shared;
	const struct mw_ring_control *control;

	(void)state;
	jump_geometry_plan(&shared.geometry, 1, 16, 0, false, false, false);
	shared.base = calloc(1, shared.geometry.size);
	assert_non_null(shared.base);
	jump_shared_format(&shared, 40);
	control = jump_control(&shared);
	assert_int_equal(control->magic, MW_RING_MAGIC);
	assert_int_equal(control->size, shared.geometry.size);
	assert_int_equal(control->slots, shared.geometry.slots);
	assert_int_equal(control->rings, shared.geometry.rings);
	assert_int_equal(control->ring_units, shared.geometry.ring_units);
	assert_int_equal(control->depth, 16);
	assert_int_equal(control->rings_offered, 40);
	assert_int_equal(control->rings_taken, 0);
	for (uint32_t i = 0; i < 40; i++)
		assert_int_equal(jump_queue(&shared)[i], i);
	assert_ptr_equal(jump_ring(&shared, 1), jump_ring(&shared, 0) + shared.geometry.ring_units);
	jump_shared_format(&shared, UINT32_MAX);
	assert_int_equal(control->rings_offered, shared.geometry.ring_count);
	free(shared.base);
}

UNIT_GROUP(jump_shared)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plan),
		cmocka_unit_test(test_format),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
