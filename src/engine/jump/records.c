// SPDX-License-Identifier: MIT
/*
 * records.c: from a record to events (drain_state.h).
 *
 * Events are reported as the trap engine tells them: sizes of mappings rounded up to pages, no size and no stack with
 * what failed, a move of the break as a mapping or an unmapping.
 */
#include "engine/jump/drain_state.h"

#include "base/vector.h"

#include <string.h>

/* Calls that have begun and not ended. */

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

/* A BEGIN's type is the least of its family, in which END and FAIL follow. */
static enum mw_event_type begin_of(enum mw_event_type type)
{
	if (type >= MW_EVENT_REMAP_BEGIN)
		return MW_EVENT_REMAP_BEGIN;
	return type >= MW_EVENT_UNMAP_BEGIN ? MW_EVENT_UNMAP_BEGIN : MW_EVENT_REALLOC_BEGIN;
}

static enum mw_event_type fail_of(enum mw_event_type begin)
{
	return begin + 2;
}

_Static_assert(MW_EVENT_REALLOC_BEGIN + 2 == MW_EVENT_REALLOC_FAIL && MW_EVENT_UNMAP_BEGIN + 2 == MW_EVENT_UNMAP_FAIL &&
		       MW_EVENT_REMAP_BEGIN + 2 == MW_EVENT_REMAP_FAIL,
	       "BEGIN, END, FAIL");

/* False where there are too many. */
static bool jump_call_begin(struct jump_drain *drain, struct jump_reader *reader, const struct mw_event *event)
{
	(void)drain;
	if (reader->open_count == JUMP_OPEN_CALLS)
		return false;
	if (!MW_VECTOR_ROOM(reader->open, reader->open_count, reader->open_capacity))
		return false;
	reader->open[reader->open_count++] = (struct jump_open_call){
		.addr = event->addr, .size = event->size, .begin = (uint8_t)event->type, .kind = (uint8_t)event->kind};
	return true;
}

/* An END or FAIL: is there a call that it ends? */
static bool jump_call_end(struct jump_reader *reader, enum mw_event_type type)
{
	enum mw_event_type begin = begin_of(type);

	/* Calls nest; but one that was left by a jump out of a signal handler may stay open inside another. */
	for (uint32_t i = reader->open_count; i-- > 0;) {
		if (reader->open[i].begin != begin)
			continue;
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
					       .type = fail_of((enum mw_event_type)open->begin),
					       .kind = (enum mw_kind)open->kind};

		MW_TRY(jump_drain_emit(drain, reader, &event));
	}
	return NULL;
}

#define PAGE 4096u

/* Those before MW_RING_BRK are known from their own numbers. */
_Static_assert((int)MW_RING_ALLOC == (int)MW_EVENT_ALLOC && (int)MW_RING_MAP == (int)MW_EVENT_MAP &&
		       (int)MW_RING_REMAP_FAIL == (int)MW_EVENT_REMAP_FAIL,
	       "records have the numbers of events");

enum mw_kind jump_record_kind(uint64_t mark)
{
	uint32_t flags = mw_ring_flags_of(mark);

	if (flags & MW_RING_INTERNAL)
		return MW_KIND_VM_INTERNAL;
	return flags & MW_RING_VM ? MW_KIND_VM : MW_KIND_HEAP;
}

/* See that the sink knows the ring's thread, `tid`. */
static struct mw_error *jump_record_thread(struct jump_drain *drain, struct jump_reader *reader, uint32_t tid)
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
	bool begins = event->type == MW_EVENT_REALLOC_BEGIN || event->type == MW_EVENT_UNMAP_BEGIN ||
		      event->type == MW_EVENT_REMAP_BEGIN;

	if (begins ? jump_call_begin(drain, reader, event) : jump_call_end(reader, event->type))
		return jump_drain_emit(drain, reader, event);
	drain->stats.bad_records++;
	return NULL;
}

