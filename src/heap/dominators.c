// SPDX-License-Identifier: MIT
#include "heap/dominators.h"

#include "base/cleanup.h"

#include <stdlib.h>

#define NOBODY UINT32_MAX

#define AHEAD                                                                                                          \
	16u /* nodes whose memory is fetched before it is their turn: each waits for several words from all over */

/* Of semi-NCA, together: who asks for one asks for the others. */
struct vertex {
	uint32_t dominator; /* at first its parent in the search */
	uint32_t ancestor, label, semi;
};

/* All but `numbers` are by a node's number: the order in which a depth-first search has come to it. */
struct search {
	uint32_t count;
	uint32_t *nodes;
	struct vertex *vertices;
	uint32_t *numbers; /* by node; 0: not come to */
	uint64_t *first;   /* where its predecessors begin */
	uint32_t *predecessors;
	bool *is_root;
};

static void deinit(struct search *search)
{
	free(search->nodes);
	free(search->vertices);
	free(search->numbers);
	free(search->first);
	free(search->predecessors);
	free(search->is_root);
}

static void drop_edges(struct mw_graph *graph)
{
	free(graph->first);
	free(graph->targets);
	graph->first = NULL;
	graph->targets = NULL;
}

static void come_to(struct search *search, const struct mw_graph *graph, uint32_t node, uint32_t parent)
{
	uint64_t end = graph->first[node + 1];

	for (uint64_t i = graph->first[node]; i < end && i < graph->first[node] + AHEAD; i++)
		__builtin_prefetch(&search->numbers[graph->targets[i]]);
	search->numbers[node] = search->count;
	search->nodes[search->count] = node;
	search->vertices[search->count++].dominator = parent;
}

/* Numbers all nodes that `root` leads to. `cursors` are by number: how many of its targets have been looked at. */
static void search_from(struct search *search, const struct mw_graph *graph, uint32_t *cursors, uint32_t root)
{
	uint32_t at;

	if (search->numbers[root] != 0)
		return;
	at = search->count;
	come_to(search, graph, root, 0);
	while (at != 0) {
		uint32_t node = search->nodes[at];
		uint64_t next = graph->first[node] + cursors[at];

		if (next == graph->first[node + 1]) {
			at = search->vertices[at].dominator;
			continue;
		}
		cursors[at]++;
		if (search->numbers[graph->targets[next]] == 0) {
			uint32_t from = at;

			at = search->count;
			come_to(search, graph, graph->targets[next], from);
		}
	}
}

static struct mw_error *number_nodes(struct search *search, const struct mw_graph *graph)
{
	MW_FREE uint32_t *cursors = calloc((size_t)graph->nodes + 1, sizeof(*cursors));

	search->nodes = malloc(((size_t)graph->nodes + 1) * sizeof(*search->nodes));
	search->vertices = malloc(((size_t)graph->nodes + 1) * sizeof(*search->vertices));
	search->numbers = calloc((size_t)graph->nodes + 1, sizeof(*search->numbers));
	if (!cursors || !search->nodes || !search->vertices || !search->numbers)
		return mw_error_nomem();
	search->nodes[0] = NOBODY;
	search->vertices[0].dominator = 0;
	search->count = 1;
	for (size_t i = 0; i < graph->root_count; i++)
		search_from(search, graph, cursors, graph->roots[i]);
	search->is_root = calloc(search->count, sizeof(*search->is_root));
	if (!search->is_root)
		return mw_error_nomem();
	for (size_t i = 0; i < graph->root_count; i++)
		search->is_root[search->numbers[graph->roots[i]]] = true;
	return NULL;
}

/* All targets of a node that was come to were come to as well. They are numbers from here on. */
static struct mw_error *turn_edges(struct search *search, const struct mw_graph *graph)
{
	uint64_t sum = 0;

