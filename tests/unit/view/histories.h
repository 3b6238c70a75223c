/* SPDX-License-Identifier: MIT */
/* histories.h: what programs that leak, and programs that only seem to, allocate and free, made at random. */
#ifndef TEST_VIEW_HISTORIES_H
#define TEST_VIEW_HISTORIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTORY_UNKNOWN UINT32_MAX

enum { HISTORY_SUBJECT, HISTORY_OTHER, HISTORY_STACKS };

/* A block comes to be, or goes. */
struct history_step {
	double at; /* seconds into the window */
	uint32_t order, block;
	uint32_t bytes;        /* HISTORY_UNKNOWN: of a block from before the window, not known */
	uint8_t stack, thread; /* 0 or 1 */
	bool birth;
};

struct history {
	const char *name;
	void (*make)(void);
	unsigned too_short; /* of a hundred windows of 10 and 30 s, to tell so, at most */
};

/* The subject's stack leaks, or does not. */
extern const struct history history_leaks[], history_kept[];
extern const size_t history_leak_count, history_kept_count;

/* How many steps it has in a window of so many seconds, in order of time; the same for the same seed. *steps are good until
 * the next one, or history_end(). */
size_t history_make(const struct history *history, double seconds, uint64_t seed, const struct history_step **steps);
void history_end(void);

#endif
