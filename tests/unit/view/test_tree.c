// SPDX-License-Identifier: MIT
/* test_tree.c: call trees. */
#include "shop.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static struct mw_cells *cells_for(const struct mw_view_question *question)
{
	struct mw_cells_options options;
	struct mw_cells *cells = NULL;

	assert_true(mw_view_cells_options(question, &options));
	options.heap_of = shop_heap_of;
	assert_null(mw_cells_create(&options, &cells));
	return cells;
}

static void feed(struct mw_cells *cells, struct mw_track_fate fate)
{
	(void)mw_cells_take(cells, &fate);
}

static void feed_shop(struct mw_cells *cells)
{
	feed(cells, shop_fate(0x10, 100, ORDER, WORKER, 1000, 0));
	feed(cells, shop_fate(0x20, 200, ORDER_AGAIN, WORKER, 1001, 0));
	feed(cells, shop_fate(0x30, 40, ORDER, WORKER, 1120, 1130));
	feed(cells, shop_fate(0x50, 50, PUT, MAIN_THREAD, 1500, 0));
	feed(cells, shop_fate(0x11000, 4096, RESERVE, MAIN_THREAD, 1200, 0));
	feed(cells, shop_fate(0x90000, 4096, INTERNAL, MAIN_THREAD, 1200, 0));
	feed(cells, shop_fate(0x90, 7, MW_STACK_NONE, MAIN_THREAD, 1200, 0));
}

static void assert_node(const struct mw_tree_node *node, uint32_t level, size_t parent, const char *function,
			uint64_t impacting, uint64_t self)
{
	assert_int_equal(node->level, level);
	assert_true(node->parent == parent);
	if (function)
		assert_string_equal(node->function, function);
	else
		assert_null(node->function);
	assert_int_equal(node->sums.fates[MW_FATE_IMPACTING].bytes, impacting);
	assert_int_equal(node->self.fates[MW_FATE_IMPACTING].bytes, self);
}

static void test_down(void **state)
{
	struct mw_view_question question = {.tree = MW_TREE_DOWN, .type = MW_FATE_IMPACTING, .top = 10};
	struct mw_cells *cells = cells_for(&question);
	const struct mw_tree_node *nodes;
	struct mw_views *views = NULL;
	struct shop shop;

	(void)state;
	shop_init(&shop);
	feed_shop(cells);
	assert_null(mw_cells_end(cells, NULL, NULL));
	shop.process.cells = cells;
	assert_null(mw_views_create(&question, &shop.process, 1, &views));
	assert_int_equal(views->tree->direction, MW_TREE_DOWN);
	assert_int_equal(views->tree->total.fates[MW_FATE_IMPACTING].bytes, 4453);
	assert_int_equal(views->tree->self.fates[MW_FATE_IMPACTING].bytes, 7);
	assert_int_equal(views->tree->node_count, 7);
	nodes = views->tree->nodes;
	assert_node(&nodes[0], 0, MW_TABLE_ROOT, NULL, 4446, 0);
	assert_string_equal(nodes[0].module, LIBC);
	assert_int_equal(nodes[0].offset, 0x1234);
	assert_node(&nodes[1], 1, 0, "main", 4446, 0);
	assert_node(&nodes[2], 2, 1, "cache_put", 4146, 50);
	assert_node(&nodes[3], 3, 2, "arena_reserve", 4096, 4096);
	assert_true(nodes[3].sums.peak_exact);
	assert_node(&nodes[4], 2, 1, "shop::serve", 300, 0);
	assert_node(&nodes[5], 3, 4, "shop::Basket::add(shop::Order const&)", 300, 0);
	assert_int_equal(nodes[6].self.fates[MW_FATE_IMPACTING].count, 2);
	assert_int_equal(nodes[6].self.fates[MW_FATE_TRANSIENT].bytes, 40);
	mw_views_destroy(views);
	mw_cells_destroy(cells);
}

