/* SPDX-License-Identifier: MIT */
/* selection.h: a process as the views of it see it, and which of its blocks are meant. */
#ifndef MW_VIEW_SELECTION_H
#define MW_VIEW_SELECTION_H

#include "view/cells.h"
#include "view/filter.h"
#include "view/space.h"

struct mw_blocklist;

struct mw_view_thread {
	pid_t tid;
	const char *name;
};

/* All is borrowed. Numbers that lie outside of their array are of things unknown. */
struct mw_view_process {
	const struct mw_report *report;
	const struct mw_cells *cells;      /* NULL: none */
	const struct mw_blocklist *blocks; /* NULL: none */
	/* For each of the tracker's stacks its index in report->stacks as they lie there now (sorted), or UINT32_MAX.
	 */
	const uint32_t *stack_of;
	size_t stack_count;
	const struct mw_view_thread *threads; /* by the tracker's number */
	size_t thread_count;
	const char *const *heaps; /* names by number; 0 is "unknown" whatever stands there */
	size_t heap_count;
	const struct mw_space_moment *end; /* what was resident where the interval ends; NULL: not known */
};

struct mw_selection {
	const struct mw_view_process *process;
	const struct mw_filter *filter; /* NULL: all are meant */
	bool internal;                  /* vm-internal blocks too: those of the heap lie in them */
	uint64_t *stacks, *threads,
		*heaps; /* bits of the filter, by number (of the report's stacks); one more for unknown */
	uint64_t name;
};

/* Errors: MEMORY. The filter may be NULL. Free by deinit. */
struct mw_error *mw_selection_init(struct mw_selection *selection, const struct mw_view_process *process,
				   const struct mw_filter *filter, bool internal) MW_MUST_CHECK;
void mw_selection_deinit(struct mw_selection *selection);

/* Only key fields of the cell count. */
bool mw_selection_takes(const struct mw_selection *selection, const struct mw_cell *cell);

/* The index in report->stacks of a tracker's stack; report->stack_count where unknown. */
size_t mw_process_stack_index(const struct mw_view_process *process, uint32_t stack);
/* NULL where unknown. */
const struct mw_report_stack *mw_process_stack(const struct mw_view_process *process, uint32_t stack);
const struct mw_view_thread *mw_process_thread(const struct mw_view_process *process, uint32_t thread);
const char *mw_process_heap(const struct mw_view_process *process, uint32_t heap);

#endif
