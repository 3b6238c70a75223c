// SPDX-License-Identifier: MIT
/* A live table without its screen: growth, order, what is selected, and what fits on a line. */
#include "top/draw.h"
#include "top/view.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#define S UINT64_C(1000000000)

/* Three stacks of two modules, one of an allocator's own, and two threads. */
static struct mw_top_stack stacks[] = {
	{.kind = MW_KIND_HEAP, .module = 0},
	{.kind = MW_KIND_HEAP, .module = 1},
	{.kind = MW_KIND_VM_INTERNAL, .module = 0},
	{.kind = MW_KIND_VM, .module = 0},
	{.kind = MW_KIND_HEAP, .module = MW_MODULE_NONE},
};
static const struct mw_view_module modules[] = {{.path = "/b/one"}, {.path = "/a/two"}};

static struct mw_top_known known;
static struct mw_top_view view;

static int begin(void **state)
{
	(void)state;
	view = (struct mw_top_view){.known = &known};
	for (size_t i = 0; i < 5; i++)
		assert_true(mw_shared_list_add(&known.stacks, &stacks[i]));
	for (size_t i = 0; i < 2; i++)
		assert_true(mw_shared_list_add(&known.modules, (void *)&modules[i]));
	return 0;
}

static int end(void **state)
{
	(void)state;
	mw_top_view_deinit(&view);
	mw_shared_list_deinit(&known.stacks);
	mw_shared_list_deinit(&known.modules);
	return 0;
}

/* Stacks with so many bytes in so many blocks of 10. */
static struct mw_top_shot *shot(uint64_t time_ns, uint32_t zeros, const uint64_t *bytes, uint32_t count)
{
	struct mw_top_shot *made = mw_top_shot_create(count, 2, 0);

	assert_non_null(made);
	made->time_ns = time_ns;
	made->zeros = zeros;
	made->names[0] = (struct mw_top_thread){11, "main"};
	made->names[1] = (struct mw_top_thread){12, "helper"};
	for (uint32_t i = 0; i < count; i++)
		made->stacks[i] = (struct mw_track_sum){{bytes[i] / 10, bytes[i]}, bytes[i] / 10 + time_ns / S, 0};
	made->threads[1] = (struct mw_track_sum){{1, 5}, 2, 0};
	return made;
}

static void tell(uint64_t second, uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t bytes[] = {a, b, 7777, c, 0};

	mw_top_view_shot(&view, shot(second * S, 0, bytes, 5));
}

static uint32_t key_at(size_t i)
{
	assert_true(i < view.item_count);
	return view.items[i].key;
}

static void test_growth(void **state)
{
	(void)state;
	/* Less than the span: since the first. */
	tell(0, 0, 500, 0);
	assert_true(mw_top_view_update(&view));
	assert_ptr_equal(view.base, view.shown);
	assert_int_equal(view.rows.items[0].growth, 0);
	assert_true(mw_top_view_rate(&view, 5) == 0);
	tell(1, 100, 400, 0);
	assert_true(mw_top_view_update(&view));
	assert_int_equal(view.rows.items[0].key, 1);
	assert_int_equal(view.rows.items[0].growth, -100);
	assert_int_equal(view.rows.items[1].growth, 100);
	assert_true(mw_top_view_rate(&view, (double)view.rows.items[1].growth) == 100);
	/* A second each: over ten of them. */
	for (uint64_t i = 2; i <= 30; i++)
		tell(i, 100 * i, 400, 0);
	assert_true(mw_top_view_update(&view));
	assert_int_equal(view.base->time_ns, 20 * S);
	assert_int_equal(view.rows.items[0].growth, 1000);
	assert_int_equal(view.rows.items[0].new_allocations, 100 + 10);
	/* Rare ones: the first inside, or the one before as long as it is near. */
	tell(50, 100, 400, 0);
	assert_int_equal(view.base->time_ns, 50 * S);
	tell(55, 100, 400, 0);
	assert_int_equal(view.base->time_ns, 50 * S);
}

static struct mw_top_stack *made_stack(mw_addr inner, mw_addr code, uint32_t module)
{
	struct mw_top_stack *stack = calloc(1, sizeof(*stack) + 2 * sizeof(stack->frames[0]));

	assert_non_null(stack);
	stack->kind = MW_KIND_HEAP;
	stack->api = "malloc";
	stack->frame_count = 2;
	stack->frames[0] = (struct mw_raw_frame){inner, 0};
	stack->frames[1] = (struct mw_raw_frame){code, module};
	return stack;
}

