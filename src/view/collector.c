// SPDX-License-Identifier: MIT
/* collector.c: see collector.h. */
#include "view/collector.h"

#include "base/vector.h"
#include "view/samples.h"
#include "view/watched.h"

#include <stdlib.h>
#include <string.h>

/* --- places of heaps ---------------------------------------------------------------------------------------- */

/*
 * Where it is known only when the window is over in which heaps blocks lie, until then blocks are distinguished by
 * places: stretches of addresses as long as the shortest that one of glibc's arenas has.
 */
#define PLACE_SHIFT 26u    /* glibc's HEAP_MAX_SIZE, to which its arenas' heaps are aligned */
#define PLACES_MAX  65536u /* blocks in others: heap unknown */

struct mw_heap_place {
	mw_addr lowest; /* of a block in it */
	bool mapped;    /* its blocks seem to have mappings of their own */
	bool pymalloc;  /* they are of CPython's allocator */
};

static void places_deinit(struct mw_heap_places *places)
{
	mw_map_deinit(&places->numbering);
	free(places->items);
	*places = (struct mw_heap_places){.items = NULL};
}

/* Its number plus one; 0: there are too many, or there is no memory. */
static uint32_t place_of(struct mw_heap_places *places, uint64_t key)
{
	uint32_t number = 0;
	struct mw_heap_place *items;

	if (key + 1 == places->last_key)
		return places->last;
	items = mw_vector_room(places->items, places->numbering.count, &places->capacity, sizeof(*items));
	if (!items)
		return 0;
	places->items = items;
	items[places->numbering.count] =
		(struct mw_heap_place){.lowest = UINT64_MAX, .mapped = key & 1, .pymalloc = key & 2};
	if (places->numbering.count >= PLACES_MAX || !mw_map_number(&places->numbering, key, &number))
		return 0;
	places->last_key = key + 1;
	places->last = number + 1;
	return places->last;
}

/* The number of a block's place, from 1; 0 for what is not of kind MW_KIND_HEAP, where there are too many places, and
 * without memory. */
static uint32_t number_of_place(struct mw_heap_places *places, mw_addr addr, uint64_t bytes, enum mw_kind kind,
				bool pymalloc)
{
	uint32_t number;

	if (kind != MW_KIND_HEAP)
		return 0;
	number = place_of(places, addr >> PLACE_SHIFT << 2 | (pymalloc ? 2 : 0) | mw_heaps_seems_mapped(addr, bytes));
	if (number && addr < places->items[number - 1].lowest)
		places->items[number - 1].lowest = addr;
	return number;
}

/* How many numbers there are, 0 included. */
static size_t places_count(const struct mw_heap_places *places)
{
	return (size_t)places->numbering.count + 1;
}

/* For each number the heap that it is in, malloc'ed. */
static struct mw_error *find_heaps_of(const struct mw_heap_places *places, const struct mw_heaps *heaps,
				      uint32_t **heap_of)
{
	uint32_t *found = calloc(places_count(places), sizeof(*found));

	if (!found)
		return mw_error_nomem();
	for (uint32_t i = 0; i < places->numbering.count; i++) {
		const struct mw_heap_place *place = &places->items[i];
		uint64_t bytes = place->mapped ? MW_SIZE_UNKNOWN - 1 : 0;

		found[i + 1] = place->pymalloc ? mw_heaps_of_pymalloc(heaps, place->lowest, bytes)
					       : mw_heaps_of(heaps, place->lowest, bytes, MW_KIND_HEAP);
	}
	*heap_of = found;
	return NULL;
}

/* --- the collector ------------------------------------------------------------------------------------------ */

enum { OF_BLOCKS, OF_TIMELINE }; /* places */

static uint32_t heap_of(struct mw_collector *collector, size_t places, mw_addr addr, uint64_t bytes, enum mw_kind kind,
			bool pymalloc)
{
	if (collector->late)
		return number_of_place(&collector->places[places], addr, bytes, kind, pymalloc);
	return pymalloc ? mw_heaps_of_pymalloc(collector->heaps, addr, bytes)
			: mw_heaps_of(collector->heaps, addr, bytes, kind);
}

static uint32_t heap_of_block(void *context, mw_addr addr, uint64_t bytes, enum mw_kind kind, bool pymalloc)
{
	return heap_of(context, OF_BLOCKS, addr, bytes, kind, pymalloc);
}

