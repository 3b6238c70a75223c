/* SPDX-License-Identifier: MIT */
/* clock.h: the time, as memwatch counts it. */
#ifndef MW_BASE_CLOCK_H
#define MW_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds of a clock; 0 where there is none (a process that has ended). */
static inline uint64_t mw_clock_ns_of(clockid_t clock)
{
	struct timespec now = {0};

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Nanoseconds of CLOCK_MONOTONIC. */
static inline uint64_t mw_clock_ns(void)
{
	return mw_clock_ns_of(CLOCK_MONOTONIC);
}

/* Nanoseconds of CLOCK_REALTIME since the epoch. */
static inline int64_t mw_clock_realtime_ns(void)
{
	return (int64_t)mw_clock_ns_of(CLOCK_REALTIME);
}

#endif
