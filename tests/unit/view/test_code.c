// SPDX-License-Identifier: MIT
/* test_code.c: code in no file: its regions, and stacks through it. */
#include "unit.h"
#include "view/frames.h"
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

#define BASE   UINT64_C(0x7f0000000000)
#define SECOND (BASE + 64 * MIB)

enum { CODE = 1, DATA = 2, NONE = 0 };

static struct mw_stored_mapping mapping(mw_addr start, uint64_t size, enum mw_region_kind kind, unsigned access)
{
	return (struct mw_stored_mapping){.start = start,
					  .end = start + size,
					  .kind = kind,
					  .exec = access == CODE,
					  .accessible = access != NONE};
}

static void assert_region(const struct mw_code_regions *regions, size_t index, mw_addr start, mw_addr end)
{
	assert_true(index < regions->count);
	assert_int_equal(regions->items[index].start, start);
	assert_int_equal(regions->items[index].end, end);
}

/* What a JIT has reserved is one region; what lies far apart, or in a file, is not part of it. */
static void test_regions(void **state)
{
	const struct mw_stored_mapping mappings[] = {
		mapping(BASE - 8 * KIB, 8 * KIB, MW_REGION_ANONYMOUS, DATA),
		mapping(BASE, 4 * KIB, MW_REGION_ANONYMOUS, CODE),
		mapping(BASE + 4 * KIB, 4 * MIB, MW_REGION_ANONYMOUS, NONE),
		mapping(BASE + 4 * KIB + 4 * MIB, 8 * KIB, MW_REGION_ANONYMOUS, DATA),
		mapping(BASE + 12 * KIB + 4 * MIB, 4 * KIB, MW_REGION_ANONYMOUS, CODE),
		mapping(BASE + 16 * KIB + 4 * MIB, 2 * MIB, MW_REGION_ANONYMOUS, DATA), /* too much to be part of it */
		mapping(BASE + 16 * KIB + 6 * MIB, 4 * KIB, MW_REGION_ANONYMOUS, CODE),
		mapping(BASE + 20 * KIB + 6 * MIB, 4 * KIB, MW_REGION_FILE_TEXT, CODE),
		mapping(BASE + 24 * KIB + 6 * MIB, 4 * KIB, MW_REGION_ANONYMOUS, CODE),
		mapping(BASE + 32 * KIB + 6 * MIB, 4 * KIB, MW_REGION_ANONYMOUS, CODE),
	};
	const struct mw_space_moment moment = {.mappings = mappings, .count = sizeof(mappings) / sizeof(mappings[0])};
	struct mw_code_regions regions = {0};
	char text[MW_CODE_REGION_TEXT];

	(void)state;
	assert_null(mw_code_regions_make(NULL, &moment, &regions));
	assert_int_equal(regions.count, 4);
	assert_region(&regions, 0, BASE, BASE + 16 * KIB + 4 * MIB);
	assert_region(&regions, 1, BASE + 16 * KIB + 6 * MIB, BASE + 20 * KIB + 6 * MIB);
	assert_region(&regions, 2, BASE + 24 * KIB + 6 * MIB, BASE + 28 * KIB + 6 * MIB);
	assert_region(&regions, 3, BASE + 32 * KIB + 6 * MIB, BASE + 36 * KIB + 6 * MIB);
	/* A call may be the last instruction. */
	assert_ptr_equal(mw_code_regions_find(&regions, BASE + 20 * KIB + 6 * MIB), &regions.items[1]);
	assert_ptr_equal(mw_code_regions_find(&regions, (BASE + 1) | MW_FRAME_NEAR), &regions.items[0]);
	assert_null(mw_code_regions_find(&regions, BASE));
	assert_null(mw_code_regions_find(&regions, 0));
	assert_null(mw_code_regions_find(NULL, BASE + 1));
	mw_code_region_describe(&regions.items[0], text);
	assert_string_equal(text, "(generated code at 0x7f0000000000, 4.0 MiB)");
	mw_code_region_describe(&regions.items[1], text);
	assert_string_equal(text, "(generated code at 0x7f0000604000, 4 KiB)");
	mw_code_region_describe(&(struct mw_code_region){BASE, BASE + 1024 * MIB - 4 * KIB}, text);
	assert_string_equal(text, "(generated code at 0x7f0000000000, 1.0 GiB)");
	mw_code_regions_deinit(&regions);
}