static uint32_t heap_of_item(void *context, mw_addr addr, uint64_t bytes, enum mw_kind kind, bool pymalloc)
{
	return heap_of(context, OF_TIMELINE, addr, bytes, kind, pymalloc);
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

static struct mw_error *prepare_samples(struct mw_collector *collector, const struct mw_filter *filter)
{
	struct mw_cells_options cells = mw_samples_cells(filter);

	cells.heap_of = heap_of_block;
	cells.heap_context = collector;
	return mw_cells_create(&cells, &collector->samples);
}

static struct mw_error *collector_init(struct mw_collector *collector, const struct mw_collector_options *options)
{
	const struct mw_cube_options cube = {
		.from_ns = options->from_ns,
		.length_ns = options->to_ns > options->from_ns ? options->to_ns - options->from_ns : 0,
		.heap_of = heap_of_item,
		.heap_context = collector,
	};

	collector->late = !options->metadata;
	if (options->metadata)
		MW_TRY(mw_heaps_create(options->metadata, &collector->heaps));
	if (options->question)
		MW_TRY(prepare_views(collector, options->question));
	if (options->samples)
		MW_TRY(prepare_samples(collector, options->filter));
	return options->timeline ? mw_cube_create(&cube, &collector->cube) : NULL;
}

void mw_collector_deinit(struct mw_collector *collector)
{
	mw_cells_destroy(collector->cells);
	mw_cells_destroy(collector->samples);
	mw_blocklist_destroy(collector->blocks);
	mw_cube_destroy(collector->cube);
	mw_heaps_destroy(collector->heaps);
	for (size_t i = 0; i < 2; i++) {
		places_deinit(&collector->places[i]);
		free(collector->heap_of[i]);
	}
	free(collector->stack_of);
	free(collector->thread_of);
	free(collector->threads);
	*collector = (struct mw_collector){.cells = NULL};
}

#define PYMALLOC_NAME "PyObject_"
#define PYMALLOC_MOST 512 /* bytes of a block; larger ones, and empty ones, are malloc's */

static bool is_pymalloc(const struct mw_metadata *metadata, size_t hook)
{
	const char *function = hook < metadata->hook_count ? metadata->hooks[hook].function : NULL;

	return function && strncmp(function, PYMALLOC_NAME, strlen(PYMALLOC_NAME)) == 0;
}

/* Is the block, as far as what was called tells, one of CPython's allocator? */
static bool of_pymalloc(struct mw_collector *collector, const struct mw_track_fate *fate)
{
	const struct mw_metadata *metadata = collector->metadata;

	if (!metadata || !collector->track || fate->kind != MW_KIND_HEAP || fate->born_ns == MW_TIME_UNKNOWN ||
	    fate->stack == MW_STACK_NONE || fate->size - 1 >= PYMALLOC_MOST)
		return false;
	for (; collector->hooks_seen < metadata->hook_count; collector->hooks_seen++)
		collector->has_pymalloc |= is_pymalloc(metadata, collector->hooks_seen);
	return collector->has_pymalloc && is_pymalloc(metadata, mw_track_stack_hook(collector->track, fate->stack));
}

uint32_t mw_collector_heap(struct mw_collector *collector, const struct mw_track_fate *fate)
{
	return heap_of(collector, OF_BLOCKS, fate->addr, fate->bytes, fate->kind, of_pymalloc(collector, fate));
}

static bool on_survivor(void *context, const struct mw_track_fate *seen)
{
	struct mw_collector *collector = context;
	const struct mw_track_fate *fate = seen;
	struct mw_track_fate marked;
	bool good = true;

	if (of_pymalloc(collector, seen)) {
		marked = *seen;
		marked.pymalloc = true;
		fate = &marked;
	}

	if (collector->cells)
		good = mw_cells_take(collector->cells, fate);
	if (collector->samples)
		good = mw_cells_take(collector->samples, fate) && good;
	if (collector->blocks)
		good = mw_blocklist_take(collector->blocks, fate) && good;
	if (collector->cube)
		good = mw_cube_take(collector->cube, fate) && good;
	return good;
}

/* What fails is known to those that it fails for. */
static void on_fate(void *context, const struct mw_track_fate *fate)
{
	(void)on_survivor(context, fate);
}

static bool wants_fates(const struct mw_collector *collector)
{
	return collector->cells || collector->samples || collector->blocks || collector->cube;
}

void mw_collector_watch(struct mw_collector *collector, struct mw_track *track)
{
	collector->track = track;
	if (wants_fates(collector))
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

/* Places become heaps. */
static struct mw_error *find_heaps(struct mw_collector *collector, const struct mw_metadata *metadata)
{
	MW_TRY(mw_heaps_create(metadata, &collector->heaps));
	/* Until then its thread still makes places. */
	if (collector->cube)
		mw_cube_stop(collector->cube);
	for (size_t i = 0; i < 2; i++)
		MW_TRY(find_heaps_of(&collector->places[i], collector->heaps, &collector->heap_of[i]));
	if (collector->blocks)
		mw_blocklist_renumber_heaps(collector->blocks, collector->heap_of[OF_BLOCKS]);
	return NULL;
}

static struct mw_error *collector_finish(struct mw_collector *collector, const struct mw_metadata *metadata,
					 struct mw_track *track, uint64_t end_ns)
{
	mw_track_watch(track, NULL, NULL);
	if (collector->blocks)
		mw_blocklist_end(collector->blocks, end_ns);
	if (collector->samples)
		mw_cells_until(collector->samples, end_ns);
	if (wants_fates(collector))
		mw_track_each_survivor(track, on_survivor, collector);
	if (collector->late)
		MW_TRY(find_heaps(collector, metadata));
	if (collector->cells)
		MW_TRY(mw_cells_end(collector->cells, track, collector->heap_of[OF_BLOCKS]));
	if (collector->samples)
		MW_TRY(mw_cells_end(collector->samples, track, collector->heap_of[OF_BLOCKS]));
	collector->heap_names = mw_heaps_names(collector->heaps, &collector->heap_count);
	return name_threads(collector, track);
}

/* --- what is asked of a watched process --------------------------------------------------------------------- */

struct mw_error *mw_watched_collect(struct mw_watched *watched, const struct mw_collector_options *options)
{
	mw_collector_deinit(&watched->collector);
	watched->collects = true;
	watched->collector.metadata = &watched->metadata;
	watched->timeline = options->timeline;
	return collector_init(&watched->collector, options);
}

static bool ends_with_window(const struct mw_watched *watched, const struct mw_watched_interval *interval)
{
	return interval->to_ns > watched->metadata.window.length_ns;
}

static uint64_t end_of(const struct mw_watched *watched, const struct mw_watched_interval *interval)
{
	return ends_with_window(watched, interval) ? watched->metadata.window.length_ns : interval->to_ns;
}

struct mw_error *mw_watched_report(struct mw_watched *watched, const struct mw_watched_interval *interval,
				   struct mw_report **out)
{
	struct mw_collector *collector = &watched->collector;
	struct mw_summary_input input;
	struct mw_space_moment moments[2];
	struct mw_space_input space;

	mw_watched_input(watched, &input);
	if (mw_metadata_space(&watched->metadata, moments, &space))
		input.space = &space;
	space.at_end = ends_with_window(watched, interval);
	input.from_ns = interval->from_ns;
	input.to_ns = space.at_end ? 0 : interval->to_ns;
	input.progress = interval->progress;
	input.progress_context = interval->context;
	if (watched->collects) {
		MW_TRY(collector_finish(collector, &watched->metadata, watched->track, end_of(watched, interval)));
		input.stack_of = &collector->stack_of;
		input.thread_of = &collector->thread_of;
	}
	return mw_summary_create(&input, out);
}

struct mw_error *mw_watched_timeline(struct mw_watched *watched, const struct mw_watched_interval *interval,
				     struct mw_timeline **out)
{
	const struct mw_collector *collector = &watched->collector;
	const struct mw_cube_names names = {
		.to_ns = end_of(watched, interval),
		.stack_of = collector->stack_of,
		.stack_count = mw_track_stack_count(watched->track),
		.thread_of = collector->thread_of,
		.thread_count = collector->thread_count,
		.heap_of = collector->late ? collector->heap_of[OF_TIMELINE] : NULL,
		.heap_of_count = collector->late ? places_count(&collector->places[OF_TIMELINE]) : 0,
		.heaps = collector->heap_names,
		.heap_count = collector->heap_count,
	};

	return mw_cube_finish(collector->cube, &names, out);
}

void mw_watched_view(struct mw_watched *watched, const struct mw_watched_interval *interval,
		     const struct mw_report *report, struct mw_view_process *out)
{
	struct mw_collector *collector = &watched->collector;
	struct mw_space_input space;

	*out = (struct mw_view_process){
		.report = report,
		.cells = collector->cells,
		.samples = collector->samples,
		.blocks = collector->blocks,
		.stack_of = collector->stack_of,
		.stack_count = mw_track_stack_count(watched->track),
		.threads = collector->threads,
		.thread_count = collector->thread_count,
		.heaps = collector->heap_names,
		.heap_count = collector->heap_count,
	};
	if (interval->to_ns >= watched->metadata.window.length_ns &&
	    mw_metadata_space(&watched->metadata, collector->moments, &space))
		out->end = space.end;
}
