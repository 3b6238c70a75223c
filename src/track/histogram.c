// SPDX-License-Identifier: MIT
/* histogram.c: sparse log-scale histogram (histogram.h). */
#include "track/histogram.h"

#include <stdlib.h>
#include <string.h>

#define EXACT       128U /* below this rounding to whole nanoseconds would cost more than 5 % */
#define EXACT_SHIFT 7U
#define STEPS       8U /* buckets an octave: (2^(1/8) - 1) / (2^(1/8) + 1) = 4.33 % */
#define BUCKETS     (EXACT + (64U - EXACT_SHIFT) * STEPS)
#define LOOK_AT_ALL 32U /* so few buckets are looked at one and all */
#define ROW_ROOM    4U  /* buckets that a row gets more than it needs, at its ends */
#define GROW_BY     4U  /* and capacities are multiples of it, so that counts of 8 bytes are aligned */

/* 2^(i/8) */
static const double step_ratio[STEPS + 1] = {
	1.0,
	1.0905077326652577,
	1.1892071150027210,
	1.2968395546510096,
	1.4142135623730951,
	1.5422108254079408,
	1.6817928305074290,
	1.8340080864093424,
	2.0,
};

static uint16_t bucket_of(uint64_t value)
{
	/* 2^(i/8) in 1/2^31, rounded up. Just one lies in each linear eighth of the octave, none in the last. */
	static const uint64_t bound[STEPS] = {
		2341847524, 2553802834, 2784941738, 3037000500, 3311872529, 3611622603, 3938502376, UINT64_MAX,
	};
	unsigned int shift, step;
	uint64_t mantissa;

	if (value < EXACT)
		return (uint16_t)value;
	shift = (unsigned int)__builtin_clzll(value);
	mantissa = (value << shift) >> 32;
	step = (unsigned int)(mantissa >> 28) % STEPS;
	step += mantissa >= bound[step];
	return (uint16_t)(EXACT + (63 - shift - EXACT_SHIFT) * STEPS + step);
}

/* The value with the same relative distance to both ends of the bucket. */
static uint64_t value_of(uint16_t bucket)
{
	unsigned int octave, step;
	double low, high;

	if (bucket < EXACT)
		return bucket;
	octave = (bucket - EXACT) / STEPS + EXACT_SHIFT;
	step = (bucket - EXACT) % STEPS;
	low = (double)(UINT64_C(1) << octave) * step_ratio[step];
	high = (double)(UINT64_C(1) << octave) * step_ratio[step + 1];
	return (uint64_t)(2 * low * high / (low + high) + 0.5);
}

static uint16_t *numbers(const struct mw_histogram *h)
{
	return h->buckets;
}

static void *counts(const struct mw_histogram *h)
{
	return h->in_row ? h->buckets : numbers(h) + h->capacity;
}

static uint64_t get_count(const struct mw_histogram *h, uint32_t i)
{
	switch (h->width) {
	case 1:
		return ((uint8_t *)counts(h))[i];
	case 2:
		return ((uint16_t *)counts(h))[i];
	case 4:
		return ((uint32_t *)counts(h))[i];
	default:
		return ((uint64_t *)counts(h))[i];
	}
}

static void set_count(struct mw_histogram *h, uint32_t i, uint64_t count)
{
	switch (h->width) {
	case 1:
		((uint8_t *)counts(h))[i] = (uint8_t)count;
		break;
	case 2:
		((uint16_t *)counts(h))[i] = (uint16_t)count;
		break;
	case 4:
		((uint32_t *)counts(h))[i] = (uint32_t)count;
		break;
	default:
		((uint64_t *)counts(h))[i] = count;
	}
}

static uint8_t width_for(uint64_t count)
{
	if (count <= UINT8_MAX)
		return 1;
	if (count <= UINT16_MAX)
		return 2;
	return count <= UINT32_MAX ? 4 : 8;
}

void mw_histogram_deinit(struct mw_histogram *histogram)
{
	free(histogram->buckets);
	*histogram = (struct mw_histogram){0};
}

/* How many places there are to look for buckets at, those of a row without a count included. */
static uint32_t places(const struct mw_histogram *h)
{
	return h->in_row ? h->capacity : h->used;
}

static uint16_t number_at(const struct mw_histogram *h, uint32_t i)
{
	return h->in_row ? (uint16_t)(h->base + i) : numbers(h)[i];
}