static void test_up(void **state)
{
	struct mw_view_question question = {.tree = MW_TREE_UP, .type = MW_FATE_IMPACTING, .top = 1};
	struct mw_filter *filter = NULL;
	const struct mw_tree_node *nodes;
	struct mw_views *views = NULL;
	struct mw_cells *cells;
	struct shop shop;

	(void)state;
	shop_init(&shop);
	assert_null(mw_filter_parse("not size:7 and (kind:vm-internal or kind:vm or thread:worker)", &filter));
	question.filter = filter;
	cells = cells_for(&question);
	feed_shop(cells);
	assert_null(mw_cells_end(cells, NULL, NULL));
	shop.process.cells = cells;
	assert_null(mw_views_create(&question, &shop.process, 1, &views));
	nodes = views->tree->nodes;
	assert_int_equal(views->tree->node_count, 5);
	assert_node(&nodes[0], 0, MW_TABLE_ROOT, "arena_reserve", 4096, 0);
	assert_node(&nodes[1], 1, 0, "cache_put", 4096, 0);
	assert_node(&nodes[2], 2, 1, "main", 4096, 0);
	assert_node(&nodes[3], 3, 2, NULL, 4096, 4096);
	/* The order and the allocator's own. */
	assert_node(&nodes[4], 0, MW_TABLE_ROOT, NULL, 4396, 0);
	assert_int_equal(nodes[4].folded, 2);
	mw_views_destroy(views);
	mw_cells_destroy(cells);
	mw_filter_destroy(filter);
}

/* The functions of the one stack's nodes, as they follow each other. */
static void assert_shown(enum mw_frames frames, const char *const *names, size_t count)
{
	static struct mw_report_frame script[] = {
		{.function = "list_append", .module = APP, .interprets = true},
		{.function = "eval", .module = LIBC, .interprets = true},
		{.function = "handle", .module = "[python]", .language = MW_LANGUAGE_PYTHON},
		{.function = "run", .module = "[python]", .language = MW_LANGUAGE_PYTHON},
		{.function = "eval", .module = APP, .interprets = true},
		{.function = "main", .module = APP},
	};
	struct mw_view_question question = {.tree = MW_TREE_UP, .type = MW_FATE_IMPACTING, .top = 10, .frames = frames};
	struct mw_cells *cells = cells_for(&question);
	struct mw_views *views = NULL;
	struct shop shop;

	shop_init(&shop);
	shop.stacks[0].frames = script;
	shop.stacks[0].frame_count = 6;
	feed(cells, shop_fate(0x10, 100, ORDER, WORKER, 1000, 0));
	assert_null(mw_cells_end(cells, NULL, NULL));
	shop.process.cells = cells;
	assert_null(mw_views_create(&question, &shop.process, 1, &views));
	assert_int_equal(views->tree->node_count, count);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(views->tree->nodes[i].function, names[i]);
	mw_views_destroy(views);
	mw_cells_destroy(cells);
}

static void test_frames(void **state)
{
	static const char *const all[] = {"list_append", "eval", "handle", "run", "eval", "main"},
				 *const own[] = {"(interpreter)", "handle", "run", "(interpreter)", "main"},
				 *const scripts[] = {"handle", "run"};

	(void)state;
	assert_shown(MW_FRAMES_ALL, all, 6);
	assert_shown(MW_FRAMES_OWN, own, 5);
	assert_shown(MW_FRAMES_DEFAULT, own, 5);
	assert_shown(MW_FRAMES_SCRIPT, scripts, 2);
}

/* A stack that was cut does not look like one that begins there. */
static void test_cut(void **state)
{
	struct mw_view_question question = {.tree = MW_TREE_DOWN, .type = MW_FATE_ALL, .sort = MW_SORT_SIZE, .top = 9};
	struct mw_filter *filter = NULL;
	struct mw_views *views = NULL;
	struct mw_cells *cells;
	struct shop shop;

	(void)state;
	shop_init(&shop);
	assert_null(mw_filter_parse("kind:vm-internal", &filter));
	question.filter = filter;
	cells = cells_for(&question);
	feed_shop(cells);
	assert_null(mw_cells_end(cells, NULL, NULL));
	shop.process.cells = cells;
	assert_null(mw_views_create(&question, &shop.process, 1, &views));
	assert_int_equal(views->tree->node_count, 2);
	assert_non_null(views->tree->nodes[0].cut);
	assert_null(views->tree->nodes[0].function);
	assert_string_equal(views->tree->nodes[1].function, "sysmalloc");
	mw_views_destroy(views);
	mw_cells_destroy(cells);
	mw_filter_destroy(filter);
}

static void add(struct mw_sums *sum, const struct mw_sums *other)
{
	for (unsigned fate = 0; fate < MW_FATE_COUNT; fate++) {
		sum->fates[fate].count += other->fates[fate].count;
		sum->fates[fate].bytes += other->fates[fate].bytes;
	}
}

static void assert_equal(const struct mw_sums *a, const struct mw_sums *b)
{
	for (unsigned fate = 0; fate < MW_FATE_COUNT; fate++) {
		assert_int_equal(a->fates[fate].count, b->fates[fate].count);
		assert_int_equal(a->fates[fate].bytes, b->fates[fate].bytes);
	}
}

