/* SPDX-License-Identifier: MIT */
/* leaks.h: which of a report's impacting blocks are lost, and how the others are held. */
#ifndef MW_VIEW_LEAKS_H
#define MW_VIEW_LEAKS_H

#include "view/arena.h"
#include "view/summary.h"

/*
 * Fill in `leaks` of the report and its stacks: by asking a look (input->leaks) about each live block, or from what a
 * recording has, which is of the whole window, and so not reported of a part. `group_of` as in mw_view_space(). Errors: MEMORY.
 */
struct mw_error *mw_view_leaks(const struct mw_summary_input *input, struct mw_arena *arena, struct mw_report *report,
			       const uint32_t *group_of) MW_MUST_CHECK;

#endif
