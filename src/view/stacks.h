/* SPDX-License-Identifier: MIT */
/* stacks.h: the stacks of a report, made from those of the tracker. */
#ifndef MW_VIEW_STACKS_H
#define MW_VIEW_STACKS_H

#include "view/arena.h"
#include "view/summary.h"

/*
 * Fill report->stacks, in no order yet. Tracker stacks of one id (the same
 * file mapped twice, or unloaded and loaded again) become one. `*group_of` is malloc'ed: for each
 * tracker stack its index in report->stacks, or UINT32_MAX for one that nothing is counted under.
 * Errors: MEMORY.
 */
struct mw_error *mw_view_stacks(const struct mw_summary_input *input, struct mw_arena *arena, struct mw_report *report,
				uint32_t **group_of) MW_MUST_CHECK;

#endif