/* Stacks that differ only in addresses of code in no file are one, and have one row. */
static void test_same(void **state)
{
	struct mw_top_stack *made[] = {
		made_stack(0x10, 0x7000, MW_MODULE_NONE),
		made_stack(0x10, 0x7010, MW_MODULE_NONE),
		made_stack(0x20, 0x7010, MW_MODULE_NONE),
		made_stack(0x10, 0x7000, 1),
		made_stack(0x10, 0x7010, 1),
		made_stack(0x10, 0x9999, MW_MODULE_NONE),
	};
	const uint32_t as[] = {0, 0, 2, 3, 4, 0};
	const struct mw_perf_place nowhere = {.known = false};
	struct mw_top_same same = {.named = false};
	struct mw_shared_list list = {.count = 0};

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(mw_top_same_find(&same, &nowhere, &list, made[i]), as[i]);
		assert_true(mw_shared_list_add(&list, made[i]));
	}
	/* Where each has a name each is itself. */
	same.named = true;
	assert_int_equal(mw_top_same_find(&same, &nowhere, &list, made[5]), 6);
	mw_map_deinit(&same.first);
	mw_shared_list_deinit(&list);
	for (size_t i = 0; i < 6; i++)
		free(made[i]);

	stacks[4].as = 1;
	mw_top_view_shot(&view, shot(0, 0, (const uint64_t[]){100, 20, 7777, 0, 50}, 5));
	mw_top_view_shot(&view, shot(S, 0, (const uint64_t[]){100, 20, 7777, 0, 80}, 5));
	assert_true(mw_top_view_update(&view));
	stacks[4].as = 0;
	assert_int_equal(view.rows.items[0].key, 0);
	assert_int_equal(view.rows.items[0].impacting.bytes, 180);
	assert_int_equal(view.rows.items[0].growth, 30);
	assert_int_equal(view.rows.items[1].key, 1);
	for (size_t i = 0; i < view.rows.count; i++)
		assert_true(view.rows.items[i].key != 4 && view.rows.items[i].key != 2);
}

static void test_zero(void **state)
{
	const uint64_t before[] = {1000, 0, 0, 0, 0}, after[] = {30};

	(void)state;
	mw_top_view_shot(&view, shot(5 * S, 0, before, 5));
	mw_top_view_shot(&view, shot(6 * S, 1, after, 1));
	assert_true(mw_top_view_update(&view));
	assert_int_equal(view.history.count, 1);
	assert_int_equal(view.rows.count, 1);
	assert_int_equal(view.rows.items[0].impacting.bytes, 30);
	assert_int_equal(view.rows.items[0].growth, 0);
}

static void test_groups(void **state)
{
	(void)state;
	tell(1, 100, 400, 900);
	assert_true(mw_top_view_update(&view));
	/* Neither what an allocator maps for itself, nor what never was. */
	assert_int_equal(view.rows.count, 4);
	assert_int_equal(key_at(0), 3);
	assert_int_equal(key_at(1), 1);
	assert_int_equal(key_at(2), 0);
	mw_top_view_group(&view, MW_TOP_MODULES);
	assert_true(mw_top_view_update(&view));
	assert_int_equal(view.rows.items[0].key, 0);
	assert_int_equal(view.rows.items[0].impacting.bytes, 1000);
	assert_int_equal(view.rows.items[1].key, 1);
	assert_int_equal(view.rows.items[1].impacting.bytes, 400);
	assert_true(mw_top_view_toggle(&view, true, true));
	assert_true(mw_top_view_update(&view));
	assert_int_equal(key_at(1), 3);
	assert_int_equal(view.items[1].kind, MW_TOP_CHILD);
	assert_int_equal(mw_top_view_row(&view, &view.items[1])->impacting.bytes, 900);
	assert_int_equal(key_at(2), 0);
	assert_int_equal(view.items[3].kind, MW_TOP_ROW);
	mw_top_view_group(&view, MW_TOP_THREADS);
	assert_true(mw_top_view_update(&view));
	assert_int_equal(view.rows.count, 1);
	assert_int_equal(view.rows.items[0].key, 1);
	assert_false(mw_top_view_toggle(&view, true, true));
}

