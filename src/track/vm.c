// SPDX-License-Identifier: MIT
/* vm.c: the events of mapped memory. */
#include "track/state.h"

static struct mw_vm_block *block_at(const struct mw_track *track, uint32_t owner)
{
	return mw_pool_at(&track->vm_blocks, owner);
}

/* Sizes come from the target: a range that would wrap ends where addresses do. */
static mw_addr end_of(mw_addr start, uint64_t size)
{
	return start > UINT64_MAX - size ? UINT64_MAX : start + size;
}

/* Cutting and joining change how many ranges a block has. */
static void change_pieces(void *context, uint32_t owner, int change)
{
	struct mw_vm_block *block;

	if (owner == MW_VM_BEFORE)
		return;
	block = block_at(context, owner & ~MW_VM_SETTLED);
	block->pieces += (uint32_t)change;
	if (owner & MW_VM_SETTLED)
		block->settled += (uint32_t)change;
}

void mw_vm_init(struct mw_track *track)
{
	mw_range_tree_init(&track->ranges, change_pieces, track);
	mw_pool_init(&track->vm_blocks, sizeof(struct mw_vm_block));
}

/* A call that takes memory away, and what it took. */
struct loss {
	uint64_t time_ns;
	enum mw_kind kind;
	uint32_t stack;  /* that what is from before the window is charged to; may be MW_STACK_NONE at first */
	uint64_t size;   /* bytes from before the window that it takes */
	uint64_t before; /* … and that are gone */
};

/* A part of the address space and whose it is. */
struct part {
	mw_addr start, end;
	uint32_t owner;
};

static struct mw_error *lose_before(struct mw_track *track, const struct part *part, struct loss *loss)
{
	uint64_t bytes = part->end - part->start;

	MW_TRY(mw_account_stack(track, loss->kind, loss->stack, &loss->stack));
	if (mw_track_is_watched(track))
		mw_track_tell(track, (struct mw_track_fate){
					     .addr = part->start,
					     .bytes = bytes,
					     .size = loss->size,
					     .born_ns = MW_TIME_UNKNOWN,
					     .died_ns = loss->time_ns,
					     .stack = loss->stack,
					     .thread = UINT32_MAX,
					     .kind = loss->kind,
					     /* All that one call takes counts as one. */
					     .last = loss->before == 0,
				     });
	loss->before += bytes;
	return NULL;
}

/* One of the owner's pieces is gone. */
static struct mw_error *lose(struct mw_track *track, const struct part *part, struct loss *loss)
{
	uint64_t bytes = part->end - part->start;
	struct mw_vm_block *block;
	struct mw_account account;
	struct mw_error *err;

	if (part->owner == MW_VM_BEFORE)
		return lose_before(track, part, loss);
	block = block_at(track, part->owner);
	account = (struct mw_account){(enum mw_kind)block->kind, block->stack, block->thread};
	block->pieces--;
	if (mw_track_is_watched(track))
		mw_track_tell(track, (struct mw_track_fate){
					     .addr = part->start,
					     .bytes = bytes,
					     .size = block->size,
					     .born_ns = block->time_ns,
					     .died_ns = loss->time_ns,
					     .stack = block->stack,
					     .thread = block->thread,
					     .kind = account.kind,
					     .last = block->pieces == 0,
				     });
	if (block->pieces > 0)
		return mw_account_release(track, &account, 0, bytes);
	err = mw_account_end(track, &account, bytes, block->time_ns, loss->time_ns);
	mw_pool_give(&track->vm_blocks, part->owner);
	return err;
}

/* Everything in a list of ranges is gone. */
static struct mw_error *lose_all(struct mw_track *track, uint32_t list, struct loss *loss)
{
	struct mw_error *err = NULL;

	while (list != MW_RANGE_NONE) {
		const struct mw_range *range = mw_range_at(&track->ranges, list);
		struct part part = {range->start, range->end, range->owner};

		err = mw_track_first_error(err, lose(track, &part, loss));
		list = mw_range_tree_release(&track->ranges, list);
	}
	return err;
}

/* How much of a list is from before the window. */
static uint64_t before_in(const struct mw_track *track, uint32_t list)
{
	uint64_t bytes = 0;

	for (; list != MW_RANGE_NONE; list = mw_range_at(&track->ranges, list)->right) {
		const struct mw_range *range = mw_range_at(&track->ranges, list);

		if (range->owner == MW_VM_BEFORE)
			bytes += range->end - range->start;
	}
	return bytes;
}

