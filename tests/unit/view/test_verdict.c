// SPDX-License-Identifier: MIT
/*
 * test_verdict.c: histories of programs that leak and of programs that only seem to, made at random, by the hundred for each
 * rule of view/verdict.h, in windows of 10 and 30 s. None that leaks may be called harmless, and none that doesn't grow.
 */
#include "histories.h"
#include "unit.h"
#include "view/growth.h"
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct history_step *steps;
static size_t step_count;
static double length;

/* What becomes of the blocks that are there in the end, after the window. */
static enum { NOT_SETTLED, NONE_FREED, ALL_FREED } settling;

static struct world world;

static void settle(const uint32_t *stacks, const uint32_t *threads)
{
	assert_null(mw_track_settle(world.track));
	for (size_t i = 0; i < step_count && settling == ALL_FREED; i++)
		if (steps[i].birth)
			world_event(&world, MW_EVENT_FREE, MW_KIND_HEAP, 0x10000 + 16 * (mw_addr)steps[i].block,
				    steps[i].bytes, stacks[steps[i].stack], threads[0], length + 0.1);
}

static uint64_t size_of(const struct history_step *step)
{
	return step->bytes == HISTORY_UNKNOWN ? MW_SIZE_UNKNOWN : step->bytes;
}

/* The verdict on the subject's stack; false where nothing of it is there in the end. */
static bool judge(struct mw_report_growth *out)
{
	const mw_addr here[HISTORY_STACKS][1] = {{(mw_addr)(uintptr_t)&judge + 4}, {(mw_addr)(uintptr_t)&judge + 8}};
	uint32_t stacks[HISTORY_STACKS], threads[2];
	struct mw_report *report;
	bool found = false;

	world_forget(&world);
	world.window.length_ns = (uint64_t)(length * 1e9);
	world.input.symbols = NULL;
	stacks[HISTORY_SUBJECT] =
		world_stack(&world, MW_KIND_HEAP, HOOK_MALLOC, here[HISTORY_SUBJECT], 1, MW_STACK_COMPLETE);
	stacks[HISTORY_OTHER] =
		world_stack(&world, MW_KIND_HEAP, HOOK_CALLOC, here[HISTORY_OTHER], 1, MW_STACK_COMPLETE);
	threads[0] = world_thread(&world, 1, "one");
	threads[1] = world_thread(&world, 2, "two");
	for (size_t i = 0; i < step_count; i++)
		world_event(&world, steps[i].birth ? MW_EVENT_ALLOC : MW_EVENT_FREE, MW_KIND_HEAP,
			    0x10000 + 16 * (mw_addr)steps[i].block, size_of(&steps[i]), stacks[steps[i].stack],
			    threads[steps[i].thread], steps[i].at);
	if (settling)
		settle(stacks, threads);
	report = world_report(&world);
	for (size_t i = 0; i < report->stack_count; i++)
		if (report->stacks[i].growth.known && strcmp(report->stacks[i].api, "malloc") == 0) {
			*out = report->stacks[i].growth;
			found = true;
		}
	mw_report_destroy(report);
	return found;
}

#ifdef __SANITIZE_ADDRESS__ /* where each takes ten times as long, and shares are known from builds without it */
#define RUNS         10u
#define SETTLED_RUNS 2u
#else
#define RUNS         100u
#define SETTLED_RUNS 20u
#endif
#define LEAST_RUNS   20u /* from which shares are taken */
#define FALSE_ALARMS 4   /* of a hundred, at most */

/* A leak is never called harmless. What is none seldom alarms anybody. */
static bool is_judged_well(const struct history *history, bool grows)
{
	unsigned growing = 0, too_short = 0, harmless = 0, runs = 0;

	for (unsigned run = 0; run < RUNS; run++) {
		struct mw_report_growth growth;

		length = run & 1 ? 30 : 10;
		step_count = history_make(history, length, (run / 2 + 1) * 7919u, &steps);
		if (!judge(&growth))
			continue;
		runs++;
		if (growth.verdict >= MW_GROWTH_STEADY)
			growing++;
		else if (growth.verdict == MW_GROWTH_TOO_SHORT)
			too_short++;
		else if (grows) {
			print_error("%s, run %u: %s\n", history->name, run, mw_growth_name(growth.verdict));
			harmless++;
		}
	}
	history_end();
	if (RUNS < LEAST_RUNS ||
	    (too_short * 100 <= history->too_short * runs && (grows || growing * 100 <= FALSE_ALARMS * runs)))
		return !harmless;
	print_error("%s: of %u runs %u too short, %u growing\n", history->name, runs, too_short, growing);
	return false;
}

static void test_leaks(void **state)
{
	bool failed = false;

	(void)state;
	for (size_t i = 0; i < history_leak_count; i++)
		failed |= !is_judged_well(&history_leaks[i], true);
	assert_false(failed);
}

static void test_kept(void **state)
{
	bool failed = false;

	(void)state;
	for (size_t i = 0; i < history_kept_count; i++)
		failed |= !is_judged_well(&history_kept[i], false);
	assert_false(failed);
}

/* Where all is freed while the window settles it was in flight; where nothing is, that tells nothing new. */
static void check_settling(const struct history *history, bool grows)
{
	for (unsigned run = 0; run < SETTLED_RUNS; run++) {
		struct mw_report_growth plain, none, all;

		step_count = history_make(history, length, (run + 1) * 104729u, &steps);
		settling = NOT_SETTLED;
		if (!judge(&plain))
			continue;
		settling = NONE_FREED;
		assert_true(judge(&none));
		assert_int_equal(none.verdict, plain.verdict);
		assert_int_equal(none.certain, plain.certain);
		settling = ALL_FREED;
		assert_true(judge(&all));
		/* A queue's blocks all go, and storage is replaced, while they grow. */
		if (all.verdict != MW_GROWTH_CHURN)
			assert_true(grows && (all.verdict >= MW_GROWTH_STEADY || all.verdict == MW_GROWTH_TOO_SHORT));
		else
			assert_true(all.certain && strcmp(history->name, "doubled_storage") != 0);
		assert_true(all.bytes_per_second == plain.bytes_per_second);
	}
	settling = NOT_SETTLED;
	history_end();
}

static void test_settling(void **state)
{
	(void)state;
	length = 10;
	for (size_t i = 0; i < history_leak_count; i++)
		check_settling(&history_leaks[i], true);
	for (size_t i = 0; i < history_kept_count; i++)
		check_settling(&history_kept[i], false);
}

UNIT_GROUP(verdict)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaks),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_settling),
	};
	int failed;

	world_init(&world);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	world_deinit(&world);
	return failed;
}
