// SPDX-License-Identifier: MIT
/*
 * sample.c: which blocks are recorded, where not all are (recorder.h).
 *
 * Each byte that is allocated ends an interval with the same chance, whatever came before: a thread's countdown is drawn
 * from the exponential distribution, each block takes its size off, and the one that it does not suffice for is recorded.
 * So a block of s bytes is with the probability 1 - exp(-max(s, 1) / interval), independently of all others. An interval
 * that changes counts for a thread from its next draw on; a block is labelled with the one that its countdown was drawn by.
 */
#include "stub/recorder.h"

#define FRACTION_BITS 32
#define LN2           UINT64_C(2977044472) /* with so many bits of fraction */
#define STICKS        255u

/* splitmix64 */
static uint64_t random(struct mw_ring_slot *slot)
{
	uint64_t z = cpu_take(&slot->random, UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* floor(-ln(u / 2^64) * bytes) of a random u from 1 on. The logarithm to base 2 comes bit by bit: squared, a number from
 * 1 to 2 passes 2 where the next bit is set. */
static int64_t draw(struct mw_ring_slot *slot, uint64_t bytes)
{
	uint64_t u = random(slot) | 1, fraction = 0, x, logarithm;
	unsigned zeros = (unsigned)__builtin_clzll(u);

	x = u << zeros;
	for (unsigned i = 0; i < FRACTION_BITS; i++) {
		uint64_t square = (uint64_t)((unsigned __int128)x * x >> 64); /* 2^62 to 2^64: 1 to 4 */
		unsigned bit = (unsigned)(square >> 63);

		fraction = fraction << 1 | bit;
		x = bit ? square : square << 1;
	}
	logarithm = ((uint64_t)(zeros + 1) << FRACTION_BITS) - fraction; /* of 2^64 / u, to base 2 */
	logarithm = (uint64_t)((unsigned __int128)logarithm * LN2 >> FRACTION_BITS);
	return (int64_t)((unsigned __int128)logarithm * bytes >> FRACTION_BITS);
}

/* Draw anew. False: that was never done before. */
static bool redraw(struct stub_visit *visit, uint64_t *label)
{
	struct mw_ring_slot *slot = visit->slot;
	uint64_t sampling = slot->sampling;

	*label = sampling & ~MW_RING_SIZE_MASK;
	if (!sampling)
		slot->random = cpu_ticks() ^ slot->owner << 20 ^ stub_context()->cookie;
	slot->sampling = __atomic_load_n(&visit->control->sampling, __ATOMIC_RELAXED);
	slot->countdown = draw(slot, slot->sampling & MW_RING_SIZE_MASK);
	return sampling != 0;
}

bool stub_sample(struct stub_visit *visit, uint64_t size, bool taken, uint64_t *label)
{
	struct mw_ring_slot *slot = visit->slot;

	/* More than there can be: it will be refused. */
	if (size > MW_RING_SIZE_MASK)
		size = MW_RING_SIZE_MASK;
	if (!slot->sampling) {
		(void)redraw(visit, label);
		taken = false;
	}
	if (!taken) {
		cpu_add((uint64_t *)&slot->countdown, -(size ? size : 1));
		taken = slot->countdown < 0;
	}
	return taken && redraw(visit, label);
}

STUB_RARE void stub_sample_no_more(struct mw_ring_control *control)
{
	struct mw_ring_slot *slot = stub_slot_known(control);

	if (slot)
		__atomic_store_n(&slot->countdown, INT64_MAX, __ATOMIC_RELAXED);
}

/*
 * The sampled blocks that live are among those that are known, and counted in the filter, where most frees end. A block that
 * finds its place among the known ones taken has its count in the filter at STICKS for ever: the free of any block there may
 * be that of one which is not among them.
 */

static uint8_t *filter(void)
{
	return (uint8_t *)(uintptr_t)stub_context()->filter;
}

bool stub_sampled(struct mw_ring_control *control, uint64_t block)
{
	uint8_t now = __atomic_load_n(filter() + mw_ring_filter_place(block), __ATOMIC_RELAXED);

	return now && (now == STICKS || stub_known_has_sampled(control, block, false));
}

void stub_sampled_add(struct mw_ring_control *control, uint64_t block)
{
	mw_ring_filter_count(filter(), block, 1,
			     !mw_ring_known_claim(stub_at(control, control->known), control->known_count, block));
}

bool stub_sampled_take(struct mw_ring_control *control, uint64_t block)
{
	if (!stub_known_has_sampled(control, block, true))
		return __atomic_load_n(filter() + mw_ring_filter_place(block), __ATOMIC_RELAXED) == STICKS;
	mw_ring_filter_count(filter(), block, -1, 0);
	return true;
}
