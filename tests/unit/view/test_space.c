// SPDX-License-Identifier: MIT
/* test_space.c: summaries of address spaces that are made up, what is unattributed in them, and heap handles. */
#include "unit.h"
#include "view/arena.h"
#include "view/heaps.h"
#include "view/metadata.h"
#include "view/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define UNKNOWN MW_SIZE_UNKNOWN
#define MIB     (UINT64_C(1) << 20)

/* A tracker with one stack of each kind, and a report of them. */
struct world {
	struct mw_track *track;
	struct mw_event_sink sink;
	uint32_t thread, stacks[MW_KIND_COUNT];
	uint32_t group_of[MW_KIND_COUNT];
	struct mw_report_stack report_stacks[MW_KIND_COUNT];
	struct mw_report report;
	struct mw_arena *arena;
};

static void init(struct world *world)
{
	*world = (struct world){.arena = mw_arena_create()};
	assert_non_null(world->arena);
	assert_null(mw_track_create(&world->track));
	world->sink = mw_track_sink(world->track);
	assert_null(world->sink.thread(world->sink.context, 7, "t", true, &world->thread));
	for (uint32_t kind = 0; kind < MW_KIND_COUNT; kind++) {
		const struct mw_raw_frame frame = {0x1000 + kind, 0};
		const struct mw_raw_stack stack = {&frame, 1, MW_STACK_COMPLETE, kind, (enum mw_kind)kind};

		assert_null(world->sink.stack(world->sink.context, &stack, &world->stacks[kind]));
		/* The report's order is another. */
		world->group_of[world->stacks[kind]] = MW_KIND_COUNT - 1 - kind;
		world->report_stacks[MW_KIND_COUNT - 1 - kind].kind = (enum mw_kind)kind;
	}
	world->report.stacks = world->report_stacks;
	world->report.stack_count = MW_KIND_COUNT;
}

static void deinit(struct world *world)
{
	mw_track_destroy(world->track);
	mw_arena_destroy(world->arena);
}

static void map(struct world *world, enum mw_kind kind, mw_addr addr, uint64_t size)
{
	const struct mw_event event = {1,
				       addr,
				       size,
				       world->stacks[kind],
				       world->thread,
				       kind == MW_KIND_HEAP ? MW_EVENT_ALLOC : MW_EVENT_MAP,
				       kind,
				       0,
				       false};

	assert_null(world->sink.event(world->sink.context, &event));
}

#define MOMENT(list)                                                                                                   \
	(struct mw_space_moment)                                                                                       \
	{                                                                                                              \
		(list), sizeof(list) / sizeof((list)[0]), UNKNOWN, UNKNOWN, UNKNOWN                                    \
	}

static const struct mw_stored_mapping at_start[] = {
	{0x10000, 0x20000, MW_REGION_FILE_TEXT, 0x8000, "/bin/x", false, true, 0, 0},
	{0x100000, 0x200000, MW_REGION_HEAP, 0x40000, "[heap]", false, true, 0, 0},
	{0x700000, 0x800000, MW_REGION_ANONYMOUS, 0x1000, "", false, true, 0, 0},
};

static const struct mw_stored_mapping at_end[] = {
	{0x10000, 0x20000, MW_REGION_FILE_TEXT, 0x9000, "/bin/x", false, true, 0, 0},
	{0x20000, 0x30000, MW_REGION_FILE_TEXT, 0, "/bin/x", false, true, 0, 0}, /* goes on, but came later */
	{0x100000, 0x300000, MW_REGION_HEAP, 0x150000, "[heap]", false, true, 0, 0},
	{0x400000, 0x480000, MW_REGION_ARENA, 0x4000, "[arena 400030]", false, true, 0, 0},
	{0x6f0000, 0x700000, MW_REGION_ANONYMOUS, 0x3000, "", false, true, 0, 0}, /* before what was there */
	{0x700000, 0x800000, MW_REGION_ANONYMOUS, 0x2000, "", false, true, 0, 0},
	{0x800000, 0x810000, MW_REGION_ANONYMOUS, 0x10000, "", false, true, 0, 0}, /* behind it, wholly resident */
	{0x900000, 0xa00000, MW_REGION_ANONYMOUS, 0x8000, "", false, true, 0, 0},  /* in part a vm block's */
	{0xb00000, 0xb10000, MW_REGION_SHARED, UNKNOWN, "/dev/shm/y", false, true, 0, 0},
	{0xc00000, 0xc10000, MW_REGION_OWN, 0x1000, "/memfd:memwatch", false, true, 0, 0},
	{0xd00000, 0xd10000, MW_REGION_STACK, 0x1000, "[stack]", false, true, 0, 0},
	{0xe00000, 0xe10000, MW_REGION_STACK, 0x1000, "", false, true, 0, 0},
};

