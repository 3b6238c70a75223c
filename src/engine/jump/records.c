// SPDX-License-Identifier: MIT
/*
 * records.c: one ring, record by record, to events (drain.h); stacks are taken by stacks.c.
 *
 * Events are reported as the trap engine tells them: sizes of mappings rounded up to pages, no size and no stack with
 * what failed, a move of the break as a mapping or an unmapping.
 */
#include "engine/jump/records.h"

#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

struct mw_error *jump_drain_flush(struct jump_drain *drain)
{
	const struct mw_event_sink *sink = &drain->sink;
	uint32_t count = drain->batched;

	drain->batched = 0;
	if (sink->events)
		return count ? sink->events(sink->context, drain->batch, count) : NULL;
	for (uint32_t i = 0; i < count; i++)
		MW_TRY(sink->event(sink->context, &drain->batch[i]));
	return NULL;
}

static inline struct mw_error *emit(struct jump_drain *drain, const struct jump_reader *reader,
				    const struct mw_event *event)
{
	drain->batch[drain->batched] = *event;
	drain->batch[drain->batched].thread = reader->thread;
	drain->stats.events++;
	return ++drain->batched == JUMP_BATCH ? jump_drain_flush(drain) : NULL;
}

/* Never less than what was reported before, nor later than the window. */
static inline uint64_t time_of(struct jump_drain *drain, uint64_t tick)
{
	uint64_t ns = jump_clock_ns(drain->clock, tick);

	if (ns > drain->end_ns)
		ns = drain->end_ns;
	if (ns > drain->emitted_ns)
		drain->emitted_ns = ns;
	return drain->emitted_ns;
}

/* A unit that is no record's first looks unmarked to the thread that writes there next, and so to us. */
static void unmark(const struct jump_drain *drain, const struct jump_reader *reader, uint64_t from, uint64_t units)
{
	for (uint64_t i = 0; i < units; i++)
		__atomic_store_n(&unit_at(drain, reader, from + i)->mark, 0, __ATOMIC_RELAXED);
}

/* Calls that have begun and not ended. */

/* A BEGIN's type is the least of its family, in which END and FAIL follow. */
static enum mw_event_type begin_of(enum mw_event_type type)
{
	if (type >= MW_EVENT_REMAP_BEGIN)
		return MW_EVENT_REMAP_BEGIN;
	return type >= MW_EVENT_UNMAP_BEGIN ? MW_EVENT_UNMAP_BEGIN : MW_EVENT_REALLOC_BEGIN;
}

/* False where there are too many. */
static bool call_begin(struct jump_reader *reader, const struct mw_event *event, bool unreported)
{
	if (reader->open_count == JUMP_OPEN_CALLS ||
	    !MW_VECTOR_ROOM(reader->open, reader->open_count, reader->open_capacity))
		return false;
	reader->open[reader->open_count++] = (struct jump_open_call){
		.addr = event->addr,
		.size = event->size,
		.begin = (uint8_t)event->type,
		.kind = (uint8_t)event->kind,
		.unreported = unreported,
	};
	return true;
}

/* An END or FAIL: is there a call that it ends? */
static bool call_end(struct jump_reader *reader, enum mw_event_type type, struct jump_open_call *open)
{
	enum mw_event_type begin = begin_of(type);

	/* Calls nest; but one that was left by a jump out of a signal handler may stay open inside another. */
	for (uint32_t i = reader->open_count; i-- > 0;) {
		if (reader->open[i].begin != begin)
			continue;
		*open = reader->open[i];
		memmove(&reader->open[i], &reader->open[i + 1], (reader->open_count - i - 1) * sizeof(*reader->open));
		reader->open_count--;
		return true;
	}
	return false;
}

struct mw_error *jump_calls_cancel(struct jump_drain *drain, struct jump_reader *reader)
{
	while (reader->open_count > 0) {
		const struct jump_open_call *open = &reader->open[--reader->open_count];
		const struct mw_event event = {.time_ns = drain->emitted_ns,
					       .addr = open->addr,
					       .size = open->begin == MW_EVENT_REALLOC_BEGIN ? 0 : open->size,
					       .stack = MW_STACK_NONE,
					       .type = mw_event_fail((enum mw_event_type)open->begin),
					       .kind = (enum mw_kind)open->kind};

		if (!open->unreported)
			MW_TRY(emit(drain, reader, &event));
	}
	return NULL;
}

