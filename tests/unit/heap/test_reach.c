// SPDX-License-Identifier: MIT
/* test_reach.c: each rule of what a pointer holds, with what is nearly the same and does not. */
#include "unit.h"
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DEFINITE  MW_REACH_DEFINITE
#define INDIRECT  MW_REACH_INDIRECT
#define POSSIBLE  MW_REACH_POSSIBLE
#define REACHABLE MW_REACH_REACHABLE

#define HEAP   (UINT64_C(1) << 20)
#define MODULE UINT64_C(0x7f0000000000)

static const struct mw_reach_options PLAIN;

static void expect(const struct world *world, const struct mw_reached *reached, mw_addr block, enum mw_reach verdict)
{
	assert_int_equal(mw_reached_of(reached, world_number(world, block)), verdict);
}

/* What is said of one block, with everything in place. */
static enum mw_reach verdict_with(struct world *world, mw_addr block, const struct mw_reach_options *options)
{
	struct mw_reached *reached;
	enum mw_reach verdict;

	world_finish(world);
	reached = world_reach(world, options);
	verdict = mw_reached_of(reached, world_number(world, block));
	mw_reached_destroy(reached);
	world_deinit(world);
	return verdict;
}

static enum mw_reach verdict_of(struct world *world, mw_addr block)
{
	return verdict_with(world, block, &PLAIN);
}

/* A block that the module's data points `offset` bytes into. */
static mw_addr pointed_into(struct world *world, uint64_t size, uint64_t offset)
{
	mw_addr block;

	world_init(world, HEAP, true);
	block = world_block(world, size);
	world_poke(world, WORLD_DATA, block + offset);
	return block;
}

static void test_chain(void **state)
{
	struct world world;
	mw_addr first, second, lost, hangs;
	struct mw_reached *reached;
	const struct mw_amount *sums;

	(void)state;
	world_init(&world, HEAP, true);
	first = world_block(&world, 24);
	second = world_block(&world, 40);
	lost = world_block(&world, 56);
	hangs = world_block(&world, 72);
	world_poke(&world, WORLD_DATA + 8, first);
	world_poke(&world, first + 16, second);
	world_poke(&world, lost, hangs);
	world_finish(&world);
	reached = world_reach(&world, &PLAIN);
	expect(&world, reached, first, REACHABLE);
	expect(&world, reached, second, REACHABLE);
	expect(&world, reached, lost, DEFINITE);
	expect(&world, reached, hangs, INDIRECT);
	sums = mw_reached_sums(reached);
	assert_int_equal(sums[REACHABLE].count, 2);
	assert_int_equal(sums[REACHABLE].bytes, 64);
	assert_int_equal(sums[DEFINITE].bytes, 56);
	assert_int_equal(sums[INDIRECT].bytes, 72);
	assert_int_equal(sums[POSSIBLE].count, 0);
	mw_reached_destroy(reached);
	world_deinit(&world);
}

/* What is lost leads to what is held: that stays held. */
static void test_lost_leads_to_held(void **state)
{
	struct world world;
	mw_addr held, lost;
	struct mw_reached *reached;

	(void)state;
	world_init(&world, HEAP, true);
	lost = world_block(&world, 24);
	held = world_block(&world, 24);
	world_poke(&world, lost, held);
	world_poke(&world, WORLD_DATA, held);
	world_finish(&world);
	reached = world_reach(&world, &PLAIN);
	expect(&world, reached, lost, DEFINITE);
	expect(&world, reached, held, REACHABLE);
	mw_reached_destroy(reached);
	world_deinit(&world);
}

