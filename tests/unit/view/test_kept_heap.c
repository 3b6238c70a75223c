// SPDX-License-Identifier: MIT
/* test_kept_heap.c: a look at a heap in parts, put together again; and parts that do not fit. */
#include "view/kept_heap.h"

#include "store/format.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- a look --------------------------------------------------------------------------------------------------------- */

static struct mw_heap_line lines[] = {{"live blocks", "glibc 2.36, main", 4096, 1, 0, 0, 0},
				      {"code", "", 100, 0, 0, 0, 0}};
static struct mw_heap_figures allocators[] = {
	{.name = "glibc", .version = "2.36", .module = "/lib/libc.so.6", .walked = true, .live = {2, 48}, .arenas = 1},
	{.name = "tcmalloc", .version = "", .why = "its version is not known", .trimmable = MW_SIZE_UNKNOWN},
};
static char *path[] = {"global held", "shop::Session"};
static unsigned char bytes[] = {'a', 0, 0xff};
static struct mw_heap_note notes[] = {{0, "string \"a\""}};
static struct mw_heap_content contents[] = {
	{0x1000, 24, bytes, sizeof(bytes), notes, 1},
	{0x2000, 24, NULL, 0, NULL, 0},
};
static struct mw_heap_group groups[] = {
	{.class_name = "shop::Session",
	 .size = 24,
	 .allocator = "glibc",
	 .arena = "main",
	 .verdict = MW_REACH_REACHABLE,
	 .blocks = {2, 48},
	 .holder = path,
	 .holder_count = 2,
	 .samples = {0x1000, 0x2000},
	 .sample_count = 2,
	 .contents = contents,
	 .content_count = 2},
	{.size = MW_SIZE_UNKNOWN, .verdict = MW_REACH_DEFINITE, .samples = {0x3000}, .sample_count = 1},
};
static struct mw_heap_gap gaps[] = {{0x5000, 16, "it is damaged"}};
static struct mw_heap_holder holders[] = {{"global held", 0, {2, 48}, {0, 0}}, {"shop::Session", 1, {2, 48}, {2, 48}}};
static char *advice[] = {"malloc_trim(0) would return 1.0 MiB to the system"};

static struct mw_heap_report look(void)
{
	return (struct mw_heap_report){
		.pid = 7,
		.comm = "a b",
		.exe = "/bin/a",
		.build_id = "00ff",
		.boot_id = "b",
		.start_ticks = 9,
		.started_realtime_ns = 1700000000123456789,
		.by = MW_HEAP_BY_CLASS | MW_HEAP_BY_SIZE,
		.forked = true,
		.seconds = 0.215397596,
		.rss = 4196,
		.page_tables = MW_SIZE_UNKNOWN,
		.lines = lines,
		.line_count = 2,
		.allocators = allocators,
		.allocator_count = 2,
		.leaks = {{1, 5}, {0, 0}, {0, 0}, {2, 48}},
		.groups = groups,
		.group_count = 2,
		.gaps = gaps,
		.gap_count = 1,
		.holders = holders,
		.holder_count = 2,
		.advice = advice,
		.advice_count = 1,
	};
}

/* --- its parts, as they lie in a file ------------------------------------------------------------------------------- */

#define MOST_PARTS 32

struct parts {
	uint8_t *bytes[MOST_PARTS];
	size_t sizes[MOST_PARTS];
	size_t count;
};

static struct mw_error *on_part(void *context, uint32_t process, const struct mw_stored_heap *part)
{
	struct parts *parts = context;
	uint8_t *out = malloc(MW_STORE_CHUNK_MAX);

	assert_int_equal(process, 3);
	assert_non_null(out);
	assert_true(parts->count < MOST_PARTS);
	parts->sizes[parts->count] = mw_store_encode(MW_STORE_HEAP, &(const union mw_store_fact){.heap = *part}, out);
	assert_int_not_equal(parts->sizes[parts->count], 0);
	parts->bytes[parts->count++] = out;
	return NULL;
}

static void emit(const struct mw_heap_report *report, struct parts *parts)
{
	const struct mw_store_visitor receiver = {.context = parts, .heap = on_part};

	*parts = (struct parts){.count = 0};
	assert_null(mw_kept_heap_emit(report, 3, &receiver));
}

static void drop(struct parts *parts)
{
	while (parts->count)
		free(parts->bytes[--parts->count]);
}

/* Decode part `number` and have it taken. */
static struct mw_error *take(struct mw_kept_heap *kept, const struct parts *parts, size_t number)
{
	static uint64_t room[MW_STORE_CHUNK_MAX / sizeof(uint64_t)];
	const uint8_t *at = parts->bytes[number];
	union mw_store_fact fact;

	assert_null(mw_store_decode(MW_STORE_HEAP, &at, at + parts->sizes[number], room, &fact));
	return mw_kept_heap_take(kept, &fact.heap);
}

static void refuse(struct mw_error *err, const char *why)
{
	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_DATA);
	if (!strstr(mw_error_text(err), why))
		fail_msg("'%s' does not say '%s'", mw_error_text(err), why);
	mw_error_destroy(err);
}

/* --- tests ----------------------------------------------------------------------------------------------------------- */

