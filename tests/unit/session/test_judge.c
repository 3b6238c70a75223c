// SPDX-License-Identifier: MIT
/* test_judge.c: what --fail-on comes to, and with which status memwatch ends. */
#include "session/judge.h"
#include "session/terminal.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct mw_report_frame frames[] = {{.function = "leaky(int)", .module = "/opt/f", .file = "f.c", .line = 7}};
static size_t first[] = {0};
static struct mw_report_stack stacks[] = {{.id = "00c0ffee00c0ffee", .frames = frames, .frame_count = 1}};

static struct mw_report_suspect suspect_of(enum mw_growth_verdict verdict, double rate)
{
	return (struct mw_report_suspect){.frame = frames,
					  .verdict = verdict,
					  .bytes = 3 << 20,
					  .blocks = 12,
					  .bytes_per_hour = rate,
					  .stacks = first,
					  .stack_count = 1,
					  .sentence = ""};
}

static struct mw_report report_of(struct mw_report_suspect *suspects, size_t count)
{
	return (struct mw_report){.target = {.pid = 7, .comm = "server"},
				  .window = {.seconds = 60, .to = 60, .ended = MW_END_DURATION},
				  .totals = {[MW_KIND_HEAP] = {.size = {1, 8}}},
				  .stacks = stacks,
				  .stack_count = 1,
				  .suspects = suspects,
				  .suspect_count = count};
}

/* What is said on standard error belongs to the test's output. */
static void judge(const struct mw_session_options *options, const struct mw_report *reports, size_t count,
		  uint64_t left_out, enum mw_message_status status, const char *mentions)
{
	const struct mw_report *each[4];
	struct mw_error *err;

	for (size_t i = 0; i < count; i++)
		each[i] = &reports[i];
	err = mw_judge_reports(options, each, count, left_out);
	if (mentions && (!err || !strstr(mw_error_text(err), mentions)))
		fail_msg("%s: not in: %s", mentions, err ? mw_error_text(err) : "(nothing)");
	assert_int_equal(err != NULL, mentions != NULL);
	assert_int_equal(mw_message_error(err), status);
}

#define LEAK   ((struct mw_session_options){.fail_on = {.leak = true}, .duration_ns = 60})
#define GROWTH ((struct mw_session_options){.fail_on = {.growth = true, .bytes_per_hour = 1 << 20}, .duration_ns = 60})

static void test_found(void **state)
{
	struct mw_report_suspect slow[] = {suspect_of(MW_GROWTH_STEADY, 2 << 20), suspect_of(MW_GROWTH_PLATEAU, 0)};
	struct mw_report_suspect fast[] = {suspect_of(MW_GROWTH_STEADY, 8 << 20), suspect_of(MW_GROWTH_STEADY, 1)};
	struct mw_report_suspect lost = suspect_of(MW_GROWTH_PLATEAU, 0);
	struct mw_report reports[] = {report_of(slow, 2), report_of(fast, 2)};

	(void)state;
	judge(&LEAK, reports, 1, 0, MW_STATUS_FOUND,
	      "--fail-on leak: server (pid 7): leaky() f.c:7: steady growth, 3.0 MiB in 12 blocks not freed in 60.0 "
	      "s, "
	      "2.0 MiB an hour");
	judge(&LEAK, reports, 2, 0, MW_STATUS_FOUND, "8.0 MiB an hour; and 2 more");
	judge(&GROWTH, reports, 1, 0, MW_STATUS_FOUND, "--fail-on growth (1.0 MiB an hour): server (pid 7): leaky()");
	lost.lost = (struct mw_amount){2, 2048};
	reports[0] = report_of(&lost, 1);
	judge(&LEAK, reports, 1, 0, MW_STATUS_FOUND,
	      "lost blocks, plateau, 3.0 MiB in 12 blocks not freed in 60.0 s; 2.0 KiB");
	/* What was found is found, whatever else was missed. */
	reports[0].lost.events = 1;
	judge(&LEAK, reports, 1, 1, MW_STATUS_FOUND, "leaky()");
}

static void test_none(void **state)
{
	const struct mw_session_options nothing = {.duration_ns = 60};
	struct mw_report_suspect calm[] = {suspect_of(MW_GROWTH_PLATEAU, 0), suspect_of(MW_GROWTH_TOO_SHORT, 0)};
	struct mw_report_suspect container = suspect_of(MW_GROWTH_CONTAINER, 1 << 19),
				 leak = suspect_of(MW_GROWTH_STEADY, 1);
	struct mw_report report = report_of(calm, 2);

	(void)state;
	judge(&LEAK, &report, 1, 0, MW_STATUS_DONE, NULL);
	judge(&GROWTH, &report, 1, 0, MW_STATUS_DONE, NULL);
	report = report_of(&container, 1);
	judge(&LEAK, &report, 1, 0, MW_STATUS_DONE, NULL);
	judge(&GROWTH, &report, 1, 0, MW_STATUS_DONE, NULL); /* below the rate */
	report = report_of(&leak, 1);
	report.lost.events = 1;
	judge(&nothing, &report, 1, 1, MW_STATUS_DONE, NULL); /* nobody asked */
}

