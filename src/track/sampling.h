/* SPDX-License-Identifier: MIT */
/* sampling.h: blocks that stand for others, as only some are recorded (event.h). */
#ifndef MW_TRACK_SAMPLING_H
#define MW_TRACK_SAMPLING_H

#include <memwatch/event.h>

/* The sampling intervals that are known. A zeroed structure knows only number 0, of which nothing is kept. */
struct mw_intervals {
	uint64_t *bytes; /* of number 1 and up */
	size_t capacity;
	uint32_t count;
};

void mw_intervals_deinit(struct mw_intervals *intervals);
/* The number of that interval, a new one where it is not known. Errors: MEMORY, UNSUPPORTED (too many). */
struct mw_error *mw_intervals_number(struct mw_intervals *intervals, uint64_t bytes, uint16_t *number) MW_MUST_CHECK;

#endif