/* ALLOC … REMAP_FAIL: the record's type is the event's. */
static struct mw_error *take_event(struct jump_drain *drain, struct jump_reader *reader,
				   const struct mw_ring_record *record, bool *good)
{
	enum mw_kind kind = jump_record_kind(record->mark);
	struct mw_event event = {.time_ns = jump_drain_ns(drain, record->time),
				 .addr = record->addr,
				 .size = record->size,
				 .type = (enum mw_event_type)mw_ring_type_of(record->mark),
				 .kind = kind};
	bool ends = event.type == MW_EVENT_REALLOC_END || event.type == MW_EVENT_UNMAP_END ||
		    event.type == MW_EVENT_REMAP_END;
	bool fails = event.type == MW_EVENT_REALLOC_FAIL || event.type == MW_EVENT_UNMAP_FAIL ||
		     event.type == MW_EVENT_REMAP_FAIL;

	*good = (event.type < MW_EVENT_MAP) == (kind == MW_KIND_HEAP);
	if (!*good)
		return NULL;
	event.stack = fails ? MW_STACK_NONE : jump_stack_of(drain, mw_ring_stack_of(record->mark), kind, !ends);
	if (event.type >= MW_EVENT_MAP)
		event.size = round_to_pages(event.size);
	else if (event.type == MW_EVENT_REALLOC_FAIL)
		event.size = 0;
	if (event.type == MW_EVENT_MAP)
		return event.size ? jump_drain_emit(drain, reader, &event) : NULL;
	if (event.type < MW_EVENT_REALLOC_BEGIN)
		return event.addr ? jump_drain_emit(drain, reader, &event) : NULL;
	return emit_call(drain, reader, &event);
}

/* The break was at `from` and is at `to`; 0: that is not known. */
static struct mw_error *moved_break(struct jump_drain *drain, struct jump_reader *reader,
				    const struct mw_ring_record *record, mw_addr from, mw_addr to)
{
	enum mw_kind kind = jump_record_kind(record->mark);
	struct mw_event event = {.time_ns = jump_drain_ns(drain, record->time),
				 .addr = from,
				 .size = to - from,
				 .stack = jump_stack_of(drain, mw_ring_stack_of(record->mark), kind, true),
				 .type = MW_EVENT_MAP,
				 .kind = kind};

	if (from == 0 || to == 0 || from == to)
		return NULL;
	if (to > from)
		return jump_drain_emit(drain, reader, &event);
	event.addr = to;
	event.size = from - to;
	event.type = MW_EVENT_UNMAP_BEGIN;
	MW_TRY(jump_drain_emit(drain, reader, &event));
	event.type = MW_EVENT_UNMAP_END;
	return jump_drain_emit(drain, reader, &event);
}

static struct mw_error *take_break(struct jump_drain *drain, struct jump_reader *reader,
				   const struct mw_ring_record *record, bool *good)
{
	mw_addr from = drain->break_end, to = round_to_pages(record->addr);

	*good = jump_record_kind(record->mark) != MW_KIND_HEAP;
	if (!*good)
		return NULL;
	if (mw_ring_type_of(record->mark) == MW_RING_SBRK) {
		from = record->addr;
		to = record->addr + record->size;
	}
	drain->break_end = round_to_pages(to);
	return moved_break(drain, reader, record, from, to);
}

uint64_t jump_record_units(const struct jump_drain *drain, const struct mw_ring_record *record, uint64_t room)
{
	uint32_t type = mw_ring_type_of(record->mark), count = (uint32_t)record->size;
	uint64_t bytes = record->size, units;

	if (type == MW_RING_NOTHING)
		return record->size <= room ? record->size : 0;
	if (type != MW_RING_STACK && type != MW_RING_SLOW)
		return type < MW_RING_TYPES ? 1 : 0;
	if (type == MW_RING_STACK) {
		if (count > drain->shared->geometry.depth || record->size >> 32 > MW_RING_BROKEN)
			return 0;
		bytes = count * sizeof(uint64_t);
	} else if (bytes < sizeof(struct mw_ring_slow) || bytes > room * MW_RING_UNIT) {
		return 0;
	}
	units = 1 + (bytes + MW_RING_UNIT - 1) / MW_RING_UNIT;
	return units <= room && record->addr < MW_RING_STACK_NONE ? units : 0;
}

