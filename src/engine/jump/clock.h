/* SPDX-License-Identifier: MIT */
/* clock.h: from the time stamp counter to nanoseconds since the window's start. */
#ifndef MW_ENGINE_JUMP_CLOCK_H
#define MW_ENGINE_JUMP_CLOCK_H

#include <memwatch/error.h>

#include <stdbool.h>
#include <stdint.h>

struct jump_clock {
	uint64_t start_tick, start_ns; /* the window's start; ns of CLOCK_MONOTONIC */
	uint64_t known_tick, known_ns; /* the newest pair, ns since the window's start; what is later is reckoned from it */
	uint64_t rate;                 /* ns a tick, 32 bits of fraction */
};

/* Can the time stamp counter be relied on here: constant, synchronised? False with the reason (static text). */
bool jump_clock_usable(const char **why);
uint64_t jump_clock_tick(void);
/* Measure the rate; takes about a millisecond. */
void jump_clock_init(struct jump_clock *clock);
/* The window begins now. */
void jump_clock_start(struct jump_clock *clock);
/* Take another pair: to be called a few times a second, so that drift stays small. Times already given stay in order. */
void jump_clock_adjust(struct jump_clock *clock);
/* Since the window's start; 0 for what was before. */
uint64_t jump_clock_ns(const struct jump_clock *clock, uint64_t tick);
uint64_t jump_clock_ticks(const struct jump_clock *clock, uint64_t ns);

#endif
