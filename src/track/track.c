// SPDX-License-Identifier: MIT
/* track.c: the tracker's life and its sink (track.h). */
#include "track/track.h"

#include "track/state.h"
#include "track/vm.h"

#include <stdlib.h>

struct mw_error *mw_track_create(struct mw_track **out)
{
	struct mw_track *track = calloc(1, sizeof(*track));

	if (!track)
		return mw_error_nomem();
	mw_block_table_init(&track->heap);
	mw_range_tree_init(&track->ranges, mw_vm_pieces, track);
	mw_pool_init(&track->vm_blocks, sizeof(struct mw_vm_block));
	mw_pool_init(&track->pending, sizeof(struct mw_pending));
	mw_stack_table_init(&track->stacks);
	mw_thread_table_init(&track->threads);
	mw_series_clock_start(&track->clock, 0);
	*out = track;
	return NULL;
}

void mw_track_destroy(struct mw_track *track)
{
	if (!track)
		return;
	for (uint32_t i = 0; i < MW_KIND_COUNT; i++)
		mw_series_deinit(&track->totals[i].series);
	mw_thread_table_deinit(&track->threads);
	mw_stack_table_deinit(&track->stacks);
	mw_late_deinit(&track->late);
	mw_pool_deinit(&track->pending);
	mw_pool_deinit(&track->vm_blocks);
	mw_range_tree_deinit(&track->ranges);
	mw_block_table_deinit(&track->heap);
	free(track);
}

struct mw_error *mw_track_before(struct mw_track *track, mw_addr start, mw_addr end)
{
	return mw_vm_before(track, start, end);
}

void mw_track_watch(struct mw_track *track, void (*fate)(void *context, const struct mw_track_fate *fate),
		    void *context)
{
	track->fate = fate;
	track->fate_context = context;
}

static struct mw_error *take_stack(void *context, const struct mw_raw_stack *stack, uint32_t *id)
{
	struct mw_track *track = context;

	if ((unsigned int)stack->kind >= MW_KIND_COUNT)
		return mw_error_create(MW_ERROR_DATA, 0, "stack of unknown kind %d", (int)stack->kind);
	return mw_stack_table_intern(&track->stacks, stack, id);
}

static struct mw_error *take_thread(void *context, pid_t tid, const char *name, bool fresh, uint32_t *number)
{
	struct mw_track *track = context;

	return mw_thread_table_name(&track->threads, tid, name, fresh, number);
}

static bool knows(void *context, mw_addr addr)
{
	struct mw_track *track = context;

	return mw_block_table_find(&track->heap, addr, NULL);
}

/* Before anything is counted, so that a wrong event counts nothing. */
static struct mw_error *check_event(const struct mw_track *track, const struct mw_event *event)
{
	int kind = event->type < MW_EVENT_MAP ? MW_KIND_HEAP : (int)event->kind;

	if (event->thread >= track->threads.records.used)
		return mw_error_create(MW_ERROR_DATA, 0, "event with unknown thread %u", event->thread);
	if (event->stack == MW_STACK_NONE)
		return NULL;
	if (event->stack >= track->stacks.records.used)
		return mw_error_create(MW_ERROR_DATA, 0, "event with unknown stack %u", event->stack);
	if (mw_stack_table_at(&track->stacks, event->stack)->kind != kind)
		return mw_error_create(MW_ERROR_DATA, 0, "event of kind %d with stack %u of another kind", kind,
				       event->stack);
	return NULL;
}

static struct mw_error *take_vm_event(struct mw_track *track, const struct mw_event *event)
{
	if (event->kind != MW_KIND_VM && event->kind != MW_KIND_VM_INTERNAL)
		return mw_error_create(MW_ERROR_DATA, 0, "mapping event %d of kind %d", (int)event->type,
				       (int)event->kind);
	switch (event->type) {
	case MW_EVENT_MAP:
		return mw_vm_map(track, event);
	case MW_EVENT_UNMAP_BEGIN:
		return mw_vm_begin(track, event, MW_PENDING_UNMAP);
	case MW_EVENT_UNMAP_END:
		return mw_vm_end(track, event, MW_PENDING_UNMAP);
	case MW_EVENT_UNMAP_FAIL:
		return mw_vm_fail(track, event, MW_PENDING_UNMAP);
	case MW_EVENT_REMAP_BEGIN:
		return mw_vm_begin(track, event, MW_PENDING_REMAP);
	case MW_EVENT_REMAP_END:
		return mw_vm_end(track, event, MW_PENDING_REMAP);
	case MW_EVENT_REMAP_FAIL:
		return mw_vm_fail(track, event, MW_PENDING_REMAP);
	default:
		return mw_error_create(MW_ERROR_DATA, 0, "event of unknown type %d", (int)event->type);
	}
}

/* What is counted for a kind changes all the time: its series are kept up to date, not brought so. */
static __attribute__((cold, noinline)) struct mw_error *pass_moment(struct mw_track *track, uint64_t time_ns)
{
	struct mw_error *err = NULL;

	mw_series_clock_advance(&track->clock, time_ns);
	for (uint32_t i = 0; i < MW_KIND_COUNT; i++) {
		struct mw_tally *total = &track->totals[i];
		struct mw_error *next = mw_series_follow(&total->series, &track->clock, total->impacting.bytes);

		err = mw_track_first_error(err, next);
	}
	return err;
}

/* An event that comes after a later one. What it brings is noted for those who watch. */
static __attribute__((cold, noinline)) struct mw_error *come_late(struct mw_track *track, const struct mw_event *event)
{
	bool brings = event->type == MW_EVENT_ALLOC || event->type == MW_EVENT_REALLOC_END ||
		      event->type == MW_EVENT_MAP || event->type == MW_EVENT_REMAP_END;

	return brings && mw_track_is_watched(track)
		       ? mw_late_add(&track->late, event->time_ns, event->thread, track->now_ns)
		       : NULL;
}

static struct mw_error *take_event(void *context, const struct mw_event *event)
{
	struct mw_track *track = context;

	MW_TRY(check_event(track, event));
	if (__builtin_expect(event->time_ns < track->now_ns, 0))
		MW_TRY(come_late(track, event));
	else
		track->now_ns = event->time_ns;
	if (mw_series_clock_lags(&track->clock, event->time_ns))
		MW_TRY(pass_moment(track, event->time_ns));
	switch (event->type) {
	case MW_EVENT_ALLOC:
		return mw_heap_alloc(track, event);
	case MW_EVENT_FREE:
		return mw_heap_free(track, event);
	case MW_EVENT_REALLOC_BEGIN:
		return mw_heap_begin(track, event);
	case MW_EVENT_REALLOC_END:
		return mw_heap_end(track, event);
	case MW_EVENT_REALLOC_FAIL:
		return mw_heap_fail(track, event);
	default:
		return take_vm_event(track, event);
	}
}

/* How many events ahead memory is fetched. Further ahead more fetches would be under way than processors keep track of
 * (from about 16 on it is measurably slower). */
#define AHEAD 10U

static void prefetch(const struct mw_track *track, const struct mw_event *event)
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

struct mw_event_sink mw_track_sink(struct mw_track *track)
{
	return (struct mw_event_sink){
		.context = track,
		.stack = take_stack,
		.thread = take_thread,
		.event = take_event,
		.events = take_events,
		.knows = knows,
	};
}
