// SPDX-License-Identifier: MIT
/* test_sampling.c: what is estimated of sampled blocks is right on average, and as far off as it says. */
#include "rig.h"
#include "track/sampling.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KIB      UINT64_C(1024)
#define MIB      (UINT64_C(1) << 20)
#define INTERVAL (512 * KIB)

static uint64_t seed;

static double any(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (double)(seed >> 11) * 0x1p-53;
}

static double chance_of(uint64_t size)
{
	return -expm1(-(double)(size ? size : 1) / (double)INTERVAL);
}

static int setup(void **state)
{
	seed = 88172645463325252U;
	return rig_setup(state);
}

static uint16_t number_of(const struct rig *rig, uint64_t bytes)
{
	uint16_t number = UINT16_MAX;
	struct mw_error *err = rig->sink.interval(rig->sink.context, bytes, &number);

	assert_null(err);
	return number;
}

static const struct mw_track *sampling_begins(struct rig *rig)
{
	assert_int_equal(number_of(rig, INTERVAL), 1);
	return rig->track;
}

static void sample(struct rig *rig, uint64_t time, mw_addr addr, uint64_t size, uint32_t stack)
{
	rig_send(rig,
		 (struct mw_event){time, addr, size, stack, rig->thread[0], MW_EVENT_ALLOC, MW_KIND_HEAP, 1, false});
}

/* --- weights ------------------------------------------------------------------------------------------------------ */

static void test_weights_are_right_on_average(void **state)
{
	static const uint64_t sizes[] = {0,       1,        8,         24,        100,     4096,
					 65536,   262144,   400 * KIB, 512 * KIB, 1 * MIB, 2 * MIB,
					 4 * MIB, 16 * MIB, 64 * MIB,  UINT64_MAX};
	const int count = 100000;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		double p = chance_of(sizes[i]), inverse = 1 / p, part = inverse - floor(inverse), sum = 0, variance = 0;

		for (int j = 0; j < count; j++) {
			struct mw_weight weight =
				mw_weigh(INTERVAL, sizes[i], 0x5500000000 + 16 * (uint64_t)j, 1000 + 7 * (uint64_t)j);

			assert_true(1 + weight.others == (uint64_t)inverse ||
				    1 + weight.others == (uint64_t)inverse + 1);
			sum += 1 + (double)weight.others;
			variance += weight.variance;
		}
		assert_true(fabs(sum / count - inverse) <= 4 * sqrt(part * (1 - part) / count) + inverse * 1e-12);
		assert_true(fabs(variance / count - (1 - p) * inverse * inverse - part * (1 - part)) <=
			    variance * 1e-9);
	}
	assert_int_equal(mw_weigh(0, 8, 16, 1).others, 0);
	assert_true(mw_weigh(0, 8, 16, 1).variance == 0);
	/* Nothing overflows, whatever the interval. */
	assert_true(mw_weigh(UINT64_MAX, 1, 16, 1).others <= UINT64_C(1) << 48);
}

/* --- limits ------------------------------------------------------------------------------------------------------- */

/* The share of Poisson's distribution of mean x that is above n - 1, for n that need not be whole: the incomplete gamma
 * function. */
static double above(double n, double x)
{
	double sum = 1 / n, term = sum;

	if (n <= 0)
		return 1;
	for (int i = 1; i < 10000 && term > sum * 1e-16; i++)
		sum += term *= x / (n + i);
	return sum * exp(-x + n * log(x) - lgamma(n));
}

static double mid_p(double n, double x)
{
	return (above(n, x) + above(n + 1, x)) / 2;
}

