// SPDX-License-Identifier: MIT
/* test_views.c: groups, call trees and blocks as text and JSON. */
#include "fixture.h"
#include "output/line.h"
#include "render.h"
#include "unit.h"

#include <memwatch/table.h>

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MEBI   UINT64_C(1048576)
#define SERVER "/opt/shop/bin/shopd"

#define SUMS(i_count, i_bytes, t_count, t_bytes)                                                                       \
	{                                                                                                              \
		.fates = { {i_count, i_bytes}, {t_count, t_bytes}, {0}, {0} }                                          \
	}

static struct mw_table_row group_rows[] = {
	{.level = 0,
	 .parent = MW_TABLE_ROOT,
	 .text = SERVER,
	 .number = MW_SIZE_UNKNOWN,
	 .sums = SUMS(10, 3 * MEBI, 5, 40)},
	{.level = 1, .parent = 0, .text = "worker", .number = 4243, .sums = SUMS(9, 2 * MEBI, 5, 40)},
	{.level = 1, .parent = 0, .folded = 7, .number = MW_SIZE_UNKNOWN, .sums = SUMS(1, MEBI, 0, 0)},
	{.level = 0, .parent = MW_TABLE_ROOT, .number = MW_SIZE_UNKNOWN, .sums = SUMS(1, MEBI, 0, 0)},
	{.level = 1, .parent = 3, .number = MW_SIZE_UNKNOWN, .sums = SUMS(1, MEBI, 0, 0)},
};
static const struct mw_table groups = {
	.by = {MW_COLUMN_MODULE, MW_COLUMN_THREAD},
	.by_count = 2,
	.rows = group_rows,
	.row_count = 5,
	.total = SUMS(11, 4 * MEBI, 5, 40),
};
static struct mw_tree_node tree_nodes[] = {
	{.level = 0,
	 .parent = MW_TABLE_ROOT,
	 .module = "/lib/libc.so.6",
	 .offset = 0x1234,
	 .sums = SUMS(11, 4 * MEBI, 0, 0)},
	{.level = 1, .parent = 0, .module = SERVER, .function = "main", .sums = SUMS(11, 4 * MEBI, 0, 0)},
	{.level = 2, .parent = 1, .module = SERVER, .function = "serve", .sums = SUMS(10, 3 * MEBI, 0, 0)},
	{.level = 3,
	 .parent = 2,
	 .module = SERVER,
	 .function = "handle",
	 .sums = SUMS(10, 3 * MEBI, 0, 0),
	 .self = SUMS(10, 3 * MEBI, 0, 0)},
	{.level = 2, .parent = 1, .folded = 12, .sums = SUMS(1, MEBI, 0, 0)},
};
static const struct mw_tree tree = {
	.direction = MW_TREE_DOWN,
	.nodes = tree_nodes,
	.node_count = 5,
	.total = SUMS(12, 4 * MEBI + 7, 0, 0),
	.self = SUMS(1, 7, 0, 0),
};
static struct mw_block_row block_rows[] = {
	{.addr = 0x7f0000001000,
	 .bytes = 4096,
	 .left = 1024,
	 .kind = MW_KIND_VM,
	 .fate = MW_FATE_TRANSIENT,
	 .pid = 4242,
	 .tid = 4243,
	 .thread = "worker",
	 .born_ns = 1500000000,
	 .died_ns = 1750000000,
	 .lifetime_ns = 250000000,
	 .resident = 8192},
	{.addr = 0x5500,
	 .bytes = MW_SIZE_UNKNOWN,
	 .fate = MW_FATE_AOFI,
	 .heap = "main",
	 .born_ns = MW_SIZE_UNKNOWN,
	 .died_ns = 2000000000,
	 .lifetime_ns = MW_SIZE_UNKNOWN,
	 .resident = MW_SIZE_UNKNOWN},
};
static const struct mw_block_list blocks = {.rows = block_rows, .row_count = 2, .count = 1002};
static const struct mw_views all_views = {
	.type = MW_FATE_IMPACTING,
	.filter = "not kind:vm",
	.groups = &groups,
	.tree = &tree,
	.blocks = &blocks,
};

static char *show(const char *form, const struct mw_views *views, unsigned width)
{
	const struct mw_report *report = fixture_server();

	return render(form, &report, 1, (struct mw_output_options){.top = 10, .width = width, .views = &views});
}

