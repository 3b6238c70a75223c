/* SPDX-License-Identifier: MIT */
/*
 * clock.h: from the time stamp counter to nanoseconds since the window's start.
 *
 * Time is reckoned from the newest pair (tick, ns) by a rate. A new pair never makes time jump: it stands where the old
 * reckoning was at that tick, and the rate is such that what was wrong by then is made good until the next pair.
 */
#ifndef MW_ENGINE_JUMP_CLOCK_H
#define MW_ENGINE_JUMP_CLOCK_H

#include <memwatch/error.h>

#include <stdbool.h>
#include <stdint.h>

struct jump_clock {
	uint64_t start_tick, start_ns; /* the window's start; ns of CLOCK_MONOTONIC */
	uint64_t known_tick,
		known_ns; /* the newest pair, ns since the window's start; what is later is reckoned from it */
	uint64_t rate;    /* ns a tick, 32 bits of fraction */
	uint64_t before_tick, before_ns, before_rate; /* the pair before: what lies between is reckoned from it */
	uint64_t measured_tick, measured_ns;          /* what the clocks said when the newest pair was taken */
};

/* Can the time stamp counter be relied on, constant and synchronised, as /proc/cpuinfo and the kernel's list of clock
 * sources say? False with the reason (static text). */
bool jump_clock_judge(const char *cpuinfo, const char *sources, const char **why);
uint64_t jump_clock_tick(void);
/* Measure the rate; takes about two milliseconds. The window begins now, too. */
void jump_clock_init(struct jump_clock *clock);
/* The window begins now. */
void jump_clock_start(struct jump_clock *clock);
/* Take another pair: to be called a few times a second, so that drift stays small. Times already given stay in order,
 * those from before the last two pairs but for a few nanoseconds. */
void jump_clock_adjust(struct jump_clock *clock);
/* Since the window's start; 0 for what was before. */
uint64_t jump_clock_ns(const struct jump_clock *clock, uint64_t tick);
/* How many ticks last that long. */
static inline uint64_t jump_clock_ticks(const struct jump_clock *clock, uint64_t ns)
{
	unsigned __int128 ticks = ((unsigned __int128)ns << 32) / clock->rate;

	return ticks > UINT64_MAX ? UINT64_MAX : (uint64_t)ticks;
}

/* As jump_clock_adjust, with the clocks' readings as given; ns of CLOCK_MONOTONIC. */
void jump_clock_take(struct jump_clock *clock, uint64_t tick, uint64_t ns);

#endif
