// SPDX-License-Identifier: MIT
/* wait.c: waiting for memwatch, never for long (recorder.h). */
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
