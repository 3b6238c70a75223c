// SPDX-License-Identifier: MIT
/* test_collector.c: which heap blocks are said to lie in where that is known only at the end. */
#include "view/watched.h"

#include "unit.h"
#include "view/heaps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAP_BYTES (UINT64_C(1) << 26) /* as far apart as glibc's arenas lie */
#define FIRST      UINT64_C(0x7f0000000000)

static void good(struct mw_error *err)
{
	if (err)
		fail_msg("%s", mw_error_text(err));
}

static void allocate(const struct mw_event_sink *sink, uint64_t i, mw_addr addr)
{
	const struct mw_event event = {
		.time_ns = 1000 * i,
		.addr = addr,
		.size = 32,
		.type = MW_EVENT_ALLOC,
		.kind = MW_KIND_HEAP,
	};

	good(sink->event(sink->context, &event));
}

/* `count` blocks that stay, one in each of as many arenas. */
static void collect(struct mw_watched *watched, const struct mw_view_question *question, uint64_t count)
{
	const struct mw_collector_options options = {.question = question, .timeline = true};
	const struct mw_raw_frame frame = {0x1234, 0};
	const struct mw_raw_stack stack = {.frames = &frame, .count = 1, .kind = MW_KIND_HEAP};
	uint32_t number;

	good(mw_watched_collect(watched, &options));
	mw_collector_watch(&watched->collector, watched->track);
	good(watched->sink.stack(watched->sink.context, &stack, &number));
	good(watched->sink.thread(watched->sink.context, 7, "main", true, &number));
	for (uint64_t i = 0; i < count; i++)
		allocate(&watched->sink, i, FIRST + i * HEAP_BYTES + 0x100);
}

static void know_arenas(struct mw_watched_set *set, uint64_t count)
{
	const struct mw_store_visitor told = mw_watched_set_visitor(set);
	const struct mw_stored_sample sample = {.time_ns = 1};
	const struct mw_stored_end end = {.length_ns = 1000000000};

	good(told.sample(set, 0, &sample));
	for (uint64_t i = 0; i < count; i++) {
		mw_addr start = FIRST + i * HEAP_BYTES;
		char path[40];
		const struct mw_stored_mapping mapping = {
			.start = start, .end = start + 0x21000, .path = path, .kind = MW_REGION_ARENA};

		mw_heaps_arena_path(start, path);
		good(told.mapping(set, 0, MW_STORED_END, &mapping));
	}
	good(told.end(set, 0, &end));
}

static void assert_all_in_arenas(const struct mw_timeline *timeline, uint64_t count)
{
	uint64_t seen = 0;

	assert_int_equal(timeline->cells.count, count);
	for (size_t i = 0; i < timeline->cells.count; i++) {
		const struct mw_timeline_row *row = &timeline->cells.rows[i];

		assert_in_range(row->key[2], 1, timeline->heap_count);
		assert_memory_equal(timeline->heaps[row->key[2] - 1], "arena ", strlen("arena "));
		seen += row->count;
	}
	assert_int_equal(seen, count);
}

/* Each block is a row of its own heap. */
static void assert_rows(struct mw_watched *watched, const struct mw_watched_interval *interval,
			const struct mw_view_question *question, const struct mw_report *report, uint64_t count)
{
	struct mw_view_process process;
	struct mw_views *views = NULL;

	mw_watched_view(watched, interval, report, &process);
	good(mw_views_create(question, &process, 1, &views));
	/* The rest is one more row. */
	assert_int_equal(views->groups->row_count, count <= question->top ? count : question->top + 1);
	for (size_t i = 0; i < views->groups->row_count && i < question->top; i++)
		assert_int_equal(views->groups->rows[i].sums.fates[MW_FATE_IMPACTING].count, 1);
	assert_int_equal(views->blocks->row_count, 2);
	for (size_t i = 0; i < 2; i++)
		assert_memory_equal(views->blocks->rows[i].heap, "arena ", strlen("arena "));
	mw_views_destroy(views);
}

static void check(uint64_t count)
{
	const struct mw_view_question question = {.by = {MW_COLUMN_HEAP},
						  .by_count = 1,
						  .blocks = 2,
						  .type = MW_FATE_IMPACTING,
						  .sort = MW_SORT_IMPACTING,
						  .top = 100};
	const struct mw_watched_interval interval = {.to_ns = UINT64_MAX};
	struct mw_watched_set set = {.count = 0};
	struct mw_watched *watched;
	struct mw_timeline *timeline = NULL;
	struct mw_report *report = NULL;

	good(mw_watched_set_get(&set, 0, &watched));
	collect(watched, &question, count);
	know_arenas(&set, count);
	good(mw_watched_settle(watched));
	good(mw_watched_report(watched, &interval, &report));
	good(mw_watched_timeline(watched, &interval, &timeline));
	assert_all_in_arenas(timeline, count);
	assert_rows(watched, &interval, &question, report, count);
	mw_timeline_destroy(timeline);
	mw_report_destroy(report);
	mw_watched_set_deinit(&set);
}

/* Fewer than are handed over at a time. */
static void test_few(void **state)
{
	(void)state;
	check(3);
}

/* More than its thread has taken when the last is received. */
static void test_many(void **state)
{
	(void)state;
	check(5000);
}

UNIT_GROUP(collector)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
