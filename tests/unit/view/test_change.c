// SPDX-License-Identifier: MIT
/* test_change.c: by what the memory became more or less in a window, as looks say, and as a recording has it. */
#include "view/change.h"

#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct rig {
	struct mw_track *track;
	struct mw_arena *arena;
	struct mw_report report;
	struct mw_report_stack stacks[2];
	struct mw_summary_input input;
	uint32_t group_of[2];
};

static void begin(struct rig *rig)
{
	*rig = (struct rig){.arena = mw_arena_create()};
	assert_non_null(rig->arena);
	assert_null(mw_track_create(&rig->track));
	rig->input.track = rig->track;
	rig->report.stacks = rig->stacks;
	rig->report.stack_count = 2;
	strcpy(rig->stacks[0].id, "00000000000000aa");
	strcpy(rig->stacks[1].id, "ffffffffffffffff");
	rig->group_of[1] = 1;
}

static void end(struct rig *rig)
{
	mw_arena_destroy(rig->arena);
	mw_track_destroy(rig->track);
}

static const struct mw_report_change *make(struct rig *rig)
{
	rig->report.change = NULL;
	assert_null(mw_view_change(&rig->input, rig->arena, &rig->report, rig->group_of));
	return rig->report.change;
}

/* --- from looks ------------------------------------------------------------------------------------------------------- */

static uint64_t block(void *context, mw_addr addr)
{
	(void)context;
	return addr & 0xfff;
}

static uint64_t mapping(void *context, mw_addr start, mw_addr end)
{
	(void)context;
	return (end - start) / 2;
}

static struct mw_error *rest(void *context, struct mw_error *(*visit)(void *visitor, const struct mw_heap_change *part),
			     void *visitor, uint64_t *before, uint64_t *after)
{
	(void)context;
	*before = 10000;
	*after = 10000 + 0x10 + 0x20 + 2048 - 3000;
	return visit(visitor, &(const struct mw_heap_change){MW_HEAP_CHANGE_FREED, "older", "", 0, -3000});
}

static void test_looks(void **state)
{
	const struct mw_raw_frame frames[] = {{0x100, MW_MODULE_NONE}, {0x200, MW_MODULE_NONE}};
	const struct mw_summary_change asked = {block, mapping, rest, NULL};
	const struct mw_report_change *change;
	struct mw_event_sink sink;
	struct rig rig;
	uint32_t thread, heap, vm;

	(void)state;
	begin(&rig);
	sink = mw_track_sink(rig.track);
	assert_null(sink.thread(sink.context, 1, "a", true, &thread));
	assert_null(sink.stack(sink.context,
			       &(const struct mw_raw_stack){frames, 1, MW_STACK_COMPLETE, 0, MW_KIND_HEAP}, &heap));
	assert_null(sink.stack(sink.context,
			       &(const struct mw_raw_stack){frames + 1, 1, MW_STACK_COMPLETE, 0, MW_KIND_VM}, &vm));
	assert_int_equal(heap, 0);
	assert_int_equal(vm, 1);
	for (unsigned i = 1; i <= 3; i++)
		assert_null(sink.event(sink.context, &(const struct mw_event){.time_ns = i,
									      .addr = i * 0x1010,
									      .size = 100,
									      .stack = heap,
									      .thread = thread,
									      .type = MW_EVENT_ALLOC,
									      .kind = MW_KIND_HEAP}));
	assert_null(sink.event(sink.context, &(const struct mw_event){.time_ns = 4,
								      .addr = 3 * 0x1010,
								      .stack = MW_STACK_NONE,
								      .thread = thread,
								      .type = MW_EVENT_FREE,
								      .kind = MW_KIND_HEAP,
								      .size = MW_SIZE_UNKNOWN}));
	assert_null(sink.event(sink.context, &(const struct mw_event){.time_ns = 5,
								      .addr = 0x100000,
								      .size = 4096,
								      .stack = vm,
								      .thread = thread,
								      .type = MW_EVENT_MAP,
								      .kind = MW_KIND_VM}));
	rig.input.change = &asked;
	change = make(&rig);
	assert_non_null(change);
	assert_int_equal(change->part_count, 3);
	assert_int_equal(change->sums[MW_HEAP_CHANGE_BLOCKS], 0x10 + 0x20);
	assert_int_equal(change->sums[MW_HEAP_CHANGE_MAPPINGS], 2048);
	assert_int_equal(change->sums[MW_HEAP_CHANGE_FREED], -3000);
	assert_int_equal(change->parts[0].bytes, -3000);
	assert_int_equal(change->parts[1].bytes, 2048);
	assert_int_equal(change->parts[1].stack, UINT64_MAX);
	assert_int_equal(change->parts[2].bytes, 0x30);
	assert_int_equal(change->parts[2].stack, 0xaa);
	end(&rig);
}

/* --- from a recording -------------------------------------------------------------------------------------------------- */

static void test_recording(void **state)
{
	struct mw_stored_change stored[] = {
		{MW_STORED_CHANGE_RSS_BEFORE, "", "", 0, 1000}, {MW_HEAP_CHANGE_BLOCKS, "blocks", "", 0xaa, 70},
		{MW_HEAP_CHANGE_REST, "rest", "x", 0, -20},     {99, "of a newer writer", "", 0, 5},
		{MW_STORED_CHANGE_RSS_AFTER, "", "", 0, 1050},
	};
	const struct mw_window_info window = {.length_ns = 100};
	const struct mw_report_change *change;
	struct rig rig;

	(void)state;
	begin(&rig);
	assert_null(make(&rig));
	rig.input.window = &window;
	rig.input.stored_changes = stored;
	rig.input.stored_changes_count = 5;
	change = make(&rig);
	assert_non_null(change);
	assert_int_equal(change->before, 1000);
	assert_int_equal(change->after, 1050);
	assert_int_equal(change->part_count, 2);
	assert_int_equal(change->parts[0].stack, 0xaa);
	assert_string_equal(change->parts[1].detail, "x");
	/* Of a part of the window there is none. */
	rig.input.to_ns = 99;
	assert_null(make(&rig));
	rig.input.to_ns = 100;
	assert_non_null(make(&rig));
	rig.input.from_ns = 1;
	assert_null(make(&rig));
	rig.input.from_ns = 0;
	/* Nor of a recording that was cut off. */
	for (size_t count = 0; count < 5; count++) {
		rig.input.stored_changes_count = count;
		assert_null(make(&rig));
	}
	rig.input.stored_changes_count = 5;
	stored[1].bytes = 71;
	assert_null(make(&rig));
	stored[1].bytes = INT64_MAX;
	stored[2].bytes = INT64_MAX;
	assert_null(make(&rig));
	stored[0].bytes = -1;
	assert_null(make(&rig));
	end(&rig);
}

UNIT_GROUP(change)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_looks),
		cmocka_unit_test(test_recording),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
