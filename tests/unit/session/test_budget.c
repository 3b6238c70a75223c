// SPDX-License-Identifier: MIT
/* test_budget.c: the interval that keeps to a budget, with processes that are made up: what they allocate, and what it
 * costs to record that. */
#include "session/budget.h"
#include "unit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define LOOK      (MW_BUDGET_LOOK_NS / 1e9) /* s */
#define INTERVAL  (UINT64_C(512) << 10)
#define RECORD_NS 900.0 /* of the process's time, a recorded block with its free */
#define OWN_NS    700.0 /* … of memwatch's */

/* A process, and what is seen of it. */
struct load {
	double blocks; /* a second of its CPU time */
	double size;   /* of each */
	double cpus;   /* that it uses */
	double noise;  /* what it allocates from look to look is more or less by up to this */
	double own;    /* CPU time that memwatch uses in a second for other things, s */
};

struct rig {
	struct mw_budget budget;
	struct mw_budget_look look;
	double cost; /* of the last look, a share of the process's CPU time */
};

static void begin(struct rig *rig, double share, uint64_t interval)
{
	*rig = (struct rig){.budget = {.share = share, .interval = interval}, .look = {.time_ns = 12345}};
	srand48(4711);
	assert_int_equal(mw_budget_next(&rig->budget, &rig->look), interval);
}

/* Lets 100 ms pass. */
static void pass(struct rig *rig, const struct load *load)
{
	double p = 1 - exp(-load->size / (double)rig->budget.interval);
	double blocks = load->blocks * load->cpus * LOOK * (1 + load->noise * (2 * drand48() - 1));
	double recorded = blocks * p;

	/* So many more or less, by chance. */
	recorded += sqrt(recorded) * (drand48() + drand48() + drand48() + drand48() - 2) * 1.7;
	recorded = recorded < 0 ? 0 : floor(recorded);
	rig->look.time_ns += MW_BUDGET_LOOK_NS;
	rig->look.process_ns += (uint64_t)(load->cpus * LOOK * 1e9);
	rig->look.recorded += (uint64_t)recorded;
	rig->look.spent_ns += (uint64_t)(recorded * RECORD_NS);
	rig->look.own_ns += (uint64_t)(recorded * OWN_NS + load->own * LOOK * 1e9);
	if (load->cpus > 0)
		rig->cost = recorded * (RECORD_NS + OWN_NS) / (load->cpus * LOOK * 1e9);
	(void)mw_budget_next(&rig->budget, &rig->look);
}

/* The mean cost of so many looks, and the least and the greatest interval. */
static double watch(struct rig *rig, const struct load *load, unsigned looks, uint64_t *least, uint64_t *greatest)
{
	double sum = 0;

	*least = UINT64_MAX;
	*greatest = 0;
	for (unsigned i = 0; i < looks; i++) {
		pass(rig, load);
		sum += rig->cost;
		*least = rig->budget.interval < *least ? rig->budget.interval : *least;
		*greatest = rig->budget.interval > *greatest ? rig->budget.interval : *greatest;
	}
	return sum / looks;
}

/* A load that stays is kept to, from whatever interval, and the interval stays as well. */
static void keeps_to_what_stays(void **state)
{
	static const struct load loads[] = {
		{.blocks = 2e6, .size = 64, .cpus = 1},
		{.blocks = 2e6, .size = 64, .cpus = 64},
		{.blocks = 2e6, .size = 64, .cpus = 1, .noise = 0.5},
		{.blocks = 1e7, .size = 16, .cpus = 4, .noise = 0.3, .own = 0.01},
		{.blocks = 3e5, .size = 2000, .cpus = 0.6, .noise = 0.3},
		{.blocks = 1e5, .size = 1 << 20, .cpus = 2, .noise = 0.2},
		{.blocks = 5e5, .size = 400, .cpus = 0.2, .noise = 0.5, .own = 0.02},
	};
	static const double shares[] = {0.002, 0.01, 0.05};
	static const uint64_t intervals[] = {4096, INTERVAL, UINT64_C(1) << 28};
	uint64_t least, greatest;

	(void)state;
	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
		for (size_t j = 0; j < 3; j++)
			for (size_t k = 0; k < 3; k++) {
				struct rig rig;
				/* What memwatch does besides may count in part. */
				double part = loads[i].own > 0 ? 0.15 : 0.4, cost;

				begin(&rig, shares[j], intervals[k]);
				(void)watch(&rig, &loads[i], 150, &least, &greatest);
				cost = watch(&rig, &loads[i], 300, &least, &greatest);
				if (cost > shares[j] || cost < shares[j] * part || greatest > 2 * least + 2)
					fail_msg("load %zu, budget %g, from %lu: cost %g, interval %lu to %lu", i,
						 shares[j], intervals[k], cost, least, greatest);
			}
}