static void test_order(void **state)
{
	(void)state;
	tell(0, 300, 400, 0);
	tell(1, 100, 400, 900);
	view.sort = MW_TOP_BY_GROWTH;
	assert_true(mw_top_view_update(&view));
	assert_int_equal(key_at(0), 3);
	assert_int_equal(key_at(3), 0);
	view.reversed = true;
	assert_true(mw_top_view_update(&view));
	assert_int_equal(key_at(0), 0);
	view.reversed = false;
	mw_top_view_group(&view, MW_TOP_MODULES);
	view.sort = MW_TOP_BY_NAME;
	assert_true(mw_top_view_update(&view));
	assert_int_equal(key_at(0), 1);
	assert_int_equal(key_at(1), 0);
	/* That has no name comes last, also the other way round. */
	assert_int_equal(key_at(2), MW_MODULE_NONE);
	view.reversed = true;
	assert_true(mw_top_view_update(&view));
	assert_int_equal(key_at(0), 0);
	assert_int_equal(key_at(2), MW_MODULE_NONE);
}

static void test_selection(void **state)
{
	(void)state;
	tell(1, 100, 400, 900);
	assert_true(mw_top_view_update(&view));
	mw_top_view_move(&view, 1);
	assert_int_equal(mw_top_view_item(&view)->key, 1);
	/* It stays with its row, wherever that goes. */
	tell(2, 100, 4000, 900);
	assert_true(mw_top_view_update(&view));
	assert_int_equal(view.selected, 0);
	assert_int_equal(mw_top_view_item(&view)->key, 1);
	mw_top_view_move(&view, LONG_MAX);
	assert_int_equal(view.selected, 3);
	view.lines = 2;
	assert_true(mw_top_view_update(&view));
	assert_int_equal(view.first, 2);
	mw_top_view_move(&view, -LONG_MAX);
	assert_true(mw_top_view_update(&view));
	assert_int_equal(view.selected + view.first, 0);
	/* A screen that is too small for any. */
	mw_top_view_move(&view, 2);
	view.lines = 0;
	assert_true(mw_top_view_update(&view));
	assert_int_equal(view.first, 0);
	view.lines = 1;
	assert_true(mw_top_view_update(&view));
	assert_int_equal(view.first, 2);
}

static void test_pause(void **state)
{
	(void)state;
	tell(1, 100, 0, 0);
	mw_top_view_pause(&view, true);
	for (uint64_t i = 2; i < 100; i++)
		tell(i, 1000, 0, 0);
	assert_true(mw_top_view_update(&view));
	assert_int_equal(view.rows.items[0].impacting.bytes, 100);
	mw_top_view_pause(&view, false);
	assert_true(mw_top_view_update(&view));
	assert_int_equal(view.rows.items[0].impacting.bytes, 1000);
	assert_int_equal(view.base->time_ns, 89 * S);
}

static void check_cut(const char *text, size_t columns, bool utf8, const char *expected, size_t used)
{
	char out[MW_TOP_LINE];

	memset(out, 'x', sizeof(out));
	assert_int_equal(mw_top_cut(text, columns, utf8, out), used);
	assert_string_equal(out, expected);
}

static void test_cut(void **state)
{
	char *template = malloc(10001);
	char out[MW_TOP_LINE];

	(void)state;
	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
	check_cut("abc", 3, true, "abc", 3);
	check_cut("abcd", 3, true, "ab…", 3);
	check_cut("abcd", 3, false, "ab~", 3);
	check_cut("abcd", 1, true, "…", 1);
	check_cut("abcd", 0, true, "", 0);
	check_cut("", 5, true, "", 0);
	/* A wide letter does not fit into one column. */
	check_cut("寿司", 4, true, "寿司", 4);
	check_cut("寿司a", 4, true, "寿…", 3);
	check_cut("寿司a", 3, true, "寿…", 3);
	check_cut("寿司", 20, false, "\\u5bff\\u53f8", 12);
	/* What would drive or confuse a terminal. */
	check_cut("\x1b[31m\n", 20, true, "\\x1b[31m\\x0a", 12);
	check_cut("\x1b[31m", 3, true, "…", 1);
	check_cut("a\u202eb\u05d0c\u0301", 40, true, "a\\u202eb\\u05d0c\\u0301", 21);
	check_cut("\U0001e900", 40, true, "\\U01e900", 8);
	check_cut("\xff\xc3", 9, true, "\xef\xbf\xbd\xef\xbf\xbd", 2);
	check_cut("\xff\xc3", 9, false, "??", 2);
	assert_non_null(template);
	memset(template, '<', 10000);
	template[10000] = '\0';
	assert_int_equal(mw_top_cut(template, 100000, true, out), MW_TOP_WIDTH_MAX);
	for (size_t i = 0; i < 3000; i++)
		memcpy(template + 3 * i, "寿", 3);
	assert_true(mw_top_cut(template, 100000, true, out) <= MW_TOP_WIDTH_MAX);
	assert_true(strlen(out) < MW_TOP_LINE);
	free(template);
}

