// SPDX-License-Identifier: MIT
/* test_roots.c: what memory is a root, of whom, and what is none. */
#include "unit.h"
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define HEAP    (UINT64_C(1) << 20)
#define MAPPING UINT64_C(0x7f0000000000)
#define STACK   UINT64_C(0x7f1000000000)
#define PAGE    UINT64_C(4096)
#define RW      (WORLD_READ | WORLD_WRITE)

static const struct mw_reach_options PLAIN;

static mw_addr begin(struct world *world)
{
	world_init(world, HEAP, true);
	return world_block(world, 24);
}

static enum mw_reach verdict_with(struct world *world, mw_addr block, const struct mw_reach_options *options)
{
	struct mw_reached *reached = world_reach(world, options);
	enum mw_reach verdict = mw_reached_of(reached, world_number(world, block));

	mw_reached_destroy(reached);
	return verdict;
}

static void expect(struct world *world, mw_addr block, enum mw_reach verdict)
{
	assert_int_equal(verdict_with(world, block, &PLAIN), verdict);
}

/* A root holds it, and this is what is said of that. */
static void expect_root(struct world *world, mw_addr block, enum mw_root_kind kind, mw_addr at, pid_t tid)
{
	struct mw_reached *reached = world_reach(world, &PLAIN);
	struct mw_root root;
	uint32_t holder;
	mw_addr where;

	assert_int_equal(mw_reached_of(reached, world_number(world, block)), MW_REACH_REACHABLE);
	assert_true(mw_reached_holder(reached, world_number(world, block), &holder, &where, &root));
	assert_int_equal(holder, MW_BLOCK_NONE);
	assert_int_equal(root.kind, kind);
	assert_int_equal(root.at, at);
	assert_int_equal(where, at);
	assert_int_equal(root.tid, tid);
	mw_reached_destroy(reached);
}

/* A mapping with a pointer in its second page. */
static enum mw_reach held_by_mapping(unsigned flags, const char *path, bool device)
{
	struct world world;
	mw_addr block = begin(&world);
	enum mw_reach verdict;

	world_map(&world, MAPPING, 2 * PAGE, flags, path);
	world.mappings[2].device = device;
	world_poke(&world, MAPPING + PAGE + 40, block);
	world_finish(&world);
	verdict = verdict_with(&world, block, &PLAIN);
	world_deinit(&world);
	return verdict;
}

