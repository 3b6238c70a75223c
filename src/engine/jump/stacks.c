// SPDX-License-Identifier: MIT
/* stacks.c: stacks that the recorder has put into rings, given to the sink; from the recorder's numbers of them to the sink's
 * (records.h). */
#include "engine/jump/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t jump_record_units(const struct jump_drain *drain, const struct mw_ring_record *record, uint64_t room)
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

static void copy_payload(struct jump_drain *drain, const struct jump_reader *reader, uint64_t from, uint64_t units)
{
	for (uint64_t i = 0; i < units; i++)
		memcpy(drain->payload + i * MW_RING_UNIT, unit_at(drain, reader, from + i), MW_RING_UNIT);
}

static bool tells_stack(const struct mw_ring_record *record)
{
	uint32_t type = mw_ring_type_of(record->mark);

	return type == MW_RING_STACK || type == MW_RING_SLOW || type == MW_RING_SCRIPT;
}

/* How far a ring may be looked at ahead of its turn. */
static uint64_t end_ahead(const struct jump_drain *drain, const struct jump_reader *reader)
{
	uint64_t units = (uint64_t)drain->units_mask + 1;
	uint64_t ahead = __atomic_load_n(&reader->slot->reserved, __ATOMIC_ACQUIRE) - reader->read;

	if (ahead > units * JUMP_MOST_AHEAD)
		return reader->read;
	return reader->read + (ahead < units ? ahead : units);
}

/* Move *unit to the first record of a stack there or behind it; false: there is none. */
static bool seek_stack(const struct jump_drain *drain, const struct jump_reader *reader, uint64_t end,
		       struct mw_ring_record *record, uint64_t *unit)
{
	for (uint64_t size; *unit < end && read_mark(drain, reader, *unit, record); *unit += size) {
		read_rest(drain, reader, *unit, record);
		size = jump_record_units(drain, record, end - *unit);
		if (size == 0 || tells_stack(record))
			return size > 0;
	}
	return false;
}

static bool find_stack(const struct jump_drain *drain, const struct jump_reader *reader, uint32_t id,
		       struct mw_ring_record *record, uint64_t *unit)
{
	uint64_t end = end_ahead(drain, reader);

	for (*unit = reader->read; seek_stack(drain, reader, end, record, unit);
	     *unit += jump_record_units(drain, record, end - *unit))
		if (record->addr == id)
			return true;
	return false;
}

/*
 * Where the record at `*unit` is of an interpreter's frames, keep these for the stack that they belong to, whose record
 * follows: *record and *unit are that one then. False: it is invalid, or does not follow.
 */
static bool take_script(struct jump_drain *drain, const struct jump_reader *reader, struct mw_ring_record *record,
			uint64_t *unit, uint64_t end)
{
	uint64_t id = record->addr, units;
	uint32_t type, hook = mw_ring_hook_of(record->mark);

	drain->ref_count = 0;
	if (mw_ring_type_of(record->mark) != MW_RING_SCRIPT)
		return true;
	units = jump_record_units(drain, record, end - *unit);
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
	       mw_ring_hook_of(record->mark) == hook && jump_record_units(drain, record, end - *unit) > 0;
}

/* From the recorder's numbers of stacks to the sink's. */

