// SPDX-License-Identifier: MIT
/* budget.c: see budget.h. */
#include "session/budget.h"

#include <math.h>

#define LEAST      64.0 /* bytes: nearly every block is recorded */
#define MOST       (1024.0 * 1024 * 1024)
#define STEP       1.4142135623730951 /* intervals are the first one times a power of it: a recording has few of them */
#define MOST_DOWN  2.0                /* a look */
#define MOST_UP    16.0               /* what costs too much ends soon */
#define AIM        (1 / STEP)         /* of the budget: with a step more or less it is half of it, or all */
#define WEIGHT     0.2                /* of the newest look in the average … */
#define BUSY       0.25               /* … where the process used so much of a CPU; less where it used less */
#define LEAST_BUSY 0.05               /* a process that uses less may be charged as if it did not */
#define OWN_MOST   4000.0             /* nanoseconds of memwatch's own for a recorded block: more has other reasons */
#define EXACT      1.000001           /* but for rounding */
#define TOO_MANY   2                  /* looks that cost twice the budget, after which the average counts no more */

/* Nanoseconds of cost in one of CPU time. */
static double cost_of(const struct mw_budget_look *last, const struct mw_budget_look *look)
{
	double process = (double)(look->process_ns - last->process_ns), wall = (double)(look->time_ns - last->time_ns);
	double own = (double)(look->own_ns - last->own_ns);
	double most = (double)(look->recorded - last->recorded) * OWN_MOST;

	if (process < wall * LEAST_BUSY)
		process = wall * LEAST_BUSY;
	return ((double)(look->spent_ns - last->spent_ns) + (own < most ? own : most)) / process;
}

static double clamp(double value, double least, double most)
{
	return value < least ? least : value > most ? most : value;
}

/* Averaged by the CPU time that the process used, but what is far too dear counts as it is. */
static void weigh(struct mw_budget *budget, double cost, double busy)
{
	double load = cost * (double)budget->interval;

	budget->over = cost > 2 * budget->share ? budget->over + 1 : 0;
	if (budget->over >= TOO_MANY && load > budget->load)
		budget->load = load;
	else
		budget->load += (load - budget->load) * WEIGHT * clamp(busy / BUSY, 0, 1);
}

/* The first interval, so many steps up or down. */
static double at_step(const struct mw_budget *budget, int step)
{
	return (double)budget->first * pow(STEP, step);
}

uint64_t mw_budget_next(struct mw_budget *budget, const struct mw_budget_look *look)
{
	struct mw_budget_look last = budget->last;
	double now = (double)budget->interval, wanted;

	budget->last = *look;
	if (!budget->first) {
		budget->first = budget->interval;
		/* For all that is known it is the one that fits. */
		budget->load = now * budget->share * AIM;
	} else if (look->time_ns > last.time_ns) {
		weigh(budget, cost_of(&last, look),
		      (double)(look->process_ns - last.process_ns) / (double)(look->time_ns - last.time_ns));
		wanted = clamp(budget->load / (budget->share * AIM), now / MOST_DOWN, now * MOST_UP);
		/* One that is near enough stays. */
		while (at_step(budget, budget->step + 1) <= wanted * EXACT && at_step(budget, budget->step + 1) <= MOST)
			budget->step++;
		while (at_step(budget, budget->step - 1) >= wanted / EXACT &&
		       at_step(budget, budget->step - 1) >= LEAST)
			budget->step--;
		budget->interval = (uint64_t)(at_step(budget, budget->step) + 0.5);
	}
	return budget->interval;
}
