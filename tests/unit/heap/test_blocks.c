// SPDX-License-Identifier: MIT
/* test_blocks.c: spans of random segments, against a plain list of them. */
#include "heap/blocks.h"

#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST 4096u

struct model {
	mw_addr start;
	uint64_t size; /* usable */
	bool live;
};

struct rig {
	struct mw_blocks *blocks;
	struct model items[MOST]; /* by address */
	size_t count;
	uint32_t arena;
	uint64_t state;
};

static uint64_t roll(struct rig *rig, uint64_t sides)
{
	rig->state ^= rig->state << 13;
	rig->state ^= rig->state >> 7;
	rig->state ^= rig->state << 17;
	return rig->state % sides;
}

static void make_rig(struct rig *rig, uint64_t seed)
{
	uint32_t allocator;

	*rig = (struct rig){.state = seed};
	assert_null(mw_blocks_create(&rig->blocks));
	assert_null(mw_blocks_add_allocator(rig->blocks, &(struct mw_heap_allocator){.name = "test", .walked = true},
					    &allocator));
	assert_null(mw_blocks_add_arena(rig->blocks, allocator, "main", &rig->arena));
}

static void add_model(struct rig *rig, mw_addr start, uint64_t size, bool live)
{
	assert_true(rig->count < MOST);
	rig->items[rig->count++] = (struct model){start, size, live};
}

/* Segments of random sizes, now and then a huge one, behind which a search backwards is long. */
static mw_addr add_any(struct rig *rig, mw_addr start)
{
	uint64_t sizes[300], total = 0, count = 1 + roll(rig, 300);
	uint32_t span;

	for (uint64_t i = 0; i < count; i++) {
		sizes[i] = 16 * (1 + roll(rig, roll(rig, 50) ? 40 : 70000));
		total += sizes[i];
	}
	assert_null(mw_blocks_add_span(rig->blocks, rig->arena, start, start + total, 0, 8, &span));
	for (uint64_t i = 0; i < count; i++) {
		bool live = roll(rig, 3) > 0;

		assert_true(mw_span_cut(rig->blocks, span, start));
		if (live)
			assert_true(mw_span_set_live(rig->blocks, span, start, true));
		add_model(rig, start, sizes[i] - 8, live);
		start += sizes[i];
	}
	return start;
}

static mw_addr add_slab(struct rig *rig, mw_addr start)
{
	uint64_t segment = 8 * (1 + roll(rig, 200)), count = 1 + roll(rig, 200), rest = roll(rig, segment);
	mw_addr end = start + segment * count + rest;
	uint32_t span;

	assert_null(mw_blocks_add_span(rig->blocks, rig->arena, start, end, segment, 0, &span));
	for (uint64_t i = 0; i < count; i++) {
		bool live = roll(rig, 2);

		assert_true(mw_blocks_set_live(rig->blocks, start + i * segment, live));
		add_model(rig, start + i * segment, segment, live);
	}
	return end;
}

static void check_find(const struct rig *rig, mw_addr addr, const struct model *model, uint32_t number)
{
	bool in = model && model->live && addr - model->start < model->size;
	struct mw_block block;
	uint32_t starts = MW_BLOCK_NONE;

	if (mw_blocks_find(rig->blocks, addr, &block) != in)
		fail_msg("%#llx: found %d", (unsigned long long)addr, !in);
	assert_int_equal(mw_blocks_find_start(rig->blocks, addr, &starts), in && addr == model->start);
	assert_int_equal(starts, in && addr == model->start ? number : MW_BLOCK_NONE);
	if (!in)
		return;
	assert_true(mw_blocks_may_hold(rig->blocks, addr));
	assert_non_null(mw_blocks_span_of(rig->blocks, addr));
	assert_int_equal(block.start, model->start);
	assert_int_equal(block.size, model->size);
	assert_int_equal(block.number, number);
}

/* Numbers by which several are asked for at once, some of none, some twice. */
static void check_several(const struct rig *rig, uint32_t first, uint32_t step)
{
	uint32_t numbers[MW_BLOCKS_AT_ONCE], count = 0;
	struct mw_block found[MW_BLOCKS_AT_ONCE], block;
	size_t live, expected = 0;

	for (uint32_t number = first; count < MW_BLOCKS_AT_ONCE && number < rig->count + 3; number += step)
		numbers[count++] = number;
	live = mw_blocks_get_all(rig->blocks, numbers, count, found);
	for (uint32_t i = 0; i < count; i++) {
		if (!mw_blocks_get(rig->blocks, numbers[i], &block))
			continue;
		assert_true(expected < live);
		assert_int_equal(found[expected].number, block.number);
		assert_int_equal(found[expected].start, block.start);
		assert_int_equal(found[expected++].size, block.size);
	}
	assert_int_equal(live, expected);
}

