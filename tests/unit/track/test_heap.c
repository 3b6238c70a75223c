// SPDX-License-Identifier: MIT
/* test_heap.c: what heap events mean. */
#include "rig.h"
#include "unit.h"

struct find {
	mw_addr addr;
	int seen;
	struct mw_track_block block;
};

static bool find_block(void *context, const struct mw_track_block *block, bool first)
{
	struct find *find = context;

	assert_true(first);
	if (block->addr == find->addr) {
		find->seen++;
		find->block = *block;
	}
	return true;
}

static struct find find_live(const struct rig *rig, mw_addr addr)
{
	struct find find = {.addr = addr};

	mw_track_each_block(rig->track, find_block, &find);
	return find;
}

static void test_alloc_and_free(void **state)
{
	struct rig *rig = *state;
	struct mw_track_totals totals;
	struct mw_track_stack stack;
	struct mw_track_thread thread;

	rig_alloc(rig, 10, 0x100, 40);
	rig_alloc(rig, 20, 0x200, 60);
	totals = rig_totals(rig, MW_KIND_HEAP);
	rig_amount(totals.impacting, 2, 100);
	rig_amount(totals.transient, 0, 0);
	assert_true(rig->sink.knows(rig->sink.context, 0x100));
	assert_false(rig->sink.knows(rig->sink.context, 0x101));
	rig_free(rig, 35, 0x100);
	assert_false(rig->sink.knows(rig->sink.context, 0x100));
	totals = rig_totals(rig, MW_KIND_HEAP);
	rig_amount(totals.impacting, 1, 60);
	rig_amount(totals.transient, 1, 40);
	rig_amount(totals.size, 2, 100);
	rig_amount(totals.aofi, 0, 0);
	stack = rig_of_stack(rig, rig->heap);
	rig_amount(stack.totals.impacting, 1, 60);
	assert_int_equal(stack.lifetime.count, 1);
	assert_int_equal(stack.lifetime.min_ns, 25);
	assert_int_equal(stack.lifetime.median_ns, 25);
	assert_int_equal(stack.lifetime.max_ns, 25);
	mw_track_thread(rig->track, rig->thread[0], &thread);
	rig_amount(thread.impacting, 1, 60);
	rig_amount(thread.transient, 1, 40);
	assert_int_equal(find_live(rig, 0x200).block.time_ns, 20);
	assert_int_equal(find_live(rig, 0x100).seen, 0);
	assert_int_equal(mw_track_missed(rig->track), 0);
}

static void test_thread_is_the_allocating_one(void **state)
{
	struct rig *rig = *state;
	struct mw_track_thread thread;

	rig_heap(rig, MW_EVENT_ALLOC, 1, 1, 0x100, 40);
	rig_heap(rig, MW_EVENT_FREE, 2, 2, 0x100, 40);
	mw_track_thread(rig->track, rig->thread[1], &thread);
	rig_amount(thread.transient, 1, 40);
	mw_track_thread(rig->track, rig->thread[2], &thread);
	rig_amount(thread.size, 0, 0);
}

static void test_peak(void **state)
{
	struct rig *rig = *state;
	struct mw_track_peak peak;

	rig_alloc(rig, 1, 0x100, 10);
	rig_alloc(rig, 2, 0x200, 20);
	rig_free(rig, 3, 0x100);
	rig_alloc(rig, 4, 0x300, 10);
	rig_free(rig, 5, 0x200);
	peak = rig_totals(rig, MW_KIND_HEAP).peak;
	rig_amount(peak.amount, 2, 30);
	assert_int_equal(peak.at_ns, 2);
	rig_alloc(rig, 6, 0x400, 25);
	peak = rig_of_stack(rig, rig->heap).totals.peak;
	rig_amount(peak.amount, 2, 35);
	assert_int_equal(peak.at_ns, 6);
}

static void test_size_zero(void **state)
{
	struct rig *rig = *state;

	rig_alloc(rig, 1, 0x100, 0);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).impacting, 1, 0);
	rig_free(rig, 2, 0x100);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).transient, 1, 0);
}

static void test_null_is_no_block(void **state)
{
	struct rig *rig = *state;

	rig_free(rig, 1, 0);
	rig_alloc(rig, 2, 0, 50);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).size, 0, 0);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).aofi, 0, 0);
	assert_int_equal(mw_track_stack_count(rig->track), 3);
}

