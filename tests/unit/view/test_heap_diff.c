// SPDX-License-Identifier: MIT
/* test_heap_diff.c: two looks compared: what they tell apart, sums, order, and which processes they are of. */
#include "view/heap_diff.h"

#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const files[MW_DIFF_SIDES] = {"old.mw", "new.mw"};
static char *held[] = {"global held", "Session"};

static struct mw_heap_report look(int64_t seconds)
{
	return (struct mw_heap_report){
		.pid = 7,
		.exe = "/bin/a",
		.build_id = "aa",
		.boot_id = "boot",
		.start_ticks = 100,
		.started_realtime_ns = (1700000000 + seconds) * INT64_C(1000000000),
		.by = MW_HEAP_BY_CLASS | MW_HEAP_BY_SIZE,
	};
}

static struct mw_heap_diff *compare(const struct mw_heap_report *old, const struct mw_heap_report *new)
{
	const struct mw_heap_report *const looks[MW_DIFF_SIDES] = {old, new};
	struct mw_heap_diff *diff = NULL;

	assert_null(mw_heap_diff_create(files, looks, &diff));
	return diff;
}

static void refuse(const struct mw_heap_report *old, const struct mw_heap_report *new, const char *why)
{
	const struct mw_heap_report *const looks[MW_DIFF_SIDES] = {old, new};
	struct mw_heap_diff *diff = NULL;
	struct mw_error *err = mw_heap_diff_create(files, looks, &diff);

	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_USAGE);
	if (!strstr(mw_error_text(err), why))
		fail_msg("'%s' does not say '%s'", mw_error_text(err), why);
	mw_error_destroy(err);
	assert_null(diff);
}

static void test_account(void **state)
{
	struct mw_heap_line before[] = {{"live blocks", "main", 1000, 0, 0, 0, 0},
					{"code", "", 500, 1, 0, 0, 0},
					{"stacks", "", 70, 0, 0, 0, 0}};
	struct mw_heap_line after[] = {{"stacks", "", 90, 0, 0, 0, 0},
				       {"live blocks", "main", 900, 0, 0, 0, 0},
				       {"shared memory", "x", 30, 0, 0, 0, 0}};
	struct mw_heap_report old = look(0), new = look(86400);
	struct mw_heap_diff *diff;
	uint64_t sums[MW_DIFF_SIDES] = {0};
	bool known;

	(void)state;
	old.lines = before;
	new.lines = after;
	old.line_count = new.line_count = 3;
	diff = compare(&old, &new);
	assert_int_equal(diff->line_count, 4);
	assert_string_equal(diff->lines[0].name, "shared memory");
	assert_string_equal(diff->lines[1].name, "stacks");
	assert_string_equal(diff->lines[2].name, "live blocks");
	assert_string_equal(diff->lines[3].name, "code");
	assert_int_equal(diff->lines[3].swapped[MW_DIFF_OLD], 1);
	for (size_t i = 0; i < diff->line_count; i++)
		for (unsigned side = 0; side < MW_DIFF_SIDES; side++)
			sums[side] += diff->lines[i].held[side];
	assert_int_equal(sums[MW_DIFF_OLD], 1570);
	assert_int_equal(sums[MW_DIFF_NEW], 1020);
	assert_true(mw_heap_diff_daily(diff, 1570, 1020, &known) == -550);
	assert_true(known);
	mw_heap_diff_destroy(diff);
}

#define GROUP(name, bytes, way, count, reach)                                                                          \
	{                                                                                                              \
		.class_name = (name), .size = (bytes), .arena = (way), .allocator = "glibc", .verdict = (reach),       \
		.blocks = {(count), (count) * (bytes)}, .samples = {1}, .sample_count = 1                              \
	}