/* Where the next range of the tree begins that ends above `addr`. */
static mw_addr busy_from(const struct mw_track *track, mw_addr addr)
{
	uint32_t id = mw_range_tree_after(&track->ranges, track->ranges.root, addr);

	return id == MW_RANGE_NONE ? UINT64_MAX : mw_range_at(&track->ranges, id)->start;
}

struct mw_error *mw_track_before(struct mw_track *track, mw_addr start, mw_addr end)
{
	while ((start = mw_range_tree_gap(&track->ranges, start)) < end) {
		mw_addr stop = busy_from(track, start);

		MW_TRY(mw_range_tree_reserve(&track->ranges, 1));
		stop = stop < end ? stop : end;
		mw_range_tree_join(&track->ranges, start, stop, MW_VM_BEFORE);
		start = stop;
	}
	return NULL;
}

static struct mw_error *insert_block(struct mw_track *track, const struct mw_event *event, uint32_t stack)
{
	struct mw_account account = {event->kind, stack, event->thread};
	mw_addr end = end_of(event->addr, event->size);
	uint32_t owner = mw_pool_take(&track->vm_blocks);

	*block_at(track, owner) = (struct mw_vm_block){
		.time_ns = event->time_ns,
		.size = end - event->addr,
		.stack = stack,
		.thread = event->thread,
		.pieces = 1,
		.kind = (uint8_t)event->kind,
	};
	mw_range_tree_insert(&track->ranges, event->addr, end, owner);
	if (track->born) {
		const struct mw_block block = {event->addr, end - event->addr, event->time_ns, stack, event->thread};

		mw_track_tell_birth(track, &block, account.kind, (struct mw_weight){0});
	}
	return mw_account_add(track, &account, end - event->addr, event->time_ns);
}

static struct mw_error *end_loss(struct mw_track *track, const struct loss *loss)
{
	return loss->before > 0 ? mw_account_aofi(track, loss->kind, loss->stack, loss->before) : NULL;
}

/* Make sure that a mapping can be put in. */
static struct mw_error *prepare(struct mw_track *track, const struct mw_event *event, uint32_t *stack)
{
	MW_TRY(mw_account_stack(track, event->kind, event->stack, stack));
	MW_TRY(mw_range_tree_reserve(&track->ranges, MW_RANGE_CUT_RESERVE + 1));
	return mw_pool_reserve(&track->vm_blocks, 1);
}

/* What the call held is gone; then it maps, where it does, over whatever was there. */
static struct mw_error *map(struct mw_track *track, const struct mw_event *event, uint32_t held, struct loss *loss)
{
	struct mw_range_tree *ranges = &track->ranges;
	mw_addr end = end_of(event->addr, event->size);
	uint32_t first = mw_range_tree_list(ranges, held), second = MW_RANGE_NONE, stack = 0;
	bool maps = end > event->addr; /* nothing lies behind the last address */
	struct mw_error *err = maps ? prepare(track, event, &stack) : NULL;

	maps = maps && !err;
	if (maps)
		second = mw_range_tree_list(ranges, mw_range_tree_cut(ranges, event->addr, end));
	loss->size = before_in(track, first) + before_in(track, second);
	err = mw_track_first_error(err, lose_all(track, first, loss));
	loss->time_ns = event->time_ns;
	err = mw_track_first_error(err, lose_all(track, second, loss));
	if (maps)
		err = mw_track_first_error(err, insert_block(track, event, stack));
	return mw_track_first_error(err, end_loss(track, loss));
}

static struct mw_error *take_map(struct mw_track *track, const struct mw_event *event)
{
	struct loss loss = {.time_ns = event->time_ns, .kind = event->kind, .stack = event->stack};

	return map(track, event, MW_RANGE_NONE, &loss);
}

static struct mw_error *take_begin(struct mw_track *track, const struct mw_event *event, enum mw_pending_family family)
{
	struct mw_pending *pending;

	MW_TRY(mw_range_tree_reserve(&track->ranges, MW_RANGE_CUT_RESERVE));
	MW_TRY(mw_pending_push(track, event, family, &pending));
	pending->holds = MW_PENDING_RANGES;
	pending->ranges = mw_range_tree_cut(&track->ranges, event->addr, end_of(event->addr, event->size));
	return NULL;
}

/* Take the newest call of the event's thread and family out of what is pending: gives its ranges, and what it may have
 * taken. */
