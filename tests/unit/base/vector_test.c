// SPDX-License-Identifier: MIT
/* vector_test.c: arrays keep their items as they grow, and when they can't. */
#include "base/shared_list.h"
#include "base/vector.h"
#include "rig.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>

static void grows(void **state)
{
	size_t capacity = 0, moves = 0;
	uint32_t *items = NULL;

	(void)state;
	for (uint32_t count = 0; count < 10000; count++) {
		size_t before = capacity;

		assert_true(MW_VECTOR_ROOM(items, count, capacity));
		assert_true(capacity > count);
		moves += capacity != before;
		items[count] = count;
	}
	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(items[i], i);
	assert_true(moves < 20);
	free(items);
}

/* Room for many at once. */
static void leaps(void **state)
{
	size_t capacity = 0;
	uint16_t *items = NULL;

	(void)state;
	assert_true(MW_VECTOR_ROOM(items, 1000, capacity));
	assert_in_range(capacity, 1001, 2002);
	items[0] = 1;
	items[1000] = 2;
	assert_true(MW_VECTOR_ROOM(items, 5000, capacity));
	assert_in_range(capacity, 5001, 10002);
	assert_int_equal(items[0] + items[1000], 3);
	items[5000] = 4;
	free(items);
}

static void stays_as_it_was(void **state)
{
	size_t capacity = SIZE_MAX / 16;
	char item = 'x';
	char *items = &item;

	(void)state;
	assert_null(mw_vector_room(&item, capacity, &capacity, 64));
	assert_int_equal(capacity, SIZE_MAX / 16);
	assert_int_equal(item, 'x');
	capacity = SIZE_MAX / 2 + 1;
	assert_null(mw_vector_room(&item, capacity, &capacity, 1));
	assert_int_equal(capacity, SIZE_MAX / 2 + 1);
	assert_ptr_equal(mw_vector_room(&item, 0, &capacity, 1), &item);
	assert_false(MW_VECTOR_ROOM(items, SIZE_MAX, capacity));
	assert_ptr_equal(items, &item);
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

static void *item_of(uint32_t number)
{
	return (void *)((uintptr_t)number + 1); // NOLINT(performance-no-int-to-ptr)
}

/* All that a list says to have is there. */
static void *read_list(void *context)
{
	const struct mw_shared_list *list = context;

	for (uint32_t count = 0; count < 100000; count = mw_shared_list_count(list))
		for (uint32_t i = count; i-- > 0 && count - i < 100;)
			if (mw_shared_list_get(list, i) != item_of(i))
				return context;
	return NULL;
}

static void is_shared(void **state)
{
	struct mw_shared_list list = {.count = 0};
	void *wrong = NULL;
	pthread_t reader;

	(void)state;
	assert_null(mw_shared_list_get(&list, 0));
	assert_int_equal(pthread_create(&reader, NULL, read_list, &list), 0);
	for (uint32_t i = 0; i < 100000; i++)
		assert_true(mw_shared_list_add(&list, item_of(i)));
	assert_int_equal(pthread_join(reader, &wrong), 0);
	assert_null(wrong);
	for (uint32_t i = 0; i < 100000; i++)
		assert_ptr_equal(mw_shared_list_get(&list, i), item_of(i));
	assert_ptr_equal(mw_shared_list_pop(&list), item_of(99999));
	assert_int_equal(mw_shared_list_count(&list), 99999);
	assert_null(mw_shared_list_get(&list, 99999));
	mw_shared_list_deinit(&list);
	/* Without memory nothing is added. */
	rig_starve = true;
	assert_false(mw_shared_list_add(&list, &list));
	rig_starve = false;
	assert_int_equal(mw_shared_list_count(&list), 0);
}

UNIT_GROUP(vector)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows),       cmocka_unit_test(leaps),     cmocka_unit_test(stays_as_it_was),
		cmocka_unit_test(is_searched), cmocka_unit_test(is_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