static void check_all(const struct rig *rig)
{
	size_t spans, seen = 0;
	const struct mw_span *span = mw_blocks_spans(rig->blocks, &spans);

	assert_int_equal(mw_blocks_segments(rig->blocks), rig->count);
	for (size_t i = 0; i < rig->count; i++) {
		const struct model *model = &rig->items[i];
		struct mw_block block;

		check_find(rig, model->start, model, (uint32_t)i);
		check_find(rig, model->start + model->size / 2, model, (uint32_t)i);
		check_find(rig, model->start + model->size - 1, model, (uint32_t)i);
		if (i + 1 == rig->count || rig->items[i + 1].start != model->start + model->size)
			check_find(rig, model->start + model->size, NULL, 0);
		assert_int_equal(mw_blocks_get(rig->blocks, (uint32_t)i, &block), model->live);
		if (model->live)
			assert_int_equal(block.start, model->start);
	}
	for (uint32_t step = 1; step < rig->count; step *= 3)
		check_several(rig, (uint32_t)rig->count / (step + 1), step);
	for (; spans--; span++) {
		struct mw_segment segment;

		for (mw_addr at = span->start; mw_span_next(span, &at, &segment); seen++) {
			assert_int_equal(segment.start, rig->items[seen].start);
			assert_int_equal(segment.size, rig->items[seen].size);
			assert_int_equal(segment.live, rig->items[seen].live);
			assert_int_equal(segment.number, seen);
		}
	}
	assert_int_equal(seen, rig->count);
}

/* Spans in any order would need sorting: they are added by address here, apart or side by side, on shared pages too. */
static void test_random(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct rig rig;
		mw_addr at = 0x7f0000000000 + 16 * seed;

		make_rig(&rig, seed * 0x9e3779b97f4a7c15);
		while (rig.count < MOST - 300) {
			at = roll(&rig, 2) ? add_any(&rig, at) : add_slab(&rig, at);
			at = (at + 15) & ~(mw_addr)15;
			if (roll(&rig, 3) == 0)
				at += 4096 * roll(&rig, 600000);
		}
		assert_null(mw_blocks_finish(rig.blocks));
		check_all(&rig);
		check_find(&rig, 8, NULL, 0);
		check_find(&rig, UINT64_MAX, NULL, 0);
		mw_blocks_destroy(rig.blocks);
	}
}

/* What lies over another span is passed over, and said so; spans may come in any order. */
static void test_overlap(void **state)
{
	struct rig rig;
	uint32_t low, high, over;
	size_t count;

	(void)state;
	make_rig(&rig, 1);
	assert_null(mw_blocks_add_span(rig.blocks, rig.arena, 0x20000, 0x30000, 0, 8, &high));
	assert_null(mw_blocks_add_span(rig.blocks, rig.arena, 0x10000, 0x20000, 64, 0, &low));
	assert_null(mw_blocks_add_span(rig.blocks, rig.arena, 0x2f000, 0x31000, 64, 0, &over));
	assert_int_equal(over, MW_BLOCK_NONE);
	assert_false(mw_span_cut(rig.blocks, over, 0x2f000));
	assert_false(mw_span_cut(rig.blocks, low, 0x10040));
	assert_false(mw_span_cut(rig.blocks, high, 0x20008));
	assert_false(mw_span_set_live(rig.blocks, high, 0x20010, true));
	assert_false(mw_span_set_live(rig.blocks, low, 0x10010, true));
	assert_int_equal(mw_blocks_skipped(rig.blocks, &count)->bytes, 0x2000);
	assert_int_equal(count, 1);
	assert_null(mw_blocks_finish(rig.blocks));
	assert_int_equal(mw_blocks_spans(rig.blocks, &count)[0].start, 0x10000);
	assert_int_equal(count, 2);
	assert_int_equal(mw_blocks_segments(rig.blocks), 0x10000 / 64 + 1);
	mw_blocks_destroy(rig.blocks);
}

static void test_bookkeeping(void **state)
{
	struct rig rig;
	const struct mw_bookkeeping *ranges;
	size_t count;

	(void)state;
	make_rig(&rig, 1);
	assert_null(mw_blocks_add_bookkeeping(rig.blocks, rig.arena, 0x3000, 0x4000));
	assert_null(mw_blocks_add_bookkeeping(rig.blocks, rig.arena, 0x1000, 0x2000));
	assert_null(mw_blocks_add_bookkeeping(rig.blocks, rig.arena, 0x2000, 0x3800));
	assert_null(mw_blocks_add_bookkeeping(rig.blocks, rig.arena, 0x9000, 0x9000));
	assert_null(mw_blocks_finish(rig.blocks));
	ranges = mw_blocks_bookkeeping(rig.blocks, &count);
	assert_int_equal(count, 1);
	assert_int_equal(ranges->start, 0x1000);
	assert_int_equal(ranges->end, 0x4000);
	mw_blocks_destroy(rig.blocks);
}

UNIT_GROUP(blocks)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_bookkeeping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