static void test_layout(void **state)
{
	struct mw_top_layout layout;

	(void)state;
	assert_false(mw_top_layout_make(19, 24, &layout));
	assert_false(mw_top_layout_make(80, 4, &layout));
	for (int width = MW_TOP_WIDTH_MIN; width < 300; width++)
		for (int height = MW_TOP_HEIGHT_MIN; height < 60; height++) {
			int sum = 0;

			assert_true(mw_top_layout_make(width, height, &layout));
			for (size_t i = 0; i < MW_TOP_COLUMNS; i++)
				sum += layout.columns[i];
			assert_int_equal(sum + layout.name, width);
			assert_int_equal(layout.header + layout.head + layout.rows + 1, height);
			assert_true(layout.name >= 9 && layout.rows >= 3 && layout.columns[MW_TOP_BYTES]);
			assert_int_equal(layout.columns[MW_TOP_VERDICT], width < 46 ? 0 : width < 57 ? 10 : 19);
		}
}

static void test_rates(void **state)
{
	static const struct {
		double value;
		const char *rate;
	} cases[] = {
		{0, "0"},       {0.3, "0.3"},   {12, "12"},   {1536, "1536"},
		{20000, "20k"}, {1.2e7, "12M"}, {-2048, "0"}, {-0.2, "0"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(mw_top_show_rate(cases[i].value).text, cases[i].rate);
}

static void check_moment(uint64_t ns, const char *expected)
{
	assert_string_equal(mw_top_show_moment(ns).text, expected);
}

static void test_moment(void **state)
{
	(void)state;
	check_moment(0, "0.000000");
	check_moment(1, "0.000001");
	check_moment(1000, "0.000001");
	check_moment(1001, "0.000002");
	check_moment(3 * S + 141592500, "3.141593");
	check_moment(999999999, "1.000000");
	check_moment(UINT64_MAX, "18446744073.709552");
}

static void check_missed(size_t count, bool track_heap, bool track_vm, size_t size, const char *text)
{
	static const struct mw_hook_info hooks[] = {
		{.function = "malloc", .kind = MW_KIND_HEAP},
		{.function = "valloc", .kind = MW_KIND_HEAP, .refused = "why"},
		{.function = "sbrk", .kind = MW_KIND_VM, .refused = "why"},
		{.function = "pvalloc", .kind = MW_KIND_HEAP, .refused = "why"},
		{.function = "a", .kind = MW_KIND_HEAP, .refused = "why"},
		{.function = "b", .kind = MW_KIND_HEAP, .refused = "why"},
		{.function = "c", .kind = MW_KIND_HEAP, .refused = "why"},
	};
	char out[80];

	mw_top_show_missed(hooks, count, track_heap, track_vm, out, size);
	assert_string_equal(out, text);
}

static void test_missed(void **state)
{
	(void)state;
	check_missed(0, true, true, 80, "");
	check_missed(1, true, true, 80, "");
	check_missed(4, true, true, 80, "valloc, sbrk, pvalloc");
	check_missed(4, true, false, 80, "valloc, pvalloc");
	check_missed(4, false, true, 80, "sbrk");
	check_missed(5, true, true, 80, "valloc, sbrk, pvalloc, a");
	check_missed(7, true, true, 80, "valloc, sbrk, pvalloc, a and 2 more");
	check_missed(7, true, true, 12, "valloc, sbr");
}

UNIT_GROUP(top)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_growth, begin, end),
		cmocka_unit_test_setup_teardown(test_same, begin, end),
		cmocka_unit_test_setup_teardown(test_zero, begin, end),
		cmocka_unit_test_setup_teardown(test_groups, begin, end),
		cmocka_unit_test_setup_teardown(test_order, begin, end),
		cmocka_unit_test_setup_teardown(test_selection, begin, end),
		cmocka_unit_test_setup_teardown(test_pause, begin, end),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_moment),
		cmocka_unit_test(test_missed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
