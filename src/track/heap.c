// SPDX-License-Identifier: MIT
/* heap.c: events of the heap: the blocks they are about are found, then counted (state.h). */
#include "track/counter.h"
#include "track/state.h"

/* --- counting ---------------------------------------------------------------------------------------------- */

static inline struct mw_recent *recent_of(const struct mw_track *track, uint32_t thread)
{
	return &mw_thread_table_at(&track->threads, thread)->recent;
}

static inline __attribute__((always_inline)) struct mw_error *count_birth(struct mw_track *track,
									  const struct mw_block *block)
{
	struct mw_account account = {MW_KIND_HEAP, block->stack, block->thread};
	struct mw_error *err = mw_account_add(track, &account, block->bytes, block->time_ns);

	if (__builtin_expect(track->born != NULL, 0))
		mw_track_tell_birth(track, block, MW_KIND_HEAP, (struct mw_weight){0});
	mw_class_flows_born(&track->flows, block->bytes);
	if (__builtin_expect(track->flows.pages.count != 0, 0))
		mw_class_flows_see_page(&track->flows, block->addr, block->bytes);
	return err;
}

static inline __attribute__((always_inline)) struct mw_error *count_alloc(struct mw_track *track,
									  const struct mw_block *block)
{
	struct mw_error *err = count_birth(track, block);

	return mw_track_first_error(err, mw_replaced_alloc(track, recent_of(track, block->thread), block));
}

static inline __attribute__((always_inline)) struct mw_error *count_end(struct mw_track *track,
									const struct mw_block *block, uint64_t died_ns)
{
	struct mw_account account = {MW_KIND_HEAP, block->stack, block->thread};

	if (mw_track_is_watched(track))
		mw_track_tell_end(track, block, died_ns, (struct mw_weight){0});
	mw_class_flows_gone(&track->flows, block->bytes, mw_account_is_older(&account));
	return mw_account_end(track, &account, block->bytes, block->time_ns, died_ns);
}

static inline __attribute__((always_inline)) struct mw_error *
count_free(struct mw_track *track, const struct mw_block *block, uint32_t thread, uint64_t died_ns)
{
	struct mw_error *err = count_end(track, block, died_ns);

	return mw_track_first_error(err, mw_replaced_free(track, recent_of(track, thread), block));
}

/* A block from before the window went; its stack is whose call it was. */
static struct mw_error *count_end_older(struct mw_track *track, const struct mw_block *block, uint64_t died_ns)
{
	if (mw_track_is_watched(track))
		mw_track_tell_end(track, block, died_ns, (struct mw_weight){0});
	if (__builtin_expect(block->bytes == MW_SIZE_UNKNOWN, 0))
		MW_TRY(mw_class_flows_gone_unknown(&track->flows, block->addr));
	else
		mw_class_flows_gone_older(&track->flows, block->bytes);
	return mw_account_aofi(track, MW_KIND_HEAP, block->stack, block->bytes);
}

/* The same, by free(); `stack` may be MW_STACK_NONE. */
static __attribute__((noinline)) struct mw_error *count_free_older(struct mw_track *track, const struct mw_block *block,
								   uint32_t stack, uint32_t thread, uint64_t died_ns)
{
	MW_TRY(count_end_older(track, block, died_ns));
	return mw_replaced_free_older(
		track, recent_of(track, thread), stack,
		block->bytes == MW_SIZE_UNKNOWN ? mw_class_flows_page_size(&track->flows, block->addr) : block->bytes);
}

static struct mw_error *count_step(struct mw_track *track, const struct mw_step *step)
{
	switch (step->type) {
	case MW_STEP_ALLOC:
		return count_alloc(track, &step->block);
	case MW_STEP_REALLOC:
		return count_birth(track, &step->block);
	case MW_STEP_FREE:
		return count_free(track, &step->block, step->thread, step->died_ns);
	case MW_STEP_END:
		return count_end(track, &step->block, step->died_ns);
	case MW_STEP_FREE_OLDER:
		return count_free_older(track, &step->block, step->caller, step->thread, step->died_ns);
	case MW_STEP_END_OLDER:
		return count_end_older(track, &step->block, step->died_ns);
	case MW_STEP_VM:
		return mw_vm_event(track, step->event);
	default:
		return mw_replaced_take(track, step->caller, step->bytes, step->block.bytes, step->older);
	}
}

/* How many steps ahead memory is fetched: stacks' records, then what hangs on these. */
#define RECORDS_AHEAD   16U
#define LIFETIMES_AHEAD 8U

static inline bool is_end(const struct mw_step *step)
{
	return step->type == MW_STEP_FREE || step->type == MW_STEP_END;
}

static inline __attribute__((always_inline)) void fetch_record(const struct mw_track *track, const struct mw_step *step)
{
	const struct mw_stack_record *record = mw_stack_table_at(&track->stacks, step->block.stack);

	__builtin_prefetch(&record->tally.impacting, 1);
	__builtin_prefetch(&record->tally.known, 1);
	if (is_end(step))
		__builtin_prefetch(&record->lifetimes, 1);
}

