// SPDX-License-Identifier: MIT
/* test_histogram.c: error bound, merging and memory of the lifetime histogram. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "track/histogram.h"
#include "unit.h"

#define VALUES 100000

static uint64_t random_state = 88172645463325252U;

static double uniform(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return ((double)(random_state >> 11) + 0.5) / 9007199254740992.0;
}

/* Distributions of lifetimes in ns, from 1 ns to 10^6 s. */
static uint64_t log_uniform(void)
{
	return (uint64_t)pow(10, 15 * uniform());
}

static uint64_t exponential(void)
{
	return (uint64_t)(-log(uniform()) * 5e6) + 1;
}

static uint64_t log_normal(void)
{
	return (uint64_t)exp(12 + 3 * sqrt(-2 * log(uniform())) * cos(6.283185307 * uniform())) + 1;
}

static uint64_t bimodal(void)
{
	return uniform() < 0.51 ? 100 + (uint64_t)(uniform() * 100) : (uint64_t)(1e12 * (1 + uniform()));
}

static uint64_t small(void)
{
	return (uint64_t)(uniform() * 300);
}

static uint64_t constant(void)
{
	return 123456789;
}

static uint64_t (*const distributions[])(void) = {log_uniform, exponential, log_normal, bimodal, small, constant};
#define DISTRIBUTIONS (sizeof(distributions) / sizeof(distributions[0]))

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void assert_within(uint64_t got, uint64_t exact)
{
	double error = fabs((double)got - (double)exact);

	if (error > 0.05 * (double)exact)
		fail_msg("%llu instead of %llu", (unsigned long long)got, (unsigned long long)exact);
}

static void check_quantiles(const struct mw_histogram *h, uint64_t *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare);
	assert_int_equal(h->count, n);
	assert_int_equal(h->min, values[0]);
	assert_int_equal(h->max, values[n - 1]);
	for (unsigned int percent = 1; percent <= 100; percent++) {
		size_t rank = (n * percent + 99) / 100;

		assert_within(mw_histogram_quantile(h, percent), values[rank - 1]);
	}
}

static void test_error_bound(void **state)
{
	static const size_t sizes[] = {1, 2, 3, 10, 99, 100, 101, 1000, VALUES};
	uint64_t *values = malloc(VALUES * sizeof(*values));

	(void)state;
	assert_non_null(values);
	for (size_t d = 0; d < DISTRIBUTIONS; d++) {
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
			struct mw_histogram h = {0};

			for (size_t i = 0; i < sizes[s]; i++) {
				values[i] = distributions[d]();
				assert_null(mw_histogram_add(&h, values[i], 1));
			}
			check_quantiles(&h, values, sizes[s]);
			mw_histogram_deinit(&h);
		}
	}
	free(values);
}

/* Each single value, against the whole range of 64 bits: two more values keep it from being min or max. */
static void test_every_magnitude(void **state)
{
	(void)state;
	for (double exact = 1; exact < 1.8e19; exact *= 1.0007) {
		struct mw_histogram h = {0};
		uint64_t value = (uint64_t)exact;

		assert_null(mw_histogram_add(&h, 0, 1));
		assert_null(mw_histogram_add(&h, value, 1));
		assert_null(mw_histogram_add(&h, UINT64_MAX, 1));
		assert_within(mw_histogram_quantile(&h, 50), value);
		mw_histogram_deinit(&h);
	}
}

static void test_small_values_are_exact(void **state)
{
	(void)state;
	for (uint64_t value = 0; value < 128; value++) {
		struct mw_histogram h = {0};

		assert_null(mw_histogram_add(&h, 0, 1));
		assert_null(mw_histogram_add(&h, value, 1));
		assert_null(mw_histogram_add(&h, 1000, 1));
		assert_int_equal(mw_histogram_quantile(&h, 50), value);
		mw_histogram_deinit(&h);
	}
}

static void test_empty(void **state)
{
	struct mw_histogram h = {0}, other = {0};

	(void)state;
	assert_int_equal(mw_histogram_quantile(&h, 50), 0);
	assert_null(mw_histogram_add(&h, 5, 0));
	assert_null(mw_histogram_merge(&h, &other));
	assert_int_equal(h.count, 0);
	assert_null(mw_histogram_add(&other, 0, 3));
	assert_null(mw_histogram_merge(&h, &other));
	assert_int_equal(h.count, 3);
	assert_int_equal(h.max, 0);
	mw_histogram_deinit(&h);
	mw_histogram_deinit(&other);
}

