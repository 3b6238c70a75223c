// SPDX-License-Identifier: MIT
/*
 * test_reach_random.c: random graphs, against searches over plain lists of their edges: verdicts, the fewest steps to each
 * holder, and dominators by taking one block after another away.
 */
#include "unit.h"
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FAR   UINT32_MAX
#define SIZE  104u
#define WORDS (SIZE / 8)
#define ROOTS 64u

struct arrow {
	uint32_t to;
	bool exact;
};

/* Blocks are numbered in the order in which they were made; `from` of a root is `count`. */
struct model {
	struct world world;
	uint32_t count, random;
	mw_addr *blocks;
	uint32_t *of; /* by the number of mw_blocks: the block here */
	struct arrow (*arrows)[WORDS];
	unsigned *arrow_counts;
	struct arrow roots[ROOTS];
	unsigned root_count;
	uint32_t *strong, *weak; /* steps from a root */
	enum mw_reach *said;
	uint32_t *queue;
};

static uint32_t roll(struct model *model, uint32_t sides)
{
	model->random = model->random * 1664525 + 1013904223;
	return (uint32_t)(((uint64_t)model->random * sides) >> 32);
}

/* Exact, with a tag, or into the block: elsewhere than where a cookie, a string or a base could be. */
static uint64_t word_for(struct model *model, uint32_t to, bool *exact)
{
	*exact = roll(model, 8) != 0;
	return model->blocks[to] + (*exact ? roll(model, 4) == 0 ? roll(model, 8) : 0 : 32 + roll(model, SIZE - 32));
}

static void make(struct model *model, uint32_t count, unsigned density, uint32_t seed)
{
	*model = (struct model){.count = count, .random = seed};
	model->blocks = calloc(count, sizeof(*model->blocks));
	model->of = calloc(count + 1, sizeof(*model->of));
	model->arrows = calloc(count, sizeof(*model->arrows));
	model->arrow_counts = calloc(count, sizeof(*model->arrow_counts));
	model->strong = calloc(count, sizeof(*model->strong));
	model->weak = calloc(count, sizeof(*model->weak));
	model->said = calloc(count, sizeof(*model->said));
	model->queue = calloc(count, sizeof(*model->queue));
	world_init(&model->world, (uint64_t)count * (SIZE + 8) + 4096, true);
	for (uint32_t i = 0; i < count; i++)
		model->blocks[i] = world_block(&model->world, SIZE);
	for (uint32_t i = 0; i < count; i++) {
		for (unsigned word = 0; word < WORDS; word++) {
			struct arrow arrow;

			if (roll(model, 100 * WORDS) >= density)
				continue;
			/* Most near by, so that there are trees and cycles of all sizes. */
			arrow.to = roll(model, 4) ? (i + roll(model, 50)) % count : roll(model, count);
			world_poke(&model->world, model->blocks[i] + 8 * word, word_for(model, arrow.to, &arrow.exact));
			model->arrows[i][model->arrow_counts[i]++] = arrow;
		}
	}
	for (unsigned i = 0; i < 1 + roll(model, ROOTS); i++) {
		struct arrow arrow = {.to = roll(model, count)};

		world_poke(&model->world, WORLD_DATA + 8 * i, word_for(model, arrow.to, &arrow.exact));
		model->roots[model->root_count++] = arrow;
	}
	world_finish(&model->world);
	for (uint32_t i = 0; i < count; i++)
		model->of[world_number(&model->world, model->blocks[i])] = i;
}

static struct mw_reached *look(struct model *model, const struct mw_reach_options *options)
{
	struct mw_reached *reached = world_reach(&model->world, options);

	for (uint32_t i = 0; i < model->count; i++)
		model->said[i] = mw_reached_of(reached, world_number(&model->world, model->blocks[i]));
	return reached;
}

static void deinit(struct model *model)
{
	world_deinit(&model->world);
	free(model->blocks);
	free(model->of);
	free(model->arrows);
	free(model->arrow_counts);
	free(model->strong);
	free(model->weak);
	free(model->said);
	free(model->queue);
}

static void lower(uint32_t *distance, uint32_t value, bool *changed)
{
	if (value < *distance) {
		*distance = value;
		*changed = true;
	}
}

