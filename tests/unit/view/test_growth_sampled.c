// SPDX-License-Identifier: MIT
/*
 * test_growth_sampled.c: verdicts on stacks whose blocks were sampled. Each program is run in many windows, with other blocks
 * sampled each time: what leaks is not called harmless, however few of its blocks were sampled, and what comes and goes is not
 * called a leak.
 */
#include "track/track.h"
#include "unit.h"
#include "view/growth.h"
#include "view/summary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LENGTH   10.0 /* of the window, seconds */
#define INTERVAL (UINT64_C(512) << 10)
#define NEVER    INFINITY
#define MOST     4096 /* sampled blocks */

/* --- chance, the same in each run ------------------------------------------------------------------------------------ */

static uint64_t seed;

/* In (0, 1]. */
static double any(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return ((double)(seed >> 40) + 1) / (double)(1u << 24);
}

static double pause_of(double rate)
{
	return -log(any()) / rate;
}

/* --- a window ---------------------------------------------------------------------------------------------------------- */

struct moment {
	double at;
	uint32_t block;
	bool birth;
};

static struct {
	double born, died;
	uint64_t bytes;
} blocks[MOST];

static struct moment moments[2 * MOST];
static uint32_t block_count;

/* A block that may be sampled. */
static void add(double born, double died, uint64_t bytes)
{
	if (born < 0 || born >= LENGTH || died <= born ||
	    any() > -expm1(-(double)(bytes ? bytes : 1) / (double)INTERVAL))
		return;
	assert_true(block_count < MOST);
	blocks[block_count].born = born;
	blocks[block_count].died = died;
	blocks[block_count++].bytes = bytes;
}

/* So many bytes a second, in blocks of a size, from start to end; those that are sampled come at random, as rare events do. */
static void add_flow(double start, double end, double bytes_a_second, uint64_t bytes, double life)
{
	double p = -expm1(-(double)bytes / (double)INTERVAL), rate = bytes_a_second / (double)bytes * p;

	for (double at = start + pause_of(rate); at < end; at += pause_of(rate)) {
		assert_true(block_count < MOST);
		blocks[block_count].born = at;
		blocks[block_count].died = isinf(life) ? NEVER : at + 1e-6 + pause_of(1 / life);
		blocks[block_count++].bytes = bytes;
	}
}

static int compare_moments(const void *left, const void *right)
{
	const struct moment *a = left, *b = right;

	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return a->birth != b->birth ? a->birth - b->birth : (a->block > b->block) - (a->block < b->block);
}

static size_t order(void)
{
	size_t count = 0;

	for (uint32_t i = 0; i < block_count; i++) {
		moments[count++] = (struct moment){blocks[i].born, i, true};
		if (blocks[i].died < LENGTH)
			moments[count++] = (struct moment){blocks[i].died, i, false};
	}
	qsort(moments, count, sizeof(*moments), compare_moments);
	return count;
}

static void feed(struct mw_track *track)
{
	struct mw_event_sink sink = mw_track_sink(track);
	const struct mw_raw_frame frame = {0x1000, 0};
	const struct mw_raw_stack raw = {&frame, 1, MW_STACK_COMPLETE, 0, MW_KIND_HEAP};
	size_t count = order();
	uint32_t stack, thread;
	uint16_t interval;

	assert_null(sink.interval(sink.context, INTERVAL, &interval));
	assert_null(sink.stack(sink.context, &raw, &stack));
	assert_null(sink.thread(sink.context, 1, "one", true, &thread));
	for (size_t i = 0; i < count; i++) {
		const struct mw_event event = {
			.time_ns = (uint64_t)(moments[i].at * 1e9),
			.addr = 0x10000 + 16 * (mw_addr)moments[i].block,
			.size = moments[i].birth ? blocks[moments[i].block].bytes : MW_SIZE_UNKNOWN,
			.stack = stack,
			.thread = thread,
			.type = moments[i].birth ? MW_EVENT_ALLOC : MW_EVENT_FREE,
			.kind = MW_KIND_HEAP,
			.interval = moments[i].birth ? interval : 0,
		};

		assert_null(sink.event(sink.context, &event));
	}
}