/* One kind of blocks may be in several groups of a look, by verdict. */
static void test_groups(void **state)
{
	struct mw_heap_group before[] = {GROUP("A", 10, NULL, 5, MW_REACH_REACHABLE),
					 GROUP(NULL, 24, NULL, 9, MW_REACH_DEFINITE)};
	struct mw_heap_group after[] = {
		GROUP("A", 10, NULL, 7, MW_REACH_DEFINITE), GROUP("A", 10, NULL, 2, MW_REACH_INDIRECT),
		GROUP("A", 10, NULL, 90, MW_REACH_REACHABLE), GROUP("A", 20, NULL, 1, MW_REACH_POSSIBLE)};
	struct mw_heap_report old = look(0), new = look(10);
	struct mw_heap_diff *diff;

	(void)state;
	old.groups = before;
	old.group_count = 2;
	after[2].holder = held;
	after[2].holder_count = 2;
	new.groups = after;
	new.group_count = 4;
	diff = compare(&old, &new);
	assert_int_equal(diff->group_count, 3);
	assert_string_equal(diff->groups[0].class_name, "A");
	assert_int_equal(diff->groups[0].size, 10);
	assert_int_equal(diff->groups[0].held[MW_DIFF_OLD].count, 5);
	assert_int_equal(diff->groups[0].held[MW_DIFF_NEW].count, 99);
	assert_int_equal(diff->groups[0].held[MW_DIFF_NEW].bytes, 990);
	assert_int_equal(diff->groups[0].lost[MW_DIFF_OLD].count, 0);
	assert_int_equal(diff->groups[0].lost[MW_DIFF_NEW].count, 9);
	assert_int_equal(diff->groups[0].holder_count, 2);
	assert_string_equal(diff->groups[0].holder[0], "global held");
	assert_int_equal(diff->groups[1].size, 20);
	assert_int_equal(diff->groups[1].lost[MW_DIFF_NEW].count, 0);
	assert_null(diff->groups[2].class_name);
	assert_int_equal(diff->groups[2].held[MW_DIFF_NEW].count, 0);
	mw_heap_diff_destroy(diff);
}

/* Looks that were grouped differently are compared by what both tell apart. */
static void test_by(void **state)
{
	struct mw_heap_group before[] = {GROUP("A", 10, "main", 5, MW_REACH_REACHABLE),
					 GROUP("A", 10, "arena 1", 6, MW_REACH_REACHABLE)};
	struct mw_heap_group after[] = {GROUP("A", 10, NULL, 12, MW_REACH_REACHABLE)};
	struct mw_heap_report old = look(0), new = look(10);
	struct mw_heap_diff *diff;

	(void)state;
	old.groups = before;
	old.group_count = 2;
	new.groups = after;
	new.group_count = 1;
	old.by |= MW_HEAP_BY_ARENA;
	diff = compare(&old, &new);
	assert_int_equal(diff->by, MW_HEAP_BY_CLASS | MW_HEAP_BY_SIZE);
	assert_int_equal(diff->group_count, 1);
	assert_int_equal(diff->groups[0].held[MW_DIFF_OLD].count, 11);
	assert_int_equal(diff->groups[0].held[MW_DIFF_NEW].count, 12);
	assert_null(diff->groups[0].arena);
	mw_heap_diff_destroy(diff);
	new.by |= MW_HEAP_BY_ARENA;
	after[0].arena = "arena 1";
	diff = compare(&old, &new);
	assert_int_equal(diff->group_count, 2);
	assert_string_equal(diff->groups[0].arena, "arena 1");
	assert_int_equal(diff->groups[0].held[MW_DIFF_OLD].count, 6);
	mw_heap_diff_destroy(diff);
	new.by = MW_HEAP_BY_CLASS;
	after[0].size = MW_SIZE_UNKNOWN;
	after[0].arena = NULL;
	diff = compare(&old, &new);
	assert_int_equal(diff->group_count, 1);
	assert_int_equal(diff->groups[0].size, MW_SIZE_UNKNOWN);
	mw_heap_diff_destroy(diff);
}