static bool take_call(struct mw_track *track, const struct mw_event *event, enum mw_pending_family family,
		      uint32_t *held, struct loss *loss)
{
	const struct mw_pending *pending = mw_pending_find(track, event->thread, family);

	*loss = (struct loss){.time_ns = event->time_ns, .kind = event->kind, .stack = event->stack};
	if (!pending)
		return false;
	*held = pending->ranges;
	loss->time_ns = pending->time_ns;
	/* A BEGIN record with another kind is invalid, but sums over stacks equal totals even so. */
	if (event->stack == MW_STACK_NONE && pending->stack != MW_STACK_NONE &&
	    (int)mw_stack_table_kind(&track->stacks, pending->stack) == event->kind)
		loss->stack = pending->stack;
	mw_pending_drop(track, event->thread, family);
	return true;
}

static struct mw_error *take_end(struct mw_track *track, const struct mw_event *event, enum mw_pending_family family)
{
	struct mw_event end = *event;
	struct loss loss;
	uint32_t held = MW_RANGE_NONE;

	/* A call without a BEGIN was under way when the window began. What it unmapped is gone from the
	 * mappings known since then, or is somebody else's by now. */
	(void)take_call(track, event, family, &held, &loss);
	end.stack = loss.stack;
	if (family == MW_PENDING_UNMAP)
		end.size = 0;
	return map(track, &end, held, &loss);
}

/*
 * What a call held is back, but where somebody else has it by now: that is put into *lost. It goes stretch by stretch
 * of what is free and what is not, not range by range. Without memory the rest counts as taken.
 */
static struct mw_error *restore(struct mw_track *track, uint32_t held, uint32_t *lost)
{
	struct mw_range_tree *ranges = &track->ranges;
	uint32_t first;

	*lost = MW_RANGE_NONE;
	while ((first = mw_range_tree_after(ranges, held, 0)) != MW_RANGE_NONE) {
		mw_addr start = mw_range_at(ranges, first)->start, stop = busy_from(track, start);
		bool is_free = stop > start;
		struct mw_error *err = mw_range_tree_reserve(ranges, 1);
		uint32_t part;

		if (err) {
			*lost = mw_range_tree_append(ranges, *lost, held);
			return err;
		}
		part = mw_range_tree_take(ranges, &held, is_free ? stop : mw_range_tree_gap(ranges, start));
		if (is_free)
			mw_range_tree_put_back(ranges, part);
		else
			*lost = mw_range_tree_append(ranges, *lost, part);
	}
	return NULL;
}

static struct mw_error *take_fail(struct mw_track *track, const struct mw_event *event, enum mw_pending_family family)
{
	struct mw_error *err;
	struct loss loss;
	uint32_t held, lost;

	if (!take_call(track, event, family, &held, &loss))
		return NULL;
	/* What another thread has mapped meanwhile was free then: that part of the call did succeed. */
	err = restore(track, held, &lost);
	lost = mw_range_tree_list(&track->ranges, lost);
	loss.size = before_in(track, lost);
	err = mw_track_first_error(err, lose_all(track, lost, &loss));
	return mw_track_first_error(err, end_loss(track, &loss));
}

struct mw_error *mw_vm_event(struct mw_track *track, const struct mw_event *event)
{
	if (event->kind != MW_KIND_VM && event->kind != MW_KIND_VM_INTERNAL)
		return mw_error_create(MW_ERROR_DATA, 0, "mapping event %d of kind %d", (int)event->type,
				       (int)event->kind);
	switch (event->type) {
	case MW_EVENT_MAP:
		return take_map(track, event);
	case MW_EVENT_UNMAP_BEGIN:
		return take_begin(track, event, MW_PENDING_UNMAP);
	case MW_EVENT_UNMAP_END:
		return take_end(track, event, MW_PENDING_UNMAP);
	case MW_EVENT_UNMAP_FAIL:
		return take_fail(track, event, MW_PENDING_UNMAP);
	case MW_EVENT_REMAP_BEGIN:
		return take_begin(track, event, MW_PENDING_REMAP);
	case MW_EVENT_REMAP_END:
		return take_end(track, event, MW_PENDING_REMAP);
	case MW_EVENT_REMAP_FAIL:
		return take_fail(track, event, MW_PENDING_REMAP);
	default:
		return mw_error_create(MW_ERROR_DATA, 0, "event of unknown type %d", (int)event->type);
	}
}