	search->first = calloc((size_t)search->count + 1, sizeof(*search->first));
	if (!search->first)
		return mw_error_nomem();
	for (uint32_t node = 0; node < graph->nodes; node++) {
		if (search->numbers[node] == 0)
			continue;
		for (uint64_t i = graph->first[node]; i < graph->first[node + 1]; i++) {
			graph->targets[i] = search->numbers[graph->targets[i]];
			search->first[graph->targets[i]]++;
		}
	}
	for (uint32_t number = 0; number < search->count; number++) {
		sum += search->first[number];
		search->first[number] = sum;
	}
	search->first[search->count] = sum;
	search->predecessors = malloc((sum ? sum : 1) * sizeof(*search->predecessors));
	if (!search->predecessors)
		return mw_error_nomem();
	/* Each place counts down from its end to its beginning. */
	for (uint32_t node = 0; node < graph->nodes; node++)
		for (uint64_t i = graph->first[node]; search->numbers[node] && i < graph->first[node + 1]; i++)
			search->predecessors[--search->first[graph->targets[i]]] = search->numbers[node];
	return NULL;
}

/*
 * The number with the lowest semidominator on the path from `number` up to those that are not linked yet, which are all
 * below `linked`. The path is compressed: each node on it is then one step below its end. `path` has room for all nodes.
 */
static uint32_t evaluate(struct vertex *vertices, uint32_t number, uint32_t linked, uint32_t *path)
{
	size_t depth = 0;
	uint32_t above;

	if (vertices[number].ancestor < linked)
		return vertices[number].label;
	do {
		path[depth++] = number;
		number = vertices[number].ancestor;
	} while (vertices[number].ancestor >= linked);
	above = number;
	while (depth > 0) {
		number = path[--depth];
		vertices[number].ancestor = vertices[above].ancestor;
		if (vertices[vertices[above].label].semi < vertices[vertices[number].label].semi)
			vertices[number].label = vertices[above].label;
		above = number;
	}
	return vertices[number].label;
}

static void prefetch_predecessors(const struct search *search, uint32_t number)
{
	for (uint64_t i = search->first[number]; i < search->first[number + 1] && i < search->first[number] + AHEAD;
	     i++)
		__builtin_prefetch(&search->vertices[search->predecessors[i]]);
}

static struct mw_error *find_dominators(struct search *search)
{
	struct vertex *vertices = search->vertices;
	MW_FREE uint32_t *path = malloc(search->count * sizeof(*path));

	if (!path)
		return mw_error_nomem();
	for (uint32_t number = 0; number < search->count; number++) {
		vertices[number].ancestor = vertices[number].dominator;
		vertices[number].label = vertices[number].semi = number;
	}
	for (uint32_t number = search->count - 1; number > 0; number--) {
		uint32_t lowest = search->is_root[number] ? 0 : vertices[number].dominator;

		if (number > AHEAD)
			prefetch_predecessors(search, number - AHEAD);
		for (uint64_t i = search->first[number]; i < search->first[number + 1]; i++) {
			uint32_t semi = vertices[evaluate(vertices, search->predecessors[i], number + 1, path)].semi;

			if (semi < lowest)
				lowest = semi;
		}
		vertices[number].semi = lowest;
	}
	for (uint32_t number = 1; number < search->count; number++)
		while (vertices[number].dominator > vertices[number].semi)
			vertices[number].dominator = vertices[vertices[number].dominator].dominator;
	return NULL;
}

static struct mw_error *compute(struct search *search, struct mw_graph *graph, struct mw_dominators *out)
{
	uint32_t *of;

	MW_TRY(number_nodes(search, graph));
	MW_TRY(turn_edges(search, graph));
	drop_edges(graph);
	MW_TRY(find_dominators(search));
	of = malloc(search->count * sizeof(*of));
	if (!of)
		return mw_error_nomem();
	for (uint32_t number = 0; number < search->count; number++)
		of[number] = search->vertices[number].dominator;
	*out = (struct mw_dominators){.count = search->count, .of = of};
	out->nodes = MW_TAKE(search->nodes);
	return NULL;
}

struct mw_error *mw_dominators_compute(struct mw_graph *graph, struct mw_dominators *out)
{
	struct search search = {0};
	struct mw_error *err = compute(&search, graph, out);

	deinit(&search);
	drop_edges(graph);
	return err;
}

void mw_dominators_deinit(struct mw_dominators *dominators)
{
	free(dominators->nodes);
	free(dominators->of);
	*dominators = (struct mw_dominators){0};
}
