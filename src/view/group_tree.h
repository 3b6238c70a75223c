/* SPDX-License-Identifier: MIT */
/* group_tree.h: groups in the making; for group*.c only. */
#ifndef MW_VIEW_GROUP_TREE_H
#define MW_VIEW_GROUP_TREE_H

#include "base/map.h"
#include "view/group.h"
#include "view/sums.h"

struct mw_group_value {
	const char *text, *module;
	uint64_t number;
	const struct mw_report_stack *stack;
};

struct mw_group_level {
	enum mw_column column;
	struct mw_map numbering; /* of keys to values */
	struct mw_group_value *values;
	size_t capacity;
	/* The last one, in a column that a stack decides alone. */
	const struct mw_report_stack *last_stack;
	uint32_t last_value;
};

struct mw_group_node {
	uint32_t parent, value, level;
	uint32_t stack_count; /* distinct ones */
	const struct mw_report_stack *last_stack;
	struct mw_sums sums;
	struct mw_histogram lifetimes;
};

/* Node 0 is the root. */
struct mw_group_tree {
	const struct mw_view_process *processes;
	struct mw_arena *arena;
	struct mw_group_level levels[MW_COLUMN_COUNT];
	size_t level_count;
	uint32_t columns; /* bits of the levels' columns */
	struct mw_group_node *nodes;
	size_t count, capacity;
	struct mw_map numbering; /* of (parent, value) to nodes */
};

/* What of the tree is shown, in the arena. Errors: MEMORY. */
struct mw_error *mw_group_rows(const struct mw_group_tree *tree, const struct mw_view_question *question,
			       const struct mw_table **out) MW_MUST_CHECK;

#endif