/* The line that holds this; to be freed. */
static char *line_of(const char *text, const char *part)
{
	const char *at = strstr(text, part), *begin = at;

	if (!at)
		fail_msg("there is no '%s' in:\n%s", part, text);
	while (begin > text && begin[-1] != '\n')
		begin--;
	return strndup(begin, strcspn(begin, "\n"));
}

static void assert_line(const char *text, const char *part, const char *expected)
{
	char *line = line_of(text, part);

	assert_string_equal(line, expected);
	free(line);
}

static void test_text(void **state)
{
	char *text = show("text", &all_views, 0);

	(void)state;
	assert_null(strstr(text, "Impacting stacks"));
	assert_line(
		text, "not kind:vm",
		"  (by module, within it by thread; sorted by bytes not freed; of what passes the filter not kind:vm)");
	assert_line(text, "worker (4243)\n",
		    "     2.0 MiB   50.0 %            9     2.0 MiB        40 B    worker (4243)");
	assert_line(text, "… 7 more", "     1.0 MiB   25.0 %            1     1.0 MiB         0 B    … 7 more");
	assert_line(text, "(runtime only)",
		    "     1.0 MiB   25.0 %            1     1.0 MiB         0 B  (runtime only)");
	assert_non_null(strstr(text, "    (unknown)"));
	/* Of the tree. */
	assert_non_null(strstr(text, "  libc.so.6+0x1234\n"));
	assert_non_null(strstr(text, "  shopd!main\n"));
	assert_non_null(strstr(text, "  - shopd!serve\n"));
	assert_non_null(strstr(text, "    shopd!handle\n"));
	assert_non_null(strstr(text, "  - … 12 more\n"));
	assert_non_null(strstr(text, "  (no stack)\n"));
	/* Of the blocks. */
	assert_line(text, "0x7f0000001000", "  0x7f0000001000       4,096     1.500     1.750    250.0 ms");
	assert_line(text, "vm, 1.0 KiB of it left, 8.0 KiB resident, thread worker",
		    "     freed, vm, 1.0 KiB of it left, 8.0 KiB resident, thread worker (4243)");
	assert_line(text, "0x000000005500", "  0x000000005500           ?         -     2.000           -");
	assert_line(text, "heap (main)", "     older freed, heap (main), thread ?");
	assert_non_null(strstr(text, "  … and 1,000 more\n"));
	free(text);
}

/* Of blocks of unknown size nobody says that they had none. */
static void test_unknown_sizes(void **state)
{
	struct mw_table_row rows[] = {
		{.parent = MW_TABLE_ROOT, .text = "/lib/a.so", .sums = SUMS(1, 8, 0, 0)},
		{.parent = MW_TABLE_ROOT, .text = "/lib/b.so", .sums = SUMS(1, 8, 0, 0)},
		{.parent = MW_TABLE_ROOT, .text = "/lib/c.so", .sums = SUMS(1, 8, 0, 0)},
	};
	struct mw_table table = {
		.by = {MW_COLUMN_MODULE}, .by_count = 1, .rows = rows, .row_count = 3, .total = SUMS(3, 24, 0, 0)};
	const struct mw_views views = {.groups = &table, .type = MW_FATE_AOFI};
	char *text;

	(void)state;
	rows[0].sums.fates[MW_FATE_AOFI] = (struct mw_amount){371, 0};
	rows[0].sums.aofi_unknown = 371;
	rows[1].sums.fates[MW_FATE_AOFI] = (struct mw_amount){2, 64};
	rows[1].sums.aofi_unknown = 1;
	table.total.fates[MW_FATE_AOFI] = (struct mw_amount){373, 64};
	table.total.aofi_unknown = 372;
	text = show("text", &views, 0);
	assert_line(text, "a.so", "     unknown    0.0 %         8 B          371         8 B         0 B  /lib/a.so");
	assert_non_null(strstr(text, "        64 B  100.0 %         8 B            2 "));
	assert_non_null(strstr(text, "         0 B    0.0 %         8 B            0 "));
	free(text);
}