/* STACK and SLOW: what follows the record is copied, then looked at. */
static struct mw_error *take_stack(struct jump_drain *drain, struct jump_reader *reader,
				   const struct mw_ring_record *record, uint64_t *units)
{
	uint64_t all = jump_record_units(drain, record, reader->end - reader->read);
	uint32_t id = (uint32_t)record->addr;
	struct mw_error *err;
	bool good = true;

	if (all == 0)
		return NULL;
	jump_reader_payload(drain, reader, reader->read + 1, all - 1);
	if (mw_ring_type_of(record->mark) == MW_RING_STACK)
		err = jump_stack_rows(drain, reader, record->mark, id, (uint32_t)record->size,
				      (uint32_t)(record->size >> 32), &good);
	else
		err = jump_stack_slow(drain, reader, record->mark, id, record->size, &good);
	*units = good ? all : 0;
	return err;
}

static struct mw_error *take_of_thread(struct jump_drain *drain, struct jump_reader *reader,
				       const struct mw_ring_record *record, uint64_t *units)
{
	uint32_t type = mw_ring_type_of(record->mark);
	struct mw_error *err;
	bool good;

	if (reader->thread == JUMP_NO_THREAD)
		MW_TRY(jump_record_thread(drain, reader, __atomic_load_n(&reader->slot->tid, __ATOMIC_RELAXED)));
	err = type == MW_RING_BRK || type == MW_RING_SBRK ? take_break(drain, reader, record, &good)
							  : take_event(drain, reader, record, &good);
	*units = good ? 1 : 0;
	return err;
}

/* Take a record of any type but ALLOC and FREE of a known thread; `*units` is how many it has, 0 where it makes no
 * sense. */
static struct mw_error *jump_record_take(struct jump_drain *drain, struct jump_reader *reader,
					 const struct mw_ring_record *record, uint64_t *units)
{
	*units = 0;
	switch (mw_ring_type_of(record->mark)) {
	case MW_RING_THREAD:
		if (record->addr == 0 || record->addr > INT32_MAX)
			return NULL;
		*units = 1;
		return jump_record_thread(drain, reader, (uint32_t)record->addr);
	case MW_RING_STACK:
	case MW_RING_SLOW:
		return take_stack(drain, reader, record, units);
	case MW_RING_NOTHING:
		*units = jump_record_units(drain, record, reader->end - reader->read);
		return NULL;
	default:
		return mw_ring_type_of(record->mark) < MW_RING_TYPES ? take_of_thread(drain, reader, record, units)
								     : NULL;
	}
}

/* One ring, record by record. */

#define MOST_AHEAD 16 /* rings */

static inline struct mw_ring_record *unit_at(const struct jump_drain *drain, const struct jump_reader *reader,
					     uint64_t unit)
{
	return &reader->units[unit & drain->units_mask];
}

/* A unit that is no record's first looks unmarked to the thread that writes there next, and so to us. */
static void unmark(const struct jump_drain *drain, const struct jump_reader *reader, uint64_t from, uint64_t units)
{
	for (uint64_t i = 0; i < units; i++)
		__atomic_store_n(&unit_at(drain, reader, from + i)->mark, 0, __ATOMIC_RELAXED);
}

void jump_reader_payload(struct jump_drain *drain, const struct jump_reader *reader, uint64_t from, uint64_t units)
{
	for (uint64_t i = 0; i < units; i++)
		memcpy(drain->payload + i * MW_RING_UNIT, unit_at(drain, reader, from + i), MW_RING_UNIT);
}

/* False: it is not marked. */
static inline bool read_mark(const struct jump_drain *drain, const struct jump_reader *reader, uint64_t unit,
			     struct mw_ring_record *record)
{
	record->mark = __atomic_load_n(&unit_at(drain, reader, unit)->mark, __ATOMIC_ACQUIRE);
	return record->mark >> 56 == 1 + (unit >> drain->units_shift) % 255;
}

