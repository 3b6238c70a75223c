/* SPDX-License-Identifier: MIT */
/* growth.h: what verdict.h wants to know of each stack, from a tracker, and its verdicts for a report. */
#ifndef MW_VIEW_GROWTH_H
#define MW_VIEW_GROWTH_H

#include "view/summary.h"

#include <memwatch/view.h>

/*
 * Fill growth of report->stacks: of those with blocks that are outstanding in the interval. Verdicts are about the whole
 * window, whatever the interval: what is known of a stack does not depend on where one looks. `group_of`: as
 * mw_view_stacks() gives it. Errors: MEMORY.
 */
struct mw_error *mw_view_growth(const struct mw_summary_input *input, struct mw_report *report,
				const uint32_t *group_of) MW_MUST_CHECK;

#endif
