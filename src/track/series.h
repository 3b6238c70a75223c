/* SPDX-License-Identifier: MIT */
/*
 * series.h: how many bytes were impacting at moments that lie a step apart.
 *
 * Moments are those of one clock, which the events' times move. A series is brought up to date just before its
 * bytes change: at all moments since the last change they were what they are now. So a moment costs nothing for
 * what does not change, however many series there are. Only values that differ from the one before are kept.
 */
#ifndef MW_TRACK_SERIES_H
#define MW_TRACK_SERIES_H

#include "track/track.h"

/* How many moments have passed, and how often the step has doubled; they are compared as one. */
struct mw_series_moment {
	uint8_t passed, doubled;
};

struct mw_series_clock {
	uint64_t begin_ns, step_ns;
	uint64_t next_ns; /* the next moment, the first at begin_ns + step_ns */
	struct mw_series_moment now;
};

/* A zeroed structure is an empty series. */
struct mw_series {
	struct mw_series_moment known; /* values up to here are known */
	uint64_t changes;              /* bit i: value i differs from the one before it (the first: from 0) */
	float *values;                 /* those that differ */
};

void mw_series_clock_start(struct mw_series_clock *clock, uint64_t begin_ns);
void mw_series_clock_advance(struct mw_series_clock *clock, uint64_t time_ns);
/* Something happens at time_ns. Time that runs backwards leaves the clock as it is. */
static inline void mw_series_clock_move(struct mw_series_clock *clock, uint64_t time_ns)
{
	if (__builtin_expect(time_ns >= clock->next_ns, 0))
		mw_series_clock_advance(clock, time_ns);
}

void mw_series_deinit(struct mw_series *series);
struct mw_error *mw_series_catch_up(struct mw_series *series, const struct mw_series_clock *clock,
				    uint64_t bytes) MW_MUST_CHECK;
/* `bytes`, the same since the last call, are about to change. Without memory the values before now are lost. */
static inline struct mw_error *mw_series_follow(struct mw_series *series, const struct mw_series_clock *clock,
						uint64_t bytes)
{
	if (__builtin_expect(series->known.passed == clock->now.passed && series->known.doubled == clock->now.doubled,
			     1))
		return NULL;
	return mw_series_catch_up(series, clock, bytes);
}

/* The values at the moments up to end_ns, where `bytes` have not changed since the last mw_series_follow(). */
void mw_series_read(const struct mw_series *series, const struct mw_series_clock *clock, uint64_t bytes,
		    uint64_t end_ns, struct mw_track_series *out);
/* Bytes behind the structure. */
uint64_t mw_series_memory(const struct mw_series *series);

#endif