/* By relaxing all edges until nothing changes. */
static void measure(struct model *model)
{
	bool changed = true;

	for (uint32_t i = 0; i < model->count; i++)
		model->strong[i] = model->weak[i] = FAR;
	for (unsigned i = 0; i < model->root_count; i++)
		(model->roots[i].exact ? model->strong : model->weak)[model->roots[i].to] = 0;
	for (int weakly = 0; weakly < 2; weakly++, changed = true) {
		while (changed) {
			changed = false;
			for (uint32_t i = 0; i < model->count; i++) {
				for (unsigned k = 0; k < model->arrow_counts[i]; k++) {
					struct arrow arrow = model->arrows[i][k];

					if (!weakly && arrow.exact && model->strong[i] != FAR)
						lower(&model->strong[arrow.to], model->strong[i] + 1, &changed);
					if (!weakly || model->strong[arrow.to] != FAR)
						continue;
					if (model->strong[i] != FAR)
						lower(&model->weak[arrow.to], model->strong[i] + 1, &changed);
					else if (model->weak[i] != FAR)
						lower(&model->weak[arrow.to], model->weak[i] + 1, &changed);
				}
			}
		}
	}
}

/* Mark what `start` leads to by any pointers, itself as well; not through what is marked. */
static void mark(struct model *model, uint32_t start, bool *marked)
{
	uint32_t count = 0;

	if (marked[start])
		return;
	marked[start] = true;
	model->queue[count++] = start;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = model->queue[i];

		for (unsigned k = 0; k < model->arrow_counts[at]; k++) {
			if (marked[model->arrows[at][k].to])
				continue;
			marked[model->arrows[at][k].to] = true;
			model->queue[count++] = model->arrows[at][k].to;
		}
	}
}

static bool lost(const struct model *model, uint32_t block)
{
	return model->strong[block] == FAR && model->weak[block] == FAR;
}

/* Each head leads to no other head, and together they lead to all that is lost: so each component that nothing else leads
 * to has one. */
static void check_lost(struct model *model)
{
	bool *all = calloc(model->count, sizeof(*all)), *others = calloc(model->count, sizeof(*others));

	for (uint32_t i = 0; i < model->count; i++) {
		if (model->said[i] != MW_REACH_DEFINITE)
			continue;
		mark(model, i, all);
		memset(others, 0, model->count * sizeof(*others));
		mark(model, i, others);
		for (uint32_t k = 0; k < model->count; k++)
			if (k != i && others[k])
				assert_int_not_equal(model->said[k], MW_REACH_DEFINITE);
	}
	for (uint32_t i = 0; i < model->count; i++)
		assert_true(!lost(model, i) || all[i]);
	free(all);
	free(others);
}

/* Follow holders to a root: as many steps as are needed, each from where a pointer is. */
static uint32_t steps_of(struct model *model, const struct mw_reached *reached, uint32_t block)
{
	struct mw_root root;
	struct mw_block found;
	uint32_t steps = 0, holder;
	mw_addr at;

	for (;; steps++) {
		uint32_t number = world_number(&model->world, model->blocks[block]);

		assert_true(mw_reached_holder(reached, number, &holder, &at, &root));
		assert_true(mw_blocks_find(model->world.blocks, world_peek(&model->world, at), &found));
		assert_int_equal(found.number, number);
		if (holder == MW_BLOCK_NONE)
			break;
		block = model->of[holder];
		assert_true(at >= model->blocks[block] && at < model->blocks[block] + SIZE);
		assert_true(steps < model->count);
	}
	assert_int_equal(root.kind, MW_ROOT_DATA);
	return steps;
}

static void check_verdicts(struct model *model, const struct mw_reached *reached)
{
	struct mw_amount sums[MW_REACH_COUNT] = {0};

	measure(model);
	for (uint32_t i = 0; i < model->count; i++) {
		enum mw_reach said = model->said[i];

		sums[said].count++;
		sums[said].bytes += SIZE;
		if (model->strong[i] != FAR) {
			assert_int_equal(said, MW_REACH_REACHABLE);
			assert_int_equal(steps_of(model, reached, i), model->strong[i]);
		} else if (model->weak[i] != FAR) {
			assert_int_equal(said, MW_REACH_POSSIBLE);
			assert_int_equal(steps_of(model, reached, i), model->weak[i]);
		} else {
			assert_true(said == MW_REACH_DEFINITE || said == MW_REACH_INDIRECT);
		}
	}
	assert_memory_equal(sums, mw_reached_sums(reached), sizeof(sums));
}

