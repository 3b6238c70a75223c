/* SPDX-License-Identifier: MIT */
/*
 * range_tree.h: address ranges that do not overlap, in order, each with an owner.
 *
 * An owner may have several ranges. The tree tells (through `pieces`) when cutting or joining changes how
 * many it has; those that were cut out and not yet released count too.
 */
#ifndef MW_TRACK_RANGE_TREE_H
#define MW_TRACK_RANGE_TREE_H

#include "track/pool.h"

#include <memwatch/error.h>
#include <memwatch/types.h>

#define MW_RANGE_NONE MW_POOL_NONE
/* Ranges that one mw_range_tree_cut() needs at most beyond those that it cuts. */
#define MW_RANGE_CUT_RESERVE 2U

struct mw_range {
	mw_addr start, end;
	uint32_t left, right; /* outside the tree `right` is the next in the list of those cut out */
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
void mw_range_tree_deinit(struct mw_range_tree *tree);

static inline struct mw_range *mw_range_at(const struct mw_range_tree *tree, uint32_t id)
{
	return mw_pool_at(&tree->ranges, id);
}

/* Make sure that the next `count` new ranges cannot fail. */
struct mw_error *mw_range_tree_reserve(struct mw_range_tree *tree, uint32_t count) MW_MUST_CHECK;
/* The lowest range that ends above `addr`, or MW_RANGE_NONE. */
uint32_t mw_range_tree_after(const struct mw_range_tree *tree, mw_addr addr);
/* Put in [start, end), which overlaps nothing. Needs one reserved range. Does not call pieces(). */
void mw_range_tree_insert(struct mw_range_tree *tree, mw_addr start, mw_addr end, uint32_t owner);
/* The same, but a range of the same owner that touches it is made longer instead. Calls pieces(). */
void mw_range_tree_join(struct mw_range_tree *tree, mw_addr start, mw_addr end, uint32_t owner);
/* Cut out all that lies in [start, end), ranges at its edges in part. Gives the first of the list of ranges cut
 * out, in order, linked by `right`. Needs MW_RANGE_CUT_RESERVE reserved ranges. */
uint32_t mw_range_tree_cut(struct mw_range_tree *tree, mw_addr start, mw_addr end);
/* Forget a range that was cut out; gives the next in its list. */
uint32_t mw_range_tree_release(struct mw_range_tree *tree, uint32_t id);

#endif
