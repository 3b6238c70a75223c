// SPDX-License-Identifier: MIT
/*
 * records.c: one ring, record by record, to events; and from the recorder's numbers of stacks to the sink's (drain.h).
 *
 * Events are reported as the trap engine tells them: sizes of mappings rounded up to pages, no size and no stack with
 * what failed, a move of the break as a mapping or an unmapping.
 */
#include "engine/jump/drain.h"

#include "base/vector.h"

#include <stdio.h>
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

static enum mw_kind kind_of(uint64_t mark)
{
	uint32_t flags = mw_ring_flags_of(mark);

	if (flags & MW_RING_INTERNAL)
		return MW_KIND_VM_INTERNAL;
	return flags & MW_RING_VM ? MW_KIND_VM : MW_KIND_HEAP;
}

/* How many units a record has, of `room` that there may be at most; 0 where it makes no sense. */
static uint64_t units_of(const struct jump_drain *drain, const struct mw_ring_record *record, uint64_t room)
{
	uint32_t type = mw_ring_type_of(record->mark), count = (uint32_t)record->size;
	uint64_t bytes = record->size, units;

	if (type == MW_RING_NOTHING)
		return record->size <= room ? record->size : 0;
	if (type != MW_RING_STACK && type != MW_RING_SLOW && type != MW_RING_SCRIPT)
		return type < MW_RING_TYPES ? 1 : 0;
	if (type == MW_RING_STACK) {
		if (count > drain->shared->geometry.depth || record->size >> 32 > MW_RING_BROKEN)
			return 0;
		bytes = count * sizeof(uint64_t);
	} else if (type == MW_RING_SCRIPT) {
		bytes &= ~(uint64_t)MW_RING_SCRIPT_CUT;
		if (bytes > drain->shared->geometry.script_frames)
			return 0;
		bytes *= sizeof(struct mw_script_ref);
	} else if (bytes < sizeof(struct mw_ring_slow) || bytes > room * MW_RING_UNIT) {
		return 0;
	}
	units = 1 + (bytes + MW_RING_UNIT - 1) / MW_RING_UNIT;
	return units <= room && record->addr < MW_RING_STACK_NONE ? units : 0;
}

/* One ring, record by record. */

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

static void copy_payload(struct jump_drain *drain, const struct jump_reader *reader, uint64_t from, uint64_t units)
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

static bool find_stack(const struct jump_drain *drain, const struct jump_reader *reader, uint32_t id,
		       struct mw_ring_record *record, uint64_t *unit)
{
	uint64_t units = (uint64_t)drain->units_mask + 1, end = reader->read;
	uint64_t ahead = __atomic_load_n(&reader->slot->reserved, __ATOMIC_ACQUIRE) - reader->read, size;

	if (ahead <= units * JUMP_MOST_AHEAD)
		end += ahead < units ? ahead : units;
	for (*unit = reader->read; *unit < end && read_mark(drain, reader, *unit, record); *unit += size) {
		uint32_t type = mw_ring_type_of(record->mark);

		read_rest(drain, reader, *unit, record);
		size = units_of(drain, record, end - *unit);
		if (size == 0)
			return false;
		if ((type == MW_RING_STACK || type == MW_RING_SLOW || type == MW_RING_SCRIPT) && record->addr == id)
			return true;
	}
	return false;
}

/*
 * Where the record at `*unit` is of an interpreter's frames, keep these for the stack that they belong to, whose record
 * follows: *record and *unit are that one then. False: it makes no sense, or does not follow.
 */
static bool take_script(struct jump_drain *drain, const struct jump_reader *reader, struct mw_ring_record *record,
			uint64_t *unit, uint64_t end)
{
	uint64_t id = record->addr, units;
	uint32_t type, hook = mw_ring_hook_of(record->mark);

	drain->ref_count = 0;
	if (mw_ring_type_of(record->mark) != MW_RING_SCRIPT)
		return true;
	units = units_of(drain, record, end - *unit);
	if (units == 0 || *unit + units >= end)
		return false;
	copy_payload(drain, reader, *unit + 1, units - 1);
	drain->ref_count = (uint32_t)record->size & ~MW_RING_SCRIPT_CUT;
	drain->ref_cut = record->size & MW_RING_SCRIPT_CUT;
	memcpy(drain->refs, drain->payload, drain->ref_count * sizeof(*drain->refs));
	*unit += units;
	if (!read_mark(drain, reader, *unit, record))
		return false;
	read_rest(drain, reader, *unit, record);
	type = mw_ring_type_of(record->mark);
	return (type == MW_RING_STACK || type == MW_RING_SLOW) && record->addr == id &&
	       mw_ring_hook_of(record->mark) == hook && units_of(drain, record, end - *unit) > 0;
}

