// SPDX-License-Identifier: MIT
/* test_picture.c: which heap the blocks of a picture are said to lie in. */
#include "cli/picture.h"

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
static struct mw_picture *draw(struct mw_track *track, uint64_t count)
{
	const struct mw_event_sink sink = mw_track_sink(track);
	const struct mw_raw_frame frame = {0x1234, 0};
	const struct mw_raw_stack stack = {.frames = &frame, .count = 1, .kind = MW_KIND_HEAP};
	struct mw_picture *picture = NULL;
	uint32_t number;

	good(mw_picture_create(track, &picture));
	good(sink.stack(sink.context, &stack, &number));
	good(sink.thread(sink.context, 7, "main", true, &number));
	for (uint64_t i = 0; i < count; i++)
		allocate(&sink, i, FIRST + i * HEAP_BYTES + 0x100);
	*mw_picture_stack_of(picture) = calloc(1, sizeof(uint32_t));
	*mw_picture_thread_of(picture) = calloc(1, sizeof(uint32_t));
	assert_true(*mw_picture_stack_of(picture) && *mw_picture_thread_of(picture));
	return picture;
}

static void know_arenas(struct mw_space_snapshot *look, char (*paths)[40], uint64_t count)
{
	look->mappings = calloc(count, sizeof(*look->mappings));
	assert_non_null(look->mappings);
	for (uint64_t i = 0; i < count; i++) {
		mw_addr start = FIRST + i * HEAP_BYTES;

		mw_heaps_arena_path(start, paths[i]);
		look->mappings[i] = (struct mw_stored_mapping){
			.start = start,
			.end = start + 0x21000,
			.path = paths[i],
			.kind = MW_REGION_ARENA,
		};
	}
	look->count = count;
	look->taken = true;
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

static void check(uint64_t count)
{
	struct mw_space_snapshot look = {0}, none = {0};
	const struct mw_picture_end end = {.length_ns = 1000000000, .looks = {&none, &look}};
	char(*paths)[40] = calloc(count, sizeof(*paths));
	struct mw_track *track = NULL;
	struct mw_picture *picture;

	assert_non_null(paths);
	good(mw_track_create(&track));
	picture = draw(track, count);
	know_arenas(&look, paths, count);
	good(mw_picture_finish(picture, &end));
	assert_all_in_arenas(mw_picture_timeline(picture), count);
	mw_picture_destroy(picture);
	mw_track_destroy(track);
	free(look.mappings);
	free(paths);
}

/* Fewer than are handed over at a time. */
static void test_few(void **state)
{
	(void)state;
	check(3);
}

/* More than its thread has taken when the last is told. */
static void test_many(void **state)
{
	(void)state;
	check(5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
