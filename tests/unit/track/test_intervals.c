// SPDX-License-Identifier: MIT
/* test_intervals.c: intervals of the window, fates and series, by hand. */
#include "rig.h"
#include "unit.h"

#define MS   UINT64_C(1000000)
#define PAGE UINT64_C(4096)

struct told {
	struct mw_track_fate fates[16];
	uint32_t count;
};

static void tell(void *context, const struct mw_track_fate *fate)
{
	struct told *told = context;

	assert_in_range(told->count, 0, 15);
	told->fates[told->count++] = *fate;
}

static bool tell_survivor(void *context, const struct mw_track_fate *fate)
{
	tell(context, fate);
	return true;
}

static void interval(const struct rig *rig, uint64_t begin_ns)
{
	assert_null(mw_track_interval(rig->track, begin_ns));
}

static void assert_fate(const struct mw_track_fate *fate, mw_addr addr, uint64_t bytes, uint64_t born_ns,
			uint64_t died_ns, bool last)
{
	assert_int_equal(fate->addr, addr);
	assert_int_equal(fate->bytes, bytes);
	assert_int_equal(fate->born_ns, born_ns);
	assert_int_equal(fate->died_ns, died_ns);
	assert_int_equal(fate->last, last);
}

/* One block of each type, and one of before the window. */
static void test_types(void **state)
{
	struct rig *rig = *state;
	struct mw_track_totals totals;

	rig_alloc(rig, 1, 0x10, 1);
	rig_alloc(rig, 2, 0x20, 10);
	interval(rig, 5);
	rig_alloc(rig, 6, 0x30, 100);
	rig_alloc(rig, 7, 0x40, 1000);
	rig_free(rig, 8, 0x20);
	rig_free(rig, 9, 0x40);
	rig_free(rig, 10, 0x50);
	totals = rig_totals(rig, MW_KIND_HEAP);
	rig_amount(totals.size, 2, 1100);
	rig_amount(totals.impacting, 1, 100);
	rig_amount(totals.transient, 1, 1000);
	rig_amount(totals.aofi, 2, 10);
	assert_int_equal(totals.aofi_unknown, 1);
	rig_amount(totals.aofo, 1, 1);
	rig_amount(totals.peak.amount, 2, 1100);
	assert_int_equal(totals.peak.at_ns, 7);
	assert_int_equal(rig_of_stack(rig, rig->heap).lifetime.count, 1);
	/* What was impacting is older now as well. */
	interval(rig, 20);
	totals = rig_totals(rig, MW_KIND_HEAP);
	rig_amount(totals.size, 0, 0);
	rig_amount(totals.aofi, 0, 0);
	rig_amount(totals.aofo, 2, 101);
	assert_int_equal(totals.peak.at_ns, 20);
	assert_int_equal(rig_of_stack(rig, rig->heap).lifetime.count, 0);
}

/* Not its time but its place among the events makes a block older. */
static void test_same_time(void **state)
{
	struct rig *rig = *state;
	struct told told = {0};

	rig_alloc(rig, 5, 0x10, 1);
	rig_alloc(rig, 5, 0x30, 2);
	rig_vm(rig, MW_EVENT_MAP, 5, 0, PAGE, 2 * PAGE);
	interval(rig, 5);
	mw_track_watch(rig->track, tell, &told);
	rig_alloc(rig, 5, 0x20, 10);
	rig_alloc(rig, 5, 0x40, 20);
	rig_free(rig, 5, 0x30);
	rig_free(rig, 5, 0x40);
	rig_free(rig, 5, 0x50);
	rig_vm(rig, MW_EVENT_MAP, 5, 0, 2 * PAGE, PAGE);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).impacting, 1, 10);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).aofo, 1, 1);
	assert_int_equal(told.count, 4);
	assert_true(told.fates[0].older);
	assert_false(told.fates[1].older);
	assert_true(told.fates[2].older);
	assert_true(told.fates[3].older);
	told.count = 0;
	mw_track_each_survivor(rig->track, tell_survivor, &told);
	assert_int_equal(told.count, 4);
	for (uint32_t i = 0; i < told.count; i++)
		assert_int_equal(told.fates[i].older, told.fates[i].addr == 0x10 || told.fates[i].addr == PAGE);
}

/* Where a block came and went is told by the latest time until then. */
static void test_late(void **state)
{
	struct rig *rig = *state;
	struct told told = {0};

	mw_track_watch(rig->track, tell, &told);
	rig_alloc(rig, 10, 0x10, 1);
	rig_alloc(rig, 20, 0x20, 2);
	rig_alloc(rig, 12, 0x30, 3);
	rig_vm(rig, MW_EVENT_MAP, 19, 0, PAGE, PAGE);
	rig_free(rig, 15, 0x30);
	rig_free(rig, 20, 0x10);
	rig_alloc(rig, 30, 0x40, 4);
	rig_vm(rig, MW_EVENT_MAP, 31, 0, PAGE, PAGE);
	assert_int_equal(told.count, 3);
	assert_int_equal(told.fates[0].born_ns, 12);
	assert_int_equal(told.fates[0].since_ns, 20);
	assert_int_equal(told.fates[0].died_ns, 15);
	assert_int_equal(told.fates[0].until_ns, 20);
	assert_int_equal(told.fates[1].since_ns, 10);
	assert_int_equal(told.fates[1].until_ns, 20);
	assert_int_equal(told.fates[2].born_ns, 19);
	assert_int_equal(told.fates[2].since_ns, 20);
	assert_int_equal(told.fates[2].until_ns, 31);
	told.count = 0;
	mw_track_each_survivor(rig->track, tell_survivor, &told);
	assert_int_equal(told.count, 3);
	for (uint32_t i = 0; i < told.count; i++) {
		assert_int_equal(told.fates[i].since_ns, told.fates[i].born_ns);
		assert_int_equal(told.fates[i].until_ns, MW_TIME_UNKNOWN);
	}
}