/* A cycle that nobody holds has one head; what leads to it takes that place. */
static void test_cycles(void **state)
{
	struct world world;
	mw_addr ring[3], other[2], tail, before, alone;
	struct mw_reached *reached;
	unsigned heads = 0;

	(void)state;
	world_init(&world, HEAP, true);
	for (unsigned i = 0; i < 3; i++)
		ring[i] = world_block(&world, 24);
	for (unsigned i = 0; i < 2; i++)
		other[i] = world_block(&world, 24);
	tail = world_block(&world, 24);
	before = world_block(&world, 24);
	alone = world_block(&world, 24);
	for (unsigned i = 0; i < 3; i++)
		world_poke(&world, ring[i], ring[(i + 1) % 3]);
	world_poke(&world, ring[1] + 8, tail);
	world_poke(&world, other[0], other[1]);
	world_poke(&world, other[1], other[0]);
	world_poke(&world, before, other[1] + 8); /* into it: the same among what is lost */
	world_poke(&world, alone, alone);
	world_finish(&world);
	reached = world_reach(&world, &PLAIN);
	for (unsigned i = 0; i < 3; i++)
		heads += mw_reached_of(reached, world_number(&world, ring[i])) == DEFINITE;
	assert_int_equal(heads, 1);
	expect(&world, reached, tail, INDIRECT);
	expect(&world, reached, before, DEFINITE);
	expect(&world, reached, other[0], INDIRECT);
	expect(&world, reached, other[1], INDIRECT);
	expect(&world, reached, alone, DEFINITE);
	assert_int_equal(mw_reached_sums(reached)[DEFINITE].count, 3);
	assert_int_equal(mw_reached_sums(reached)[INDIRECT].count, 5);
	mw_reached_destroy(reached);
	world_deinit(&world);
}

static void test_interior(void **state)
{
	struct world world;
	mw_addr block, next, strong;
	struct mw_reached *reached;

	(void)state;
	block = pointed_into(&world, 88, 40);
	next = world_block(&world, 24);
	strong = world_block(&world, 24);
	world_poke(&world, block, next);
	world_poke(&world, block + 80, strong);
	world_poke(&world, WORLD_DATA + 8, strong);
	world_finish(&world);
	reached = world_reach(&world, &PLAIN);
	expect(&world, reached, block, POSSIBLE);
	expect(&world, reached, next, POSSIBLE);
	expect(&world, reached, strong, REACHABLE);
	mw_reached_destroy(reached);
	world_deinit(&world);
}

/* The last byte is the block's; one further is not, though that is the allocator's still. */
static void test_ends(void **state)
{
	struct world world;
	mw_addr block;

	(void)state;
	block = pointed_into(&world, 88, 87);
	assert_int_equal(verdict_of(&world, block), POSSIBLE);
	block = pointed_into(&world, 88, 88);
	assert_int_equal(verdict_of(&world, block), DEFINITE);
}

/* To judge the pointers before it a page is read whose place in the cache is that of the page they are in. */
static void test_pointer_behind_many(void **state)
{
	struct world world;
	mw_addr block, array, far;

	(void)state;
	world_init(&world, HEAP, true);
	array = world_block(&world, 2040);
	world_block(&world, 64 * 4096 - 2040 - 8 - 8);
	far = world_block(&world, 2040);
	block = world_block(&world, 24);
	world_poke(&world, WORLD_DATA, array);
	for (unsigned i = 0; i < 200; i++)
		world_poke(&world, array + i * sizeof(uint64_t), far + 8);
	world_poke(&world, array + 200 * sizeof(uint64_t), block);
	assert_int_equal((far - array) % (64 * 4096), 0);
	assert_int_equal(verdict_of(&world, block), REACHABLE);
}

static void test_tags(void **state)
{
	struct world world;
	mw_addr block;
	struct mw_reach_options high = {.tag_bits = UINT64_C(0xff) << 56};

	(void)state;
	for (unsigned tag = 0; tag < 8; tag++) {
		block = pointed_into(&world, 24, tag);
		assert_int_equal(verdict_of(&world, block), REACHABLE);
	}
	block = pointed_into(&world, 88, 42);
	assert_int_equal(verdict_of(&world, block), POSSIBLE);
	block = pointed_into(&world, 24, UINT64_C(0xab) << 56);
	assert_int_equal(verdict_of(&world, block), POSSIBLE);
	block = pointed_into(&world, 24, (UINT64_C(0xffff) << 48) + 3);
	assert_int_equal(verdict_of(&world, block), POSSIBLE);
	block = pointed_into(&world, 24, (UINT64_C(1) << 48) + 8);
	assert_int_equal(verdict_of(&world, block), DEFINITE);
	block = pointed_into(&world, 24, UINT64_C(1) << 47);
	assert_int_equal(verdict_of(&world, block), POSSIBLE);
	block = pointed_into(&world, 24, UINT64_C(1) << 45);
	assert_int_equal(verdict_of(&world, block), DEFINITE);
	block = pointed_into(&world, 24, UINT64_C(1) << 48);
	world_poke(&world, WORLD_DATA + 8, block);
	assert_int_equal(verdict_of(&world, block), REACHABLE);
	block = pointed_into(&world, 24, UINT64_C(0xab) << 56);
	assert_int_equal(verdict_with(&world, block, &high), REACHABLE);
	block = pointed_into(&world, 24, (UINT64_C(0xab) << 56) + 3);
	assert_int_equal(verdict_with(&world, block, &high), REACHABLE);
}