static void test_limits_are_those_of_poisson(void **state)
{
	(void)state;
	for (double n = 0.5; n < 150; n *= 1.05) {
		struct mw_limits limits = mw_sampling_limits(n * 100, n * 10000, 0);
		double slack = n == 0.5 ? 3e-4 : n < 1 ? 0.025 : n < 2 ? 0.01 : 0.004;

		assert_true(fabs(mid_p(n, limits.low / 100) - 0.025) < slack);
		assert_true(fabs(mid_p(n, limits.high / 100) - 0.975) < slack);
	}
	/* None: less than three, or it would have been seen with a chance of 95 %. */
	assert_true(mw_sampling_limits(0, 0, 1000).low == 0);
	assert_true(fabs(mw_sampling_limits(0, 0, 1000).high - 1000 * log(20)) < 0.1);
	/* Exactly known. */
	assert_true(mw_sampling_limits(5000, 0, 1000).low == 5000 && mw_sampling_limits(5000, 0, 1000).high == 5000);
	/* Many: those of a normal distribution. */
	assert_true(fabs(mw_sampling_limits(1e9, 1e12, 0).low - (1e9 - 1.96e6)) < 1e4);
	assert_true(fabs(mw_sampling_limits(1e9, 1e12, 0).high - (1e9 + 1.96e6)) < 1e4);
}

/* --- estimates ------------------------------------------------------------------------------------------------------ */

struct outcome {
	double sum[2], square[2],
		variance[2]; /* of estimates of impacting blocks and bytes; of what they say of themselves */
	int within[2], windows;
};

/* `largest`: of intervals that changed, else 0. */
static void note(struct outcome *outcome, const double estimate[2], const double variance[2], const double truth[2],
		 double largest)
{
	for (int i = 0; i < 2; i++) {
		double unseen = estimate[i] > 0 ? largest : fmax(largest, (double)INTERVAL);
		struct mw_limits limits = mw_sampling_limits(estimate[i], variance[i],
							     i ? unseen : unseen / fmax(truth[1] / truth[0], 1));

		outcome->sum[i] += estimate[i];
		outcome->square[i] += (estimate[i] - truth[i]) * (estimate[i] - truth[i]);
		outcome->variance[i] += variance[i];
		outcome->within[i] += limits.low <= truth[i] && truth[i] <= limits.high;
	}
	outcome->windows++;
}

/* Of `count` blocks of `size` bytes, half are freed. A window of that, through a tracker. */
static void window_of(struct rig *rig, uint64_t size, uint64_t count, struct outcome *outcome)
{
	double truth[2] = {(double)(count - count / 2), (double)size * (double)(count - count / 2)};
	double estimate[2], variance[2], skip = log1p(-chance_of(size));
	struct mw_track_totals totals;
	/* Addresses decide which way a weight is rounded. */
	mw_addr base = 0x10000 + ((uint64_t)(any() * 0x1p32) << 16);
	uint64_t at = 0;

	/* All that are sampled, without a look at each that is not. */
	for (;;) {
		double next = skip == -INFINITY ? 0 : log1p(-any()) / skip;

		if (next >= (double)(count - at))
			break;
		at += (uint64_t)next;
		sample(rig, 2 * at, base + 16 * at, size, rig->heap);
		if (at < count / 2)
			rig_free(rig, 2 * at + 1, base + 16 * at);
		at++;
	}
	totals = rig_of_stack(rig, rig->heap).totals;
	assert_int_equal(totals.impacting.bytes, totals.impacting.count * size);
	estimate[0] = (double)totals.impacting.count;
	estimate[1] = (double)totals.impacting.bytes;
	variance[0] = totals.spreads.impacting.count;
	variance[1] = totals.spreads.impacting.bytes;
	note(outcome, estimate, variance, truth, 0);
}

