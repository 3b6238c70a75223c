/* SPDX-License-Identifier: MIT */
/*
 * range_tree.h: address ranges that do not overlap, in order, each with an owner.
 *
 * An owner may have several ranges. The tree tells (through `pieces`) when cutting or joining changes how
 * many it has; those that were cut out and not yet released count too.
 *
 * What is cut out is a tree as well, named by its root: it comes out, is put back and taken apart as a whole, so that
 * a call costs O(log n) however many ranges there are between its ends.
 */
#ifndef MW_TRACK_RANGE_TREE_H
#define MW_TRACK_RANGE_TREE_H

#include "track/pool.h"

#include <memwatch/error.h>
#include <memwatch/types.h>

#define MW_RANGE_NONE MW_POOL_NONE
/* Ranges that one mw_range_tree_cut() needs at most beyond those that it cuts; mw_range_tree_take() needs one. */
#define MW_RANGE_CUT_RESERVE 2U

struct mw_range {
	mw_addr start, end;
	uint64_t bytes;       /* of it and of all below it in the tree */
	uint32_t left, right; /* in a list of mw_range_tree_list() `right` is the next */
	uint32_t owner;
	uint32_t priority;
};

struct mw_range_tree {
	struct mw_pool ranges;
	uint32_t root;
	uint32_t random;
	void *context;
	void (*pieces)(void *context, uint32_t owner, int change);
};

void mw_range_tree_init(struct mw_range_tree *tree, void (*pieces)(void *context, uint32_t owner, int change),
			void *context);

static inline void mw_range_tree_deinit(struct mw_range_tree *tree)
{
	mw_pool_deinit(&tree->ranges);
	tree->root = MW_RANGE_NONE;
}

static inline struct mw_range *mw_range_at(const struct mw_range_tree *tree, uint32_t id)
{
	return mw_pool_at(&tree->ranges, id);
}

/* Make sure that the next `count` new ranges cannot fail. */
static inline MW_MUST_CHECK struct mw_error *mw_range_tree_reserve(struct mw_range_tree *tree, uint32_t count)
{
	return mw_pool_reserve(&tree->ranges, count);
}

/* The lowest range that ends above `addr`, in the tree (tree->root) or in what was cut out of it; or MW_RANGE_NONE. */
uint32_t mw_range_tree_after(const struct mw_range_tree *tree, uint32_t root, mw_addr addr);
/* The first address from `addr` on that is in no range of the tree. */
mw_addr mw_range_tree_gap(const struct mw_range_tree *tree, mw_addr addr);
/* Put in [start, end), which overlaps nothing. Needs one reserved range. Does not call pieces(). */
void mw_range_tree_insert(struct mw_range_tree *tree, mw_addr start, mw_addr end, uint32_t owner);
/* The same, but a range of the same owner that touches it becomes one with it. Calls pieces(). */
void mw_range_tree_join(struct mw_range_tree *tree, mw_addr start, mw_addr end, uint32_t owner);
/* Cut out all that lies in [start, end), ranges at its edges in part. Gives its root. Needs MW_RANGE_CUT_RESERVE
 * reserved ranges. */
uint32_t mw_range_tree_cut(struct mw_range_tree *tree, mw_addr start, mw_addr end);
/* Take all below `addr` out of what was cut out; gives the root of that. Needs one reserved range. */
uint32_t mw_range_tree_take(struct mw_range_tree *tree, uint32_t *root, mw_addr addr);
/* Put two cut out parts together, the first of which is below the other; gives the root of both. */
uint32_t mw_range_tree_append(struct mw_range_tree *tree, uint32_t low, uint32_t high);
/* Put back what was cut out; from its first byte to its last there is nothing in the tree. Ranges of the same owner
 * that touch at its edges become one. */
void mw_range_tree_put_back(struct mw_range_tree *tree, uint32_t root);
/* Make a list of what was cut out, linked by `right`, in order; gives the first. Takes time for each range. */
uint32_t mw_range_tree_list(struct mw_range_tree *tree, uint32_t root);
/* Forget a range of such a list; gives the next. */
static inline uint32_t mw_range_tree_release(struct mw_range_tree *tree, uint32_t id)
{
	uint32_t next = mw_range_at(tree, id)->right;

	mw_pool_give(&tree->ranges, id);
	return next;
}

#endif
