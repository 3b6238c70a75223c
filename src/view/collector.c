// SPDX-License-Identifier: MIT
/* collector.c: see collector.h. */
#include "view/collector.h"

#include <stdlib.h>

enum { OF_BLOCKS, OF_TIMELINE }; /* places */

static uint32_t heap_of_block(void *context, mw_addr addr, uint64_t bytes, enum mw_kind kind, uint64_t born_ns)
{
	struct mw_collector *collector = context;

	(void)born_ns;
	return collector->late ? mw_heap_places_of(&collector->places[OF_BLOCKS], addr, bytes, kind)
			       : mw_heaps_of(collector->heaps, addr, bytes, kind, UINT32_MAX);
}

static uint32_t heap_of_item(void *context, mw_addr addr, uint64_t bytes, enum mw_kind kind)
{
	struct mw_collector *collector = context;

	return collector->late ? mw_heap_places_of(&collector->places[OF_TIMELINE], addr, bytes, kind)
			       : mw_heaps_of(collector->heaps, addr, bytes, kind, UINT32_MAX);
}

static struct mw_error *know_heaps(struct mw_collector *collector, const struct mw_metadata *metadata)
{
	MW_TRY(mw_heaps_create(&collector->heaps));
	for (size_t moment = 0; moment < 2; moment++)
		for (size_t i = 0; i < metadata->mappings[moment].count; i++)
			MW_TRY(mw_heaps_add_mapping(collector->heaps, &metadata->mappings[moment].items[i]));
	for (size_t i = 0; i < metadata->hook_count; i++)
		MW_TRY(mw_heaps_add_hook(collector->heaps, (uint32_t)i, metadata->hooks[i].function,
					 metadata->hooks[i].module));
	/* It is put in order when it is first asked, and it will be by two threads. */
	(void)mw_heaps_of(collector->heaps, 0, 0, MW_KIND_HEAP, UINT32_MAX);
	return NULL;
}

static struct mw_error *prepare_views(struct mw_collector *collector, const struct mw_view_question *question)
{
	struct mw_cells_options cells = {0};
	const struct mw_blocklist_options blocks = {
		.count = question->blocks,
		.by_age = question->sort == MW_SORT_LIFETIME,
		.type = question->type,
		.filter = question->filter,
		.heap_of = heap_of_block,
		.heap_context = collector,
	};

	if (mw_view_cells_options(question, &cells)) {
		cells.heap_of = heap_of_block;
		cells.heap_context = collector;
		MW_TRY(mw_cells_create(&cells, &collector->cells));
	}
	return question->blocks ? mw_blocklist_create(&blocks, &collector->blocks) : NULL;
}

struct mw_error *mw_collector_init(struct mw_collector *collector, const struct mw_collector_options *options)
{
	const struct mw_cube_options cube = {
		.from_ns = options->from_ns,
		.length_ns = options->to_ns > options->from_ns ? options->to_ns - options->from_ns : 0,
		.heap_of = heap_of_item,
		.heap_context = collector,
	};

	collector->late = !options->metadata;
	if (options->metadata)
		MW_TRY(know_heaps(collector, options->metadata));
	if (options->question)
		MW_TRY(prepare_views(collector, options->question));
	return options->timeline ? mw_cube_create(&cube, &collector->cube) : NULL;
}

void mw_collector_deinit(struct mw_collector *collector)
{
	mw_cells_destroy(collector->cells);
	mw_blocklist_destroy(collector->blocks);
	mw_cube_destroy(collector->cube);
	mw_heaps_destroy(collector->heaps);
	for (size_t i = 0; i < 2; i++) {
		mw_heap_places_deinit(&collector->places[i]);
		free(collector->heap_of[i]);
	}
	free(collector->stack_of);
	free(collector->thread_of);
	free(collector->threads);
	free(collector->heap_names);
	*collector = (struct mw_collector){.cells = NULL};
}

static void on_fate(void *context, const struct mw_track_fate *fate)
{
	struct mw_collector *collector = context;

	if (collector->cells)
		mw_cells_fate(collector->cells, fate);
	if (collector->blocks)
		mw_blocklist_fate(collector->blocks, fate);
	if (collector->cube)
		mw_cube_fate(collector->cube, fate);
}

