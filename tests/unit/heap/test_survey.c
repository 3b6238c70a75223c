// SPDX-License-Identifier: MIT
/* test_survey.c: the account of random address spaces sums to what is resident, byte by byte, line by line. */
#include "heap/survey.h"

#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAGE     4096u
#define BASE     UINT64_C(0x7f0000000000)
#define PAGES    600u
#define MAPPINGS 40u
#define SPACES   8u

/* What a byte is for, byte by byte: the account made the slow way. */
enum use { NOTHING, LIVE, FREE, OWN, OTHER, CODE, DATA, SHARED, ZEROED, JAVA, USES };

struct rig {
	uint8_t uses[PAGES * PAGE];
	bool resident[PAGES], swapped[PAGES];
	struct mw_image_mapping mappings[MAPPINGS];
	struct mw_image_run runs[PAGES];
	struct mw_script_space spaces[SPACES];
	struct mw_image image;
	struct mw_blocks *blocks;
	struct mw_modules *modules;
	struct mw_classes *classes;
	uint32_t arena;
	uint64_t state, live_count, live_bytes;
};

static uint64_t roll(struct rig *rig, uint64_t sides)
{
	rig->state ^= rig->state << 13;
	rig->state ^= rig->state >> 7;
	rig->state ^= rig->state << 17;
	return rig->state % sides;
}

static size_t read_zeros(void *context, mw_addr addr, void *out, size_t size)
{
	(void)context;
	(void)addr;
	memset(out, 0, size);
	return size;
}

static void use(struct rig *rig, mw_addr start, mw_addr end, enum use what)
{
	memset(&rig->uses[start - BASE], (int)what, (size_t)(end - start));
}

static void make_mappings(struct rig *rig)
{
	static const struct {
		enum use what;
		bool shared, exec;
		uint64_t inode;
	} kinds[] = {
		{OTHER, false, false, 0}, {CODE, false, true, 7}, {DATA, false, false, 7}, {SHARED, true, false, 9}};
	mw_addr at = BASE;

	while (at < BASE + PAGES * PAGE && rig->image.mapping_count < MAPPINGS) {
		mw_addr end = at + PAGE * (1 + roll(rig, 40));
		unsigned kind = (unsigned)roll(rig, 8);

		if (end > BASE + PAGES * PAGE)
			end = BASE + PAGES * PAGE;
		if (kind < 7) {
			kind = kind < 4 ? 0 : kind - 3;
			rig->mappings[rig->image.mapping_count++] =
				(struct mw_image_mapping){.start = at,
							  .end = end,
							  .inode = kinds[kind].inode,
							  .shared = kinds[kind].shared,
							  .exec = kinds[kind].exec,
							  .read = true,
							  .path = ""};
			use(rig, at, end, kinds[kind].what);
			if (kind == 0 && roll(rig, 2)) {
				mw_addr bss_end = at + PAGE * (1 + roll(rig, (end - at) / PAGE));

				rig->mappings[rig->image.mapping_count - 1].bss_end = bss_end;
				use(rig, at, bss_end, ZEROED);
			}
		}
		at = end;
	}
}

static void make_pages(struct rig *rig)
{
	for (size_t i = 0; i < rig->image.mapping_count; i++) {
		const struct mw_image_mapping *mapping = &rig->mappings[i];

		for (mw_addr at = mapping->start; at < mapping->end; at += PAGE) {
			size_t page = (size_t)(at - BASE) / PAGE;
			struct mw_image_run *last = rig->image.run_count ? &rig->runs[rig->image.run_count - 1] : NULL;
			enum mw_page_state state = roll(rig, 5) ? MW_PAGE_RESIDENT : MW_PAGE_SWAPPED;

			if (roll(rig, 4) == 0)
				continue;
			(state == MW_PAGE_RESIDENT ? rig->resident : rig->swapped)[page] = true;
			if (last && last->state == state && last->start + (mw_addr)last->pages * PAGE == at)
				last->pages++;
			else
				rig->runs[rig->image.run_count++] = (struct mw_image_run){at, 1, state};
		}
	}
}

/* A span in an anonymous mapping: from anywhere in it to anywhere, with bookkeeping before it, or over a part of it. */
static void make_span(struct rig *rig, const struct mw_image_mapping *mapping)
{
	mw_addr start = mapping->start + 16 * roll(rig, 100), end = mapping->end - 16 * roll(rig, 100);
	uint32_t tail = roll(rig, 2) ? 8 : 0, span;
	mw_addr at = start;

	assert_null(mw_blocks_add_bookkeeping(rig->blocks, rig->arena, mapping->start, start + roll(rig, 64)));
	use(rig, mapping->start, start, OWN);
	assert_null(mw_blocks_add_span(rig->blocks, rig->arena, start, end, 0, tail, &span));
	while (at < end) {
		mw_addr next = at + 16 * (1 + roll(rig, roll(rig, 9) ? 20 : 900));
		bool live = roll(rig, 2);

		next = next > end ? end : next;
		assert_true(mw_span_cut(rig->blocks, span, at));
		assert_true(mw_span_set_live(rig->blocks, span, at, live));
		use(rig, at, next - tail, live ? LIVE : FREE);
		use(rig, next - tail, next, OWN);
		rig->live_count += live;
		rig->live_bytes += live ? next - tail - at : 0;
		at = next;
	}
}

