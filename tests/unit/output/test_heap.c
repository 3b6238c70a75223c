// SPDX-License-Identifier: MIT
/* test_heap.c: a look at a heap as text and as JSON: holders as a tree, contents of blocks. */
#include "render.h"
#include "unit.h"

#include <memwatch/heap.h>

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)

static char hostile[] = "evil\033[2Jname", table[] = "block of 4104 bytes", session[] = "shop::Session",
	    text[] = "block of 24 bytes", small[] = "block of 8 bytes", other[] = "several roots",
	    far[] = "too deep by far";

static struct mw_heap_holder holders[] = {
	{hostile, 0, {31, 30 * MIB}, {0, 0}},
	{table, 1, {31, 30 * MIB}, {1, 4104}},
	{session, 2, {20, 25 * MIB}, {10, 5 * MIB}},
	{text, 3, {10, 20 * MIB}, {10, 20 * MIB}},
	{small, 2, {5, 40}, {5, 40}},
	{other, 0, {1, 10 * MIB}, {0, 0}},
	{far, 2, {1, 9 * MIB}, {1, 9 * MIB}}, /* there is none above it: it is left out */
};

static unsigned char bytes[40] = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", zeros[16];

static struct mw_heap_note notes[] = {{0, text}, {16, hostile}}, of_zeros[] = {{0, (char[]){"all zero"}}};

static struct mw_heap_content contents[] = {{0x1000, 40, bytes, sizeof(bytes), notes, 2},
					    {0x2000, 16, zeros, sizeof(zeros), of_zeros, 1}};

static struct mw_heap_group group = {.size = 40,
				     .verdict = MW_REACH_DEFINITE,
				     .blocks = {2, 80},
				     .samples = {0x1000, 0x2000},
				     .sample_count = 2,
				     .contents = contents,
				     .content_count = 2};

static struct mw_heap_line lines[] = {
	{"Java virtual machine", (char[]){"Java heap"}, 30 * MIB, 0, 256 * MIB, 64 * MIB, 12 * MIB},
	{"Java virtual machine", (char[]){"code cache"}, 5 * MIB, 0, 240 * MIB, 7 * MIB, 0},
	{"JavaScript heap", (char[]){"V8 old_space"}, 4 * MIB, 0, 8 * MIB, 8 * MIB, 0},
	{"code", (char[]){""}, MIB, 0, 0, 0, 0}};

static struct mw_heap_report heap = {
	.pid = 7,
	.comm = "shop",
	.forked = true,
	.page_tables = MW_SIZE_UNKNOWN,
	.leaks = {[MW_REACH_DEFINITE] = {2, 80}, [MW_REACH_REACHABLE] = {32, 40 * MIB - 80}},
	.groups = &group,
	.group_count = 1,
	.lines = lines,
	.line_count = sizeof(lines) / sizeof(*lines),
	.rss = 40 * MIB,
	.holders = holders,
	.holder_count = sizeof(holders) / sizeof(*holders),
};

static void test_text(void **state)
{
	char *out = render_heap("text", &heap, false);

	(void)state;
	assert_non_null(strstr(out, "    30.0 MiB  75.0 %         31  evil"));
	assert_null(strchr(out, '\033'));
	assert_non_null(strstr(out, "    25.0 MiB  62.5 %         20      shop::Session x 10 (5.0 MiB itself)\n"));
	assert_non_null(strstr(out, "    20.0 MiB  50.0 %         10        block of 24 bytes x 10\n"));
	assert_null(strstr(out, small)); /* too small a part */
	assert_null(strstr(out, far));
	assert_non_null(strstr(out, "0x1000, 40 bytes\n"));
	assert_non_null(strstr(out, "0   41 41 41 41 41 41 41 41  41 41 41 41 41 41 41 41  AAAAAAAAAAAAAAAA\n"
				    "           *\n"
				    "          32   41 41 41 41 41 41 41 00                           AAAAAAA.\n"));
	assert_non_null(strstr(out, "0x2000, 16 bytes: all zero\n"));
	assert_null(strstr(out, "00 00 00 00"));
	/* What is all committed, and of which nothing else is known, is said once. */
	assert_non_null(strstr(
		out, "Java virtual machine: Java heap, 256.0 MiB reserved, 64.0 MiB committed, 12.0 MiB used\n"));
	assert_non_null(strstr(out, "Java virtual machine: code cache, 240.0 MiB reserved, 7.0 MiB committed\n"));
	assert_non_null(strstr(out, "JavaScript heap: V8 old_space\n"));
	free(out);
	out = render_heap("text", &heap, true);
	assert_non_null(strstr(out, small));
	free(out);
}

static const char *name_of(const json_t *holder)
{
	return json_string_value(json_object_get(holder, "name"));
}

static void test_json(void **state)
{
	char *out = render_heap("json", &heap, false);
	json_t *json = json_loads(out, 0, NULL), *list = json_object_get(json, "holders"), *first, *below, *content,
	       *account, *line;

	(void)state;
	assert_non_null(json);
	assert_int_equal(json_array_size(list), 2);
	account = json_object_get(json, "account");
	line = json_array_get(account, 0);
	assert_int_equal(json_integer_value(json_object_get(line, "reserved")), 256 * MIB);
	assert_int_equal(json_integer_value(json_object_get(line, "committed")), 64 * MIB);
	assert_int_equal(json_integer_value(json_object_get(line, "used")), 12 * MIB);
	assert_true(json_is_null(json_object_get(json_array_get(account, 1), "used")));
	assert_null(json_object_get(json_array_get(account, 3), "reserved"));
	first = json_object_get(json_array_get(list, 0), "children");
	assert_int_equal(json_array_size(first), 1);
	assert_string_equal(name_of(json_array_get(first, 0)), table);
	below = json_object_get(json_array_get(first, 0), "children");
	assert_int_equal(json_array_size(below), 2);
	assert_string_equal(name_of(json_array_get(below, 0)), session);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(json_array_get(below, 1), "own"), "count")),
			 5);
	assert_int_equal(json_array_size(json_object_get(json_array_get(list, 1), "children")), 0);
	content = json_array_get(json_object_get(json_array_get(json_object_get(json, "groups"), 0), "contents"), 0);
	assert_string_equal(json_string_value(json_object_get(content, "address")), "0x1000");
	assert_int_equal(json_string_length(json_object_get(content, "hex")), 2 * sizeof(bytes));
	assert_int_equal(json_array_size(json_object_get(content, "notes")), 2);
	json_decref(json);
	free(out);
}

/* What was not asked for is not there. */
static void test_plain(void **state)
{
	struct mw_heap_report before = heap;
	json_t *json;
	char *out;

	(void)state;
	heap.holders = NULL;
	heap.holder_count = 0;
	group.contents = NULL;
	out = render_heap("json", &heap, false);
	json = json_loads(out, 0, NULL);
	assert_non_null(json);
	assert_null(json_object_get(json, "holders"));
	assert_null(json_object_get(json_array_get(json_object_get(json, "groups"), 0), "contents"));
	json_decref(json);
	free(out);
	heap = before;
	group.contents = contents;
}

UNIT_GROUP(heap)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_plain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