/* From the recorder's numbers of stacks to the sink's. */

#define BROKEN 4u

static inline uint32_t pack(uint32_t stack, enum mw_kind kind, bool broken)
{
	return ((stack << 3) | (broken ? BROKEN : 0) | (uint32_t)kind) + 1;
}

#define MOST_SOUGHT    64u /* a round */
#define MAX_SINK_STACK ((UINT32_MAX >> 3) - 1)

/*
 * Where a number's entry is. Numbers come from one counter, so there are hardly more chunks than a few and one for
 * every so many stacks; who says other numbers does not get memory for them: *out is NULL then.
 */
static struct mw_error *entry_of(struct jump_stacks *stacks, uint32_t id, uint32_t **out)
{
	uint32_t **chunk = &stacks->chunks[id >> JUMP_STACK_CHUNK_BITS];

	*out = NULL;
	stacks->seen++;
	if (!*chunk) {
		if (stacks->chunk_count > 64 + stacks->seen / (JUMP_STACK_CHUNK / 4))
			return NULL;
		*chunk = calloc(JUMP_STACK_CHUNK, sizeof(**chunk));
		if (!*chunk)
			return mw_error_nomem();
		stacks->chunk_count++;
	}
	*out = *chunk + id % JUMP_STACK_CHUNK;
	return NULL;
}

/* The frames of an interpreter, which came before the stack, among its own. */
static struct mw_error *merge(struct jump_drain *drain, struct mw_raw_stack *raw)
{
	uint32_t count;
	bool truncated;

	MW_TRY(drain->help.script(drain->help.context, raw, drain->refs, drain->ref_count, drain->merged,
				  drain->shared->geometry.depth, &count, &truncated));
	raw->frames = drain->merged;
	raw->count = count;
	if (truncated || drain->ref_cut)
		raw->cut = MW_STACK_TRUNCATED;
	return NULL;
}

/* Give the `count` frames at drain->frames to the sink, by the recorder's number `id`. */
static struct mw_error *intern(struct jump_drain *drain, uint64_t mark, uint32_t id, uint32_t count,
			       enum mw_stack_cut cut, bool *good)
{
	struct mw_raw_stack raw = {.frames = drain->frames,
				   .count = count,
				   .cut = cut,
				   .hook = mw_ring_hook_of(mark),
				   .kind = kind_of(mark)};
	uint32_t *entry, stack;

	MW_TRY(entry_of(&drain->stacks, id, &entry));
	*good = entry != NULL;
	if (!entry)
		return NULL;
	if (drain->ref_count && drain->help.script)
		MW_TRY(merge(drain, &raw));
	MW_TRY(drain->sink.stack(drain->sink.context, &raw, &stack));
	*entry = stack <= MAX_SINK_STACK ? pack(stack, raw.kind, cut == MW_STACK_BROKEN) : 0;
	drain->ref_count = 0;
	return NULL;
}

/* Keep a stack until its walk comes, at once. Without memory it is not compared. */
static void keep(struct jump_drain *drain, struct jump_reader *reader, uint64_t mark, uint32_t id, uint32_t count,
		 uint32_t cut)
{
	struct jump_compared_stack *kept = reader->compared;

	if (!kept)
		kept = malloc(sizeof(*kept) + drain->shared->geometry.depth * sizeof(kept->frames[0]));
	reader->compared = kept;
	if (!kept)
		return;
	*kept = (struct jump_compared_stack){
		.waiting = true, .id = id, .hook = mw_ring_hook_of(mark), .count = count, .cut = cut};
	for (uint32_t i = 0; i < count; i++)
		kept->frames[i] = drain->frames[i].addr;
}

/*
 * Return addresses of the payload, to drain->frames. Rows tell what is right for code that something has called: where
 * a stack leads to what nothing has called it ends, whatever comes behind.
 */
static void read_frames(struct jump_drain *drain, uint32_t *count, enum mw_stack_cut *cut)
{
	const struct jump_drain_help *help = &drain->help;
	mw_addr addr, inner = 0;

	for (uint32_t i = 0; i < *count; i++, inner = addr) {
		memcpy(&addr, drain->payload + i * sizeof(addr), sizeof(addr));
		drain->frames[i] = (struct mw_raw_frame){addr, help->module(help->context, addr)};
		if (help->begins && help->begins(help->context, addr, inner)) {
			/* As that of a signal frame, its pc counts as one that follows a call there. */
			drain->frames[i].addr++;
			*count = i + 1;
			*cut = MW_STACK_COMPLETE;
		}
	}
	if (help->check)
		help->check(help->context, drain->frames, count, cut);
}

