// SPDX-License-Identifier: MIT
/* test_diff.c: comparisons made by hand, written. */
#include "unit.h"

#include <memwatch/output.h>

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct mw_report_frame grow_frames[] = {
	{.function = "copy", .module = "/bin/shopd", .offset = 0, .file = "/src/str.h", .line = 3, .inlined = true},
	{.function = "Basket::add(int)", .module = "/bin/shopd", .offset = 0x1f, .file = "/src/basket.cc", .line = 42},
	{.function = NULL, .module = "/lib/libx.so", .offset = 0x1234},
	{.function = NULL, .module = NULL, .offset = 0x7f0000001000},
};

static struct mw_report_frame plain_frames[] = {
	{.function = "main", .module = "shopd", .offset = 4, .file = "main.c"},
};

static struct mw_diff_stack stacks[] = {
	{.id = "00000000000000a1",
	 .kind = MW_KIND_HEAP,
	 .api = "malloc",
	 .api_module = "/lib/libc.so.6",
	 .cut = MW_STACK_TRUNCATED,
	 .frames = grow_frames,
	 .frame_count = 4,
	 .held = {{46, 56392}, {58, 61712}},
	 .change = MW_DIFF_MORE},
	{.id = "00000000000000a2",
	 .kind = MW_KIND_VM,
	 .api = "mmap",
	 .cut = MW_STACK_BROKEN,
	 .frames = plain_frames,
	 .frame_count = 1,
	 .held = {{0, 0}, {1, 4096}},
	 .change = MW_DIFF_MORE},
	{.id = "00000000000000a3", .kind = MW_KIND_HEAP, .held = {{3, 30}, {3, 30}}},
	{.id = "00000000000000a4",
	 .kind = MW_KIND_HEAP,
	 .frames = plain_frames,
	 .frame_count = 1,
	 .held = {{7, 700}, {9, 650}},
	 .change = MW_DIFF_LESS},
};

static const char *rebuilt[] = {"/bin/shopd"};

static struct mw_diff fixture(void)
{
	struct mw_diff diff = {
		.snapshots = {{.file = "old.mw",
			       .moment = "mark 2 (deployed)",
			       .pid = 10,
			       .comm = "shopd",
			       .exe = "/bin/shopd",
			       .started_realtime_ns = 1700000000000000000,
			       .at = 12.5,
			       .tracked = {true, true, true}},
			      {.file = "new.mw",
			       .pid = 20,
			       .comm = "shopd",
			       .at = 30,
			       .tracked = {true, true, true},
			       .cut = true,
			       .lost_events = 4}},
		.compared = {[MW_KIND_HEAP] = true, [MW_KIND_VM] = true},
		.stacks = stacks,
		.stack_count = 4,
		.rebuilt = rebuilt,
		.rebuilt_count = 1,
	};

	for (size_t i = 0; i < diff.stack_count; i++)
		for (unsigned side = 0; side < MW_DIFF_SIDES; side++) {
			diff.totals[stacks[i].kind][side].count += stacks[i].held[side].count;
			diff.totals[stacks[i].kind][side].bytes += stacks[i].held[side].bytes;
		}
	return diff;
}

static char *render_text(const struct mw_diff *const *diffs, size_t count, size_t top, bool all)
{
	const struct mw_output_options options = {.top = top, .all = all};
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	assert_non_null(stream);
	assert_null(mw_output_text.write_diffs(diffs, count, &options, stream));
	assert_int_equal(fclose(stream), 0);
	assert_int_equal(strlen(text), size);
	return text;
}

static json_t *render_json(const struct mw_diff *const *diffs, size_t count)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	json_error_t error;
	json_t *json;

	assert_non_null(stream);
	assert_null(mw_output_json.write_diffs(diffs, count, NULL, stream));
	assert_int_equal(fclose(stream), 0);
	json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	if (!json)
		fail_msg("%s in %s", error.text, text);
	free(text);
	return json;
}

