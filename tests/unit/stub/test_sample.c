// SPDX-License-Identifier: MIT
/* Sampled windows: how many of which size are recorded; their blocks; an exact window that goes over to sampling. */
#include "rig.h"
#include "unit.h"

#include <math.h>
#include <string.h>

#define BLOCK    0x7f0000001000u
#define INTERVAL 4096u

static void sample(uint64_t interval)
{
	rig.shared.control->intervals[1] = interval;
	rig.shared.control->interval = 1;
	rig.guard = MW_STUB_GUARD_SAMPLING;
}

/* A visit, to decide without a call. */
static struct stub_visit visit_of(void)
{
	return (struct stub_visit){.control = rig.shared.control, .slot = rig_slot(), .sampling = true};
}

/* How many of `count` allocations of `size` are recorded lies within five standard deviations of what is wanted. */
static void test_rates(void **state)
{
	const uint64_t sizes[] = {0, 1, 8, 64, 1000, INTERVAL, 3 * INTERVAL, 20 * INTERVAL, UINT64_C(64) << 20};
	struct stub_visit visit = visit_of();

	(void)state;
	sample(INTERVAL);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		double p = 1 - exp(-(double)(sizes[i] ? sizes[i] : 1) / INTERVAL), count = p < 0.01 ? 4e6 : 2e5, n = 0;
		uint32_t interval = 0;

		for (double j = 0; j < count; j++)
			n += stub_sample(&visit, sizes[i], false, &interval);
		assert_true(fabs(n - count * p) <= 5 * sqrt(count * p * (1 - p)) + 1e-6);
		assert_int_equal(interval, 1);
	}
}

/* Sizes that change from call to call do not change what each is recorded with. */
static void test_rates_of_a_mix(void **state)
{
	const uint64_t sizes[] = {16, 5000, 200, 40000};
	double seen[4] = {0}, count = 400000;
	struct stub_visit visit = visit_of();

	(void)state;
	sample(INTERVAL);
	for (unsigned j = 0; j < 4 * (unsigned)count; j++) {
		uint32_t interval;

		seen[j % 4] += stub_sample(&visit, sizes[j % 4], false, &interval);
	}
	for (size_t i = 0; i < 4; i++) {
		double p = 1 - exp(-(double)sizes[i] / INTERVAL);

		assert_true(fabs(seen[i] - count * p) <= 5 * sqrt(count * p * (1 - p)));
	}
}

/* The interval that decided is the one that the countdown was drawn of. */
static void test_interval_changes(void **state)
{
	struct stub_visit visit = visit_of();
	uint32_t interval = 0;

	(void)state;
	sample(INTERVAL);
	while (!stub_sample(&visit, 64, false, &interval))
		;
	assert_int_equal(interval, 1);
	rig.shared.control->intervals[2] = 1;
	rig.shared.control->interval = 2;
	while (!stub_sample(&visit, 64, false, &interval))
		;
	assert_int_equal(interval, 1);
	assert_true(stub_sample(&visit, 64, false, &interval));
	assert_int_equal(interval, 2);
}

/* The next allocation of any size is recorded, or none is. */
static void next_is_sampled(bool yes)
{
	rig_slot()->interval = 1;
	rig_slot()->countdown = yes ? 0 : INT64_MAX / 4;
}

#define TAG(size, interval) ((uint64_t)(size) | (uint64_t)(interval) << MW_RING_INTERVAL_SHIFT)

static void test_allocation_and_free(void **state)
{
	(void)state;
	sample(INTERVAL);
	next_is_sampled(true);
	mw_stub_leave(rig_call(HOOK_MALLOC, 100, 0, 0, 0), BLOCK);
	rig_expect(MW_RING_ALLOC, BLOCK, TAG(100, 1));
	/* What is not recorded is around others, which are not either. */
	next_is_sampled(false);
	mw_stub_leave(rig_call(HOOK_MALLOC, 100, 0, 0, 0), BLOCK + 4096);
	rig_expect_none();
	assert_int_equal(rig_enter(rig_stack(3000, 3), HOOK_FREE, BLOCK + 4096, 0, 0, 0), MW_STUB_PASS);
	rig_expect_none();
	assert_int_equal(rig_enter(rig_stack(3000, 3), HOOK_FREE, BLOCK, 0, 0, 0), MW_STUB_PASS);
	rig_expect(MW_RING_FREE_BLOCK, BLOCK, UINT64_MAX);
	assert_int_equal(rig_enter(rig_stack(3000, 3), HOOK_FREE, BLOCK, 0, 0, 0), MW_STUB_PASS);
	rig_expect_none();
}

