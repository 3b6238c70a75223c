// SPDX-License-Identifier: MIT
/* tick_x86_64.c: the time stamp counter (drain.h). */
#include "engine/jump/drain.h"

/* What comes before is done before the counter is read, and what comes after is not begun. */
uint64_t jump_clock_tick(void)
{
	uint64_t tick;

	__builtin_ia32_lfence();
	tick = __builtin_ia32_rdtsc();
	__builtin_ia32_lfence();
	return tick;
}