/* Of the stack, or nothing known where none of its outstanding blocks was sampled. */
static struct mw_report_growth judge(bool launched)
{
	struct mw_report report = {.window = {.seconds = LENGTH, .to = LENGTH}};
	struct mw_summary_input input = {.launched = launched};
	struct mw_report_growth growth = {0}, *out[] = {&growth};
	const uint32_t group_of[] = {0};
	struct mw_track *track;
	struct mw_track_totals totals;

	assert_null(mw_track_create(&track));
	feed(track);
	input.track = track;
	mw_track_totals(track, MW_KIND_HEAP, &totals);
	if (totals.impacting.count)
		assert_null(mw_view_judge(&input, &report, group_of, out, 1));
	mw_track_destroy(track);
	return growth;
}

/* --- programs ---------------------------------------------------------------------------------------------------------- */

#define WINDOWS 300

/* In how many windows which verdicts were given. */
struct verdicts {
	int unseen; /* no outstanding block was sampled */
	int grows, calm, certain, too_short;
};

static uint32_t count_outstanding(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < block_count; i++)
		count += blocks[i].died >= LENGTH;
	return count;
}

static struct verdicts run(void (*program)(double amount), double amount, bool launched)
{
	struct verdicts verdicts = {.unseen = 0};

	for (int i = 0; i < WINDOWS; i++) {
		struct mw_report_growth growth;
		bool grows, too_short;

		seed = 88172645463325252U + (uint64_t)i;
		(void)any();
		block_count = 0;
		program(amount);
		growth = judge(launched);
		grows = growth.known && growth.verdict >= MW_GROWTH_STEADY;
		too_short = growth.known && growth.verdict == MW_GROWTH_TOO_SHORT;
		if (grows)
			assert_true(count_outstanding() >= 5);
		verdicts.unseen += !growth.known;
		verdicts.grows += grows;
		verdicts.too_short += too_short;
		verdicts.calm += growth.known && !grows && !too_short;
		verdicts.certain += grows && growth.certain;
	}
	return verdicts;
}

/* Amounts are so many intervals' worth of bytes over the window: as many blocks are sampled on average. */

static void leak(double amount)
{
	add_flow(0, LENGTH, amount * (double)INTERVAL / LENGTH, 100, NEVER);
}

static void leak_among_churn(double amount)
{
	leak(amount);
	add_flow(0, LENGTH, 200 * (double)INTERVAL / LENGTH, 100, 0.01);
}

static void leak_among_slow_churn(double amount)
{
	leak(amount);
	add_flow(0, LENGTH, 100 * (double)INTERVAL / LENGTH, 100, 0.5);
}

static void late_leak(double amount)
{
	add_flow(LENGTH / 2, LENGTH, amount * (double)INTERVAL / LENGTH, 100, NEVER);
}

static void bursts(double amount)
{
	for (int i = 0; i < 5; i++)
		add_flow(i * 2 + 1, i * 2 + 1.05, amount * (double)INTERVAL / 5 / 0.05, 100, NEVER);
}

static void churn(double amount)
{
	add_flow(0, LENGTH, amount * (double)INTERVAL / LENGTH, 100, 0.05);
}

/* Of sizes from a hundredth of the interval to four times that. */
static void mixed_churn(double amount)
{
	for (double at = 0; at < LENGTH; at += pause_of(amount))
		add(at, at + pause_of(10), (uint64_t)((double)INTERVAL * 0.01 * pow(400, any())));
}

static void slow_churn(double amount)
{
	add_flow(0, LENGTH, amount * (double)INTERVAL / LENGTH, 100, 1);
}

static void one_off(double amount)
{
	add_flow(1, 1.2, amount * (double)INTERVAL / 0.2, 1000, NEVER);
}

static void plateau(double amount)
{
	add_flow(0, 4, amount * (double)INTERVAL / 4, 1000, NEVER);
}

/* A block that no sampling misses is as sure as where all are recorded. */
static void large_block(double amount)
{
	add(1, NEVER, (uint64_t)(amount * (double)INTERVAL));
}

static void large_leak(double amount)
{
	for (int i = 0; i < 8; i++)
		add(0.5 + i * 1.2, NEVER, (uint64_t)(amount * (double)INTERVAL));
}

