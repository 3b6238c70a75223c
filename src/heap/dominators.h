/* SPDX-License-Identifier: MIT */
/*
 * dominators.h: the dominator tree of a directed graph.
 *
 * A node dominates another one if every path from the roots to that one leads through it; the last such node before it is
 * its immediate dominator.
 */
#ifndef MW_HEAP_DOMINATORS_H
#define MW_HEAP_DOMINATORS_H

#include <memwatch/error.h>
#include <memwatch/types.h>

struct mw_graph {
	uint32_t nodes;
	uint64_t *first;   /* [nodes + 1]: where a node's targets begin */
	uint32_t *targets; /* [first[nodes]] */
	const uint32_t *roots;
	size_t root_count; /* a root may be given several times */
};

struct mw_dominators {
	uint32_t count;  /* nodes that a root leads to, and one more: number 0 stands for what holds the roots */
	uint32_t *nodes; /* by number: the node; each comes after its dominator. Of 0: UINT32_MAX */
	uint32_t *of;    /* by number: the number of its immediate dominator */
};

/* By the semi-NCA algorithm (Georgiadis, Tarjan): without recursion, in memory of 28 bytes a node and 4 an edge. Takes
 * the graph's `first` and `targets` and frees them, also on failure. Errors: MEMORY. */
struct mw_error *mw_dominators_compute(struct mw_graph *graph, struct mw_dominators *out) MW_MUST_CHECK;
void mw_dominators_deinit(struct mw_dominators *dominators);

#endif
