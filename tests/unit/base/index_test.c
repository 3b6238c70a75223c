// SPDX-License-Identifier: MIT
/* index_test.c: the table of numbers against a search through the whole array. */
#include "base/index.h"

#include "base/hash.h"
#include "rig.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define KEYS 3000u
#define OPS  40000u
#define MANY 300000u

/* Elements: 64-bit keys, hashed well, or such that few places or few kept bits are in use, or all alike. */
enum hashing { GOOD, HIGH_BITS, LOW_BITS, NONE, HASHINGS };

struct items {
	enum hashing hashing;
	uint64_t keys[MANY];
	struct mw_index index;
};

static struct items items;

static uint32_t hash_of(enum hashing hashing, uint64_t key)
{
	uint32_t hash = (uint32_t)mw_hash_mix(key);

	switch (hashing) {
	case HIGH_BITS:
		return hash & 0xffc00000u;
	case LOW_BITS:
		return hash & 0xffu;
	case NONE:
		return 0;
	default:
		return hash;
	}
}

static uint32_t hash_of_item(const void *context, uint32_t number)
{
	const struct items *all = context;

	assert_true(number < MANY);
	return hash_of(all->hashing, all->keys[number]);
}

static bool find(uint64_t key, uint32_t *number)
{
	uint32_t hash = hash_of(items.hashing, key);

	mw_index_prefetch(&items.index, hash);
	MW_INDEX_EACH(&items.index, hash, *number) {
		assert_true(*number < items.index.count);
		if (items.keys[*number] == key)
			return true;
	}
	return false;
}

static bool add(uint64_t key)
{
	uint32_t count = items.index.count;

	if (!mw_index_reserve(&items.index, hash_of_item, &items))
		return false;
	items.keys[count] = key;
	assert_int_equal(mw_index_put(&items.index, hash_of(items.hashing, key)), count);
	assert_int_equal(items.index.count, count + 1);
	return true;
}

/* Looked up and added where new, with a model that knows of each key whether it is there, and where. */
static void agrees_with_a_model(void **unused)
{
	static uint32_t model[KEYS]; /* number + 1 */

	(void)unused;
	for (unsigned hashing = 0; hashing < HASHINGS; hashing++) {
		items.hashing = (enum hashing)hashing;
		rig_seed(0x9e3779b97f4a7c15u + hashing);
		for (uint32_t op = 0; op < OPS; op++) {
			uint32_t key = (uint32_t)(rig_random() % KEYS), number = UINT32_MAX;
			bool found = find(key, &number);

			assert_int_equal(found, model[key] != 0);
			if (found)
				assert_int_equal(number, model[key] - 1);
			else if (rig_random() % 4 == 0) {
				assert_true(add(key));
				model[key] = items.index.count;
			}
			if (op == OPS / 2) {
				mw_index_clear(&items.index);
				assert_int_equal(items.index.count, 0);
				for (uint32_t i = 0; i < KEYS; i++)
					model[i] = 0;
			}
		}
		assert_in_range(items.index.count, KEYS / 2, KEYS);
		for (uint32_t i = 0; i < KEYS; i++)
			model[i] = 0;
		mw_index_deinit(&items.index);
		assert_int_equal(mw_index_memory(&items.index), 0);
	}
}

/* Every element is found while the table grows, in a place that is looked at soon, and takes the memory it may. */
static void grows(void **unused)
{
	uint64_t compared = 0;

	(void)unused;
	items.hashing = GOOD;
	for (uint32_t i = 0; i < MANY; i++) {
		assert_true(add(UINT64_C(0x7f0000000000) + i * UINT64_C(16)));
		if (i > 1000)
			assert_in_range(mw_index_memory(&items.index) * 10 / (i + 1), 53, 82);
	}
	for (uint32_t i = 0; i < MANY; i++) {
		uint32_t hash = hash_of(GOOD, items.keys[i]), number = UINT32_MAX;

		MW_INDEX_EACH(&items.index, hash, number) {
			compared++;
			if (number == i)
				break;
		}
		assert_int_equal(number, i);
	}
	/* What hashes differ in is not compared by the caller. */
	assert_in_range(compared, MANY, MANY + MANY / 100);
	mw_index_deinit(&items.index);
}

static void an_empty_index_has_nothing(void **unused)
{
	uint32_t number = 7;

	(void)unused;
	items.hashing = GOOD;
	assert_false(find(1, &number));
	mw_index_clear(&items.index);
	mw_index_deinit(&items.index);
	assert_false(find(1, &number));
	assert_int_equal(number, 7);
}

/* As many as there were find room again without memory. */
static void keeps_its_room_when_cleared(void **unused)
{
	uint32_t number;

	(void)unused;
	for (uint32_t i = 0; i < KEYS; i++)
		assert_true(add(i));
	mw_index_clear(&items.index);
	assert_false(find(1, &number));
	rig_starve = true;
	for (uint32_t i = 0; i < KEYS; i++)
		assert_true(add(i + KEYS));
	rig_starve = false;
	assert_false(find(1, &number));
	assert_true(find(KEYS + 1, &number));
	assert_int_equal(number, 1);
	mw_index_deinit(&items.index);
}

/* Without memory the element is refused, and all others are there as before. */
static void memory_may_fail(void **unused)
{
	uint32_t number, count;

	(void)unused;
	rig_starve = true;
	assert_false(add(0));
	rig_starve = false;
	assert_int_equal(items.index.count, 0);
	for (uint32_t i = 0; i < KEYS; i++)
		assert_true(add(i));
	rig_starve = true;
	while (add(items.index.count))
		assert_true(items.index.count < 2 * KEYS);
	rig_starve = false;
	count = items.index.count;
	assert_false(find(count, &number));
	for (uint32_t i = 0; i < count; i++) {
		assert_true(find(i, &number));
		assert_int_equal(number, i);
	}
	assert_true(add(count));
	assert_true(find(count, &number));
	mw_index_deinit(&items.index);
}

UNIT_GROUP(index)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_a_model),
		cmocka_unit_test(grows),
		cmocka_unit_test(an_empty_index_has_nothing),
		cmocka_unit_test(keeps_its_room_when_cleared),
		cmocka_unit_test(memory_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
