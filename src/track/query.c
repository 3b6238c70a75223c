// SPDX-License-Identifier: MIT
/* query.c: what a tracker is asked for: figures of an interval, blocks that are there (track.h). */
#include "track/state.h"
#include "track/track.h"

/* --- intervals ------------------------------------------------------------------------------------------- */

/* What is impacting becomes what was there before; nothing else stays. */
static void restart_tally(struct mw_tally *tally)
{
	struct mw_amount older = mw_amount_sum(&tally->impacting, &tally->aofo);

	mw_series_deinit(&tally->series);
	mw_series_deinit(&tally->births);
	*tally = (struct mw_tally){.aofo = older, .cut = tally->cut};
}

/* Those that are not in use are written anew before they are. */
static void mark_blocks(struct mw_track *track)
{
	for (uint32_t i = 0; i < MW_BLOCK_SHARDS; i++)
		for (uint32_t j = 0; j < track->heap.shards[i].capacity; j++)
			track->heap.shards[i].slots[j].thread |= MW_THREAD_OLDER;
	for (uint32_t i = 0; i < track->vm_blocks.used; i++)
		((struct mw_vm_block *)mw_pool_at(&track->vm_blocks, i))->thread |= MW_THREAD_OLDER;
}

/* Blocks that calls hold which have begun and not ended. */
static void mark_pending(const struct mw_track *track, uint32_t thread)
{
	struct mw_pending *pending = mw_pending_find(track, thread, MW_PENDING_REALLOC);

	for (; pending; pending = mw_pending_at(track, MW_PENDING_REALLOC, pending->next))
		if (pending->holds == MW_PENDING_BLOCK)
			pending->block.thread |= MW_THREAD_OLDER;
}

struct mw_error *mw_track_interval(struct mw_track *track, uint64_t begin_ns)
{
	mark_blocks(track);
	for (uint32_t i = 0; i < MW_KIND_COUNT; i++)
		restart_tally(&track->totals[i]);
	for (uint32_t i = 0; i < track->stacks.records.used; i++) {
		struct mw_stack_record *stack = mw_stack_table_at(&track->stacks, i);

		restart_tally(&stack->tally);
		mw_histogram_deinit(&stack->lifetimes);
	}
	for (uint32_t i = 0; i < track->threads.records.used; i++) {
		struct mw_thread_record *thread = mw_thread_table_at(&track->threads, i);

		thread->impacting = thread->transient = (struct mw_amount){0, 0};
		mark_pending(track, i);
	}
	for (uint32_t i = 0; i < track->replaced.used; i++)
		mw_replaced_deinit(mw_pool_at(&track->replaced, i));
	mw_class_flows_restart(&track->flows);
	mw_sampling_restart(track);
	track->missed = 0;
	mw_series_clock_start(&track->clock, begin_ns);
	return NULL;
}

/* --- figures --------------------------------------------------------------------------------------------- */

static struct mw_track_totals totals_of(const struct mw_track *track, const struct mw_tally *tally)
{
	struct mw_track_totals totals = {
		.size = mw_amount_sum(&tally->impacting, &tally->transient),
		.impacting = tally->impacting,
		.transient = tally->transient,
		.aofi = tally->aofi,
		.aofi_unknown = tally->aofi_unknown,
		.aofo = tally->aofo,
		.settled_later = tally->settled,
		.peak = tally->peak,
	};

	/* Nothing was highest when the interval began. */
	if (totals.peak.amount.bytes == 0)
		totals.peak.at_ns = track->clock.begin_ns;
	return totals;
}

void mw_track_totals(const struct mw_track *track, enum mw_kind kind, struct mw_track_totals *out)
{
	*out = totals_of(track, &track->totals[kind]);
	if (track->sampling && kind == MW_KIND_HEAP)
		out->spreads = track->sampling->total;
}

uint64_t mw_track_missed(const struct mw_track *track)
{
	return track->missed;
}

uint32_t mw_track_stack_count(const struct mw_track *track)
{
	return track->stacks.records.used;
}