/* A call's block is there until its end. */
static void test_call_until(void **state)
{
	struct rig *rig = *state;
	struct told told = {0};

	mw_track_watch(rig->track, tell, &told);
	rig_alloc(rig, 1, 0x10, 7);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 2, 0, 0x10, 0);
	rig_heap(rig, MW_EVENT_REALLOC_END, 9, 0, 0x20, 8);
	assert_int_equal(told.count, 1);
	assert_int_equal(told.fates[0].died_ns, 2);
	assert_int_equal(told.fates[0].until_ns, 9);
}

/* After what the same event ends; what is back after a call that failed was there all the time. */
static void test_births(void **state)
{
	struct rig *rig = *state;
	struct told told = {0};

	rig_alloc(rig, 1, 0x10, 1);
	mw_track_watch(rig->track, tell, &told);
	mw_track_watch_births(rig->track, tell, &told);
	rig_alloc(rig, 20, 0x20, 2);
	rig_alloc(rig, 12, 0x10, 3);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 21, 0, 0x20, 0);
	rig_heap(rig, MW_EVENT_REALLOC_FAIL, 22, 0, 0x20, 0);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 23, 0, 0x20, 0);
	rig_heap(rig, MW_EVENT_REALLOC_END, 24, 0, 0x30, 4);
	rig_vm(rig, MW_EVENT_MAP, 25, 0, PAGE, 3 * PAGE);
	rig_vm(rig, MW_EVENT_MAP, 26, 0, 2 * PAGE, PAGE);
	assert_int_equal(told.count, 8);
	assert_fate(&told.fates[0], 0x20, 2, 20, MW_TIME_UNKNOWN, true);
	assert_int_equal(told.fates[0].since_ns, 20);
	assert_fate(&told.fates[1], 0x10, 1, 1, 12, true);
	assert_fate(&told.fates[2], 0x10, 3, 12, MW_TIME_UNKNOWN, true);
	assert_int_equal(told.fates[2].since_ns, 20);
	assert_int_equal(told.fates[2].stack, rig->heap);
	assert_fate(&told.fates[3], 0x20, 2, 20, 23, true);
	assert_fate(&told.fates[4], 0x30, 4, 24, MW_TIME_UNKNOWN, true);
	assert_fate(&told.fates[5], PAGE, 3 * PAGE, 25, MW_TIME_UNKNOWN, true);
	assert_int_equal(told.fates[5].kind, MW_KIND_VM);
	assert_fate(&told.fates[6], 2 * PAGE, PAGE, 25, 26, false);
	assert_fate(&told.fates[7], 2 * PAGE, PAGE, 26, MW_TIME_UNKNOWN, true);
	mw_track_watch_births(rig->track, NULL, NULL);
	rig_alloc(rig, 27, 0x40, 4);
	assert_int_equal(told.count, 8);
}

static void test_call_across_the_begin(void **state)
{
	struct rig *rig = *state;
	struct told told = {0};

	mw_track_watch(rig->track, tell, &told);
	for (int t = 0; t < 2; t++) {
		rig_alloc(rig, 1, 0x10 + 0x10 * (mw_addr)t, 7);
		rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 2, t, 0x10 + 0x10 * (mw_addr)t, 0);
	}
	rig_vm(rig, MW_EVENT_MAP, 3, 0, 0, 3 * PAGE);
	rig_vm(rig, MW_EVENT_UNMAP_BEGIN, 4, 0, PAGE, PAGE);
	interval(rig, 5);
	assert_int_equal(told.count, 0);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).aofo, 2, 14);
	rig_heap(rig, MW_EVENT_REALLOC_FAIL, 6, 0, 0x10, 0);
	rig_heap(rig, MW_EVENT_REALLOC_END, 7, 1, 0x20, 9);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).aofo, 1, 7);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).aofi, 1, 7);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).impacting, 1, 9);
	rig_vm(rig, MW_EVENT_UNMAP_END, 8, 0, PAGE, PAGE);
	rig_amount(rig_totals(rig, MW_KIND_VM).aofo, 1, 2 * PAGE);
	rig_amount(rig_totals(rig, MW_KIND_VM).aofi, 0, PAGE);
	assert_int_equal(told.count, 2);
	assert_fate(&told.fates[0], 0x20, 7, 1, 2, true);
	assert_fate(&told.fates[1], PAGE, PAGE, 3, 4, false);
}