static void test_holders(void **state)
{
	struct mw_heap_holder before[] = {
		{"global a", 0, {3, 30}, {0, 0}}, {"X", 1, {2, 20}, {2, 20}}, {"global b", 0, {1, 5}, {1, 5}}};
	/* Others in between, and one that is no tree. */
	struct mw_heap_holder after[] = {{"bad", 3, {9, 9}, {0, 0}},   {"global b", 0, {1, 5}, {1, 5}},
					 {"X", 1, {1, 4}, {1, 4}},     {"global a", 0, {13, 130}, {0, 0}},
					 {"X", 1, {12, 120}, {2, 20}}, {"bad", 3, {9, 9}, {0, 0}}};
	struct mw_heap_report old = look(0), new = look(10);
	struct mw_heap_diff *diff;

	(void)state;
	old.holders = before;
	old.holder_count = 3;
	new.holders = after;
	diff = compare(&old, &new);
	assert_int_equal(diff->holder_count, 0);
	mw_heap_diff_destroy(diff);
	new.holder_count = 6;
	diff = compare(&old, &new);
	assert_int_equal(diff->holder_count, 3);
	assert_int_equal(diff->holders[0].depth, 1);
	assert_string_equal(diff->holders[0].path[0], "global a");
	assert_int_equal(diff->holders[1].depth, 2);
	assert_string_equal(diff->holders[1].path[0], "global a");
	assert_string_equal(diff->holders[1].path[1], "X");
	assert_int_equal(diff->holders[1].retained[MW_DIFF_OLD].bytes, 20);
	assert_int_equal(diff->holders[1].retained[MW_DIFF_NEW].bytes, 120);
	assert_string_equal(diff->holders[2].path[0], "global b");
	assert_string_equal(diff->holders[2].path[1], "X");
	mw_heap_diff_destroy(diff);
}

static void test_processes(void **state)
{
	struct mw_heap_report old = look(100), new = look(50);
	struct mw_heap_diff *diff;
	bool known;

	(void)state;
	refuse(&old, &new, "'old.mw' is later than 'new.mw'");
	new = old;
	refuse(&old, &new, "are the same look");
	new = look(50);
	new.pid = 8;
	diff = compare(&old, &new);
	assert_int_equal(diff->process, MW_HEAP_DIFF_OTHER);
	(void)mw_heap_diff_daily(diff, 1, 2, &known);
	assert_false(known);
	mw_heap_diff_destroy(diff);
	/* The pid has been given to another process. */
	new = look(150);
	new.start_ticks = 101;
	diff = compare(&old, &new);
	assert_int_equal(diff->process, MW_HEAP_DIFF_OTHER);
	mw_heap_diff_destroy(diff);
	strcpy(new.boot_id, "other");
	diff = compare(&old, &new);
	assert_int_equal(diff->process, MW_HEAP_DIFF_BOOT);
	mw_heap_diff_destroy(diff);
	new = look(150);
	new.boot_id[0] = '\0';
	diff = compare(&old, &new);
	assert_int_equal(diff->process, MW_HEAP_DIFF_UNKNOWN);
	mw_heap_diff_destroy(diff);
	new = look(150);
	new.build_id = "bb";
	diff = compare(&old, &new);
	assert_int_equal(diff->process, MW_HEAP_DIFF_ONE);
	assert_int_equal(diff->program, MW_DIFF_PROGRAM_REBUILT);
	mw_heap_diff_destroy(diff);
	mw_heap_diff_destroy(NULL);
}

/* Of any numbers: differences that are no numbers of 64 bits with a sign have their order, too. */
static void test_extremes(void **state)
{
	struct mw_heap_line before[] = {
		{"a", "", 0, 0, 0, 0, 0}, {"b", "", UINT64_MAX, 0, 0, 0, 0}, {"c", "", 5, 0, 0, 0, 0}};
	struct mw_heap_line after[] = {{"a", "", UINT64_MAX, 0, 0, 0, 0}, {"c", "", 6, 0, 0, 0, 0}};
	struct mw_heap_report old = look(0), new = look(1);
	struct mw_heap_diff *diff;

	(void)state;
	old.lines = before;
	old.line_count = 3;
	new.lines = after;
	new.line_count = 2;
	diff = compare(&old, &new);
	assert_string_equal(diff->lines[0].name, "a");
	assert_string_equal(diff->lines[1].name, "c");
	assert_string_equal(diff->lines[2].name, "b");
	mw_heap_diff_destroy(diff);
}

UNIT_GROUP(heap_diff)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_account), cmocka_unit_test(test_groups),    cmocka_unit_test(test_by),
		cmocka_unit_test(test_holders), cmocka_unit_test(test_processes), cmocka_unit_test(test_extremes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