/* Lay the buckets out anew, as `layout` says, with room for all. */
static bool rebuild(struct mw_histogram *h, const struct mw_histogram *layout)
{
	struct mw_histogram to = *layout;

	to.buckets = calloc(1, mw_histogram_memory(&to));
	if (!to.buckets)
		return false;
	to.used = 0;
	for (uint32_t i = 0; i < places(h); i++) {
		uint64_t count = get_count(h, i);

		if (count == 0)
			continue;
		if (!to.in_row)
			numbers(&to)[to.used] = number_at(h, i);
		set_count(&to, to.in_row ? (uint32_t)number_at(h, i) - to.base : to.used, count);
		to.used++;
	}
	free(h->buckets);
	h->buckets = to.buckets;
	h->used = to.used;
	h->capacity = to.capacity;
	h->base = to.base;
	h->width = to.width;
	h->in_row = to.in_row;
	return true;
}

/*
 * The first bucket whose number is not below `number`. Lifetimes are hard to predict, so that a search that branches on
 * them costs more than looking at what is not needed; the compiler makes vectors of the second loop.
 */
static uint32_t lower_bound(const struct mw_histogram *h, uint16_t number)
{
	const uint16_t *all = numbers(h);
	uint32_t low = 0, count = h->used;
	uint16_t below = 0;

	while (count > LOOK_AT_ALL) {
		uint32_t half = count / 2;

		low += all[low + half - 1] < number ? half : 0;
		count -= half;
	}
	for (uint32_t i = 0; i < count; i++)
		below = (uint16_t)(below + (all[low + i] < number));
	return low + below;
}

/* Open an empty bucket at place `at`; there is room. */
static void open_bucket(struct mw_histogram *h, uint32_t at, uint16_t number)
{
	char *bytes = counts(h);
	uint32_t behind = h->used - at;

	memmove(numbers(h) + at + 1, numbers(h) + at, behind * sizeof(uint16_t));
	memmove(bytes + (size_t)(at + 1) * h->width, bytes + (size_t)at * h->width, (size_t)behind * h->width);
	numbers(h)[at] = number;
	set_count(h, at, 0);
	h->used++;
}

/* Where the bucket of that number is, or is to be; in a row that does not reach to it, beyond its end. */
static inline uint32_t place_of(const struct mw_histogram *h, uint16_t number)
{
	return h->in_row ? (uint32_t)number - h->base : lower_bound(h, number);
}

static inline bool has_place(const struct mw_histogram *h, uint32_t at, uint16_t number)
{
	return h->in_row ? at < h->capacity : at < h->used && numbers(h)[at] == number;
}

#define ADD_TO(type, max)                                                                                              \
	({                                                                                                             \
		type *count_ = (type *)counts(h) + at;                                                                 \
		bool fits_ = times <= (uint64_t)(max) - *count_;                                                       \
		if (fits_) {                                                                                           \
			h->used = (uint16_t)(h->used + (*count_ == 0));                                                \
			*count_ = (type)(*count_ + times);                                                             \
		}                                                                                                      \
		fits_;                                                                                                 \
	})

/* Add to a bucket that has a place, and whose count stays as wide as it is; false where it isn't so. */
static inline bool add_in_place(struct mw_histogram *h, uint32_t at, uint16_t number, uint64_t times)
{
	if (!has_place(h, at, number))
		return false;
	switch (h->width) {
	case 1:
		return ADD_TO(uint8_t, UINT8_MAX);
	case 2:
		return ADD_TO(uint16_t, UINT16_MAX);
	case 4:
		return ADD_TO(uint32_t, UINT32_MAX);
	default:
		return ADD_TO(uint64_t, UINT64_MAX);
	}
}

/* A row with room for that bucket, too. */
static struct mw_histogram row_for(const struct mw_histogram *h, uint16_t number, uint8_t width)
{
	uint32_t count = places(h), low = number, high = number;
	struct mw_histogram row = *h;

	if (count > 0) {
		uint32_t first = number_at(h, 0), last = number_at(h, count - 1);

		low = first < low ? first : low;
		high = last > high ? last : high;
	}
	/* It grows to where it has grown to now. */
	if (low == number)
		low -= low < ROW_ROOM ? low : ROW_ROOM;
	if (high == number)
		high = high + ROW_ROOM < BUCKETS ? high + ROW_ROOM : BUCKETS - 1;
	row.base = (uint16_t)low;
	row.capacity = (uint16_t)(high - low + 1);
	row.width = width;
	row.in_row = true;
	return row;
}

