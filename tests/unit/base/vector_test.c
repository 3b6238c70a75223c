// SPDX-License-Identifier: MIT
/* vector_test.c: arrays keep their items as they grow, and when they can't. */
#include "base/vector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void grows(void **state)
{
	size_t capacity = 0, moves = 0;
	uint32_t *items = NULL;

	(void)state;
	for (uint32_t count = 0; count < 10000; count++) {
		size_t before = capacity;

		items = mw_vector_room(items, count, &capacity, sizeof(*items));
		assert_non_null(items);
		assert_true(capacity > count);
		moves += capacity != before;
		items[count] = count;
	}
	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(items[i], i);
	assert_true(moves < 20);
	free(items);
}

static void stays_as_it_was(void **state)
{
	size_t capacity = SIZE_MAX / 16;
	char item = 'x';

	(void)state;
	assert_null(mw_vector_room(&item, capacity, &capacity, 64));
	assert_int_equal(capacity, SIZE_MAX / 16);
	assert_int_equal(item, 'x');
	capacity = SIZE_MAX / 2 + 1;
	assert_null(mw_vector_room(&item, capacity, &capacity, 1));
	assert_int_equal(capacity, SIZE_MAX / 2 + 1);
	assert_ptr_equal(mw_vector_room(&item, 0, &capacity, 1), &item);
}

/* Compared with counting one by one: keys before, at, between and behind the items, equal ones among them. */
static void is_searched(void **state)
{
	struct {
		uint32_t other;
		uint64_t key;
	} items[40];

	(void)state;
	for (size_t count = 0; count <= 40; count++) {
		for (size_t i = 0; i < count; i++)
			items[i].key = 10 + i / 3 * 2;
		for (uint64_t key = 0; key < 50; key++) {
			size_t expected = 0;

			while (expected < count && items[expected].key <= key)
				expected++;
			assert_int_equal(mw_vector_up_to(items, count, sizeof(items[0]),
							 offsetof(__typeof__(items[0]), key), key),
					 expected);
		}
	}
	items[0].key = UINT64_MAX;
	assert_int_equal(mw_vector_up_to(items, 1, sizeof(items[0]), offsetof(__typeof__(items[0]), key), UINT64_MAX),
			 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows),
		cmocka_unit_test(stays_as_it_was),
		cmocka_unit_test(is_searched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