/* UMDH's form, to the byte. */
static void test_text(void **state)
{
	static const char expected[] =
		"// old: old.mw, /bin/shopd (pid 10)\n"
		"//      at 12.500 s, mark 2 (deployed) of a window that began 2023-11-14 22:13:20 UTC: "
		"57122 bytes in 56 blocks outstanding\n"
		"// new: new.mw, shopd (pid 20)\n"
		"//      at 30.000 s: 66488 bytes in 71 blocks outstanding\n"
		"//      The recording is not complete: compared as far as it goes\n"
		"//      Incomplete: 4 events and 0 stacks were lost\n"
		"// kinds: heap, vm\n"
		"// built anew in between, so that stacks through it don't match: /bin/shopd\n"
		"//\n"
		"// + BYTES_DELTA ( NEW_BYTES - OLD_BYTES ) NEW_COUNT allocs BackTraceID\n"
		"// + COUNT_DELTA ( NEW_COUNT - OLD_COUNT ) BackTraceID allocations\n"
		"//\n"
		"// \tmodule!function+offset (file, line)\n"
		"\n"
		"+ 5320 ( 61712 - 56392 ) 58 allocs BackTrace00000000000000a1\n"
		"+ 12 ( 58 - 46 ) BackTrace00000000000000a1 allocations\n"
		"\n"
		"\tlibc.so.6!malloc+0x0\n"
		"\tshopd!copy (/src/str.h, 3) [inlined]\n"
		"\tshopd!Basket::add(int)+0x1f (/src/basket.cc, 42)\n"
		"\tlibx.so+0x1234\n"
		"\t(code in no file)+0x7f0000001000\n"
		"\t... cut here: the wanted depth was reached\n"
		"\n"
		"+ 4096 ( 4096 - 0 ) 1 allocs BackTrace00000000000000a2\n"
		"+ 1 ( 1 - 0 ) BackTrace00000000000000a2 allocations\n"
		"\n"
		"\t(code in no file)!mmap+0x0\n"
		"\tshopd!main+0x4 (main.c)\n"
		"\t... cut here: no unwind information\n"
		"\n"
		"- 50 ( 650 - 700 ) 9 allocs BackTrace00000000000000a4\n"
		"+ 2 ( 9 - 7 ) BackTrace00000000000000a4 allocations\n"
		"\n"
		"\tshopd!main+0x4 (main.c)\n"
		"\n"
		"// 1 unchanged stack not shown: + 0 ( 30 - 30 ) bytes\n"
		"\n"
		"Total increase == 9366\n";
	const struct mw_diff diff = fixture(), *one = &diff;
	char *text = render_text(&one, 1, SIZE_MAX, false);

	(void)state;
	assert_string_equal(text, expected);
	free(text);
}

static void test_options(void **state)
{
	struct mw_diff diff = fixture();
	const struct mw_diff *twice[] = {&diff, &diff};
	char *text = render_text(twice, 1, SIZE_MAX, true);

	(void)state;
	assert_non_null(strstr(text, "\n+ 0 ( 30 - 30 ) 3 allocs BackTrace00000000000000a3\n"));
	assert_null(strstr(text, "not shown"));
	free(text);
	text = render_text(twice, 1, 1, false);
	assert_non_null(strstr(text, "BackTrace00000000000000a1"));
	assert_null(strstr(text, "BackTrace00000000000000a2"));
	assert_non_null(strstr(text, "// 2 more stacks not shown: + 4046 ( 4746 - 700 ) bytes\n"
				     "// 1 unchanged stack not shown: + 0 ( 30 - 30 ) bytes\n"
				     "\nTotal increase == 9366\n"));
	free(text);
	text = render_text(twice, 2, 0, true);
	assert_non_null(strstr(text, "// === process 1 of 2 ===\n"));
	assert_non_null(strstr(text, "// === process 2 of 2 ===\n"));
	free(text);

	/* What shrank, and a kind that one side lacks. */
	diff.totals[MW_KIND_HEAP][MW_DIFF_NEW].bytes = 0;
	diff.snapshots[MW_DIFF_OLD].tracked[MW_KIND_VM] = false;
	diff.compared[MW_KIND_VM] = false;
	text = render_text(twice, 1, 0, false);
	assert_non_null(strstr(text, "// kinds: heap\n//      vm is left out: only the new recording has it\n"));
	assert_non_null(strstr(text, "\nTotal decrease == 53026\n"));
	free(text);
	diff.stack_count = 0;
	diff.compared[MW_KIND_HEAP] = false;
	memset(diff.totals, 0, sizeof(diff.totals));
	text = render_text(twice, 1, 10, false);
	assert_non_null(strstr(text, "// kinds: none\n"));
	assert_non_null(strstr(text, "(file, line)\n\nTotal increase == 0\n"));
	free(text);
}

