/* SPDX-License-Identifier: MIT */
/* samples.h: the cells of a process by stack and thread, for exports. */
#ifndef MW_VIEW_SAMPLES_H
#define MW_VIEW_SAMPLES_H

#include "view/filter.h"

#include <memwatch/export.h>

/* How cells must have been collected for it. */
struct mw_cells_options mw_samples_cells(const struct mw_filter *filter);

/* Those that the filter (NULL: all) takes, without vm-internal ones unless it names these, in the order of the report's
 * stacks; malloc'ed, they borrow from the process. Errors: MEMORY. */
struct mw_error *mw_samples_make(const struct mw_view_process *process, const struct mw_filter *filter,
				 struct mw_export_sample **out, size_t *count) MW_MUST_CHECK;

#endif