static void test_free_of_unknown(void **state)
{
	struct rig *rig = *state;
	uint32_t before = mw_track_stack_count(rig->track);
	struct mw_track_totals totals;
	struct mw_track_stack none;

	rig_heap(rig, MW_EVENT_FREE, 1, 0, 0x100, 48);
	rig_heap(rig, MW_EVENT_FREE, 1, 0, 0x200, MW_SIZE_UNKNOWN);
	totals = rig_of_stack(rig, rig->heap).totals;
	rig_amount(totals.aofi, 2, 48);
	assert_int_equal(totals.aofi_unknown, 1);
	assert_int_equal(mw_track_stack_count(rig->track), before);
	rig_free(rig, 2, 0x300);
	rig_free(rig, 3, 0x400);
	totals = rig_totals(rig, MW_KIND_HEAP);
	rig_amount(totals.aofi, 4, 48);
	assert_int_equal(totals.aofi_unknown, 3);
	rig_amount(totals.size, 0, 0);
	assert_int_equal(mw_track_stack_count(rig->track), before + 1);
	none = rig_of_stack(rig, before);
	assert_int_equal(none.frame_count, 0);
	assert_int_equal(none.hook, UINT32_MAX);
	assert_int_equal(none.kind, MW_KIND_HEAP);
	rig_amount(none.totals.aofi, 2, 0);
	assert_int_equal(none.lifetime.count, 0);
}

static void test_missed_free(void **state)
{
	struct rig *rig = *state;
	struct mw_track_totals totals;

	rig_alloc(rig, 10, 0x100, 40);
	rig_alloc(rig, 30, 0x100, 16);
	assert_int_equal(mw_track_missed(rig->track), 1);
	totals = rig_totals(rig, MW_KIND_HEAP);
	rig_amount(totals.impacting, 1, 16);
	rig_amount(totals.transient, 1, 40);
	rig_amount(totals.peak.amount, 1, 40);
	assert_int_equal(rig_of_stack(rig, rig->heap).lifetime.max_ns, 20);
}

static void test_realloc_moves(void **state)
{
	struct rig *rig = *state;
	struct mw_track_totals totals;

	rig_alloc(rig, 10, 0x100, 40);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 15, 1, 0x100, MW_SIZE_UNKNOWN);
	/* Pending: out of the table, but live. */
	assert_false(rig->sink.knows(rig->sink.context, 0x100));
	rig_amount(rig_totals(rig, MW_KIND_HEAP).impacting, 1, 40);
	assert_int_equal(find_live(rig, 0x100).seen, 1);
	rig_check(rig);
	/* Another thread may be given the old address before END. */
	rig_heap(rig, MW_EVENT_ALLOC, 16, 2, 0x100, 8);
	rig_heap(rig, MW_EVENT_REALLOC_END, 18, 1, 0x500, 90);
	totals = rig_totals(rig, MW_KIND_HEAP);
	rig_amount(totals.impacting, 2, 98);
	rig_amount(totals.transient, 1, 40);
	rig_amount(totals.peak.amount, 2, 98);
	rig_amount(totals.aofi, 0, 0);
	assert_int_equal(mw_track_missed(rig->track), 0);
	assert_int_equal(rig_of_stack(rig, rig->heap).lifetime.max_ns, 5);
	assert_int_equal(find_live(rig, 0x500).block.time_ns, 18);
	assert_int_equal(find_live(rig, 0x500).block.thread, rig->thread[1]);
}

static void test_realloc_attributes_to_its_own_stack(void **state)
{
	struct rig *rig = *state;
	uint32_t other = rig_stack(rig, MW_KIND_HEAP, 2);

	rig_alloc(rig, 1, 0x100, 40);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 2, 0, 0x100, MW_SIZE_UNKNOWN);
	rig_send(rig,
		 (struct mw_event){3, 0x100, 50, other, rig->thread[0], MW_EVENT_REALLOC_END, MW_KIND_HEAP, 0, false});
	rig_amount(rig_of_stack(rig, rig->heap).totals.transient, 1, 40);
	rig_amount(rig_of_stack(rig, rig->heap).totals.impacting, 0, 0);
	rig_amount(rig_of_stack(rig, other).totals.impacting, 1, 50);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).peak.amount, 1, 50);
}

