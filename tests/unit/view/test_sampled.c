// SPDX-License-Identifier: MIT
/* test_sampled.c: what reports and comparisons say of sampled blocks: estimates, and how far off they may be. */
#include "tape.h"
#include "track/sampling.h"
#include "unit.h"
#include "view/diff.h"
#include "view/replay.h"
#include "world.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define INTERVAL UINT64_C(65536)

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

static void assert_spread(struct mw_spread got, struct mw_spread expected)
{
	assert_true(near(got.count, expected.count));
	assert_true(near(got.bytes, expected.bytes));
	assert_int_equal(got.blocks, expected.blocks);
}

static struct mw_weight weight_of(uint64_t size, mw_addr addr, uint64_t time_ns)
{
	return mw_weigh(INTERVAL, size, addr, time_ns);
}

/* --- a report ---------------------------------------------------------------------------------------------------------- */

static void send(struct world *world, struct mw_event event)
{
	assert_null(world->sink.event(world->sink.context, &event));
}

static void sample(struct world *world, uint64_t time_ns, mw_addr addr, uint64_t size, uint32_t stack, uint32_t thread)
{
	send(world, (struct mw_event){time_ns, addr, size, stack, thread, MW_EVENT_ALLOC, MW_KIND_HEAP, 1, false});
}

/* Two stacks and two threads; one block in three is freed; a mapping, which is not sampled. */
static void feed(struct world *world)
{
	const mw_addr one[] = {(mw_addr)(uintptr_t)&feed + 4}, two[] = {(mw_addr)(uintptr_t)&sample + 4};
	uint32_t stacks[] = {world_stack(world, MW_KIND_HEAP, HOOK_MALLOC, one, 1, MW_STACK_COMPLETE),
			     world_stack(world, MW_KIND_HEAP, HOOK_CALLOC, two, 1, MW_STACK_COMPLETE)};
	uint32_t threads[] = {world_thread(world, 1, "one"), world_thread(world, 2, "two")};
	uint16_t number;

	assert_null(world->sink.interval(world->sink.context, INTERVAL, &number));
	assert_int_equal(number, 1);
	for (uint64_t i = 0; i < 60; i++) {
		sample(world, 1000 * i, 0x10000 + 64 * i, 100 + 1000 * (i % 7), stacks[i % 2], threads[i / 2 % 2]);
		if (i % 3 == 0)
			world_event(world, MW_EVENT_FREE, MW_KIND_HEAP, 0x10000 + 64 * i, MW_SIZE_UNKNOWN,
				    MW_STACK_NONE, threads[0], (double)i * 1e-6 + 1e-7);
	}
	world_event(world, MW_EVENT_MAP, MW_KIND_VM, 0x700000, 4096,
		    world_stack(world, MW_KIND_VM, HOOK_MMAP, one, 1, MW_STACK_COMPLETE), threads[0], 0.001);
}

static void assert_sums_of_spreads(const struct mw_report *report)
{
	const struct mw_spreads *total = &report->totals[MW_KIND_HEAP].spreads;
	struct mw_spreads stacks = {.peak = {0}}, threads = {.peak = {0}}, modules = {.peak = {0}},
			  suspects = {.peak = {0}};

	for (size_t i = 0; i < report->stack_count; i++) {
		const struct mw_report_stack *stack = &report->stacks[i];
		struct mw_spread shares = {0, 0, 0};

		for (size_t j = 0; j < stack->thread_count; j++)
			mw_spread_add(&shares, stack->threads[j].spreads.impacting);
		assert_spread(shares, stack->kind == MW_KIND_HEAP ? stack->spreads.impacting : (struct mw_spread){0});
		mw_spreads_add(&stacks, &stack->spreads);
	}
	for (size_t i = 0; i < report->thread_count; i++)
		mw_spreads_add(&threads, &report->threads[i].spreads);
	for (size_t i = 0; i < report->module_count; i++)
		mw_spreads_add(&modules, &report->modules[i].spreads);
	for (size_t i = 0; i < report->suspect_count; i++)
		mw_spreads_add(&suspects, &report->suspects[i].spreads);
	assert_spread(stacks.impacting, total->impacting);
	assert_spread(stacks.transient, total->transient);
	assert_spread(stacks.aofo, total->aofo);
	assert_spread(threads.impacting, total->impacting);
	assert_spread(threads.transient, total->transient);
	assert_spread(modules.impacting, total->impacting);
	assert_spread(suspects.impacting, total->impacting);
}