static void test_estimates_have_no_bias(void **state)
{
	static const uint64_t sizes[] = {0,      8,         24,        64,      1000,    4096,    65536,
					 262144, 400 * KIB, 512 * KIB, 1 * MIB, 2 * MIB, 4 * MIB, 64 * MIB};
	const int windows = 3000;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct outcome outcome = {.windows = 0};
		double p = chance_of(sizes[i]), truth[2];
		uint64_t count = 2 * (uint64_t)ceil(30 / p);

		seed = 88172645463325252U + i;
		for (int j = 0; j < windows; j++) {
			struct rig *rig;

			rig_setup((void **)&rig);
			sampling_begins(rig);
			window_of(rig, sizes[i], count, &outcome);
			rig_teardown((void **)&rig);
		}
		truth[0] = (double)count / 2;
		truth[1] = truth[0] * (double)sizes[i];
		for (int j = 0; j < (sizes[i] ? 2 : 1); j++) {
			double mean = outcome.sum[j] / windows, variance = outcome.variance[j] / windows;
			double within = (double)outcome.within[j] / windows;

			/* The mean's own error is the root of the variance by the number of windows. */
			assert_true(fabs(mean - truth[j]) <= 4 * sqrt(variance / windows) + truth[j] * 1e-9);
			/* What is seldom not sampled says little of its variance in so few windows. */
			if (p < 0.99)
				assert_true(fabs(outcome.square[j] / windows / variance - 1) < 0.2);
			if (p < 0.95)
				assert_true(within >= 0.93 && within <= 0.97);
			else
				assert_true(within >= 0.9);
		}
	}
}

/* --- a program whose live bytes by stack are known -------------------------------------------------------------------- */

#define STACKS  24u
#define WINDOWS 200

struct program {
	struct rig *rig;
	uint32_t stacks[STACKS];
	double live[STACKS][2];
	double left; /* bytes until the next sample */
	uint64_t time;
};

/* As engines do it: a countdown of bytes. */
static bool is_sampled(struct program *program, uint64_t size)
{
	program->left -= (double)(size ? size : 1);
	if (program->left >= 0)
		return false;
	program->left = -log1p(-any()) * (double)INTERVAL;
	return true;
}

/* Each stack has sizes of its own, and so many blocks that about 5, 20 or 100 of those that stay are sampled. */
static void run(struct program *program)
{
	static const uint64_t sizes[8][2] = {{2048, 2048},     {512, 8192},     {16384, 16384},   {65536, 4096},
					     {131072, 131072}, {32768, 393216}, {524288, 524288}, {1 * MIB, 65536}};
	static const int wanted[3] = {5, 20, 100};

	memset(program->live, 0, sizeof(program->live));
	program->left = -log1p(-any()) * (double)INTERVAL;
	for (uint32_t i = 0; i < STACKS; i++) {
		const uint64_t *size = sizes[i / 3];
		uint64_t count = (uint64_t)(2 * wanted[i % 3] / (chance_of(size[0]) + chance_of(size[1])));

		/* Half as many again are freed. */
		for (uint64_t j = 0; j < count * 3 / 2; j++) {
			mw_addr addr = 0x100000 + 16 * ++program->time;
			bool stays = j % 3 != 2;

			if (stays) {
				program->live[i][0]++;
				program->live[i][1] += (double)size[j % 2];
			}
			if (!is_sampled(program, size[j % 2]))
				continue;
			sample(program->rig, program->time, addr, size[j % 2], program->stacks[i]);
			if (!stays)
				rig_free(program->rig, program->time, addr);
		}
	}
}

static void test_intervals_cover_the_truth(void **state)
{
	struct outcome all = {.windows = 0}, few = {.windows = 0};

	(void)state;
	seed = 88172645463325252U;
	for (int i = 0; i < WINDOWS; i++) {
		struct program program = {.time = 0};

		rig_setup((void **)&program.rig);
		sampling_begins(program.rig);
		for (uint32_t j = 0; j < STACKS; j++)
			program.stacks[j] = rig_stack(program.rig, MW_KIND_HEAP, 100 + j);
		run(&program);
		for (uint32_t j = 0; j < STACKS; j++) {
			struct mw_track_totals totals = rig_of_stack(program.rig, program.stacks[j]).totals;
			const double estimate[2] = {(double)totals.impacting.count, (double)totals.impacting.bytes};
			const double variance[2] = {totals.spreads.impacting.count, totals.spreads.impacting.bytes};

			note(j % 3 ? &all : &few, estimate, variance, program.live[j], 0);
		}
		rig_teardown((void **)&program.rig);
	}
	for (int i = 0; i < 2; i++) {
		double share = (double)(all.within[i] + few.within[i]) / (all.windows + few.windows);
		double of_few = (double)few.within[i] / few.windows;

		print_message("%s: %.4f of %d pairs, of stacks with about 5 samples %.4f\n", i ? "bytes" : "blocks",
			      share, all.windows + few.windows, of_few);
		/* Of blocks whose sizes differ much few of the small ones are seen, each of which stands for many. */
		if (i) {
			assert_true(share >= 0.93 && share <= 0.97);
			assert_true(of_few >= 0.93 && of_few <= 0.97);
		}
	}
}

