// SPDX-License-Identifier: MIT
/* test_growth.c: programs that grow, or only seem to: the verdict on each. */
#include "track/track.h"
#include "unit.h"
#include "view/growth.h"
#include "world.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LENGTH 10.0  /* of the window, seconds */
#define MOST   65536 /* blocks */
#define NEVER  INFINITY

struct block {
	double born, died;
	uint64_t bytes;
};

static struct block blocks[MOST];
static size_t block_count;
static double from, length; /* the interval's begin, the window's length */

struct moment {
	double at;
	uint32_t block;
	bool birth;
};

static int setup(void **state)
{
	(void)state;
	block_count = 0;
	from = 0;
	length = LENGTH;
	return 0;
}

static void add(double born, double died, uint64_t bytes)
{
	/* What would happen outside of the window does not. */
	if (born < 0 || born >= length || died <= born)
		return;
	assert_true(block_count < MOST);
	blocks[block_count++] = (struct block){.born = born, .died = died, .bytes = bytes};
}

static int compare_moments(const void *left, const void *right)
{
	const struct moment *a = left, *b = right;

	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	if (a->birth != b->birth)
		return a->birth ? 1 : -1;
	return a->block < b->block ? -1 : 1;
}

static size_t order(struct moment *moments)
{
	size_t count = 0;

	for (uint32_t i = 0; i < block_count; i++) {
		moments[count++] = (struct moment){blocks[i].born, i, true};
		if (blocks[i].died < length)
			moments[count++] = (struct moment){blocks[i].died, i, false};
	}
	qsort(moments, count, sizeof(*moments), compare_moments);
	return count;
}

/* Feed a tracker with what was added, all by one stack, and see what the report says of it. */
static struct mw_report_growth judge(void)
{
	static struct moment moments[2 * MOST];
	const mw_addr here[] = {(mw_addr)(uintptr_t)&judge + 4};
	struct mw_report_growth growth = {0};
	struct mw_report *report;
	bool begun = false;
	struct world world;
	uint32_t stack, thread;
	size_t count = order(moments);

	world_init(&world);
	world.window.length_ns = (uint64_t)(length * 1e9);
	world.input.from_ns = (uint64_t)(from * 1e9);
	world.input.symbols = NULL;
	stack = world_stack(&world, MW_KIND_HEAP, HOOK_MALLOC, here, 1, MW_STACK_COMPLETE);
	thread = world_thread(&world, 1, "one");
	for (size_t i = 0; i < count; i++) {
		const struct moment *moment = &moments[i];

		if (!begun && from > 0 && moment->at >= from) {
			assert_null(mw_track_interval(world.track, world.input.from_ns));
			begun = true;
		}
		world_event(&world, moment->birth ? MW_EVENT_ALLOC : MW_EVENT_FREE, MW_KIND_HEAP,
			    0x10000 + 16 * (mw_addr)moment->block, blocks[moment->block].bytes, stack, thread,
			    moment->at);
	}
	report = world_report(&world);
	if (report->stack_count)
		growth = report->stacks[0].growth;
	mw_report_destroy(report);
	world_deinit(&world);
	return growth;
}

static void expect(enum mw_growth_verdict verdict)
{
	struct mw_report_growth growth = judge();

	assert_true(growth.known);
	assert_string_equal(mw_growth_name(growth.verdict), mw_growth_name(verdict));
}

/* Any verdict that says that it grows. */
static void expect_growth(void)
{
	struct mw_report_growth growth = judge();

	assert_true(growth.known);
	if (growth.verdict < MW_GROWTH_STEADY)
		fail_msg("%s", mw_growth_name(growth.verdict));
}

/* Any that says that it does not. */
static void expect_none(void)
{
	struct mw_report_growth growth = judge();

	assert_true(growth.known);
	if (growth.verdict == MW_GROWTH_TOO_SHORT || growth.verdict >= MW_GROWTH_STEADY)
		fail_msg("%s", mw_growth_name(growth.verdict));
}

static struct {
	uint64_t state;
} noise;

/* In (0, 1]. */
static double any(void)
{
	noise.state = noise.state * 6364136223846793005u + 1442695040888963407u;
	return ((double)(noise.state >> 40) + 1) / (double)(1u << 24);
}

/* Times between events of that many a second on average. */
static double pause_of(double rate)
{
	return -log(any()) / rate;
}

