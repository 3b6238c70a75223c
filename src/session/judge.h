/* SPDX-License-Identifier: MIT */
/*
 * judge.h: whether what the user calls a failure (--fail-on) holds of what was reported.
 *
 * Errors: FOUND: it does; the text says of what, how much, and how fast. DATA: nothing of it was found, but what was seen is
 * not all that there was to see. NULL: it does not hold, or nothing was asked for. That some suspects could not be judged is
 * said on standard error.
 */
#ifndef MW_SESSION_JUDGE_H
#define MW_SESSION_JUDGE_H

#include "session/options.h"

/* `left_out`: processes that were to be watched and could not be. */
struct mw_error *mw_judge_reports(const struct mw_session_options *options, const struct mw_report *const *reports,
				  size_t count, uint64_t left_out) MW_MUST_CHECK;
/* Growth is not known of one look at a heap. Errors: USAGE. */
struct mw_error *mw_judge_can_heap(const struct mw_fail_on *fail_on) MW_MUST_CHECK;
/* Lost blocks are a leak. */
struct mw_error *mw_judge_heap(const struct mw_fail_on *fail_on, const struct mw_heap_report *heap) MW_MUST_CHECK;

#endif