/* Sampled blocks (memwatch/ring.h). */

/* The interval that the block of an ALLOC or REALLOC_END was sampled with, off its size. False: it is invalid. */
static bool take_label(const struct jump_drain *drain, struct mw_event *event)
{
	uint64_t label = event->size >> MW_RING_SIZE_BITS;

	event->size &= MW_RING_SIZE_MASK;
	if (label == MW_RING_UNSAMPLED) {
		event->unsampled = event->addr != 0;
		return event->type == MW_EVENT_REALLOC_END;
	}
	event->interval = (uint16_t)label;
	return (label > 0 || drain->exact_before) && label <= drain->intervals;
}

/* `*report`: it is one for the sink, which knows its block. False: it is invalid. */
static bool is_sampled(struct jump_drain *drain, struct jump_reader *reader, struct mw_event *event, bool *report)
{
	struct jump_open_call open = {.unreported = true};
	/* As all frees are, where the recorder does not know the block. */
	bool exact = drain->exact_before && event->stack != MW_STACK_NONE, good = true;

	switch (event->type) {
	case MW_EVENT_ALLOC:
		return take_label(drain, event);
	case MW_EVENT_FREE:
		*report = exact || drain->sink.knows(drain->sink.context, event->addr);
		return true;
	case MW_EVENT_REALLOC_BEGIN:
		*report = exact || drain->sink.knows(drain->sink.context, event->addr);
		return call_begin(reader, event, !*report);
	case MW_EVENT_REALLOC_END:
		good = take_label(drain, event);
		break;
	default:
		break;
	}
	if (!good || !call_end(reader, event->type, &open))
		return false;
	/* Of the old block nothing is known: there is a new one at most. */
	*report = !open.unreported || (event->type == MW_EVENT_REALLOC_END && !event->unsampled && event->addr);
	if (open.unreported)
		event->type = MW_EVENT_ALLOC;
	return true;
}

static struct mw_error *take_sampled(struct jump_drain *drain, struct jump_reader *reader, struct mw_event *event)
{
	bool report = true;

	/* As the sink is asked what it knows. */
	MW_TRY(jump_drain_flush(drain));
	if (is_sampled(drain, reader, event, &report))
		return report ? emit(drain, reader, event) : NULL;
	drain->stats.bad_records++;
	return NULL;
}

#define PAGE 4096u

/* Those before MW_RING_BRK are known from their own numbers. */
_Static_assert((int)MW_RING_ALLOC == (int)MW_EVENT_ALLOC && (int)MW_RING_MAP == (int)MW_EVENT_MAP &&
		       (int)MW_RING_REMAP_FAIL == (int)MW_EVENT_REMAP_FAIL,
	       "records have the numbers of events");

/* See that the sink knows the ring's thread, `tid`. */
static struct mw_error *record_thread(struct jump_drain *drain, struct jump_reader *reader, uint32_t tid)
{
	bool fresh = reader->thread == JUMP_NO_THREAD || reader->tid != tid;
	char name[17] = "";
	pid_t pid = (pid_t)tid;

	/* The thread before this one in the ring is gone, whatever it was at. */
	if (fresh && reader->thread != JUMP_NO_THREAD)
		MW_TRY(jump_calls_cancel(drain, reader));
	drain->help.thread(drain->help.context, tid, &pid, name);
	name[sizeof(name) - 1] = '\0';
	MW_TRY(drain->sink.thread(drain->sink.context, pid, name, fresh, &reader->thread));
	reader->tid = tid;
	reader->pid = pid;
	return NULL;
}

