// SPDX-License-Identifier: MIT
/* tally.c: bytes at moments a step apart (tally.h). */
#include "track/tally.h"

#include <stdlib.h>

#define FIRST_STEP_NS UINT64_C(1000000)
#define FIRST_VALUES  4U /* room, doubled when there are more */

static uint32_t passed_of(uint16_t moment)
{
	return moment & 0xff;
}

static uint32_t doubled_of(uint16_t moment)
{
	return moment >> 8;
}

_Static_assert(MW_SERIES_MAX == 64, "a bit of mw_series.changes for each value");

static void set_next(struct mw_series_clock *clock)
{
	uint64_t moment = (uint64_t)passed_of(clock->now) + 1;

	if (moment > (UINT64_MAX - clock->begin_ns) / clock->step_ns)
		clock->next_ns = UINT64_MAX;
	else
		clock->next_ns = clock->begin_ns + moment * clock->step_ns;
}

void mw_series_clock_start(struct mw_series_clock *clock, uint64_t begin_ns)
{
	*clock = (struct mw_series_clock){.begin_ns = begin_ns, .step_ns = FIRST_STEP_NS};
	set_next(clock);
}

void mw_series_clock_advance(struct mw_series_clock *clock, uint64_t time_ns)
{
	uint64_t elapsed = time_ns - clock->begin_ns;
	uint32_t doubled = doubled_of(clock->now);

	while (elapsed / clock->step_ns > MW_SERIES_MAX) {
		clock->step_ns *= 2;
		doubled++;
	}
	clock->now = (uint16_t)(doubled << 8 | (uint32_t)(elapsed / clock->step_ns));
	set_next(clock);
}

/* Room that there is for so many values, once there is any. */
static uint32_t capacity_for(uint32_t count)
{
	uint32_t capacity = FIRST_VALUES;

	while (capacity < count)
		capacity *= 2;
	return capacity;
}

static uint32_t capacity_of(const struct mw_series *series)
{
	return series->values ? capacity_for((uint32_t)__builtin_popcountll(series->changes)) : 0;
}

/* All values up to the moment `now`. */
static void unpack(const struct mw_series *series, uint16_t known, uint16_t now, uint64_t bytes, float *values)
{
	uint32_t count = passed_of(known), next = 0;
	uint32_t doubled = doubled_of(now) - doubled_of(known);
	float value = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (series->changes >> i & 1)
			value = series->values[next++];
		values[i] = value;
	}
	/* Of two values the later one stands at a moment of the doubled step. */
	for (; doubled > 0 && count > 0; doubled--) {
		count /= 2;
		for (uint32_t i = 0; i < count; i++)
			values[i] = values[2 * i + 1];
	}
	while (count < passed_of(now))
		values[count++] = (float)bytes;
}

static uint64_t changes_of(const float *values, uint32_t count)
{
	uint64_t changes = 0;
	float last = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (values[i] != last)
			changes |= UINT64_C(1) << i;
		last = values[i];
	}
	return changes;
}

/* Room for the values that differ, of which there are some. A smaller room that is not to be had is no error. */
static float *make_room(struct mw_series *series, uint64_t changes)
{
	uint32_t capacity = capacity_for((uint32_t)__builtin_popcountll(changes)), old = capacity_of(series);
	float *values;

	if (capacity == old)
		return series->values;
	values = realloc(series->values, capacity * sizeof(*values));
	if (!values)
		return capacity < old ? series->values : NULL;
	series->values = values;
	return values;
}

static struct mw_error *lose_values(struct mw_series *series)
{
	mw_series_deinit(series);
	return mw_error_nomem();
}

/* The step has doubled meanwhile. */
static struct mw_error *rebuild(struct mw_series *series, uint16_t known, uint16_t now, uint64_t bytes)
{
	float values[MW_SERIES_MAX];
	float *room;
	uint32_t next = 0;
	uint64_t changes;

	unpack(series, known, now, bytes, values);
	changes = changes_of(values, passed_of(now));
	if (changes == 0) {
		mw_series_deinit(series);
	} else {
		room = make_room(series, changes);
		if (!room)
			return lose_values(series);
		for (uint32_t i = 0; i < passed_of(now); i++) {
			if (changes >> i & 1)
				room[next++] = values[i];
		}
	}
	series->changes = changes;
	return NULL;
}

struct mw_error *mw_series_catch_up(struct mw_series *series, uint16_t known, const struct mw_series_clock *clock,
				    uint64_t bytes)
{
	uint32_t count = (uint32_t)__builtin_popcountll(series->changes);
	uint32_t doubled = doubled_of(clock->now) - doubled_of(known);
	uint32_t at = doubled < 8 ? passed_of(known) >> doubled : 0;
	float value = (float)bytes, last = count > 0 ? series->values[count - 1] : 0;

	/* Without values all were 0, which they are at the moments of any step. */
	if (doubled > 0 && count > 0)
		return rebuild(series, known, clock->now, bytes);
	/* Where the step has doubled the last moments known may be all there are. */
	if (at < passed_of(clock->now) && value != last) {
		uint64_t changes = series->changes | UINT64_C(1) << at;
		float *room = make_room(series, changes);

		if (!room)
			return lose_values(series);
		room[count] = value;
		series->changes = changes;
	}
	return NULL;
}

void mw_series_read(const struct mw_series *series, uint16_t known, const struct mw_series_clock *clock, uint64_t bytes,
		    uint64_t end_ns, struct mw_track_series *out)
{
	struct mw_series_clock end = *clock;

	if (mw_series_clock_lags(&end, end_ns))
		mw_series_clock_advance(&end, end_ns);
	*out = (struct mw_track_series){
		.begin_ns = end.begin_ns,
		.step_ns = end.step_ns,
		.count = passed_of(end.now),
	};
	unpack(series, known, end.now, bytes, out->bytes);
}

uint64_t mw_series_memory(const struct mw_series *series)
{
	return capacity_of(series) * sizeof(*series->values);
}

struct mw_error *mw_tally_catch_up(struct mw_tally *tally, const struct mw_series_clock *clock)
{
	uint64_t births = tally->impacting.count + tally->transient.count;
	struct mw_error *err = mw_series_catch_up(&tally->series, tally->known, clock, tally->impacting.bytes);
	struct mw_error *second = mw_series_catch_up(&tally->births, tally->known, clock, births);

	tally->known = clock->now;
	if (!err)
		return second;
	mw_error_destroy(second);
	return err;
}
