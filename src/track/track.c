// SPDX-License-Identifier: MIT
/* track.c: the tracker's life and its sink: threads, events of the heap (track.h). */
#include "track/track.h"

#include "base/hash.h"
#include "base/vector.h"
#include "track/counter.h"
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

__attribute__((cold, noinline)) void mw_track_tell_end(const struct mw_track *track, const struct mw_block *block,
						       uint64_t died_ns, struct mw_weight weight)
{
	mw_track_tell(track, (struct mw_track_fate){
				     .addr = block->addr,
				     .bytes = block->bytes,
				     .size = block->bytes,
				     .born_ns = block->time_ns,
				     .died_ns = died_ns,
				     .stack = block->stack,
				     .thread = block->thread,
				     .kind = MW_KIND_HEAP,
				     .last = true,
				     .others = weight.others,
				     .variance = weight.variance,
			     });
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
		 (int)mw_stack_table_kind(&track->stacks, event->stack) == kind_of(event)));
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
	if (event->type >= MW_EVENT_MAP)
		return mw_vm_event(track, event);
	return track->sampling ? mw_sampling_event(track, event) : mw_heap_event(track, event);
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

/* Is it none of these, where the latest one came at `now_ns`? */
static inline __attribute__((always_inline)) bool is_usual(const struct mw_track *track, const struct mw_event *event,
							   uint64_t now_ns)
{
	return __builtin_expect(is_sound(track, event) && !track->settling && !track->sampling && !event->interval &&
					event->time_ns >= now_ns &&
					!mw_series_clock_lags(&track->clock, event->time_ns),
				1);
}

static struct mw_error *take_event(void *context, const struct mw_event *event)
{
	struct mw_track *track = context;

	if (!is_usual(track, event, track->now_ns))
		return take_unusual(track, event);
	track->now_ns = event->time_ns;
	return event->type < MW_EVENT_MAP ? mw_heap_event(track, event) : mw_vm_event(track, event);
}

/* How many events ahead memory is fetched. Further ahead more fetches would be under way than processors keep track of
 * (from about 16 on it is measurably slower). */
#define AHEAD 10U

static inline __attribute__((always_inline)) void prefetch(const struct mw_track *track, const struct mw_event *event)
{
	if (event->type < MW_EVENT_MAP)
		mw_block_table_prefetch(&track->heap, event->addr);
}

/* A wrong event of mapped memory; or one for which a stack may come to be, which is while no step is counted. */
static bool is_single(const struct mw_track *track, const struct mw_event *event)
{
	if (event->type < MW_EVENT_MAP)
		return false;
	return event->type > MW_EVENT_REMAP_FAIL || (event->kind != MW_KIND_VM && event->kind != MW_KIND_VM_INTERNAL) ||
	       (event->stack == MW_STACK_NONE && !track->has_stackless[event->kind]);
}

/* Find blocks of as many events as there is room for, up to one that has to be taken by itself: `*single`. */
static struct mw_error *find_blocks(struct mw_track *track, const struct mw_event *events, size_t count, size_t *taken,
				    struct mw_steps *steps, uint64_t *now_ns, bool *single)
{
	struct mw_error *err = NULL;
	size_t i;

	steps->count = 0;
	*single = false;
	for (i = 0; i < count && !err && steps->count <= MW_STEPS_MAX - MW_STEPS_EVENT; i++) {
		if (count - i > AHEAD)
			prefetch(track, &events[i + AHEAD]);
		*single = !is_usual(track, &events[i], *now_ns) || is_single(track, &events[i]);
		if (*single)
			break;
		*now_ns = events[i].time_ns;
		err = mw_steps_find(track, &events[i], steps);
	}
	*taken = i;
	return err;
}

/* First find blocks, then count, many of them at a time. */
static struct mw_error *take_in_steps(struct mw_track *track, struct mw_counter *counter, const struct mw_event *events,
				      size_t count)
{
	struct mw_error *err = NULL;
	uint64_t now_ns = track->now_ns;
	struct mw_steps own;

	while (count && !err) {
		struct mw_steps *steps = counter ? mw_counter_room(counter) : &own;
		bool single;
		size_t taken;

		err = find_blocks(track, events, count, &taken, steps, &now_ns, &single);
		events += taken;
		count -= taken;
		if (!counter) {
			err = mw_track_first_error(err, mw_steps_count(track, steps));
		} else {
			mw_counter_give(counter);
			if (single || !count || err)
				err = mw_track_first_error(err, mw_counter_wait(counter));
		}
		if (single && !err) {
			track->now_ns = now_ns;
			err = take_event(track, events++);
			now_ns = track->now_ns;
			count--;
		}
	}
	track->now_ns = now_ns;
	return err;
}

#define IN_STEPS (1u << 20) /* bytes: about what a processor's own cache holds */

/* Are so many events to be taken in steps? Blocks are fetched ahead in any case: where only they are many, steps are quicker
 * with a counter alone. */
static bool wants_steps(struct mw_track *track, size_t count, struct mw_counter **counter)
{
	/* By hashes: all shards are of about one size. */
	size_t blocks = (size_t)track->heap.shards[0].capacity * MW_BLOCK_SHARDS * sizeof(struct mw_block_slot);
	size_t stacks = track->stacks.records.used * sizeof(struct mw_stack_record);

	*counter = NULL;
	if (count <= AHEAD || blocks + stacks <= track->steps_from || track->sampling || track->settling)
		return false;
	*counter = mw_counter_of(track, count);
	return *counter || stacks > track->steps_from;
}

static struct mw_error *take_events(void *context, const struct mw_event *events, size_t count)
{
	struct mw_track *track = context;
	struct mw_counter *counter;

	for (size_t i = 0; i < count && i < AHEAD; i++)
		prefetch(track, &events[i]);
	if (wants_steps(track, count, &counter))
		return take_in_steps(track, counter, events, count);
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
	track->steps_from = IN_STEPS;
	track->counter_from = MW_COUNTER_EVENTS;
	mw_vm_init(track);
	mw_class_flows_restart(&track->flows);
	for (uint32_t i = 0; i < MW_PENDING_FAMILIES; i++)
		mw_pool_init(&track->pending[i], sizeof(struct mw_pending));
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
	mw_counter_destroy(track->counter);
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
	for (uint32_t i = 0; i < MW_PENDING_FAMILIES; i++)
		mw_pool_deinit(&track->pending[i]);
	mw_pool_deinit(&track->vm_blocks);
	mw_range_tree_deinit(&track->ranges);
	mw_block_table_deinit(&track->heap);
	free(track);
}