static void test_verdicts(void **state)
{
	static const struct {
		uint32_t count;
		unsigned density; /* pointers of 100 blocks */
	} cases[] = {{10000, 60}, {10000, 100}, {10000, 200}, {3000, 30}, {3000, 500}, {50, 100}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mw_reach_options options = {.threads = 2};
		struct mw_reached *reached;
		struct model model;

		make(&model, cases[i].count, cases[i].density, 17 + (uint32_t)i);
		reached = look(&model, &options);
		check_verdicts(&model, reached);
		check_lost(&model);
		mw_reached_destroy(reached);
		deinit(&model);
	}
}

static bool is_held(const struct model *model, uint32_t block)
{
	return model->said[block] == MW_REACH_REACHABLE || model->said[block] == MW_REACH_POSSIBLE;
}

/* Mark what roots lead to without one block, and of what is lost what its heads do. */
static void mark_without(struct model *model, uint32_t block, bool *marked)
{
	bool *lost = calloc(model->count, sizeof(*lost));

	memset(marked, 0, model->count * sizeof(*marked));
	if (block < model->count)
		marked[block] = true;
	for (unsigned i = 0; i < model->root_count; i++)
		mark(model, model->roots[i].to, marked);
	for (uint32_t i = 0; i < model->count; i++)
		lost[i] = i == block || is_held(model, i);
	for (uint32_t i = 0; i < model->count; i++)
		if (model->said[i] == MW_REACH_DEFINITE)
			mark(model, i, lost);
	for (uint32_t i = 0; i < model->count; i++)
		marked[i] = marked[i] || (lost[i] && !is_held(model, i));
	free(lost);
}

static void check_dominators(struct model *model, const struct mw_reached *reached)
{
	uint32_t *dominators = malloc(model->count * sizeof(*dominators));
	uint32_t *sizes = malloc(model->count * sizeof(*sizes));
	bool *marked = calloc(model->count, sizeof(*marked));

	memset(dominators, 0xff, model->count * sizeof(*dominators));
	mark_without(model, model->count, marked);
	for (uint32_t i = 0; i < model->count; i++)
		assert_true(marked[i]);
	for (uint32_t i = 0; i < model->count; i++) {
		mark_without(model, i, marked);
		sizes[i] = 1;
		for (uint32_t k = 0; k < model->count; k++)
			sizes[i] += !marked[k];
		assert_int_equal(mw_reached_retained(reached, world_number(&model->world, model->blocks[i])),
				 (uint64_t)sizes[i] * SIZE);
		/* Of those without which it can't be reached, the nearest one dominates the fewest. */
		for (uint32_t k = 0; k < model->count; k++)
			if (!marked[k] && (dominators[k] == FAR || sizes[i] < sizes[dominators[k]]))
				dominators[k] = i;
	}
	for (uint32_t i = 0; i < model->count; i++) {
		uint32_t said = mw_reached_dominator(reached, world_number(&model->world, model->blocks[i]));

		assert_int_equal(said == MW_BLOCK_NONE ? FAR : model->of[said], dominators[i]);
	}
	free(dominators);
	free(sizes);
	free(marked);
}

static void dominators_of(uint32_t count, unsigned density, uint32_t seed)
{
	struct mw_reach_options options = {.threads = 2, .holders = true};
	struct mw_reached *reached;
	struct model model;

	make(&model, count, density, seed);
	reached = look(&model, &options);
	check_dominators(&model, reached);
	mw_reached_destroy(reached);
	deinit(&model);
}

static void test_dominators(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < 200; seed++)
		dominators_of(5 + seed, 80 + seed % 7 * 20, seed);
	dominators_of(10000, 110, 1);
}

UNIT_GROUP(reach_random)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_dominators),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
