// SPDX-License-Identifier: MIT
#include "heap/dominators.h"

#include "base/cleanup.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

#define NOBODY UINT32_MAX

/* All arrays are by a node's number: the order in which a depth-first search has come to it. */
struct search {
	uint32_t count;
	uint32_t *nodes, *parents;
	uint32_t *numbers; /* by node; 0: not come to */
	uint64_t *first;   /* where its predecessors begin */
	uint32_t *predecessors;
	bool *is_root;
	/* Of semi-NCA: */
	uint32_t *ancestors, *labels, *semi;
};

static void deinit(struct search *search)
{
	free(search->nodes);
	free(search->parents);
	free(search->numbers);
	free(search->first);
	free(search->predecessors);
	free(search->is_root);
	free(search->ancestors);
	free(search->labels);
	free(search->semi);
}

static void drop_edges(struct mw_graph *graph)
{
	free(graph->first);
	free(graph->targets);
	graph->first = NULL;
	graph->targets = NULL;
}

static void come_to(struct search *search, uint32_t node, uint32_t parent)
{
	search->numbers[node] = search->count;
	search->nodes[search->count] = node;
	search->parents[search->count++] = parent;
}

/* Numbers all nodes that `root` leads to. `cursors` are by number: how many of its targets have been looked at. */
static void search_from(struct search *search, const struct mw_graph *graph, uint32_t *cursors, uint32_t root)
{
	uint32_t at;

	if (search->numbers[root] != 0)
		return;
	at = search->count;
	come_to(search, root, 0);
	while (at != 0) {
		uint32_t node = search->nodes[at];
		uint64_t next = graph->first[node] + cursors[at];

		if (next == graph->first[node + 1]) {
			at = search->parents[at];
			continue;
		}
		cursors[at]++;
		if (search->numbers[graph->targets[next]] == 0) {
			uint32_t from = at;

			at = search->count;
			come_to(search, graph->targets[next], from);
		}
	}
}

static struct mw_error *number_nodes(struct search *search, const struct mw_graph *graph)
{
	MW_FREE uint32_t *cursors = calloc((size_t)graph->nodes + 1, sizeof(*cursors));

	search->nodes = malloc(((size_t)graph->nodes + 1) * sizeof(*search->nodes));
	search->parents = malloc(((size_t)graph->nodes + 1) * sizeof(*search->parents));
	search->numbers = calloc((size_t)graph->nodes + 1, sizeof(*search->numbers));
	if (!cursors || !search->nodes || !search->parents || !search->numbers)
		return mw_error_nomem();
	search->nodes[0] = NOBODY;
	search->parents[0] = 0;
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

/* All targets of a node that was come to were come to as well. */
static struct mw_error *turn_edges(struct search *search, const struct mw_graph *graph)
{
	uint64_t sum = 0;

	search->first = calloc((size_t)search->count + 1, sizeof(*search->first));
	if (!search->first)
		return mw_error_nomem();
	for (uint32_t number = 1; number < search->count; number++)
		for (uint64_t i = graph->first[search->nodes[number]]; i < graph->first[search->nodes[number] + 1]; i++)
			search->first[search->numbers[graph->targets[i]]]++;
	for (uint32_t number = 0; number < search->count; number++) {
		sum += search->first[number];
		search->first[number] = sum;
	}
	search->first[search->count] = sum;
	search->predecessors = malloc((sum ? sum : 1) * sizeof(*search->predecessors));
	if (!search->predecessors)
		return mw_error_nomem();
	/* Each place counts down from its end to its beginning. */
	for (uint32_t number = 1; number < search->count; number++)
		for (uint64_t i = graph->first[search->nodes[number]]; i < graph->first[search->nodes[number] + 1]; i++)
			search->predecessors[--search->first[search->numbers[graph->targets[i]]]] = number;
	return NULL;
}

/*
 * The number with the lowest semidominator on the path from `number` up to those that are not linked yet, which are all
 * below `linked`. The path is compressed: each node on it is then one step below its end. `path` has room for all nodes.
 */
static uint32_t evaluate(struct search *search, uint32_t number, uint32_t linked, uint32_t *path)
{
	uint32_t *ancestors = search->ancestors, *labels = search->labels;
	const uint32_t *semi = search->semi;
	size_t depth = 0;
	uint32_t above;

	if (ancestors[number] < linked)
		return labels[number];
	do {
		path[depth++] = number;
		number = ancestors[number];
	} while (ancestors[number] >= linked);
	above = number;
	while (depth > 0) {
		number = path[--depth];
		ancestors[number] = ancestors[above];
		if (semi[labels[above]] < semi[labels[number]])
			labels[number] = labels[above];
		above = number;
	}
	return labels[number];
}

static struct mw_error *find_dominators(struct search *search, uint32_t **out)
{
	size_t size = search->count * sizeof(uint32_t);
	MW_FREE uint32_t *path = malloc(size);
	uint32_t *of;

	search->ancestors = malloc(size);
	search->labels = malloc(size);
	search->semi = malloc(size);
	if (!path || !search->ancestors || !search->labels || !search->semi)
		return mw_error_nomem();
	memcpy(search->ancestors, search->parents, size);
	for (uint32_t number = 0; number < search->count; number++)
		search->labels[number] = search->semi[number] = number;
	for (uint32_t number = search->count - 1; number > 0; number--) {
		uint32_t lowest = search->is_root[number] ? 0 : search->parents[number];

		for (uint64_t i = search->first[number]; i < search->first[number + 1]; i++) {
			uint32_t semi = search->semi[evaluate(search, search->predecessors[i], number + 1, path)];

			if (semi < lowest)
				lowest = semi;
		}
		search->semi[number] = lowest;
	}
	of = MW_TAKE(search->parents);
	for (uint32_t number = 1; number < search->count; number++)
		while (of[number] > search->semi[number])
			of[number] = of[of[number]];
	*out = of;
	return NULL;
}

static struct mw_error *compute(struct search *search, struct mw_graph *graph, struct mw_dominators *out)
{
	uint32_t *of = NULL;

	MW_TRY(number_nodes(search, graph));
	MW_TRY(turn_edges(search, graph));
	drop_edges(graph);
	MW_TRY(find_dominators(search, &of));
	*out = (struct mw_dominators){search->count, MW_TAKE(search->nodes), of};
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