static json_int_t number(json_t *object, const char *first, const char *second)
{
	json_t *value = json_object_get(json_object_get(object, first), second);

	assert_true(json_is_integer(value));
	return json_integer_value(value);
}

static void test_json(void **state)
{
	static const char *const sides[] = {"old", "new", "delta"};
	const struct mw_diff diff = fixture();
	const struct mw_diff *twice[] = {&diff, &diff};
	json_t *json = render_json(twice, 1), *list = json_object_get(json, "stacks"), *totals, *first;

	(void)state;
	assert_string_equal(json_string_value(json_object_get(json, "schema")), "memwatch.diff/1");
	assert_int_equal(number(json, "old", "pid"), 10);
	assert_string_equal(json_string_value(json_object_get(json_object_get(json, "old"), "started")),
			    "2023-11-14T22:13:20.000000Z");
	assert_true(json_is_true(json_object_get(json_object_get(json, "old"), "complete")));
	assert_true(json_is_false(json_object_get(json_object_get(json, "new"), "complete")));
	assert_true(json_is_null(json_object_get(json_object_get(json, "new"), "exe")));
	assert_int_equal(json_array_size(list), 4);
	first = json_array_get(list, 0);
	assert_string_equal(json_string_value(json_object_get(first, "id")), "00000000000000a1");
	assert_int_equal(number(first, "delta", "bytes"), 5320);
	assert_int_equal(number(json_array_get(list, 3), "delta", "bytes"), -50);
	assert_int_equal(json_array_size(json_object_get(first, "frames")), 4);
	assert_true(json_is_true(json_object_get(first, "truncated")));

	totals = json_object_get(json, "totals");
	assert_true(json_is_null(json_object_get(totals, "vm-internal")));
	for (unsigned i = 0; i < 3; i++) {
		json_int_t bytes = 0, count = 0;

		for (size_t j = 0; j < json_array_size(list); j++) {
			bytes += number(json_array_get(list, j), sides[i], "bytes");
			count += number(json_array_get(list, j), sides[i], "count");
		}
		assert_int_equal(bytes, number(json_object_get(totals, "heap"), sides[i], "bytes") +
						number(json_object_get(totals, "vm"), sides[i], "bytes"));
		assert_int_equal(count, number(json_object_get(totals, "heap"), sides[i], "count") +
						number(json_object_get(totals, "vm"), sides[i], "count"));
	}
	json_decref(json);
	json = render_json(twice, 2);
	assert_int_equal(json_array_size(json_object_get(json, "processes")), 2);
	json_decref(json);
}

/* Names that are meant to do harm, and numbers that only a liar tells. */
static void test_hostile(void **state)
{
	struct mw_report_frame frame = {
		.function = "a\x1b[31m\nTotal increase == 1", .module = "/bin/\xff", .file = "x\r\n+ 1"};
	struct mw_diff_stack stack = {.id = "0123456789abcdef",
				      .frames = &frame,
				      .frame_count = 1,
				      .api = "ma\nlloc",
				      .held = {{1, UINT64_MAX}, {UINT64_MAX, 0}},
				      .change = MW_DIFF_LESS};
	struct mw_diff diff = {
		.snapshots = {{.file = "\x1b]0;", .moment = "mark 1 (\n)"}, {.comm = "\n"}},
		.compared = {true},
		.stacks = &stack,
		.stack_count = 1,
		.totals = {{{1, UINT64_MAX}, {UINT64_MAX, 0}}},
	};
	const struct mw_diff *one = &diff;
	char *text = render_text(&one, 1, 10, false), *total;
	json_t *json, *delta;

	(void)state;
	assert_null(strchr(text, '\x1b'));
	assert_null(strchr(text, '\r'));
	total = strstr(text, "\nTotal ");
	assert_non_null(total);
	assert_string_equal(total, "\nTotal decrease == 18446744073709551615\n");
	assert_non_null(
		strstr(text, "\n- 18446744073709551615 ( 0 - 18446744073709551615 ) 18446744073709551615 allocs "));
	free(text);
	json = render_json(&one, 1);
	delta = json_object_get(json_array_get(json_object_get(json, "stacks"), 0), "delta");
	assert_true(json_is_null(json_object_get(delta, "bytes")));
	json_decref(json);
}