/*
 * The interval changes: it is long or short for a while, whatever the program does meanwhile. Of what is allocated while it is
 * long there may be none, and limits are to know that.
 */
static void test_limits_where_the_interval_changes(void **state)
{
	static const uint64_t intervals[] = {64 * KIB, 512 * KIB, 8 * MIB};
	const uint64_t sizes[] = {256, 8192, 1 * MIB};
	struct outcome outcome = {.windows = 0};
	double bias = 0, squares = 0;

	(void)state;
	seed = 88172645463325252U;
	for (int window = 0; window < 10 * WINDOWS; window++) {
		double truth[2] = {0, 0}, estimate[2], variance[2];
		struct mw_track_totals totals;
		struct rig *rig;

		rig_setup((void **)&rig);
		for (uint64_t i = 0; i < 3; i++)
			assert_int_equal(number_of(rig, intervals[i]), i + 1);
		for (uint64_t part = 0, at = 0; part < 6; part++) {
			uint64_t number = (uint64_t)(any() * 3), size = sizes[window % 3];
			double skip = log1p(expm1(-(double)size / (double)intervals[number]));
			uint64_t count = 2 * MIB / size * (1 + part), end = at + count;

			truth[0] += (double)count;
			truth[1] += (double)count * (double)size;
			for (at += (uint64_t)(log1p(-any()) / skip); at < end;
			     at += 1 + (uint64_t)(log1p(-any()) / skip))
				rig_send(rig, (struct mw_event){at, 0x100000 + 16 * at, size, rig->heap, rig->thread[0],
								MW_EVENT_ALLOC, MW_KIND_HEAP, (uint16_t)(number + 1),
								false});
			at = end;
		}
		totals = rig_of_stack(rig, rig->heap).totals;
		estimate[0] = (double)totals.impacting.count;
		estimate[1] = (double)totals.impacting.bytes;
		variance[0] = totals.spreads.impacting.count;
		variance[1] = totals.spreads.impacting.bytes;
		note(&outcome, estimate, variance, truth, 8 * MIB);
		bias += estimate[1] - truth[1];
		squares += (estimate[1] - truth[1]) * (estimate[1] - truth[1]);
		rig_teardown((void **)&rig);
	}
	print_message("%.4f of %d windows\n", (double)outcome.within[1] / outcome.windows, outcome.windows);
	assert_true(fabs(bias) <= 4 * sqrt(squares));
	assert_true(outcome.within[1] >= 0.93 * outcome.windows);
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void assert_weighed(const struct mw_amount *amount, const struct mw_spread *spread, uint64_t size, mw_addr addr,
			   uint64_t time)
{
	struct mw_weight weight = mw_weigh(INTERVAL, size, addr, time);

	rig_amount(*amount, 1 + weight.others, (1 + weight.others) * size);
	assert_int_equal(spread->blocks, 1);
	assert_true(spread->count == weight.variance);
	assert_true(spread->bytes == weight.variance * (double)size * (double)size);
}

static void test_a_block_comes_and_goes(void **state)
{
	struct rig *rig = *state;
	struct mw_track_totals totals;

	sampling_begins(rig);
	sample(rig, 10, 0x100, 1000, rig->heap);
	totals = rig_totals(rig, MW_KIND_HEAP);
	assert_weighed(&totals.impacting, &totals.spreads.impacting, 1000, 0x100, 10);
	assert_weighed(&totals.peak.amount, &totals.spreads.peak, 1000, 0x100, 10);
	rig_check(rig);
	rig_free(rig, 20, 0x100);
	totals = rig_of_stack(rig, rig->heap).totals;
	rig_amount(totals.impacting, 0, 0);
	assert_true(totals.spreads.impacting.count == 0 && totals.spreads.impacting.bytes == 0);
	assert_weighed(&totals.transient, &totals.spreads.transient, 1000, 0x100, 10);
	assert_int_equal(rig_of_stack(rig, rig->heap).lifetime.count, totals.transient.count);
	assert_int_equal(rig_of_stack(rig, rig->heap).lifetime.max_ns, 10);
}

static void test_reallocs(void **state)
{
	struct rig *rig = *state;
	struct mw_track_replaced replaced;
	struct mw_track_totals totals;

	sampling_begins(rig);
	sample(rig, 10, 0x100, 1000, rig->heap);
	/* One that fails. */
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 11, 0, 0x100, MW_SIZE_UNKNOWN);
	rig_check(rig);
	rig_heap(rig, MW_EVENT_REALLOC_FAIL, 12, 0, 0x100, 0);
	totals = rig_totals(rig, MW_KIND_HEAP);
	assert_weighed(&totals.impacting, &totals.spreads.impacting, 1000, 0x100, 10);
	/* Its new block is not sampled. */
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 13, 0, 0x100, MW_SIZE_UNKNOWN);
	rig_send(rig, (struct mw_event){.time_ns = 14,
					.addr = 0x200,
					.size = 2000,
					.stack = rig->heap,
					.thread = rig->thread[0],
					.type = MW_EVENT_REALLOC_END,
					.interval = 1,
					.unsampled = true});
	totals = rig_totals(rig, MW_KIND_HEAP);
	rig_amount(totals.impacting, 0, 0);
	assert_weighed(&totals.transient, &totals.spreads.transient, 1000, 0x100, 10);
	assert_false(rig->sink.knows(rig->sink.context, 0x200));
	/* Its new block is sampled, of a block that was not, or that is. */
	sample(rig, 15, 0x300, 1000, rig->heap);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 16, 0, 0x300, MW_SIZE_UNKNOWN);
	rig_send(rig, (struct mw_event){17, 0x300, 3000, rig->heap, rig->thread[0], MW_EVENT_REALLOC_END, MW_KIND_HEAP,
					1, false});
	totals = rig_totals(rig, MW_KIND_HEAP);
	assert_weighed(&totals.impacting, &totals.spreads.impacting, 3000, 0x300, 17);
	/* Only there both were recorded. */
	assert_true(mw_track_stack_replaced(rig->track, rig->heap, 100, &replaced));
	assert_int_equal(replaced.count, 1);
	assert_int_equal(replaced.larger, 1);
	rig_send(rig, (struct mw_event){18, 0x400, 300, rig->heap, rig->thread[0], MW_EVENT_REALLOC_END, MW_KIND_HEAP,
					1, false});
	assert_int_equal(rig_totals(rig, MW_KIND_HEAP).spreads.impacting.blocks, 2);
	/* The address is somebody else's when it fails: it was freed. */
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 19, 0, 0x300, MW_SIZE_UNKNOWN);
	rig_send(rig,
		 (struct mw_event){20, 0x300, 50, rig->heap, rig->thread[1], MW_EVENT_ALLOC, MW_KIND_HEAP, 1, false});
	rig_heap(rig, MW_EVENT_REALLOC_FAIL, 21, 0, 0x300, 0);
	assert_int_equal(mw_track_missed(rig->track), 1);
	assert_int_equal(rig_totals(rig, MW_KIND_HEAP).spreads.impacting.blocks, 2);
	/* An address comes again. */
	sample(rig, 22, 0x400, 70, rig->heap);
	assert_int_equal(mw_track_missed(rig->track), 2);
	assert_int_equal(rig_totals(rig, MW_KIND_HEAP).spreads.impacting.blocks, 2);
	rig_send(rig, (struct mw_event){.time_ns = 23,
					.addr = 0x400,
					.size = 1,
					.stack = MW_STACK_NONE,
					.thread = rig->thread[0],
					.type = MW_EVENT_REALLOC_END,
					.unsampled = true});
	assert_int_equal(mw_track_missed(rig->track), 3);
	rig_check(rig);
}

