// SPDX-License-Identifier: MIT
/* test_pools.c: whose the blocks of a pool are, by reading them, and as a recording has it. */
#include "view/pools.h"

#include "alloc/pools.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STACKS 4
#define SIZE   512u

struct rig {
	struct mw_track *track;
	struct mw_arena *arena;
	struct mw_report report;
	struct mw_report_stack stacks[STACKS];
	struct mw_report_frame frames[STACKS][2];
	struct mw_report_suspect suspect;
	size_t suspect_stacks[STACKS];
	struct mw_summary_input input;
	struct mw_window_info window;
	uint32_t group_of[STACKS];
};

static void begin(struct rig *rig)
{
	static const char *const functions[STACKS][2] = {{"palloc0", "ExecMake"},
							 {"malloc", "MemoryContextAlloc"},
							 {"ngx_palloc", "ngx_parse"},
							 {"main", "palloc"}};

	*rig = (struct rig){.arena = mw_arena_create(), .window = {.length_ns = 100}};
	assert_non_null(rig->arena);
	assert_null(mw_track_create(&rig->track));
	rig->input = (struct mw_summary_input){.track = rig->track, .window = &rig->window};
	for (uint32_t i = 0; i < STACKS; i++) {
		for (size_t j = 0; j < 2; j++)
			rig->frames[i][j].function = functions[i][j];
		rig->stacks[i] = (struct mw_report_stack){
			.frames = rig->frames[i], .frame_count = 2, .impacting = {10, 10 * SIZE}};
		snprintf(rig->stacks[i].id, sizeof(rig->stacks[i].id), "%016x", i + 0xa0);
		rig->group_of[i] = i;
		rig->suspect_stacks[i] = i;
	}
	rig->suspect = (struct mw_report_suspect){.stacks = rig->suspect_stacks, .stack_count = STACKS};
	rig->report.stacks = rig->stacks;
	rig->report.stack_count = STACKS;
	rig->report.suspects = &rig->suspect;
	rig->report.suspect_count = 1;
}

static void make(struct rig *rig)
{
	for (size_t i = 0; i < STACKS; i++)
		rig->stacks[i].pool = NULL;
	rig->suspect.pool = NULL;
	assert_null(mw_view_pools(&rig->input, rig->arena, &rig->report, rig->group_of));
	assert_null(mw_view_pools_merge(rig->arena, &rig->report));
}

static void end(struct rig *rig)
{
	mw_arena_destroy(rig->arena);
	mw_track_destroy(rig->track);
}

/* By the functions alone: what each pool hides. */
static void test_hints(void **state)
{
	struct rig rig;

	(void)state;
	begin(&rig);
	make(&rig);
	assert_string_equal(rig.stacks[0].pool->name, "PostgreSQL's memory contexts");
	assert_string_equal(rig.stacks[1].pool->name, "PostgreSQL's memory contexts");
	assert_non_null(strstr(rig.stacks[0].pool->hint, "could not be read"));
	assert_non_null(strstr(rig.stacks[2].pool->hint, "nginx"));
	assert_null(rig.stacks[3].pool);
	assert_int_equal(rig.suspect.pool->user_count, 0);
	assert_non_null(rig.suspect.pool->hint);
	/* What PHP takes from malloc is none of its chunks. */
	rig.frames[3][0].function = "_emalloc_56";
	make(&rig);
	assert_null(rig.stacks[3].pool);
	rig.stacks[3].kind = MW_KIND_VM;
	make(&rig);
	assert_non_null(strstr(rig.stacks[3].pool->hint, "USE_ZEND_ALLOC"));
	/* Of a part of the window blocks are not read; nginx's have no names anyway. */
	rig.input.from_ns = 1;
	make(&rig);
	assert_null(rig.stacks[0].pool);
	assert_non_null(rig.stacks[2].pool);
	end(&rig);
}

/* --- by reading ------------------------------------------------------------------------------------------------------ */

#define CONSTANT UINT64_C(0x10000)
#define CONTEXTS UINT64_C(0x20000) /* of 256 bytes each: the first is the top one */
#define BLOCKS   UINT64_C(0x100000)

/* Every block but those whose number is a multiple of 4 is of one of 3 contexts. */
static size_t read_some(void *context, mw_addr addr, void *out, size_t size)
{
	static const char names[4][32] = {"TopMemoryContext", "one", "two", "three"};
	uint64_t words[32] = {0};

	(void)context;
	if (addr >= BLOCKS) {
		uint64_t number = (addr - BLOCKS) / SIZE;

		words[0] = CONTEXTS + number % 4 * 256;
		words[4] = number % 4 ? addr + SIZE : 0;
	} else if (addr >= CONTEXTS) {
		uint64_t number = (addr - CONTEXTS) / 256;

		words[0] = 450;
		words[2] = CONSTANT;
		words[3] = number ? CONTEXTS : 0;
		words[7] = CONSTANT + 64 + number * 32;
	} else if (addr > CONSTANT) {
		memcpy(words, names[(addr - CONSTANT) / 32 - 2], 32);
	} else {
		words[0] = CONSTANT;
	}
	memcpy(out, words, size < sizeof(words) ? size : sizeof(words));
	return size;
}

