// SPDX-License-Identifier: MIT
/*
 * settle.c: frees after the window (track.h): what they are of is marked, and stays where it is.
 *
 * Nothing is recorded that comes to be, so an address may be used again by blocks that nobody knows: what is marked
 * once is never looked at again. A mapping goes piece by piece; it is settled when all of its pieces are.
 */
#include "track/state.h"

/* Blocks of before the interval are marked, but are none of its figures. */
static void count(struct mw_track *track, const struct mw_account *account, uint64_t blocks, uint64_t bytes)
{
	struct mw_amount *sums[] = {&track->totals[account->kind].settled,
				    &mw_stack_table_at(&track->stacks, account->stack)->tally.settled};

	for (size_t i = 0; i < 2 && !mw_account_is_older(account); i++) {
		sums[i]->count += blocks;
		sums[i]->bytes += bytes;
	}
}

/* False: it was before. */
static bool mark_block(struct mw_track *track, struct mw_block *block, uint16_t interval)
{
	struct mw_account account = {MW_KIND_HEAP, block->stack, block->thread};
	struct mw_weight weight = mw_sampling_weight(track, block, interval);
	struct mw_amount amount = mw_weight_amount(weight, block->bytes);

	if (block->thread & MW_THREAD_SETTLED)
		return false;
	block->thread |= MW_THREAD_SETTLED;
	count(track, &account, amount.count, amount.bytes);
	mw_sampling_settled(track, block, weight);
	return true;
}

static struct mw_error *settle_heap(struct mw_track *track, mw_addr addr)
{
	struct mw_block block, old;
	bool replaced;

	if (!mw_block_table_find(&track->heap, addr, &block) ||
	    !mark_block(track, &block, mw_sampling_interval_at(track, addr)))
		return NULL;
	return mw_block_table_insert(&track->heap, &block, &old, &replaced);
}

/* --- realloc: only where it moved the block or freed it ------------------------------------------------------------ */

static struct mw_error *begin_realloc(struct mw_track *track, const struct mw_event *event)
{
	struct mw_pending *pending;

	MW_TRY(mw_pending_push(track, event, MW_PENDING_REALLOC, &pending));
	pending->holds = MW_PENDING_SETTLING;
	pending->block.addr = event->addr;
	return NULL;
}

static struct mw_error *end_realloc(struct mw_track *track, const struct mw_event *event, bool failed)
{
	struct mw_pending *pending = mw_pending_find(track, event->thread, MW_PENDING_REALLOC);
	mw_addr addr;

	if (!pending)
		return NULL;
	if (pending->holds == MW_PENDING_BLOCK) {
		/* It was under way when the window ended, and has no other place than this (mw_track_settle()). */
		if (!failed && event->addr != pending->block.addr)
			(void)mark_block(track, &pending->block, pending->interval);
		return NULL;
	}
	addr = pending->holds == MW_PENDING_SETTLING ? pending->block.addr : 0;
	mw_pending_drop(track, event->thread, MW_PENDING_REALLOC);
	return failed || event->addr == addr ? NULL : settle_heap(track, addr);
}

/* --- mappings ------------------------------------------------------------------------------------------------------ */

static void mark_range(struct mw_track *track, struct mw_range *range)
{
	struct mw_vm_block *block;
	struct mw_account account;

	if (range->owner == MW_VM_BEFORE || range->owner & MW_VM_SETTLED)
		return;
	block = mw_pool_at(&track->vm_blocks, range->owner);
	account = (struct mw_account){(enum mw_kind)block->kind, block->stack, block->thread};
	range->owner |= MW_VM_SETTLED;
	block->settled++;
	count(track, &account, block->settled == block->pieces, range->end - range->start);
}

/* Of the tree, or of what was cut out of it. */
static void mark_all(struct mw_track *track, uint32_t root)
{
	uint32_t id = mw_range_tree_after(&track->ranges, root, 0);

	while (id != MW_RANGE_NONE) {
		struct mw_range *range = mw_range_at(&track->ranges, id);

		mark_range(track, range);
		id = mw_range_tree_after(&track->ranges, root, range->end);
	}
}

static struct mw_error *settle_range(struct mw_track *track, mw_addr start, uint64_t size)
{
	mw_addr end = start > UINT64_MAX - size ? UINT64_MAX : start + size;
	uint32_t root;

	MW_TRY(mw_range_tree_reserve(&track->ranges, MW_RANGE_CUT_RESERVE));
	root = mw_range_tree_cut(&track->ranges, start, end);
	mark_all(track, root);
	mw_range_tree_put_back(&track->ranges, root);
	return NULL;
}

/* The thread's newest call of the family that is under way. */
static struct mw_pending *call_of(const struct mw_track *track, uint32_t thread, enum mw_pending_family family)
{
	struct mw_pending *pending = mw_pending_find(track, thread, family);