static void test_realloc_fails(void **state)
{
	struct rig *rig = *state;

	rig_alloc(rig, 1, 0x100, 40);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 2, 0, 0x100, MW_SIZE_UNKNOWN);
	rig_send(rig, (struct mw_event){3, 0x100, 0, MW_STACK_NONE, rig->thread[0], MW_EVENT_REALLOC_FAIL, MW_KIND_HEAP,
					0, false});
	assert_true(rig->sink.knows(rig->sink.context, 0x100));
	rig_amount(rig_totals(rig, MW_KIND_HEAP).impacting, 1, 40);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).transient, 0, 0);
	assert_int_equal(find_live(rig, 0x100).block.time_ns, 1);
	/* A block from before the window: nothing happened to it. */
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 4, 0, 0x900, 64);
	rig_heap(rig, MW_EVENT_REALLOC_FAIL, 5, 0, 0x900, 64);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).aofi, 0, 0);
	/* A second FAIL has nothing to undo. */
	rig_heap(rig, MW_EVENT_REALLOC_FAIL, 6, 0, 0x100, 0);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).size, 1, 40);
}

static void test_realloc_fails_but_address_was_reused(void **state)
{
	struct rig *rig = *state;

	rig_alloc(rig, 1, 0x100, 40);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 3, 0, 0x100, MW_SIZE_UNKNOWN);
	rig_heap(rig, MW_EVENT_ALLOC, 5, 1, 0x100, 8);
	rig_heap(rig, MW_EVENT_REALLOC_FAIL, 9, 0, 0x100, 0);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).impacting, 1, 8);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).transient, 1, 40);
	assert_int_equal(mw_track_missed(rig->track), 1);
	assert_int_equal(rig_of_stack(rig, rig->heap).lifetime.max_ns, 2);
	assert_int_equal(find_live(rig, 0x100).block.bytes, 8);
}

static void test_realloc_of_unknown(void **state)
{
	struct rig *rig = *state;
	struct mw_track_totals totals;

	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 1, 0, 0x900, 64);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).aofi, 0, 0);
	rig_heap(rig, MW_EVENT_REALLOC_END, 2, 0, 0xa00, 100);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 3, 0, 0xb00, MW_SIZE_UNKNOWN);
	rig_heap(rig, MW_EVENT_REALLOC_END, 4, 0, 0xb00, 10);
	totals = rig_of_stack(rig, rig->heap).totals;
	rig_amount(totals.aofi, 2, 64);
	assert_int_equal(totals.aofi_unknown, 1);
	rig_amount(totals.impacting, 2, 110);
}

static void test_realloc_of_null_and_to_nothing(void **state)
{
	struct rig *rig = *state;

	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 1, 0, 0, MW_SIZE_UNKNOWN);
	rig_heap(rig, MW_EVENT_REALLOC_END, 2, 0, 0x100, 30);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).impacting, 1, 30);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).aofi, 0, 0);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 3, 0, 0x100, MW_SIZE_UNKNOWN);
	rig_heap(rig, MW_EVENT_REALLOC_END, 4, 0, 0, 0);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).impacting, 0, 0);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).transient, 1, 30);
}

static void test_realloc_end_without_begin(void **state)
{
	struct rig *rig = *state;

	rig_heap(rig, MW_EVENT_REALLOC_END, 1, 0, 0x100, 30);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).impacting, 1, 30);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).aofi, 0, 0);
}

/* A signal handler reallocs inside realloc; another thread does so in between. */
static void test_newest_begin_matches(void **state)
{
	struct rig *rig = *state;

	rig_alloc(rig, 1, 0x100, 1);
	rig_alloc(rig, 1, 0x200, 20);
	rig_alloc(rig, 1, 0x300, 300);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 2, 0, 0x100, MW_SIZE_UNKNOWN);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 3, 1, 0x300, MW_SIZE_UNKNOWN);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 4, 0, 0x200, MW_SIZE_UNKNOWN);
	rig_check(rig);
	rig_heap(rig, MW_EVENT_REALLOC_END, 5, 0, 0x400, 4000);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).transient, 1, 20);
	rig_heap(rig, MW_EVENT_REALLOC_FAIL, 6, 0, 0x100, 0);
	assert_true(rig->sink.knows(rig->sink.context, 0x100));
	assert_false(rig->sink.knows(rig->sink.context, 0x300));
	rig_heap(rig, MW_EVENT_REALLOC_FAIL, 7, 1, 0x300, 0);
	assert_true(rig->sink.knows(rig->sink.context, 0x300));
	rig_amount(rig_totals(rig, MW_KIND_HEAP).impacting, 3, 4301);
}