/* Buckets with numbers, and room for one more where one is to come. */
static struct mw_histogram list_for(const struct mw_histogram *h, bool is_new, uint8_t width)
{
	struct mw_histogram list = *h;
	uint32_t capacity = h->in_row ? (h->used + GROW_BY) / GROW_BY * GROW_BY : h->capacity;

	if (is_new && h->used == capacity)
		capacity += GROW_BY + capacity / 4U / GROW_BY * GROW_BY;
	list.capacity = (uint16_t)(capacity < BUCKETS ? capacity : BUCKETS);
	list.width = width;
	list.in_row = false;
	return list;
}

/* Make room for a new bucket, or for a larger count. */
static struct mw_error *add_with_room(struct mw_histogram *h, uint16_t number, uint64_t times)
{
	uint32_t at = place_of(h, number);
	bool is_there = has_place(h, at, number);
	uint8_t width = width_for(times + (is_there ? get_count(h, at) : 0));
	struct mw_histogram list, row;

	if (width < h->width)
		width = h->width;
	list = list_for(h, !is_there, width);
	row = row_for(h, number, width);
	if (mw_histogram_memory(&row) <= mw_histogram_memory(&list))
		list = row;
	if ((list.in_row || width != h->width || list.capacity != h->capacity || h->in_row) && !rebuild(h, &list))
		return mw_error_nomem();
	at = place_of(h, number);
	if (!has_place(h, at, number))
		open_bucket(h, at, number);
	else
		h->used = (uint16_t)(h->used + (get_count(h, at) == 0));
	set_count(h, at, get_count(h, at) + times);
	return NULL;
}

static inline struct mw_error *add_to_bucket(struct mw_histogram *h, uint16_t number, uint64_t times)
{
	if (add_in_place(h, place_of(h, number), number, times))
		return NULL;
	return add_with_room(h, number, times);
}

void mw_histogram_prefetch(const struct mw_histogram *histogram, uint64_t value)
{
	const char *buckets = histogram->buckets;
	uint32_t at;

	if (!buckets)
		return;
	if (!histogram->in_row) {
		/* The middle, where a search begins. */
		__builtin_prefetch(buckets + histogram->used);
		return;
	}
	at = (uint32_t)bucket_of(value) - histogram->base;
	if (at < histogram->capacity)
		__builtin_prefetch(buckets + (size_t)at * histogram->width, 1);
}

static void take_limits(struct mw_histogram *h, uint64_t min, uint64_t max, uint64_t times)
{
	if (h->count == 0 || min < h->min)
		h->min = min;
	if (h->count == 0 || max > h->max)
		h->max = max;
	h->count += times;
}

struct mw_error *mw_histogram_add(struct mw_histogram *histogram, uint64_t value, uint64_t times)
{
	if (times == 0)
		return NULL;
	MW_TRY(add_to_bucket(histogram, bucket_of(value), times));
	take_limits(histogram, value, value, times);
	return NULL;
}

struct mw_error *mw_histogram_merge(struct mw_histogram *histogram, const struct mw_histogram *from)
{
	for (uint32_t i = 0; i < places(from); i++) {
		uint64_t times = get_count(from, i);

		if (times == 0)
			continue;
		MW_TRY(add_to_bucket(histogram, number_at(from, i), times));
		take_limits(histogram, from->min, from->max, times);
	}
	return NULL;
}

uint64_t mw_histogram_quantile(const struct mw_histogram *histogram, unsigned int percent)
{
	uint64_t count = histogram->count;
	uint64_t rank = count / 100 * percent + (count % 100 * percent + 99) / 100;
	uint64_t seen = 0;

	if (count == 0)
		return 0;
	if (rank <= 1)
		return histogram->min;
	if (rank >= count)
		return histogram->max;
	for (uint32_t i = 0; i < places(histogram); i++) {
		seen += get_count(histogram, i);
		if (seen >= rank) {
			uint64_t value = value_of(number_at(histogram, i));

			if (value < histogram->min)
				return histogram->min;
			return value > histogram->max ? histogram->max : value;
		}
	}
	return histogram->max;
}

uint64_t mw_histogram_above(const struct mw_histogram *h, uint64_t value)
{
	uint16_t first = bucket_of(value);
	uint64_t sum = 0;

	first = (uint16_t)(first + (value_of(first) <= value));
	for (uint32_t i = places(h); i > 0 && number_at(h, i - 1) >= first; i--)
		sum += get_count(h, i - 1);
	return sum;
}
