/* SPDX-License-Identifier: MIT */
/*
 * growth.h: is what a stack holds a leak? A verdict in words, and the figures that it rests on.
 *
 * What is judged is the floor: the least that was outstanding in each of eight equal parts of the interval. A cache
 * that fills rises and stays; waves come back to where they were; a leak's floor goes on rising to the end.
 *
 *   too short to tell  the interval is less than a second, or what is outstanding came only in its last quarter
 *   one-off            all that is outstanding was allocated within a sixteenth of the interval
 *   churn              by the end less than half of what it has held is left, and the floor of the second half is flat
 *   plateau            the floor has not risen in the last quarter
 *   steady growth      it has, and risen in at least three parts; bursts count as much as a trickle
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
};

/* Add one series to another of the same interval. */
void mw_series_add(struct mw_track_series *sum, const struct mw_track_series *other);
/* The verdict on a series that goes up to the interval's end. */
void mw_growth_judge(const struct mw_track_series *series, const struct mw_growth_input *input,
		     struct mw_report_growth *out);
/* Fill growth of report->stacks, whose sums and ages are there. `group_of`: as mw_view_stacks() gives it. Errors:
 * MEMORY. */
struct mw_error *mw_view_growth(const struct mw_summary_input *input, struct mw_report *report,
				const uint32_t *group_of) MW_MUST_CHECK;

#endif
