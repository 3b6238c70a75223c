// SPDX-License-Identifier: MIT
/* slot.c: which slot is the thread's; its ring (recorder.h). */
#include "stub/recorder.h"

#define CLAIM_ATTEMPTS 64

/* A thread has ended, and this one was given its stack and control block. */
static STUB_RARE bool take_over(const struct stub_visit *visit, struct mw_ring_slot *slot, uint32_t old, uint32_t tid,
				uint64_t tp)
{
	if (old == MW_RING_NO_TID ||
	    !__atomic_compare_exchange_n(&slot->tid, &old, tid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	if (old == 0)
		return true;
	slot->top = 0; // NOLINT(clang-analyzer-core.NullDereference): no slot lies at 0
	stub_region_inherit(slot, (uint64_t)(uintptr_t)visit->call, tp, tp + stub_context()->tid_offset + sizeof(tid));
	/* It may have died in the recorder, and in calls. */
	slot->pending_sp = 0;
	slot->open = 0;
	return true;
}

static STUB_RARE struct mw_ring_slot *claim(struct mw_ring_slot *slot, uint64_t owner, uint64_t tp, uint32_t tid)
{
	if (!__atomic_compare_exchange_n(&slot->owner, &owner, tp, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return NULL;
	__atomic_store_n(&slot->tid, tid, __ATOMIC_RELEASE);
	return slot;
}

/* The thread's slot, or one that it may have; *found says which. NULL: neither. */
static struct mw_ring_slot *look(const struct stub_visit *visit, uint64_t tp, uint32_t tid, bool *found, bool *fresh)
{
	struct mw_ring_control *control = visit->control;
	struct mw_ring_slot *slots = stub_at(control, control->slots), *vacant = NULL;
	uint32_t count = control->slot_count, first = mw_ring_slot_first(tp, count);

	*found = true;
	for (uint32_t i = 0; i < count; i++) {
		struct mw_ring_slot *slot = &slots[(first + i) & (count - 1)];
		uint64_t owner = __atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE);

		if (likely(owner == tp)) {
			uint32_t old = __atomic_load_n(&slot->tid, __ATOMIC_RELAXED);

			if (likely(old == tid))
				return slot;
			*fresh = true;
			if (take_over(visit, slot, old, tid, tp))
				return slot;
		} else if (owner == MW_RING_FREE || owner == MW_RING_TOMB) {
			if (!vacant)
				vacant = slot;
			if (owner == MW_RING_FREE)
				break;
		}
	}
	*found = false;
	return vacant;
}

struct mw_ring_slot *stub_slot_find(const struct stub_visit *visit, bool *fresh)
{
	uint64_t tp = cpu_thread_pointer(stub_context()->rdfsbase);
	uint32_t tid = *(const uint32_t *)(uintptr_t)(tp + stub_context()->tid_offset);

	*fresh = false;
	for (unsigned i = 0; i < CLAIM_ATTEMPTS; i++) {
		bool found;
		struct mw_ring_slot *slot = look(visit, tp, tid, &found, fresh);

		if (likely(found))
			return slot;
		if (!slot)
			return NULL;
		*fresh = true;
		slot = claim(slot, __atomic_load_n(&slot->owner, __ATOMIC_RELAXED) & MW_RING_TOMB, tp, tid);
		if (slot)
			return slot;
	}
	return NULL;
}

struct mw_ring_slot *stub_slot_known(struct mw_ring_control *control)
{
	uint64_t tp = cpu_thread_pointer(stub_context()->rdfsbase);
	struct mw_ring_slot *slots = stub_at(control, control->slots);
	uint32_t count = control->slot_count, first = mw_ring_slot_first(tp, count);

	for (uint32_t i = 0; i < count; i++) {
		struct mw_ring_slot *slot = &slots[(first + i) & (count - 1)];
		uint64_t owner = __atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE);

		if (owner == tp)
			return slot;
		if (owner == MW_RING_FREE)
			break;
	}
	return NULL;
}

static bool next_ring(struct mw_ring_control *control, uint32_t *ring)
{
	const uint32_t *queue = stub_at(control, control->queue);
	uint64_t taken = __atomic_load_n(&control->rings_taken, __ATOMIC_RELAXED);

	do {
		if (taken >= __atomic_load_n(&control->rings_offered, __ATOMIC_ACQUIRE))
			return false;
	} while (!__atomic_compare_exchange_n(&control->rings_taken, &taken, taken + 1, true, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
	*ring = __atomic_load_n(&queue[taken & (control->queue_count - 1)], __ATOMIC_RELAXED);
	return *ring < control->ring_count;
}

/* `limit` has no other use before there is a ring: until then it says when waiting for one is worth the while again. */
STUB_RARE bool stub_slot_take_ring(struct mw_ring_control *control, struct mw_ring_slot *slot)
{
	struct stub_wait wait;
	uint32_t ring, none = 0;
	bool got = next_ring(control, &ring);

	if (!got && cpu_ticks() >= slot->limit) {
		stub_wait_begin(&wait);
		while (!got && stub_wait_on(control, &wait))
			got = next_ring(control, &ring);
		stub_wait_end(slot, &wait);
	}
	if (!got) {
		slot->limit = cpu_ticks() + control->wait_limit;
		return false;
	}
	slot->limit = 0;
	/* A signal handler may have got one meanwhile; then there is one too many. */
	(void)__atomic_compare_exchange_n(&slot->ring, &none, ring + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	return true;
}