const struct mw_histogram *mw_track_stack_lifetimes(const struct mw_track *track, uint32_t id)
{
	return &mw_stack_table_at(&track->stacks, id)->lifetimes;
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
	struct mw_histogram all = {0};
	struct mw_error *err = NULL;

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
		.kind = mw_stack_table_kind(&track->stacks, id),
		.hook = record->hook,
		.cut = (enum mw_stack_cut)record->tally.cut,
		.frame_count = record->frame_count,
		.totals = totals_of(track, &record->tally),
		.lifetime = lifetime_of(&record->lifetimes),
	};
	out->totals.spreads = mw_sampling_of_stack(track, id);
}

uint32_t mw_track_stack_hook(const struct mw_track *track, uint32_t id)
{
	return mw_stack_table_at(&track->stacks, id)->hook;
}

uint32_t mw_track_frames(const struct mw_track *track, uint32_t id, struct mw_raw_frame *out, uint32_t capacity)
{
	const struct mw_stack_record *record = mw_stack_table_at(&track->stacks, id);

	for (uint32_t i = 0, at = record->node; i < capacity && at != MW_POOL_NONE; i++) {
		const struct mw_stack_node *node = mw_pool_at(&track->stacks.nodes, at);

		out[i] = (struct mw_raw_frame){node->addr, node->module};
		at = node->parent;
	}
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
		.spreads = mw_sampling_of_thread(track, number),
	};
}

static struct mw_track_sum sum_of(const struct mw_amount *impacting, const struct mw_amount *transient,
				  const struct mw_spreads *spreads)
{
	return (struct mw_track_sum){*impacting, impacting->count + transient->count, spreads->impacting.bytes};
}

void mw_track_stack_sums(const struct mw_track *track, struct mw_track_sum *out, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct mw_tally *tally = &mw_stack_table_at(&track->stacks, i)->tally;
		struct mw_spreads spreads = mw_sampling_of_stack(track, i);

		out[i] = sum_of(&tally->impacting, &tally->transient, &spreads);
	}
}

void mw_track_thread_sums(const struct mw_track *track, struct mw_track_sum *out, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct mw_thread_record *thread = mw_thread_table_at(&track->threads, i);
		struct mw_spreads spreads = mw_sampling_of_thread(track, i);

		out[i] = sum_of(&thread->impacting, &thread->transient, &spreads);
	}
}

const struct mw_sampling *mw_track_sampling(const struct mw_track *track)
{
	return track->sampling;
}

uint64_t mw_track_sampled(const struct mw_track *track)
{
	const struct mw_sampling *sampling = track->sampling;
	uint64_t largest = 0;

	for (uint32_t i = 0; sampling && i < sampling->interval_count; i++)
		largest = sampling->intervals[i].bytes > largest ? sampling->intervals[i].bytes : largest;
	return largest;
}

uint64_t mw_track_now(const struct mw_track *track)
{
	return track->now_ns;
}

void mw_track_stack_series(const struct mw_track *track, uint32_t id, uint64_t end_ns, struct mw_track_series *out)
{
	const struct mw_tally *tally = &mw_stack_table_at(&track->stacks, id)->tally;

	mw_series_read(&tally->series, tally->known, &track->clock, tally->impacting.bytes, end_ns, out);
}

bool mw_track_stack_replaced(const struct mw_track *track, uint32_t id, uint64_t end_ns, struct mw_track_replaced *out)
{
	const struct mw_stack_record *record = mw_stack_table_at(&track->stacks, id);
	const struct mw_replaced *replaced;

	if (!record->replaced)
		return false;
	replaced = mw_pool_at(&track->replaced, record->replaced - 1);
	*out = (struct mw_track_replaced){
		.count = replaced->count,
		.larger = replaced->larger,
		.older = {replaced->older_count, replaced->older_bytes},
		.unknown = replaced->unknown,
		.ambiguous = replaced->ambiguous,
	};
	mw_series_read(&replaced->older, replaced->known, &track->clock,
		       replaced->count ? replaced->older_bytes : replaced->older_count, end_ns, &out->series);
	return true;
}

void mw_track_stack_births(const struct mw_track *track, uint32_t id, uint64_t end_ns, struct mw_track_series *out)
{
	const struct mw_tally *tally = &mw_stack_table_at(&track->stacks, id)->tally;

	mw_series_read(&tally->births, tally->known, &track->clock, tally->impacting.count + tally->transient.count,
		       end_ns, out);
}

