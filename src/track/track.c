// SPDX-License-Identifier: MIT
/* track.c: the tracker's life and its sink: threads, events of the heap (track.h). */
#include "track/track.h"

#include "base/hash.h"
#include "base/vector.h"
#include "track/state.h"

#include <stdlib.h>
#include <string.h>

/* --- threads --------------------------------------------------------------------------------------------- */

static struct mw_error *set_name(struct mw_thread_table *table, struct mw_thread_record *thread, const char *text)
{
	size_t size = sizeof(struct mw_thread_name) + strlen(text) + 1;
	struct mw_thread_name *name = thread->names;

	while (name && strcmp(name->text, text) != 0)
		name = name->older;
	if (!name) {
		name = malloc(size);
		if (!name)
			return mw_error_nomem();
		name->older = thread->names;
		strcpy(name->text, text);
		thread->names = name;
		table->name_bytes += size;
	}
	thread->name = name->text;
	return NULL;
}

static struct mw_error *add_thread(struct mw_thread_table *table, pid_t tid, uint32_t *number)
{
	uint32_t found = table->records.used; /* none is ever given back */
	struct mw_thread_record *thread;

	if (found >= MW_THREAD_SETTLED)
		return mw_error_nomem();
	MW_TRY(mw_pool_reserve(&table->records, 1));
	MW_TRY(mw_map_set(&table->latest, (uint64_t)tid,
			  (void *)(uintptr_t)(found + 1))); // NOLINT(performance-no-int-to-ptr)
	thread = mw_thread_table_at(table, mw_pool_take(&table->records));
	thread->tid = tid;
	thread->name = "";
	for (uint32_t i = 0; i < MW_PENDING_FAMILIES; i++)
		thread->pending[i] = MW_POOL_NONE;
	*number = found;
	return NULL;
}

static struct mw_error *take_thread(void *context, pid_t tid, const char *name, bool fresh, uint32_t *number)
{
	struct mw_thread_table *table = &((struct mw_track *)context)->threads;
	uint32_t found = (uint32_t)(uintptr_t)mw_map_get(&table->latest, (uint64_t)tid);

	if (found && !fresh)
		found--;
	else
		MW_TRY(add_thread(table, tid, &found));
	if (name)
		MW_TRY(set_name(table, mw_thread_table_at(table, found), name));
	*number = found;
	return NULL;
}

static struct mw_error *take_interval(void *context, uint64_t bytes, uint16_t *number)
{
	return mw_sampling_number(context, bytes, number);
}

/* --- fates ----------------------------------------------------------------------------------------------- */

static uint32_t hash_of_late(uint64_t time_ns, uint32_t thread)
{
	return (uint32_t)mw_hash_mix(mw_hash_add(thread, time_ns));
}

static uint32_t hash_of_item(const void *items, uint32_t number)
{
	const struct mw_late_item *item = &((const struct mw_late_item *)items)[number];

	return hash_of_late(item->time_ns, item->thread);
}

static struct mw_late_item *find_late(const struct mw_late *late, uint64_t time_ns, uint32_t thread)
{
	uint32_t hash = hash_of_late(time_ns, thread), number;

	MW_INDEX_EACH(&late->index, hash, number)
		if (late->items[number].time_ns == time_ns && late->items[number].thread == thread)
			return &late->items[number];
	return NULL;
}

/* A thread's event of `time_ns` comes after one of `since_ns`, which is later. */
static struct mw_error *add_late(struct mw_late *late, uint64_t time_ns, uint32_t thread, uint64_t since_ns)
{
	struct mw_late_item *item;

	if (late->index.count >= MW_LATE_MAX)
		return NULL;
	item = find_late(late, time_ns, thread);
	if (!item) {
		if (!mw_index_reserve(&late->index, hash_of_item, late->items) ||
		    !MW_VECTOR_ROOM(late->items, late->index.count, late->capacity))
			return mw_error_nomem();
		item = &late->items[mw_index_put(&late->index, hash_of_late(time_ns, thread))];
	}
	*item = (struct mw_late_item){.time_ns = time_ns, .since_ns = since_ns, .thread = thread};
	return NULL;
}

