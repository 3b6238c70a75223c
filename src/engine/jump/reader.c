// SPDX-License-Identifier: MIT
/* reader.c: one ring, record by record (drain_state.h). */
#include "engine/jump/drain_state.h"

#include <string.h>

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

	return record->addr ? jump_drain_tell(drain, reader, &event) : NULL;
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
