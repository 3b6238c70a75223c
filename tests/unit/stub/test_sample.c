// SPDX-License-Identifier: MIT
/* Which blocks are recorded where not all are. */
#include "rig.h"
#include "unit.h"

#include <math.h>

#define BLOCK    0x7f0000001000u
#define OTHER    0x7f0000002000u
#define INTERVAL 4096
#define NUMBER   7
#define LABEL    ((uint64_t)NUMBER << MW_RING_SIZE_BITS)
#define NEVER    INT64_MAX

static void sample(uint64_t interval)
{
	rig.guard = MW_STUB_GUARD_SAMPLING;
	rig.shared.control->sampling = mw_ring_sampling(interval, NUMBER);
	/* The first call draws; from here on the numbers are the same each time. */
	mw_stub_leave(rig_call(HOOK_MALLOC, 0, 0, 0, 0), 0);
	while (rig_event())
		;
	rig_slot()->random = 42;
}

static void next(int64_t countdown)
{
	rig_slot()->countdown = countdown;
}

static void allocate(uint64_t block)
{
	next(0);
	mw_stub_leave(rig_call(HOOK_MALLOC, 24, 0, 0, 0), block);
	rig_expect(MW_RING_ALLOC, block, LABEL | 24);
}

/* Of so many blocks of a size the share that the interval says is recorded, by the thread's countdown alone. */
static void test_share(void **state)
{
	static const uint64_t sizes[] = {0, 1, 8, 64, 1000, 4096, 20000, 100000};
	const unsigned blocks = 20000;
	double expected, deviation;

	(void)state;
	sample(INTERVAL);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		unsigned recorded = 0;

		for (unsigned j = 0; j < blocks; j++) {
			struct shared_record *record;

			mw_stub_leave(rig_call(HOOK_MALLOC, sizes[i], 0, 0, 0), BLOCK);
			record = rig_event();
			if (!record)
				continue;
			recorded++;
			assert_int_equal(record->size, LABEL | sizes[i]);
			mw_stub_leave(rig_call(HOOK_FREE, BLOCK, 0, 0, 0), 0);
			rig_expect(MW_RING_FREE_BLOCK, BLOCK, UINT64_MAX);
		}
		expected = -expm1(-(double)(sizes[i] ? sizes[i] : 1) / INTERVAL);
		deviation = sqrt(expected * (1 - expected) / blocks);
		assert_true(fabs(recorded / (double)blocks - expected) < 4 * deviation + 1e-4);
	}
	assert_int_equal(rig_slot()->lost_events, 0);
	assert_true(rig_slot()->spent > 0);
}

/* What is drawn has the mean, and the tail, of the exponential distribution. */
static void test_draws(void **state)
{
	const unsigned draws = 50000;
	double sum = 0;
	unsigned beyond = 0;

	(void)state;
	sample(INTERVAL);
	for (unsigned i = 0; i < draws; i++) {
		allocate(BLOCK);
		assert_true(rig_slot()->countdown >= 0);
		sum += (double)rig_slot()->countdown;
		beyond += rig_slot()->countdown > 3 * INTERVAL;
		mw_stub_leave(rig_call(HOOK_FREE, BLOCK, 0, 0, 0), 0);
		rig_expect(MW_RING_FREE_BLOCK, BLOCK, UINT64_MAX);
	}
	/* Rounded down, it is half a byte less. */
	assert_true(fabs(sum / draws - INTERVAL + 0.5) < 4 * INTERVAL / sqrt(draws));
	assert_true(fabs(beyond / (double)draws - exp(-3)) < 4 * sqrt(exp(-3) / draws));
}

/* An interval that changes holds from the next draw on. */
static void test_interval_changes(void **state)
{
	(void)state;
	sample(INTERVAL);
	rig.shared.control->sampling = mw_ring_sampling(UINT64_C(1) << 40, NUMBER + 1);
	allocate(BLOCK);
	assert_true(rig_slot()->countdown > (INTERVAL << 8));
	next(0);
	mw_stub_leave(rig_call(HOOK_MALLOC, 24, 0, 0, 0), OTHER);
	rig_expect(MW_RING_ALLOC, OTHER, (LABEL + (UINT64_C(1) << MW_RING_SIZE_BITS)) | 24);
}

/* Of blocks that are not recorded there is nothing, not even a visit of the free. */
static void test_unsampled(void **state)
{
	uint64_t entries;

	(void)state;
	sample(INTERVAL);
	next(NEVER);
	mw_stub_leave(rig_call(HOOK_MALLOC, 24, 0, 0, 0), BLOCK);
	mw_stub_leave(rig_call(HOOK_CALLOC, 24, 2, 0, 0), OTHER);
	entries = rig_slot()->entries;
	assert_int_equal(rig_enter(rig_stack(1000, 2), HOOK_FREE, BLOCK, 0, 0, 0), MW_STUB_PASS);
	assert_int_equal(rig_slot()->entries, entries);
	assert_int_equal(rig_slot()->walks, 0);
	rig_expect_none();
}

