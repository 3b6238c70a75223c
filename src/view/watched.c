// SPDX-License-Identifier: MIT
/* watched.c: see watched.h. */
#include "view/watched.h"

#include <stdlib.h>

#define MOST_PROCESSES 4096u

struct mw_error *mw_watched_init(struct mw_watched *watched)
{
	MW_TRY(mw_metadata_init(&watched->metadata));
	return mw_watched_renew(watched);
}

void mw_watched_deinit(struct mw_watched *watched)
{
	if (watched->collects && watched->track)
		mw_track_watch(watched->track, NULL, NULL);
	mw_collector_deinit(&watched->collector);
	mw_track_destroy(watched->track);
	mw_code_regions_deinit(&watched->regions);
	mw_metadata_deinit(&watched->metadata);
	*watched = (struct mw_watched){.track = NULL};
}

struct mw_error *mw_watched_renew(struct mw_watched *watched)
{
	mw_track_destroy(watched->track);
	watched->track = NULL;
	MW_TRY(mw_track_create(&watched->track));
	watched->sink = mw_track_sink(watched->track);
	return NULL;
}

struct mw_error *mw_watched_collect(struct mw_watched *watched, const struct mw_collector_options *options)
{
	watched->collects = true;
	watched->timeline = options->timeline;
	return mw_collector_init(&watched->collector, options);
}

struct mw_error *mw_watched_settle(struct mw_watched *watched)
{
	struct mw_space_moment moments[2];
	struct mw_space_input space;

	mw_code_regions_deinit(&watched->regions);
	(void)mw_metadata_space(&watched->metadata, moments, &space);
	return mw_code_regions_make(space.start, space.end, &watched->regions);
}

void mw_watched_input(const struct mw_watched *watched, struct mw_summary_input *out)
{
	const struct mw_metadata *metadata = &watched->metadata;

	*out = (struct mw_summary_input){
		.track = watched->track,
		.modules = metadata->modules,
		.module_count = metadata->module_count,
		.symbols = watched->symbols.resolve ? &watched->symbols : NULL,
		.regions = &watched->regions,
		.pid = metadata->target.pid,
		.comm = metadata->target.comm,
		.exe = metadata->target.exe,
		.command = (char *const *)metadata->target.command,
		.command_count = metadata->target.command_count,
		.window = &metadata->window,
		.stats = &metadata->stats,
		.cut = watched->cut,
		.engine = metadata->target.engine,
		.engine_reason = metadata->target.engine_reason,
		.hooks = metadata->hooks,
		.hook_count = metadata->hook_count,
		.samples = metadata->samples,
		.sample_count = metadata->sample_count,
		.marks = metadata->marks,
		.mark_count = metadata->mark_count,
		.track_heap = metadata->target.track_heap,
		.track_vm = metadata->target.track_vm,
	};
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
		MW_TRY(mw_collector_finish(collector, &watched->metadata, watched->track, end_of(watched, interval)));
		input.stack_of = &collector->stack_of;
		input.thread_of = &collector->thread_of;
	}
	return mw_summary_create(&input, out);
}

struct mw_error *mw_watched_timeline(struct mw_watched *watched, const struct mw_watched_interval *interval,
				     struct mw_timeline **out)
{
	return mw_collector_timeline(&watched->collector, end_of(watched, interval),
				     mw_track_stack_count(watched->track), out);
}

void mw_watched_view(struct mw_watched *watched, const struct mw_watched_interval *interval,
		     const struct mw_report *report, struct mw_view_process *out)
{
	mw_collector_view(&watched->collector, &watched->metadata, report, mw_track_stack_count(watched->track),
			  interval->to_ns >= watched->metadata.window.length_ns, out);
}

/* --- several --------------------------------------------------------------------------------------------- */

static struct mw_error *add(struct mw_watched_set *set)
{
	struct mw_watched **items = reallocarray(set->items, set->count + 1, sizeof(struct mw_watched *));
	struct mw_watched *watched = calloc(1, sizeof(*watched));

	if (items)
		set->items = items;
	if (!items || !watched) {
		free(watched);
		return mw_error_nomem();
	}
	set->items[set->count++] = watched;
	return mw_watched_init(watched);
}

struct mw_error *mw_watched_set_get(struct mw_watched_set *set, uint32_t number, struct mw_watched **out)
{
	if (number >= MOST_PROCESSES)
		return mw_error_create(MW_ERROR_DATA, 0, "process number %u", number);
	while (set->count <= number)
		MW_TRY(add(set));
	*out = set->items[number];
	return NULL;
}

void mw_watched_set_deinit(struct mw_watched_set *set)
{
	for (size_t i = 0; i < set->count; i++) {
		mw_watched_deinit(set->items[i]);
		free(set->items[i]);
	}
	free(set->items);
	*set = (struct mw_watched_set){.count = 0};
}

#define FACT(what)                                                                                                     \
	static struct mw_error *on_##what(void *context, uint32_t number, const struct mw_stored_##what *what)         \
	{                                                                                                              \
		struct mw_watched *watched;                                                                            \
                                                                                                                       \
		MW_TRY(mw_watched_set_get(context, number, &watched));                                                 \
		return mw_metadata_##what(&watched->metadata, what);                                                   \
	}

MW_STORE_EACH(FACT)

static struct mw_error *on_mapping(void *context, uint32_t number, enum mw_stored_moment moment,
				   const struct mw_stored_mapping *mapping)
{
	struct mw_watched *watched;

	MW_TRY(mw_watched_set_get(context, number, &watched));
	return mw_metadata_mapping(&watched->metadata, moment, mapping);
}

static struct mw_error *on_before(void *context, uint32_t number, mw_addr start, mw_addr end)
{
	struct mw_watched *watched;

	MW_TRY(mw_watched_set_get(context, number, &watched));
	return mw_metadata_before(&watched->metadata, start, end);
}

struct mw_store_visitor mw_watched_set_visitor(struct mw_watched_set *set)
{
	return MW_STORE_VISITOR(set);
}
