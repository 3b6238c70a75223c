/* SPDX-License-Identifier: MIT */
/*
 * sampling.h: blocks that stand for others, as not every block is recorded (event.h).
 *
 * A block of s bytes that is recorded with the probability p = 1 - exp(-max(s, 1) / interval) stands for 1/p blocks (Horvitz
 * and Thompson): sums of what is recorded, so weighted, are right on average. A weight is a whole number, the one below 1/p
 * or the one above, which of them by a hash of the block's address and time with the chance that makes it 1/p on average: so
 * a recording gives the figures that the window gave. The variance that a block adds, f being the fraction of 1/p, is
 * (1 - p) / p^2 + f (1 - f) in blocks, times s^2 in bytes; sums of these estimate the variance of the sum, without bias too.
 *
 * There is nothing of this before a sampling interval is known.
 */
#ifndef MW_TRACK_SAMPLING_H
#define MW_TRACK_SAMPLING_H

#include "base/map.h"
#include "track/block_table.h"

#include <memwatch/event.h>

struct mw_track;

/* What a recorded block stands for: itself, so many others, and how far off that may be. */
struct mw_weight {
	uint64_t others;
	double variance; /* in blocks */
};

/* `interval` 0: for itself. Errors: none. */
struct mw_weight mw_weigh(uint64_t interval, uint64_t size, mw_addr addr, uint64_t time_ns);

static inline struct mw_amount mw_weight_amount(struct mw_weight weight, uint64_t bytes)
{
	return (struct mw_amount){1 + weight.others, (1 + weight.others) * bytes};
}

static inline struct mw_spread mw_weight_spread(struct mw_weight weight, uint64_t bytes)
{
	return (struct mw_spread){weight.variance, weight.variance * (double)bytes * (double)bytes, 1};
}

/*
 * Between what and what the truth is in 95 of 100 cases, where `estimate` has that variance. A normal distribution says too
 * little where few blocks were recorded: sums of them are skewed, and none recorded would leave no doubt at all. So the
 * estimate is taken as a multiple of a Poisson count of the same relative variance, estimate^2 / variance, whose mid-P
 * limits these are (Fay and Feuer 1997, Fay and Kim 2017). `unseen`: what a recorded block would have stood for, at most,
 * where none is: the interval, in bytes. Where the interval changed it may be that none of those was recorded that stand for
 * most: then it is the largest, and not 0 where blocks were recorded.
 */
struct mw_limits {
	double low, high;
};
struct mw_limits mw_sampling_limits(double estimate, double variance, double unseen);

struct mw_sampled_interval {
	uint64_t bytes;
	uint64_t first_ns; /* of the first block that it held for; UINT64_MAX: of none yet */
	uint64_t blocks;   /* that were recorded with it, inside the interval that figures are of */
};

/* What a tracker knows beside its sums once an interval is known. */
struct mw_sampling {
	struct mw_sampled_interval *intervals; /* of number 1 and up */
	size_t interval_capacity;
	uint32_t interval_count;
	uint64_t exact;   /* heap blocks that were recorded as all others were: with interval 0 */
	struct mw_map of; /* numbers of the intervals of live blocks, by address; none: 0 */
	struct mw_spreads total;
	struct mw_spreads *stacks, *threads; /* by number; those beyond have none */
	size_t stack_count, thread_count;
};

void mw_sampling_destroy(struct mw_sampling *sampling);
/* The number of that interval, a new one where it is not known. Errors: MEMORY, UNSUPPORTED (too many). */
struct mw_error *mw_sampling_number(struct mw_track *track, uint64_t bytes, uint16_t *number) MW_MUST_CHECK;
/* An event of the heap, whose thread, stack and interval have been checked, once an interval is known. */
struct mw_error *mw_sampling_event(struct mw_track *track, const struct mw_event *event) MW_MUST_CHECK;
/* The figures of an interval of the window begin. */
void mw_sampling_restart(struct mw_track *track);

/* The number of the interval of the block in the table that is at `addr`, and what a block stands for by that number. */
uint16_t mw_sampling_interval_at(const struct mw_track *track, mw_addr addr);
struct mw_weight mw_sampling_weight(const struct mw_track *track, const struct mw_block *block, uint16_t interval);
/* That of a block that goes into the table. Errors: MEMORY. */
struct mw_error *mw_sampling_set_interval(struct mw_track *track, mw_addr addr, uint16_t interval) MW_MUST_CHECK;
/* The block went, after the window. */
void mw_sampling_settled(struct mw_track *track, const struct mw_block *block, struct mw_weight weight);

/* Spreads of a stack, a thread, or all; zeros where there are none. */
struct mw_spreads mw_sampling_of_stack(const struct mw_track *track, uint32_t stack);
struct mw_spreads mw_sampling_of_thread(const struct mw_track *track, uint32_t thread);
uint64_t mw_sampling_memory(const struct mw_track *track);

#endif