/* A line in words, and in JSON; one without a name, and none. */
static void test_lines(void **state)
{
	static const struct mw_report_frame script = {.function = "handle",
						      .module = "[python]",
						      .file = "/srv/app.py",
						      .line = 41,
						      .language = MW_LANGUAGE_PYTHON};
	static const struct mw_report_frame nameless = {.module = SERVER, .offset = 0x1234};
	struct mw_table_row rows[] = {
		{.parent = MW_TABLE_ROOT, .text = "handle", .frame = &script, .sums = SUMS(3, 24, 0, 0)},
		{.parent = MW_TABLE_ROOT, .module = SERVER, .frame = &nameless, .sums = SUMS(2, 16, 0, 0)},
		{.parent = MW_TABLE_ROOT, .sums = SUMS(1, 8, 0, 0)},
	};
	const struct mw_table table = {
		.by = {MW_COLUMN_LINE}, .by_count = 1, .rows = rows, .row_count = 3, .total = SUMS(6, 48, 0, 0)};
	const struct mw_views views = {.groups = &table};
	char *text = show("text", &views, 0), *json = show("json", &views, 0);

	(void)state;
	assert_line(text, "app.py", "        24 B   50.0 %            3        24 B         0 B  handle() app.py:41");
	assert_non_null(strstr(text, "  shopd+0x1234\n"));
	assert_non_null(strstr(text, "  (no stack)\n"));
	assert_non_null(strstr(json, "{\"function\":\"handle\",\"module\":\"[python]\",\"file\":\"/srv/app.py\","
				     "\"line\":41,\"offset\":null}"));
	assert_non_null(strstr(json, "\"file\":null,\"line\":null,\"offset\":4660}"));
	free(text);
	free(json);
}

static void test_nothing(void **state)
{
	const struct mw_table no_groups = {.by_count = 1};
	const struct mw_tree no_tree = {.direction = MW_TREE_UP};
	const struct mw_block_list no_blocks = {0};
	const struct mw_views views = {.groups = &no_groups, .tree = &no_tree, .blocks = &no_blocks};
	char *text = show("text", &views, 80);

	(void)state;
	/* One line is all. */
	assert_non_null(strstr(text, ": nothing to show\n"));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	free(text);
}

/* Where there is no room for all of a name, what it is called stays. */
static void test_narrow(void **state)
{
	static const char function[] =
		"void shop::Basket<std::vector<std::string, shop::Arena> >::add(shop::Article const&, int)";
	struct mw_tree_node node = {
		.parent = MW_TABLE_ROOT, .module = "/opt/lib/libshop.so.1.2.3", .function = function};
	const struct mw_tree one = {.nodes = &node, .node_count = 1};
	struct mw_block_row row = {.stack = &fixture_server()->stacks[0]};
	const struct mw_block_list list = {.rows = &row, .row_count = 1, .count = 1};
	const struct mw_views views = {.tree = &one, .blocks = &list};
	char *text = show("text", &views, 130), *narrow = show("text", &views, 80);

	(void)state;
	assert_non_null(strstr(text, " libshop.so.1.2.3!shop::Basket<…>::add()\n"));
	assert_non_null(strstr(narrow, " shop::Basket<…>::add()\n"));
	assert_non_null(strstr(text, "shopd!shop::Basket::add()"));
	free(text);
	free(narrow);
}

static const char hostile[] =
	"\x1b[31m\xff\xe2\x80\xae\r\nfoo<bar, \"baz\"> with a name that goes on and on and on and on";

/* No line is too long, and nothing that a terminal would act upon is left, however wide it is. */
static void test_hostile(void **state)
{
	struct mw_table_row row = {.parent = MW_TABLE_ROOT, .text = hostile, .sums = SUMS(1, 1, 0, 0)};
	struct mw_table table = {.by = {MW_COLUMN_MODULE}, .by_count = 1, .rows = &row, .row_count = 1};
	struct mw_tree_node nodes[40] = {0};
	struct mw_tree deep = {.nodes = nodes, .node_count = 40};
	struct mw_block_row block = {
		.addr = 1, .heap = hostile, .thread = hostile, .stack = &fixture_hostile()->stacks[0]};
	struct mw_block_list list = {.rows = &block, .row_count = 1, .count = 1};
	struct mw_views views = {.filter = hostile, .groups = &table, .tree = &deep, .blocks = &list};

	(void)state;
	/* A tree that forks at each level: every node has two below it, of which the first goes on. */
	for (size_t i = 0; i < 40; i++)
		nodes[i] = (struct mw_tree_node){.level = (uint32_t)i,
						 .parent = i ? i - 1 : MW_TABLE_ROOT,
						 .function = hostile,
						 .module = hostile,
						 .sums = SUMS(1, 1, 0, 0)};
	for (size_t i = 1; i < 40; i++)
		nodes[i].parent = (i - 1) / 2 * 2; /* 0: 1 2; 2: 3 4; 4: 5 6; … */
	for (unsigned column = 0; column < MW_COLUMN_COUNT; column++) {
		table.by[0] = (enum mw_column)column;
		for (unsigned width = 60; width <= 200; width += 7) {
			char *text = show("text", &views, width), *groups_at = strstr(text, "\nGroups\n"), *rest;

			assert_non_null(groups_at);
			for (char *line = strtok_r(groups_at, "\n", &rest); line && strncmp(line, "What this", 9) != 0;
			     line = strtok_r(NULL, "\n", &rest)) {
				if (mw_utf8_columns(line, strlen(line)) > width)
					fail_msg("wider than %u: %s", width, line);
				for (const char *c = line; *c; c++)
					assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
				assert_null(strstr(line, "\xe2\x80\xae"));
			}
			free(text);
		}
	}
}