static void test_realloc_sampled(void **state)
{
	(void)state;
	sample(INTERVAL);
	next_is_sampled(true);
	mw_stub_leave(rig_call(HOOK_REALLOC, 0, 50, 0, 0), BLOCK);
	rig_expect(MW_RING_ALLOC, BLOCK, TAG(50, 1));
	/* Recorded and recorded again; the failed one is what it was. */
	next_is_sampled(true);
	mw_stub_leave(rig_call(HOOK_REALLOC, BLOCK, 60, 0, 0), 0);
	rig_expect(MW_RING_REALLOC_BEGIN, BLOCK, UINT64_MAX);
	rig_expect(MW_RING_REALLOC_FAIL, BLOCK, 0);
	next_is_sampled(true);
	mw_stub_leave(rig_call(HOOK_REALLOC, BLOCK, 70, 0, 0), BLOCK + 4096);
	rig_expect(MW_RING_REALLOC_BEGIN, BLOCK, UINT64_MAX);
	rig_expect(MW_RING_REALLOC_END, BLOCK + 4096, TAG(70, 1));
	/* To one that is not. */
	next_is_sampled(false);
	mw_stub_leave(rig_call(HOOK_REALLOC, BLOCK + 4096, 80, 0, 0), BLOCK);
	rig_expect(MW_RING_REALLOC_BEGIN, BLOCK + 4096, UINT64_MAX);
	rig_expect(MW_RING_REALLOC_END, BLOCK, TAG(80, MW_RING_UNSAMPLED));
	/* From there on, nothing is known of it. */
	next_is_sampled(false);
	mw_stub_leave(rig_call(HOOK_REALLOC, BLOCK, 90, 0, 0), BLOCK);
	rig_expect_none();
	next_is_sampled(true);
	mw_stub_leave(rig_call(HOOK_REALLOC, BLOCK, 95, 0, 0), BLOCK);
	rig_expect(MW_RING_ALLOC, BLOCK, TAG(95, 1));
	rig_expect_none();
}

/* A call that a call which is not recorded makes is not recorded either, whatever its size. */
static void test_nested(void **state)
{
	struct mw_stub_call *outer, *inner;
	uint64_t pcs[] = {(uint64_t)(uintptr_t)mw_stub_returned};

	(void)state;
	sample(INTERVAL);
	next_is_sampled(false);
	outer = rig_stack(2000, 3);
	assert_int_equal(rig_enter(outer, HOOK_REALLOC, 0, 100, 0, 0), MW_STUB_WRAP);
	inner = rig_frames(2000 - 10, pcs, 1);
	next_is_sampled(true);
	assert_int_equal(rig_enter(inner, HOOK_MALLOC, 100, 0, 0, 0), MW_STUB_PASS);
	mw_stub_leave(outer, BLOCK);
	rig_expect_none();
	assert_true(rig_slot()->countdown == 0);
}

static void test_size_told_by_the_result(void **state)
{
	static const char text[] __attribute__((aligned(16))) = "hundred";

	(void)state;
	sample(INTERVAL);
	next_is_sampled(true);
	mw_stub_leave(rig_call(HOOK_STRDUP, 0, 0, 0, 0), (uint64_t)(uintptr_t)text);
	rig_expect(MW_RING_ALLOC, (uint64_t)(uintptr_t)text, TAG(sizeof(text), 1));
	next_is_sampled(false);
	mw_stub_leave(rig_call(HOOK_STRDUP, 0, 0, 0, 0), (uint64_t)(uintptr_t)text);
	rig_expect_none();
}

/* A size is nothing beside the number of the interval: what no machine has is not told. */
static void test_set(void **state)
{
	struct mw_ring_control *control = rig.shared.control;
	const uint64_t same = UINT64_C(1) << (MW_RING_FILTER_FOLD + 21); /* another block, the same byte and more */
	uint64_t n = 0;

	(void)state;
	assert_int_equal(sampled_take(control, BLOCK), NOT_SAMPLED);
	sampled_add(control, BLOCK);
	assert_true(sampled_has(control, BLOCK));
	assert_int_equal(sampled_take(control, BLOCK + (same << 1)), NOT_SAMPLED);
	assert_int_equal(sampled_take(control, BLOCK), SAMPLED);
	assert_int_equal(sampled_take(control, BLOCK), NOT_SAMPLED);
	assert_int_equal(*sampled_filter(control, BLOCK), 0);
	/* A few below its size all have a place. */
	for (; n < MW_RING_BUCKETS * MW_RING_BUCKET / 2; n++)
		sampled_add(control, BLOCK + n * 48);
	assert_int_equal(control->set_full, 0);
	for (; !control->set_full; n++)
		sampled_add(control, BLOCK + n * 48);
	/* The last one had none; others are known, none is lost. */
	assert_true(n > MW_RING_BUCKETS * MW_RING_BUCKET / 4 * 3);
	assert_int_equal(sampled_take(control, BLOCK + (n - 1) * 48), MAYBE_SAMPLED);
	for (uint64_t i = 0; i < n - 1; i++)
		assert_int_equal(sampled_take(control, BLOCK + i * 48), SAMPLED);
	sampled_add(control, BLOCK);
	assert_int_equal(sampled_take(control, BLOCK), MAYBE_SAMPLED);
}