/* Blocks that are freed after a while of `life` on average. */
static void add_churn(double start, double end, double rate, double life, uint64_t bytes)
{
	for (double at = start + pause_of(rate); at < end; at += pause_of(rate))
		add(at, at + 1e-6 + pause_of(1 / life), bytes);
}

static void add_trickle(double start, double end, double step, uint64_t bytes)
{
	for (unsigned i = 0; start + i * step < end - 1e-6; i++)
		add(start + i * step, NEVER, bytes);
}

/* --- growth -------------------------------------------------------------------------------------------- */

static void test_trickle(void **state)
{
	struct mw_report_growth growth;

	(void)state;
	add_trickle(0.01, LENGTH, 0.01, 100);
	growth = judge();
	assert_int_equal(growth.verdict, MW_GROWTH_STEADY);
	assert_float_equal(growth.bytes_per_second, 10000, 50);
	assert_true(growth.steadiness > 0.999);
	assert_in_range((uint64_t)growth.floor_start, 1000, 3000);
	assert_in_range((uint64_t)growth.floor_end, 87000, 93000);
	assert_float_equal(growth.growing_until, 10, 0.7);
	assert_float_equal(growth.freed_share, 0, 0);
	assert_float_equal(growth.settle_age, 0, 0);
	assert_int_equal(growth.settled.count, 999);
	assert_int_equal(growth.settled.bytes, 99900);
	assert_float_equal(growth.oldest_age, 9.99, 1e-6);
	assert_float_equal(growth.newest_age, 0.01, 1e-6);
}

static void test_few_large_blocks(void **state)
{
	(void)state;
	add_trickle(1, LENGTH, 1.7, 50000000);
	expect(MW_GROWTH_STEADY);
}

static void test_blocks_without_bytes(void **state)
{
	(void)state;
	add_trickle(0.1, LENGTH, 0.1, 0);
	expect(MW_GROWTH_STEADY);
}

static void test_faster_and_faster(void **state)
{
	(void)state;
	for (int i = 1; i < 1000; i++)
		add(LENGTH * sqrt(i / 1000.0), NEVER, 100);
	expect(MW_GROWTH_ACCELERATING);
}

static void test_begins_half_way(void **state)
{
	(void)state;
	add_trickle(5, LENGTH, 0.01, 100);
	expect(MW_GROWTH_STEADY);
}

static void add_bursts(double phase, double period)
{
	for (double burst = phase; burst < LENGTH; burst += period)
		for (int i = 0; i < 100; i++)
			add(burst + i * 1e-4, NEVER, 1000);
}

/* Wherever in their rhythm the window begins. */
static void test_bursts(void **state)
{
	(void)state;
	for (double period = 2.2; period <= 3.1; period += 0.8)
		for (double phase = 0.05; phase < period; phase += 0.1) {
			setup(state);
			add_bursts(phase, period);
			expect_growth();
			/* Waves as high as they, which fall back each time. */
			for (double wave = 0; wave < LENGTH; wave += 0.5)
				for (int i = 0; i < 300; i++)
					add(wave + i * 8e-4, wave + 0.25 + i * 8e-4, 1000);
			expect_growth();
		}
}

/* Requests give nearly all back. The leak is a fiftieth of them. */
static void test_leak_among_requests(void **state)
{
	(void)state;
	for (double life = 0.001; life < 1; life *= 3) {
		setup(state);
		add_churn(0, LENGTH, 2000, life, 500);
		add_trickle(0.013, LENGTH, 0.025, 500);
		expect(MW_GROWTH_STEADY);
	}
}

/* Waves ten times as high as all that leaks. */
static void test_leak_under_waves(void **state)
{
	(void)state;
	for (double wave = 0; wave < LENGTH; wave += 1)
		for (int i = 0; i < 1000; i++)
			add(wave + i * 5e-4, wave + 0.5 + i * 4e-4, 1000);
	add_trickle(0.05, LENGTH, 0.1, 1000);
	expect(MW_GROWTH_STEADY);
}

/* A buffer that is reallocated for each line: no block gets old. */
static void test_buffer_that_grows(void **state)
{
	(void)state;
	for (int i = 1; i < 1000; i++)
		add(i * 0.01, (i + 1) * 0.01, (uint64_t)i * 80);
	/* Though none of its blocks settles, it grows to the end. */
	assert_float_equal(judge().growing_until, LENGTH, 1e-6);
	setup(state);
	/* By more each time. */
	for (double size = 4096, at = 0.07; at < LENGTH; size *= 1.08, at *= 1.08)
		add(at, at * 1.08, (uint64_t)size);
	expect(MW_GROWTH_CONTAINER);
}

