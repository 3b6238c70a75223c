// SPDX-License-Identifier: MIT
/* range_tree.c: a treap of address ranges, without recursion (range_tree.h). */
#include "track/range_tree.h"

void mw_range_tree_init(struct mw_range_tree *tree, void (*pieces)(void *context, uint32_t owner, int change),
			void *context)
{
	mw_pool_init(&tree->ranges, sizeof(struct mw_range));
	tree->root = MW_RANGE_NONE;
	tree->random = 2463534242U;
	tree->pieces = pieces;
	tree->context = context;
}

void mw_range_tree_deinit(struct mw_range_tree *tree)
{
	mw_pool_deinit(&tree->ranges);
	tree->root = MW_RANGE_NONE;
}

struct mw_error *mw_range_tree_reserve(struct mw_range_tree *tree, uint32_t count)
{
	return mw_pool_reserve(&tree->ranges, count);
}

uint32_t mw_range_tree_after(const struct mw_range_tree *tree, mw_addr addr)
{
	uint32_t best = MW_RANGE_NONE;
	uint32_t id = tree->root;

	while (id != MW_RANGE_NONE) {
		const struct mw_range *range = mw_range_at(tree, id);

		if (range->end > addr) {
			best = id;
			id = range->left;
		} else {
			id = range->right;
		}
	}
	return best;
}

static uint32_t new_range(struct mw_range_tree *tree, mw_addr start, mw_addr end, uint32_t owner)
{
	uint32_t id = mw_pool_take(&tree->ranges);

	/* xorshift: the balance needs priorities that have nothing to do with addresses */
	tree->random ^= tree->random << 13;
	tree->random ^= tree->random >> 17;
	tree->random ^= tree->random << 5;
	*mw_range_at(tree, id) = (struct mw_range){start, end, MW_RANGE_NONE, MW_RANGE_NONE, owner, tree->random};
	return id;
}

void mw_range_tree_insert(struct mw_range_tree *tree, mw_addr start, mw_addr end, uint32_t owner)
{
	uint32_t id = new_range(tree, start, end, owner);
	struct mw_range *range = mw_range_at(tree, id);
	uint32_t *link = &tree->root, *below = &range->left, *above = &range->right;
	uint32_t rest;

	while (*link != MW_RANGE_NONE && mw_range_at(tree, *link)->priority >= range->priority) {
		struct mw_range *at = mw_range_at(tree, *link);

		link = start < at->start ? &at->left : &at->right;
	}
	/* What stood there goes below the new range, split by address. */
	rest = *link;
	*link = id;
	while (rest != MW_RANGE_NONE) {
		struct mw_range *at = mw_range_at(tree, rest);

		if (at->start < start) {
			*below = rest;
			below = &at->right;
			rest = *below;
		} else {
			*above = rest;
			above = &at->left;
			rest = *above;
		}
	}
	*below = MW_RANGE_NONE;
	*above = MW_RANGE_NONE;
}

/* Take a range out of the tree; it stays allocated. */
static void unlink_range(struct mw_range_tree *tree, uint32_t id)
{
	struct mw_range *range = mw_range_at(tree, id);
	uint32_t left = range->left, right = range->right;
	uint32_t *link = &tree->root;

	while (*link != id) {
		struct mw_range *at = mw_range_at(tree, *link);

		link = range->start < at->start ? &at->left : &at->right;
	}
	while (left != MW_RANGE_NONE && right != MW_RANGE_NONE) {
		struct mw_range *a = mw_range_at(tree, left), *b = mw_range_at(tree, right);

		if (a->priority > b->priority) {
			*link = left;
			link = &a->right;
			left = *link;
		} else {
			*link = right;
			link = &b->left;
			right = *link;
		}
	}
	*link = left != MW_RANGE_NONE ? left : right;
}

void mw_range_tree_join(struct mw_range_tree *tree, mw_addr start, mw_addr end, uint32_t owner)
{
	uint32_t before = start ? mw_range_tree_after(tree, start - 1) : MW_RANGE_NONE;
	uint32_t after = mw_range_tree_after(tree, end);
	struct mw_range *low = before == MW_RANGE_NONE ? NULL : mw_range_at(tree, before);
	struct mw_range *high = after == MW_RANGE_NONE ? NULL : mw_range_at(tree, after);
	bool joins_low = low && low->end == start && low->owner == owner;
	bool joins_high = high && high->start == end && high->owner == owner;

	if (joins_low && joins_high) {
		unlink_range(tree, after);
		low->end = high->end;
		mw_pool_give(&tree->ranges, after);
		tree->pieces(tree->context, owner, -1);
	} else if (joins_low) {
		low->end = end;
	} else if (joins_high) {
		high->start = start;
	} else {
		mw_range_tree_insert(tree, start, end, owner);
		tree->pieces(tree->context, owner, 1);
	}
}

/* Cut [start, end) out of a range that overlaps it; gives the part cut out. */
static uint32_t cut_one(struct mw_range_tree *tree, uint32_t id, mw_addr start, mw_addr end)
{
	struct mw_range *range = mw_range_at(tree, id);
	mw_addr range_end = range->end;
	uint32_t owner = range->owner;
	uint32_t part;

	if (range->start >= start && range_end <= end) {
		unlink_range(tree, id);
		return id;
	}
	if (range->start < start) {
		range->end = start;
		if (range_end > end) {
			mw_range_tree_insert(tree, end, range_end, owner);
			tree->pieces(tree->context, owner, 1);
			range_end = end;
		}
		part = new_range(tree, start, range_end, owner);
	} else {
		part = new_range(tree, range->start, end, owner);
		range->start = end;
	}
	tree->pieces(tree->context, owner, 1);
	return part;
}

uint32_t mw_range_tree_cut(struct mw_range_tree *tree, mw_addr start, mw_addr end)
{
	uint32_t first = MW_RANGE_NONE;
	uint32_t *link = &first;

	while (start < end) {
		uint32_t id = mw_range_tree_after(tree, start);

		if (id == MW_RANGE_NONE || mw_range_at(tree, id)->start >= end)
			break;
		*link = cut_one(tree, id, start, end);
		link = &mw_range_at(tree, *link)->right;
	}
	*link = MW_RANGE_NONE;
	return first;
}

uint32_t mw_range_tree_release(struct mw_range_tree *tree, uint32_t id)
{
	uint32_t next = mw_range_at(tree, id)->right;

	mw_pool_give(&tree->ranges, id);
	return next;
}
