/* SPDX-License-Identifier: MIT */
/*
 * filter.h: which blocks are meant: terms, `and`, `or`, `not`, parentheses.
 *
 *     function:parse and size:>=4K        module:libcache or module:libpool
 *     not thread:worker                   function:~^shop::(Order|Basket)
 *     stack:00c0ffee (api:malloc or api:calloc)     "operator new" type:transient
 *
 * Terms side by side are joined by `and`, which binds closer than `or`; `not` binds closest. A term is FIELD:VALUE, or
 * a word that a function's or module's name contains. Values with blanks or parentheses stand in quotes, "" or ''.
 *
 *     function: module: line: api: thread: heap: process:   a part of the name, case counts; ~ before it makes it an
 *                             extended regular expression. function and module look at every frame of the stack, line
 *                             at the function and at file:number of the line that it is charged to. thread takes a
 *                             thread id, process a process id too
 *     language:               of that line: native, python, …
 *     size:                   bytes of one block: 4096, 1K-64K (both included), >=1M, <100; K, M, G, T are powers of 1024
 *     kind:                   heap, vm, vm-internal
 *     type:                   impacting, transient, aofi, aofo
 *     stack:                  the first digits of a stack id
 *
 * What is unknown (a size, a name) is no match. Bounded: MW_FILTER_LENGTH bytes, MW_FILTER_TERMS terms, no recursion.
 */
#ifndef MW_VIEW_FILTER_H
#define MW_VIEW_FILTER_H

#include "view/cells.h"
#include "view/space.h"

#define MW_FILTER_LENGTH 4096u
#define MW_FILTER_TERMS  64u

/* Columns that are the same for all blocks of a stack. */
#define MW_COLUMNS_OF_STACKS                                                                                           \
	(1u << MW_COLUMN_MODULE | 1u << MW_COLUMN_FUNCTION | 1u << MW_COLUMN_STACK | 1u << MW_COLUMN_API |             \
	 1u << MW_COLUMN_LINE | 1u << MW_COLUMN_LANGUAGE)

struct mw_filter;

/* Errors: USAGE, which names the place and says what would be right; MEMORY. */
struct mw_error *mw_filter_parse(const char *text, struct mw_filter **out) MW_MUST_CHECK;
void mw_filter_destroy(struct mw_filter *filter);
/* As it was given. */
const char *mw_filter_text(const struct mw_filter *filter);
/* What it looks at: bits 1 << MW_COLUMN_… */
uint32_t mw_filter_columns(const struct mw_filter *filter);
/* Does a term ask for vm-internal blocks? They are left out of views otherwise: the heap's blocks lie in them. */
bool mw_filter_names_internal(const struct mw_filter *filter);

/* Which terms are true of such a block, as bits; of other things' terms it tells nothing. */
uint64_t mw_filter_block(const struct mw_filter *filter, enum mw_kind kind, enum mw_fate fate, uint64_t bytes);

/* For whoever has no blocks but what sums them: the terms that are true of a stack, of a thread, heap or process (`field`) with
 * that number and name, as bits; and whether the filter is true where these terms are, and no others. */
uint64_t mw_filter_stack(const struct mw_filter *filter, const struct mw_report_stack *stack);
uint64_t mw_filter_name(const struct mw_filter *filter, enum mw_column field, uint64_t number, const char *name);
bool mw_filter_is_true(const struct mw_filter *filter, uint64_t terms);

/* --- a process as the views of it see it, and which of its blocks are meant ------------------------------- */

struct mw_blocklist;

struct mw_view_thread {
	pid_t tid;
	const char *name;
};

/* All is borrowed. Numbers that lie outside of their array are of things unknown. */
struct mw_view_process {
	const struct mw_report *report;
	const struct mw_cells *cells;      /* NULL: none */
	const struct mw_cells *samples;    /* likewise, for exports */
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
static inline size_t mw_process_stack_index(const struct mw_view_process *process, uint32_t stack)
{
	uint32_t index = stack < process->stack_count ? process->stack_of[stack] : UINT32_MAX;

	return index < process->report->stack_count ? index : process->report->stack_count;
}

/* NULL where unknown. */
static inline const struct mw_report_stack *mw_process_stack(const struct mw_view_process *process, uint32_t stack)
{
	size_t index = mw_process_stack_index(process, stack);

	return index < process->report->stack_count ? &process->report->stacks[index] : NULL;
}

static inline const struct mw_view_thread *mw_process_thread(const struct mw_view_process *process, uint32_t thread)
{
	return thread < process->thread_count ? &process->threads[thread] : NULL;
}

static inline const char *mw_process_heap(const struct mw_view_process *process, uint32_t heap)
{
	return heap && heap < process->heap_count ? process->heaps[heap] : NULL;
}

#endif