static void test_report(void **state)
{
	struct mw_amount impacting = {0, 0};
	struct mw_spread spread = {0, 0, 0};
	struct mw_report *report;
	struct world world;

	(void)state;
	world_init(&world);
	feed(&world);
	report = world_report(&world);
	for (uint64_t i = 0; i < 60; i++) {
		uint64_t size = 100 + 1000 * (i % 7);
		struct mw_weight weight = weight_of(size, 0x10000 + 64 * i, 1000 * i);

		if (i % 3 == 0)
			continue;
		mw_amount_add(&impacting, mw_weight_amount(weight, size));
		mw_spread_add(&spread, mw_weight_spread(weight, size));
	}
	assert_int_equal(report->totals[MW_KIND_HEAP].impacting.count, impacting.count);
	assert_int_equal(report->totals[MW_KIND_HEAP].impacting.bytes, impacting.bytes);
	assert_spread(report->totals[MW_KIND_HEAP].spreads.impacting, spread);
	assert_int_equal(report->totals[MW_KIND_VM].spreads.impacting.blocks, 0);
	assert_sums(report);
	assert_sums_of_spreads(report);
	assert_int_equal(report->sampling.interval, INTERVAL);
	assert_int_equal(report->sampling.count, 1);
	assert_int_equal(report->sampling.intervals[0].blocks, 60);
	assert_in_range(report->sampling.unseen, INTERVAL * 299 / 100, INTERVAL * 3);
	assert_true(mw_report_is_sampled(report, MW_KIND_HEAP) && !mw_report_is_sampled(report, MW_KIND_VM));
	assert_false(mw_report_knows_older(report, MW_KIND_HEAP));
	for (size_t i = 0; i < report->suspect_count; i++) {
		const struct mw_report_suspect *suspect = &report->suspects[i];

		assert_true(suspect->low <= (double)suspect->bytes && (double)suspect->bytes <= suspect->high);
		assert_true(!suspect->spreads.impacting.blocks || suspect->high > (double)suspect->bytes);
	}
	mw_report_destroy(report);
	world_deinit(&world);
}

static void assert_since(struct world *world, uint64_t sampled_from_ns, double from)
{
	const struct mw_engine_stats stats = {.sampled_from_ns = sampled_from_ns};
	struct mw_report *report;

	world->input.stats = &stats;
	report = world_report(world);
	assert_int_equal(report->sampling.why != NULL, from > 0);
	assert_true(report->sampling.from == from);
	mw_report_destroy(report);
}

/* Since when, and that it was not asked for: as the engine says, or in a recording without an end by what is sampled. */
static void test_since(void **state)
{
	const mw_addr here[] = {(mw_addr)(uintptr_t)&feed + 4};
	struct world world;
	uint16_t number;
	uint32_t stack;

	(void)state;
	world_init(&world);
	feed(&world);
	assert_since(&world, 0, 0);
	assert_since(&world, 500000000, 0.5);
	assert_since(&world, MW_SIZE_UNKNOWN, 0);
	world_deinit(&world);

	world_init(&world);
	stack = world_stack(&world, MW_KIND_HEAP, HOOK_MALLOC, here, 1, MW_STACK_COMPLETE);
	world_event(&world, MW_EVENT_ALLOC, MW_KIND_HEAP, 0x10000, 100, stack, world_thread(&world, 1, "one"), 0.25);
	assert_null(world.sink.interval(world.sink.context, INTERVAL, &number));
	sample(&world, 750000000, 0x90000, 500, stack, 0);
	assert_since(&world, MW_SIZE_UNKNOWN, 0.75);
	world_deinit(&world);
}