void mw_track_stack_left(const struct mw_track *track, uint32_t id, uint64_t end_ns, struct mw_track_series *out)
{
	const struct mw_tally *tally = &mw_stack_table_at(&track->stacks, id)->tally;
	double each = (double)tally->impacting.bytes / (double)tally->impacting.count;

	if (!tally->transient.count) {
		mw_track_stack_births(track, id, end_ns, out);
		return;
	}
	mw_track_stack_series(track, id, end_ns, out);
	for (uint32_t i = 0; i < out->count; i++)
		out->bytes[i] = (float)((double)out->bytes[i] / each);
}

bool mw_track_class_flow(const struct mw_track *track, uint32_t size_class, uint64_t end_ns,
			 struct mw_track_class_flow *out)
{
	struct mw_track_series *series[] = {&out->born, &out->gone, &out->older};
	const struct mw_class_flows *flows = &track->flows;
	uint32_t first = size_class * MW_FLOWS;

	if (!flows->sums[first + MW_FLOW_BORN] && !flows->sums[first + MW_FLOW_GONE])
		return false;
	for (uint32_t i = 0; i < MW_FLOWS; i++)
		mw_series_read(&flows->series[first + i], flows->known, &track->clock, flows->sums[first + i], end_ns,
			       series[i]);
	out->alike = mw_class_flows_alike(flows, size_class);
	return true;
}

void mw_track_memory(const struct mw_track *track, struct mw_track_memory *out)
{
	const struct mw_stack_table *stacks = &track->stacks;

	out->blocks = mw_pool_memory(&track->ranges.ranges) + mw_pool_memory(&track->vm_blocks) +
		      track->late.capacity * sizeof(*track->late.items) + mw_index_memory(&track->late.index) +
		      sizeof(*track);
	for (uint32_t i = 0; i < MW_PENDING_FAMILIES; i++)
		out->blocks += mw_pool_memory(&track->pending[i]);
	for (uint32_t i = 0; i < MW_BLOCK_SHARDS; i++)
		out->blocks += (uint64_t)track->heap.shards[i].capacity * sizeof(struct mw_block_slot);
	out->stacks = mw_pool_memory(&stacks->nodes) + mw_pool_memory(&stacks->records) +
		      mw_index_memory(&stacks->node_index) + mw_index_memory(&stacks->record_index) +
		      mw_map_memory(&stacks->code.exact) + mw_map_memory(&stacks->code.pieces) + stacks->kind_capacity;
	for (uint32_t i = 0; i < stacks->records.used; i++) {
		const struct mw_stack_record *record = mw_stack_table_at(stacks, i);

		out->stacks += mw_series_memory(&record->tally.series) + mw_series_memory(&record->tally.births) +
			       mw_histogram_memory(&record->lifetimes);
	}
	out->stacks += mw_pool_memory(&track->replaced);
	for (uint32_t i = 0; i < track->replaced.used; i++)
		out->stacks += mw_series_memory(&((const struct mw_replaced *)mw_pool_at(&track->replaced, i))->older);
	out->blocks += mw_class_flows_memory(&track->flows) + mw_sampling_memory(track);
	out->threads = mw_pool_memory(&track->threads.records) + mw_map_memory(&track->threads.latest) +
		       track->threads.name_bytes;
}

/* --- all that is there ----------------------------------------------------------------------------------- */

struct walk {
	const struct mw_track *track;
	bool (*visit)(void *context, const struct mw_track_fate *fate);
	void *context;
};

/* `fate.thread` has MW_THREAD_OLDER and MW_THREAD_SETTLED where it is so. */
static bool visit_fate(const struct walk *walk, struct mw_track_fate fate)
{
	fate.settled |= (fate.thread & MW_THREAD_SETTLED) != 0;
	fate.thread &= ~MW_THREAD_SETTLED;
	fate.since_ns = mw_track_since(walk->track, fate.born_ns, fate.thread);
	fate.died_ns = MW_TIME_UNKNOWN;
	fate.until_ns = MW_TIME_UNKNOWN;
	fate.older = (fate.thread & MW_THREAD_OLDER) != 0;
	fate.thread &= ~MW_THREAD_OLDER;
	return walk->visit(walk->context, &fate);
}