static struct mw_error *stack_by_rows(struct jump_drain *drain, struct jump_reader *reader, uint64_t mark, uint32_t id,
				      uint32_t count, uint32_t told, bool *good)
{
	enum mw_stack_cut cut = (enum mw_stack_cut)told;

	read_frames(drain, &count, &cut);
	if (mw_ring_flags_of(mark) & MW_RING_COMPARE)
		keep(drain, reader, mark, id, count, (uint32_t)cut);
	return intern(drain, mark, id, count, cut, good);
}

static const char *cut_name(uint32_t cut)
{
	static const char *const names[] = {"complete", "truncated", "broken"};

	return cut < sizeof(names) / sizeof(names[0]) ? names[cut] : "?";
}

/* The difference as text: where it begins, then both stacks. */
static void note_difference(struct jump_drain *drain, const struct jump_compared_stack *kept, uint32_t count,
			    enum mw_stack_cut cut)
{
	uint32_t first = 0;
	char *text = NULL;
	size_t size;
	FILE *out;

	if (drain->difference_count == JUMP_DIFFERENCES)
		return;
	out = open_memstream(&text, &size);
	if (!out)
		return;
	while (first < count && first < kept->count && kept->frames[first] == drain->frames[first].addr)
		first++;
	fprintf(out, "stack %u, hook %u, from frame %u on\n rows, %u frames, %s:", kept->id, kept->hook, first,
		kept->count, cut_name(kept->cut));
	for (uint32_t i = 0; i < kept->count; i++)
		fprintf(out, " %llx", (unsigned long long)kept->frames[i]);
	fprintf(out, "\n walk, %u frames, %s:", count, cut_name((uint32_t)cut));
	for (uint32_t i = 0; i < count; i++)
		fprintf(out, " %llx", (unsigned long long)drain->frames[i].addr);
	fprintf(out, "\n");
	if (fclose(out) == 0)
		drain->differences[drain->difference_count++] = text;
	else
		free(text);
}

static void compare(struct jump_drain *drain, struct jump_compared_stack *kept, uint32_t count, enum mw_stack_cut cut)
{
	bool same = kept->count == count && kept->cut == (uint32_t)cut;

	kept->waiting = false;
	for (uint32_t i = 0; same && i < count; i++)
		same = kept->frames[i] == drain->frames[i].addr;
	drain->stats.compared++;
	if (same)
		return;
	drain->stats.differing++;
	note_difference(drain, kept, count, cut);
}

/*
 * Walks take their time, and a target may ask for any number. A round ends when it has had its share; where there is no
 * other round, what is beyond has no stack.
 */
static void walk(struct jump_drain *drain, size_t size, uint32_t *count, enum mw_stack_cut *cut)
{
	uint32_t capacity = drain->shared->geometry.depth;
	uint64_t begin = jump_clock_tick();
	struct mw_ring_slow slow;

	*count = 0;
	*cut = MW_STACK_BROKEN;
	if (drain->last_round && drain->walked > drain->last_limit) {
		drain->stats.lost_stacks++;
		return;
	}
	memcpy(&slow, drain->payload, sizeof(slow));
	drain->help.walk(drain->help.context, &slow, drain->payload + sizeof(slow), size - sizeof(slow), drain->frames,
			 capacity, count, cut);
	if (*count > capacity)
		*count = capacity;
	drain->walked += jump_clock_tick() - begin;
	if (!drain->last_round && drain->walked > drain->walk_limit)
		drain->budget = 1;
}

static struct mw_error *stack_by_walk(struct jump_drain *drain, struct jump_reader *reader, uint64_t mark, uint32_t id,
				      size_t size, bool *good)
{
	bool for_comparison = mw_ring_flags_of(mark) & MW_RING_COMPARE;
	struct jump_compared_stack *kept = reader->compared;
	enum mw_stack_cut cut;
	uint32_t count;

	if (for_comparison && (!kept || !kept->waiting || kept->id != id))
		return NULL;
	walk(drain, size, &count, &cut);
	if (!for_comparison)
		return intern(drain, mark, id, count, cut, good);
	compare(drain, kept, count, cut);
	return NULL;
}