static json_t *parse(const char *text)
{
	json_error_t error;
	json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);

	if (!json)
		fail_msg("%s in line %d", error.text, error.line);
	return json;
}

static json_int_t number(const json_t *object, const char *first, const char *second)
{
	return json_integer_value(json_object_get(json_object_get(object, first), second));
}

static void test_json(void **state)
{
	char *text = show("json", &all_views, 0);
	json_t *json = parse(text), *view, *rows;

	(void)state;
	assert_true(json_is_array(json_object_get(json, "stacks")));
	view = json_object_get(json, "groups");
	rows = json_object_get(view, "rows");
	assert_string_equal(json_string_value(json_array_get(json_object_get(view, "by"), 1)), "thread");
	assert_string_equal(json_string_value(json_object_get(view, "type")), "impacting");
	assert_string_equal(json_string_value(json_object_get(view, "filter")), "not kind:vm");
	assert_int_equal(number(json_object_get(view, "total"), "size", "bytes"), 4 * MEBI + 40);
	assert_int_equal(json_array_size(rows), 5);
	assert_string_equal(json_string_value(json_object_get(json_array_get(rows, 0), "value")), SERVER);
	assert_true(json_is_null(json_object_get(json_array_get(rows, 0), "parent")));
	assert_int_equal(number(json_array_get(rows, 1), "value", "tid"), 4243);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(rows, 1), "parent")), 0);
	assert_int_equal(number(json_array_get(rows, 1), "transient", "count"), 5);
	assert_true(json_is_null(json_object_get(json_array_get(rows, 2), "value")));
	assert_int_equal(json_integer_value(json_object_get(json_array_get(rows, 2), "more")), 7);
	view = json_object_get(json, "tree");
	rows = json_object_get(view, "nodes");
	assert_string_equal(json_string_value(json_object_get(view, "direction")), "down");
	assert_int_equal(json_array_size(rows), 5);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(rows, 0), "offset")), 0x1234);
	assert_int_equal(number(json_object_get(json_array_get(rows, 3), "self"), "impacting", "bytes"), 3 * MEBI);
	view = json_object_get(json, "blocks");
	rows = json_object_get(view, "rows");
	assert_string_equal(json_string_value(json_object_get(view, "sort")), "size");
	assert_int_equal(json_integer_value(json_object_get(view, "count")), 1002);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(rows, 0), "freed_ns")), 1750000000);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(rows, 0), "resident")), 8192);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(rows, 0), "left")), 1024);
	assert_true(json_is_null(json_object_get(json_array_get(rows, 1), "resident")));
	assert_true(json_is_null(json_object_get(json_array_get(rows, 1), "bytes")));
	assert_true(json_is_null(json_object_get(json_array_get(rows, 1), "tid")));
	json_decref(json);
	free(text);
}

/* A tree of any depth is read again. */
static void test_deep_json(void **state)
{
	enum { DEPTH = 20000 };
	struct mw_tree_node *nodes = calloc(DEPTH, sizeof(*nodes));
	struct mw_tree deep = {.nodes = nodes, .node_count = DEPTH};
	struct mw_views views = {.tree = &deep};
	json_t *json;
	char *text;

	(void)state;
	assert_non_null(nodes);
	for (size_t i = 0; i < DEPTH; i++)
		nodes[i] = (struct mw_tree_node){
			.level = (uint32_t)i, .parent = i ? i - 1 : MW_TABLE_ROOT, .function = hostile};
	text = show("json", &views, 0);
	json = parse(text);
	assert_int_equal(json_array_size(json_object_get(json_object_get(json, "tree"), "nodes")), DEPTH);
	json_decref(json);
	free(text);
	text = show("text", &views, 80);
	assert_non_null(strstr(text, "Call tree"));
	free(text);
	free(nodes);
}

UNIT_GROUP(views)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),  cmocka_unit_test(test_unknown_sizes), cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_lines), cmocka_unit_test(test_narrow),        cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_json),  cmocka_unit_test(test_deep_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