static void sums_kinds(void **state)
{
	struct mw_space_moment start = MOMENT(at_start), end = MOMENT(at_end);
	const struct mw_space_input input = {.start = &start, .end = &end, .at_end = true, .track_vm = true};
	const struct mw_report_space *space;
	struct world world;

	(void)state;
	init(&world);
	end.arena_used = 3, end.arena_free = 4, end.arena_size = 7;
	start.arena_used = 3;
	assert_null(mw_view_space(&input, world.track, world.arena, &world.report, world.group_of));
	space = world.report.space;
	assert_non_null(space);
	assert_true(space->start.known && space->end.known);
	assert_int_equal(space->start.kinds[MW_REGION_FILE_TEXT].reserved, 0x10000);
	assert_int_equal(space->end.kinds[MW_REGION_FILE_TEXT].reserved, 0x20000);
	assert_int_equal(space->end.kinds[MW_REGION_FILE_TEXT].count, 1);
	assert_int_equal(space->end.kinds[MW_REGION_FILE_TEXT].resident, 0x9000);
	assert_int_equal(space->end.kinds[MW_REGION_ANONYMOUS].count, 2);
	assert_int_equal(space->end.kinds[MW_REGION_ANONYMOUS].resident, 0x1d000);
	assert_int_equal(space->end.kinds[MW_REGION_STACK].count, 2);
	assert_true(space->end.kinds[MW_REGION_SHARED].resident == UNKNOWN);
	assert_int_equal(space->end.arena_size, 7);
	/* Not in part. */
	assert_true(space->start.arena_used == UNKNOWN);
	deinit(&world);
}

static void assert_region(const struct mw_report_region *region, uint64_t count, uint64_t reserved, uint64_t resident)
{
	assert_int_equal(region->count, count);
	assert_int_equal(region->reserved, reserved);
	assert_int_equal(region->resident, resident);
}

/* Blocks that touch each other have their part of what is resident, too. */
static void sums_named(void **state)
{
	static const struct mw_stored_mapping before[] = {
		{0x100000, 0x200000, MW_REGION_ANONYMOUS, 0x1000, "Java heap", false, true, 0x9000, 0x800},
		{0x200000, 0x300000, MW_REGION_ANONYMOUS, 0x2000, "", false, true, 0, 0},
		{0x300000, 0x310000, MW_REGION_FILE_DATA, 0x3000, "Java heap", false, true, 0, 0},
	};
	static const struct mw_stored_mapping after[] = {
		{0x100000, 0x180000, MW_REGION_ANONYMOUS, 0x5000, "Java heap", false, true, 0xa000, 0},
		{0x180000, 0x1a0000, MW_REGION_ANONYMOUS, 0x6000, "Java heap", false, true, 0x1000, 0x900},
		{0x1a0000, 0x200000, MW_REGION_ANONYMOUS, 0, "Java heap", false, false, 0, 0},
		{0x200000, 0x300000, MW_REGION_ANONYMOUS, 0x2000, "", false, true, 0, 0},
		{0x400000, 0x410000, MW_REGION_ANONYMOUS, 0x7000, "[anon:mine]", false, true, UINT64_MAX, 0},
		{0x420000, 0x430000, MW_REGION_ANONYMOUS, 0, "[anon:mine]", false, true, 1, 0},
	};
	const struct mw_space_moment start = MOMENT(before), end = MOMENT(after);
	struct mw_space_input input = {.start = &start, .end = &end, .at_end = true, .track_vm = true};
	const struct mw_report_space *space;
	struct world world;

	(void)state;
	init(&world);
	map(&world, MW_KIND_VM, 0x180000, 0x10000);
	map(&world, MW_KIND_VM, 0x190000, 0x10000);
	assert_null(mw_view_space(&input, world.track, world.arena, &world.report, world.group_of));
	space = world.report.space;
	assert_int_equal(space->named_count, 2);
	assert_string_equal(space->named[0].name, "Java heap");
	assert_region(&space->named[0].start, 1, 0x100000, 0x1000);
	assert_region(&space->named[0].end, 1, 0x100000, 0xb000);
	assert_int_equal(space->named[0].blocks, 0x6000);
	assert_true(space->named[0].use_at_start.committed == 0x9000 && space->named[0].use_at_start.used == 0x800);
	assert_true(space->named[0].use_at_end.committed == 0xb000 && space->named[0].use_at_end.used == 0x900);
	assert_int_equal(space->named[1].use_at_end.committed, 0); /* more than there is */
	assert_string_equal(space->named[1].name, "[anon:mine]");
	assert_region(&space->named[1].start, 0, 0, 0);
	assert_region(&space->named[1].end, 2, 0x20000, 0x7000);
	assert_int_equal(space->named[1].blocks, 0);
	input.at_end = false;
	assert_null(mw_view_space(&input, world.track, world.arena, &world.report, world.group_of));
	assert_true(world.report.space->named[0].blocks == UNKNOWN);
	deinit(&world);
}