/* Few blocks are late, and fates are seldom asked for: kept out of the way of what counts. */
__attribute__((cold)) uint64_t mw_track_since(const struct mw_track *track, uint64_t born_ns, uint32_t thread)
{
	const struct mw_late *late = &track->late;
	const struct mw_late_item *item = NULL;

	if (born_ns != MW_TIME_UNKNOWN && !(thread & MW_THREAD_OLDER) && late->index.count)
		item = find_late(late, born_ns, thread);
	return item ? item->since_ns : born_ns;
}

__attribute__((cold, noinline)) void mw_track_tell(const struct mw_track *track, struct mw_track_fate fate)
{
	fate.since_ns = mw_track_since(track, fate.born_ns, fate.thread);
	fate.until_ns = track->now_ns;
	fate.block = UINT32_MAX;
	fate.older = (fate.thread & MW_THREAD_OLDER) != 0;
	if (fate.thread != UINT32_MAX)
		fate.thread &= ~MW_THREAD_OLDER;
	track->fate(track->fate_context, &fate);
}

__attribute__((cold, noinline)) void mw_track_tell_birth(const struct mw_track *track, const struct mw_block *block,
							 enum mw_kind kind, struct mw_weight weight)
{
	const struct mw_track_fate born = {
		.addr = block->addr,
		.bytes = block->bytes,
		.size = block->bytes,
		.born_ns = block->time_ns,
		.died_ns = MW_TIME_UNKNOWN,
		.since_ns = track->now_ns,
		.until_ns = MW_TIME_UNKNOWN,
		.stack = block->stack,
		.thread = block->thread,
		.block = UINT32_MAX,
		.kind = kind,
		.last = true,
		.others = weight.others,
		.variance = weight.variance,
	};

	track->born(track->born_context, &born);
}

void mw_track_watch_births(struct mw_track *track, void (*born)(void *context, const struct mw_track_fate *block),
			   void *context)
{
	track->born = born;
	track->born_context = context;
}

void mw_track_watch(struct mw_track *track, void (*fate)(void *context, const struct mw_track_fate *fate),
		    void *context)
{
	track->fate = fate;
	track->fate_context = context;
}

/* --- the heap -------------------------------------------------------------------------------------------- */

static __attribute__((cold, noinline)) void tell(const struct mw_track *track, struct mw_block block, uint64_t died_ns)
{
	mw_track_tell(track, (struct mw_track_fate){
				     .addr = block.addr,
				     .bytes = block.bytes,
				     .size = block.bytes,
				     .born_ns = block.time_ns,
				     .died_ns = died_ns,
				     .stack = block.stack,
				     .thread = block.thread,
				     .kind = MW_KIND_HEAP,
				     .last = true,
			     });
}

static inline __attribute__((always_inline)) struct mw_error *end_block(struct mw_track *track,
									const struct mw_block *block, uint64_t time_ns)
{
	struct mw_account account = {MW_KIND_HEAP, block->stack, block->thread};

	if (mw_track_is_watched(track))
		tell(track, *block, time_ns);
	mw_class_flows_gone(&track->flows, block->bytes, mw_account_is_older(&account));
	return mw_account_end(track, &account, block->bytes, block->time_ns, time_ns);
}

/* A block from before the window went; `stack` is whose call it was, or MW_STACK_NONE. */
static inline __attribute__((always_inline)) struct mw_error *
end_unknown(struct mw_track *track, mw_addr addr, uint64_t bytes, uint32_t stack, uint64_t time_ns)
{
	MW_TRY(mw_account_stack(track, MW_KIND_HEAP, stack, &stack));
	if (mw_track_is_watched(track)) {
		struct mw_block block = {addr, bytes, MW_TIME_UNKNOWN, stack, UINT32_MAX};

		tell(track, block, time_ns);
	}
	if (__builtin_expect(bytes == MW_SIZE_UNKNOWN, 0))
		MW_TRY(mw_class_flows_gone_unknown(&track->flows, addr));
	else
		mw_class_flows_gone_older(&track->flows, bytes);
	return mw_account_aofi(track, MW_KIND_HEAP, stack, bytes);
}