/* Each node is what ends in it and what is below it. */
static void assert_tree(const struct mw_tree *tree)
{
	struct mw_sums *sums = calloc(tree->node_count + 1, sizeof(*sums));

	assert_non_null(sums);
	for (size_t i = 0; i < tree->node_count; i++) {
		const struct mw_tree_node *node = &tree->nodes[i];

		assert_true(node->parent == MW_TABLE_ROOT || node->parent < i);
		assert_int_equal(node->level, node->parent == MW_TABLE_ROOT ? 0 : tree->nodes[node->parent].level + 1);
		add(&sums[node->parent == MW_TABLE_ROOT ? tree->node_count : node->parent], &node->sums);
		add(&sums[i], &node->self);
	}
	add(&sums[tree->node_count], &tree->self);
	assert_equal(&sums[tree->node_count], &tree->total);
	for (size_t i = 0; i < tree->node_count; i++)
		if (!tree->nodes[i].folded)
			assert_equal(&sums[i], &tree->nodes[i].sums);
	free(sums);
}

/* A report of `count` stacks of made-up frames, `depth` deep at most; tracker stacks are report stacks. */
struct forest {
	struct mw_report report;
	struct mw_view_process process;
	uint32_t *stack_of;
};

static const char *const names[] = {"a", "b", "c", "d", "e", NULL};

static void forest_init(struct forest *forest, uint64_t *seed, size_t count, size_t depth, bool random)
{
	*forest = (struct forest){0};
	forest->report.stacks = calloc(count, sizeof(*forest->report.stacks));
	forest->stack_of = calloc(count, sizeof(*forest->stack_of));
	assert_non_null(forest->report.stacks);
	assert_non_null(forest->stack_of);
	forest->report.stack_count = count;
	for (size_t i = 0; i < count; i++) {
		struct mw_report_stack *stack = &forest->report.stacks[i];
		size_t frames = random ? shop_random(seed, depth + 1) : depth;

		forest->stack_of[i] = (uint32_t)i;
		snprintf(stack->id, sizeof(stack->id), "%016zx", i + 1);
		stack->frames = calloc(frames + 1, sizeof(*stack->frames));
		assert_non_null(stack->frames);
		stack->frame_count = frames;
		for (size_t j = 0; j < frames; j++) {
			stack->frames[j].function = random ? names[shop_random(seed, 6)] : "recurse";
			stack->frames[j].module = random && shop_random(seed, 3) == 0 ? CACHE : APP;
			stack->frames[j].offset = random ? shop_random(seed, 2) : 1;
		}
		if (!random && frames)
			stack->frames[0].offset = i, stack->frames[0].function = NULL;
	}
	forest->process = (struct mw_view_process){
		.report = &forest->report,
		.stack_of = forest->stack_of,
		.stack_count = count,
	};
}

static void forest_deinit(struct forest *forest)
{
	for (size_t i = 0; i < forest->report.stack_count; i++)
		free(forest->report.stacks[i].frames);
	free(forest->report.stacks);
	free(forest->stack_of);
}

static void test_random(void **state)
{
	uint64_t seed = 11;

	(void)state;
	for (unsigned round = 0; round < 300; round++) {
		struct mw_view_question question = {
			.tree = round % 2 ? MW_TREE_UP : MW_TREE_DOWN,
			.type = (enum mw_fate)shop_random(&seed, MW_FATE_COUNT + 1),
			.sort = (enum mw_sort)shop_random(&seed, MW_SORT_NUMBER),
			.top = shop_random(&seed, 5),
		};
		struct mw_cells *cells = cells_for(&question);
		struct mw_views *views = NULL;
		struct mw_sums whole = {0};
		struct forest forest;

		forest_init(&forest, &seed, 1 + shop_random(&seed, 60), 8, true);
		for (unsigned i = 0; i < 300; i++) {
			struct mw_track_fate fate = shop_random_fate(&seed);
			enum mw_fate type = shop_type(&fate);

			fate.stack = (uint32_t)shop_random(&seed, forest.report.stack_count + 1);
			feed(cells, fate);
			if (fate.kind == MW_KIND_VM_INTERNAL)
				continue;
			whole.fates[type].count += fate.last;
			whole.fates[type].bytes += fate.bytes != MW_SIZE_UNKNOWN ? fate.bytes : 0;
		}
		assert_null(mw_cells_end(cells, NULL, NULL));
		forest.process.cells = cells;
		assert_null(mw_views_create(&question, &forest.process, 1, &views));
		assert_equal(&views->tree->total, &whole);
		assert_tree(views->tree);
		mw_views_destroy(views);
		mw_cells_destroy(cells);
		forest_deinit(&forest);
	}
}