/* One that will be come to in its turn, and is reported now. */
static struct mw_error *emit_early(struct jump_drain *drain, const struct jump_reader *reader,
				   const struct mw_ring_record *found_record, uint64_t unit)
{
	struct mw_ring_record found = *found_record;
	const struct mw_ring_record *record = &found;
	uint64_t units;
	uint32_t count;
	enum mw_stack_cut cut;
	bool good;

	if (!take_script(drain, reader, &found, &unit, unit + (uint64_t)drain->units_mask + 1))
		return NULL;
	units = units_of(drain, record, (uint64_t)drain->units_mask + 1);
	count = (uint32_t)record->size;
	cut = (enum mw_stack_cut)(record->size >> 32);
	copy_payload(drain, reader, unit + 1, units - 1);
	if (mw_ring_type_of(record->mark) == MW_RING_STACK)
		read_frames(drain, &count, &cut);
	else
		walk(drain, record->size, &count, &cut);
	return intern(drain, record->mark, (uint32_t)record->addr, count, cut, &good);
}

/*
 * A thread may have found the number of a stack that another has just walked, and have read the time before: processors
 * do the one while they wait for the other. So the event comes before the stack, which is looked for in what the rings
 * hold, and reported. Its entry, as pack() makes it, less 1; UINT32_MAX: it is nowhere.
 */
static uint32_t stack_missing(struct jump_drain *drain, uint32_t id)
{
	const uint32_t *chunk;

	/* A target may name as many as it likes that are nowhere. */
	if (drain->sought++ >= MOST_SOUGHT)
		return UINT32_MAX;
	for (uint32_t i = 0; i < drain->active_count; i++) {
		const struct jump_reader *reader = drain->active[i];
		struct mw_ring_record record;
		uint64_t unit;

		if (!find_stack(drain, reader, id, &record, &unit) || mw_ring_hook_of(record.mark) >= drain->hooks)
			continue;
		mw_error_keep_first(&drain->failure, emit_early(drain, reader, &record, unit));
		chunk = drain->stacks.chunks[id >> JUMP_STACK_CHUNK_BITS];
		return (chunk ? chunk[id % JUMP_STACK_CHUNK] : 0) - 1;
	}
	return UINT32_MAX;
}

/* The sink's number of a stack of that kind. `captured`: it was captured for this event. */
static inline uint32_t stack_of(struct jump_drain *drain, uint32_t id, enum mw_kind kind, bool captured)
{
	const uint32_t *chunk;
	uint32_t packed;

	if (id == MW_RING_STACK_NONE)
		return MW_STACK_NONE;
	chunk = drain->stacks.chunks[id >> JUMP_STACK_CHUNK_BITS];
	packed = (chunk ? chunk[id % JUMP_STACK_CHUNK] : 0) - 1;
	if (__builtin_expect(packed == UINT32_MAX, 0))
		packed = stack_missing(drain, id);
	if (packed == UINT32_MAX || (packed & 3) != (uint32_t)kind) {
		drain->stats.lost_stacks++;
		return MW_STACK_NONE;
	}
	drain->stats.broken_stacks += captured && packed & BROKEN;
	return packed >> 3;
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

/* The interval that the block of an ALLOC or REALLOC_END was sampled with, off its size. False: it makes no sense. */
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

/* `*report`: it is one for the sink, which knows its block. False: it makes no sense. */
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

/* STACK and SLOW, and what of an interpreter comes before: what follows the record is copied, then looked at. */
static struct mw_error *take_stack(struct jump_drain *drain, struct jump_reader *reader,
				   const struct mw_ring_record *first, uint64_t *units)
{
	struct mw_ring_record record = *first;
	uint64_t unit = reader->read, all;
	uint32_t id = (uint32_t)first->addr;
	struct mw_error *err;
	bool good = true;

	if (!take_script(drain, reader, &record, &unit, reader->end))
		return NULL;
	all = units_of(drain, &record, reader->end - unit);
	if (all == 0)
		return NULL;
	copy_payload(drain, reader, unit + 1, all - 1);
	if (mw_ring_type_of(record.mark) == MW_RING_STACK)
		err = stack_by_rows(drain, reader, record.mark, id, (uint32_t)record.size,
				    (uint32_t)(record.size >> 32), &good);
	else
		err = stack_by_walk(drain, reader, record.mark, id, record.size, &good);
	*units = good ? unit - reader->read + all : 0;
	return err;
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
		return take_stack(drain, reader, record, units);
	case MW_RING_NOTHING:
		*units = units_of(drain, record, reader->end - reader->read);
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
