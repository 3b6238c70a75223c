/* SPDX-License-Identifier: MIT */
/*
 * missing.h: what a report does not show, so that nobody takes its silence for health: names of functions, runtimes
 * that keep their objects by themselves, growth that no block explains; and how long the process can grow on.
 */
#ifndef MW_VIEW_MISSING_H
#define MW_VIEW_MISSING_H

#include "view/arena.h"
#include "view/summary.h"

/* Growth of the RSS is unexplained where more than that many bytes and more than a quarter of it are. */
#define MW_RSS_LEAST (UINT64_C(4) << 20)

/* All of it, once the report has its stacks, suspects, samples and address space. Errors: MEMORY. */
struct mw_error *mw_view_missing(const struct mw_summary_input *input, struct mw_arena *arena,
				 struct mw_report *report) MW_MUST_CHECK;

#endif
