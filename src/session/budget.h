/* SPDX-License-Identifier: MIT */
/*
 * budget.h: the interval that a process's heap blocks are sampled with, so that watching costs no larger share of its CPU
 * time than it may. Pure: figures in, an interval out.
 *
 * What a sampled block costs is about the same for all, so the cost goes with 1/interval: the interval that fits is the
 * present one times cost/budget. It is averaged over some looks, as the load of a moment says little. Where blocks are
 * larger than the interval the cost goes by less than 1/interval, and the interval comes nearer more slowly.
 */
#ifndef MW_SESSION_BUDGET_H
#define MW_SESSION_BUDGET_H

#include <stdint.h>

#define MW_BUDGET_LOOK_NS UINT64_C(100000000) /* one look at the figures after the other */

/* A process's figures since its window began. */
struct mw_budget_look {
	uint64_t time_ns;
	uint64_t process_ns; /* CPU time of the process */
	uint64_t spent_ns;   /* … in the recorder */
	uint64_t own_ns;     /* CPU time of memwatch, for this process */
	uint64_t recorded;   /* blocks */
};

/* Zero-initialise, but for the first two. */
struct mw_budget {
	double share;      /* of the process's CPU time that recording may cost */
	uint64_t interval; /* the present one, bytes */
	uint64_t first;    /* … and the one that it began with; 0: it has not begun */
	int step;          /* how many steps there are between them */
	struct mw_budget_look last;
	double load;   /* nanoseconds of cost in one of CPU time, times the interval, averaged */
	unsigned over; /* looks in a row whose cost was more than twice what it may be */
};

/* The interval from now on; the same as the present one where that does. */
uint64_t mw_budget_next(struct mw_budget *budget, const struct mw_budget_look *look);

#endif
