// SPDX-License-Identifier: MIT
/*
 * test_change.c: what became of random address spaces, part by part, against the same made byte by byte. Parts sum to the
 * change of what is resident, to the byte.
 */
#include "heap/change.h"

#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAGE       4096u
#define BASE       UINT64_C(0x7f0000000000)
#define HEAP_PAGES 40u
#define PAGES      100u /* the heap, then other anonymous memory, and from … */
#define FILE_PAGE  80u  /* … here on a file's */
#define BLOCKS_MAX 4096u

struct block {
	mw_addr start;
	uint64_t size;
	bool live, recorded;
};

struct world {
	struct mw_image_mapping mappings[3];
	struct mw_image_run runs[PAGES];
	bool resident[PAGES];
	struct mw_image image;
	struct mw_blocks *blocks;
	struct block list[BLOCKS_MAX];
	size_t count;
	struct mw_survey_input input;
	struct mw_heap_report *report;
};

static uint64_t state;

static uint64_t roll(uint64_t sides)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % sides;
}

static size_t read_nothing(void *context, mw_addr addr, void *out, size_t size)
{
	(void)context, (void)addr, (void)out, (void)size;
	return 0;
}

static void make_pages(struct world *world)
{
	for (unsigned page = 0; page < PAGES; page++) {
		world->resident[page] = roll(3);
		if (world->resident[page])
			world->runs[world->image.run_count++] =
				(struct mw_image_run){BASE + page * (mw_addr)PAGE, 1, MW_PAGE_RESIDENT};
	}
}

/* Blocks of few sizes, so that many begin at the same address in both worlds. */
static void make_blocks(struct world *world)
{
	const mw_addr end = BASE + HEAP_PAGES * (mw_addr)PAGE;
	uint32_t allocator, arena, span;

	assert_null(mw_blocks_create(&world->blocks));
	assert_null(mw_blocks_add_allocator(world->blocks, &(struct mw_heap_allocator){.name = "test", .walked = true},
					    &allocator));
	assert_null(mw_blocks_add_arena(world->blocks, allocator, "main", &arena));
	assert_null(mw_blocks_add_span(world->blocks, arena, BASE, end, 0, 8, &span));
	for (mw_addr at = BASE; at < end;) {
		uint64_t size = 1024 * (1 + roll(3));
		struct block *block = &world->list[world->count++];

		size = at + size > end ? end - at : size;
		*block = (struct block){at, size - 8, roll(2), false};
		assert_true(mw_span_cut(world->blocks, span, at));
		assert_true(mw_span_set_live(world->blocks, span, at, block->live));
		at += size;
	}
	assert_null(mw_blocks_finish(world->blocks));
}

static void make(struct world *world, const struct mw_reach_hole *holes, size_t hole_count)
{
	const mw_addr heap_end = BASE + HEAP_PAGES * (mw_addr)PAGE, file = BASE + FILE_PAGE * (mw_addr)PAGE;

	*world = (struct world){.count = 0};
	world->mappings[0] = (struct mw_image_mapping){
		.start = BASE, .end = heap_end, .read = true, .write = true, .path = "[heap]"};
	world->mappings[1] =
		(struct mw_image_mapping){.start = heap_end, .end = file, .read = true, .write = true, .path = ""};
	world->mappings[2] = (struct mw_image_mapping){
		.start = file, .end = BASE + PAGES * (mw_addr)PAGE, .read = true, .inode = 7, .path = "/a"};
	world->image = (struct mw_image){.read_some = read_nothing,
					 .mappings = world->mappings,
					 .mapping_count = 3,
					 .runs = world->runs,
					 .consistent = true};
	make_pages(world);
	make_blocks(world);
	world->input = (struct mw_survey_input){.image = &world->image,
						.blocks = world->blocks,
						.by = MW_HEAP_BY_SIZE,
						.holes = holes,
						.hole_count = hole_count};
	world->report = calloc(1, sizeof(*world->report));
	assert_non_null(world->report);
	assert_null(mw_survey(&world->input, world->report));
}

static void drop(struct world *world)
{
	mw_heap_report_destroy(world->report);
	mw_blocks_destroy(world->blocks);
}

/* Resident bytes, one by one. */
static uint64_t count(const struct world *world, mw_addr start, mw_addr end)
{
	uint64_t bytes = 0;

	for (mw_addr at = start; at < end; at++)
		bytes += world->resident[(at - BASE) / PAGE];
	return bytes;
}

static const struct block *find(const struct world *world, mw_addr start)
{
	for (size_t i = 0; i < world->count; i++)
		if (world->list[i].live && world->list[i].start == start)
			return &world->list[i];
	return NULL;
}

/* --- parts ----------------------------------------------------------------------------------------------------------- */

struct sums {
	int64_t all, freed, touched, not_recorded, anonymous, own, kept, file;
};

static struct mw_error *on_part(void *context, const struct mw_heap_change *part)
{
	struct sums *sums = context;