static void test_fates(void **state)
{
	struct rig *rig = *state;
	struct told told = {0};

	assert_null(mw_track_before(rig->track, 100 * PAGE, 102 * PAGE));
	mw_track_watch(rig->track, tell, &told);
	rig_alloc(rig, 1, 0x10, 5);
	rig_free(rig, 4, 0x10);
	assert_fate(&told.fates[0], 0x10, 5, 1, 4, true);
	assert_int_equal(told.fates[0].stack, rig->heap);
	assert_int_equal(told.fates[0].thread, rig->thread[0]);
	rig_heap(rig, MW_EVENT_FREE, 5, 0, 0x20, 24);
	assert_fate(&told.fates[1], 0x20, 24, MW_TIME_UNKNOWN, 5, true);
	assert_int_equal(told.fates[1].thread, UINT32_MAX);
	rig_vm(rig, MW_EVENT_MAP, 6, 1, 101 * PAGE, 2 * PAGE);
	assert_fate(&told.fates[2], 101 * PAGE, PAGE, MW_TIME_UNKNOWN, 6, true);
	rig_vm(rig, MW_EVENT_MAP, 7, 1, 102 * PAGE, PAGE);
	assert_fate(&told.fates[3], 102 * PAGE, PAGE, 6, 7, false);
	mw_track_watch(rig->track, NULL, NULL);
	rig_vm(rig, MW_EVENT_MAP, 8, 1, 101 * PAGE, PAGE);
	assert_int_equal(told.count, 4);
	mw_track_each_survivor(rig->track, tell_survivor, &told);
	assert_int_equal(told.count, 6);
	assert_fate(&told.fates[4], 101 * PAGE, PAGE, 8, MW_TIME_UNKNOWN, true);
	assert_fate(&told.fates[5], 102 * PAGE, PAGE, 7, MW_TIME_UNKNOWN, true);
}

static struct mw_track_series series_of(const struct rig *rig, uint64_t end_ns)
{
	struct mw_track_series series;

	mw_track_stack_series(rig->track, rig->heap, end_ns, &series);
	return series;
}

static void test_series(void **state)
{
	struct rig *rig = *state;
	struct mw_track_series series;

	rig_alloc(rig, 0, 0x10, 5);
	interval(rig, MS / 2);
	rig_alloc(rig, MS, 0x20, 7);
	rig_alloc(rig, 5 * MS / 2, 0x30, 9); /* at the second moment, so not before it */
	rig_free(rig, 3 * MS, 0x20);
	series = series_of(rig, 9 * MS / 2 - 1);
	assert_int_equal(series.begin_ns, MS / 2);
	assert_int_equal(series.step_ns, MS);
	assert_int_equal(series.count, 3);
	assert_true(series.bytes[0] == 7 && series.bytes[1] == 7 && series.bytes[2] == 9);
	assert_int_equal(series_of(rig, 9 * MS / 2).count, 4);
	assert_int_equal(series_of(rig, 3 * MS).count, 2);
}

static void test_series_doubles(void **state)
{
	struct rig *rig = *state;
	struct mw_track_series series;

	for (uint32_t i = 1; i <= MW_SERIES_MAX + 1; i++)
		rig_alloc(rig, i * MS - 1, i * 16, 1);
	series = series_of(rig, MW_SERIES_MAX * MS + 1);
	assert_int_equal(series.count, MW_SERIES_MAX);
	for (uint32_t i = 0; i < series.count; i++)
		assert_true(series.bytes[i] == (float)(i + 1));
	series = series_of(rig, (MW_SERIES_MAX + 1) * MS);
	assert_int_equal(series.step_ns, 2 * MS);
	assert_int_equal(series.count, MW_SERIES_MAX / 2);
	for (uint32_t i = 0; i < series.count; i++)
		assert_true(series.bytes[i] == (float)(2 * i + 2));
}

/* Times come from a file that may be broken. */
static void test_end_of_time(void **state)
{
	struct rig *rig = *state;
	struct mw_track_series series;

	rig_alloc(rig, 1, 0x10, 5);
	rig_alloc(rig, UINT64_MAX, 0x20, 6);
	rig_free(rig, UINT64_MAX, 0x20);
	series = series_of(rig, UINT64_MAX);
	assert_in_range(series.count, MW_SERIES_MAX / 2, MW_SERIES_MAX);
	assert_true(series.bytes[0] == 5 && series.bytes[series.count - 1] == 5);
	interval(rig, UINT64_MAX);
	rig_alloc(rig, UINT64_MAX, 0x20, 6);
	rig_alloc(rig, 3, 0x30, 6);
	assert_int_equal(series_of(rig, UINT64_MAX).count, 0);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).impacting, 2, 12);
}

UNIT_GROUP(intervals)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_types),       TEST(test_late),   TEST(test_call_until),
		TEST(test_same_time),   TEST(test_births), TEST(test_call_across_the_begin),
		TEST(test_fates),       TEST(test_series), TEST(test_series_doubles),
		TEST(test_end_of_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