static void test_wrong_numbers_are_refused(void **state)
{
	struct rig *rig = *state;
	struct mw_event event = {1, 0x100, 8, rig->heap, 99, MW_EVENT_ALLOC, MW_KIND_HEAP, 0, false};

	rig_refuse(rig, event, MW_ERROR_DATA);
	event.thread = rig->thread[0];
	event.stack = 99;
	rig_refuse(rig, event, MW_ERROR_DATA);
	event.stack = rig->vm;
	rig_refuse(rig, event, MW_ERROR_DATA);
	event.stack = rig->heap;
	event.type = (enum mw_event_type)77;
	rig_refuse(rig, event, MW_ERROR_DATA);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).size, 0, 0);
	/* A wrong END leaves the call open. */
	rig_alloc(rig, 1, 0x100, 8);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 2, 0, 0x100, MW_SIZE_UNKNOWN);
	event.type = MW_EVENT_REALLOC_END;
	event.stack = rig->vm;
	rig_refuse(rig, event, MW_ERROR_DATA);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).impacting, 1, 8);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).transient, 0, 0);
	rig_heap(rig, MW_EVENT_REALLOC_FAIL, 3, 0, 0x100, 0);
	assert_true(rig->sink.knows(rig->sink.context, 0x100));
}

/* Lifetimes of two stacks together are those of one stack that had both's blocks. */
static void test_lifetimes_together(void **state)
{
	struct rig *rig = *state;
	const uint32_t parts[] = {rig_stack(rig, MW_KIND_HEAP, 7), rig->heap, rig_stack(rig, MW_KIND_HEAP, 8)};
	uint32_t whole = rig_stack(rig, MW_KIND_HEAP, 9);
	struct mw_track_lifetime together, expected, none;

	for (uint64_t i = 1; i <= 200; i++) {
		uint64_t lifetime = i % 3 ? i * i * 1000 : i;
		struct mw_event event = {.type = MW_EVENT_ALLOC, .addr = i * 16, .size = 8, .thread = rig->thread[0]};

		event.stack = parts[i % 3 ? 1 : 0];
		rig_send(rig, event);
		rig_free(rig, lifetime, event.addr);
		event.stack = whole;
		rig_send(rig, event);
		rig_free(rig, lifetime, event.addr);
	}
	expected = rig_of_stack(rig, whole).lifetime;
	assert_null(mw_track_lifetime(rig->track, parts, 3, &together));
	assert_int_equal(together.count, 200);
	assert_memory_equal(&together, &expected, sizeof(together));
	assert_null(mw_track_lifetime(rig->track, parts + 2, 1, &none));
	assert_int_equal(none.count, 0);
}

static bool stop_at_second(void *context, const struct mw_track_block *block, bool first)
{
	int *calls = context;

	(void)block;
	(void)first;
	return ++*calls < 2;
}

static void test_visit_can_stop(void **state)
{
	struct rig *rig = *state;
	int calls = 0;

	for (mw_addr addr = 1; addr <= 10; addr++) {
		rig_alloc(rig, addr, addr * 16, 8);
		rig_vm(rig, MW_EVENT_MAP, addr, 0, addr * 4096, 4096);
	}
	mw_track_each_block(rig->track, stop_at_second, &calls);
	assert_int_equal(calls, 2);
}

UNIT_GROUP(heap)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_alloc_and_free),
		TEST(test_thread_is_the_allocating_one),
		TEST(test_peak),
		TEST(test_size_zero),
		TEST(test_null_is_no_block),
		TEST(test_free_of_unknown),
		TEST(test_missed_free),
		TEST(test_realloc_moves),
		TEST(test_realloc_attributes_to_its_own_stack),
		TEST(test_realloc_fails),
		TEST(test_realloc_fails_but_address_was_reused),
		TEST(test_realloc_of_unknown),
		TEST(test_realloc_of_null_and_to_nothing),
		TEST(test_realloc_end_without_begin),
		TEST(test_newest_begin_matches),
		TEST(test_wrong_numbers_are_refused),
		TEST(test_lifetimes_together),
		TEST(test_visit_can_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