/* Two windows: rates, and what is about the same is no growth. */
static void test_rates(void **state)
{
	static const char expected[] =
		"// Two windows of two processes: each knows only what was allocated in it. Compared is how fast each "
		"left\n"
		"// blocks unfreed: BYTES and COUNT are those of an hour. = is about the same rate (within a quarter, "
		"or by "
		"chance).\n"
		"// The windows differ in length: old 10.000 s, new 60.000 s.\n"
		"// Warning: the executables differ (different builds, so that stacks through them don't match): "
		"/bin/shopd (build-id 0a), /opt/shopd (build-id 0b)\n"
		"// kinds: heap\n"
		"//\n"
		"// + BYTES_DELTA ( NEW_BYTES - OLD_BYTES ) NEW_COUNT allocs BackTraceID\n"
		"// + COUNT_DELTA ( NEW_COUNT - OLD_COUNT ) BackTraceID allocations\n"
		"//\n"
		"// \tmodule!function+offset (file, line)\n"
		"\n"
		"+ 60000 ( 60000 - 0 ) 600 allocs BackTrace00000000000000b1\n"
		"+ 600 ( 600 - 0 ) BackTrace00000000000000b1 allocations\n"
		"\n"
		"// new: 1000 bytes in 10 blocks in 60.000 s, 16.7 bytes a second; old: 0 bytes in 0 blocks in 10.000 "
		"s, "
		"0.0 bytes a second: only new\n"
		"\n"
		"\n"
		"= 3600 ( 356400 - 360000 ) 35640 allocs BackTrace00000000000000b2\n"
		"= 360 ( 35640 - 36000 ) BackTrace00000000000000b2 allocations\n"
		"\n"
		"// new: 5940 bytes in 594 blocks in 60.000 s, 99.0 bytes a second; old: 1000 bytes in 100 blocks in "
		"10.000 s, 100.0 bytes a second: about the same rate\n"
		"\n"
		"\n"
		"// 1 more stack not shown: - 348000 ( 12000 - 360000 ) bytes an hour\n"
		"\n"
		"Total about the same == 428400 an hour\n";
	struct mw_diff_stack held[] = {
		{.id = "00000000000000b1", .held = {{0, 0}, {10, 1000}}, .change = MW_DIFF_MORE},
		{.id = "00000000000000b2", .held = {{100, 1000}, {594, 5940}}, .change = MW_DIFF_SAME},
		{.id = "00000000000000b3", .held = {{100, 1000}, {20, 200}}, .change = MW_DIFF_LESS},
	};
	const struct mw_diff diff = {
		.basis = MW_DIFF_RATES,
		.program = MW_DIFF_PROGRAM_REBUILT,
		.change = MW_DIFF_SAME,
		.snapshots =
			{{.file = "a", .pid = 1, .exe = "/bin/shopd", .build_id = "0a", .at = 10, .tracked = {true}},
			 {.file = "b", .pid = 2, .exe = "/opt/shopd", .build_id = "0b", .at = 60, .tracked = {true}}},
		.compared = {true},
		.totals = {{{200, 2000}, {624, 7140}}},
		.stacks = held,
		.stack_count = 3,
	};
	const struct mw_diff *one = &diff;
	char *text = render_text(&one, 1, 2, false), *from = strstr(text, "// Two windows");
	json_t *json = render_json(&one, 1), *stack = json_array_get(json_object_get(json, "stacks"), 1), *rates;

	(void)state;
	assert_non_null(from);
	assert_non_null(strstr(text, ": 2000 bytes in 200 blocks allocated in it and not freed\n"));
	assert_string_equal(from, expected);
	free(text);
	assert_string_equal(json_string_value(json_object_get(json, "basis")), "rates");
	assert_string_equal(json_string_value(json_object_get(json, "executables")), "rebuilt");
	assert_string_equal(json_string_value(json_object_get(json, "change")), "same");
	assert_string_equal(json_string_value(json_object_get(stack, "change")), "same");
	/* The amounts are as they were. */
	assert_int_equal(number(stack, "delta", "bytes"), 4940);
	rates = json_object_get(stack, "rates");
	assert_true(json_real_value(json_object_get(json_object_get(rates, "new"), "bytes_per_second")) == 99);
	assert_true(json_real_value(json_object_get(json_object_get(rates, "old"), "count_per_hour")) == 36000);
	assert_true(json_real_value(json_object_get(json_object_get(rates, "delta"), "bytes_per_hour")) == -3600);
	assert_true(json_is_null(json_object_get(stack, "growth")));
	json_decref(json);
}

