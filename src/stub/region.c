// SPDX-License-Identifier: MIT
/* region.c: which memory of the stack may be read (recorder.h). */
#include "stub/recorder.h"

#define NEAR      (UINT64_C(64) << 10)
#define ATTEMPTS  64   /* at asking, as handlers come between */
#define ASK_AGAIN 256u /* entries, where memwatch knew of no stack there */

static struct mw_ring_region load(const struct mw_ring_slot *slot, unsigned i)
{
	struct mw_ring_region region = {.high = __atomic_load_n(&slot->regions[i].high, __ATOMIC_ACQUIRE)};

	region.low = __atomic_load_n(&slot->regions[i].low, __ATOMIC_RELAXED);
	/* Whoever changes a region makes its end 0 first. */
	if (__atomic_load_n(&slot->regions[i].high, __ATOMIC_ACQUIRE) != region.high)
		region.high = 0;
	return region;
}

uint64_t stub_region_known(const struct mw_ring_slot *slot, uint64_t sp)
{
	for (unsigned i = 0; i < MW_RING_REGIONS; i++) {
		struct mw_ring_region region = load(slot, i);

		if (region.low <= sp && sp < region.high)
			return region.high & ~UINT64_C(7);
	}
	return 0;
}

STUB_RARE bool stub_region_own(const struct mw_ring_slot *slot, uint64_t sp)
{
	for (unsigned i = 0; i < MW_RING_REGIONS; i++) {
		struct mw_ring_region region = load(slot, i);

		if (region.low <= sp && sp < region.high)
			return region.low & MW_RING_REGION_OWN;
	}
	return false;
}

bool stub_region_same(const struct mw_ring_slot *slot, uint64_t a, uint64_t b)
{
	for (unsigned i = 0; i < MW_RING_REGIONS; i++) {
		struct mw_ring_region region = load(slot, i);

		if (region.low <= a && a < region.high && region.low <= b && b < region.high)
			return true;
	}
	return false;
}

static STUB_RARE uint64_t ask(struct stub_visit *visit, uint64_t sp)
{
	struct mw_ring_slot *slot = visit->slot;
	uint64_t distance = sp - slot->ask_address + NEAR / 2, high = 0;
	struct stub_wait wait;
	bool answered = true;

	/* It was asked here before, and memwatch did not know: not every time anew. */
	if (slot->ask == MW_RING_ASK_REFUSED && distance < NEAR && slot->entries % ASK_AGAIN)
		return 0;
	stub_wait_begin(&wait);
	/* Again: the handler of a signal may have asked for something else meanwhile. */
	for (unsigned i = 0; i < ATTEMPTS && answered && !high; i++) {
		uint32_t number;

		slot->ask_address = sp;
		slot->ask = MW_RING_ASK_REGION;
		number = __atomic_add_fetch(&slot->asked, 1, __ATOMIC_RELEASE);
		__atomic_fetch_add(&visit->control->asks, 1, __ATOMIC_RELEASE);
		while (answered && (int32_t)(__atomic_load_n(&slot->answered, __ATOMIC_ACQUIRE) - number) < 0)
			answered = stub_wait_on(visit->control, &wait);
		high = stub_region_known(slot, sp);
		if (answered && slot->ask_address == sp)
			break;
	}
	stub_wait_end(slot, &wait);
	slot->ask = high ? MW_RING_ASK_NOTHING : MW_RING_ASK_REFUSED;
	return high;
}

uint64_t stub_region(struct stub_visit *visit, uint64_t sp)
{
	uint64_t high = stub_region_known(visit->slot, sp);

	return likely(high) ? high : ask(visit, sp);
}

void stub_region_forget(struct mw_ring_slot *slot, uint64_t start, uint64_t end)
{
	for (unsigned i = 0; i < MW_RING_REGIONS; i++) {
		struct mw_ring_region region = load(slot, i);

		if (region.low < end && start < region.high)
			__atomic_store_n(&slot->regions[i].high, 0, __ATOMIC_RELEASE);
	}
}

void stub_region_inherit(struct mw_ring_slot *slot, uint64_t sp, uint64_t tp, uint64_t tp_end)
{
	/* A stack with the control block at its end holds for as far as that; of others nothing is known any more. What
	 * memwatch answers of a thread's own stack ends where the control block begins. */
	for (unsigned i = 0; i < MW_RING_REGIONS; i++) {
		struct mw_ring_region region = load(slot, i);
		bool both = region.low <= sp && sp < tp && tp <= region.high;

		if (both && region.high <= tp_end)
			continue;
		__atomic_store_n(&slot->regions[i].high, both ? tp_end : 0, __ATOMIC_RELEASE);
	}
}
