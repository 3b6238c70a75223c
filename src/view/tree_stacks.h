/* SPDX-License-Identifier: MIT */
/* tree_stacks.h: the stacks that a call tree is made of, as rows of numbers; for tree*.c only. */
#ifndef MW_VIEW_TREE_STACKS_H
#define MW_VIEW_TREE_STACKS_H

#include "base/map.h"
#include "view/sums.h"
#include "view/tree.h"

/* What a number on a path stands for. */
struct mw_tree_frame {
	const char *cut, *function, *module;
	uint64_t offset;
};

/* A stack, or all blocks without one: the numbers of its frames in the tree's direction, and its sums. */
struct mw_tree_path {
	size_t begin; /* among the numbers */
	size_t length;
	struct mw_sums sums;
};

struct mw_tree_stacks {
	struct mw_arena *arena; /* of the strings */
	struct mw_map numbering;
	struct mw_tree_frame *frames;
	size_t frame_capacity;
	uint32_t *numbers;
	size_t number_count, number_capacity;
	struct mw_tree_path *paths;
	size_t path_count, path_capacity;
};

/* Zeroed but for the arena. Deinit after failures too. Errors: MEMORY. */
struct mw_error *mw_tree_stacks_fill(struct mw_tree_stacks *stacks, const struct mw_view_question *question,
				     const struct mw_view_process *processes, size_t count) MW_MUST_CHECK;
void mw_tree_stacks_deinit(struct mw_tree_stacks *stacks);

#endif
