// SPDX-License-Identifier: MIT
/*
 * recorder_window.c: where a process's window ends (src/session/recorder.h).
 *
 * Each window is as long as was asked for. The process is looked at after that, while its hooks still stand, and what
 * is mapped meanwhile is noted: it is not of the window, though the look may have seen it.
 */
#include "session/recorder.h"

#include "proc/status.h"

#define HASTE_NS UINT64_C(100000000) /* for glibc's arenas, of a process that waits for it */

/* Without memory for it a mapping may be reported as unattributed. */
static void note(struct mw_recorder *recorder, const struct mw_event *event)
{
	bool maps = event->type == MW_EVENT_MAP || event->type == MW_EVENT_REMAP_END;

	if (maps && (recorder->noting || event->time_ns > recorder->end_ns) && event->addr + event->size > event->addr)
		mw_error_destroy(mw_space_ranges_add(&recorder->late, event->addr, event->addr + event->size));
}

static struct mw_error *on_event(void *context, const struct mw_event *event)
{
	struct mw_recorder *recorder = context;

	note(recorder, event);
	return event->time_ns > recorder->end_ns ? NULL : recorder->sink.event(recorder->sink.context, event);
}

/* They come in order of time. */
static struct mw_error *on_events(void *context, const struct mw_event *events, size_t count)
{
	struct mw_recorder *recorder = context;
	size_t within = count;

	while (within > 0 && events[within - 1].time_ns > recorder->end_ns)
		within--;
	for (size_t i = recorder->noting ? 0 : within; i < count; i++)
		note(recorder, &events[i]);
	if (recorder->sink.events)
		return within ? recorder->sink.events(recorder->sink.context, events, within) : NULL;
	for (size_t i = 0; i < within; i++)
		MW_TRY(recorder->sink.event(recorder->sink.context, &events[i]));
	return NULL;
}

static struct mw_error *on_stack(void *context, const struct mw_raw_stack *stack, uint32_t *id)
{
	const struct mw_recorder *recorder = context;

	return recorder->sink.stack(recorder->sink.context, stack, id);
}

static struct mw_error *on_thread(void *context, pid_t tid, const char *name, bool fresh, uint32_t *number)
{
	const struct mw_recorder *recorder = context;

	return recorder->sink.thread(recorder->sink.context, tid, name, fresh, number);
}

static bool on_knows(void *context, mw_addr addr)
{
	const struct mw_recorder *recorder = context;

	return recorder->sink.knows(recorder->sink.context, addr);
}

struct mw_event_sink mw_recorder_sink(struct mw_recorder *recorder)
{
	return (struct mw_event_sink){
		.context = recorder,
		.stack = on_stack,
		.thread = on_thread,
		.event = on_event,
		.events = on_events,
		.knows = on_knows,
	};
}

/* From here on what is mapped is noted. What was mapped until now may go, and its address be given out again. */
static void begin(struct mw_recorder *recorder, struct mw_space_ranges *blocks)
{
	mw_error_destroy(mw_space_ranges_add_blocks(blocks, recorder->watched->track));
	mw_space_ranges_join(blocks);
	for (size_t i = 0; i < blocks->count; i++)
		mw_error_destroy(mw_space_ranges_add(&recorder->late, blocks->items[i].start, blocks->items[i].end));
	recorder->noting = true;
}

void mw_recorder_look_begin(struct mw_recorder *recorder, struct mw_recorder_look *look)
{
	*look = (struct mw_recorder_look){.recorder = recorder};
	begin(recorder, &look->blocks);
}

void mw_recorder_look_take(struct mw_recorder_look *look)
{
	const struct mw_space_known known = {
		.blocks = &look->blocks,
		.earlier = &look->recorder->start,
		.walk_ns = MW_RECORDER_WALK_NS,
	};
	struct mw_error *err = mw_space_take(mw_live_thread(look->recorder->pid), &known, &look->seen);

	/* It matters to the report, not to the watching. */
	look->taken = !err;
	mw_error_destroy(err);
}

void mw_recorder_look_end(struct mw_recorder_look *look)
{
	struct mw_recorder *recorder = look->recorder;

	/* One that has ended meanwhile was looked at when it did. */
	if (look->taken && !recorder->ended) {
		mw_space_deinit(&recorder->end);
		recorder->end = look->seen;
		recorder->looked = true;
	} else {
		mw_space_deinit(&look->seen);
	}
	mw_space_ranges_deinit(&look->blocks);
}

void mw_recorder_look_last(struct mw_recorder *recorder, pid_t tid, const struct mw_recorder_own *own)
{
	struct mw_space_ranges blocks = {0};
	const struct mw_space_known known = {
		.blocks = &blocks,
		.earlier = &recorder->start,
		.own = own ? own->ranges : NULL,
		.own_count = own ? own->range_count : 0,
		.walk_ns = HASTE_NS,
	};

	begin(recorder, &blocks);
	mw_error_destroy(mw_space_take(tid, &known, &recorder->end));
	mw_space_ranges_deinit(&blocks);
}

static struct mw_error *add_gone(void *context, mw_addr start, mw_addr end)
{
	return mw_space_ranges_add(context, start, end);
}

/* What was mapped after the window's end, or since the look began, and is neither of the window's start nor of its end.
 */
static struct mw_error *find_gone(struct mw_recorder *recorder, struct mw_space_ranges *gone)
{
	const struct mw_space_moment start = mw_space_moment_of(&recorder->start);
	const struct mw_space_input input = {
		.start = recorder->start.taken ? &start : NULL,
		.before = recorder->watched->metadata.before.items,
		.before_count = recorder->watched->metadata.before.count,
	};
	struct mw_space_ranges known = {0};
	struct mw_error *err = mw_space_accounted(&input, recorder->watched->track, &known);

	mw_space_ranges_join(&recorder->late);
	for (size_t i = 0; i < recorder->late.count && !err; i++)
		err = mw_space_ranges_without(&known, recorder->late.items[i].start, recorder->late.items[i].end,
					      add_gone, gone);
	mw_space_ranges_deinit(&known);
	return err;
}

void mw_recorder_confirm(struct mw_recorder *recorder)
{
	struct mw_space_ranges gone = {0};
	struct mw_error *err = find_gone(recorder, &gone);

	if (!err)
		err = mw_space_confirm(&recorder->end, mw_live_thread(recorder->pid), &gone);
	mw_space_ranges_deinit(&gone);
	mw_error_destroy(err);
}
