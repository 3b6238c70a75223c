/* SPDX-License-Identifier: MIT */
/* reports.h: from watched processes to what is written of them: their reports, views and timelines. */
#ifndef MW_SESSION_REPORTS_H
#define MW_SESSION_REPORTS_H

#include "session/outputs.h"
#include "view/watched.h"

/* What is asked for. All is borrowed. */
struct mw_reports_wish {
	const struct mw_view_question *question; /* NULL: the reports alone */
	bool timelines;
	struct mw_progress *progress;
};

struct mw_reports {
	struct mw_reports_wish wish;
	size_t count;
	struct mw_watched_interval interval;
	struct mw_watched **watched;    /* by process, those that are reported on already; borrowed */
	struct mw_report **items;       /* … */
	struct mw_timeline **timelines; /* NULL: that one could not be made */
	struct mw_views *views;         /* of all; the first report has them */
};

/* Zeroed ones get their memory, for so many processes. Errors: MEMORY; deinit in any case. */
struct mw_error *mw_reports_init(struct mw_reports *reports, const struct mw_reports_wish *wish,
				 size_t count) MW_MUST_CHECK;
void mw_reports_deinit(struct mw_reports *reports);
/* Have a process collect what is asked for of an interval that is yet to begin. `known`: its metadata is all there; else
 * its window has not begun. `to_ns` 0: where it ends is not known. Errors: MEMORY. */
struct mw_error *mw_reports_collect(const struct mw_reports *reports, struct mw_watched *watched, bool known,
				    uint64_t from_ns, uint64_t to_ns) MW_MUST_CHECK;
/* The report on that one: the interval is over. Errors: MEMORY. */
struct mw_error *mw_reports_make(struct mw_reports *reports, size_t process, struct mw_watched *watched) MW_MUST_CHECK;
/* When all are made: write all that there is. Errors: those of the views and the outputs. */
struct mw_error *mw_reports_write(struct mw_reports *reports, struct mw_outputs *outputs) MW_MUST_CHECK;

#endif
