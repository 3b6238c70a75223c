// SPDX-License-Identifier: MIT
/* test_blocks.c: the table of live heap blocks against an array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "track/block_table.h"
#include "unit.h"

#define ADDRESSES  20000U
#define OPERATIONS 1000000

static mw_addr address_of(uint32_t i)
{
	return UINT64_C(0x555555550010) + (uint64_t)i * 16;
}

static void check_all(const struct mw_block_table *table, const uint64_t *bytes)
{
	for (uint32_t i = 0; i < ADDRESSES; i++) {
		struct mw_block block = {0};

		assert_int_equal(mw_block_table_find(table, address_of(i), &block), bytes[i] != 0);
		assert_int_equal(block.addr, bytes[i] != 0 ? address_of(i) : 0);
		assert_int_equal(block.bytes, bytes[i]);
	}
}

/* Mostly insertions, then mostly removals, and over again: the shards grow and shrink. */
static void test_against_array(void **state)
{
	uint64_t *bytes = calloc(ADDRESSES, sizeof(*bytes));
	struct mw_block_table table = {0};
	uint32_t random = 1;

	(void)state;
	assert_non_null(bytes);
	for (uint32_t n = 1; n <= OPERATIONS; n++) {
		uint32_t i, bias = n / 100000 % 2 ? 20 : 80;
		struct mw_block block = {0}, old = {0};
		bool replaced;

		random = random * 1664525U + 1013904223U;
		i = (uint32_t)(((uint64_t)random * ADDRESSES) >> 32);
		block.addr = address_of(i);
		block.bytes = n;
		if (random % 100 < bias) {
			assert_null(mw_block_table_insert(&table, &block, &old, &replaced));
			assert_int_equal(replaced, bytes[i] != 0);
			assert_int_equal(old.bytes, bytes[i]);
			bytes[i] = n;
		} else {
			assert_int_equal(mw_block_table_remove(&table, block.addr, &old), bytes[i] != 0);
			assert_int_equal(old.bytes, bytes[i]);
			bytes[i] = 0;
		}
		if (n % 50000 == 0)
			check_all(&table, bytes);
	}
	mw_block_table_deinit(&table);
	free(bytes);
}

static void test_null_is_never_there(void **state)
{
	struct mw_block_table table = {0};
	struct mw_block block = {.addr = 16}, old;
	bool replaced;

	(void)state;
	assert_false(mw_block_table_find(&table, 16, NULL));
	assert_null(mw_block_table_insert(&table, &block, &old, &replaced));
	assert_false(mw_block_table_find(&table, 0, NULL));
	assert_false(mw_block_table_remove(&table, 0, &old));
	mw_block_table_deinit(&table);
}

UNIT_GROUP(blocks)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_array),
		cmocka_unit_test(test_null_is_never_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