static void test_freed_once(void **state)
{
	(void)state;
	sample(INTERVAL);
	allocate(BLOCK);
	/* Another block at the same place of the filter. */
	assert_int_equal(mw_ring_filter_place(BLOCK), mw_ring_filter_place(BLOCK ^ 0x800000 ^ 0x10));
	assert_int_equal(rig_enter(rig_stack(1000, 2), HOOK_FREE, BLOCK ^ 0x800000 ^ 0x10, 0, 0, 0), MW_STUB_PASS);
	rig_expect_none();
	mw_stub_leave(rig_call(HOOK_FREE, BLOCK, 0, 0, 0), 0);
	rig_expect(MW_RING_FREE_BLOCK, BLOCK, UINT64_MAX);
	assert_int_equal(rig_enter(rig_stack(1000, 2), HOOK_FREE, BLOCK, 0, 0, 0), MW_STUB_PASS);
	rig_expect_none();
}

/* Two blocks whose place among the known ones is the same: no free of either is missed, whichever comes first. */
static void test_places_taken(void **state)
{
	const uint64_t far = BLOCK + ((uint64_t)rig.shared.control->known_count << 4);

	(void)state;
	sample(INTERVAL);
	for (unsigned i = 0; i < 2; i++) {
		const uint64_t blocks[] = {i ? far : BLOCK, i ? BLOCK : far};

		allocate(BLOCK);
		allocate(far);
		for (unsigned j = 0; j < 2; j++) {
			mw_stub_leave(rig_call(HOOK_FREE, blocks[j], 0, 0, 0), 0);
			rig_expect(MW_RING_FREE_BLOCK, blocks[j], UINT64_MAX);
		}
		rig_expect_none();
	}
	/* One that has no place at all. */
	allocate(BLOCK + 1);
	mw_stub_leave(rig_call(HOOK_FREE, BLOCK + 1, 0, 0, 0), 0);
	rig_expect(MW_RING_FREE_BLOCK, BLOCK + 1, UINT64_MAX);
}

/* So many at one place of the filter that it can't count them. */
static void test_filter_sticks(void **state)
{
	uint64_t blocks[300];

	(void)state;
	sample(INTERVAL);
	for (uint64_t i = 0; i < 300; i++) {
		blocks[i] = (i << 23) | (i << 4);
		assert_int_equal(mw_ring_filter_place(blocks[i]), 0);
		if (i)
			allocate(blocks[i]);
	}
	for (uint64_t i = 1; i < 300; i++) {
		mw_stub_leave(rig_call(HOOK_FREE, blocks[i], 0, 0, 0), 0);
		rig_expect(MW_RING_FREE_BLOCK, blocks[i], UINT64_MAX);
	}
}

static void test_reallocs(void **state)
{
	const uint64_t unsampled = MW_RING_UNSAMPLED << MW_RING_SIZE_BITS;

	(void)state;
	sample(INTERVAL);
	/* Neither. */
	next(NEVER);
	mw_stub_leave(rig_call(HOOK_REALLOC, BLOCK, 10, 0, 0), OTHER);
	rig_expect_none();
	/* The new block alone. */
	next(0);
	mw_stub_leave(rig_call(HOOK_REALLOC, OTHER, 10, 0, 0), BLOCK);
	rig_expect(MW_RING_ALLOC, BLOCK, LABEL | 10);
	/* Both; a failure leaves the old one what it was. */
	next(0);
	mw_stub_leave(rig_call(HOOK_REALLOCARRAY, BLOCK, 2, 8, 0), 0);
	rig_expect(MW_RING_REALLOC_BEGIN, BLOCK, UINT64_MAX);
	rig_expect(MW_RING_REALLOC_FAIL, BLOCK, 0);
	next(0);
	mw_stub_leave(rig_call(HOOK_REALLOC, BLOCK, 20, 0, 0), OTHER);
	rig_expect(MW_RING_REALLOC_BEGIN, BLOCK, UINT64_MAX);
	rig_expect(MW_RING_REALLOC_END, OTHER, LABEL | 20);
	/* The old one alone. */
	next(NEVER);
	mw_stub_leave(rig_call(HOOK_REALLOC, OTHER, 30, 0, 0), OTHER);
	rig_expect(MW_RING_REALLOC_BEGIN, OTHER, UINT64_MAX);
	rig_expect(MW_RING_REALLOC_END, OTHER, unsampled | 30);
	assert_int_equal(rig_enter(rig_stack(1000, 2), HOOK_FREE, OTHER, 0, 0, 0), MW_STUB_PASS);
	/* In place: of one that is not known, of one that is. */
	next(0);
	mw_stub_leave(rig_call(HOOK_RESIZE, BLOCK, 100, 0, 0), 112);
	rig_expect(MW_RING_ALLOC, BLOCK, LABEL | 100);
	next(0);
	mw_stub_leave(rig_call(HOOK_RESIZE, OTHER, 100, 0, 0), 50);
	rig_expect_none();
	next(NEVER);
	mw_stub_leave(rig_call(HOOK_RESIZE, BLOCK, 1000, 0, 0), 50);
	rig_expect(MW_RING_REALLOC_BEGIN, BLOCK, UINT64_MAX);
	rig_expect(MW_RING_REALLOC_FAIL, BLOCK, 0);
	mw_stub_leave(rig_call(HOOK_FREE, BLOCK, 0, 0, 0), 0);
	rig_expect(MW_RING_FREE_BLOCK, BLOCK, UINT64_MAX);
}