/* Ranges of a virtual machine's, over whatever is there: what is anonymous or shared in them, and no allocator's, is its. */
static void make_spaces(struct rig *rig)
{
	mw_addr at = BASE;

	for (size_t i = 0; i < SPACES; i++) {
		struct mw_script_space *space = &rig->spaces[i];

		space->low = at + PAGE * roll(rig, 20);
		space->high = at = space->low + PAGE * (1 + roll(rig, 50));
		space->runtime = "Java virtual machine";
		strcpy(space->name, "Java heap");
		space->committed = i;
		space->used = 2 * i;
		for (mw_addr byte = space->low; byte < space->high; byte++)
			if (rig->uses[byte - BASE] == OTHER || rig->uses[byte - BASE] == SHARED)
				rig->uses[byte - BASE] = JAVA;
	}
}

static void sum_slowly(const struct rig *rig, uint64_t resident[USES], uint64_t swapped[USES])
{
	for (size_t i = 0; i < sizeof(rig->uses); i++) {
		resident[rig->uses[i]] += rig->resident[i / PAGE];
		swapped[rig->uses[i]] += rig->swapped[i / PAGE];
	}
}

static void check_line(const struct mw_heap_report *report, const char *name, uint64_t resident, uint64_t swapped)
{
	for (size_t i = 0; i < report->line_count; i++) {
		if (strcmp(report->lines[i].name, name) != 0)
			continue;
		assert_int_equal(report->lines[i].bytes, resident);
		assert_int_equal(report->lines[i].swapped, swapped);
		return;
	}
	assert_int_equal(resident + swapped, 0);
}

/* The figures of the ranges are summed, whatever is resident of each. */
static void check_told(const struct rig *rig, const struct mw_heap_report *report)
{
	uint64_t reserved = 0;

	for (size_t i = 0; i < SPACES; i++)
		reserved += rig->spaces[i].high - rig->spaces[i].low;
	for (size_t i = 0; i < report->line_count; i++) {
		const struct mw_heap_line *line = &report->lines[i];
		bool told = strcmp(line->name, "Java virtual machine") == 0;

		assert_int_equal(line->reserved, told ? reserved : 0);
		assert_int_equal(line->committed, told ? SPACES * (SPACES - 1) / 2 : 0);
		assert_int_equal(line->used, told ? SPACES * (SPACES - 1) : 0);
	}
}

static void check(struct rig *rig)
{
	const struct mw_survey_input input = {.image = &rig->image,
					      .blocks = rig->blocks,
					      .modules = rig->modules,
					      .classes = rig->classes,
					      .by = MW_HEAP_BY_CLASS | MW_HEAP_BY_SIZE,
					      .spaces = rig->spaces,
					      .space_count = SPACES};
	struct mw_heap_report *report = calloc(1, sizeof(*report));
	uint64_t resident[USES] = {0}, swapped[USES] = {0}, all = 0;
	struct mw_amount grouped = {0};

	assert_non_null(report);
	assert_null(mw_survey(&input, report));
	sum_slowly(rig, resident, swapped);
	check_line(report, "live blocks", resident[LIVE], swapped[LIVE]);
	check_line(report, "free, kept by the allocator", resident[FREE], swapped[FREE]);
	check_line(report, "allocator bookkeeping", resident[OWN], swapped[OWN]);
	check_line(report, "other anonymous memory", resident[OTHER], swapped[OTHER]);
	check_line(report, "Java virtual machine", resident[JAVA], swapped[JAVA]);
	check_told(rig, report);
	assert_int_equal(mw_survey_mapped(&input, BASE, BASE + PAGES * PAGE), resident[OTHER]);
	check_line(report, "code", resident[CODE], swapped[CODE]);
	check_line(report, "file data", resident[DATA], swapped[DATA]);
	check_line(report, "shared memory", resident[SHARED], swapped[SHARED]);
	check_line(report, "zeroed data of files (.bss)", resident[ZEROED], swapped[ZEROED]);
	for (unsigned i = LIVE; i < USES; i++)
		all += resident[i];
	assert_int_equal(report->rss, all);
	for (size_t i = 0; i < report->group_count; i++)
		mw_amount_add(&grouped, report->groups[i].blocks);
	assert_int_equal(grouped.count, rig->live_count);
	assert_int_equal(grouped.bytes, rig->live_bytes);
	assert_int_equal(report->allocators[0].live.bytes, rig->live_bytes);
	mw_heap_report_destroy(report);
}

static void test_account(void **state)
{
	struct rig *rig = malloc(sizeof(*rig));

	(void)state;
	assert_non_null(rig);
	for (uint64_t seed = 1; seed <= 40; seed++) {
		uint32_t allocator;

		memset(rig, 0, sizeof(*rig));
		rig->state = seed * 0x9e3779b97f4a7c15;
		rig->image = (struct mw_image){
			.read_some = read_zeros, .mappings = rig->mappings, .runs = rig->runs, .consistent = true};
		make_mappings(rig);
		make_pages(rig);
		assert_null(mw_blocks_create(&rig->blocks));
		assert_null(mw_blocks_add_allocator(
			rig->blocks, &(struct mw_heap_allocator){.name = "test", .walked = true}, &allocator));
		assert_null(mw_blocks_add_arena(rig->blocks, allocator, "main", &rig->arena));
		for (size_t i = 0; i < rig->image.mapping_count; i++)
			if (!rig->mappings[i].inode && !rig->mappings[i].shared && roll(rig, 3))
				make_span(rig, &rig->mappings[i]);
		make_spaces(rig);
		assert_null(mw_blocks_finish(rig->blocks));
		assert_null(mw_modules_create(&rig->modules));
		assert_null(mw_classes_create(&rig->image, rig->modules, &rig->classes));
		check(rig);
		mw_classes_destroy(rig->classes);
		mw_modules_destroy(rig->modules);
		mw_blocks_destroy(rig->blocks);
	}
	free(rig);
}

UNIT_GROUP(survey)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_account),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
