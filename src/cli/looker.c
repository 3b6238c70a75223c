// SPDX-License-Identifier: MIT
/* looker.c: see looker.h. */
#include "cli/looker.h"

#include <stdlib.h>

static uint32_t heap_of(void *context, mw_addr addr, uint64_t bytes, enum mw_kind kind, uint64_t born_ns)
{
	(void)born_ns;
	return mw_heaps_of(context, addr, bytes, kind, UINT32_MAX);
}

static struct mw_error *know_heaps(struct mw_looker *looker, const struct mw_facts *facts)
{
	MW_TRY(mw_heaps_create(&looker->heaps));
	for (size_t moment = 0; moment < 2; moment++)
		for (size_t i = 0; i < facts->mappings[moment].count; i++)
			MW_TRY(mw_heaps_add_mapping(looker->heaps, &facts->mappings[moment].items[i]));
	for (size_t i = 0; i < facts->hook_count; i++)
		MW_TRY(mw_heaps_add_hook(looker->heaps, (uint32_t)i, facts->hooks[i].function, facts->hooks[i].module));
	return NULL;
}

struct mw_error *mw_looker_init(struct mw_looker *looker, const struct mw_view_question *question,
				const struct mw_facts *facts, uint64_t to_ns)
{
	struct mw_cells_options cells = {0};
	struct mw_blocklist_options blocks = {
		.count = question->blocks,
		.by_age = question->sort == MW_SORT_LIFETIME,
		.type = question->type,
		.end_ns = to_ns < mw_facts_length(facts) ? to_ns : mw_facts_length(facts),
		.filter = question->filter,
	};

	MW_TRY(know_heaps(looker, facts));
	if (mw_view_cells_options(question, &cells)) {
		cells.heap_of = heap_of;
		cells.heap_context = looker->heaps;
		MW_TRY(mw_cells_create(&cells, &looker->cells));
	}
	if (!question->blocks)
		return NULL;
	blocks.heap_of = heap_of;
	blocks.heap_context = looker->heaps;
	return mw_blocklist_create(&blocks, &looker->blocks);
}

static uint32_t heap_of_item(void *context, mw_addr addr, uint64_t bytes, enum mw_kind kind)
{
	return mw_heaps_of(context, addr, bytes, kind, UINT32_MAX);
}

struct mw_error *mw_looker_draw(struct mw_looker *looker, uint64_t from_ns, uint64_t to_ns)
{
	const struct mw_cube_options options = {
		.from_ns = from_ns,
		.length_ns = to_ns > from_ns ? to_ns - from_ns : 0,
		.heap_of = heap_of_item,
		.heap_context = looker->heaps,
	};

	/* It is put in order when it is first asked, and it will be by two threads. */
	(void)heap_of_item(looker->heaps, 0, 0, MW_KIND_HEAP);

	return mw_cube_create(&options, &looker->cube);
}

void mw_looker_deinit(struct mw_looker *looker)
{
	mw_cells_destroy(looker->cells);
	mw_blocklist_destroy(looker->blocks);
	mw_cube_destroy(looker->cube);
	mw_heaps_destroy(looker->heaps);
	free(looker->stack_of);
	free(looker->thread_of);
	free(looker->threads);
	free(looker->heap_names);
	*looker = (struct mw_looker){.cells = NULL};
}

static void on_fate(void *context, const struct mw_track_fate *fate)
{
	struct mw_looker *looker = context;

	if (looker->cells)
		mw_cells_fate(looker->cells, fate);
	if (looker->blocks)
		mw_blocklist_fate(looker->blocks, fate);
	if (looker->cube)
		mw_cube_fate(looker->cube, fate);
}

static bool on_survivor(void *context, const struct mw_track_fate *fate)
{
	struct mw_looker *looker = context;

	return (!looker->cells || mw_cells_survivor(looker->cells, fate)) &&
	       (!looker->blocks || mw_blocklist_survivor(looker->blocks, fate)) &&
	       (!looker->cube || mw_cube_survivor(looker->cube, fate));
}

void mw_looker_watch(struct mw_looker *looker, struct mw_track *track)
{
	if (looker->cells || looker->blocks || looker->cube)
		mw_track_watch(track, on_fate, looker);
}

static struct mw_error *name_threads(struct mw_looker *looker, const struct mw_track *track)
{
	uint32_t count = mw_track_thread_count(track);

	looker->threads = calloc(count + 1, sizeof(*looker->threads));
	if (!looker->threads)
		return mw_error_nomem();
	for (uint32_t i = 0; i < count; i++) {
		struct mw_track_thread thread;

		mw_track_thread(track, i, &thread);
		looker->threads[i] = (struct mw_view_thread){.tid = thread.tid, .name = thread.name};
	}
	looker->thread_count = count;
	return NULL;
}

struct mw_error *mw_looker_finish(struct mw_looker *looker, const struct mw_track *track)
{
	uint32_t heaps = mw_heaps_count(looker->heaps);

	if (looker->cells || looker->blocks || looker->cube)
		mw_track_each_survivor(track, on_survivor, looker);
	if (looker->cells) {
		mw_cells_end(looker->cells, track);
		MW_TRY(mw_cells_error(looker->cells));
	}
	MW_TRY(name_threads(looker, track));
	looker->heap_names = calloc(heaps + 1, sizeof(*looker->heap_names));
	if (!looker->heap_names)
		return mw_error_nomem();
	for (uint32_t i = 0; i < heaps; i++)
		looker->heap_names[i] = mw_heaps_name(looker->heaps, i);
	looker->heap_count = heaps;
	return NULL;
}

struct mw_error *mw_looker_timeline(struct mw_looker *looker, uint64_t to_ns, size_t stack_count,
				    struct mw_timeline **out)
{
	const struct mw_cube_names names = {
		.to_ns = to_ns,
		.stack_of = looker->stack_of,
		.stack_count = stack_count,
		.thread_of = looker->thread_of,
		.thread_count = looker->thread_count,
		.heaps = looker->heap_names,
		.heap_count = looker->heap_count,
	};

	return mw_cube_finish(looker->cube, &names, out);
}

void mw_looker_process(const struct mw_looker *looker, const struct mw_report *report, size_t stack_count,
		       struct mw_view_process *out)
{
	*out = (struct mw_view_process){
		.report = report,
		.cells = looker->cells,
		.blocks = looker->blocks,
		.stack_of = looker->stack_of,
		.stack_count = stack_count,
		.threads = looker->threads,
		.thread_count = looker->thread_count,
		.heaps = looker->heap_names,
		.heap_count = looker->heap_count,
	};
}

const struct mw_space_moment *mw_looker_end(struct mw_looker *looker, const struct mw_facts *facts, uint64_t to_ns)
{
	struct mw_space_input space;

	if (to_ns < mw_facts_length(facts) || !mw_facts_space(facts, looker->moments, &space))
		return NULL;
	return space.end;
}
