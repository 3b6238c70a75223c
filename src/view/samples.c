// SPDX-License-Identifier: MIT
/* samples.c: see samples.h. */
#include "view/samples.h"

#include "base/map.h"
#include "base/vector.h"

#include <stdlib.h>

struct samples {
	const struct mw_view_process *process;
	struct mw_map numbering; /* of (stack, thread, kind) to samples */
	struct mw_export_sample *items;
	size_t capacity;
};

struct mw_cells_options mw_samples_cells(const struct mw_filter *filter)
{
	uint32_t columns = filter ? mw_filter_columns(filter) : 0;

	return (struct mw_cells_options){
		.threads = true,
		.sizes = columns & 1u << MW_COLUMN_SIZE,
		.heaps = columns & 1u << MW_COLUMN_HEAP,
		.lifetimes = MW_LIFETIMES_NONE,
	};
}

static bool take(struct samples *samples, const struct mw_cell *cell)
{
	const struct mw_view_thread *thread = mw_process_thread(samples->process, cell->thread);
	const struct mw_report_stack *stack = mw_process_stack(samples->process, cell->stack);
	uint64_t stack_number = mw_process_stack_index(samples->process, cell->stack);
	uint64_t thread_number = thread ? cell->thread : UINT32_MAX >> 2;
	size_t before = samples->numbering.count;
	struct mw_export_sample *sample;
	uint32_t number;

	if (!mw_map_number(&samples->numbering, stack_number << 32 | thread_number << 2 | cell->kind, &number))
		return false;
	if (samples->numbering.count > before) {
		if (!MW_VECTOR_ROOM(samples->items, number, samples->capacity))
			return false;
		samples->items[number] = (struct mw_export_sample){
			.stack = stack,
			.tid = thread ? thread->tid : 0,
			.thread = thread ? thread->name : NULL,
			.kind = (enum mw_kind)cell->kind,
		};
	}
	sample = &samples->items[number];
	mw_sums_add(&sample->sums, cell);
	if (cell->fate == MW_FATE_IMPACTING || cell->fate == MW_FATE_TRANSIENT)
		sample->lived_ns += cell->lived_ns;
	return true;
}

/* Stacks of the report in their order, the unknown one last. */
static int compare(const void *left, const void *right)
{
	const struct mw_export_sample *a = left, *b = right;

	if (a->stack != b->stack)
		return !a->stack ? 1 : !b->stack ? -1 : a->stack < b->stack ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return (a->tid > b->tid) - (a->tid < b->tid);
}

static struct mw_error *take_all(struct samples *samples, const struct mw_selection *selection)
{
	const struct mw_cell *cells;
	size_t count;

	MW_TRY(mw_cells_list(samples->process->samples, &cells, &count));
	for (size_t i = 0; i < count; i++)
		if (mw_selection_takes(selection, &cells[i]) && !take(samples, &cells[i]))
			return mw_error_nomem();
	return NULL;
}

struct mw_error *mw_samples_make(const struct mw_view_process *process, const struct mw_filter *filter,
				 struct mw_export_sample **out, size_t *count)
{
	struct samples samples = {.process = process};
	struct mw_selection selection;
	struct mw_error *err;

	MW_TRY(mw_selection_init(&selection, process, filter, false));
	err = take_all(&samples, &selection);
	mw_selection_deinit(&selection);
	*count = samples.numbering.count;
	mw_map_deinit(&samples.numbering);
	if (err) {
		free(samples.items);
		return err;
	}
	if (*count)
		qsort(samples.items, *count, sizeof(*samples.items), compare);
	*out = samples.items;
	return NULL;
}

/* --- events ------------------------------------------------------------------------------------------------- */

struct mw_error *mw_samples_events_init(struct mw_samples_events *events, struct mw_watched *watched,
					const struct mw_view_process *process, const struct mw_filter *filter)
{
	events->process = *process;
	events->collector = &watched->collector;
	events->heaps = mw_samples_cells(filter).heaps;
	return mw_selection_init(&events->selection, &events->process, filter, false);
}

void mw_samples_events_deinit(struct mw_samples_events *events)
{
	mw_selection_deinit(&events->selection);
}

static void tell(const struct mw_samples_events *events, const struct mw_track_fate *fate, bool gone)
{
	const struct mw_cell cell = {
		.bytes = fate->size,
		.stack = fate->stack,
		.thread = fate->thread,
		.heap = events->heaps ? mw_collector_heap(events->collector, fate) : 0,
		.kind = (uint8_t)fate->kind,
		.fate = (uint8_t)mw_fate_of(fate),
	};
	const struct mw_export_event event = {
		.time_ns = mw_track_now(events->track),
		.stack = mw_process_stack(&events->process, fate->stack),
		.bytes = fate->bytes,
		.part = fate->bytes != fate->size,
		.blocks = 1 + fate->others,
		.gone = gone,
	};

	if (mw_selection_takes(&events->selection, &cell))
		events->take(events->context, &event);
}

static void on_birth(void *context, const struct mw_track_fate *fate)
{
	tell(context, fate, false);
}

static void on_fate(void *context, const struct mw_track_fate *fate)
{
	if (!fate->older)
		tell(context, fate, true);
}

void mw_samples_events_watch(struct mw_samples_events *events, struct mw_track *track)
{
	events->track = track;
	events->collector->track = track;
	mw_track_watch(track, on_fate, events);
	mw_track_watch_births(track, on_birth, events);
}