static inline uint32_t pack(uint32_t stack, enum mw_kind kind, bool broken)
{
	return ((stack << 3) | (broken ? JUMP_STACK_BROKEN : 0) | (uint32_t)kind) + 1;
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

/* drain->merged in place of the frames. */
static void take_named(struct jump_drain *drain, struct mw_raw_stack *raw, uint32_t count, bool truncated)
{
	memcpy(drain->frames, drain->merged, count * sizeof(*drain->frames));
	raw->count = count;
	if (truncated)
		raw->cut = MW_STACK_TRUNCATED;
}

/* Frames of functions of JavaScript; of a stack that memwatch has walked none is known. */
static void name_functions(struct jump_drain *drain, struct mw_raw_stack *raw)
{
	uint32_t count;
	bool truncated;

	drain->help.functions(drain->help.context, raw, drain->functions, drain->merged, drain->shared->geometry.depth,
			      &count, &truncated);
	take_named(drain, raw, count, truncated);
}

/* Frames that only the process can name. */
static struct mw_error *name(struct jump_drain *drain, struct mw_raw_stack *raw)
{
	uint32_t count;
	bool truncated;

	MW_TRY(drain->help.name(drain->help.context, raw, drain->merged, drain->shared->geometry.depth, &count,
				&truncated));
	if (!count)
		return NULL;
	take_named(drain, raw, count, truncated);
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
	/* It may have been reported early. */
	if (!entry || *entry) {
		drain->ref_count = 0;
		return NULL;
	}
	if (drain->help.functions)
		name_functions(drain, &raw);
	if (drain->help.name)
		MW_TRY(name(drain, &raw));
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

static bool is_known(const struct jump_drain *drain, uint32_t id)
{
	const uint32_t *chunk = drain->stacks.chunks[id >> JUMP_STACK_CHUNK_BITS];

	return chunk && chunk[id % JUMP_STACK_CHUNK];
}

static uint64_t word_of(const struct jump_drain *drain, uint32_t number)
{
	uint64_t word;

	memcpy(&word, drain->payload + number * sizeof(word), sizeof(word));
	return word;
}

/* A frame of JavaScript; false: part of it is missing. */
static bool read_function(struct jump_drain *drain, uint32_t *position, uint32_t count, mw_addr addr,
			  struct mw_raw_frame *out, struct mw_javascript *function)
{
	if (count - *position < MW_JAVASCRIPT_WORDS)
		return false;
	*function = (struct mw_javascript){word_of(drain, *position), word_of(drain, *position + 1),
					   word_of(drain, *position + 2)};
	*position += MW_JAVASCRIPT_WORDS;
	*out = (struct mw_raw_frame){addr, drain->help.module(drain->help.context, addr)};
	return true;
}

/* The frame at *position of the payload, which moves; false: part of it is missing. */
static bool read_frame(struct jump_drain *drain, uint32_t *position, uint32_t count, struct mw_raw_frame *out,
		       struct mw_javascript *function)
{
	const struct jump_drain_help *help = &drain->help;
	mw_addr addr = word_of(drain, (*position)++);

	*function = (struct mw_javascript){0};
	if (addr & MW_JAVASCRIPT_FRAME && help->functions)
		return read_function(drain, position, count, addr & ~MW_JAVASCRIPT_FRAME, out, function);
	if (!(addr & MW_INTERPRETED_FRAME) || !help->interpreted) {
		*out = (struct mw_raw_frame){addr, help->module(help->context, addr)};
		return true;
	}
	if (count - *position < MW_INTERPRETED_WORDS - 1)
		return false;
	mw_error_keep_first(&drain->failure,
			    help->interpreted(help->context,
					      &(struct mw_interpreted){word_of(drain, *position),
								       word_of(drain, *position + 1), true},
					      out));
	*position += MW_INTERPRETED_WORDS - 1;
	return true;
}

/*
 * Return addresses of the payload, to drain->frames. Rows tell what is right for code that something has called: where
 * a stack leads to what nothing has called it ends, whatever comes behind.
 */
static void read_frames(struct jump_drain *drain, uint32_t *count, enum mw_stack_cut *cut)
{
	const struct jump_drain_help *help = &drain->help;
	uint32_t words = *count, at = 0;
	mw_addr inner = 0;

	for (*count = 0; at < words; inner = drain->frames[(*count)++].addr) {
		struct mw_raw_frame *frame = &drain->frames[*count];

		if (!read_frame(drain, &at, words, frame, &drain->functions[*count])) {
			*cut = MW_STACK_TRUNCATED;
			break;
		}
		if (help->begins && help->begins(help->context, frame->addr, inner)) {
			/* As that of a signal frame, its pc counts as one that follows a call there. */
			frame->addr++;
			at = words;
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
	memset(drain->functions, 0, *count * sizeof(*drain->functions));
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

	if (for_comparison ? !kept || !kept->waiting || kept->id != id : is_known(drain, id))
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
	units = jump_record_units(drain, record, (uint64_t)drain->units_mask + 1);
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
uint32_t jump_stack_missing(struct jump_drain *drain, uint32_t id)
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

struct mw_error *jump_stacks_take_early(struct jump_drain *drain)
{
	for (uint32_t i = 0; i < drain->active_count; i++) {
		const struct jump_reader *reader = drain->active[i];
		uint64_t end = end_ahead(drain, reader), unit = reader->read;

		for (struct mw_ring_record record; seek_stack(drain, reader, end, &record, &unit);
		     unit += jump_record_units(drain, &record, end - unit))
			if (mw_ring_hook_of(record.mark) < drain->hooks && !is_known(drain, (uint32_t)record.addr))
				MW_TRY(emit_early(drain, reader, &record, unit));
	}
	return NULL;
}

struct mw_error *jump_stack_take(struct jump_drain *drain, struct jump_reader *reader,
				 const struct mw_ring_record *first, uint64_t *units)
{
	struct mw_ring_record record = *first;
	uint64_t unit = reader->read, all;
	uint32_t id = (uint32_t)first->addr;
	struct mw_error *err;
	bool good = true;

	if (!take_script(drain, reader, &record, &unit, reader->end))
		return NULL;
	all = jump_record_units(drain, &record, reader->end - unit);
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