	while (pending && pending->holds == MW_PENDING_SETTLED)
		pending = mw_pending_at(track, family, pending->next);
	return pending;
}

/* A call that was under way when the window ended goes on to hold what it took out of the tree. */
static void end_old_call(struct mw_track *track, struct mw_pending *pending, bool gone)
{
	if (gone)
		mark_all(track, pending->ranges);
	pending->holds = MW_PENDING_SETTLED;
}

static struct mw_error *end_unmap(struct mw_track *track, const struct mw_event *event, bool failed)
{
	struct mw_pending *pending = call_of(track, event->thread, MW_PENDING_UNMAP);

	if (pending)
		end_old_call(track, pending, !failed);
	return pending || failed ? NULL : settle_range(track, event->addr, event->size);
}

static struct mw_error *begin_remap(struct mw_track *track, const struct mw_event *event)
{
	struct mw_pending *pending;

	MW_TRY(mw_pending_push(track, event, MW_PENDING_REMAP, &pending));
	pending->holds = MW_PENDING_SETTLING;
	pending->block.addr = event->addr;
	pending->block.bytes = event->size;
	return NULL;
}

static struct mw_error *end_remap(struct mw_track *track, const struct mw_event *event, bool failed)
{
	struct mw_pending *pending = call_of(track, event->thread, MW_PENDING_REMAP);
	struct mw_block old = {.addr = event->addr};

	if (pending && pending->holds == MW_PENDING_RANGES) {
		uint32_t first = mw_range_tree_after(&track->ranges, pending->ranges, 0);

		end_old_call(track, pending,
			     !failed && first != MW_RANGE_NONE &&
				     mw_range_at(&track->ranges, first)->start != event->addr);
	} else if (pending) {
		old = pending->block;
		mw_pending_drop(track, event->thread, MW_PENDING_REMAP);
	}
	if (failed)
		return NULL;
	/* What it maps lies where nothing is any more. In place a part may be cut off. */
	if (event->addr != old.addr) {
		MW_TRY(settle_range(track, old.addr, old.bytes));
		return settle_range(track, event->addr, event->size);
	}
	return old.bytes > event->size ? settle_range(track, old.addr + event->size, old.bytes - event->size) : NULL;
}

/* ------------------------------------------------------------------------------------------------------------------- */

struct mw_error *mw_settle_event(struct mw_track *track, const struct mw_event *event)
{
	switch (event->type) {
	case MW_EVENT_ALLOC:
	case MW_EVENT_UNMAP_BEGIN:
		return NULL;
	case MW_EVENT_FREE:
		return settle_heap(track, event->addr);
	case MW_EVENT_REALLOC_BEGIN:
		return begin_realloc(track, event);
	case MW_EVENT_REALLOC_END:
	case MW_EVENT_REALLOC_FAIL:
		return end_realloc(track, event, event->type == MW_EVENT_REALLOC_FAIL);
	case MW_EVENT_MAP:
		return settle_range(track, event->addr, event->size);
	case MW_EVENT_UNMAP_END:
	case MW_EVENT_UNMAP_FAIL:
		return end_unmap(track, event, event->type == MW_EVENT_UNMAP_FAIL);
	case MW_EVENT_REMAP_BEGIN:
		return begin_remap(track, event);
	case MW_EVENT_REMAP_END:
	case MW_EVENT_REMAP_FAIL:
		return end_remap(track, event, event->type == MW_EVENT_REMAP_FAIL);
	default:
		return mw_error_create(MW_ERROR_DATA, 0, "event of unknown type %d", (int)event->type);
	}
}

/* Blocks that calls under way hold are back in the table, but where somebody else has the address by now. */
static struct mw_error *put_back(struct mw_track *track, uint32_t thread)
{
	struct mw_pending *pending = mw_pending_find(track, thread, MW_PENDING_REALLOC);

	for (; pending; pending = mw_pending_at(track, MW_PENDING_REALLOC, pending->next)) {
		struct mw_block old;
		bool replaced;

		if (pending->holds == MW_PENDING_BLOCK &&
		    !mw_block_table_find(&track->heap, pending->block.addr, NULL)) {
			MW_TRY(mw_block_table_insert(&track->heap, &pending->block, &old, &replaced));
			MW_TRY(mw_sampling_set_interval(track, pending->block.addr, pending->interval));
			pending->holds = MW_PENDING_SETTLING;
		}
	}
	return NULL;
}

struct mw_error *mw_track_settle(struct mw_track *track)
{
	for (uint32_t i = 0; i < track->threads.records.used && !track->settling; i++)
		MW_TRY(put_back(track, i));
	track->settling = true;
	return NULL;
}