/* An exact window goes over to sampling: what was recorded stays itself. */
static void test_from_exact_to_sampled(void **state)
{
	struct rig *rig = *state;
	struct mw_track_totals totals;
	struct mw_weight weight;

	rig_alloc(rig, 1, 0x100, 100);
	rig_alloc(rig, 2, 0x200, 100);
	rig_free(rig, 3, 0x200);
	rig_vm(rig, MW_EVENT_MAP, 3, 0, 0x10000, 4096);
	assert_null(mw_track_sampling(rig->track));
	sampling_begins(rig);
	/* Mappings are never sampled. */
	assert_int_equal(rig_of_stack(rig, rig->vm).totals.impacting.count, 1);
	assert_int_equal(rig_of_stack(rig, rig->vm).totals.spreads.impacting.blocks, 0);
	sample(rig, 4, 0x300, 100, rig->heap);
	weight = mw_weigh(INTERVAL, 100, 0x300, 4);
	totals = rig_of_stack(rig, rig->heap).totals;
	rig_amount(totals.impacting, 2 + weight.others, 100 * (2 + weight.others));
	rig_amount(totals.transient, 1, 100);
	assert_int_equal(totals.spreads.impacting.blocks, 2);
	assert_int_equal(totals.spreads.transient.blocks, 1);
	assert_true(totals.spreads.impacting.count == weight.variance);
	rig_free(rig, 5, 0x100);
	rig_alloc(rig, 6, 0x500, 8);
	totals = rig_of_stack(rig, rig->heap).totals;
	rig_amount(totals.transient, 2, 200);
	assert_true(totals.spreads.transient.count == 0);
	assert_int_equal(mw_track_sampling(rig->track)->exact, 3);
	assert_int_equal(mw_track_sampling(rig->track)->intervals[0].blocks, 1);
	assert_int_equal(mw_track_sampling(rig->track)->intervals[0].first_ns, 4);
	/* Frees of blocks that nobody knows are what they always were. */
	rig_free(rig, 7, 0x9000);
	assert_int_equal(rig_totals(rig, MW_KIND_HEAP).aofi.count, 1);
	rig_check(rig);
}