static bool visit_block_of(const struct walk *walk, const struct mw_block *block, uint16_t interval)
{
	struct mw_weight weight = mw_sampling_weight(walk->track, block, interval);

	return visit_fate(walk, (struct mw_track_fate){
					.addr = block->addr,
					.bytes = block->bytes,
					.size = block->bytes,
					.born_ns = block->time_ns,
					.stack = block->stack,
					.thread = block->thread,
					.block = UINT32_MAX,
					.kind = MW_KIND_HEAP,
					.last = true,
					.others = weight.others,
					.variance = weight.variance,
				});
}

static bool visit_heap_block(const void *context, const struct mw_block *block)
{
	const struct walk *walk = context;

	return visit_block_of(walk, block, mw_sampling_interval_at(walk->track, block->addr));
}

static bool visit_range(const struct walk *walk, const struct mw_range *range)
{
	uint32_t owner = range->owner & ~MW_VM_SETTLED;
	struct mw_vm_block *block;
	bool settled, first;

	if (range->owner == MW_VM_BEFORE)
		return true;
	block = mw_pool_at(&walk->track->vm_blocks, owner);
	settled = owner != range->owner;
	/* Where it is not all settled what is left counts. */
	first = !block->visited && (!settled || block->settled == block->pieces);
	block->visited |= first;
	return visit_fate(walk, (struct mw_track_fate){
					.addr = range->start,
					.bytes = range->end - range->start,
					.size = block->size,
					.born_ns = block->time_ns,
					.stack = block->stack,
					.thread = block->thread,
					.block = owner,
					.kind = (enum mw_kind)block->kind,
					.last = first,
					.settled = settled,
				});
}

/* Those of the tree, or those that a call holds. */
static bool visit_ranges(const struct walk *walk, uint32_t root)
{
	const struct mw_range_tree *ranges = &walk->track->ranges;
	uint32_t id = mw_range_tree_after(ranges, root, 0);

	while (id != MW_RANGE_NONE) {
		const struct mw_range *range = mw_range_at(ranges, id);

		if (!visit_range(walk, range))
			return false;
		id = mw_range_tree_after(ranges, root, range->end);
	}
	return true;
}

/* Calls of one thread and family. */
static bool visit_calls(const struct walk *walk, uint32_t thread, enum mw_pending_family family)
{
	const struct mw_pending *pending = mw_pending_find(walk->track, thread, family);

	for (; pending; pending = mw_pending_at(walk->track, family, pending->next))
		if (pending->holds == MW_PENDING_BLOCK ? !visit_block_of(walk, &pending->block, pending->interval)
						       : !visit_ranges(walk, pending->ranges))
			return false;
	return true;
}

static bool visit_pending(const struct walk *walk)
{
	const struct mw_thread_table *threads = &walk->track->threads;

	for (uint32_t i = 0; i < threads->records.used; i++)
		for (uint32_t family = 0; family < MW_PENDING_FAMILIES; family++)
			if (!visit_calls(walk, i, family))
				return false;
	return true;
}

void mw_track_each_survivor(const struct mw_track *track,
			    bool (*visit)(void *context, const struct mw_track_fate *fate), void *context)
{
	const struct walk walk = {track, visit, context};

	/* Clears the marks of an earlier walk, those of numbers not in use too, which does no harm. */
	for (uint32_t i = 0; i < track->vm_blocks.used; i++)
		((struct mw_vm_block *)mw_pool_at(&track->vm_blocks, i))->visited = false;
	if (mw_block_table_each(&track->heap, visit_heap_block, &walk) && visit_ranges(&walk, track->ranges.root))
		(void)visit_pending(&walk);
}

struct block_visitor {
	bool (*visit)(void *context, const struct mw_track_block *block, bool first);
	void *context;
};

static bool visit_block(void *context, const struct mw_track_fate *fate)
{
	const struct block_visitor *visitor = context;
	const struct mw_track_block block = {
		.addr = fate->addr,
		.bytes = fate->bytes,
		.size = fate->size,
		.time_ns = fate->born_ns,
		.stack = fate->stack,
		.thread = fate->thread,
		.number = fate->block,
		.kind = fate->kind,
		.settled = fate->settled,
		.others = fate->others,
		.variance = fate->variance,
	};

	return fate->older || visitor->visit(visitor->context, &block, fate->last);
}

void mw_track_each_block(const struct mw_track *track,
			 bool (*visit)(void *context, const struct mw_track_block *block, bool first), void *context)
{
	struct block_visitor visitor = {visit, context};

	mw_track_each_survivor(track, visit_block, &visitor);
}