static inline __attribute__((always_inline)) void fetch_lifetimes(const struct mw_track *track,
								  const struct mw_step *step)
{
	const struct mw_stack_record *record = mw_stack_table_at(&track->stacks, step->block.stack);

	if (is_end(step))
		mw_histogram_prefetch(&record->lifetimes,
				      step->died_ns > step->block.time_ns ? step->died_ns - step->block.time_ns : 0);
	if (record->tally.known != track->clock.now)
		mw_tally_prefetch(&record->tally);
}

struct mw_error *mw_steps_count(struct mw_track *track, const struct mw_steps *steps)
{
	uint32_t count = steps->count;
	struct mw_error *err = NULL;

	for (uint32_t i = 0; i < count && i < RECORDS_AHEAD; i++)
		fetch_record(track, &steps->items[i]);
	for (uint32_t i = 0; i < count; i++) {
		if (count - i > RECORDS_AHEAD)
			fetch_record(track, &steps->items[i + RECORDS_AHEAD]);
		if (count - i > LIFETIMES_AHEAD)
			fetch_lifetimes(track, &steps->items[i + LIFETIMES_AHEAD]);
		track->now_ns = steps->items[i].now_ns;
		err = mw_track_first_error(err, count_step(track, &steps->items[i]));
	}
	return err;
}

/* --- finding blocks ---------------------------------------------------------------------------------------- */

/* mw_account_stack() while steps may be counted: these look at stacks, which none may be added to meanwhile. */
static inline __attribute__((always_inline)) MW_MUST_CHECK struct mw_error *stack_for(struct mw_track *track,
										      uint32_t stack, uint32_t *out)
{
	if (__builtin_expect(stack == MW_STACK_NONE && !track->has_stackless[MW_KIND_HEAP], 0))
		mw_counter_drain(track->counter);
	return mw_account_stack(track, MW_KIND_HEAP, stack, out);
}

/* Put the block in that the event brings. One that was at its address already went: its free was missed. */
static inline __attribute__((always_inline)) MW_MUST_CHECK struct mw_error *
put_block(struct mw_track *track, const struct mw_event *event, uint32_t stack, struct mw_block *block,
	  struct mw_block *old, bool *replaced)
{
	*block = (struct mw_block){event->addr, event->size, event->time_ns, stack, event->thread};
	MW_TRY(stack_for(track, stack, &block->stack));
	MW_TRY(mw_block_table_insert(&track->heap, block, old, replaced));
	track->missed += *replaced;
	return NULL;
}

/* Take the block out that the event frees; false: it is from before the window, as far as is known. */
static inline __attribute__((always_inline)) bool take_block(struct mw_track *track, const struct mw_event *event,
							     struct mw_block *block)
{
	if (mw_block_table_remove(&track->heap, event->addr, block))
		return true;
	*block = (struct mw_block){event->addr, event->size, MW_TIME_UNKNOWN, event->stack, UINT32_MAX};
	return false;
}

/* What comes next to be counted for the event; there is room. */
static inline struct mw_step *add_step(struct mw_steps *steps, const struct mw_event *event, enum mw_step_type type,
				       const struct mw_block *block)
{
	struct mw_step *step = &steps->items[steps->count++];

	step->block = *block;
	step->type = (uint8_t)type;
	step->thread = event->thread;
	step->now_ns = step->died_ns = event->time_ns;
	return step;
}

static inline __attribute__((always_inline)) struct mw_error *
find_alloc(struct mw_track *track, const struct mw_event *event, uint32_t stack, struct mw_steps *steps)
{
	struct mw_block block, old;
	bool replaced;

	if (event->addr == 0)
		return NULL;
	MW_TRY(put_block(track, event, stack, &block, &old, &replaced));
	/* It goes first, so that the peak never holds both. */
	if (__builtin_expect(replaced, 0))
		add_step(steps, event, MW_STEP_END, &old);
	add_step(steps, event, event->type == MW_EVENT_ALLOC ? MW_STEP_ALLOC : MW_STEP_REALLOC, &block);
	return NULL;
}

static inline __attribute__((always_inline)) struct mw_error *
find_free(struct mw_track *track, const struct mw_event *event, struct mw_steps *steps)
{
	struct mw_block block;

	if (event->addr == 0)
		return NULL;
	if (__builtin_expect(take_block(track, event, &block), 1)) {
		add_step(steps, event, MW_STEP_FREE, &block);
		return NULL;
	}
	MW_TRY(stack_for(track, event->stack, &block.stack));
	add_step(steps, event, MW_STEP_FREE_OLDER, &block)->caller = event->stack;
	return NULL;
}

static struct mw_error *begin_realloc(struct mw_track *track, const struct mw_event *event)
{
	struct mw_pending *pending;

	MW_TRY(mw_pending_push(track, event, MW_PENDING_REALLOC, &pending));
	if (event->addr == 0)
		pending->holds = MW_PENDING_NOTHING;
	else
		pending->holds = take_block(track, event, &pending->block) ? MW_PENDING_BLOCK : MW_PENDING_UNKNOWN;
	return NULL;
}

