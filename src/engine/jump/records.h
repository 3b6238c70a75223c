/* SPDX-License-Identifier: MIT */
/* records.h: the units of a ring, as records.c and stacks.c read them; and stacks, for whose events refer to them. */
#ifndef MW_ENGINE_JUMP_RECORDS_H
#define MW_ENGINE_JUMP_RECORDS_H

#include "engine/jump/drain.h"

static inline enum mw_kind kind_of(uint64_t mark)
{
	uint32_t flags = mw_ring_flags_of(mark);

	if (flags & MW_RING_INTERNAL)
		return MW_KIND_VM_INTERNAL;
	return flags & MW_RING_VM ? MW_KIND_VM : MW_KIND_HEAP;
}

static inline struct mw_ring_record *unit_at(const struct jump_drain *drain, const struct jump_reader *reader,
					     uint64_t unit)
{
	return &reader->units[unit & drain->units_mask];
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

/* stacks.c */

/* How many units a record has, of `room` that there may be at most; 0 where it is invalid. */
uint64_t jump_record_units(const struct jump_drain *drain, const struct mw_ring_record *record, uint64_t room);
/* STACK and SLOW, and what of an interpreter comes before: give the stack to the sink. `*units` is how many all of it has, 0
 * where it is invalid. Errors: the sink's; MEMORY. */
struct mw_error *jump_stack_take(struct jump_drain *drain, struct jump_reader *reader,
				 const struct mw_ring_record *first, uint64_t *units) MW_MUST_CHECK;
/* A stack that an event refers to and that has not come: its entry in drain->stacks, less 1; UINT32_MAX: it is nowhere. */
uint32_t jump_stack_missing(struct jump_drain *drain, uint32_t id);

#define JUMP_STACK_BROKEN 4u /* in an entry, less 1: the kind is in the bits below, the sink's number above */

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
		packed = jump_stack_missing(drain, id);
	if (packed == UINT32_MAX || (packed & 3) != (uint32_t)kind) {
		drain->stats.lost_stacks++;
		return MW_STACK_NONE;
	}
	drain->stats.broken_stacks += captured && packed & JUMP_STACK_BROKEN;
	return packed >> 3;
}

#endif