/* An address as an int of Python's has it: 30 bits in each 4 bytes. */
static void test_python_ints(void **state)
{
	struct world world;
	mw_addr block = pointed_into(&world, 24, 0);
	const struct mw_reach_options python = {.python_ints = true};

	(void)state;
	world_poke(&world, WORLD_DATA, (block >> 30) << 32 | (block & 0x3fffffff));
	assert_int_equal(verdict_of(&world, block), DEFINITE);
	block = pointed_into(&world, 24, 0);
	world_poke(&world, WORLD_DATA, (block >> 30) << 32 | (block & 0x3fffffff));
	assert_int_equal(verdict_with(&world, block, &python), POSSIBLE);
	block = pointed_into(&world, 24, 0);
	world_poke(&world, WORLD_DATA, (block >> 30) << 32 | ((block & 0x3fffffff) + 16));
	assert_int_equal(verdict_with(&world, block, &python), DEFINITE);
}

/* new[] of 5 elements of 24 bytes is 128 bytes, for which there are 136. */
static void test_cookies(void **state)
{
	static const struct {
		uint64_t offset, at, count;
		enum mw_reach verdict;
	} cases[] = {
		{8, 0, 5, REACHABLE},  {8, 0, 128, REACHABLE}, {8, 0, 129, POSSIBLE},
		{8, 0, 0, POSSIBLE},   {16, 8, 5, REACHABLE},  {16, 0, 5, POSSIBLE},
		{24, 16, 5, POSSIBLE}, {8, 0, 70, POSSIBLE},   {8, 0, UINT64_C(1) << 63, POSSIBLE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world world;
		mw_addr block = pointed_into(&world, 136, cases[i].offset);

		world_poke(&world, block + cases[i].at, cases[i].count);
		assert_int_equal(verdict_of(&world, block), cases[i].verdict);
	}
}

static enum mw_reach old_string(uint64_t length, uint64_t capacity, uint32_t references, unsigned char last)
{
	struct world world;
	mw_addr block = pointed_into(&world, 72, 24), end = block + 24 + length;

	world_poke(&world, block, length);
	world_poke(&world, block + 8, capacity);
	world_poke(&world, block + 16, references);
	if (length < 40)
		world_poke(&world, end & ~UINT64_C(7), (uint64_t)last << (end % 8 * 8));
	return verdict_of(&world, block);
}

static void test_strings(void **state)
{
	(void)state;
	assert_int_equal(old_string(11, 40, 0, 0), REACHABLE);
	assert_int_equal(old_string(11, 40, UINT32_MAX, 0), REACHABLE);
	assert_int_equal(old_string(11, 40, 0, 'x'), POSSIBLE);
	assert_int_equal(old_string(41, 40, 0, 0), POSSIBLE);
	assert_int_equal(old_string(11, 48, 0, 0), POSSIBLE);
	assert_int_equal(old_string(11, 12, 0, 0), POSSIBLE);
	assert_int_equal(old_string(11, 40, 0x80000000, 0), POSSIBLE);
}

/* Vtables of a whole object and of its base at 16. */
static mw_addr object(struct world *world, unsigned flags, uint64_t whole, uint64_t base)
{
	mw_addr block = pointed_into(world, 56, 16);

	world_map(world, MODULE, 4096, flags, "/lib/module.so");
	world_poke(world, MODULE + 64, whole);
	world_poke(world, MODULE + 128, base);
	world_poke(world, block, MODULE + 80);
	world_poke(world, block + 16, MODULE + 144);
	return block;
}

static void test_bases(void **state)
{
	struct world world;
	mw_addr block;

	(void)state;
	block = object(&world, WORLD_READ | WORLD_FILE, 0, (uint64_t)-16);
	assert_int_equal(verdict_of(&world, block), REACHABLE);
	block = object(&world, WORLD_READ | WORLD_FILE, 0, (uint64_t)-24);
	assert_int_equal(verdict_of(&world, block), POSSIBLE);
	block = object(&world, WORLD_READ | WORLD_FILE, 8, (uint64_t)-16);
	assert_int_equal(verdict_of(&world, block), POSSIBLE);
	block = object(&world, WORLD_READ, 0, (uint64_t)-16);
	assert_int_equal(verdict_of(&world, block), POSSIBLE);
}

/* A word of a mapping of two pages of these kinds, one behind the other, of which the first is larger than a window. */
static enum mw_reach held_by(unsigned first, unsigned second, uint64_t offset)
{
	const uint64_t start = UINT64_C(0x333300000000), size = UINT64_C(600) << 10;
	struct world world;
	mw_addr block;

	world_init(&world, HEAP, true);
	block = world_block(&world, 24);
	world_map(&world, start, size, first, "");
	world_map(&world, start + size, 4096, second, "");
	world_poke(&world, start + offset, block);
	return verdict_of(&world, block);
}

/* Instructions have pointers at any address. */
static void test_code(void **state)
{
	const unsigned data = WORLD_READ | WORLD_WRITE, code = WORLD_READ | WORLD_EXEC, file = code | WORLD_FILE;

	(void)state;
	assert_int_equal(held_by(data, data, 3), DEFINITE);
	for (uint64_t offset = 1; offset < 9; offset++) {
		assert_int_equal(held_by(code, data, offset), REACHABLE);
		assert_int_equal(held_by(code | WORLD_WRITE, data, offset + (UINT64_C(256) << 10) - 8), REACHABLE);
		assert_int_equal(held_by(data, code, (UINT64_C(600) << 10) - 8 - offset), REACHABLE);
	}
	assert_int_equal(held_by(data, file, 3), DEFINITE);
}

/* What the kernel keeps for the process holds blocks; where it is not known, none is lost for certain. */
static void test_kernel_words(void **state)
{
	struct mw_image_kernel_word words[2] = {{0, MW_KERNEL_EPOLL, 5}, {0, MW_KERNEL_TIMER, 0}};
	mw_addr held, lost, at;
	struct mw_reached *reached;
	struct mw_root root;
	struct world world;
	uint32_t holder;

	(void)state;
	world_init(&world, HEAP, true);
	held = world_block(&world, 24);
	lost = world_block(&world, 24);
	words[1].word = held;
	world.image.kernel_words = words;
	world.image.kernel_word_count = 2;
	world_finish(&world);
	reached = world_reach(&world, &PLAIN);
	expect(&world, reached, held, REACHABLE);
	expect(&world, reached, lost, DEFINITE);
	assert_true(mw_reached_holder(reached, world_number(&world, held), &holder, &at, &root));
	assert_int_equal(root.kind, MW_ROOT_KERNEL);
	assert_int_equal(root.at, 1);
	mw_reached_destroy(reached);
	world.image.kernel_words_hidden = true;
	reached = world_reach(&world, &PLAIN);
	expect(&world, reached, held, REACHABLE);
	expect(&world, reached, lost, POSSIBLE);
	mw_reached_destroy(reached);
	world_deinit(&world);
}

/* Of a long list backwards each level is one block. */
static void test_long_list(void **state)
{
	enum { NODES = 1000000 };
	struct world world;
	struct mw_reach_options options = {.holders = true};
	struct mw_reached *reached;
	mw_addr last = 0, at, first = 0;
	uint32_t holder, number;
	struct mw_root root;

	(void)state;
	world_init(&world, (uint64_t)NODES * 32 + 4096, true);
	for (unsigned i = 0; i < NODES; i++) {
		mw_addr node = world_block(&world, 24);

		world_poke(&world, node, last);
		last = node;
		if (i == 0)
			first = node;
	}
	world_poke(&world, WORLD_DATA, last);
	world_finish(&world);
	reached = world_reach(&world, &options);
	assert_int_equal(mw_reached_sums(reached)[REACHABLE].count, NODES);
	assert_true(world.reads < NODES / 20);
	assert_int_equal(mw_reached_retained(reached, world_number(&world, last)), (uint64_t)NODES * 24);
	assert_int_equal(mw_reached_dominator(reached, world_number(&world, last)), MW_BLOCK_NONE);
	number = world_number(&world, first);
	for (unsigned steps = 1; steps < NODES; steps++) {
		assert_true(mw_reached_holder(reached, number, &holder, &at, &root));
		assert_int_equal(mw_reached_dominator(reached, number), holder);
		assert_int_not_equal(holder, MW_BLOCK_NONE);
		number = holder;
	}
	assert_true(mw_reached_holder(reached, number, &holder, &at, &root));
	assert_int_equal(holder, MW_BLOCK_NONE);
	assert_int_equal(root.kind, MW_ROOT_DATA);
	assert_int_equal(root.at, WORLD_DATA);
	mw_reached_destroy(reached);
	/* The same without its root. */
	world_poke(&world, WORLD_DATA, 0);
	reached = world_reach(&world, &options);
	assert_int_equal(mw_reached_sums(reached)[DEFINITE].count, 1);
	assert_int_equal(mw_reached_sums(reached)[INDIRECT].count, NODES - 1);
	expect(&world, reached, last, DEFINITE);
	assert_int_equal(mw_reached_retained(reached, world_number(&world, last)), (uint64_t)NODES * 24);
	mw_reached_destroy(reached);
	world_deinit(&world);
}

/* Larger than what is read at once, and with parts that are not in memory. */
static void test_large_block(void **state)
{
	enum { COUNT = 60000 };
	static const struct mw_image_run runs[] = {{WORLD_DATA, 1, MW_PAGE_RESIDENT},
						   {WORLD_HEAP, 64, MW_PAGE_RESIDENT},
						   {WORLD_HEAP + (100 << 12), 400, MW_PAGE_SWAPPED},
						   {WORLD_HEAP + (512 << 12), 1024, MW_PAGE_RESIDENT}};
	struct world world;
	struct mw_reached *reached;
	mw_addr array, *blocks = calloc(COUNT, sizeof(*blocks));
	uint64_t held = 0;

	(void)state;
	assert_non_null(blocks);
	world_init(&world, UINT64_C(64) << 20, true);
	array = world_block(&world, (512 << 12) - WORLD_TAIL);
	world_poke(&world, WORLD_DATA, array);
	for (unsigned i = 0; i < COUNT; i++)
		blocks[i] = world_block(&world, 24);
	for (unsigned i = 0; i < COUNT; i++)
		world_poke(&world, array + 8 * i, blocks[i]);
	world_finish(&world);
	world.image.runs = runs;
	world.image.run_count = sizeof(runs) / sizeof(runs[0]);
	reached = world_reach(&world, &PLAIN);
	for (unsigned i = 0; i < COUNT; i++) {
		mw_addr page = (array + 8 * i - WORLD_HEAP) >> 12;
		bool there = page < 64 || (page >= 100 && page < 500);

		expect(&world, reached, blocks[i], there ? REACHABLE : DEFINITE);
		held += there;
	}
	assert_true(held > 0 && held < COUNT);
	assert_int_equal(mw_reached_unread(reached), 0);
	mw_reached_destroy(reached);
	world_deinit(&world);
	free(blocks);
}

/* The walls between what threads read: by one of them or by four, all is as it was. */
static void test_threads(void **state)
{
	enum { COUNT = 20000 };
	struct world world;
	struct mw_reach_options one = {.threads = 1, .holders = true}, four = {.threads = 4, .holders = true};
	struct mw_reached *by_one, *by_four;
	mw_addr *blocks = calloc(COUNT, sizeof(*blocks));
	uint32_t random = 12345;

	(void)state;
	assert_non_null(blocks);
	world_init(&world, UINT64_C(8) << 20, true);
	for (unsigned i = 0; i < COUNT; i++)
		blocks[i] = world_block(&world, 40 + i % 16 * 16);
	for (unsigned i = 0; i < COUNT; i++) {
		for (unsigned word = 0; word < 5; word++) {
			random = random * 1664525 + 1013904223;
			if (random >> 30 == 0)
				world_poke(&world, blocks[i] + 8 * word,
					   blocks[(random >> 8) % COUNT] + (word == 4 ? 24 : 0));
		}
	}
	for (unsigned i = 0; i < 10; i++)
		world_poke(&world, WORLD_DATA + 8 * i, blocks[i * 777]);
	world_finish(&world);
	by_one = world_reach(&world, &one);
	by_four = world_reach(&world, &four);
	for (unsigned i = 0; i < COUNT; i++) {
		uint32_t number = world_number(&world, blocks[i]);

		assert_int_equal(mw_reached_of(by_one, number), mw_reached_of(by_four, number));
		assert_int_equal(mw_reached_dominator(by_one, number), mw_reached_dominator(by_four, number));
		assert_int_equal(mw_reached_retained(by_one, number), mw_reached_retained(by_four, number));
	}
	assert_int_equal(mw_reached_scanned(by_one), mw_reached_scanned(by_four));
	mw_reached_destroy(by_one);
	mw_reached_destroy(by_four);
	world_deinit(&world);
	free(blocks);
}

struct shares {
	double last;
	unsigned count;
};

static void take_share(void *context, double share)
{
	struct shares *shares = context;

	assert_true(share > shares->last || share == 1);
	assert_true(share <= 1);
	shares->last = share;
	shares->count++;
}

static void test_progress(void **state)
{
	struct world world;
	struct shares shares = {0};
	/* The first thread reports; with others it may come to little. */
	struct mw_reach_options options = {.progress = take_share, .context = &shares, .holders = true, .threads = 1};

	(void)state;
	world_init(&world, UINT64_C(4) << 20, true);
	world_poke(&world, WORLD_DATA, world_block(&world, (UINT64_C(3) << 20) + 8));
	world_finish(&world);
	mw_reached_destroy(world_reach(&world, &options));
	assert_true(shares.count > 5);
	assert_true(shares.last == 1);
	world_deinit(&world);
}

static void test_nothing(void **state)
{
	struct mw_image image = {.consistent = true};
	struct mw_blocks *blocks;
	struct mw_reached *reached;
	struct mw_reach_options options = {.holders = true};
	uint32_t holder;
	mw_addr at;
	struct mw_root root;

	(void)state;
	assert_null(mw_blocks_create(&blocks));
	assert_null(mw_blocks_finish(blocks));
	assert_null(mw_reach(&image, blocks, &options, &reached));
	assert_int_equal(mw_reached_scanned(reached), 0);
	assert_false(mw_reached_holder(reached, 0, &holder, &at, &root));
	assert_int_equal(mw_reached_retained(reached, 7), 0);
	mw_reached_destroy(reached);
	mw_reached_destroy(NULL);
	mw_blocks_destroy(blocks);
}

UNIT_GROUP(reach)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chain),        cmocka_unit_test(test_lost_leads_to_held),
		cmocka_unit_test(test_cycles),       cmocka_unit_test(test_interior),
		cmocka_unit_test(test_ends),         cmocka_unit_test(test_pointer_behind_many),
		cmocka_unit_test(test_tags),         cmocka_unit_test(test_python_ints),
		cmocka_unit_test(test_cookies),      cmocka_unit_test(test_strings),
		cmocka_unit_test(test_bases),        cmocka_unit_test(test_code),
		cmocka_unit_test(test_kernel_words), cmocka_unit_test(test_long_list),
		cmocka_unit_test(test_large_block),  cmocka_unit_test(test_threads),
		cmocka_unit_test(test_progress),     cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
