// SPDX-License-Identifier: MIT
/* test_pinned.c: pages that small blocks pin, against a count byte by byte. */
#include "heap/pinned.h"

#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* cmocka wants the headers above first. */
#include <cmocka.h>

#define PAGE  4096u
#define BASE  UINT64_C(0x7f0000000000)
#define PAGES 300u

struct rig {
	bool free[PAGES * PAGE];
	uint64_t state;
	struct mw_blocks *blocks;
	uint32_t arena;
};

static uint64_t roll(struct rig *rig, uint64_t sides)
{
	rig->state = rig->state * 6364136223846793005u + 1442695040888963407u;
	return (rig->state >> 33) % sides;
}

static void add_segment(struct rig *rig, uint32_t span, mw_addr at, uint64_t size)
{
	bool live = roll(rig, 4) == 0;

	if (live)
		assert_true(mw_span_set_live(rig->blocks, span, at, true));
	else
		memset(&rig->free[at - BASE], 1, size);
}

/* From the middle of a page on. */
static void add_span(struct rig *rig, mw_addr start, mw_addr end)
{
	uint32_t span;

	assert_null(mw_blocks_add_span(rig->blocks, rig->arena, start, end, 0, 8, &span));
	for (mw_addr at = start, next; at < end; at = next) {
		next = at + 32 + 16 * roll(rig, roll(rig, 20) ? 60 : 1000);
		next = next > end ? end : next;
		assert_true(mw_span_cut(rig->blocks, span, at));
		add_segment(rig, span, at, next - at);
	}
}

static void add_slab(struct rig *rig, mw_addr start, mw_addr end, uint64_t size)
{
	uint32_t span;

	assert_null(mw_blocks_add_span(rig->blocks, rig->arena, start, end, size, 0, &span));
	for (mw_addr at = start; at < end; at += size)
		add_segment(rig, span, at, size);
}

static void counts_each_page(void **state)
{
	static struct rig rig;
	const struct mw_heap_allocator allocator = {.name = "glibc", .walked = true};
	uint32_t number;

	(void)state;
	for (unsigned round = 1; round <= 50; round++) {
		struct mw_image_run resident = {BASE, PAGES - 50, MW_PAGE_RESIDENT};
		struct mw_image image = {.runs = &resident, .run_count = 1};
		struct mw_pinned pinned, expected = {0};

		memset(&rig, 0, sizeof(rig));
		rig.state = round;
		assert_null(mw_blocks_create(&rig.blocks));
		assert_null(mw_blocks_add_allocator(rig.blocks, &allocator, &number));
		assert_null(mw_blocks_add_arena(rig.blocks, number, "main", &rig.arena));
		add_span(&rig, BASE + 1040, BASE + 100 * PAGE);
		add_slab(&rig, BASE + 100 * PAGE, BASE + 200 * PAGE, 64 + 64 * (round % 2));
		add_span(&rig, BASE + 200 * PAGE, BASE + 300 * PAGE);
		assert_null(mw_blocks_finish(rig.blocks));
		for (size_t page = 0; page < PAGES - 50; page++) {
			uint64_t bytes = 0;

			for (size_t i = 0; i < PAGE; i++)
				bytes += rig.free[page * PAGE + i];
			if (bytes > PAGE / 2 && bytes < PAGE) {
				expected.pages++;
				expected.free += bytes;
			}
		}
		mw_pinned(&image, rig.blocks, &pinned);
		assert_true(expected.pages > 0);
		assert_int_equal(pinned.pages, expected.pages);
		assert_int_equal(pinned.free, expected.free);
		mw_blocks_destroy(rig.blocks);
	}
}

UNIT_GROUP(pinned)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(counts_each_page)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