static void assert_unattributed(const struct mw_report_unattributed *item, mw_addr address, uint64_t bytes,
				uint64_t resident, const char *path)
{
	assert_int_equal(item->address, address);
	assert_int_equal(item->bytes, bytes);
	assert_true(item->resident == resident);
	assert_string_equal(item->path, path);
}

static void finds_unattributed(void **state)
{
	const struct mw_space_range before[] = {{0x6f8000, 0x6fc000}};
	struct mw_space_moment start = MOMENT(at_start), end = MOMENT(at_end);
	struct mw_space_input input = {.start = &start, .end = &end, .at_end = true, .track_vm = true};
	const struct mw_report_space *space;
	struct world world;

	(void)state;
	init(&world);
	input.before = before;
	input.before_count = 1;
	map(&world, MW_KIND_VM, 0x900000, 0x7f001); /* to the page's end */
	map(&world, MW_KIND_VM_INTERNAL, 0x9f0000, 0x10000);
	map(&world, MW_KIND_HEAP, 0xe00000, 0x1000); /* covers nothing */
	assert_null(mw_view_space(&input, world.track, world.arena, &world.report, world.group_of));
	space = world.report.space;
	assert_true(space->has_unattributed);
	assert_int_equal(space->unattributed_count, 7);
	assert_unattributed(&space->unattributed[0], 0x980000, 0x70000, UNKNOWN, "");
	assert_unattributed(&space->unattributed[1], 0x20000, 0x10000, 0, "/bin/x");
	assert_unattributed(&space->unattributed[2], 0x800000, 0x10000, 0x10000, "");
	assert_unattributed(&space->unattributed[3], 0xb00000, 0x10000, UNKNOWN, "/dev/shm/y");
	assert_unattributed(&space->unattributed[4], 0xe00000, 0x10000, 0x1000, "");
	assert_unattributed(&space->unattributed[5], 0x6f0000, 0x8000, UNKNOWN, "");
	assert_unattributed(&space->unattributed[6], 0x6fc000, 0x4000, UNKNOWN, "");
	/* Not where it can't be told. */
	input.track_vm = false;
	assert_null(mw_view_space(&input, world.track, world.arena, &world.report, world.group_of));
	assert_false(world.report.space->has_unattributed);
	input.track_vm = true;
	input.at_end = false;
	assert_null(mw_view_space(&input, world.track, world.arena, &world.report, world.group_of));
	assert_false(world.report.space->has_unattributed);
	input.at_end = true;
	input.start = NULL;
	assert_null(mw_view_space(&input, world.track, world.arena, &world.report, world.group_of));
	assert_false(world.report.space->has_unattributed || world.report.space->start.known);
	deinit(&world);
}

