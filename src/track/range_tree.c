// SPDX-License-Identifier: MIT
/* range_tree.c: a treap of address ranges, without recursion (range_tree.h). */
#include "track/range_tree.h"

#include <sys/random.h>

void mw_range_tree_init(struct mw_range_tree *tree, void (*pieces)(void *context, uint32_t owner, int change),
			void *context)
{
	mw_pool_init(&tree->ranges, sizeof(struct mw_range));
	tree->root = MW_RANGE_NONE;
	/* Whoever could foresee the priorities could choose addresses that make a list of the tree. */
	if (getrandom(&tree->random, sizeof(tree->random), GRND_NONBLOCK) != (ssize_t)sizeof(tree->random) ||
	    tree->random == 0)
		tree->random = 2463534242U;
	tree->pieces = pieces;
	tree->context = context;
}

uint32_t mw_range_tree_after(const struct mw_range_tree *tree, uint32_t root, mw_addr addr)
{
	uint32_t best = MW_RANGE_NONE;

	while (root != MW_RANGE_NONE) {
		const struct mw_range *range = mw_range_at(tree, root);

		if (range->end > addr) {
			best = root;
			root = range->left;
		} else {
			root = range->right;
		}
	}
	return best;
}

static uint64_t bytes_of(const struct mw_range_tree *tree, uint32_t root)
{
	return root == MW_RANGE_NONE ? 0 : mw_range_at(tree, root)->bytes;
}

/* How many bytes below `addr` have an owner. */
static uint64_t bytes_below(const struct mw_range_tree *tree, uint32_t root, mw_addr addr)
{
	uint64_t bytes = 0;

	while (root != MW_RANGE_NONE) {
		const struct mw_range *range = mw_range_at(tree, root);

		if (range->start >= addr) {
			root = range->left;
			continue;
		}
		bytes += bytes_of(tree, range->left);
		if (range->end > addr)
			return bytes + (addr - range->start);
		bytes += range->end - range->start;
		root = range->right;
	}
	return bytes;
}

mw_addr mw_range_tree_gap(const struct mw_range_tree *tree, mw_addr addr)
{
	uint64_t below = bytes_below(tree, tree->root, addr), passed = 0;
	uint32_t id = tree->root;
	mw_addr gap = addr;

	/* Between `addr` and a range's end there is no gap if there are as many bytes with an owner as there are bytes.
	 */
	while (id != MW_RANGE_NONE) {
		const struct mw_range *range = mw_range_at(tree, id);
		uint64_t upto = passed + bytes_of(tree, range->left) + (range->end - range->start);

		if (range->end > addr && upto - below != range->end - addr) {
			id = range->left;
			continue;
		}
		if (range->end > addr)
			gap = range->end;
		passed = upto;
		id = range->right;
	}
	return gap;
}

static uint32_t new_range(struct mw_range_tree *tree, mw_addr start, mw_addr end, uint32_t owner)
{
	uint32_t id = mw_pool_take(&tree->ranges);

	/* xorshift: the balance needs priorities that have nothing to do with addresses */
	tree->random ^= tree->random << 13;
	tree->random ^= tree->random >> 17;
	tree->random ^= tree->random << 5;
	*mw_range_at(tree, id) =
		(struct mw_range){start, end, end - start, MW_RANGE_NONE, MW_RANGE_NONE, owner, tree->random};
	return id;
}

uint32_t mw_range_tree_append(struct mw_range_tree *tree, uint32_t low, uint32_t high)
{
	uint32_t root = MW_RANGE_NONE;
	uint32_t *link = &root;

	while (low != MW_RANGE_NONE && high != MW_RANGE_NONE) {
		struct mw_range *a = mw_range_at(tree, low), *b = mw_range_at(tree, high);

		if (a->priority >= b->priority) {
			a->bytes += b->bytes;
			*link = low;
			link = &a->right;
			low = *link;
		} else {
			b->bytes += a->bytes;
			*link = high;
			link = &b->left;
			high = *link;
		}
	}
	*link = low != MW_RANGE_NONE ? low : high;
	return root;
}

/* What is below `addr`, and what is not; no range lies across it. */
static void split_between(struct mw_range_tree *tree, uint32_t root, mw_addr addr, uint32_t *low, uint32_t *high)
{
	uint64_t below = bytes_below(tree, root, addr); /* of those that are yet to be split */

	while (root != MW_RANGE_NONE) {
		struct mw_range *range = mw_range_at(tree, root);

		if (range->start < addr) {
			uint64_t upto = bytes_of(tree, range->left) + (range->end - range->start);

			range->bytes = below;
			below -= upto;
			*low = root;
			low = &range->right;
			root = *low;
		} else {
			range->bytes -= below;
			*high = root;
			high = &range->left;
			root = *high;
		}
	}
	*low = MW_RANGE_NONE;
	*high = MW_RANGE_NONE;
}

