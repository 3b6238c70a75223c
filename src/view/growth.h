/* SPDX-License-Identifier: MIT */
/* growth.h: what verdict.h wants to know of each stack, from a tracker, and its verdicts for a report. */
#ifndef MW_VIEW_GROWTH_H
#define MW_VIEW_GROWTH_H

#include "view/summary.h"

#include <memwatch/view.h>

/*
 * Fill growth of report->stacks: of those with blocks that are outstanding at the interval's end. Verdicts are about the
 * whole window, whatever the interval, where that is known: what a stack does, does not depend on where one looks.
 * `group_of`: of the tracker's stacks, theirs. Errors: MEMORY.
 */
struct mw_error *mw_view_growth(const struct mw_summary_input *input, struct mw_report *report,
				const uint32_t *group_of) MW_MUST_CHECK;

/*
 * Judge groups of the tracker's stacks: `group_of` has the group of each, or UINT32_MAX, `out` by group where its verdict
 * goes, or NULL. Errors: MEMORY.
 */
struct mw_error *mw_view_judge(const struct mw_summary_input *input, const struct mw_report *report,
			       const uint32_t *group_of, struct mw_report_growth *const *out,
			       size_t count) MW_MUST_CHECK;

#endif
