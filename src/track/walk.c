// SPDX-License-Identifier: MIT
/* walk.c: all that is there now, piece by piece (track.h). */
#include "track/state.h"
#include "track/vm.h"

struct walk {
	const struct mw_track *track;
	/* `first`: it is not a further piece of what was visited before; `is_older`: from before the interval */
	bool (*visit)(const struct walk *walk, const struct mw_track_block *block, bool first, bool is_older);
	bool (*visit_block)(void *context, const struct mw_track_block *block, bool first);
	bool (*visit_fate)(void *context, const struct mw_track_fate *fate);
	void *context;
};

static bool visit_heap_block(const void *context, const struct mw_block *block)
{
	const struct walk *walk = context;
	struct mw_track_block out = {
		.addr = block->addr,
		.bytes = block->bytes,
		.size = block->bytes,
		.time_ns = block->time_ns,
		.stack = block->stack,
		.thread = block->thread & ~MW_THREAD_OLDER,
		.number = UINT32_MAX,
		.kind = MW_KIND_HEAP,
	};

	return walk->visit(walk, &out, true, (block->thread & MW_THREAD_OLDER) != 0);
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
		.size = block->size,
		.time_ns = block->time_ns,
		.stack = block->stack,
		.thread = block->thread & ~MW_THREAD_OLDER,
		.number = range->owner,
		.kind = (enum mw_kind)block->kind,
	};
	return walk->visit(walk, &out, first, (block->thread & MW_THREAD_OLDER) != 0);
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
static bool visit_calls(const struct walk *walk, uint32_t id)
{
	while (id != MW_POOL_NONE) {
		const struct mw_pending *pending = mw_pool_at(&walk->track->pending, id);

		if (pending->holds == MW_PENDING_BLOCK ? !visit_heap_block(walk, &pending->block)
						       : !visit_ranges(walk, pending->ranges))
			return false;
		id = pending->next;
	}
	return true;
}

static bool visit_pending(const struct walk *walk)
{
	const struct mw_thread_table *threads = &walk->track->threads;

	for (uint32_t i = 0; i < threads->records.used; i++)
		for (uint32_t family = 0; family < MW_PENDING_FAMILIES; family++)
			if (!visit_calls(walk, mw_thread_table_at(threads, i)->pending[family]))
				return false;
	return true;
}

static void visit_all(const struct walk *walk)
{
	const struct mw_track *track = walk->track;

	/* Clears the marks of an earlier walk, those of numbers not in use too, which does no harm. */
	for (uint32_t i = 0; i < track->vm_blocks.used; i++)
		((struct mw_vm_block *)mw_pool_at(&track->vm_blocks, i))->visited = false;
	if (mw_block_table_each(&track->heap, visit_heap_block, walk) && visit_ranges(walk, track->ranges.root))
		(void)visit_pending(walk);
}

static bool give_block(const struct walk *walk, const struct mw_track_block *block, bool first, bool is_older)
{
	return is_older || walk->visit_block(walk->context, block, first);
}

void mw_track_each_block(const struct mw_track *track,
			 bool (*visit)(void *context, const struct mw_track_block *block, bool first), void *context)
{
	struct walk walk = {.track = track, .visit = give_block, .visit_block = visit, .context = context};

	visit_all(&walk);
}

static bool give_fate(const struct walk *walk, const struct mw_track_block *block, bool first, bool is_older)
{
	struct mw_track_fate fate = {
		.addr = block->addr,
		.bytes = block->bytes,
		.size = block->size,
		.born_ns = block->time_ns,
		.died_ns = MW_TIME_UNKNOWN,
		.since_ns = is_older ? block->time_ns : mw_track_since(walk->track, block->time_ns, block->thread),
		.until_ns = MW_TIME_UNKNOWN,
		.stack = block->stack,
		.thread = block->thread,
		.block = block->number,
		.kind = block->kind,
		.older = is_older,
		.last = first,
	};

	return walk->visit_fate(walk->context, &fate);
}

void mw_track_each_survivor(const struct mw_track *track,
			    bool (*visit)(void *context, const struct mw_track_fate *fate), void *context)
{
	struct walk walk = {.track = track, .visit = give_fate, .visit_fate = visit, .context = context};

	visit_all(&walk);
}