	assert_int_not_equal(part->bytes, 0);
	assert_int_equal(part->stack, 0);
	sums->all += part->bytes;
	if (part->kind == MW_HEAP_CHANGE_FREED)
		sums->freed += part->bytes;
	else if (part->kind == MW_HEAP_CHANGE_ALLOCATOR)
		sums->kept += part->bytes;
	else if (strstr(part->name, "touched"))
		sums->touched += part->bytes;
	else if (strstr(part->name, "not recorded"))
		sums->not_recorded += part->bytes;
	else if (strcmp(part->name, "other anonymous memory") == 0)
		sums->anonymous += part->bytes;
	else if (strcmp(part->name, "memwatch's own memory") == 0)
		sums->own += part->bytes;
	else if (strcmp(part->name, "file data") == 0)
		sums->file += part->bytes;
	else
		fail_msg("part '%s'", part->name);
	return NULL;
}

/* The same, byte by byte. */
static struct sums expect(const struct world *old, const struct world *new)
{
	struct sums sums = {0};

	for (size_t i = 0; i < old->count; i++) {
		const struct block *block = &old->list[i], *there = find(new, block->start);

		if (block->live && (!there || there->recorded))
			sums.freed -= (int64_t)count(old, block->start, block->start + block->size);
	}
	for (size_t i = 0; i < new->count; i++) {
		const struct block *block = &new->list[i], *there = find(old, block->start);
		int64_t bytes = (int64_t)count(new, block->start, block->start + block->size);

		if (!block->live || block->recorded)
			continue;
		if (there)
			sums.touched += bytes - (int64_t)count(old, there->start, there->start + there->size);
		else
			sums.not_recorded += bytes;
	}
	return sums;
}

static void check(uint64_t seed)
{
	const mw_addr other = BASE + HEAP_PAGES * (mw_addr)PAGE, file = BASE + FILE_PAGE * (mw_addr)PAGE;
	/* memwatch's own, in the later one. */
	const struct mw_reach_hole hole = {other + 2 * PAGE, other + 5 * PAGE};
	/* One lies in memwatch's own and beyond, one in a file as well. */
	const mw_addr mapped[][2] = {{other + 4 * PAGE, other + 9 * PAGE}, {file - 3 * PAGE, file + 3 * PAGE}};
	static struct world old, new;
	struct mw_change *change = NULL;
	struct sums sums = {0}, expected;
	int64_t recorded = 0, mappings = 0, anonymous;

	state = seed * 0x9e3779b97f4a7c15;
	make(&old, NULL, 0);
	make(&new, &hole, 1);
	assert_null(mw_change_create(&old.input, &new.input, &change));
	for (size_t i = 0; i < new.count; i++) {
		struct block *block = &new.list[i];
		uint64_t bytes;

		if (roll(2))
			continue;
		block->recorded = block->live;
		bytes = mw_change_block(change, block->start);
		assert_int_equal(bytes, block->live ? count(&new, block->start, block->start + block->size) : 0);
		/* Twice is once, and the middle of a block is no block. */
		assert_int_equal(mw_change_block(change, block->start), 0);
		assert_int_equal(mw_change_block(change, block->start + 16), 0);
		recorded += (int64_t)bytes;
	}
	for (size_t i = 0; i < 2; i++)
		mappings += (int64_t)mw_change_mapping(change, mapped[i][0], mapped[i][1]);
	assert_int_equal(mappings, count(&new, hole.end, mapped[0][1]) + count(&new, mapped[1][0], file));
	assert_null(mw_change_rest(change, old.report, new.report, on_part, &sums));
	expected = expect(&old, &new);
	assert_int_equal(sums.freed, expected.freed);
	assert_int_equal(sums.touched, expected.touched);
	assert_int_equal(sums.not_recorded, expected.not_recorded);
	anonymous = (int64_t)count(&new, other, file) - (int64_t)count(&new, hole.start, hole.end) -
		    (int64_t)count(&old, other, file);
	assert_int_equal(sums.anonymous, anonymous - mappings);
	assert_int_equal(sums.own, count(&new, hole.start, hole.end));
	assert_int_equal(sums.all + recorded + mappings, (int64_t) new.report->rss - (int64_t)old.report->rss);
	mw_change_destroy(change);
	drop(&old);
	drop(&new);
}

static void test_random(void **context)
{
	(void)context;
	for (uint64_t seed = 1; seed <= 60; seed++)
		check(seed);
}

/* Without anything in between nothing has changed. */
static void test_nothing(void **context)
{
	static struct world one;
	struct mw_change *change = NULL;
	struct sums sums = {0};

	(void)context;
	state = 7;
	make(&one, NULL, 0);
	assert_null(mw_change_create(&one.input, &one.input, &change));
	assert_null(mw_change_rest(change, one.report, one.report, on_part, &sums));
	assert_int_equal(sums.all, 0);
	mw_change_destroy(change);
	mw_change_destroy(NULL);
	drop(&one);
}

UNIT_GROUP(change)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
