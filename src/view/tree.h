/* SPDX-License-Identifier: MIT */
/* tree.h: blocks along the calls that made them. */
#ifndef MW_VIEW_TREE_H
#define MW_VIEW_TREE_H

#include "view/arena.h"
#include "view/views.h"

/*
 * A call tree of the cells of all processes, in the arena. A node is a function (of a module) under those that called
 * it, or that it called (MW_TREE_UP): not distinguished by place in it. Shown at each level are the first `top` nodes
 * that have any block of the question's type, and at least a thousandth of the whole of what is sorted by; the others
 * are one. Which vm-internal blocks count is as in groups. Time is linear in the stacks' frames, but for sorting;
 * stacks may be of any depth. Errors: MEMORY.
 */
struct mw_error *mw_view_tree(const struct mw_view_question *question, const struct mw_view_process *processes,
			      size_t count, struct mw_arena *arena, const struct mw_tree **out) MW_MUST_CHECK;

#endif