/* It rises by a hundred, and falls again: too much is paid for a moment only, and the window's mean keeps to it. */
static void follows_what_changes(void **state)
{
	const struct load calm = {.blocks = 2e4, .size = 100, .cpus = 1, .noise = 0.3};
	const struct load busy = {.blocks = 2e6, .size = 100, .cpus = 1, .noise = 0.3};
	uint64_t least, greatest, before;
	struct rig rig;
	double cost;
	unsigned dear = 0, blind = 0;

	(void)state;
	begin(&rig, 0.01, INTERVAL);
	(void)watch(&rig, &calm, 100, &least, &greatest);
	before = rig.budget.interval;
	for (cost = 1; cost > 0.01 && dear < 100; dear++) {
		pass(&rig, &busy);
		cost = rig.cost;
	}
	assert_in_range(dear, 1, 6);
	assert_true(watch(&rig, &busy, 100, &least, &greatest) <= 0.01);
	assert_true(greatest <= 4 * least);
	assert_true(least > 20 * before);
	while (rig.budget.interval > 2 * before && blind < 1000) {
		pass(&rig, &calm);
		blind++;
	}
	assert_in_range(blind, 5, 40);
}

/* A ramp, and a load that is up every other second. */
static void follows_ramps(void **state)
{
	struct rig rig;
	double sum = 0;
	unsigned reversals = 0;
	uint64_t last;
	int way = 0;

	(void)state;
	begin(&rig, 0.02, INTERVAL);
	last = rig.budget.interval;
	for (unsigned i = 0; i < 600; i++) {
		const struct load load = {
			.blocks = 1e4 * exp(i * log(1000) / 600), .size = 64, .cpus = 1, .noise = 0.1};

		pass(&rig, &load);
		sum += rig.cost;
		if (i > 100 && rig.budget.interval != last) {
			int now = rig.budget.interval > last ? 1 : -1;

			reversals += way && now != way;
			way = now;
		}
		last = rig.budget.interval;
	}
	assert_true(sum / 600 <= 0.02);
	assert_int_equal(reversals, 0);
	begin(&rig, 0.01, INTERVAL);
	sum = 0;
	for (unsigned i = 0; i < 1000; i++) {
		const struct load load = {.blocks = i / 10 % 2 ? 1e6 : 1e4, .size = 64, .cpus = 1, .noise = 0.1};

		pass(&rig, &load);
		sum += i >= 100 ? rig.cost : 0;
	}
	assert_true(sum / 900 <= 0.01);
}

/* One that sleeps tells nothing of what it will cost; what memwatch does besides is not its. */
static void waits_with_idle(void **state)
{
	const struct load idle = {.cpus = 0, .own = 0.005};
	const struct load hardly = {.blocks = 1e4, .size = 64, .cpus = 0.02, .own = 0.005};
	uint64_t least, greatest;
	struct rig rig;

	(void)state;
	begin(&rig, 0.01, INTERVAL);
	(void)watch(&rig, &idle, 1000, &least, &greatest);
	assert_int_equal(least, INTERVAL);
	assert_int_equal(greatest, INTERVAL);
	/* It may well have more. */
	(void)watch(&rig, &hardly, 1000, &least, &greatest);
	assert_true(rig.budget.interval < INTERVAL / 100);
}

/* However little it costs, or however much whatever is done: there are bounds. */
static void has_bounds(void **state)
{
	const struct load nothing = {.blocks = 10, .size = 16, .cpus = 1};
	const struct load dear = {.blocks = 1e7, .size = 1 << 30, .cpus = 1};
	uint64_t least, greatest;
	struct rig rig;

	(void)state;
	begin(&rig, 0.1, INTERVAL);
	(void)watch(&rig, &nothing, 300, &least, &greatest);
	assert_in_range(rig.budget.interval, 64, 91);
	(void)watch(&rig, &dear, 300, &least, &greatest);
	assert_in_range(rig.budget.interval, 700 << 20, 1 << 30);
	/* What was asked for may lie outside. */
	begin(&rig, 0.1, 8);
	(void)watch(&rig, &nothing, 300, &least, &greatest);
	assert_int_equal(rig.budget.interval, 8);
}

/* There are few intervals, and the same ones come again. */
static void takes_few(void **state)
{
	uint64_t seen[64];
	size_t count = 0;
	struct rig rig;

	(void)state;
	begin(&rig, 0.01, 1000);
	for (unsigned i = 0; i < 2000; i++) {
		const struct load load = {.blocks = exp(drand48() * 14), .size = 200, .cpus = 1};
		size_t j = 0;

		pass(&rig, &load);
		while (j < count && seen[j] != rig.budget.interval)
			j++;
		if (j == count && count < 64)
			seen[count++] = rig.budget.interval;
	}
	assert_in_range(count, 2, 48);
}

UNIT_GROUP(budget)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_to_what_stays), cmocka_unit_test(follows_what_changes),
		cmocka_unit_test(follows_ramps),       cmocka_unit_test(waits_with_idle),
		cmocka_unit_test(has_bounds),          cmocka_unit_test(takes_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
