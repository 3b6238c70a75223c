// SPDX-License-Identifier: MIT
/* test_ranges.c: the range tree against an array with one owner a byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "track/range_tree.h"
#include "unit.h"

#define BASE       UINT64_C(0x7f0000000000)
#define SPACE      4096U
#define OWNERS     16U
#define OPERATIONS 400000

struct world {
	struct mw_range_tree tree;
	uint8_t owner[SPACE]; /* owner + 1, or 0 */
	int pieces[OWNERS];
	uint32_t random;
};

static uint32_t random_below(struct world *world, uint32_t bound)
{
	world->random = world->random * 1664525U + 1013904223U;
	return (uint32_t)(((uint64_t)world->random * bound) >> 32);
}

static void count_pieces(void *context, uint32_t owner, int change)
{
	struct world *world = context;

	world->pieces[owner] += change;
}

/* A free stretch from a random place on, or false. */
static bool free_stretch(struct world *world, uint32_t *start, uint32_t *end)
{
	uint32_t length = 1 + random_below(world, 40);

	*start = random_below(world, SPACE - 1);
	if (world->owner[*start] != 0)
		return false;
	for (*end = *start; *end < SPACE && *end - *start < length && world->owner[*end] == 0;)
		(*end)++;
	return true;
}

static void do_insert(struct world *world, bool join)
{
	uint32_t owner = random_below(world, OWNERS);
	uint32_t start, end;

	if (!free_stretch(world, &start, &end))
		return;
	assert_null(mw_range_tree_reserve(&world->tree, 1));
	if (join) {
		mw_range_tree_join(&world->tree, BASE + start, BASE + end, owner);
	} else {
		mw_range_tree_insert(&world->tree, BASE + start, BASE + end, owner);
		world->pieces[owner]++;
	}
	memset(world->owner + start, (int)owner + 1, end - start);
}

/* All of what was cut out: byte for byte what there was between `start` and `end`; it is dropped. */
static void check_list(struct world *world, uint32_t root, uint32_t start, uint32_t end)
{
	uint32_t list = mw_range_tree_list(&world->tree, root), at = start;

	while (list != MW_RANGE_NONE) {
		struct mw_range range = *mw_range_at(&world->tree, list);

		assert_true(range.start < range.end && range.end <= BASE + end);
		for (; at < range.start - BASE; at++)
			assert_int_equal(world->owner[at], 0);
		assert_int_equal(at, range.start - BASE);
		for (; at < range.end - BASE; at++)
			assert_int_equal(world->owner[at], range.owner + 1);
		list = mw_range_tree_release(&world->tree, list);
		world->pieces[range.owner]--;
	}
	for (; at < end; at++)
		assert_int_equal(world->owner[at], 0);
	memset(world->owner + start, 0, end - start);
}

/* Take it apart at `at`, and put it together again where `whole`. */
static void take_apart(struct world *world, uint32_t *low, uint32_t *high, uint32_t at, bool whole)
{
	assert_null(mw_range_tree_reserve(&world->tree, 1));
	*low = mw_range_tree_take(&world->tree, high, BASE + at);
	if (!whole)
		return;
	*low = mw_range_tree_append(&world->tree, *low, *high);
	*high = MW_RANGE_NONE;
}

/* Cut a random stretch, take it apart, and drop it, put it back, or some of it. */
static void do_cut(struct world *world)
{
	uint32_t start = random_below(world, SPACE),
		 end = start + random_below(world, random_below(world, 8) ? 80 : SPACE);
	uint32_t what = random_below(world, 6), middle, high, low;

	end = end > SPACE ? SPACE : end;
	middle = start + random_below(world, end - start + 1);
	assert_null(mw_range_tree_reserve(&world->tree, MW_RANGE_CUT_RESERVE));
	high = mw_range_tree_cut(&world->tree, BASE + start, BASE + end);
	take_apart(world, &low, &high, middle, what == 0);
	switch (what) {
	case 0: /* all is in `low` */
		mw_range_tree_put_back(&world->tree, low);
		break;
	case 1:
		check_list(world, low, start, middle);
		mw_range_tree_put_back(&world->tree, high);
		break;
	case 2:
	case 3:
		mw_range_tree_put_back(&world->tree, high);
		mw_range_tree_put_back(&world->tree, low);
		break;
	default:
		check_list(world, high, middle, end);
		check_list(world, low, start, middle);
	}
}

static void check_gap(struct world *world)
{
	uint32_t at = random_below(world, SPACE);
	mw_addr gap = mw_range_tree_gap(&world->tree, BASE + at);

	while (at < SPACE && world->owner[at] != 0)
		at++;
	assert_int_equal(gap, BASE + at);
}

