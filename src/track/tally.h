/* SPDX-License-Identifier: MIT */
/*
 * tally.h: running totals of a kind or a stack, and how many bytes were impacting at moments that lie a step apart.
 *
 * Moments are those of one clock, which the events' times move. A series is brought up to date just before its
 * bytes change: at all moments since the last change they were what they are now. So a moment costs nothing for
 * what does not change, however many series there are. Only values that differ from the one before are kept.
 */
#ifndef MW_TRACK_TALLY_H
#define MW_TRACK_TALLY_H

#include "track/track.h"

#include <stdlib.h>

struct mw_series_clock {
	uint64_t begin_ns, step_ns;
	uint64_t next_ns; /* the next moment, the first at begin_ns + step_ns */
	uint16_t now;     /* how many moments have passed (low byte), and how often the step has doubled (high byte) */
};

/* A zeroed structure is an empty series. Up to which of the clock's `now` values are known its user keeps: 0 at first. */
struct mw_series {
	uint64_t changes; /* bit i: value i differs from the one before it (the first: from 0) */
	float *values;    /* those that differ */
};

void mw_series_clock_start(struct mw_series_clock *clock, uint64_t begin_ns);
void mw_series_clock_advance(struct mw_series_clock *clock, uint64_t time_ns);
/* Is a moment over, now that something happens at time_ns? Only then may, and must, the clock advance. */
static inline bool mw_series_clock_lags(const struct mw_series_clock *clock, uint64_t time_ns)
{
	return __builtin_expect(time_ns >= clock->next_ns, 0);
}

static inline void mw_series_deinit(struct mw_series *series)
{
	free(series->values);
	*series = (struct mw_series){0};
}

/* `bytes`, the same since `known`, are about to change: known are the values up to now from here on, or, where memory is
 * wanting, lost. */
struct mw_error *mw_series_catch_up(struct mw_series *series, uint16_t known, const struct mw_series_clock *clock,
				    uint64_t bytes) MW_MUST_CHECK;
/* The values at the moments up to end_ns, where `bytes` have not changed since `known`. */
void mw_series_read(const struct mw_series *series, uint16_t known, const struct mw_series_clock *clock, uint64_t bytes,
		    uint64_t end_ns, struct mw_track_series *out);
/* Bytes behind the structure. */
uint64_t mw_series_memory(const struct mw_series *series);

/* Size is impacting + transient, so it is not kept. What is looked at with every event comes first: 64 bytes. */
struct mw_tally {
	struct mw_amount impacting, transient;
	struct mw_track_peak peak;
	uint16_t known;          /* up to which moment its series are */
	uint8_t cut;             /* of a stack */
	struct mw_series series; /* of a stack: of impacting.bytes */
	struct mw_series births; /* … and of impacting.count + transient.count */
	struct mw_amount aofi, aofo;
	uint64_t aofi_unknown;
	struct mw_amount settled; /* of impacting, freed after the window */
};

struct mw_error *mw_tally_catch_up(struct mw_tally *tally, const struct mw_series_clock *clock) MW_MUST_CHECK;
/* Let the processor fetch what mw_tally_catch_up() writes to. */
static inline __attribute__((always_inline)) void mw_tally_prefetch(const struct mw_tally *tally)
{
	__builtin_prefetch(tally->series.values + __builtin_popcountll(tally->series.changes), 1);
	__builtin_prefetch(tally->births.values + __builtin_popcountll(tally->births.changes), 1);
}

/* What a stack has is about to change. Errors: MEMORY. */
static inline MW_MUST_CHECK struct mw_error *mw_tally_follow(struct mw_tally *tally,
							     const struct mw_series_clock *clock)
{
	return __builtin_expect(tally->known == clock->now, 1) ? NULL : mw_tally_catch_up(tally, clock);
}

/* Blocks came to be: `count` of them, with `bytes` together. True: it is the peak. */
static inline bool mw_tally_add_amount(struct mw_tally *tally, uint64_t count, uint64_t bytes, uint64_t time_ns)
{
	tally->impacting.count += count;
	tally->impacting.bytes += bytes;
	if (tally->impacting.bytes <= tally->peak.amount.bytes)
		return false;
	tally->peak.amount = tally->impacting;
	tally->peak.at_ns = time_ns;
	return true;
}

/* A block of `bytes` came to be. */
static inline void mw_tally_add(struct mw_tally *tally, uint64_t bytes, uint64_t time_ns)
{
	(void)mw_tally_add_amount(tally, 1, bytes, time_ns);
}

/* `bytes` of what was live went, to what is not; `count` is 1 where they were the last of their block. */
static inline void mw_amount_release(struct mw_amount *live, struct mw_amount *gone, uint64_t count, uint64_t bytes)
{
	live->count -= count;
	live->bytes -= bytes;
	gone->count += count;
	gone->bytes += bytes;
}

/* Something from before the window went; bytes may be MW_SIZE_UNKNOWN. */
static inline void mw_tally_aofi(struct mw_tally *tally, uint64_t bytes)
{
	tally->aofi.count++;
	if (bytes == MW_SIZE_UNKNOWN)
		tally->aofi_unknown++;
	else
		tally->aofi.bytes += bytes;
}

static inline struct mw_amount mw_amount_sum(const struct mw_amount *a, const struct mw_amount *b)
{
	return (struct mw_amount){a->count + b->count, a->bytes + b->bytes};
}

#endif