static struct mw_recent *recent_of(const struct mw_track *track, const struct mw_event *event)
{
	return &mw_thread_table_at(&track->threads, event->thread)->recent;
}

static __attribute__((noinline)) struct mw_error *take_alloc(struct mw_track *track, const struct mw_event *event)
{
	struct mw_account account = {MW_KIND_HEAP, event->stack, event->thread};
	struct mw_block block, old;
	struct mw_error *err = NULL;
	bool replaced;

	if (event->addr == 0)
		return NULL;
	MW_TRY(mw_account_stack(track, MW_KIND_HEAP, event->stack, &account.stack));
	block = (struct mw_block){event->addr, event->size, event->time_ns, account.stack, event->thread};
	MW_TRY(mw_block_table_insert(&track->heap, &block, &old, &replaced));
	/* Two blocks cannot share an address: the free of the old one was missed. It goes first, so that
	 * the peak never holds both. */
	if (__builtin_expect(replaced, 0)) {
		track->missed++;
		err = end_block(track, &old, event->time_ns);
	}
	err = mw_track_first_error(err, mw_account_add(track, &account, block.bytes, block.time_ns));
	if (__builtin_expect(track->born != NULL, 0))
		mw_track_tell_birth(track, &block, MW_KIND_HEAP, (struct mw_weight){0});
	mw_class_flows_born(&track->flows, block.bytes);
	if (__builtin_expect(track->flows.pages.count != 0, 0))
		mw_class_flows_see_page(&track->flows, block.addr, block.bytes);
	if (event->type == MW_EVENT_ALLOC)
		err = mw_track_first_error(err, mw_replaced_alloc(track, recent_of(track, event), &block));
	return err;
}

static __attribute__((noinline)) struct mw_error *take_free(struct mw_track *track, const struct mw_event *event)
{
	struct mw_block block;

	if (event->addr == 0)
		return NULL;
	if (mw_block_table_remove(&track->heap, event->addr, &block))
		return mw_track_first_error(end_block(track, &block, event->time_ns),
					    mw_replaced_free(track, recent_of(track, event), &block));
	MW_TRY(end_unknown(track, event->addr, event->size, event->stack, event->time_ns));
	return mw_replaced_free_older(
		track, recent_of(track, event), event->stack,
		event->size == MW_SIZE_UNKNOWN ? mw_class_flows_page_size(&track->flows, event->addr) : event->size);
}

static __attribute__((noinline)) struct mw_error *begin_realloc(struct mw_track *track, const struct mw_event *event)
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

static __attribute__((noinline)) struct mw_error *end_realloc(struct mw_track *track, const struct mw_event *event)
{
	const struct mw_pending *pending = mw_pending_find(track, event->thread, MW_PENDING_REALLOC);
	struct mw_event alloc = *event;
	struct mw_error *err = NULL;

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
		/* A block that another stack made is no storage that this one replaces. */
		if (alloc.addr && alloc.stack != MW_STACK_NONE &&
		    (held.holds == MW_PENDING_UNKNOWN ||
		     (held.holds == MW_PENDING_BLOCK && held.block.stack == alloc.stack)))
			err = mw_replaced_take(track, alloc.stack, alloc.size, held.block.bytes,
					       held.holds == MW_PENDING_UNKNOWN);
	}
	return alloc.unsampled ? err : mw_track_first_error(err, take_alloc(track, &alloc));
}

static __attribute__((noinline)) struct mw_error *fail_realloc(struct mw_track *track, const struct mw_event *event)
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

/* --- the sink -------------------------------------------------------------------------------------------- */

static struct mw_error *take_stack(void *context, const struct mw_raw_stack *stack, uint32_t *id)
{
	struct mw_track *track = context;