/* Storage that is freed and allocated again for more. */
static void storage(double amount)
{
	for (int i = 0; i < 400; i++)
		add(i * LENGTH / 400, (i + 1.01) * LENGTH / 400, (uint64_t)(amount * (double)INTERVAL * (i + 1) / 400));
}

/* --- what is said of them ------------------------------------------------------------------------------------------------ */

#define SHARE(part) ((part)*WINDOWS / 1000) /* in thousandths */

/* However few samples there are of a leak: it is not called harmless. */
static void test_no_leak_is_harmless(void **state)
{
	static void (*const programs[])(double) = {leak, late_leak, bursts};

	(void)state;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		for (double amount = 1; amount < 1000; amount *= 2.5) {
			struct verdicts verdicts = run(programs[i], amount, false);

			assert_true(verdicts.calm <= SHARE(10));
			assert_int_equal(verdicts.certain, 0);
			/* One that is larger than what may go unseen is not. */
			if (amount > 3 && programs[i] != late_leak)
				assert_true(verdicts.unseen <= SHARE(50));
			if (amount > 15)
				assert_true(verdicts.grows >= SHARE(programs[i] == late_leak ? 800 : 970));
		}
}

/* Nor where it is a small part of what the stack allocates. */
static void test_leaks_among_churn(void **state)
{
	(void)state;
	for (double amount = 6.25; amount < 1000; amount *= 2.5) {
		struct verdicts quick = run(leak_among_churn, amount, false);
		struct verdicts slow = run(leak_among_slow_churn, amount, false);

		assert_true(quick.calm <= SHARE(20));
		assert_true(slow.calm <= SHARE(50));
		if (amount > 15) {
			assert_true(quick.grows >= SHARE(970));
			assert_true(slow.grows >= SHARE(750));
			assert_true(slow.calm <= SHARE(10));
		}
		assert_int_equal(quick.certain + slow.certain, 0);
	}
	/* Of a command that was launched nothing is from before the window. */
	assert_true(run(leak_among_churn, 100, true).certain >= SHARE(970));
}

static void test_what_comes_and_goes_does_not_grow(void **state)
{
	(void)state;
	for (double amount = 1; amount < 1000; amount *= 2.5) {
		struct verdicts quick = run(churn, amount, false), slow = run(slow_churn, amount, false);

		assert_int_equal(quick.grows, 0);
		assert_true(slow.grows <= SHARE(10));
		assert_true(quick.too_short <= SHARE(10));
		if (amount > 200)
			assert_true(slow.calm >= SHARE(850));
	}
	for (double amount = 20; amount < 200; amount *= 2) {
		struct verdicts mixed = run(mixed_churn, amount, false);

		assert_true(mixed.grows <= SHARE(10) && mixed.too_short <= SHARE(30));
	}
}

static void test_what_stops_is_harmless_where_enough_is_seen(void **state)
{
	(void)state;
	for (double amount = 1; amount < 1000; amount *= 2.5) {
		struct verdicts once = run(one_off, amount, false), filled = run(plateau, amount, false);

		assert_true(once.grows <= SHARE(10));
		assert_true(filled.grows <= SHARE(10));
		if (amount == 1)
			assert_true(once.calm <= SHARE(20) && filled.calm <= SHARE(20));
		if (amount > 15)
			assert_true(once.calm >= SHARE(970) && filled.calm >= SHARE(970));
	}
}

static void test_large_blocks(void **state)
{
	(void)state;
	assert_int_equal(run(large_block, 100, false).calm, WINDOWS);
	assert_int_equal(run(large_block, 0.5, false).calm, 0);
	assert_int_equal(run(large_leak, 100, false).grows, WINDOWS);
	for (double amount = 4; amount < 1000; amount *= 2.5) {
		struct verdicts verdicts = run(storage, amount, false);

		assert_true(verdicts.calm <= SHARE(10));
	}
}

UNIT_GROUP(growth_sampled)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_leak_is_harmless),
		cmocka_unit_test(test_leaks_among_churn),
		cmocka_unit_test(test_what_comes_and_goes_does_not_grow),
		cmocka_unit_test(test_what_stops_is_harmless_where_enough_is_seen),
		cmocka_unit_test(test_large_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
