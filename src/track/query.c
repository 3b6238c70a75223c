// SPDX-License-Identifier: MIT
/* query.c: what a tracker is asked when the window is over (track.h). */
#include "track/state.h"
#include "track/track.h"
#include "track/vm.h"

static struct mw_track_totals totals_of(const struct mw_tally *tally)
{
	return (struct mw_track_totals){
		.size = mw_amount_sum(&tally->impacting, &tally->transient),
		.impacting = tally->impacting,
		.transient = tally->transient,
		.aofi = tally->aofi,
		.aofi_unknown = tally->aofi_unknown,
		.peak = tally->peak,
	};
}

void mw_track_totals(const struct mw_track *track, enum mw_kind kind, struct mw_track_totals *out)
{
	*out = totals_of(&track->totals[kind]);
}

uint64_t mw_track_missed(const struct mw_track *track)
{
	return track->missed;
}

uint32_t mw_track_stack_count(const struct mw_track *track)
{
	return track->stacks.records.used;
}

static struct mw_track_lifetime lifetime_of(const struct mw_histogram *histogram)
{
	if (histogram->count == 0)
		return (struct mw_track_lifetime){0};
	return (struct mw_track_lifetime){
		.count = histogram->count,
		.min_ns = histogram->min,
		.median_ns = mw_histogram_quantile(histogram, 50),
		.p99_ns = mw_histogram_quantile(histogram, 99),
		.max_ns = histogram->max,
	};
}

struct mw_error *mw_track_lifetime(const struct mw_track *track, const uint32_t *ids, size_t count,
				   struct mw_track_lifetime *out)
{
	struct mw_histogram all;
	struct mw_error *err = NULL;

	mw_histogram_init(&all);
	for (size_t i = 0; i < count && !err; i++)
		err = mw_histogram_merge(&all, &mw_stack_table_at(&track->stacks, ids[i])->lifetimes);
	if (!err)
		*out = lifetime_of(&all);
	mw_histogram_deinit(&all);
	return err;
}

void mw_track_stack(const struct mw_track *track, uint32_t id, struct mw_track_stack *out)
{
	const struct mw_stack_record *record = mw_stack_table_at(&track->stacks, id);

	*out = (struct mw_track_stack){
		.kind = (enum mw_kind)record->kind,
		.hook = record->hook,
		.cut = (enum mw_stack_cut)record->cut,
		.frame_count = record->frame_count,
		.totals = totals_of(&record->tally),
		.lifetime = lifetime_of(&record->lifetimes),
	};
}

uint32_t mw_track_frames(const struct mw_track *track, uint32_t id, struct mw_raw_frame *out, uint32_t capacity)
{
	const struct mw_stack_record *record = mw_stack_table_at(&track->stacks, id);

	mw_stack_table_frames(&track->stacks, record, out, capacity);
	return record->frame_count;
}

uint32_t mw_track_thread_count(const struct mw_track *track)
{
	return track->threads.records.used;
}

void mw_track_thread(const struct mw_track *track, uint32_t number, struct mw_track_thread *out)
{
	const struct mw_thread_record *thread = mw_thread_table_at(&track->threads, number);

	*out = (struct mw_track_thread){
		.tid = thread->tid,
		.name = thread->name,
		.size = mw_amount_sum(&thread->impacting, &thread->transient),
		.impacting = thread->impacting,
		.transient = thread->transient,
	};
}

struct walk {
	const struct mw_track *track;
	bool (*visit)(void *context, const struct mw_track_block *block, bool first);
	void *context;
};

static bool visit_heap_block(const void *context, const struct mw_block *block)
{
	const struct walk *walk = context;
	struct mw_track_block out = {
		.addr = block->addr,
		.bytes = block->bytes,
		.time_ns = block->time_ns,
		.stack = block->stack,
		.thread = block->thread,
		.kind = MW_KIND_HEAP,
	};

	return walk->visit(walk->context, &out, true);
}

static bool visit_range(const struct walk *walk, const struct mw_range *range)
{
	struct mw_vm_block *block;
	struct mw_track_block out;
	bool first;

	if (range->owner == MW_VM_BEFORE)
		return true;
	block = mw_pool_at(&walk->track->vm_blocks, range->owner);
	first = !block->visited;
	block->visited = true;
	out = (struct mw_track_block){
		.addr = range->start,
		.bytes = range->end - range->start,
		.time_ns = block->time_ns,
		.stack = block->stack,
		.thread = block->thread,
		.kind = (enum mw_kind)block->kind,
	};
	return walk->visit(walk->context, &out, first);
}

static bool visit_limbo(const struct walk *walk, const struct mw_limbo *limbo)
{
	if (limbo->holds == MW_LIMBO_BLOCK)
		return visit_heap_block(walk, &limbo->block);
	for (uint32_t id = limbo->ranges; id != MW_RANGE_NONE; id = mw_range_at(&walk->track->ranges, id)->right) {
		if (!visit_range(walk, mw_range_at(&walk->track->ranges, id)))
			return false;
	}
	return true;
}

static bool visit_limbos(const struct walk *walk)
{
	const struct mw_thread_table *threads = &walk->track->threads;

	for (uint32_t i = 0; i < threads->records.used; i++) {
		for (uint32_t id = mw_thread_table_at(threads, i)->limbo; id != MW_POOL_NONE;) {
			const struct mw_limbo *limbo = mw_pool_at(&walk->track->limbo, id);

			if (!visit_limbo(walk, limbo))
				return false;
			id = limbo->next;
		}
	}
	return true;
}

static bool visit_ranges(const struct walk *walk)
{
	const struct mw_range_tree *ranges = &walk->track->ranges;
	uint32_t id = mw_range_tree_after(ranges, 0);

	while (id != MW_RANGE_NONE) {
		const struct mw_range *range = mw_range_at(ranges, id);

		if (!visit_range(walk, range))
			return false;
		id = mw_range_tree_after(ranges, range->end);
	}
	return true;
}

void mw_track_each_block(const struct mw_track *track,
			 bool (*visit)(void *context, const struct mw_track_block *block, bool first), void *context)
{
	struct walk walk = {track, visit, context};

	/* Clears the marks of an earlier walk, those of numbers not in use too, which does no harm. */
	for (uint32_t i = 0; i < track->vm_blocks.used; i++)
		((struct mw_vm_block *)mw_pool_at(&track->vm_blocks, i))->visited = false;
	if (mw_block_table_each(&track->heap, visit_heap_block, &walk) && visit_ranges(&walk))
		(void)visit_limbos(&walk);
}

void mw_track_memory(const struct mw_track *track, struct mw_track_memory *out)
{
	out->blocks = mw_block_table_memory(&track->heap) + mw_pool_memory(&track->ranges.ranges) +
		      mw_pool_memory(&track->vm_blocks) + mw_pool_memory(&track->limbo) + sizeof(*track);
	out->stacks = mw_stack_table_memory(&track->stacks);
	out->threads = mw_thread_table_memory(&track->threads);
}