/* What could not be seen is no success. */
static void test_incomplete(void **state)
{
	struct mw_session_options endless = LEAK, launched = LEAK;
	char *command[] = {(char *)"server", NULL};
	struct mw_report_suspect open = suspect_of(MW_GROWTH_TOO_SHORT, 0);
	struct mw_report reports[] = {report_of(NULL, 0), report_of(NULL, 0)};

	(void)state;
	endless.duration_ns = 0;
	launched.command = command;
	judge(&LEAK, reports, 1, 0, MW_STATUS_DONE, NULL);
	judge(&LEAK, reports, 1, 2, MW_STATUS_FAILED, "2 processes could not be watched");
	reports[0].lost.events = 5;
	judge(&LEAK, reports, 2, 0, MW_STATUS_FAILED, "server (pid 7): the window is not complete: lost 5 events");
	reports[0].lost.events = 0;
	/* Only a window that is long enough has verdicts; a short helper beside one does no harm. */
	reports[0].window.seconds = 0.5;
	judge(&LEAK, reports, 1, 0, MW_STATUS_DONE, NULL); /* there is nothing to judge */
	reports[0].suspects = &open;
	reports[0].suspect_count = 1;
	judge(&LEAK, reports, 1, 0, MW_STATUS_FAILED, "a window of 500.0 ms is too short for a verdict");
	judge(&LEAK, reports, 2, 0, MW_STATUS_DONE, NULL);
	reports[0] = reports[1];
	reports[0].totals[MW_KIND_HEAP].size.count = 0;
	judge(&LEAK, reports, 2, 0, MW_STATUS_DONE, NULL);
	judge(&LEAK, reports, 1, 0, MW_STATUS_FAILED, "nothing was allocated in the window");
	reports[0].totals[MW_KIND_VM].size.count = 1;
	judge(&LEAK, reports, 1, 0, MW_STATUS_DONE, NULL);
	/* One of them was there to the end, and the other ended; then both. */
	reports[0].window.ended = MW_END_EXIT;
	judge(&LEAK, reports, 2, 0, MW_STATUS_DONE, NULL);
	reports[1].window.ended = MW_END_EXIT;
	judge(&LEAK, reports, 2, 0, MW_STATUS_FAILED, "before its time: the process ended");
	judge(&endless, reports, 2, 0, MW_STATUS_DONE, NULL);
	judge(&launched, reports, 2, 0, MW_STATUS_DONE, NULL);
	reports[0].window.ended = reports[1].window.ended = MW_END_INTERRUPT;
	judge(&LEAK, reports, 2, 0, MW_STATUS_FAILED, "before its time: interrupted");
	judge(&launched, reports, 2, 0, MW_STATUS_FAILED, "before its time");
	judge(&endless, reports, 2, 0, MW_STATUS_DONE, NULL);
	reports[1].window.ended = MW_END_LIMIT;
	judge(&endless, reports, 2, 0, MW_STATUS_FAILED, "a limit was reached");
}

static void judge_heap(const struct mw_heap_report *heap, struct mw_fail_on fail_on, enum mw_message_status status,
		       const char *mentions)
{
	struct mw_error *err = mw_judge_heap(&fail_on, heap);

	assert_int_equal(err != NULL, mentions != NULL);
	if (mentions && !strstr(mw_error_text(err), mentions))
		fail_msg("%s: not in: %s", mentions, mw_error_text(err));
	assert_int_equal(mw_message_error(err), status);
}

static void test_heap(void **state)
{
	const struct mw_fail_on leak = {.leak = true}, growth = {.growth = true};
	struct mw_heap_figures allocator = {.name = "glibc", .walked = true};
	struct mw_heap_report heap = {.pid = 7, .comm = "server", .allocators = &allocator, .allocator_count = 1};

	(void)state;
	heap.leaks[MW_REACH_POSSIBLE] = heap.leaks[MW_REACH_REACHABLE] = (struct mw_amount){9, 900};
	judge_heap(&heap, leak, MW_STATUS_DONE, NULL);
	judge_heap(&heap, growth, MW_STATUS_USAGE, "--fail-on growth");
	allocator.walked = false;
	judge_heap(&heap, (struct mw_fail_on){0}, MW_STATUS_DONE, NULL);
	judge_heap(&heap, leak, MW_STATUS_FAILED, "glibc");
	allocator.walked = true;
	heap.unread = 4096;
	judge_heap(&heap, leak, MW_STATUS_FAILED, "not all of the heap");
	heap.leaks[MW_REACH_DEFINITE] = (struct mw_amount){2, 1024};
	heap.leaks[MW_REACH_INDIRECT] = (struct mw_amount){1, 1024};
	judge_heap(&heap, leak, MW_STATUS_FOUND, "server (pid 7): 2.0 KiB in 3 blocks are lost");
}

UNIT_GROUP(judge)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_incomplete),
		cmocka_unit_test(test_heap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