static bool on_survivor(void *context, const struct mw_track_fate *fate)
{
	struct mw_collector *collector = context;

	return (!collector->cells || mw_cells_survivor(collector->cells, fate)) &&
	       (!collector->blocks || mw_blocklist_survivor(collector->blocks, fate)) &&
	       (!collector->cube || mw_cube_survivor(collector->cube, fate));
}

void mw_collector_watch(struct mw_collector *collector, struct mw_track *track)
{
	if (collector->cells || collector->blocks || collector->cube)
		mw_track_watch(track, on_fate, collector);
}

static struct mw_error *name_threads(struct mw_collector *collector, const struct mw_track *track)
{
	uint32_t count = mw_track_thread_count(track);

	collector->threads = calloc(count + 1, sizeof(*collector->threads));
	if (!collector->threads)
		return mw_error_nomem();
	for (uint32_t i = 0; i < count; i++) {
		struct mw_track_thread thread;

		mw_track_thread(track, i, &thread);
		collector->threads[i] = (struct mw_view_thread){.tid = thread.tid, .name = thread.name};
	}
	collector->thread_count = count;
	return NULL;
}

static struct mw_error *name_heaps(struct mw_collector *collector)
{
	uint32_t heaps = mw_heaps_count(collector->heaps);

	collector->heap_names = calloc(heaps + 1, sizeof(*collector->heap_names));
	if (!collector->heap_names)
		return mw_error_nomem();
	for (uint32_t i = 0; i < heaps; i++)
		collector->heap_names[i] = mw_heaps_name(collector->heaps, i);
	collector->heap_count = heaps;
	return NULL;
}

/* Places become heaps. */
static struct mw_error *find_heaps(struct mw_collector *collector, const struct mw_metadata *metadata)
{
	MW_TRY(know_heaps(collector, metadata));
	/* Until then its thread still makes places. */
	if (collector->cube)
		mw_cube_stop(collector->cube);
	for (size_t i = 0; i < 2; i++)
		MW_TRY(mw_heap_places_find(&collector->places[i], collector->heaps, &collector->heap_of[i]));
	if (collector->cells)
		mw_cells_renumber_heaps(collector->cells, collector->heap_of[OF_BLOCKS]);
	if (collector->blocks)
		mw_blocklist_renumber_heaps(collector->blocks, collector->heap_of[OF_BLOCKS]);
	return NULL;
}

struct mw_error *mw_collector_finish(struct mw_collector *collector, const struct mw_metadata *metadata,
				     struct mw_track *track, uint64_t end_ns)
{
	mw_track_watch(track, NULL, NULL);
	if (collector->blocks)
		mw_blocklist_end(collector->blocks, end_ns);
	if (collector->cells || collector->blocks || collector->cube)
		mw_track_each_survivor(track, on_survivor, collector);
	if (collector->cells) {
		mw_cells_end(collector->cells, track);
		MW_TRY(mw_cells_error(collector->cells));
	}
	if (collector->late)
		MW_TRY(find_heaps(collector, metadata));
	MW_TRY(name_threads(collector, track));
	return name_heaps(collector);
}

struct mw_error *mw_collector_timeline(struct mw_collector *collector, uint64_t to_ns, size_t stack_count,
				       struct mw_timeline **out)
{
	const struct mw_cube_names names = {
		.to_ns = to_ns,
		.stack_of = collector->stack_of,
		.stack_count = stack_count,
		.thread_of = collector->thread_of,
		.thread_count = collector->thread_count,
		.heap_of = collector->late ? collector->heap_of[OF_TIMELINE] : NULL,
		.heap_of_count = collector->late ? mw_heap_places_count(&collector->places[OF_TIMELINE]) : 0,
		.heaps = collector->heap_names,
		.heap_count = collector->heap_count,
	};

	return mw_cube_finish(collector->cube, &names, out);
}

void mw_collector_view(struct mw_collector *collector, const struct mw_metadata *metadata,
		       const struct mw_report *report, size_t stack_count, bool at_end, struct mw_view_process *out)
{
	struct mw_space_input space;

	*out = (struct mw_view_process){
		.report = report,
		.cells = collector->cells,
		.blocks = collector->blocks,
		.stack_of = collector->stack_of,
		.stack_count = stack_count,
		.threads = collector->threads,
		.thread_count = collector->thread_count,
		.heaps = collector->heap_names,
		.heap_count = collector->heap_count,
	};
	if (at_end && mw_metadata_space(metadata, collector->moments, &space))
		out->end = space.end;
}