/* --- no growth ----------------------------------------------------------------------------------------- */

static void test_cache_that_fills(void **state)
{
	struct mw_report_growth growth;

	(void)state;
	add_trickle(0.01, 3, 0.01, 1000);
	growth = judge();
	assert_int_equal(growth.verdict, MW_GROWTH_PLATEAU);
	assert_in_range((uint64_t)(growth.growing_until * 10), 25, 35);
	setup(state);
	/* Slower and slower: what is asked for is mostly there. */
	for (int i = 0; i < 500; i++)
		add(0.01 - 1.2 * log(1 - i / 500.0), NEVER, 1000);
	expect(MW_GROWTH_PLATEAU);
	setup(state);
	/* Steps, and then nothing for much longer than between them. */
	for (int i = 0; i < 5; i++)
		add(0.5 + i * 0.9, NEVER, 1000);
	expect(MW_GROWTH_PLATEAU);
}

/* It fills, and the requests go on. */
static void test_cache_among_requests(void **state)
{
	(void)state;
	add_trickle(0.01, 3, 0.01, 1000);
	add_churn(0, LENGTH, 1000, 0.02, 1000);
	expect(MW_GROWTH_PLATEAU);
}

/* Full, it throws out the oldest, or any. */
static void test_cache_that_replaces(void **state)
{
	(void)state;
	for (double life = 2; life <= 4; life += 1) {
		setup(state);
		for (double at = 0.01; at < LENGTH; at += 0.01)
			add(at, at + life, 1000);
		expect_none();
	}
	for (uint64_t seed = 1; seed <= 20; seed++) {
		double born[200];
		size_t count = 0;

		setup(state);
		noise.state = seed;
		for (double at = 0.01; at < LENGTH; at += 0.01) {
			size_t place = count < 200 ? count++ : (size_t)(any() * 199.99);

			if (at > 200 * 0.01 + 0.02)
				add(born[place], at, 1000);
			born[place] = at;
		}
		for (size_t i = 0; i < count; i++)
			add(born[i], NEVER, 1000);
		expect_none();
	}
}

/* Of the blocks that are freed next to none is old; but no more of these are there at the end than in the middle. */
static void test_cache_that_seldom_replaces(void **state)
{
	(void)state;
	for (double at = 0.01; at < LENGTH; at += 0.2)
		add(at, at + 4, 1000);
	add_churn(0, LENGTH, 1000, 0.003, 1000);
	expect_none();
}

/* A wave of `width`: blocks come one after the other, and go first in first out, or last in first out. */
static void add_wave(double begin, double width, bool reverse)
{
	for (int i = 0; i < 200; i++) {
		double up = i / 200.0 * width / 2, down = reverse ? width - up : up + width / 2;

		add(begin + up, begin + down, 1000);
	}
}

/* Wherever in a wave the window begins and ends, if it sees two of them. */
static void test_waves(void **state)
{
	(void)state;
	for (double width = 0.3; width < 4.5; width += 0.6)
		for (double phase = 0; phase < width; phase += width / 10)
			for (int reverse = 0; reverse < 2; reverse++) {
				struct mw_report_growth growth;

				setup(state);
				for (double wave = phase - width; wave < LENGTH; wave += width)
					add_wave(wave, width, reverse);
				growth = judge();
				/* At a wave's end nothing may be there. */
				if (growth.known && growth.verdict != MW_GROWTH_CHURN)
					fail_msg("waves of %.2f s from %.2f s, reverse %d: %s", width, phase, reverse,
						 mw_growth_name(growth.verdict));
			}
}

static void test_once(void **state)
{
	struct mw_report_growth growth;

	(void)state;
	for (double at = 0.1; at < 3.6; at += 0.5) {
		setup(state);
		for (int i = 0; i < 50; i++)
			add(at + i * 0.001, NEVER, 12345);
		growth = judge();
		assert_int_equal(growth.verdict, MW_GROWTH_ONE_OFF);
		assert_int_equal(growth.settled.count, 50);
	}
	setup(state);
	add(2, NEVER, 12345);
	expect(MW_GROWTH_ONE_OFF);
}

