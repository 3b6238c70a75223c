// SPDX-License-Identifier: MIT
/* test_retained.c: the tree of who retains how much, against what is lost where a root's pointers are taken away. */
#include "heap/retained.h"

#include "unit.h"
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROOTS      3u
#define BLOCKS     120u
#define ROOT(i)    (UINT64_C(0x333300000000) + (i)*UINT64_C(0x10000))
#define NAME       "anonymous memory from 0x3333000%d0000 on"
#define WORDS(i)   (3 + 2 * ((i) % 3)) /* of a block: 24, 40 or 56 bytes */
#define ROOT_WORDS 2u

static struct mw_heap_report *look(const struct world *world)
{
	struct mw_heap_report *report = calloc(1, sizeof(*report));
	struct mw_reach_options options = {.threads = 2, .holders = true, .number_root = mw_root_number};
	struct mw_findings found = {.image = &world->image, .blocks = world->blocks};
	struct mw_modules *modules;
	struct mw_root_names *names;
	struct mw_reached *reached;

	assert_non_null(report);
	assert_null(mw_modules_create(&modules));
	assert_null(mw_classes_create(&world->image, modules, &found.classes));
	assert_null(mw_root_names_create(&world->image, found.classes, modules, &names));
	options.number_context = names;
	reached = world_reach(world, &options);
	found.names = names;
	found.reached = reached;
	assert_null(mw_retained(&found, 10, report));
	mw_reached_destroy(reached);
	mw_root_names_destroy(names);
	mw_classes_destroy(found.classes);
	mw_modules_destroy(modules);
	return report;
}

static void expect(const struct mw_heap_report *report, size_t at, uint32_t depth, const char *name, uint64_t own,
		   uint64_t retained, uint64_t bytes)
{
	const struct mw_heap_holder *holder = &report->holders[at];

	assert_true(at < report->holder_count);
	assert_string_equal(holder->name, name);
	assert_int_equal(holder->depth, depth);
	assert_int_equal(holder->own.count, own);
	assert_int_equal(holder->retained.count, retained);
	assert_int_equal(holder->retained.bytes, bytes);
}

/* A list of nodes each of which has another block; what a second root points to as well; and a lost pair. */
static void test_list(void **state)
{
	enum { NODES = 1000 };
	struct world world;
	struct mw_heap_report *report;
	mw_addr last = 0, node, shared, lost;

	(void)state;
	world_init(&world, 1 << 20, true);
	world_map(&world, ROOT(0), 4096, WORLD_READ | WORLD_WRITE, "");
	world_map(&world, ROOT(1), 4096, WORLD_READ | WORLD_WRITE, "");
	for (unsigned i = 0; i < NODES; i++, last = node) {
		node = world_block(&world, 24);
		world_poke(&world, node, last);
		world_poke(&world, node + 8, world_block(&world, 40));
	}
	shared = world_block(&world, 56);
	lost = world_block(&world, 72);
	world_poke(&world, ROOT(0), last);
	world_poke(&world, ROOT(0) + 8, shared);
	world_poke(&world, ROOT(1), shared);
	world_poke(&world, lost, world_block(&world, 88));
	world_finish(&world);
	report = look(&world);
	expect(report, 0, 0, "anonymous memory from 0x333300000000 on", 0, 2 * NODES, NODES * 64);
	expect(report, 1, 1, "block of 24 bytes", NODES, 2 * NODES, NODES * 64);
	expect(report, 2, 2, "block of 40 bytes", NODES, NODES, NODES * 40);
	expect(report, 3, 0, "nothing: lost blocks", 0, 2, 160);
	expect(report, 4, 1, "block of 72 bytes", 1, 2, 160);
	expect(report, 5, 2, "block of 88 bytes", 1, 1, 88);
	expect(report, 6, 0, "several roots", 0, 1, 56);
	expect(report, 7, 1, "block of 56 bytes", 1, 1, 56);
	assert_int_equal(report->holder_count, 8);
	mw_heap_report_destroy(report);
	world_deinit(&world);
}

struct graph {
	struct world world;
	mw_addr blocks[BLOCKS];
	uint32_t targets[BLOCKS][7]; /* BLOCKS: none */
	uint32_t roots[ROOTS][ROOT_WORDS];
	uint64_t random;
};

static uint32_t roll(struct graph *graph, uint32_t sides)
{
	graph->random ^= graph->random << 13;
	graph->random ^= graph->random >> 7;
	graph->random ^= graph->random << 17;
	return (uint32_t)(graph->random % sides);
}