static bool sum_fates(void *context, const struct mw_track_fate *fate)
{
	struct mw_amount *sums = context;

	sums[fate->died_ns != MW_TIME_UNKNOWN].count += 1 + fate->others;
	sums[fate->died_ns != MW_TIME_UNKNOWN].bytes += (1 + fate->others) * fate->bytes;
	return true;
}

static void on_fate(void *context, const struct mw_track_fate *fate)
{
	(void)sum_fates(context, fate);
}

static void test_fates_and_an_interval(void **state)
{
	struct rig *rig = *state;
	struct mw_amount sums[2] = {{0, 0}, {0, 0}}, births[2] = {{0, 0}, {0, 0}};
	struct mw_track_totals totals;
	struct mw_error *err;

	sampling_begins(rig);
	mw_track_watch(rig->track, on_fate, sums);
	mw_track_watch_births(rig->track, on_fate, births);
	for (uint64_t i = 0; i < 100; i++)
		sample(rig, i, 0x1000 + 16 * i, 64 + i, rig->heap);
	for (uint64_t i = 0; i < 40; i++)
		rig_free(rig, 100, 0x1000 + 16 * i);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 101, 0, 0x1000 + 16 * 50, MW_SIZE_UNKNOWN);
	mw_track_each_survivor(rig->track, sum_fates, sums);
	totals = rig_totals(rig, MW_KIND_HEAP);
	rig_amount(totals.impacting, sums[0].count, sums[0].bytes);
	rig_amount(totals.transient, sums[1].count, sums[1].bytes);
	assert_int_equal(totals.spreads.transient.blocks, 40);
	rig_amount(totals.size, births[0].count, births[0].bytes);

	err = mw_track_interval(rig->track, 102);
	assert_null(err);
	rig_check(rig);
	assert_int_equal(rig_totals(rig, MW_KIND_HEAP).spreads.aofo.blocks, 60);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).aofo, totals.impacting.count, totals.impacting.bytes);
	assert_true(rig_totals(rig, MW_KIND_HEAP).spreads.aofo.bytes == totals.spreads.impacting.bytes);
	rig_free(rig, 103, 0x1000 + 16 * 99);
	assert_int_equal(rig_totals(rig, MW_KIND_HEAP).spreads.aofo.blocks, 59);
	assert_int_equal(rig_totals(rig, MW_KIND_HEAP).spreads.transient.blocks, 0);
	rig_check(rig);
}