/* What an allocating function calls is not the program's own, recorded or not. */
static void test_inside(void **state)
{
	struct mw_stub_call *outer;
	int64_t before;

	(void)state;
	sample(INTERVAL);
	next(NEVER - 100);
	outer = rig_call(HOOK_MALLOC, 24, 0, 0, 0);
	before = rig_slot()->countdown;
	rig.thread->stack[STACK_WORDS - 209 + 8] = (uint64_t)(uintptr_t)mw_stub_returned;
	assert_int_equal(rig_enter((struct mw_stub_call *)(void *)&rig.thread->stack[STACK_WORDS - 209], HOOK_CALLOC, 1,
				   24, 0, 0),
			 MW_STUB_PASS);
	assert_int_equal(rig_slot()->countdown, before);
	mw_stub_leave(outer, BLOCK);
	rig_expect_none();
}

/* … nor what a function on the fast path calls, of which only its code is on the stack. */
static void test_in_leaf(void **state)
{
	const uint64_t leaf[] = {CODE_SP + 0x10, CODE_SP + 0x800, CODE_SP + 0x11, CODE_END + 1};
	struct mw_stub_call *call;

	(void)state;
	sample(INTERVAL);
	mw_stub_context.leaves[0] = (struct mw_stub_range){CODE_SP + 0x700, CODE_SP + 0x900};
	mw_stub_context.leaf_count = 1;
	next(0);
	call = rig_frames(STACK_WORDS - 200, leaf, 4);
	assert_int_equal(rig_enter(call, HOOK_MALLOC, 24, 0, 0, 0), MW_STUB_WRAP);
	mw_stub_leave(call, BLOCK);
	rig_expect_none();
	call = rig_frames(STACK_WORDS - 200, leaf, 4);
	assert_int_equal(rig_enter(call, HOOK_MMAP, 0, 8192, 0, 0), MW_STUB_WRAP);
	mw_stub_leave(call, 0x10000);
	assert_int_equal(rig_event()->flags, MW_RING_INTERNAL);
	mw_stub_leave(rig_call(HOOK_MMAP, 0, 8192, 0, 0), 0x10000);
	assert_int_equal(rig_event()->flags, MW_RING_VM);
}

/* A size that shows in the copy only. */
static void test_strings(void **state)
{
	static const char text[] __attribute__((aligned(16))) = "copied";

	(void)state;
	sample(INTERVAL);
	next(7);
	mw_stub_leave(rig_call(HOOK_STRDUP, 1, 0, 0, 0), (uint64_t)(uintptr_t)text);
	rig_expect_none();
	next(6);
	mw_stub_leave(rig_call(HOOK_STRDUP, 1, 0, 0, 0), (uint64_t)(uintptr_t)text);
	rig_expect(MW_RING_ALLOC, (uint64_t)(uintptr_t)text, LABEL | 7);
}

/* While the window settles no block is new, and a thread does not come to ask again and again. */
static void test_settles(void **state)
{
	(void)state;
	sample(INTERVAL);
	allocate(BLOCK);
	rig.shared.control->settling = 1;
	next(-1);
	assert_int_equal(rig_enter(rig_stack(1000, 2), HOOK_MALLOC, 24, 0, 0, 0), MW_STUB_PASS);
	assert_int_equal(rig_slot()->countdown, INT64_MAX);
	next(0);
	mw_stub_leave(rig_call(HOOK_REALLOC, OTHER, 24, 0, 0), OTHER);
	rig_expect_none();
	next(0);
	mw_stub_leave(rig_call(HOOK_REALLOC, BLOCK, 24, 0, 0), OTHER);
	rig_expect(MW_RING_REALLOC_BEGIN, BLOCK, UINT64_MAX);
	rig_expect(MW_RING_REALLOC_END, OTHER, MW_RING_UNSAMPLED << MW_RING_SIZE_BITS | 24);
}

UNIT_GROUP(sample)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_share, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_draws, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_interval_changes, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_unsampled, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_freed_once, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_places_taken, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_filter_sticks, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_reallocs, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_inside, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_in_leaf, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_strings, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_settles, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
