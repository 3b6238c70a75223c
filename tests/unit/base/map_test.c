// SPDX-License-Identifier: MIT
/* map_test.c: the hash table against the plainest model there is. */
#include "base/map.h"
#include "rig.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KEYS 700u
#define OPS  60000u

/* Values are addresses of nothing; only NULL has a meaning. */
static char values[256];

static void compare(const struct mw_map *map, const uint64_t *keys, void *const *model)
{
	size_t count = 0, seen = 0;
	void *value;

	for (size_t i = 0; i < KEYS; i++) {
		assert_ptr_equal(mw_map_get(map, keys[i]), model[i]);
		count += model[i] != NULL;
	}
	assert_int_equal(map->count, count);
	for (size_t i = 0; mw_map_next(map, &i, &value); seen++)
		assert_non_null(value);
	assert_int_equal(seen, count);
}

/* Fill up, empty, and churn in between, by turns, so that the table holds few and many keys. */
static void churn(const uint64_t *keys)
{
	struct mw_map map = {0};
	void *model[KEYS] = {NULL};

	for (size_t op = 0; op < OPS; op++) {
		size_t i = rig_random() % KEYS;
		bool fill = rig_random() % 100 < (op / 4000 % 2 ? 20 : 80);

		if (fill) {
			void *value = &values[rig_random() % sizeof(values)];

			assert_null(mw_map_set(&map, keys[i], value));
			model[i] = value;
		} else {
			assert_ptr_equal(mw_map_remove(&map, keys[i]), model[i]);
			model[i] = NULL;
		}
		if (op % 500 == 0)
			compare(&map, keys, model);
	}
	compare(&map, keys, model);
	for (size_t i = 0; i < KEYS; i++)
		assert_ptr_equal(mw_map_remove(&map, keys[i]), model[i]);
	assert_int_equal(map.count, 0);
	mw_map_deinit(&map);
	assert_int_equal(map.capacity, 0);
}

static void agrees_with_a_model(void **unused)
{
	uint64_t keys[KEYS];

	(void)unused;
	for (unsigned round = 0; round < 4; round++) {
		rig_seed(0x9e3779b97f4a7c15u + round);
		for (uint64_t i = 0; i < KEYS; i++) {
			/* At random, as tids come, as pages come, as a table's worst case: alike in all low bits. */
			const uint64_t forms[] = {rig_random() | 1u, 1000 + i, 0x7f0000000000u + i * 4096, i << 40};

			keys[i] = forms[round];
		}
		churn(keys);
	}
}

static void the_extreme_keys_are_keys(void **unused)
{
	struct mw_map map = {0};

	(void)unused;
	assert_null(mw_map_get(&map, 0));
	assert_null(mw_map_remove(&map, 0));
	assert_null(mw_map_set(&map, 0, &values[1]));
	assert_null(mw_map_set(&map, UINT64_MAX, &values[2]));
	assert_null(mw_map_set(&map, 0, &values[3]));
	assert_int_equal(map.count, 2);
	assert_ptr_equal(mw_map_get(&map, 0), &values[3]);
	assert_ptr_equal(mw_map_get(&map, UINT64_MAX), &values[2]);
	assert_ptr_equal(mw_map_remove(&map, 0), &values[3]);
	assert_null(mw_map_remove(&map, 0));
	mw_map_deinit(&map);
	mw_map_deinit(&map);
}

/* Without memory the key is refused, and all others are there as before. */
static void memory_may_fail(void **unused)
{
	struct mw_map map = {0};
	struct mw_error *err = NULL;
	uint64_t key = 0;

	(void)unused;
	for (; key < 100; key++)
		assert_null(mw_map_set(&map, key, &values[key]));
	rig_starve = true;
	for (; !err && key < sizeof(values); key++)
		err = mw_map_set(&map, key, &values[key]);
	rig_starve = false;
	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_MEMORY);
	mw_error_destroy(err);
	assert_int_equal(map.count, key - 1);
	assert_null(mw_map_get(&map, key - 1));
	for (uint64_t i = 0; i < key - 1; i++)
		assert_ptr_equal(mw_map_get(&map, i), &values[i]);
	assert_null(mw_map_set(&map, key, &values[1]));
	mw_map_deinit(&map);
}

/* New keys get the numbers one after the other, and each keeps its own. */
static void keys_are_numbered(void **unused)
{
	uint32_t model[KEYS] = {0}, number, count = 0; /* plus one */
	struct mw_map map = {0};

	(void)unused;
	rig_seed(0x9e3779b97f4a7c15u);
	for (size_t op = 0; op < OPS; op++) {
		size_t key = rig_random() % KEYS;

		rig_starve = op % 7 == 0;
		number = UINT32_MAX;
		if (mw_map_number(&map, key * 4096, &number)) {
			if (!model[key])
				model[key] = ++count;
			assert_int_equal(number, model[key] - 1);
		} else {
			assert_true(rig_starve);
			assert_int_equal(number, UINT32_MAX);
		}
		assert_int_equal(map.count, count);
	}
	rig_starve = false;
	assert_int_equal(count, KEYS);
	mw_map_deinit(&map);
}

UNIT_GROUP(map)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_a_model),
		cmocka_unit_test(the_extreme_keys_are_keys),
		cmocka_unit_test(memory_may_fail),
		cmocka_unit_test(keys_are_numbered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
