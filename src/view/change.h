/* SPDX-License-Identifier: MIT */
/* change.h: by what the process's memory became more or less in the window, as looks at its heap at both ends say. */
#ifndef MW_VIEW_CHANGE_H
#define MW_VIEW_CHANGE_H

#include "view/arena.h"
#include "view/summary.h"

/*
 * Fill in the report's `change`: by asking looks (input->change) about each block and mapping that is live, or from what a
 * recording has, which is of the whole window, and so not reported of a part. `group_of` as in mw_view_space(). Errors: MEMORY.
 */
struct mw_error *mw_view_change(const struct mw_summary_input *input, struct mw_arena *arena, struct mw_report *report,
				const uint32_t *group_of) MW_MUST_CHECK;

#endif
