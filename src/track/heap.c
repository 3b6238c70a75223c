// SPDX-License-Identifier: MIT
/* heap.c: the events of the heap (state.h). */
#include "track/account.h"
#include "track/state.h"

/* Seldom asked for: kept out of the way of those that count. */
static __attribute__((cold, noinline)) void emit(const struct mw_track *track, const struct mw_block *block,
						 uint64_t died_ns)
{
	struct mw_track_fate fate = {
		.addr = block->addr,
		.bytes = block->bytes,
		.size = block->bytes,
		.born_ns = block->time_ns,
		.died_ns = died_ns,
		.since_ns = mw_track_since(track, block->time_ns, block->thread),
		.until_ns = track->now_ns,
		.stack = block->stack,
		.thread = block->thread == UINT32_MAX ? UINT32_MAX : block->thread & ~MW_THREAD_OLDER,
		.block = UINT32_MAX,
		.kind = MW_KIND_HEAP,
		.older = (block->thread & MW_THREAD_OLDER) != 0,
		.last = true,
	};

	track->fate(track->fate_context, &fate);
}

static struct mw_error *end_block(struct mw_track *track, const struct mw_block *block, uint64_t time_ns)
{
	struct mw_account account = {MW_KIND_HEAP, block->stack, block->thread};

	if (mw_track_is_watched(track))
		emit(track, block, time_ns);
	return mw_account_end(track, &account, block->bytes, block->time_ns, time_ns);
}

/* A block from before the window went; `stack` is whose call it was, or MW_STACK_NONE. */
static struct mw_error *end_unknown(struct mw_track *track, mw_addr addr, uint64_t bytes, uint32_t stack,
				    uint64_t time_ns)
{
	MW_TRY(mw_account_stack(track, MW_KIND_HEAP, stack, &stack));
	if (mw_track_is_watched(track)) {
		struct mw_block block = {addr, bytes, MW_TIME_UNKNOWN, stack, UINT32_MAX};

		emit(track, &block, time_ns);
	}
	return mw_account_aofi(track, MW_KIND_HEAP, stack, bytes);
}

struct mw_error *mw_heap_alloc(struct mw_track *track, const struct mw_event *event)
{
	struct mw_block block = {event->addr, event->size, event->time_ns, event->stack, event->thread};
	struct mw_block old;
	struct mw_account account;
	struct mw_error *err = NULL;
	bool replaced;

	if (event->addr == 0)
		return NULL;
	MW_TRY(mw_account_stack(track, MW_KIND_HEAP, event->stack, &block.stack));
	MW_TRY(mw_block_table_insert(&track->heap, &block, &old, &replaced));
	/* Two blocks cannot share an address: the free of the old one was missed. It goes first, so that
	 * the peak never holds both. */
	if (replaced) {
		track->missed++;
		err = end_block(track, &old, event->time_ns);
	}
	account = (struct mw_account){MW_KIND_HEAP, block.stack, block.thread};
	return mw_track_first_error(err, mw_account_add(track, &account, block.bytes, block.time_ns));
}

struct mw_error *mw_heap_free(struct mw_track *track, const struct mw_event *event)
{
	struct mw_block block;

	if (event->addr == 0)
		return NULL;
	if (mw_block_table_remove(&track->heap, event->addr, &block))
		return end_block(track, &block, event->time_ns);
	return end_unknown(track, event->addr, event->size, event->stack, event->time_ns);
}

struct mw_error *mw_heap_begin(struct mw_track *track, const struct mw_event *event)
{
	struct mw_pending *pending;

	MW_TRY(mw_pending_push(track, event, MW_PENDING_REALLOC, &pending));
	if (event->addr == 0) {
		pending->holds = MW_PENDING_NOTHING;
	} else if (mw_block_table_remove(&track->heap, event->addr, &pending->block)) {
		pending->holds = MW_PENDING_BLOCK;
	} else {
		pending->holds = MW_PENDING_UNKNOWN;
		pending->block.addr = event->addr;
		pending->block.bytes = event->size;
	}
	return NULL;
}

struct mw_error *mw_heap_end(struct mw_track *track, const struct mw_event *event)
{
	const struct mw_pending *pending = mw_pending_find(track, event->thread, MW_PENDING_REALLOC);
	struct mw_event alloc = *event;

	/* Without a BEGIN the call was under way when the window began: what it gave back is not known. */
	if (pending) {
		struct mw_pending held = *pending;

		if (alloc.stack == MW_STACK_NONE)
			alloc.stack = held.stack;
		mw_pending_drop(track, event->thread, MW_PENDING_REALLOC);
		if (held.holds == MW_PENDING_BLOCK)
			MW_TRY(end_block(track, &held.block, held.time_ns));
		else if (held.holds == MW_PENDING_UNKNOWN)
			MW_TRY(end_unknown(track, held.block.addr, held.block.bytes, alloc.stack, held.time_ns));
	}
	return mw_heap_alloc(track, &alloc);
}

struct mw_error *mw_heap_fail(struct mw_track *track, const struct mw_event *event)
{
	const struct mw_pending *pending = mw_pending_find(track, event->thread, MW_PENDING_REALLOC);
	struct mw_error *err = NULL;

	if (!pending)
		return NULL;
	if (pending->holds == MW_PENDING_BLOCK) {
		struct mw_block old;
		bool replaced;

		if (mw_block_table_find(&track->heap, pending->block.addr, NULL)) {
			/* Someone else was given the address meanwhile, so the block was freed after all. */
			track->missed++;
			err = end_block(track, &pending->block, pending->time_ns);
		} else {
			MW_TRY(mw_block_table_insert(&track->heap, &pending->block, &old, &replaced));
		}
	}
	mw_pending_drop(track, event->thread, MW_PENDING_REALLOC);
	return err;
}