/* Recursion as deep as no stack of ours could follow, many times: our own stack is not used for it, and each frame is
 * looked at a few times only (quadratic time would be hours). */
static void test_deep(void **state)
{
	enum { STACKS = 20, DEPTH = 100000 };
	struct mw_view_question question = {.type = MW_FATE_IMPACTING, .top = 3};
	struct mw_views *views = NULL;
	struct forest forest;
	uint64_t seed = 1;

	(void)state;
	forest_init(&forest, &seed, STACKS, DEPTH, false);
	for (unsigned direction = MW_TREE_DOWN; direction <= MW_TREE_UP; direction++) {
		struct mw_cells *cells;

		question.tree = (enum mw_tree_direction)direction;
		cells = cells_for(&question);
		for (uint32_t i = 0; i < STACKS; i++) {
			struct mw_track_fate fate = shop_fate(16 * i, 10, ORDER, WORKER, 1000, 0);

			fate.stack = i;
			feed(cells, fate);
		}
		assert_null(mw_cells_end(cells, NULL, NULL));
		forest.process.cells = cells;
		assert_null(mw_views_create(&question, &forest.process, 1, &views));
		assert_tree(views->tree);
		assert_int_equal(views->tree->nodes[views->tree->node_count - 1].folded, STACKS - 3);
		assert_int_equal(views->tree->node_count,
				 direction == MW_TREE_DOWN ? DEPTH - 1 + 3 + 1 : 3 * DEPTH + 1);
		mw_views_destroy(views);
		mw_cells_destroy(cells);
	}
	forest_deinit(&forest);
}

/* A single node that is left out is named. */
static void test_one_crumb(void **state)
{
	struct mw_view_question question = {.tree = MW_TREE_DOWN, .type = MW_FATE_IMPACTING, .top = 10};
	struct mw_cells *cells = cells_for(&question);
	const struct mw_tree_node *nodes;
	struct mw_views *views = NULL;
	struct shop shop;

	(void)state;
	shop_init(&shop);
	feed(cells, shop_fate(0x10, 1, ORDER, WORKER, 1000, 0));
	feed(cells, shop_fate(0x50, 5000, PUT, MAIN_THREAD, 1500, 0));
	assert_null(mw_cells_end(cells, NULL, NULL));
	shop.process.cells = cells;
	assert_null(mw_views_create(&question, &shop.process, 1, &views));
	nodes = views->tree->nodes;
	assert_int_equal(views->tree->node_count, 4);
	assert_node(&nodes[2], 2, 1, "cache_put", 5000, 5000);
	assert_node(&nodes[3], 2, 1, "shop::serve", 1, 0);
	assert_int_equal(nodes[3].folded, 1);
	assert_tree(views->tree);
	mw_views_destroy(views);
	mw_cells_destroy(cells);
}

/* What is less than a thousandth of the whole is one node. */
static void test_crumbs(void **state)
{
	enum { STACKS = 50 };
	struct mw_view_question question = {.tree = MW_TREE_UP, .type = MW_FATE_IMPACTING, .top = 1000};
	struct mw_cells *cells = cells_for(&question);
	struct mw_views *views = NULL;
	struct forest forest;
	uint64_t seed = 1;

	(void)state;
	forest_init(&forest, &seed, STACKS, 2, false);
	for (uint32_t i = 0; i < STACKS; i++) {
		struct mw_track_fate fate = shop_fate(16 * i, i < 3 ? 10000 : i == 3 ? 31 : 1, ORDER, WORKER, 1000, 0);

		fate.stack = i;
		feed(cells, fate);
	}
	assert_null(mw_cells_end(cells, NULL, NULL));
	forest.process.cells = cells;
	assert_null(mw_views_create(&question, &forest.process, 1, &views));
	assert_int_equal(views->tree->node_count, 2 * 4 + 1);
	assert_int_equal(views->tree->nodes[8].folded, STACKS - 4);
	assert_tree(views->tree);
	mw_views_destroy(views);
	mw_cells_destroy(cells);
	forest_deinit(&forest);
}

UNIT_GROUP(tree)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_down),      cmocka_unit_test(test_up),     cmocka_unit_test(test_cut),
		cmocka_unit_test(test_frames),    cmocka_unit_test(test_random), cmocka_unit_test(test_deep),
		cmocka_unit_test(test_one_crumb), cmocka_unit_test(test_crumbs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