/* Whatever their lives are like, requests are no leak, also where one block has been there from the start. */
static void test_noise(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++)
		for (int old = 0; old < 2; old++) {
			struct mw_report_growth growth;
			double life;

			setup(state);
			noise.state = seed * 7919;
			life = pow(10, -3 + 3.3 * any());
			add_churn(0, LENGTH, 20 + 1500 * any(), life, 100 + (uint64_t)(1000 * any()));
			if (old)
				add(0.1, NEVER, 300);
			growth = judge();
			if (growth.known && growth.verdict == MW_GROWTH_STEADY)
				fail_msg("seed %d, life %.3f s, old block %d: %s", (int)seed, life, old,
					 mw_growth_name(growth.verdict));
		}
}

static void test_requests(void **state)
{
	(void)state;
	noise.state = 1;
	add_churn(0, LENGTH, 1000, 0.01, 1000);
	expect(MW_GROWTH_CHURN);
	setup(state);
	/* Sessions of three seconds begin when the window does. */
	for (double at = 0.01; at < LENGTH; at += 0.01)
		add(at, at + 3, 1000);
	expect(MW_GROWTH_PLATEAU);
}

/* --- too short ----------------------------------------------------------------------------------------- */

static void test_too_short(void **state)
{
	(void)state;
	length = 0.9;
	add_trickle(0.01, length, 0.01, 100);
	expect(MW_GROWTH_TOO_SHORT);
	setup(state);
	add_trickle(8, LENGTH, 0.01, 100);
	expect(MW_GROWTH_TOO_SHORT);
	setup(state);
	/* Two places. */
	add(3, NEVER, 100);
	add(9, NEVER, 100);
	expect(MW_GROWTH_TOO_SHORT);
	setup(state);
	/* Sessions of eight seconds begin when the window does. */
	for (double at = 0.01; at < LENGTH; at += 0.01)
		add(at, at + 8, 1000);
	expect(MW_GROWTH_TOO_SHORT);
}

/* --- intervals ----------------------------------------------------------------------------------------- */

static void test_interval(void **state)
{
	struct mw_report_growth growth;

	(void)state;
	/* Grows until 6 s: in the interval from 2 s on it stops, in that from 7 s on there is nothing. */
	add_trickle(0.005, 6, 0.01, 100);
	from = 2;
	growth = judge();
	assert_int_equal(growth.verdict, MW_GROWTH_PLATEAU);
	assert_float_equal(growth.growing_until, 6, 0.6);
	assert_int_equal(growth.settled.count, 400);
	assert_float_equal(growth.oldest_age, 8, 0.01);
	add(9, NEVER, 1);
	from = 7;
	growth = judge();
	assert_true(growth.known);
	assert_int_equal(growth.verdict, MW_GROWTH_TOO_SHORT);
	assert_int_equal(growth.settled.bytes, 1);
	setup(state);
	add_trickle(0.005, LENGTH, 0.01, 100);
	from = 4;
	expect(MW_GROWTH_STEADY);
}

UNIT_GROUP(growth)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_trickle, setup),
		cmocka_unit_test_setup(test_few_large_blocks, setup),
		cmocka_unit_test_setup(test_blocks_without_bytes, setup),
		cmocka_unit_test_setup(test_faster_and_faster, setup),
		cmocka_unit_test_setup(test_begins_half_way, setup),
		cmocka_unit_test_setup(test_bursts, setup),
		cmocka_unit_test_setup(test_leak_among_requests, setup),
		cmocka_unit_test_setup(test_leak_under_waves, setup),
		cmocka_unit_test_setup(test_buffer_that_grows, setup),
		cmocka_unit_test_setup(test_cache_that_fills, setup),
		cmocka_unit_test_setup(test_cache_among_requests, setup),
		cmocka_unit_test_setup(test_cache_that_replaces, setup),
		cmocka_unit_test_setup(test_cache_that_seldom_replaces, setup),
		cmocka_unit_test_setup(test_waves, setup),
		cmocka_unit_test_setup(test_once, setup),
		cmocka_unit_test_setup(test_noise, setup),
		cmocka_unit_test_setup(test_requests, setup),
		cmocka_unit_test_setup(test_too_short, setup),
		cmocka_unit_test_setup(test_interval, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