static void tells_what_of_blocks_is_resident(void **state)
{
	/* Cut where blocks end. */
	static const struct mw_stored_mapping cut[] = {
		{0x10000, 0x14000, MW_REGION_ANONYMOUS, 0x1000, "", false, true, 0, 0},
		{0x14000, 0x18000, MW_REGION_ANONYMOUS, 0x2000, "", false, true, 0, 0},
		{0x18000, 0x20000, MW_REGION_ANONYMOUS, 0x8000, "", false, true, 0, 0},
		{0x20000, 0x30000, MW_REGION_ANONYMOUS, 0, "", false, true, 0, 0},
		{0x30000, 0x40000, MW_REGION_ANONYMOUS, 0x5000, "", false, true, 0, 0},
	};
	struct mw_space_moment end = MOMENT(cut);
	struct mw_space_input input = {.end = &end, .at_end = true, .track_vm = true};
	const struct mw_report_stack *stacks;
	struct world world;

	(void)state;
	init(&world);
	stacks = world.report_stacks;
	map(&world, MW_KIND_VM, 0x14000, 0x4000 - 5);
	map(&world, MW_KIND_VM, 0x1c000, 0x8000); /* half of what is all resident, half of what is not at all */
	map(&world, MW_KIND_VM, 0x50000, 0x8000); /* not there any more */
	map(&world, MW_KIND_HEAP, 0x10000, 16);
	assert_null(mw_view_space(&input, world.track, world.arena, &world.report, world.group_of));
	assert_int_equal(stacks[MW_KIND_COUNT - 1 - MW_KIND_VM].resident, 0x2000 + 0x4000);
	assert_int_equal(stacks[MW_KIND_COUNT - 1 - MW_KIND_VM_INTERNAL].resident, 0);
	assert_true(stacks[MW_KIND_COUNT - 1 - MW_KIND_HEAP].resident == UNKNOWN);
	/* Half of what is in part: once unknown, always. */
	map(&world, MW_KIND_VM, 0x30000, 0x8000);
	assert_null(mw_view_space(&input, world.track, world.arena, &world.report, world.group_of));
	assert_true(stacks[MW_KIND_COUNT - 1 - MW_KIND_VM].resident == UNKNOWN);
	input.at_end = false;
	assert_null(mw_view_space(&input, world.track, world.arena, &world.report, world.group_of));
	assert_true(stacks[MW_KIND_COUNT - 1 - MW_KIND_VM_INTERNAL].resident == UNKNOWN);
	world.report.space = NULL;
	assert_null(mw_view_space(NULL, world.track, world.arena, &world.report, world.group_of));
	assert_null(world.report.space);
	assert_true(stacks[MW_KIND_COUNT - 1 - MW_KIND_VM].resident == UNKNOWN);
	deinit(&world);
}

/* --- heap handles ---------------------------------------------------------------------------------------------------
 */

/* Heaps by the lists of mappings at the window's start and end. */
static struct mw_heaps *heaps_of(const struct mw_stored_mapping *start, size_t start_count,
				 const struct mw_stored_mapping *end, size_t end_count)
{
	const struct mw_metadata metadata = {.mappings = {{(struct mw_stored_mapping *)start, start_count, 0},
							  {(struct mw_stored_mapping *)end, end_count, 0}}};
	struct mw_heaps *heaps = NULL;

	assert_null(mw_heaps_create(&metadata, &heaps));
	return heaps;
}

static void assert_heap(const struct mw_heaps *heaps, mw_addr addr, uint64_t bytes, const char *name)
{
	uint32_t heap = mw_heaps_of(heaps, addr, bytes, MW_KIND_HEAP);
	size_t count;
	const char *const *names = mw_heaps_names(heaps, &count);

	assert_in_range(heap, 0, count - 1);
	if (!name)
		assert_null(names[heap]);
	else
		assert_string_equal(names[heap], name);
}

#define ARENA(from, to, path)                                                                                          \
	{                                                                                                              \
		64 * (from)*MIB, 64 * (to)*MIB, MW_REGION_ARENA, 0, path, false, true, 0, 0                            \
	}