	if ((unsigned int)stack->kind >= MW_KIND_COUNT)
		return mw_error_create(MW_ERROR_DATA, 0, "stack of unknown kind %d", (int)stack->kind);
	return mw_stack_table_intern(&track->stacks, stack, id);
}

static bool knows(void *context, mw_addr addr)
{
	struct mw_track *track = context;
	struct mw_block block;

	return mw_block_table_find(&track->heap, addr, &block) && !(block.thread & MW_THREAD_SETTLED);
}

static int kind_of(const struct mw_event *event)
{
	return event->type < MW_EVENT_MAP ? MW_KIND_HEAP : (int)event->kind;
}

static bool knows_interval(const struct mw_track *track, const struct mw_event *event)
{
	return event->interval <= (track->sampling ? track->sampling->interval_count : 0);
}

/* Do its thread and stack exist? Asked before anything is counted, so that a wrong event counts nothing. */
static bool is_sound(const struct mw_track *track, const struct mw_event *event)
{
	return event->thread < track->threads.records.used &&
	       (event->stack == MW_STACK_NONE ||
		(event->stack < track->stacks.records.used &&
		 mw_stack_table_at(&track->stacks, event->stack)->tally.kind == kind_of(event)));
}

static struct mw_error *refuse(const struct mw_track *track, const struct mw_event *event)
{
	if (event->thread >= track->threads.records.used)
		return mw_error_create(MW_ERROR_DATA, 0, "event with unknown thread %u", event->thread);
	if (!knows_interval(track, event))
		return mw_error_create(MW_ERROR_DATA, 0, "event with unknown sampling interval %u", event->interval);
	if (event->stack >= track->stacks.records.used)
		return mw_error_create(MW_ERROR_DATA, 0, "event with unknown stack %u", event->stack);
	return mw_error_create(MW_ERROR_DATA, 0, "event of kind %d with stack %u of another kind", kind_of(event),
			       event->stack);
}

/* An event that comes after a later one. What it brings is noted for those who watch. */
static struct mw_error *come_late(struct mw_track *track, const struct mw_event *event)
{
	bool brings = event->type == MW_EVENT_ALLOC || event->type == MW_EVENT_REALLOC_END ||
		      event->type == MW_EVENT_MAP || event->type == MW_EVENT_REMAP_END;

	return brings && mw_track_is_watched(track)
		       ? add_late(&track->late, event->time_ns, event->thread, track->now_ns)
		       : NULL;
}

static struct mw_error *dispatch(struct mw_track *track, const struct mw_event *event)
{
	if (!knows_interval(track, event))
		return refuse(track, event);
	if (track->sampling && event->type < MW_EVENT_MAP)
		return mw_sampling_event(track, event);
	switch (event->type) {
	case MW_EVENT_ALLOC:
		return take_alloc(track, event);
	case MW_EVENT_FREE:
		return take_free(track, event);
	case MW_EVENT_REALLOC_BEGIN:
		return begin_realloc(track, event);
	case MW_EVENT_REALLOC_END:
		return end_realloc(track, event);
	case MW_EVENT_REALLOC_FAIL:
		return fail_realloc(track, event);
	default:
		return mw_vm_event(track, event);
	}
}

/* What seldom comes: wrong events, late ones, the first after a moment, those after the window. */
static __attribute__((cold, noinline)) struct mw_error *take_unusual(struct mw_track *track,
								     const struct mw_event *event)
{
	if (!is_sound(track, event) || !knows_interval(track, event))
		return refuse(track, event);
	if (track->settling)
		return mw_settle_event(track, event);
	if (event->time_ns < track->now_ns)
		MW_TRY(come_late(track, event));
	else
		track->now_ns = event->time_ns;
	if (mw_series_clock_lags(&track->clock, event->time_ns)) {
		mw_series_clock_advance(&track->clock, event->time_ns);
		MW_TRY(mw_class_flows_follow(&track->flows, &track->clock));
	}
	return dispatch(track, event);
}

static struct mw_error *take_event(void *context, const struct mw_event *event)
{
	struct mw_track *track = context;