/* What is older was sampled in the window, before the interval. */
static void test_interval(void **state)
{
	const mw_addr here[] = {(mw_addr)(uintptr_t)&feed + 4};
	struct mw_report *report;
	struct mw_spread spread;
	struct world world;
	uint32_t stack;

	(void)state;
	world_init(&world);
	feed(&world);
	assert_null(mw_track_interval(world.track, 100000));
	world.input.from_ns = 100000;
	stack = world_stack(&world, MW_KIND_HEAP, HOOK_MALLOC, here, 1, MW_STACK_COMPLETE);
	sample(&world, 200000, 0x90000, 500, stack, 0);
	world_event(&world, MW_EVENT_FREE, MW_KIND_HEAP, 0x10000 + 64, MW_SIZE_UNKNOWN, MW_STACK_NONE, 0, 0.0003);
	report = world_report(&world);
	spread = mw_weight_spread(weight_of(1100, 0x10000 + 64, 1000), 1100);
	assert_spread(report->totals[MW_KIND_HEAP].spreads.aofi, spread);
	assert_int_equal(report->totals[MW_KIND_HEAP].aofi.count, 1 + weight_of(1100, 0x10000 + 64, 1000).others);
	assert_int_equal(report->totals[MW_KIND_HEAP].spreads.aofo.blocks, 39);
	assert_int_equal(report->totals[MW_KIND_HEAP].spreads.impacting.blocks, 1);
	assert_sums_of_spreads(report);
	assert_int_equal(report->sampling.intervals[0].blocks, 1);
	assert_true(mw_report_knows_older(report, MW_KIND_HEAP));
	mw_report_destroy(report);
	world_deinit(&world);
}

/* Nothing was sampled: that is no exact report of nothing. */
static void test_nothing(void **state)
{
	struct mw_report *report;
	struct world world;
	uint16_t number;

	(void)state;
	world_init(&world);
	assert_null(world.sink.interval(world.sink.context, INTERVAL, &number));
	report = world_report(&world);
	assert_true(mw_report_is_sampled(report, MW_KIND_HEAP));
	assert_true(report->sampling.intervals[0].from < 0);
	mw_report_destroy(report);
	world_deinit(&world);
}

/* --- comparisons ------------------------------------------------------------------------------------------------------- */

#define A 0x100
#define B 0x200
#define C 0x300

static void tape_sample(struct tape *tape, uint64_t offset, uint64_t number, uint64_t time_ns)
{
	tape_event(tape, 0,
		   (struct mw_event){time_ns, (offset << 20) + number * 0x1000, 64,
				     tape_stack(tape, 0, MW_KIND_HEAP, offset), tape->processes[0].thread,
				     MW_EVENT_ALLOC, MW_KIND_HEAP, 1, false});
}

/* Of A `counts[0]` blocks are sampled, and so on: in the first second, and as many in the second one as `more` says. A
 * block of B is freed in the second one. */
static void make(const char *path, const uint64_t counts[3], const uint64_t more[3])
{
	static const uint64_t offsets[] = {A, B, C};
	struct tape tape;
	uint16_t number;

	tape_open(&tape, path);
	tape_add(&tape, &(struct tape_process){.pid = 10, .base = 0x400000, .build = 1});
	assert_null(tape.processes[0].sink.interval(tape.processes[0].sink.context, INTERVAL, &number));
	for (unsigned i = 0; i < 3; i++)
		for (uint64_t j = 0; j < counts[i]; j++)
			tape_sample(&tape, offsets[i], j, TAPE_SECOND / 2 + j);
	for (unsigned i = 0; i < 3; i++)
		for (uint64_t j = 0; j < more[i]; j++)
			tape_sample(&tape, offsets[i], counts[i] + j, 3 * TAPE_SECOND / 2 + j);
	if (counts[1])
		tape_free(&tape, 0, (mw_addr)B << 20, 7 * TAPE_SECOND / 4);
	tape_end(&tape, 0, 2 * TAPE_SECOND);
	tape_close(&tape);
}

struct side {
	struct mw_replay *replay;
	struct mw_moments moments;
	struct mw_summary_input summary;
};

static void read_side(struct side *side, const char *path, uint64_t then_ns)
{
	*side = (struct side){.replay = NULL};
	assert_null(mw_replay_open(path, NULL, NULL, &side->replay));
	assert_null(mw_moments_read(side->replay, then_ns, MW_REPLAY_END, &side->moments));
	mw_watched_input(mw_replay_watched(side->replay, 0), &side->summary);
}

static struct mw_diff_input input_of(const struct side *side, const struct mw_moments_held *held, bool stays)
{
	return (struct mw_diff_input){
		.snapshot = {.file = "a.mw", .pid = 10, .launched = true, .tracked = {true, true, true}},
		.summary = &side->summary,
		.held = held->amounts,
		.spreads = held->spreads,
		.stays = stays ? held->stays : NULL,
		.held_count = held->count,
	};
}

