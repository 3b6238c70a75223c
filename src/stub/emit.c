// SPDX-License-Identifier: MIT
/* emit.c: records: room in the ring, waited for but never for long, and what is written there (recorder.h). */
#include "stub/recorder.h"

void stub_give_up(struct mw_ring_control *control)
{
	__atomic_store_n(&control->given_up, 1, __ATOMIC_RELAXED);
	/* Else a guard of 0 would be taken for a forked child's. */
	__atomic_store_n(&control->recording, 0, __ATOMIC_RELEASE);
	__atomic_store_n((uint32_t *)(uintptr_t)stub_context()->guard, MW_STUB_GUARD_ENDING, __ATOMIC_RELEASE);
}

void stub_wait_begin(struct stub_wait *wait)
{
	wait->start = cpu_ticks();
}

bool stub_wait_on(struct mw_ring_control *control, const struct stub_wait *wait)
{
	uint64_t now, heartbeat;

	cpu_pause();
	now = cpu_ticks();
	if (!stub_on())
		return false;
	heartbeat = __atomic_load_n(&control->heartbeat, __ATOMIC_RELAXED);
	if ((int64_t)(now - heartbeat) > 0 && now - heartbeat > control->heartbeat_limit) {
		stub_give_up(control);
		return false;
	}
	return now - wait->start <= control->wait_limit;
}

void stub_wait_end(struct mw_ring_slot *slot, const struct stub_wait *wait)
{
	slot->waited += cpu_ticks() - wait->start;
}

/* --- records ------------------------------------------------------------------------------------------------------ */

#define AHEAD 16 /* units: memwatch has read them in the last lap, so they are in another CPU's cache */

/* See that `end` units fit the ring, waiting for memwatch to read. */
static STUB_RARE bool make_room(struct stub_visit *visit, uint32_t units, bool reserved, uint64_t number)
{
	struct mw_ring_control *control = visit->control;
	struct mw_ring_slot *slot = visit->slot;
	struct stub_wait wait;
	bool room = false, waits = false;

	if (units > control->ring_units)
		return false;
	for (;;) {
		uint64_t drained = __atomic_load_n(&slot->drained, __ATOMIC_ACQUIRE);

		/* memwatch has not read what was never there. */
		if (drained <= slot->reserved)
			slot->limit = drained + control->ring_units;
		room = (reserved ? number : slot->reserved) + units <= slot->limit;
		if (room)
			break;
		if (!waits) {
			stub_wait_begin(&wait);
			waits = true;
		}
		if (!stub_wait_on(control, &wait))
			break;
	}
	if (waits)
		stub_wait_end(slot, &wait);
	return room;
}

bool stub_reserve(struct stub_visit *visit, uint32_t units, uint64_t *number)
{
	struct mw_ring_slot *slot = visit->slot;
	uint64_t n = slot->reserved;

	if (unlikely(n + units > slot->limit) && !make_room(visit, units, false, 0)) {
		/* When recording is over, nothing is missed. */
		slot->lost_events += stub_on();
		return false;
	}
	/* Said before it is so: a signal may strike right behind it, and its handler jump away. */
	__atomic_store_n(&slot->pending, slot->reserved | (uint64_t)units << 48, __ATOMIC_RELEASE);
	n = cpu_take(&slot->reserved, units);
	__atomic_store_n(&slot->pending, n | (uint64_t)units << 48, __ATOMIC_RELEASE);
	/* A handler took the room that had been seen. What is reserved can't be given back. */
	if (unlikely(n + units > slot->limit) && !make_room(visit, units, true, n)) {
		slot->lost_events++;
		stub_give_up(visit->control);
		return false;
	}
	*number = n;
	return true;
}

struct mw_ring_record *stub_unit(const struct stub_visit *visit, uint64_t number)
{
	uint64_t units = visit->control->ring_units, ring = (uint64_t)visit->slot->ring - 1;
	struct mw_ring_record *records = stub_at(visit->control, visit->control->rings);

	return &records[ring * units + (number & (units - 1))];
}

static inline uint32_t lap_of(const struct stub_visit *visit, uint64_t number)
{
	/* A power of two: mw_ring_lap() without its division. */
	return 1 + (uint32_t)((number >> __builtin_ctz(visit->control->ring_units)) % 255);
}

void stub_mark(struct stub_visit *visit, uint64_t number, uint32_t stack, uint32_t type, uint32_t flags, bool done)
{
	uint64_t mark = mw_ring_mark(stack, visit->call->hook, type, flags, lap_of(visit, number));

	if (likely(stub_on()))
		__atomic_store_n(&stub_unit(visit, number)->mark, mark, __ATOMIC_RELEASE);
	if (done)
		__atomic_store_n(&visit->slot->pending, 0, __ATOMIC_RELEASE);
}

STUB_RARE void stub_void(struct stub_visit *visit, uint64_t number, uint32_t units)
{
	struct mw_ring_record *record = stub_unit(visit, number);

	record->time = cpu_ticks();
	record->addr = 0;
	record->size = units;
	stub_mark(visit, number, MW_RING_STACK_NONE, MW_RING_NOTHING, 0, true);
}

static inline bool emit_now(struct stub_visit *visit, uint32_t type, uint64_t addr, uint64_t size, uint32_t stack,
			    bool after)
{
	struct mw_ring_record *record;
	uint64_t number;

	if (unlikely(!stub_reserve(visit, 1, &number)))
		return false;
	record = stub_unit(visit, number);
	cpu_prefetch_write(stub_unit(visit, number + AHEAD));
	record->time = after ? cpu_ticks_after() : cpu_ticks();
	record->addr = addr;
	record->size = size;
	stub_mark(visit, number, stack, type, (uint32_t)visit->call->flags & (MW_RING_VM | MW_RING_INTERNAL), true);
	return true;
}

bool stub_emit(struct stub_visit *visit, uint32_t type, uint64_t addr, uint64_t size, uint32_t stack)
{
	return emit_now(visit, type, addr, size, stack, false);
}

bool stub_emit_after(struct stub_visit *visit, uint32_t type, uint64_t addr, uint64_t size, uint32_t stack)
{
	return emit_now(visit, type, addr, size, stack, true);
}
