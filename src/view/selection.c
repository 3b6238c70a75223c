// SPDX-License-Identifier: MIT
/* selection.c: a filter asked once of each stack, thread and heap, not of each block (selection.h). */
#include "view/selection.h"

#include <stdlib.h>

size_t mw_process_stack_index(const struct mw_view_process *process, uint32_t stack)
{
	uint32_t index = stack < process->stack_count ? process->stack_of[stack] : UINT32_MAX;

	return index < process->report->stack_count ? index : process->report->stack_count;
}

const struct mw_report_stack *mw_process_stack(const struct mw_view_process *process, uint32_t stack)
{
	size_t index = mw_process_stack_index(process, stack);

	return index < process->report->stack_count ? &process->report->stacks[index] : NULL;
}

const struct mw_view_thread *mw_process_thread(const struct mw_view_process *process, uint32_t thread)
{
	return thread < process->thread_count ? &process->threads[thread] : NULL;
}

const char *mw_process_heap(const struct mw_view_process *process, uint32_t heap)
{
	return heap && heap < process->heap_count ? process->heaps[heap] : NULL;
}

struct mw_error *mw_selection_init(struct mw_selection *selection, const struct mw_view_process *process,
				   const struct mw_filter *filter, bool internal)
{
	const struct mw_report *report = process->report;

	*selection = (struct mw_selection){.process = process, .filter = filter, .internal = internal};
	if (!filter)
		return NULL;
	selection->internal = internal || mw_filter_names_internal(filter);
	selection->stacks = calloc(report->stack_count + 1, sizeof(*selection->stacks));
	selection->threads = calloc(process->thread_count + 1, sizeof(*selection->threads));
	selection->heaps = calloc(process->heap_count + 1, sizeof(*selection->heaps));
	if (!selection->stacks || !selection->threads || !selection->heaps) {
		mw_selection_deinit(selection);
		return mw_error_nomem();
	}
	selection->name = mw_filter_process(filter, report->target.pid, report->target.comm);
	for (size_t i = 0; i < report->stack_count; i++)
		selection->stacks[i] = mw_filter_stack(filter, &report->stacks[i]);
	for (size_t i = 0; i < process->thread_count; i++)
		selection->threads[i] = mw_filter_thread(filter, process->threads[i].tid, process->threads[i].name);
	for (size_t i = 1; i < process->heap_count; i++)
		selection->heaps[i] = mw_filter_heap(filter, process->heaps[i]);
	return NULL;
}

void mw_selection_deinit(struct mw_selection *selection)
{
	free(selection->stacks);
	free(selection->threads);
	free(selection->heaps);
	*selection = (struct mw_selection){0};
}

bool mw_selection_takes(const struct mw_selection *selection, const struct mw_cell *cell)
{
	const struct mw_view_process *process = selection->process;
	uint64_t bits = selection->name;

	if (cell->kind == MW_KIND_VM_INTERNAL && !selection->internal)
		return false;
	if (!selection->filter)
		return true;
	bits |= selection->stacks[mw_process_stack_index(process, cell->stack)];
	bits |= selection->threads[cell->thread < process->thread_count ? cell->thread : process->thread_count];
	bits |= selection->heaps[cell->heap < process->heap_count ? cell->heap : process->heap_count];
	bits |= mw_filter_block(selection->filter, (enum mw_kind)cell->kind, (enum mw_fate)cell->fate, cell->bytes);
	return mw_filter_match(selection->filter, bits);
}