static uint64_t round_to_pages(uint64_t size)
{
	return (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

/* A BEGIN, or what ends one. */
static struct mw_error *emit_call(struct jump_drain *drain, struct jump_reader *reader, const struct mw_event *event)
{
	struct jump_open_call open;

	if (event->type == begin_of(event->type) ? call_begin(reader, event, false)
						 : call_end(reader, event->type, &open))
		return emit(drain, reader, event);
	drain->stats.bad_records++;
	return NULL;
}

/* ALLOC … REMAP_FAIL: the record's type is the event's. */
static struct mw_error *take_event(struct jump_drain *drain, struct jump_reader *reader,
				   const struct mw_ring_record *record, uint64_t *units)
{
	enum mw_kind kind = kind_of(record->mark);
	struct mw_event event = {.time_ns = time_of(drain, record->time),
				 .addr = record->addr,
				 .size = record->size,
				 .type = (enum mw_event_type)mw_ring_type_of(record->mark),
				 .kind = kind};
	bool ends = event.type == begin_of(event.type) + 1, fails = event.type == mw_event_fail(begin_of(event.type));

	if ((event.type < MW_EVENT_MAP) != (kind == MW_KIND_HEAP))
		return NULL;
	*units = 1;
	event.stack = fails ? MW_STACK_NONE : stack_of(drain, mw_ring_stack_of(record->mark), kind, !ends);
	if (event.type >= MW_EVENT_MAP)
		event.size = round_to_pages(event.size);
	else if (event.type == MW_EVENT_REALLOC_FAIL)
		event.size = 0;
	if (event.type == MW_EVENT_MAP)
		return event.size ? emit(drain, reader, &event) : NULL;
	if (event.type < MW_EVENT_REALLOC_BEGIN && !event.addr)
		return NULL;
	if (drain->intervals && event.type < MW_EVENT_MAP)
		return take_sampled(drain, reader, &event);
	return event.type < MW_EVENT_REALLOC_BEGIN ? emit(drain, reader, &event) : emit_call(drain, reader, &event);
}

/* The break was at `from` and is at `to`; 0: that is not known. */
static struct mw_error *moved_break(struct jump_drain *drain, struct jump_reader *reader,
				    const struct mw_ring_record *record, mw_addr from, mw_addr to)
{
	enum mw_kind kind = kind_of(record->mark);
	struct mw_event event = {.time_ns = time_of(drain, record->time),
				 .addr = from,
				 .size = to - from,
				 .stack = stack_of(drain, mw_ring_stack_of(record->mark), kind, true),
				 .type = MW_EVENT_MAP,
				 .kind = kind};

	if (from == 0 || to == 0 || from == to)
		return NULL;
	if (to > from)
		return emit(drain, reader, &event);
	event.addr = to;
	event.size = from - to;
	event.type = MW_EVENT_UNMAP_BEGIN;
	MW_TRY(emit(drain, reader, &event));
	event.type = MW_EVENT_UNMAP_END;
	return emit(drain, reader, &event);
}

static struct mw_error *take_break(struct jump_drain *drain, struct jump_reader *reader,
				   const struct mw_ring_record *record, uint64_t *units)
{
	mw_addr from = drain->break_end, to = round_to_pages(record->addr);

	if (kind_of(record->mark) == MW_KIND_HEAP)
		return NULL;
	*units = 1;
	if (mw_ring_type_of(record->mark) == MW_RING_SBRK) {
		from = record->addr;
		to = record->addr + record->size;
	}
	drain->break_end = round_to_pages(to);
	return moved_break(drain, reader, record, from, to);
}

static struct mw_error *take_of_thread(struct jump_drain *drain, struct jump_reader *reader,
				       const struct mw_ring_record *record, uint64_t *units)
{
	uint32_t type = mw_ring_type_of(record->mark);

	if (reader->thread == JUMP_NO_THREAD)
		MW_TRY(record_thread(drain, reader, __atomic_load_n(&reader->slot->tid, __ATOMIC_RELAXED)));
	return type == MW_RING_BRK || type == MW_RING_SBRK ? take_break(drain, reader, record, units)
							   : take_event(drain, reader, record, units);
}

/* Take a record of any type but ALLOC and FREE of a known thread; `*units` is how many it has, 0 where it makes no
 * sense. */
static struct mw_error *record_take(struct jump_drain *drain, struct jump_reader *reader,
				    const struct mw_ring_record *record, uint64_t *units)
{
	*units = 0;
	switch (mw_ring_type_of(record->mark)) {
	case MW_RING_THREAD:
		if (record->addr == 0 || record->addr > INT32_MAX)
			return NULL;
		*units = 1;
		return record_thread(drain, reader, (uint32_t)record->addr);
	case MW_RING_STACK:
	case MW_RING_SLOW:
	case MW_RING_SCRIPT:
		return jump_stack_take(drain, reader, record, units);
	case MW_RING_NOTHING:
		*units = jump_record_units(drain, record, reader->end - reader->read);
		return NULL;
	default:
		return mw_ring_type_of(record->mark) < MW_RING_TYPES ? take_of_thread(drain, reader, record, units)
								     : NULL;
	}
}

static void skip(struct jump_drain *drain, struct jump_reader *reader)
{
	if (!reader->searching)
		drain->stats.bad_records++;
	reader->searching = true;
	unmark(drain, reader, reader->read, 1);
	reader->read++;
}

/* ALLOC and FREE are nearly all there is. */
static inline struct mw_error *take_plain(struct jump_drain *drain, struct jump_reader *reader,
					  const struct mw_ring_record *record)
{
	bool allocates = mw_ring_type_of(record->mark) == MW_RING_ALLOC;
	const struct mw_event event = {.time_ns = time_of(drain, record->time),
				       .addr = record->addr,
				       .size = record->size,
				       .stack = stack_of(drain, mw_ring_stack_of(record->mark), MW_KIND_HEAP, true),
				       .type = allocates ? MW_EVENT_ALLOC : MW_EVENT_FREE,
				       .kind = MW_KIND_HEAP};

	return record->addr ? emit(drain, reader, &event) : NULL;
}

/* `*units` is 0 where the record is invalid. */
static inline struct mw_error *take(struct jump_drain *drain, struct jump_reader *reader,
				    const struct mw_ring_record *record, uint64_t *units)
{
	uint32_t flags = mw_ring_flags_of(record->mark);

	*units = 0;
	/* A thread may first be met in a helper of ours, whose number is none of a hook's. */
	if (mw_ring_hook_of(record->mark) >= drain->hooks && mw_ring_type_of(record->mark) != MW_RING_THREAD)
		return NULL;
	if (mw_ring_type_of(record->mark) <= MW_RING_FREE_BLOCK && reader->thread != JUMP_NO_THREAD &&
	    !(flags & (MW_RING_VM | MW_RING_INTERNAL)) && !drain->intervals) {
		*units = 1;
		return take_plain(drain, reader, record);
	}
	return record_take(drain, reader, record, units);
}

struct mw_error *jump_reader_run(struct jump_drain *drain, struct jump_reader *reader, uint64_t limit,
				 enum jump_run *state, uint64_t *next)
{
	while (drain->budget > 0) {
		struct mw_ring_record record;
		uint64_t units;

		if (reader->read == reader->end) {
			*state = reader->more ? JUMP_RUN_HELD : JUMP_RUN_EMPTY;
			return NULL;
		}
		if (!read_mark(drain, reader, reader->read, &record)) {
			if (!reader->searching && !reader->dead && !drain->last_round) {
				*state = JUMP_RUN_HELD;
				return NULL;
			}
			/* Recording was over before it was marked: it is not of the window. */
			reader->searching |= drain->last_round;
			skip(drain, reader);
			continue;
		}
		read_rest(drain, reader, reader->read, &record);
		if (record.time < reader->last)
			record.time = reader->last;
		if (record.time > drain->latest) {
			skip(drain, reader);
			continue;
		}
		if (record.time > limit) {
			*next = record.time;
			*state = JUMP_RUN_LATER;
			return NULL;
		}
		MW_TRY(take(drain, reader, &record, &units));
		if (units == 0) {
			skip(drain, reader);
			continue;
		}
		unmark(drain, reader, reader->read + 1, units - 1);
		reader->read += units;
		reader->last = record.time;
		reader->searching = false;
		drain->budget--;
		if (reader->read - reader->published > drain->units_mask / 4)
			jump_reader_publish(reader);
	}
	*state = JUMP_RUN_BUDGET;
	return NULL;
}
