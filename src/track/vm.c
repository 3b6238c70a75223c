// SPDX-License-Identifier: MIT
/* vm.c: the events of mapped memory (vm.h). */
#include "track/vm.h"

#include "track/account.h"

static struct mw_vm_block *block_at(const struct mw_track *track, uint32_t owner)
{
	return mw_pool_at(&track->vm_blocks, owner);
}

/* Sizes come from the target: a range that would wrap ends where addresses do. */
static mw_addr end_of(mw_addr start, uint64_t size)
{
	return start > UINT64_MAX - size ? UINT64_MAX : start + size;
}

/* Of two failures one is told. */
static struct mw_error *first_of(struct mw_error *first, struct mw_error *second)
{
	if (!first)
		return second;
	mw_error_destroy(second);
	return first;
}

void mw_vm_pieces(void *context, uint32_t owner, int change)
{
	if (owner != MW_VM_BEFORE)
		block_at(context, owner)->pieces += (uint32_t)change;
}

/*
 * `bytes` of the owner are gone, and with them one of its pieces where `whole`. Those from before the
 * window are added to `before`.
 */
static struct mw_error *lose(struct mw_track *track, uint32_t owner, uint64_t bytes, bool whole, uint64_t time_ns,
			     uint64_t *before)
{
	struct mw_vm_block *block;
	struct mw_account account;
	struct mw_error *err;

	if (owner == MW_VM_BEFORE) {
		*before += bytes;
		return NULL;
	}
	block = block_at(track, owner);
	account = (struct mw_account){(enum mw_kind)block->kind, block->stack, block->thread};
	if (whole)
		block->pieces--;
	if (block->pieces > 0) {
		mw_account_shrink(track, &account, bytes);
		return NULL;
	}
	err = mw_account_end(track, &account, bytes, block->time_ns, time_ns);
	mw_pool_give(&track->vm_blocks, owner);
	return err;
}

/* Everything in a list of ranges is gone. */
static struct mw_error *lose_all(struct mw_track *track, uint32_t list, uint64_t time_ns, uint64_t *before)
{
	struct mw_error *err = NULL;

	while (list != MW_RANGE_NONE) {
		const struct mw_range *range = mw_range_at(&track->ranges, list);

		err = first_of(err, lose(track, range->owner, range->end - range->start, true, time_ns, before));
		list = mw_range_tree_release(&track->ranges, list);
	}
	return err;
}

/*
 * Give [start, end) to the owner where nobody has it; *taken is how many bytes somebody has. Without memory
 * the rest counts as taken.
 */
static struct mw_error *fill(struct mw_track *track, mw_addr start, mw_addr end, uint32_t owner, uint64_t *taken)
{
	struct mw_range_tree *ranges = &track->ranges;

	*taken = 0;
	while (start < end) {
		uint32_t id = mw_range_tree_after(ranges, start);
		const struct mw_range *range = id == MW_RANGE_NONE ? NULL : mw_range_at(ranges, id);
		mw_addr stop = !range || range->start >= end ? end : range->start;

		if (stop > start) {
			struct mw_error *err = mw_range_tree_reserve(ranges, 1);

			if (err) {
				*taken += end - start;
				return err;
			}
			mw_range_tree_join(ranges, start, stop, owner);
			start = stop;
		} else {
			stop = range->end < end ? range->end : end;
			*taken += stop - start;
			start = stop;
		}
	}
	return NULL;
}

struct mw_error *mw_vm_before(struct mw_track *track, mw_addr start, mw_addr end)
{
	uint64_t taken;

	return fill(track, start, end, MW_VM_BEFORE, &taken);
}

static void insert_block(struct mw_track *track, const struct mw_event *event, uint32_t stack)
{
	struct mw_account account = {event->kind, stack, event->thread};
	mw_addr end = end_of(event->addr, event->size);
	uint32_t owner = mw_pool_take(&track->vm_blocks);

	*block_at(track, owner) = (struct mw_vm_block){
		.time_ns = event->time_ns,
		.stack = stack,
		.thread = event->thread,
		.pieces = 1,
		.kind = (uint8_t)event->kind,
	};
	mw_range_tree_insert(&track->ranges, event->addr, end, owner);
	mw_account_add(track, &account, end - event->addr, event->time_ns);
}