	if (__builtin_expect(!is_sound(track, event) || track->settling || track->sampling || event->interval ||
				     event->time_ns < track->now_ns ||
				     mw_series_clock_lags(&track->clock, event->time_ns),
			     0))
		return take_unusual(track, event);
	track->now_ns = event->time_ns;
	if (event->type == MW_EVENT_ALLOC)
		return take_alloc(track, event);
	return event->type == MW_EVENT_FREE ? take_free(track, event) : dispatch(track, event);
}

/* How many events ahead memory is fetched. Further ahead more fetches would be under way than processors keep track of
 * (from about 16 on it is measurably slower). */
#define AHEAD 10U

static inline __attribute__((always_inline)) void prefetch(const struct mw_track *track, const struct mw_event *event)
{
	if (event->type < MW_EVENT_MAP)
		mw_block_table_prefetch(&track->heap, event->addr);
}

static struct mw_error *take_events(void *context, const struct mw_event *events, size_t count)
{
	struct mw_track *track = context;

	for (size_t i = 0; i < count && i < AHEAD; i++)
		prefetch(track, &events[i]);
	for (size_t i = 0; i < count; i++) {
		if (count - i > AHEAD)
			prefetch(track, &events[i + AHEAD]);
		MW_TRY(take_event(track, &events[i]));
	}
	return NULL;
}

struct visitor {
	void (*visit)(void *visitor, mw_addr addr);
	void *context;
};

static bool visit_block(const void *context, const struct mw_block *block)
{
	const struct visitor *visitor = context;

	visitor->visit(visitor->context, block->addr);
	return true;
}

static void each_block(void *context, void (*visit)(void *visitor, mw_addr addr), void *visitor)
{
	const struct mw_track *track = context;
	const struct visitor to = {visit, visitor};

	mw_block_table_each(&track->heap, visit_block, &to);
}

struct mw_event_sink mw_track_sink(struct mw_track *track)
{
	return (struct mw_event_sink){
		.context = track,
		.stack = take_stack,
		.thread = take_thread,
		.event = take_event,
		.events = take_events,
		.knows = knows,
		.blocks = each_block,
		.interval = take_interval,
	};
}

/* --- the tracker ----------------------------------------------------------------------------------------- */

struct mw_error *mw_track_create(struct mw_track **out)
{
	struct mw_track *track = calloc(1, sizeof(*track));

	if (!track)
		return mw_error_nomem();
	mw_vm_init(track);
	mw_class_flows_restart(&track->flows);
	mw_pool_init(&track->pending, sizeof(struct mw_pending));
	mw_pool_init(&track->stacks.nodes, sizeof(struct mw_stack_node));
	mw_pool_init(&track->stacks.records, sizeof(struct mw_stack_record));
	mw_pool_init(&track->replaced, sizeof(struct mw_replaced));
	mw_pool_init(&track->threads.records, sizeof(struct mw_thread_record));
	mw_series_clock_start(&track->clock, 0);
	*out = track;
	return NULL;
}

static void free_names(struct mw_thread_name *name)
{
	while (name) {
		struct mw_thread_name *older = name->older;

		free(name);
		name = older;
	}
}

void mw_track_destroy(struct mw_track *track)
{
	if (!track)
		return;
	for (uint32_t i = 0; i < track->threads.records.used; i++)
		free_names(mw_thread_table_at(&track->threads, i)->names);
	mw_map_deinit(&track->threads.latest);
	mw_pool_deinit(&track->threads.records);
	mw_stack_table_deinit(&track->stacks);
	for (uint32_t i = 0; i < track->replaced.used; i++)
		mw_replaced_deinit(mw_pool_at(&track->replaced, i));
	mw_class_flows_restart(&track->flows);
	mw_sampling_destroy(track->sampling);
	mw_pool_deinit(&track->replaced);
	mw_index_deinit(&track->late.index);
	free(track->late.items);
	mw_pool_deinit(&track->pending);
	mw_pool_deinit(&track->vm_blocks);
	mw_range_tree_deinit(&track->ranges);
	mw_block_table_deinit(&track->heap);
	free(track);
}