static void test_there_and_back(void **state)
{
	const struct mw_heap_report original = look();
	struct mw_kept_heap kept = {.report = NULL};
	struct parts first, second;

	(void)state;
	emit(&original, &first);
	assert_int_equal(first.count, 1 + 2 + 2 + 2 + 2 + 1 + 2 + 1);
	for (size_t i = 0; i < first.count; i++) {
		assert_false(mw_kept_heap_is_whole(&kept));
		assert_null(take(&kept, &first, i));
	}
	assert_true(mw_kept_heap_is_whole(&kept));
	emit(kept.report, &second);
	assert_int_equal(second.count, first.count);
	for (size_t i = 0; i < first.count; i++) {
		assert_int_equal(second.sizes[i], first.sizes[i]);
		assert_memory_equal(second.bytes[i], first.bytes[i], first.sizes[i]);
	}
	/* To the bit: the JSON report is to be the same. */
	assert_true(kept.report->seconds == original.seconds);
	/* Names that are the same are one. */
	assert_ptr_equal(kept.report->allocators[0].name, kept.report->groups[0].allocator);
	drop(&first);
	drop(&second);
	mw_kept_heap_deinit(&kept);
	mw_kept_heap_deinit(&kept);
}

/* With any part missing or there twice it is refused, or not whole. */
static void test_parts_missing_and_twice(void **state)
{
	const struct mw_heap_report original = look();
	struct parts parts;

	(void)state;
	emit(&original, &parts);
	for (size_t odd = 0; odd < parts.count; odd++) {
		for (unsigned times = 0; times <= 2; times += 2) {
			struct mw_kept_heap kept = {.report = NULL};
			struct mw_error *err = NULL;

			for (size_t i = 0; i < parts.count && !err; i++)
				for (unsigned j = 0; j < (i == odd ? times : 1) && !err; j++)
					err = take(&kept, &parts, i);
			if (err)
				refuse(err, "the look at the heap is damaged");
			else
				assert_false(mw_kept_heap_is_whole(&kept));
			mw_kept_heap_deinit(&kept);
		}
	}
	drop(&parts);
}

/* Have one taken whose report was changed by hand. */
static struct mw_error *take_all(const struct mw_heap_report *report)
{
	struct mw_kept_heap kept = {.report = NULL};
	struct mw_error *err = NULL;
	struct parts parts;

	emit(report, &parts);
	for (size_t i = 0; i < parts.count && !err; i++)
		err = take(&kept, &parts, i);
	drop(&parts);
	mw_kept_heap_deinit(&kept);
	return err;
}

static void test_hostile(void **state)
{
	char escape[] = "\x1b[2J", *bad_advice[] = {escape};
	struct mw_heap_line bad_line = {escape, "", 0, 0, 0, 0, 0};
	struct mw_heap_figures bad_allocator = {.name = "glibc", .version = ""};
	struct mw_heap_group bad_group = {.size = 1};
	struct mw_heap_report report = look();

	(void)state;
	report.lines = &bad_line;
	report.line_count = 1;
	refuse(take_all(&report), "a name in it is invalid");
	report = look();
	report.allocators = &bad_allocator;
	report.allocator_count = 1;
	refuse(take_all(&report), "why an allocator was not walked");
	report = look();
	report.groups = &bad_group;
	report.group_count = 1;
	refuse(take_all(&report), "a group of blocks is invalid");
	report = look();
	report.advice = bad_advice;
	refuse(take_all(&report), "advice in it is not text");
}

/* That holders were looked for is known, though there are none. */
static void test_no_holders(void **state)
{
	struct mw_heap_report report = look();
	struct parts parts;

	(void)state;
	report.holder_count = 0;
	for (unsigned asked = 0; asked < 2; asked++) {
		struct mw_kept_heap kept = {.report = NULL};

		report.holders = asked ? holders : NULL;
		emit(&report, &parts);
		for (size_t i = 0; i < parts.count; i++)
			assert_null(take(&kept, &parts, i));
		assert_true(mw_kept_heap_is_whole(&kept));
		assert_int_equal(kept.report->holders != NULL, asked);
		drop(&parts);
		mw_kept_heap_deinit(&kept);
	}
}

/* A head may say that there are more items than there is memory for. */
static void test_absurd_lengths(void **state)
{
	struct mw_kept_heap kept = {.report = NULL};
	struct mw_stored_heap part = {.part = MW_STORED_HEAP_HEAD, .head = look()};

	(void)state;
	part.head.group_count = SIZE_MAX;
	refuse(mw_kept_heap_take(&kept, &part), "a list in it is too long");
	assert_null(kept.report);
	part.head.group_count = 1000000;
	assert_null(mw_kept_heap_take(&kept, &part));
	assert_false(mw_kept_heap_is_whole(&kept));
	part = (struct mw_stored_heap){.part = 99};
	assert_null(mw_kept_heap_take(&kept, &part));
	mw_kept_heap_deinit(&kept);
}

/* A name is interned; there is an end to them. */
static void test_many_names(void **state)
{
	struct mw_kept_heap kept = {.report = NULL};
	struct mw_stored_heap part = {.part = MW_STORED_HEAP_HEAD, .head = look()};
	struct mw_error *err = NULL;
	char name[16];

	(void)state;
	part.head.gap_count = 1000;
	assert_null(mw_kept_heap_take(&kept, &part));
	for (unsigned i = 0; i < 1000 && !err; i++) {
		snprintf(name, sizeof(name), "%u", i);
		part = (struct mw_stored_heap){.part = MW_STORED_HEAP_GAP, .gap = {i, 1, name}};
		err = mw_kept_heap_take(&kept, &part);
	}
	refuse(err, "a name in it is invalid");
	mw_kept_heap_deinit(&kept);
}

UNIT_GROUP(kept_heap)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_parts_missing_and_twice),
		cmocka_unit_test(test_hostile),        cmocka_unit_test(test_absurd_lengths),
		cmocka_unit_test(test_many_names),     cmocka_unit_test(test_no_holders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
