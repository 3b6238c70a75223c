/* SPDX-License-Identifier: MIT */
/*
 * views.h: more than the report: groups, call trees and blocks of an interval.
 *
 * Use: make cells (mw_cells_create) with mw_view_cells_options() where that is true, and a list of blocks
 * (mw_blocklist_create) where question.blocks is not 0; when the interval begins, let the tracker tell both every
 * fate; at its end, the survivors; then make the report, and ask mw_views_create().
 */
#ifndef MW_VIEW_VIEWS_H
#define MW_VIEW_VIEWS_H

#include "view/arena.h"
#include "view/blocklist.h"
#include "view/cells.h"
#include "view/filter.h"

#include <memwatch/table.h>

struct mw_view_question {
	enum mw_column by[MW_COLUMN_COUNT]; /* each at most once */
	size_t by_count;                    /* 0: no groups */
	enum mw_tree_direction tree;
	enum mw_frames frames; /* of the tree */
	size_t blocks;         /* 0: none */
	enum mw_fate type;
	enum mw_sort sort;
	size_t top;                     /* rows at each level */
	const struct mw_filter *filter; /* NULL: none; must outlive the making of the views only */
};

/* What cells need to tell apart for that question. False: no cells are needed. The caller sets heap_of. */
bool mw_view_cells_options(const struct mw_view_question *question, struct mw_cells_options *out);

/* Answer about one or more processes. The views point to the reports' stacks. Errors: MEMORY. */
struct mw_error *mw_views_create(const struct mw_view_question *question, const struct mw_view_process *processes,
				 size_t count, struct mw_views **out) MW_MUST_CHECK;

/* --- for the views themselves ----------------------------------------------------------------------------- */

/*
 * A table of the cells of all processes, in the arena. At each level the first `top` rows that have any block of the
 * question's type are shown, the others are one row. vm-internal blocks count only where kinds are a column, or where
 * the filter names theirs: the heap's blocks lie in them.
 *
 * The function of a stack is that of the innermost frame of the module that it is charged to, but for templates and
 * wrappers of the language's library that were compiled into that module. Its line is that of suspects. Errors: MEMORY.
 */
struct mw_error *mw_view_groups(const struct mw_view_question *question, const struct mw_view_process *processes,
				size_t count, struct mw_arena *arena, const struct mw_table **out) MW_MUST_CHECK;

/* Is a function of that (demangled) name one that compilers put into everybody's code? */
bool mw_view_is_library(const char *function);

#endif