static inline void read_rest(const struct jump_drain *drain, const struct jump_reader *reader, uint64_t unit,
			     struct mw_ring_record *record)
{
	const struct mw_ring_record *at = unit_at(drain, reader, unit);

	record->time = __atomic_load_n(&at->time, __ATOMIC_RELAXED);
	record->addr = __atomic_load_n(&at->addr, __ATOMIC_RELAXED);
	record->size = __atomic_load_n(&at->size, __ATOMIC_RELAXED);
}

bool jump_reader_find_stack(const struct jump_drain *drain, const struct jump_reader *reader, uint32_t id,
			    struct mw_ring_record *record, uint64_t *unit)
{
	uint64_t units = (uint64_t)drain->units_mask + 1, end = reader->read;
	uint64_t ahead = __atomic_load_n(&reader->slot->reserved, __ATOMIC_ACQUIRE) - reader->read, size;

	if (ahead <= units * MOST_AHEAD)
		end += ahead < units ? ahead : units;
	for (*unit = reader->read; *unit < end && read_mark(drain, reader, *unit, record); *unit += size) {
		uint32_t type = mw_ring_type_of(record->mark);

		read_rest(drain, reader, *unit, record);
		size = jump_record_units(drain, record, end - *unit);
		if (size == 0)
			return false;
		if ((type == MW_RING_STACK || type == MW_RING_SLOW) && record->addr == id)
			return true;
	}
	return false;
}

void jump_reader_publish(struct jump_reader *reader)
{
	if (reader->published == reader->read)
		return;
	__atomic_store_n(&reader->slot->drained, reader->read, __ATOMIC_RELEASE);
	reader->published = reader->read;
}

void jump_reader_look(struct jump_drain *drain, struct jump_reader *reader)
{
	uint64_t units = (uint64_t)drain->units_mask + 1;
	uint64_t reserved = __atomic_load_n(&reader->slot->reserved, __ATOMIC_ACQUIRE);
	uint64_t ahead = reserved - reader->read;

	/* A signal handler may have taken the room that the thread had seen: it has reserved more then than there is,
	 * and waits. Much more, or less than was read: the number is not the recorder's. */
	if (ahead > units * MOST_AHEAD) {
		if (!reader->searching)
			drain->stats.bad_records++;
		reader->searching = true;
		ahead = ahead > UINT64_MAX / 2 ? 0 : units;
	}
	reader->more = ahead > units;
	if (reader->more)
		ahead = units;
	reader->end = reader->read + ahead;
	if (ahead > units / 4 * 3)
		drain->pressed = true;
	if (ahead > drain->fullest)
		drain->fullest = ahead;
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
	const struct mw_event event = {.time_ns = jump_drain_ns(drain, record->time),
				       .addr = record->addr,
				       .size = record->size,
				       .stack =
					       jump_stack_of(drain, mw_ring_stack_of(record->mark), MW_KIND_HEAP, true),
				       .type = allocates ? MW_EVENT_ALLOC : MW_EVENT_FREE,
				       .kind = MW_KIND_HEAP};

	return record->addr ? jump_drain_emit(drain, reader, &event) : NULL;
}

/* `*units` is 0 where the record makes no sense. */
static inline struct mw_error *take(struct jump_drain *drain, struct jump_reader *reader,
				    const struct mw_ring_record *record, uint64_t *units)
{
	uint32_t flags = mw_ring_flags_of(record->mark);

	*units = 0;
	/* A thread may first be met in a helper of ours, whose number is none of a hook's. */
	if (mw_ring_hook_of(record->mark) >= drain->hooks && mw_ring_type_of(record->mark) != MW_RING_THREAD)
		return NULL;
	if (mw_ring_type_of(record->mark) <= MW_RING_FREE_BLOCK && reader->thread != JUMP_NO_THREAD &&
	    !(flags & (MW_RING_VM | MW_RING_INTERNAL))) {
		*units = 1;
		return take_plain(drain, reader, record);
	}
	return jump_record_take(drain, reader, record, units);
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