static void check_find(struct world *world)
{
	uint32_t at = random_below(world, SPACE), expected = at;
	uint32_t id = mw_range_tree_after(&world->tree, world->tree.root, BASE + at);

	while (expected < SPACE && world->owner[expected] == 0)
		expected++;
	if (expected == SPACE) {
		assert_int_equal(id, MW_RANGE_NONE);
		return;
	}
	assert_true(id != MW_RANGE_NONE);
	assert_true(mw_range_at(&world->tree, id)->end > BASE + expected);
	if (expected > at)
		assert_int_equal(mw_range_at(&world->tree, id)->start, BASE + expected);
	else
		assert_true(mw_range_at(&world->tree, id)->start <= BASE + at);
	assert_int_equal(mw_range_at(&world->tree, id)->owner + 1, world->owner[expected]);
}

/* As much as there is below each range. */
static uint64_t check_sums(const struct mw_range_tree *tree, uint32_t id)
{
	const struct mw_range *range;
	uint64_t bytes;

	if (id == MW_RANGE_NONE)
		return 0;
	range = mw_range_at(tree, id);
	bytes = range->end - range->start + check_sums(tree, range->left) + check_sums(tree, range->right);
	assert_int_equal(range->bytes, bytes);
	return bytes;
}

static void check_all(const struct world *world)
{
	uint32_t id = mw_range_tree_after(&world->tree, world->tree.root, 0), at = 0;
	int pieces[OWNERS] = {0};

	while (id != MW_RANGE_NONE) {
		const struct mw_range *range = mw_range_at(&world->tree, id);

		for (; at < range->start - BASE; at++)
			assert_int_equal(world->owner[at], 0);
		for (; at < range->end - BASE; at++)
			assert_int_equal(world->owner[at], range->owner + 1);
		pieces[range->owner]++;
		id = mw_range_tree_after(&world->tree, world->tree.root, range->end);
	}
	for (; at < SPACE; at++)
		assert_int_equal(world->owner[at], 0);
	assert_memory_equal(pieces, world->pieces, sizeof(pieces));
	(void)check_sums(&world->tree, world->tree.root);
}

static void run(uint32_t seed)
{
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	world->random = seed;
	mw_range_tree_init(&world->tree, count_pieces, world);
	for (int i = 0; i < OPERATIONS; i++) {
		uint32_t what = random_below(world, 10);

		if (what < 5)
			do_insert(world, what < 2);
		else if (what < 8)
			do_cut(world);
		else if (what < 9)
			check_find(world);
		else
			check_gap(world);
		if (i % 1000 == 0)
			check_all(world);
	}
	check_all(world);
	mw_range_tree_deinit(&world->tree);
	free(world);
}

static void test_against_array(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 3; seed++)
		run(seed);
}

static void ignore_pieces(void *context, uint32_t owner, int change)
{
	(void)context;
	(void)owner;
	(void)change;
}

/* The priorities that keep the tree balanced must fall from `parent` on. */
static unsigned int depth_of(const struct mw_range_tree *tree, uint32_t id, uint32_t parent)
{
	unsigned int left, right;

	if (id == MW_RANGE_NONE)
		return 0;
	assert_true(parent >= mw_range_at(tree, id)->priority);
	parent = mw_range_at(tree, id)->priority;
	left = depth_of(tree, mw_range_at(tree, id)->left, parent);
	right = depth_of(tree, mw_range_at(tree, id)->right, parent);
	return 1 + (left > right ? left : right);
}

/* Ascending addresses are how mappings often come, and what an unbalanced tree dies of. */
static void test_stays_shallow(void **state)
{
	struct mw_range_tree tree;

	(void)state;
	mw_range_tree_init(&tree, ignore_pieces, NULL);
	for (uint32_t i = 0; i < 65536; i++) {
		assert_null(mw_range_tree_reserve(&tree, 1));
		mw_range_tree_insert(&tree, BASE + i * 2, BASE + i * 2 + 1, 0);
	}
	assert_true(depth_of(&tree, tree.root, UINT32_MAX) < 64);
	for (uint32_t i = 0; i < 65536; i += 1 + i % 3) {
		assert_null(mw_range_tree_reserve(&tree, MW_RANGE_CUT_RESERVE));
		mw_range_tree_release(&tree, mw_range_tree_cut(&tree, BASE + i * 2, BASE + i * 2 + 1));
	}
	assert_true(depth_of(&tree, tree.root, UINT32_MAX) < 64);
	mw_range_tree_deinit(&tree);
}

UNIT_GROUP(ranges)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_array),
		cmocka_unit_test(test_stays_shallow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