/* Between two moments of one window. */
static void test_growth(void **state)
{
	struct mw_diff diff = fixture();
	const struct mw_diff *one = &diff;
	json_t *json, *growth;

	(void)state;
	json = render_json(&one, 1);
	assert_string_equal(json_string_value(json_object_get(json, "basis")), "outstanding");
	assert_true(json_is_null(json_object_get(json_array_get(json_object_get(json, "stacks"), 0), "growth")));
	json_decref(json);
	diff.snapshots[MW_DIFF_NEW].pid = 10;
	diff.snapshots[MW_DIFF_NEW].started_realtime_ns = diff.snapshots[MW_DIFF_OLD].started_realtime_ns;
	json = render_json(&one, 1);
	growth = json_object_get(json_array_get(json_object_get(json, "stacks"), 0), "growth");
	assert_true(json_real_value(json_object_get(growth, "bytes_per_second")) == 5320 / 17.5);
	assert_true(fabs(json_real_value(json_object_get(growth, "count_per_second")) - 12 / 17.5) < 1e-9);
	json_decref(json);
}

/* Where blocks are sampled each difference of heap blocks has its error; what is exact has none. */
static void test_sampled(void **state)
{
	struct mw_diff_stack sampled[4];
	struct mw_diff diff = fixture();
	const struct mw_diff *diffs[] = {&diff};
	const json_t *stack;
	json_t *json;
	char *text;

	(void)state;
	memcpy(sampled, stacks, sizeof(sampled));
	sampled[0].spread.held[MW_DIFF_NEW] = (struct mw_spread){9, 160000, 5};
	sampled[0].spread.change = (struct mw_spread){16, 250000, 5};
	sampled[3].spread.change = (struct mw_spread){4, 10000, 2};
	sampled[3].noise = true;
	diff.stacks = sampled;
	diff.snapshots[MW_DIFF_NEW].sampled = 65536;
	diff.spreads[MW_KIND_HEAP].change = (struct mw_spread){20, 260000, 7};
	text = render_text(diffs, 1, SIZE_MAX, true);
	assert_non_null(strstr(text, "Sampled, one heap block in 64.0 KiB on average: amounts are estimates\n"));
	assert_non_null(strstr(text, "BackTrace00000000000000a1 allocations\n\n"
				     "// estimated: right to ± 500 bytes (standard error)\n\n\t"));
	assert_non_null(strstr(text, "BackTrace00000000000000a2 allocations\n\n\t"));
	assert_non_null(strstr(text, "// estimated: right to ± 100 bytes (standard error): it is within noise\n"));
	assert_non_null(strstr(text, "// estimated: right to ± 510 bytes (standard error)\n"));
	free(text);
	json = render_json(diffs, 1);
	assert_true(json_is_null(json_object_get(json_object_get(json, "old"), "sampling")));
	assert_int_equal(json_integer_value(json_object_get(json_object_get(json_object_get(json, "new"), "sampling"),
							    "interval")),
			 65536);
	assert_true(json_is_false(json_object_get(json_object_get(json, "new"), "complete")));
	stack = json_array_get(json_object_get(json, "stacks"), 0);
	assert_true(json_real_value(json_object_get(json_object_get(json_object_get(stack, "delta"), "error"),
						    "bytes")) == 500);
	assert_true(json_real_value(
			    json_object_get(json_object_get(json_object_get(stack, "new"), "error"), "count")) == 3);
	assert_true(json_is_false(json_object_get(stack, "noise")));
	stack = json_array_get(json_object_get(json, "stacks"), 1);
	assert_null(json_object_get(stack, "noise"));
	assert_null(json_object_get(json_object_get(stack, "delta"), "error"));
	json_decref(json);
}

UNIT_GROUP(diff)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sampled), cmocka_unit_test(test_text),    cmocka_unit_test(test_options),
		cmocka_unit_test(test_json),    cmocka_unit_test(test_hostile), cmocka_unit_test(test_rates),
		cmocka_unit_test(test_growth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
