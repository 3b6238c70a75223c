/* SPDX-License-Identifier: MIT */
/*
 * histogram.h: a log-scale histogram of nanoseconds that can be merged.
 *
 * Values below 128 have a bucket each; above, an octave is eight buckets of equal ratio. A quantile is
 * the middle of its bucket, at most 4.8 % from the exact one for every 64-bit value; min and max are
 * exact. There are 584 buckets in all, 472 of them below 10^6 s, so a histogram cannot grow without bound.
 * Few buckets in use are kept with their numbers, in 3 to 10 bytes each according to the largest count; where that
 * takes no more, a row of counts from the lowest to the highest, in which none need be searched for. Merging two
 * gives exactly the histogram of both their values.
 */
#ifndef MW_TRACK_HISTOGRAM_H
#define MW_TRACK_HISTOGRAM_H

#include <memwatch/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialise; mw_histogram_deinit frees. */
struct mw_histogram {
	uint64_t count, min, max; /* min and max mean nothing while count is 0 */
	void *buckets;            /* uint16_t number[capacity], sorted, unless in a row; then counts of `width` bytes */
	uint16_t used, capacity;
	uint16_t base; /* in a row: the first one's number */
	uint8_t width; /* of a count: 0 (no buckets), 1, 2, 4 or 8 bytes */
	bool in_row;
};

void mw_histogram_deinit(struct mw_histogram *histogram);
/* Let the processor fetch what mw_histogram_add() of that value looks at. */
void mw_histogram_prefetch(const struct mw_histogram *histogram, uint64_t value);
/* Add `value` `times` times. On failure (memory) nothing has changed. */
struct mw_error *mw_histogram_add(struct mw_histogram *histogram, uint64_t value, uint64_t times) MW_MUST_CHECK;
/* Add all of `from`. On failure (memory) an unknown part of it has been added. */
struct mw_error *mw_histogram_merge(struct mw_histogram *histogram, const struct mw_histogram *from) MW_MUST_CHECK;
/* The value that at least `percent` (1 to 100) of all values do not exceed (nearest rank); 0 where there are none. */
uint64_t mw_histogram_quantile(const struct mw_histogram *histogram, unsigned int percent);
/* How many values are above `value`, as exact as its buckets. */
uint64_t mw_histogram_above(const struct mw_histogram *histogram, uint64_t value);
/* Bytes behind the structure. */
static inline uint64_t mw_histogram_memory(const struct mw_histogram *histogram)
{
	return (uint64_t)histogram->capacity * ((histogram->in_row ? 0 : sizeof(uint16_t)) + histogram->width);
}

#endif