/* --- an exact window that goes over to sampling --- */

static void exact_until_full(uint32_t overload)
{
	struct mw_ring_control *control = rig.shared.control;

	control->overload = overload;
	control->intervals[1] = UINT64_C(1) << 40;
	control->interval = 1;
	control->wait_span = UINT64_C(1000) * MW_RING_WAIT_UNIT;
	control->wait_share = 50000;
	for (uint64_t n = 0; n < 64; n++)
		mw_stub_leave(rig_call(HOOK_MALLOC, 100 + n, 0, 0, 0), BLOCK + n * 16);
}

static void test_turns_to_sampling(void **state)
{
	struct mw_ring_control *control = rig.shared.control;
	struct mw_ring_slot *slot = rig_slot();
	uint64_t before;

	(void)state;
	exact_until_full(MW_RING_OVERLOAD_SAMPLE);
	assert_int_equal(rig.guard, MW_STUB_GUARD_TURNING);
	assert_true(control->sampled_from != 0);
	/* Of what was wanted then nothing counts as lost: it was not to be recorded any more. */
	assert_int_equal(slot->lost_events, 0);
	/* It has waited for half of its share of one span, and a little more, as ticks come. */
	assert_true(slot->waited >= UINT64_C(1000) * MW_RING_WAIT_UNIT / 40);
	assert_true(slot->waited < UINT64_C(1000) * MW_RING_WAIT_UNIT / 20);
	/* A part of the ring was kept for frees. */
	before = slot->reserved;
	assert_true(before <= 48);
	for (uint64_t n = 0; n < 8; n++)
		rig_enter(rig_stack(3000, 3), HOOK_FREE, BLOCK + n * 16, 0, 0, 0);
	assert_int_equal(slot->reserved, before + 8);
	/* One that has no room is known no more, which memwatch will see; it is not lost. */
	while (slot->reserved < 64)
		rig_enter(rig_stack(3000, 3), HOOK_FREE, BLOCK + (slot->reserved - before) * 16, 0, 0, 0);
	rig_enter(rig_stack(3000, 3), HOOK_FREE, BLOCK + 17 * 16, 0, 0, 0);
	assert_int_equal(slot->lost_events, 0);
	assert_false(stub_known_take(control, BLOCK + 17 * 16));
	/* memwatch has looked. */
	control->adopted = 1;
	rig_enter(rig_stack(3000, 3), HOOK_FREE, BLOCK, 0, 0, 0);
	assert_int_equal(rig.guard, MW_STUB_GUARD_SAMPLING);
}

/* It is the same as far as the ring is concerned, but nobody waits, and it is counted. */
static void test_drops(void **state)
{
	(void)state;
	rig.shared.control->wait_share = 0;
	rig.shared.control->overload = MW_RING_OVERLOAD_DROP;
	for (uint64_t n = 0; n < 80; n++)
		mw_stub_leave(rig_call(HOOK_MALLOC, 100, 0, 0, 0), BLOCK + n * 16);
	assert_int_equal(rig.guard, MW_STUB_GUARD_ON);
	assert_int_equal(rig_slot()->waited, 0);
	assert_true(rig_slot()->lost_events >= 16);
}

/* What began before that and comes back after it is sampled, too. */
static void test_call_across_the_turn(void **state)
{
	struct mw_stub_call *call;

	(void)state;
	call = rig_call(HOOK_MALLOC, 100, 0, 0, 0);
	sample(INTERVAL);
	next_is_sampled(false);
	mw_stub_leave(call, BLOCK);
	rig_expect_none();
	rig.guard = MW_STUB_GUARD_ON;
	call = rig_call(HOOK_MALLOC, 100, 0, 0, 0);
	rig.guard = MW_STUB_GUARD_SAMPLING;
	next_is_sampled(true);
	mw_stub_leave(call, BLOCK);
	rig_expect(MW_RING_ALLOC, BLOCK, TAG(100, 1));
}

UNIT_GROUP(sample)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(test_rates),
		T(test_rates_of_a_mix),
		T(test_interval_changes),
		T(test_allocation_and_free),
		T(test_realloc_sampled),
		T(test_nested),
		T(test_size_told_by_the_result),
		T(test_set),
		T(test_turns_to_sampling),
		T(test_drops),
		T(test_call_across_the_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