static void names_glibcs_heaps(void **state)
{
	char second[40], first[40];
	/* Another look finds one before it, a second heap of the first, and the same again. */
	const struct mw_stored_mapping start[] = {ARENA(3, 4, second)},
				       end[] = {
					       ARENA(3, 4, second),
					       ARENA(8, 9, second),
					       {64 * 2 * MIB, 64 * 2 * MIB + 4096, MW_REGION_ARENA, 0, first, false,
						true, 0, 0},
					       ARENA(2, 3, first),
					       {0x100000, 0x140000, MW_REGION_HEAP, 0, "[heap]", false, true, 0, 0},
					       {0x100000, 0x200000, MW_REGION_HEAP, 0, "[heap]", false, true, 0, 0},
					       {0x300000, 0x400000, MW_REGION_ANONYMOUS, 0, "[heap]", false, true, 0,
						0},
				       };
	struct mw_heaps *heaps;
	size_t count;

	(void)state;
	mw_heaps_arena_path(64 * 2 * MIB + 48, first);
	mw_heaps_arena_path(64 * 3 * MIB + 48, second);
	heaps = heaps_of(NULL, 0, NULL, 0);
	assert_heap(heaps, 0x7f0000000010, MIB, NULL); /* nothing is known */
	mw_heaps_destroy(heaps);
	heaps = heaps_of(start, 1, NULL, 0);
	assert_heap(heaps, 64 * 3 * MIB + 5000, 10, "arena 1");
	mw_heaps_destroy(heaps);
	heaps = heaps_of(start, 1, end, sizeof(end) / sizeof(end[0]));
	(void)mw_heaps_names(heaps, &count);
	assert_int_equal(count, 10);
	assert_heap(heaps, 64 * 2 * MIB + 5000, 10, "arena 1");
	assert_heap(heaps, 64 * 3 * MIB + 5008, 10, "arena 2");
	assert_heap(heaps, 64 * 9 * MIB - 16, 10, "arena 2");
	assert_heap(heaps, 0x100010, 10, "main");
	assert_heap(heaps, 0x1ffff0, 10, "main");
	assert_heap(heaps, 0x200000, 10, NULL);
	assert_heap(heaps, 0x300010, 200000, "mmapped");
	assert_heap(heaps, 0x300010, UNKNOWN, "mmapped");
	assert_heap(heaps, 0x300040, 200000, "mmapped"); /* aligned */
	assert_heap(heaps, 0x300040, UNKNOWN, NULL);
	assert_int_equal(mw_heaps_of(heaps, 0x100010, 10, MW_KIND_VM), 0);
	assert_string_equal(mw_heaps_names(heaps, &count)[mw_heaps_of_pymalloc(heaps, 0x300040, 10)], "pymalloc");
	assert_string_equal(mw_heaps_names(heaps, &count)[mw_heaps_of_pymalloc(heaps, 0x100010, 10)], "main");
	mw_heaps_destroy(heaps);
	mw_heaps_destroy(NULL);
}

static void names_other_allocators(void **state)
{
	struct mw_stored_mapping heap = {0x100000, 0x200000, MW_REGION_HEAP, 0, "[heap]", false, true, 0, 0};
	struct mw_hook_info hooks[] = {
		{.function = "malloc", .module = "/usr/lib/libc.so.6"},
		{.function = "operator new(unsigned long)", .module = "/usr/lib/libstdc++.so.6"},
		{.function = NULL, .module = NULL},
		{.function = "free", .module = "/usr/lib/libjemalloc.so.2"},
		{.function = "malloc", .module = "/usr/lib/libjemalloc.so.2"},
		{.function = "malloc", .module = "/lib/ld-musl-x86_64.so.1"},
	};
	/* One that stands in glibc's place has all that is asked for by way of others; the last one has it. */
	static const char *const expected[] = {"main", "main", "main", "main", "main", "jemalloc", "musl"};

	(void)state;
	for (size_t count = 0; count <= sizeof(hooks) / sizeof(hooks[0]); count++) {
		const struct mw_metadata metadata = {.mappings = {{&heap, 1, 0}}, .hooks = hooks, .hook_count = count};
		struct mw_heaps *heaps;

		assert_null(mw_heaps_create(&metadata, &heaps));
		assert_heap(heaps, 0x100010, 10, expected[count]);
		mw_heaps_destroy(heaps);
	}
}

/* Paths come from recordings, too. */
static void bears_any_path(void **state)
{
	static const char *const paths[] = {"", "[arena ", "[arena ]", "[arena x]", "[arena 12", "[arena 12]x", NULL};
	enum { PATHS = sizeof(paths) / sizeof(paths[0]) };
	struct mw_stored_mapping mappings[PATHS + 1];
	struct mw_heaps *heaps;
	size_t count;

	(void)state;
	for (size_t i = 0; i < PATHS; i++)
		mappings[i] =
			(struct mw_stored_mapping){0x1000, 0x2000, MW_REGION_ARENA, 0, paths[i], false, true, 0, 0};
	mappings[PATHS] =
		(struct mw_stored_mapping){0x2000, 0x1000, MW_REGION_ARENA, 0, "[arena 12]", false, true, 0, 0};
	heaps = heaps_of(mappings, PATHS + 1, NULL, 0);
	(void)mw_heaps_names(heaps, &count);
	assert_int_equal(count, 8);
	assert_heap(heaps, 0x1010, 100, NULL);
	mw_heaps_destroy(heaps);
}

UNIT_GROUP(space)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_kinds),         cmocka_unit_test(sums_named),
		cmocka_unit_test(finds_unattributed), cmocka_unit_test(tells_what_of_blocks_is_resident),
		cmocka_unit_test(names_glibcs_heaps), cmocka_unit_test(names_other_allocators),
		cmocka_unit_test(bears_any_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