/* What a realloc that succeeded took. A block that another stack made is no storage that its new one replaces. */
static struct mw_error *end_old(struct mw_track *track, const struct mw_event *event, const struct mw_pending *held,
				uint32_t stack, struct mw_steps *steps)
{
	bool older = held->holds == MW_PENDING_UNKNOWN;
	struct mw_block old = held->block;
	struct mw_step *step;

	if (older)
		MW_TRY(stack_for(track, stack, &old.stack));
	add_step(steps, event, older ? MW_STEP_END_OLDER : MW_STEP_END, &old)->died_ns = held->time_ns;
	if (event->addr && stack != MW_STACK_NONE && old.stack == stack) {
		step = add_step(steps, event, MW_STEP_REPLACE, &old);
		step->caller = stack;
		step->bytes = event->size;
		step->older = older;
	}
	return NULL;
}

static struct mw_error *end_realloc(struct mw_track *track, const struct mw_event *event, struct mw_steps *steps)
{
	const struct mw_pending *pending = mw_pending_find(track, event->thread, MW_PENDING_REALLOC);
	uint32_t stack = event->stack;

	/* Without a BEGIN the call was under way when the window began: what it gave back is not known. */
	if (pending) {
		struct mw_pending held = *pending;

		if (stack == MW_STACK_NONE)
			stack = held.stack;
		mw_pending_drop(track, event->thread, MW_PENDING_REALLOC);
		if (held.holds != MW_PENDING_NOTHING)
			MW_TRY(end_old(track, event, &held, stack, steps));
	}
	return event->unsampled ? NULL : find_alloc(track, event, stack, steps);
}

static struct mw_error *fail_realloc(struct mw_track *track, const struct mw_event *event, struct mw_steps *steps)
{
	const struct mw_pending *pending = mw_pending_find(track, event->thread, MW_PENDING_REALLOC);

	if (!pending)
		return NULL;
	if (pending->holds == MW_PENDING_BLOCK) {
		struct mw_block old;
		bool replaced;

		if (mw_block_table_find(&track->heap, pending->block.addr, NULL)) {
			/* Someone else was given the address meanwhile, so the block was freed after all. */
			track->missed++;
			add_step(steps, event, MW_STEP_END, &pending->block)->died_ns = pending->time_ns;
		} else {
			MW_TRY(mw_block_table_insert(&track->heap, &pending->block, &old, &replaced));
		}
	}
	mw_pending_drop(track, event->thread, MW_PENDING_REALLOC);
	return NULL;
}

static struct mw_error *find_vm(const struct mw_event *event, struct mw_steps *steps)
{
	static const struct mw_block none = {0};

	add_step(steps, event, MW_STEP_VM, &none)->event = event;
	return NULL;
}

struct mw_error *mw_steps_find(struct mw_track *track, const struct mw_event *event, struct mw_steps *steps)
{
	if (__builtin_expect(event->type >= MW_EVENT_MAP, 0))
		return find_vm(event, steps);
	switch (event->type) {
	case MW_EVENT_ALLOC:
		return find_alloc(track, event, event->stack, steps);
	case MW_EVENT_FREE:
		return find_free(track, event, steps);
	case MW_EVENT_REALLOC_BEGIN:
		return begin_realloc(track, event);
	case MW_EVENT_REALLOC_END:
		return end_realloc(track, event, steps);
	default:
		return fail_realloc(track, event, steps);
	}
}

/* --- at once ----------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) struct mw_error *take_alloc(struct mw_track *track, const struct mw_event *event)
{
	struct mw_block block, old;
	struct mw_error *err = NULL;
	bool replaced;

	if (event->addr == 0)
		return NULL;
	MW_TRY(put_block(track, event, event->stack, &block, &old, &replaced));
	if (__builtin_expect(replaced, 0))
		err = count_end(track, &old, event->time_ns);
	return mw_track_first_error(err, count_alloc(track, &block));
}

static __attribute__((noinline)) struct mw_error *take_free(struct mw_track *track, const struct mw_event *event)
{
	struct mw_block block;

	if (event->addr == 0)
		return NULL;
	if (take_block(track, event, &block))
		return count_free(track, &block, event->thread, event->time_ns);
	MW_TRY(stack_for(track, event->stack, &block.stack));
	return count_free_older(track, &block, event->stack, event->thread, event->time_ns);
}

static __attribute__((noinline)) struct mw_error *take_other(struct mw_track *track, const struct mw_event *event)
{
	struct mw_steps steps;
	struct mw_error *err;

	steps.count = 0;
	err = mw_steps_find(track, event, &steps);
	for (uint32_t i = 0; i < steps.count; i++)
		err = mw_track_first_error(err, count_step(track, &steps.items[i]));
	return err;
}

struct mw_error *mw_heap_event(struct mw_track *track, const struct mw_event *event)
{
	if (event->type == MW_EVENT_ALLOC)
		return take_alloc(track, event);
	return event->type == MW_EVENT_FREE ? take_free(track, event) : take_other(track, event);
}
