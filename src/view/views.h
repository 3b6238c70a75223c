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

#include "view/blocklist.h"
#include "view/cells.h"
#include "view/filter.h"
#include "view/selection.h"

#include <memwatch/table.h>

struct mw_view_question {
	enum mw_column by[MW_COLUMN_COUNT]; /* each at most once */
	size_t by_count;                    /* 0: no groups */
	enum mw_tree_direction tree;
	size_t blocks; /* 0: none */
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

#endif
