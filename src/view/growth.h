/* SPDX-License-Identifier: MIT */
/*
 * growth.h: is what a stack holds a leak? A verdict in words, and the figures that it rests on.
 *
 * What is judged is what has settled: outstanding blocks that are older than nearly all of the stack's freed ones were
 * when they were freed (half as old again as 99 % of them; any age where less than one in nine is freed). Younger ones
 * may yet be freed like those. So neither noise nor waves hide a leak, or look like one. The settled part of the
 * interval, in which such blocks can have been born, is looked at in sixteen parts.
 *
 *   steady growth      blocks settled in three places or more, up to the end: bursts count as much as a trickle. Or
 *                      none of them gets old, and the level rises up to the end without falling back: a buffer that is
 *                      reallocated again and again
 *   plateau            nothing (less than a sixteenth) settled in the last quarter of its time, which is longer than
 *                      any pause before; or the level stays although blocks settle: old ones go for them; or blocks are
 *                      freed only after an eighth of the interval or more, and the level stays
 *   churn              it comes and goes: less than a sixteenth of what is outstanding has settled, and it lives
 *                      shortly, or half of the most that was outstanding has been given back at a time
 *   one-off            all that settled was allocated within a sixteenth of the interval
 *   too short to tell  the interval is less than a second; or all that is outstanding is from the last quarter, and
 *                      more of it than was ever freed; or blocks get so old before they are freed that less than a
 *                      quarter of the interval can have settled; or they settled in fewer than three places
 */
#ifndef MW_VIEW_GROWTH_H
#define MW_VIEW_GROWTH_H

#include "track/track.h"
#include "view/summary.h"

#include <memwatch/view.h>

/* What is known of a stack, beside its series. */
struct mw_growth_input {
	double from, seconds;  /* the interval's begin, seconds since the window's, and its length */
	double oldest, newest; /* outstanding block's birth, seconds since the window's begin */
	struct mw_amount size, impacting, transient;
	double freed_by; /* age of which 99 % of the freed blocks were, seconds */
};

#define MW_GROWTH_PARTS 16

/* The settled blocks of a stack, by when they were born. */
struct mw_growth_settled {
	double from, length; /* of the time they can be of: seconds since the window's begin; length <= 0: none can */
	double oldest, newest;
	struct mw_amount parts[MW_GROWTH_PARTS], sum;
};

void mw_growth_settled_init(struct mw_growth_settled *settled, const struct mw_growth_input *input);
/* An outstanding block, or a piece of one; `first`: counts as a block. */
void mw_growth_settled_add(struct mw_growth_settled *settled, double born, uint64_t bytes, bool first);

/* The verdict on a stack, from a series that goes up to the interval's end, and all that has settled. */
void mw_growth_judge(const struct mw_track_series *series, const struct mw_growth_input *input,
		     const struct mw_growth_settled *settled, struct mw_report_growth *out);
/* Fill growth of report->stacks, whose sums and ages are there. `group_of`: as mw_view_stacks() gives it. Errors:
 * MEMORY. */
struct mw_error *mw_view_growth(const struct mw_summary_input *input, struct mw_report *report,
				const uint32_t *group_of) MW_MUST_CHECK;

#endif
