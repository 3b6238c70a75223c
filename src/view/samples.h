/* SPDX-License-Identifier: MIT */
/* samples.h: the cells of a process by stack and thread, and the events that they sum up, for exports. */
#ifndef MW_VIEW_SAMPLES_H
#define MW_VIEW_SAMPLES_H

#include "view/watched.h"

#include <memwatch/export.h>

/* How cells must have been collected for it. */
struct mw_cells_options mw_samples_cells(const struct mw_filter *filter);

/* Those that the filter (NULL: all) takes, without vm-internal ones unless it names these, in the order of the report's
 * stacks; malloc'ed, they borrow from the process. Errors: MEMORY. */
struct mw_error *mw_samples_make(const struct mw_view_process *process, const struct mw_filter *filter,
				 struct mw_export_sample **out, size_t *count) MW_MUST_CHECK;

/* Who takes the events of these blocks. */
struct mw_samples_events {
	struct mw_view_process process;
	struct mw_selection selection;
	struct mw_collector *collector;
	const struct mw_track *track;
	bool heaps; /* the filter asks for them */
	mw_export_take *take;
	void *context;
};

/* Before the process is read again, which is to be watched then: of that view of it. Errors: MEMORY; deinit frees. */
struct mw_error *mw_samples_events_init(struct mw_samples_events *events, struct mw_watched *watched,
					const struct mw_view_process *process,
					const struct mw_filter *filter) MW_MUST_CHECK;
void mw_samples_events_deinit(struct mw_samples_events *events);
/* The interval begins in a reading with the same events as that which the view is of. */
void mw_samples_events_watch(struct mw_samples_events *events, struct mw_track *track);

#endif