static bool is_constant(void *context, mw_addr addr)
{
	(void)context;
	return addr >= CONSTANT && addr < CONTEXTS;
}

static void test_read(void **state)
{
	const struct mw_pool_memory memory = {read_some, is_constant, NULL};
	const struct mw_report_pool *pool;
	struct rig rig;
	struct mw_event_sink sink;
	uint32_t thread, stacks[STACKS];

	(void)state;
	begin(&rig);
	sink = mw_track_sink(rig.track);
	assert_null(sink.thread(sink.context, 1, "t", true, &thread));
	for (uint32_t i = 0; i < STACKS; i++) {
		const struct mw_raw_frame frames[] = {{0x100 + i, MW_MODULE_NONE}};
		const struct mw_raw_stack raw = {.frames = frames, .count = 1};

		assert_null(sink.stack(sink.context, &raw, &stacks[i]));
	}
	for (uint64_t i = 0; i < 20000; i++) {
		struct mw_event event = {.type = MW_EVENT_ALLOC,
					 .time_ns = i / 1000,
					 .addr = BLOCKS + i * SIZE,
					 .size = SIZE,
					 .stack = stacks[i < 12   ? 0
							 : i < 16 ? 2
								  : 1],
					 .thread = thread};

		assert_null(sink.event(sink.context, &event));
	}
	rig.stacks[0].impacting.count = 12;
	rig.stacks[1].impacting.count = 20000 - 16;
	rig.input.pools = &memory;
	make(&rig);
	pool = rig.stacks[0].pool;
	assert_null(pool->hint);
	assert_int_equal(pool->user_count, 3);
	assert_int_equal(pool->looked.count, 12);
	assert_int_equal(pool->others.count, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(pool->users[i].blocks.count, 3);
		assert_int_equal(pool->users[i].blocks.bytes, 3 * SIZE);
		assert_string_equal(pool->users[i].path, "TopMemoryContext");
		assert_string_equal(pool->users[i].example, "");
	}
	assert_string_equal(pool->users[0].name, "one");
	/* Of many blocks one in so many is read. */
	pool = rig.stacks[1].pool;
	assert_in_range(pool->looked.count, 2048, 4096);
	/* A suspect has those of its stacks. */
	assert_int_equal(rig.suspect.pool->looked.count, 12 + pool->looked.count);
	assert_int_equal(rig.suspect.pool->others.count, 3 + pool->others.count);
	assert_null(rig.suspect.pool->hint);
	assert_in_range(rig.suspect.pool->user_count, 1, 3);
	/* nginx's are not read. */
	assert_int_equal(rig.stacks[2].pool->looked.count, 0);
	end(&rig);
}

/* --- from a recording ------------------------------------------------------------------------------------------------ */

static void test_recording(void **state)
{
	static const struct mw_stored_pool stored[] = {{0xa1, "pool", "small", "top", "", {1, 10}},
						       {0xa0, "pool", "", "", "", {3, 30}},
						       {0xa1, "pool", "large", "top", "x", {2, 20}},
						       {0xa1, "pool", "", "", "", {7, 70}},
						       {0xff, "pool", "nobody's", "", "", {1, 1}}};
	const struct mw_report_pool *pool;
	struct rig rig;

	(void)state;
	begin(&rig);
	rig.input.stored_pools = stored;
	rig.input.stored_pools_count = sizeof(stored) / sizeof(stored[0]);
	make(&rig);
	pool = rig.stacks[1].pool;
	assert_string_equal(pool->name, "pool");
	assert_null(pool->hint);
	assert_int_equal(pool->user_count, 2);
	assert_string_equal(pool->users[0].name, "large");
	assert_string_equal(pool->users[0].example, "x");
	assert_int_equal(pool->looked.count, 10);
	assert_int_equal(pool->others.bytes, 70);
	assert_int_equal(rig.stacks[0].pool->user_count, 0);
	assert_int_equal(rig.stacks[0].pool->others.count, 3);
	assert_non_null(rig.stacks[0].pool->hint);
	assert_non_null(rig.stacks[2].pool);
	rig.input.to_ns = 99;
	make(&rig);
	assert_null(rig.stacks[1].pool);
	end(&rig);
}

UNIT_GROUP(pools)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hints),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_recording),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