static void make(struct graph *graph, uint64_t seed)
{
	memset(graph, 0, sizeof(*graph));
	graph->random = seed * 0x9e3779b97f4a7c15;
	world_init(&graph->world, 1 << 16, true);
	for (unsigned i = 0; i < BLOCKS; i++)
		graph->blocks[i] = world_block(&graph->world, 8 * WORDS(i));
	for (unsigned i = 0; i < BLOCKS; i++) {
		for (unsigned k = 0; k < WORDS(i); k++) {
			graph->targets[i][k] = roll(graph, 4) ? BLOCKS : roll(graph, BLOCKS);
			if (graph->targets[i][k] < BLOCKS)
				world_poke(&graph->world, graph->blocks[i] + 8 * k,
					   graph->blocks[graph->targets[i][k]]);
		}
	}
	for (unsigned i = 0; i < ROOTS; i++) {
		world_map(&graph->world, ROOT(i), 4096, WORLD_READ | WORLD_WRITE, "");
		for (unsigned k = 0; k < ROOT_WORDS; k++) {
			graph->roots[i][k] = roll(graph, BLOCKS);
			world_poke(&graph->world, ROOT(i) + 8 * k, graph->blocks[graph->roots[i][k]]);
		}
	}
	world_finish(&graph->world);
}

/* Marks what all roots but one lead to. */
static void mark_without(const struct graph *graph, unsigned root, bool marked[BLOCKS])
{
	uint32_t queue[BLOCKS + ROOTS * ROOT_WORDS], count = 0;

	memset(marked, 0, BLOCKS * sizeof(*marked));
	for (unsigned i = 0; i < ROOTS; i++)
		for (unsigned k = 0; k < ROOT_WORDS && i != root; k++)
			if (!marked[graph->roots[i][k]]) {
				marked[graph->roots[i][k]] = true;
				queue[count++] = graph->roots[i][k];
			}
	for (uint32_t next = 0; next < count; next++)
		for (unsigned k = 0; k < WORDS(queue[next]); k++) {
			uint32_t to = graph->targets[queue[next]][k];

			if (to < BLOCKS && !marked[to]) {
				marked[to] = true;
				queue[count++] = to;
			}
		}
}

static struct mw_amount retained_by(const struct mw_heap_report *report, const char *name)
{
	for (size_t i = 0; i < report->holder_count; i++)
		if (report->holders[i].depth == 0 && strcmp(report->holders[i].name, name) == 0)
			return report->holders[i].retained;
	return (struct mw_amount){0};
}

static void check_amount(struct mw_amount found, struct mw_amount expected)
{
	assert_int_equal(found.count, expected.count);
	assert_int_equal(found.bytes, expected.bytes);
}

/* What a holder retains is its own and what those below it retain, where none of them is left out. */
static void check_sums(const struct mw_heap_report *report)
{
	for (size_t i = 0; i < report->holder_count; i++) {
		const struct mw_heap_holder *holder = &report->holders[i];
		struct mw_amount sum = holder->own;

		for (size_t k = i + 1; k < report->holder_count && report->holders[k].depth > holder->depth; k++)
			if (report->holders[k].depth == holder->depth + 1)
				mw_amount_add(&sum, report->holders[k].retained);
		if (holder->depth + 1 < MW_HEAP_HOLDER_LEVELS)
			check_amount(holder->retained, sum);
	}
}

static void check(struct graph *graph)
{
	struct mw_heap_report *report = look(&graph->world);
	struct mw_amount several = {0}, lost = {0};
	bool all[BLOCKS], marked[ROOTS][BLOCKS];
	char name[80];

	mark_without(graph, ROOTS, all);
	for (unsigned root = 0; root < ROOTS; root++)
		mark_without(graph, root, marked[root]);
	for (unsigned root = 0; root < ROOTS; root++) {
		struct mw_amount retained = {0};

		for (unsigned i = 0; i < BLOCKS; i++)
			if (all[i] && !marked[root][i])
				mw_amount_add(&retained, (struct mw_amount){1, 8 * WORDS(i)});
		snprintf(name, sizeof(name), NAME, (int)root);
		check_amount(retained_by(report, name), retained);
	}
	for (unsigned i = 0; i < BLOCKS; i++) {
		bool one = false;

		for (unsigned root = 0; root < ROOTS; root++)
			one = one || (all[i] && !marked[root][i]);
		if (!one)
			mw_amount_add(all[i] ? &several : &lost, (struct mw_amount){1, 8 * WORDS(i)});
	}
	check_amount(retained_by(report, "several roots"), several);
	check_amount(retained_by(report, "nothing: lost blocks"), lost);
	check_sums(report);
	mw_heap_report_destroy(report);
}

static void test_random(void **state)
{
	struct graph *graph = malloc(sizeof(*graph));

	(void)state;
	assert_non_null(graph);
	for (uint64_t seed = 1; seed <= 200; seed++) {
		make(graph, seed);
		check(graph);
		world_deinit(&graph->world);
	}
	free(graph);
}

UNIT_GROUP(retained)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