static const struct mw_diff_stack *find(const struct mw_diff *diff, uint64_t offset)
{
	for (size_t i = 0; i < diff->stack_count; i++)
		if (diff->stacks[i].frames[0].offset == offset)
			return &diff->stacks[i];
	fail_msg("no stack");
	return NULL;
}

static const bool all_kinds[MW_KIND_COUNT] = {true, true, true};

/* What both moments hold is off by the same at both: only what came and went may be off. */
static void test_two_moments(void **state)
{
	const uint64_t counts[] = {40, 10, 5}, more[] = {3, 1, 0};
	const char *path = tape_path("moments.mw");
	const struct mw_diff_stack *stack;
	struct mw_spread came = {0, 0, 0}, both = {0, 0, 0};
	struct mw_diff *diff;
	struct side side;

	(void)state;
	make(path, counts, more);
	read_side(&side, path, TAPE_SECOND);
	const struct mw_diff_input inputs[] = {input_of(&side, &side.moments.then[0], true),
					       input_of(&side, &side.moments.now[0], true)};
	assert_null(mw_diff_create(inputs, all_kinds, &diff));
	assert_int_equal(diff->snapshots[MW_DIFF_OLD].sampled, INTERVAL);
	assert_true(mw_diff_is_sampled(diff, MW_KIND_HEAP) && !mw_diff_is_sampled(diff, MW_KIND_VM));
	stack = find(diff, A);
	for (uint64_t i = 40; i < 43; i++)
		mw_spread_add(&came, mw_weight_spread(weight_of(64, ((mw_addr)A << 20) + i * 0x1000,
								3 * TAPE_SECOND / 2 + i - 40),
						      64));
	/* Differences of sums are rounded. */
	assert_true(fabs(stack->spread.change.bytes - came.bytes) <= 1e-6 * stack->spread.held[MW_DIFF_NEW].bytes);
	assert_false(stack->noise);
	assert_int_equal(stack->change, MW_DIFF_MORE);
	/* One block came, and one went. */
	stack = find(diff, B);
	assert_true(stack->noise);
	mw_spread_add(&both, mw_weight_spread(weight_of(64, (mw_addr)B << 20, TAPE_SECOND / 2), 64));
	mw_spread_add(&both,
		      mw_weight_spread(weight_of(64, ((mw_addr)B << 20) + 10 * 0x1000, 3 * TAPE_SECOND / 2), 64));
	assert_true(fabs(stack->spread.change.bytes - both.bytes) <= 1e-6 * stack->spread.held[MW_DIFF_NEW].bytes);
	/* Nothing happened: nothing may be off. */
	stack = find(diff, C);
	assert_int_equal(stack->change, MW_DIFF_SAME);
	assert_true(fabs(stack->spread.change.bytes) <= 1e-6 * stack->spread.held[MW_DIFF_NEW].bytes);
	mw_diff_destroy(diff);
	mw_moments_deinit(&side.moments);
	mw_replay_close(side.replay);
}

static void test_two_recordings(void **state)
{
	const uint64_t counts[2][3] = {{40, 20, 0}, {80, 23, 3}}, more[] = {0, 0, 0};
	const char *paths[] = {tape_path("old.mw"), tape_path("new.mw")};
	struct mw_diff_input inputs[2];
	const struct mw_diff_stack *stack;
	struct mw_diff *diff;
	struct side sides[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		make(paths[i], counts[i], more);
		read_side(&sides[i], paths[i], 0);
		inputs[i] = input_of(&sides[i], &sides[i].moments.now[0], false);
	}
	assert_null(mw_diff_create(inputs, all_kinds, &diff));
	stack = find(diff, A);
	assert_false(stack->noise);
	assert_true(near(stack->spread.change.bytes,
			 stack->spread.held[MW_DIFF_OLD].bytes + stack->spread.held[MW_DIFF_NEW].bytes));
	assert_true(find(diff, B)->noise);
	/* That three were sampled here and none there may be chance. */
	assert_true(find(diff, C)->noise);
	assert_false(diff->noise);
	mw_diff_destroy(diff);
	for (unsigned i = 0; i < 2; i++) {
		mw_moments_deinit(&sides[i].moments);
		mw_replay_close(sides[i].replay);
	}
}

UNIT_GROUP(sampled)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_report),      cmocka_unit_test(test_since),
		cmocka_unit_test(test_interval),    cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_two_moments), cmocka_unit_test(test_two_recordings),
	};

	return cmocka_run_group_tests(tests, NULL, tape_cleanup);
}