static void assert_equal(const struct mw_histogram *a, const struct mw_histogram *b)
{
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->min, b->min);
	assert_int_equal(a->max, b->max);
	assert_int_equal(a->used, b->used);
	for (unsigned int percent = 1; percent <= 100; percent++)
		assert_int_equal(mw_histogram_quantile(a, percent), mw_histogram_quantile(b, percent));
}

static void test_merge_is_concatenation(void **state)
{
	(void)state;
	for (size_t d = 0; d < DISTRIBUTIONS * DISTRIBUTIONS; d++) {
		struct mw_histogram parts[2] = {0}, whole = {0}, merged = {0};

		for (size_t i = 0; i < 3000; i++) {
			size_t part = i % 3 == 0;
			uint64_t value = distributions[part ? d / DISTRIBUTIONS : d % DISTRIBUTIONS]();

			assert_null(mw_histogram_add(&parts[part], value, 1));
			assert_null(mw_histogram_add(&whole, value, 1));
		}
		assert_null(mw_histogram_merge(&merged, &parts[1]));
		assert_null(mw_histogram_merge(&merged, &parts[0]));
		assert_equal(&merged, &whole);
		mw_histogram_deinit(&parts[0]);
		mw_histogram_deinit(&parts[1]);
		mw_histogram_deinit(&whole);
		mw_histogram_deinit(&merged);
	}
}

/* Counts of 1, 2, 4 and 8 bytes, before and after each step. */
static void test_counts_escalate(void **state)
{
	static const uint64_t steps[] = {254, 1, 1, 65279, 1, UINT32_MAX - 65536, 1, UINT64_C(1) << 40};
	static const int widths[] = {1, 1, 2, 2, 4, 4, 8, 8};
	struct mw_histogram h = {0};
	uint64_t count = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		assert_null(mw_histogram_add(&h, 1000, steps[i]));
		count += steps[i];
		assert_int_equal(h.width, widths[i]);
		assert_int_equal(h.count, count);
	}
	assert_null(mw_histogram_add(&h, 1, 1));
	assert_null(mw_histogram_add(&h, 1000000, count));
	assert_within(mw_histogram_quantile(&h, 49), 1000);
	assert_within(mw_histogram_quantile(&h, 51), 1000000);
	mw_histogram_deinit(&h);
}

static void test_memory_is_bounded(void **state)
{
	struct mw_histogram h = {0};

	(void)state;
	for (size_t i = 0; i < 4; i++)
		assert_null(mw_histogram_add(&h, log_uniform(), 1));
	assert_true(mw_histogram_memory(&h) <= 12);
	for (size_t i = 0; i < 1000000; i++)
		assert_null(mw_histogram_add(&h, log_uniform(), 1));
	assert_true(h.used <= 472);
	assert_true(mw_histogram_memory(&h) <= 584 * 4);
	mw_histogram_deinit(&h);
}

/* Few buckets far apart have numbers; many are a row, which takes less. */
static void test_row(void **state)
{
	struct mw_histogram h = {0};

	(void)state;
	assert_null(mw_histogram_add(&h, 1, 1));
	assert_null(mw_histogram_add(&h, UINT64_C(1) << 50, 1));
	assert_false(h.in_row);
	assert_int_equal(h.used, 2);
	for (size_t i = 0; i < 50; i++)
		for (unsigned octave = 0; octave < 50; octave++)
			assert_null(mw_histogram_add(&h, (UINT64_C(1) << octave) + (i << octave) / 50, 1));
	assert_true(h.in_row);
	assert_int_equal(h.count, 2502);
	assert_true(mw_histogram_memory(&h) <= 584 * (size_t)h.width);
	/* Beyond both of its ends. */
	assert_null(mw_histogram_add(&h, 0, 1000));
	assert_null(mw_histogram_add(&h, UINT64_MAX, 100000));
	assert_int_equal(h.count, 103502);
	assert_int_equal(mw_histogram_quantile(&h, 0), 0);
	assert_within(mw_histogram_quantile(&h, 50), UINT64_MAX);
	assert_int_equal(h.min, 0);
	mw_histogram_deinit(&h);
}

UNIT_GROUP(histogram)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_error_bound),
		cmocka_unit_test(test_every_magnitude),
		cmocka_unit_test(test_small_values_are_exact),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_merge_is_concatenation),
		cmocka_unit_test(test_counts_escalate),
		cmocka_unit_test(test_memory_is_bounded),
		cmocka_unit_test(test_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