static void test_mappings(void **state)
{
	static const struct {
		unsigned flags;
		const char *path;
		bool device, root;
	} cases[] = {
		{RW, "", false, true},
		{WORLD_READ, "", false, true},
		{0, "", false, true},
		{RW | WORLD_EXEC, "", false, true},
		{RW | WORLD_SHARED | WORLD_FILE, "/dev/zero (deleted)", false, true},
		{RW | WORLD_SHARED | WORLD_FILE, "/var/lib/data", false, true},
		{WORLD_READ | WORLD_SHARED | WORLD_FILE, "/var/lib/data", false, false},
		{WORLD_READ | WORLD_SHARED | WORLD_FILE, "/dev/shm/data", false, true},
		{WORLD_READ | WORLD_SHARED | WORLD_FILE, "/memfd:data (deleted)", false, true},
		{RW | WORLD_FILE, "/lib/module.so", false, true},
		{WORLD_READ | WORLD_FILE, "/lib/module.so", false, true},
		{WORLD_READ | WORLD_EXEC | WORLD_FILE, "/lib/module.so", false, false},
		{RW | WORLD_SHARED | WORLD_FILE, "/dev/fb0", true, false},
		{WORLD_READ, "[vvar]", false, false},
		{WORLD_READ | WORLD_EXEC, "[vdso]", false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(held_by_mapping(cases[i].flags, cases[i].path, cases[i].device),
				 cases[i].root ? MW_REACH_REACHABLE : MW_REACH_DEFINITE);
}

static void test_names(void **state)
{
	struct world world;
	mw_addr block = begin(&world), second = world_block(&world, 24), third = world_block(&world, 24);
	mw_addr fourth = world_block(&world, 24), joined = WORLD_DATA + PAGE;

	(void)state;
	/* A page of bss, and one that the program has mapped behind it. */
	world_map(&world, joined, 2 * PAGE, RW, "");
	world_map(&world, MAPPING, PAGE, RW, "");
	for (size_t i = 0; i < world.image.mapping_count; i++)
		if (world.mappings[i].start == joined)
			world.mappings[i].bss_end = joined + PAGE;
	world_poke(&world, WORLD_DATA + 16, block);
	world_poke(&world, joined + 16, second);
	world_poke(&world, MAPPING + 24, third);
	world_poke(&world, joined + PAGE + 16, fourth);
	world_finish(&world);
	expect_root(&world, block, MW_ROOT_DATA, WORLD_DATA + 16, 0);
	expect_root(&world, second, MW_ROOT_DATA, joined + 16, 0);
	expect_root(&world, third, MW_ROOT_MAPPING, MAPPING + 24, 0);
	expect_root(&world, fourth, MW_ROOT_MAPPING, joined + PAGE + 16, 0);
	world_deinit(&world);
}

static void test_registers(void **state)
{
	struct world world;
	mw_addr block = begin(&world);
	struct mw_image_thread *thread = world_thread(&world, 100, 0, 0);

	(void)state;
	world_finish(&world);
	expect(&world, block, MW_REACH_DEFINITE);
	thread->registers[1] = block;
	expect_root(&world, block, MW_ROOT_REGISTER, 1, 100);
	thread->registers[1] = 0;
	thread->registers[MW_IMAGE_REGISTERS - 1] = block;
	expect(&world, block, MW_REACH_DEFINITE); /* it is not said to have that one */
	thread->register_count = MW_IMAGE_REGISTERS;
	expect(&world, block, MW_REACH_REACHABLE);
	world_deinit(&world);
}

/* A thread whose registers are not known may hold anything. */
static void test_unknown_registers(void **state)
{
	struct world world;
	mw_addr block = begin(&world);
	struct mw_image_thread *thread = world_thread(&world, 100, 0, 0);

	(void)state;
	thread->register_count = 0;
	world_finish(&world);
	expect(&world, block, MW_REACH_POSSIBLE);
	world.image.consistent = false;
	expect(&world, block, MW_REACH_DEFINITE);
	thread->sp = STACK; /* it is still there, and waits */
	expect(&world, block, MW_REACH_POSSIBLE);
	world_deinit(&world);
}

static void test_unreadable(void **state)
{
	struct world world;
	mw_addr block = begin(&world);
	const struct mw_image_run run = {MAPPING + PAGE, 1, MW_PAGE_SWAPPED};
	struct mw_reached *reached;

	(void)state;
	world_map(&world, MAPPING, 3 * PAGE, RW | WORLD_FILE | WORLD_LOST, "/lib/cut_short.so");
	world_finish(&world);
	expect(&world, block, MW_REACH_DEFINITE);
	/* Of a file, but the kernel has said that it is there. */
	world.image.runs = &run;
	world.image.run_count = 1;
	expect(&world, block, MW_REACH_POSSIBLE);
	world.image.runs = NULL;
	world.image.run_count = 0;
	world.image.unreadable = true;
	world.image.consistent = false;
	expect(&world, block, MW_REACH_POSSIBLE);
	world.image.unreadable = false;
	world.image.consistent = true;
	world_map(&world, STACK, 3 * PAGE, RW | WORLD_LOST, "");
	expect(&world, block, MW_REACH_POSSIBLE);
	reached = world_reach(&world, &PLAIN);
	assert_int_equal(mw_reached_unread(reached), 3 * PAGE);
	assert_int_equal(mw_reached_sums(reached)[MW_REACH_POSSIBLE].count, 1);
	mw_reached_destroy(reached);
	world_deinit(&world);
}

static void test_main_stack(void **state)
{
	struct world world;
	mw_addr block = begin(&world), sp = STACK + 5 * PAGE;
	struct mw_image_thread *thread = world_thread(&world, 100, sp, 0);

	(void)state;
	world_map(&world, STACK, 8 * PAGE, RW, "[stack]");
	world_finish(&world);
	world_poke(&world, sp + 8, block);
	expect_root(&world, block, MW_ROOT_STACK, sp + 8, 100);
	world_poke(&world, sp + 8, 0);
	world_poke(&world, sp - 128, block);
	expect_root(&world, block, MW_ROOT_STACK, sp - 128, 100);
	world_poke(&world, sp - 128, 0);
	world_poke(&world, sp - 136, block);
	expect(&world, block, MW_REACH_DEFINITE);
	/* It has left it for another one. */
	thread->sp = MAPPING + PAGE;
	expect_root(&world, block, MW_ROOT_STACK, sp - 136, 100);
	thread->sp = sp;
	expect(&world, block, MW_REACH_DEFINITE);
	/* Another thread's stack is made of it. */
	world_thread(&world, 101, STACK + PAGE, 0);
	expect(&world, block, MW_REACH_REACHABLE);
	world_deinit(&world);
}

/* As glibc lays it out: guard, stack, TLS, control block that names the stack with its guard. */
static void test_thread_stack(void **state)
{
	struct world world;
	mw_addr block = begin(&world), pointer = STACK + 8 * PAGE - 0x900, sp = STACK + 5 * PAGE;
	struct mw_image_thread *thread = world_thread(&world, 101, sp, pointer);

	(void)state;
	world_map(&world, STACK, PAGE, WORLD_LOST, "");
	world.mappings[2].inode = 1; /* nobody counts it as unread */
	world_map(&world, STACK + PAGE, 7 * PAGE, RW, "");
	world_finish(&world);
	world_poke(&world, sp - 256, block);
	expect(&world, block, MW_REACH_REACHABLE); /* its bounds are not known */
	world_poke(&world, pointer + 0x690, STACK);
	world_poke(&world, pointer + 0x698, 8 * PAGE);
	expect(&world, block, MW_REACH_DEFINITE);
	world_poke(&world, sp + 256, block);
	expect_root(&world, block, MW_ROOT_STACK, sp + 256, 101);
	world_poke(&world, sp + 256, 0);
	world_poke(&world, pointer + 0x600, block);
	expect_root(&world, block, MW_ROOT_TLS, pointer + 0x600, 101);
	world_poke(&world, pointer + 0x600, 0);
	/* A coroutine's stack elsewhere. */
	thread->sp = MAPPING;
	expect_root(&world, block, MW_ROOT_STACK, sp - 256, 101);
	world_deinit(&world);
}

/* The vector of a thread's TLS blocks is held by an address two words into it. */
static void test_vector(void **state)
{
	struct world world;
	mw_addr pointer = STACK + 2048, vector, dynamic, other;
	struct mw_image_thread *thread;

	(void)state;
	world_init(&world, HEAP, true);
	vector = world_block(&world, 72);
	dynamic = world_block(&world, 24);
	other = world_block(&world, 24);
	thread = world_thread(&world, 101, 0, pointer);
	world_map(&world, STACK, PAGE, RW, "");
	world_finish(&world);
	world_poke(&world, pointer + 8, vector + 16);
	world_poke(&world, vector, 2);
	world_poke(&world, vector + 32, pointer - 64); /* module 1: static */
	world_poke(&world, vector + 48, dynamic + 8);
	world_poke(&world, vector + 56, dynamic);
	world_poke(&world, pointer - 64, other);
	expect_root(&world, vector, MW_ROOT_TLS, pointer + 8, 101);
	expect(&world, dynamic, MW_REACH_REACHABLE);
	expect_root(&world, other, MW_ROOT_TLS, pointer - 64, 101);
	thread->thread_pointer = 0;
	expect(&world, vector, MW_REACH_POSSIBLE);
	expect_root(&world, other, MW_ROOT_MAPPING, pointer - 64, 0);
	world_deinit(&world);
}

/* A thread that runs on a block: all of the block is in use. */
static void test_stack_in_block(void **state)
{
	struct world world;
	mw_addr stack, below, above;
	struct mw_image_thread *thread;

	(void)state;
	world_init(&world, HEAP, true);
	stack = world_block(&world, 16 * PAGE - 8);
	below = world_block(&world, 24);
	above = world_block(&world, 24);
	thread = world_thread(&world, 101, stack + 3 * PAGE, 0);
	thread->register_count = 1;
	world_finish(&world);
	world_poke(&world, stack, below);
	world_poke(&world, stack + 4 * PAGE, above);
	expect_root(&world, stack, MW_ROOT_STACK, stack + 3 * PAGE, 101);
	expect(&world, below, MW_REACH_REACHABLE);
	expect(&world, above, MW_REACH_REACHABLE);
	thread->sp = thread->registers[0] = 0;
	expect(&world, stack, MW_REACH_DEFINITE);
	world_deinit(&world);
}

static void test_holes(void **state)
{
	struct world world;
	mw_addr block = begin(&world);
	const struct mw_reach_hole holes[] = {{MAPPING + 64, MAPPING + 128}, {MAPPING + PAGE, MAPPING + 2 * PAGE}};
	struct mw_reach_options options = {.holes = holes, .hole_count = 2};
	static const struct {
		uint64_t offset;
		bool root;
	} cases[] = {{56, true}, {64, false}, {120, false}, {128, true}, {4088, true}, {4096, false}, {8192, true}};

	(void)state;
	world_map(&world, MAPPING, 3 * PAGE, RW, "");
	world_finish(&world);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		world_poke(&world, MAPPING + cases[i].offset, block);
		assert_int_equal(verdict_with(&world, block, &options),
				 cases[i].root ? MW_REACH_REACHABLE : MW_REACH_DEFINITE);
		world_poke(&world, MAPPING + cases[i].offset, 0);
	}
	world_deinit(&world);
}

/* What allocators own is no root, what is passed over of it is. */
static void test_allocator_memory(void **state)
{
	struct world world;
	mw_addr block = begin(&world), freed = world_block(&world, 72);

	(void)state;
	world_map(&world, MAPPING, PAGE, RW, "");
	assert_true(mw_span_set_live(world.blocks, world.span, freed, false));
	assert_null(mw_blocks_add_bookkeeping(world.blocks, world.arena, MAPPING + 256, MAPPING + 512));
	world_finish(&world);
	world_poke(&world, freed + 8, block);
	world_poke(&world, MAPPING + 256, block);
	world_poke(&world, MAPPING + 504, block);
	world_poke(&world, block + 24, block); /* the allocator's, behind a block */
	expect(&world, block, MW_REACH_DEFINITE);
	assert_null(mw_blocks_add_skipped(world.blocks, MAPPING + 504, 8, "a test"));
	expect_root(&world, block, MW_ROOT_UNKNOWN, MAPPING + 504, 0);
	world_poke(&world, MAPPING + 504, 0);
	assert_null(mw_blocks_add_skipped(world.blocks, freed, 80, "a test"));
	expect_root(&world, block, MW_ROOT_UNKNOWN, freed + 8, 0);
	world_poke(&world, MAPPING + 512, block);
	world_poke(&world, freed + 8, 0);
	expect_root(&world, block, MW_ROOT_MAPPING, MAPPING + 512, 0);
	world_deinit(&world);
}

/* All memory of an allocator that could not be walked may hold what another one has handed out. */
static void test_unwalked(void **state)
{
	struct world world;
	mw_addr block, other = UINT64_C(0x7f4000000000);
	uint32_t allocator, arena, span;

	(void)state;
	world_init(&world, HEAP, false);
	block = world_block(&world, 24);
	world_map(&world, other, PAGE, RW, "");
	assert_null(mw_blocks_add_allocator(world.blocks, &(struct mw_heap_allocator){.name = "x", .walked = true},
					    &allocator));
	assert_null(mw_blocks_add_arena(world.blocks, allocator, "main", &arena));
	assert_null(mw_blocks_add_span(world.blocks, arena, other, other + PAGE, 256, 0, &span));
	assert_true(mw_span_set_live(world.blocks, span, other, true));
	assert_true(mw_span_set_live(world.blocks, span, other + 512, true));
	world_finish(&world);
	expect_root(&world, block, MW_ROOT_UNKNOWN, block, 0);
	expect(&world, other, MW_REACH_DEFINITE);
	world_poke(&world, WORLD_HEAP + HEAP - 64, other); /* free memory of the unknown one's */
	expect_root(&world, other, MW_ROOT_UNKNOWN, WORLD_HEAP + HEAP - 64, 0);
	expect(&world, other + 512, MW_REACH_DEFINITE);
	world_deinit(&world);
}

UNIT_GROUP(roots)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mappings),         cmocka_unit_test(test_names),
		cmocka_unit_test(test_registers),        cmocka_unit_test(test_unknown_registers),
		cmocka_unit_test(test_unreadable),       cmocka_unit_test(test_main_stack),
		cmocka_unit_test(test_thread_stack),     cmocka_unit_test(test_vector),
		cmocka_unit_test(test_stack_in_block),   cmocka_unit_test(test_holes),
		cmocka_unit_test(test_allocator_memory), cmocka_unit_test(test_unwalked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
