// SPDX-License-Identifier: MIT
/*
 * sample.c: which allocations are recorded in a window that is sampled, and which of those blocks live (recorder.h).
 *
 * Poisson sampling by bytes: each thread counts down the bytes that it allocates from a number drawn of an exponential
 * distribution, whose mean is the interval. The allocation that takes it below zero is recorded. As that distribution
 * has no memory, an allocation of `size` is recorded with the probability 1 − e^(−size / interval), whatever came before.
 *
 * Which of those blocks live is in sampled_set.h.
 */
#include "stub/recorder.h"

/* --- decisions ---------------------------------------------------------------------------------------------------- */

#define GOLDEN   UINT64_C(0x9e3779b97f4a7c15)
#define LN2      UINT64_C(2977044472) /* in 2^-32 */
#define FRACTION 32

/* A number of the thread's own series (splitmix64). A handler that comes between takes the next one. */
static uint64_t random_next(struct mw_ring_slot *slot)
{
	uint64_t z;

	if (!slot->random)
		slot->random = (cpu_ticks() ^ slot->owner << 17 ^ stub_context()->cookie) | 1;
	z = cpu_take(&slot->random, GOLDEN) + GOLDEN;
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* −ln(n / 2^64), in 2^-32; n is not 0. The fraction's bits by squaring. */
static uint64_t negative_log(uint64_t n)
{
	unsigned zeros = (unsigned)__builtin_clzll(n);
	uint64_t log2 = 0, mantissa = n << zeros;

	for (unsigned i = 0; i < FRACTION; i++) {
		unsigned __int128 square = (unsigned __int128)mantissa * mantissa;
		bool two = square >> 127;

		mantissa = (uint64_t)(square >> (two ? 64 : 63));
		log2 = log2 << 1 | two;
	}
	log2 = ((uint64_t)(zeros + 1) << FRACTION) - log2;
	return (uint64_t)((unsigned __int128)log2 * LN2 >> FRACTION);
}

static void draw(struct mw_ring_control *control, struct mw_ring_slot *slot)
{
	uint32_t number = __atomic_load_n(&control->interval, __ATOMIC_ACQUIRE) % MW_RING_INTERVALS;
	uint64_t n = random_next(slot);
	unsigned __int128 bytes = (unsigned __int128)negative_log(n ? n : 1) * control->intervals[number] >> FRACTION;

	slot->countdown = bytes > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)bytes;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	slot->interval = number;
}

bool stub_sample(struct stub_visit *visit, uint64_t size, bool drawn, uint32_t *interval)
{
	struct mw_ring_slot *slot = visit->slot;

	if (unlikely(!slot->interval)) {
		draw(visit->control, slot);
		drawn = false;
	}
	if (size > MW_RING_SIZE_MAX)
		size = MW_RING_SIZE_MAX;
	if (!drawn)
		cpu_add((uint64_t *)&slot->countdown, 0 - (size ? size : 1));
	if (slot->countdown >= 0)
		return false;
	*interval = slot->interval;
	draw(visit->control, slot);
	return true;
}

/* --- an exact window goes over to sampling -------------------------------------------------------------------------- */

static bool guard_change(uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n((uint32_t *)(uintptr_t)stub_context()->guard, &from, to, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

STUB_RARE void stub_sampling_begin(struct mw_ring_control *control)
{
	uint64_t none = 0;

	/* Said before it is so: who records by it has seen it before. */
	(void)__atomic_compare_exchange_n(&control->sampled_from, &none, cpu_ticks(), false, __ATOMIC_ACQ_REL,
					  __ATOMIC_RELAXED);
	(void)guard_change(MW_STUB_GUARD_ON, MW_STUB_GUARD_TURNING);
}

STUB_RARE void stub_sampling_settled(void)
{
	(void)guard_change(MW_STUB_GUARD_TURNING, MW_STUB_GUARD_SAMPLING);
}
