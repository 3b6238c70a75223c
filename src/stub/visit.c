// SPDX-License-Identifier: MIT
/*
 * visit.c: a thread comes into the recorder and goes (recorder.h).
 *
 * A visit may be interrupted by a signal whose handler visits too. While it lasts, slot->inside counts it, and
 * pending_sp says where it began. A handler that jumps away leaves both behind; a later visit from further up the same
 * stack knows that by what it finds.
 *
 * slot->open counts what has come in and not left, the calls that are to come back included. Nothing ever corrects it:
 * where a handler switches to another stack, and may switch back much later, that is how memwatch knows of it.
 */
#include "stub/recorder.h"

#define PENDING_UNITS(pending)  ((uint32_t)((pending) >> 48))
#define PENDING_NUMBER(pending) ((pending) & ((UINT64_C(1) << 48) - 1))

/* Is a visit still on the stack that began at `sp`? */
static bool goes_on(const struct stub_visit *visit, uint64_t sp)
{
	uint64_t here = (uint64_t)(uintptr_t)visit->call;

	return sp != 0 && !(sp <= here && stub_region_same(visit->slot, sp, here));
}

static STUB_RARE void settle(struct stub_visit *visit)
{
	struct mw_ring_slot *slot = visit->slot;
	uint64_t pending = slot->pending, number = PENDING_NUMBER(pending);
	uint32_t units = PENDING_UNITS(pending);
	bool reserved = units && number != slot->reserved;

	if (goes_on(visit, slot->pending_sp)) {
		visit->inside = slot->inside;
		visit->pending = pending;
		visit->pending_sp = slot->pending_sp;
		visit->unreserved = units && !reserved;
		slot->pending = 0;
		return;
	}
	visit->inside = 0;
	slot->pending = 0;
	if (!reserved || !slot->ring)
		return;
	if (number + units <= slot->limit)
		stub_void(visit, number, units);
	else
		stub_give_up(visit->control);
}

static inline void open_visit(struct stub_visit *visit)
{
	struct mw_ring_slot *slot = visit->slot;
	uint64_t here = (uint64_t)(uintptr_t)visit->call;

	visit->inside = 0;
	if (unlikely(__atomic_load_n(&slot->inside, __ATOMIC_RELAXED)))
		settle(visit);
	/* Twice: a handler between leaves its own. */
	__atomic_store_n(&slot->pending_sp, here, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->inside, visit->inside + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->pending_sp, here, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* The slot is this thread's: it may be added to in one instruction. */
static bool own(const struct mw_ring_slot *slot)
{
	return likely(slot->owner == cpu_thread_pointer(stub_context()->rdfsbase));
}

static STUB_RARE bool begin_fresh(struct stub_visit *visit)
{
	struct mw_ring_slot *slot = visit->slot;
	uint64_t number;

	if (!slot->ring && !stub_slot_take_ring(visit->control, slot)) {
		slot->lost_events++;
		stub_visit_end(visit);
		return false;
	}
	if (stub_reserve(visit, 1, &number)) {
		struct mw_ring_record *record = stub_unit(visit, number);

		record->time = cpu_ticks();
		record->addr = slot->tid;
		record->size = slot->owner;
		stub_mark(visit, number, MW_RING_STACK_NONE, MW_RING_THREAD, 0, true);
	}
	return true;
}

bool stub_visit_begin(struct stub_visit *visit)
{
	bool fresh;

	visit->slot = stub_slot_find(visit, &fresh);
	if (unlikely(!visit->slot)) {
		__atomic_fetch_add(&visit->control->lost_events, 1, __ATOMIC_RELAXED);
		return false;
	}
	cpu_add32(&visit->slot->open, 1);
	visit->stays = false;
	open_visit(visit);
	cpu_add(&visit->slot->entries, 1);
	return likely(!fresh && visit->slot->ring) || begin_fresh(visit);
}

void stub_visit_count_out(struct mw_ring_slot *slot)
{
	if (own(slot))
		cpu_add32(&slot->open, UINT32_MAX);
	else
		__atomic_fetch_sub(&stub_control()->open, 1, __ATOMIC_RELAXED);
}

bool stub_visit_resume(struct stub_visit *visit, struct mw_ring_slot *slot)
{
	if (unlikely(!own(slot))) {
		__atomic_fetch_add(&visit->control->lost_events, 1, __ATOMIC_RELAXED);
		stub_visit_count_out(slot);
		return false;
	}
	visit->slot = slot;
	visit->stays = false;
	open_visit(visit);
	return true;
}

static STUB_RARE void restore(struct stub_visit *visit)
{
	struct mw_ring_slot *slot = visit->slot;

	/* What it was about to reserve is what comes next now. */
	if (visit->unreserved)
		visit->pending = slot->reserved | (uint64_t)PENDING_UNITS(visit->pending) << 48;
	slot->pending = visit->pending;
	slot->pending_sp = visit->pending_sp;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

void stub_visit_end(struct stub_visit *visit)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (unlikely(visit->inside))
		restore(visit);
	__atomic_store_n(&visit->slot->inside, visit->inside, __ATOMIC_RELEASE);
	if (!visit->stays)
		cpu_add32(&visit->slot->open, UINT32_MAX);
}