/* Map over whatever was there; `before` is what the same call has taken away already. */
static struct mw_error *map(struct mw_track *track, const struct mw_event *event, uint64_t before)
{
	struct mw_error *err = NULL;
	uint32_t stack = MW_STACK_NONE;

	if (event->size > 0) {
		uint32_t list;

		MW_TRY(mw_account_stack(track, event->kind, event->stack, &stack));
		MW_TRY(mw_range_tree_reserve(&track->ranges, MW_RANGE_CUT_RESERVE + 1));
		MW_TRY(mw_pool_reserve(&track->vm_blocks, 1));
		list = mw_range_tree_cut(&track->ranges, event->addr, end_of(event->addr, event->size));
		err = lose_all(track, list, event->time_ns, &before);
		insert_block(track, event, stack);
	}
	if (before > 0)
		err = first_of(err, mw_account_aofi(track, event->kind, event->stack, before));
	return err;
}

struct mw_error *mw_vm_map(struct mw_track *track, const struct mw_event *event)
{
	return map(track, event, 0);
}

struct mw_error *mw_vm_begin(struct mw_track *track, const struct mw_event *event, enum mw_limbo_family family)
{
	struct mw_limbo *limbo;

	MW_TRY(mw_range_tree_reserve(&track->ranges, MW_RANGE_CUT_RESERVE));
	MW_TRY(mw_limbo_push(track, event, family, &limbo));
	limbo->holds = MW_LIMBO_RANGES;
	limbo->ranges = mw_range_tree_cut(&track->ranges, event->addr, end_of(event->addr, event->size));
	return NULL;
}

struct mw_error *mw_vm_end(struct mw_track *track, const struct mw_event *event, enum mw_limbo_family family)
{
	const struct mw_limbo *limbo = mw_limbo_find(track, event->thread, family);
	struct mw_event end = *event;
	struct mw_error *err = NULL;
	uint64_t before = 0;

	/* A call without a BEGIN was under way when the window began. What it unmapped is gone from the
	 * mappings known since then, or is somebody else's by now. */
	if (limbo) {
		uint32_t list = limbo->ranges;
		uint64_t time_ns = limbo->time_ns;

		if (end.stack == MW_STACK_NONE)
			end.stack = limbo->stack;
		mw_limbo_drop(track, event->thread, family);
		err = lose_all(track, list, time_ns, &before);
	}
	if (family == MW_LIMBO_UNMAP)
		end.size = 0;
	return first_of(err, map(track, &end, before));
}

struct mw_error *mw_vm_fail(struct mw_track *track, const struct mw_event *event, enum mw_limbo_family family)
{
	const struct mw_limbo *limbo = mw_limbo_find(track, event->thread, family);
	uint64_t time_ns, before = 0;
	uint32_t list, stack;
	struct mw_error *err = NULL;

	if (!limbo)
		return NULL;
	list = limbo->ranges;
	time_ns = limbo->time_ns;
	stack = event->stack != MW_STACK_NONE ? event->stack : limbo->stack;
	mw_limbo_drop(track, event->thread, family);
	while (list != MW_RANGE_NONE) {
		struct mw_range range = *mw_range_at(&track->ranges, list);
		uint64_t taken;

		/* What another thread has mapped meanwhile was free then: that part of the call did succeed. */
		list = mw_range_tree_release(&track->ranges, list);
		err = first_of(err, fill(track, range.start, range.end, range.owner, &taken));
		err = first_of(err, lose(track, range.owner, taken, true, time_ns, &before));
	}
	if (before > 0)
		err = first_of(err, mw_account_aofi(track, event->kind, stack, before));
	return err;
}