/* Take all above `addr` off a range of the tree that lies across it, into a new one. MW_RANGE_NONE: none does. */
static uint32_t halve(struct mw_range_tree *tree, uint32_t root, mw_addr addr)
{
	uint32_t id = mw_range_tree_after(tree, root, addr);
	struct mw_range *range = id == MW_RANGE_NONE ? NULL : mw_range_at(tree, id);
	mw_addr end;

	if (!range || range->start >= addr)
		return MW_RANGE_NONE;
	end = range->end;
	while (root != id) {
		struct mw_range *at = mw_range_at(tree, root);

		at->bytes -= end - addr;
		root = range->start < at->start ? at->left : at->right;
	}
	range->bytes -= end - addr;
	range->end = addr;
	tree->pieces(tree->context, range->owner, 1);
	return new_range(tree, addr, end, range->owner);
}

/* Needs one reserved range. */
static void split(struct mw_range_tree *tree, uint32_t root, mw_addr addr, uint32_t *low, uint32_t *high)
{
	uint32_t upper = halve(tree, root, addr);

	split_between(tree, root, addr, low, high);
	*high = mw_range_tree_append(tree, upper, *high);
}

void mw_range_tree_insert(struct mw_range_tree *tree, mw_addr start, mw_addr end, uint32_t owner)
{
	uint32_t id = new_range(tree, start, end, owner), low, high;

	split_between(tree, tree->root, start, &low, &high);
	tree->root = mw_range_tree_append(tree, mw_range_tree_append(tree, low, id), high);
}

uint32_t mw_range_tree_cut(struct mw_range_tree *tree, mw_addr start, mw_addr end)
{
	uint32_t low, middle, high;

	if (start >= end)
		return MW_RANGE_NONE;
	split(tree, tree->root, start, &low, &high);
	split(tree, high, end, &middle, &high);
	tree->root = mw_range_tree_append(tree, low, high);
	return middle;
}

uint32_t mw_range_tree_take(struct mw_range_tree *tree, uint32_t *root, mw_addr addr)
{
	uint32_t low, high;

	split(tree, *root, addr, &low, &high);
	*root = high;
	return low;
}

/* Take the last range out of a tree that is not empty. */
static uint32_t take_last(struct mw_range_tree *tree, uint32_t *root)
{
	uint32_t id = *root;
	struct mw_range *range;

	while (mw_range_at(tree, id)->right != MW_RANGE_NONE)
		id = mw_range_at(tree, id)->right;
	range = mw_range_at(tree, id);
	for (; *root != id; root = &mw_range_at(tree, *root)->right)
		mw_range_at(tree, *root)->bytes -= range->end - range->start;
	*root = range->left;
	range->left = MW_RANGE_NONE;
	range->bytes = range->end - range->start;
	return id;
}

/* Give the first range of a tree back, which is not empty. */
static void drop_first(struct mw_range_tree *tree, uint32_t *root)
{
	uint32_t id = mw_range_tree_after(tree, *root, 0);
	const struct mw_range *range = mw_range_at(tree, id);

	for (; *root != id; root = &mw_range_at(tree, *root)->left)
		mw_range_at(tree, *root)->bytes -= range->end - range->start;
	*root = range->right;
	mw_pool_give(&tree->ranges, id);
}

/* As mw_range_tree_append(), but where they touch they may become one range. */
static uint32_t join(struct mw_range_tree *tree, uint32_t low, uint32_t high)
{
	uint32_t id, next;
	struct mw_range *range;
	const struct mw_range *above;

	if (low == MW_RANGE_NONE || high == MW_RANGE_NONE)
		return mw_range_tree_append(tree, low, high);
	id = take_last(tree, &low);
	next = mw_range_tree_after(tree, high, 0);
	range = mw_range_at(tree, id);
	above = mw_range_at(tree, next);
	if (range->end == above->start && range->owner == above->owner) {
		range->end = above->end;
		range->bytes = range->end - range->start;
		drop_first(tree, &high);
		tree->pieces(tree->context, range->owner, -1);
	}
	low = mw_range_tree_append(tree, low, id);
	return mw_range_tree_append(tree, low, high);
}

void mw_range_tree_put_back(struct mw_range_tree *tree, uint32_t root)
{
	uint32_t first = mw_range_tree_after(tree, root, 0), low, high;

	if (first == MW_RANGE_NONE)
		return;
	split_between(tree, tree->root, mw_range_at(tree, first)->start, &low, &high);
	tree->root = join(tree, join(tree, low, root), high);
}

void mw_range_tree_join(struct mw_range_tree *tree, mw_addr start, mw_addr end, uint32_t owner)
{
	tree->pieces(tree->context, owner, 1);
	mw_range_tree_put_back(tree, new_range(tree, start, end, owner));
}

uint32_t mw_range_tree_list(struct mw_range_tree *tree, uint32_t root)
{
	uint32_t first = MW_RANGE_NONE;
	uint32_t *link = &first;

	/* What has something on its left goes to the right of that. */
	while (root != MW_RANGE_NONE) {
		struct mw_range *range = mw_range_at(tree, root);
		uint32_t left = range->left;

		if (left == MW_RANGE_NONE) {
			*link = root;
			link = &range->right;
			root = *link;
			continue;
		}
		range->left = mw_range_at(tree, left)->right;
		mw_range_at(tree, left)->right = root;
		root = left;
	}
	*link = MW_RANGE_NONE;
	return first;
}