static void test_after_the_window(void **state)
{
	struct rig *rig = *state;
	struct mw_track_totals totals;
	struct mw_error *err;

	sampling_begins(rig);
	sample(rig, 1, 0x100, 100, rig->heap);
	sample(rig, 2, 0x200, 100, rig->heap);
	rig_heap(rig, MW_EVENT_REALLOC_BEGIN, 3, 0, 0x200, MW_SIZE_UNKNOWN);
	err = mw_track_settle(rig->track);
	assert_null(err);
	rig_free(rig, 4, 0x100);
	rig_heap(rig, MW_EVENT_REALLOC_END, 5, 0, 0x900, 100);
	totals = rig_totals(rig, MW_KIND_HEAP);
	rig_amount(totals.settled_later, totals.impacting.count, totals.impacting.bytes);
	assert_int_equal(totals.spreads.settled.blocks, 2);
	assert_true(totals.spreads.settled.bytes == totals.spreads.impacting.bytes);
	rig_check(rig);
}

static void test_intervals_are_numbered(void **state)
{
	struct rig *rig = *state;
	struct mw_event event = {.addr = 0x100, .size = 8, .stack = rig->heap, .thread = rig->thread[0], .interval = 1};
	struct mw_event other = {
		.stack = rig->heap, .thread = rig->thread[0], .type = MW_EVENT_REALLOC_END, .unsampled = true};
	struct mw_error *err;
	uint16_t number;

	rig_refuse(rig, event, MW_ERROR_DATA);
	/* Of a block that nobody knows, even where nothing is sampled. */
	rig_send(rig, other);
	rig_amount(rig_totals(rig, MW_KIND_HEAP).size, 0, 0);
	assert_int_equal(number_of(rig, 0), 0);
	assert_null(mw_track_sampling(rig->track));
	for (uint64_t i = 1; i <= MW_INTERVAL_MAX; i++)
		assert_int_equal(number_of(rig, i * 1000), i);
	assert_int_equal(number_of(rig, 7000), 7);
	err = rig->sink.interval(rig->sink.context, 1, &number);
	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_UNSUPPORTED);
	mw_error_destroy(err);
	event.interval = MW_INTERVAL_MAX + 1;
	rig_refuse(rig, event, MW_ERROR_DATA);
}

/* What a window that is not sampled needs is what it always needed. */
static void test_exact_windows_keep_nothing(void **state)
{
	struct rig *rig = *state;
	struct mw_track_memory before, after;

	rig_alloc(rig, 1, 0x100, 100);
	mw_track_memory(rig->track, &before);
	assert_int_equal(mw_sampling_memory(rig->track), 0);
	sampling_begins(rig);
	mw_track_memory(rig->track, &after);
	assert_true(after.blocks > before.blocks);
}

UNIT_GROUP(sampling)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_weights_are_right_on_average),
		cmocka_unit_test(test_limits_are_those_of_poisson),
		cmocka_unit_test(test_estimates_have_no_bias),
		cmocka_unit_test(test_intervals_cover_the_truth),
		cmocka_unit_test(test_limits_where_the_interval_changes),
		TEST(test_a_block_comes_and_goes),
		TEST(test_reallocs),
		TEST(test_from_exact_to_sampled),
		TEST(test_fates_and_an_interval),
		TEST(test_after_the_window),
		TEST(test_intervals_are_numbered),
		TEST(test_exact_windows_keep_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