/* A region that has grown meanwhile is one. */
static void test_two_moments(void **state)
{
	const struct mw_stored_mapping early[] = {mapping(BASE, MIB, MW_REGION_ANONYMOUS, CODE),
						  mapping(SECOND, MIB, MW_REGION_ANONYMOUS, CODE)};
	const struct mw_stored_mapping late[] = {mapping(BASE, 2 * MIB, MW_REGION_ANONYMOUS, CODE),
						 mapping(BASE + 4 * MIB, MIB, MW_REGION_ANONYMOUS, CODE)};
	const struct mw_space_moment start = {.mappings = early, .count = 2}, end = {.mappings = late, .count = 2};
	struct mw_code_regions regions = {0};

	(void)state;
	assert_null(mw_code_regions_make(&start, &end, &regions));
	assert_int_equal(regions.count, 3);
	assert_region(&regions, 0, BASE, BASE + 2 * MIB);
	assert_region(&regions, 1, BASE + 4 * MIB, BASE + 5 * MIB);
	assert_region(&regions, 2, SECOND, SECOND + MIB);
	mw_code_regions_deinit(&regions);
	assert_null(mw_code_regions_make(NULL, NULL, &regions));
	assert_int_equal(regions.count, 0);
	mw_code_regions_deinit(&regions);
}

/* Code in the first 4 KiB of the first region is called hot. */
static struct mw_error *resolve(void *context, uint32_t module, mw_addr addr, const struct mw_symbol_frame **frames,
				size_t *count)
{
	static struct mw_symbol_frame hot = {.function = "hot"}, bare;
	mw_addr base = *(const mw_addr *)context;

	assert_int_equal(module, MW_MODULE_NONE);
	assert_false(addr & MW_FRAME_NEAR);
	*frames = addr - base < 4 * KIB ? &hot : &bare;
	(*frames == &hot ? &hot : &bare)->offset = addr - base;
	*count = 1;
	return NULL;
}

static const struct mw_report_stack *stack_of(const struct mw_report *report, uint64_t bytes)
{
	for (size_t i = 0; i < report->stack_count; i++)
		if (report->stacks[i].impacting.bytes == bytes)
			return &report->stacks[i];
	fail_msg("no stack of %u bytes", (unsigned)bytes);
	return NULL;
}

/* Stacks through code of a JIT's that lies at `base`, and the ids of those that the report has. */
static void watch(mw_addr base, char ids[4][17])
{
	const struct {
		mw_addr at;
		uint64_t size;
	} calls[] = {
		{base + 0x10, 1},
		{base + 0x800, 2}, /* hot */
		{base + MIB, 10},
		{base + MIB - 5, 20},
		{(base + 5000) | MW_FRAME_NEAR, 30}, /* the rest of its region */
		{base + 64 * MIB, 100},
		{base + 64 * MIB + 1, 200}, /* the other region's */
		{0x10, 1000},
		{base + 512 * MIB, 2000}, /* nobody knows where */
	};
	struct mw_code_region items[] = {{base, base + MIB}, {base + 64 * MIB - 1, base + 65 * MIB}};
	struct mw_code_regions regions = {.items = items, .count = 2};
	const struct mw_report_stack *stack;
	struct mw_report *report;
	struct world world;
	uint32_t thread;
	const uint64_t sums[] = {3, 60, 300, 3000};

	world_init(&world);
	world.symbols = (struct mw_view_symbols){.context = &base, .resolve = resolve};
	world.input.regions = &regions;
	thread = world_thread(&world, 1, "t");
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		world_event(&world, MW_EVENT_ALLOC, MW_KIND_HEAP, 0x1000 * (i + 1), calls[i].size,
			    world_stack(&world, MW_KIND_HEAP, HOOK_MALLOC, &calls[i].at, 1, MW_STACK_BROKEN), thread,
			    0);
	report = world_report(&world);
	assert_int_equal(report->stack_count, 4);
	for (size_t i = 0; i < 4; i++) {
		stack = stack_of(report, sums[i]);
		memcpy(ids[i], stack->id, 17);
		assert_int_equal(stack->frame_count, 1);
		assert_int_equal(stack->cut, MW_STACK_BROKEN);
		/* What lies nowhere may be no code at all. */
		assert_int_equal(stack->end, i < 3 ? MW_STACK_END_GENERATED : MW_STACK_END_NONE);
		assert_int_equal(stack->frames[0].generated, i > 0);
	}
	assert_string_equal(stack_of(report, 3)->frames[0].function, "hot");
	assert_string_equal(stack_of(report, 3)->frames[0].module, "[jit]");
	assert_int_equal(stack_of(report, 60)->frames[0].address, base);
	assert_string_equal(stack_of(report, 60)->frames[0].module, "[jit]");
	assert_non_null(strstr(stack_of(report, 60)->frames[0].function, "1.0 MiB)"));
	assert_null(stack_of(report, 3000)->frames[0].function);
	assert_null(stack_of(report, 3000)->frames[0].module);
	mw_report_destroy(report);
	world_deinit(&world);
}

/* Stacks that differ only in addresses of code that nobody names are one, and are so in another run as well. */
static void test_one_stack(void **state)
{
	char ids[4][17], elsewhere[4][17];

	(void)state;
	watch(BASE, ids);
	watch(BASE + 16 * MIB * KIB, elsewhere);
	for (size_t i = 0; i < 4; i++) {
		assert_string_equal(ids[i], elsewhere[i]);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(ids[i], ids[j]);
	}
}

UNIT_GROUP(code)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_regions),
		cmocka_unit_test(test_two_moments),
		cmocka_unit_test(test_one_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
