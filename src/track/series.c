// SPDX-License-Identifier: MIT
/* series.c: bytes at moments a step apart (series.h). */
#include "track/series.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_STEP_NS UINT64_C(1000000)
#define GROW_BY       4U /* values */

_Static_assert(MW_SERIES_MAX == 64, "a bit of mw_series.changes for each value");

static void set_next(struct mw_series_clock *clock)
{
	uint64_t moment = (uint64_t)clock->now.passed + 1;

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

	while (elapsed / clock->step_ns > MW_SERIES_MAX) {
		clock->step_ns *= 2;
		clock->now.doubled++;
	}
	clock->now.passed = (uint8_t)(elapsed / clock->step_ns);
	set_next(clock);
}

static uint32_t capacity_of(uint64_t changes)
{
	uint32_t count = (uint32_t)__builtin_popcountll(changes);

	return (count + GROW_BY - 1) / GROW_BY * GROW_BY;
}

void mw_series_deinit(struct mw_series *series)
{
	free(series->values);
	*series = (struct mw_series){0};
}

/* All values up to the moment `now`. */
static void unpack(const struct mw_series *series, struct mw_series_moment now, uint64_t bytes, float *values)
{
	uint32_t count = series->known.passed, next = 0;
	uint32_t doubled = (uint32_t)now.doubled - series->known.doubled;
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
	while (count < now.passed)
		values[count++] = (float)bytes;
}

static uint64_t changes_of(const float *values, uint32_t count)
{
	uint64_t changes = 0;
	float last = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (memcmp(&values[i], &last, sizeof(last)) != 0)
			changes |= UINT64_C(1) << i;
		last = values[i];
	}
	return changes;
}

/* Make room for the values that differ. A smaller room that is not to be had is no error: the larger serves on. */
static bool make_room(struct mw_series *series, uint64_t changes)
{
	uint32_t capacity = capacity_of(changes), old = capacity_of(series->changes);
	float *values;

	if (capacity == old)
		return true;
	if (capacity == 0) {
		free(series->values);
		series->values = NULL;
		return true;
	}
	values = realloc(series->values, capacity * sizeof(*values));
	if (values)
		series->values = values;
	return values || capacity < old;
}

struct mw_error *mw_series_catch_up(struct mw_series *series, const struct mw_series_clock *clock, uint64_t bytes)
{
	float values[MW_SERIES_MAX];
	uint32_t next = 0;
	uint64_t changes;

	if (!series->values && bytes == 0) {
		series->known = clock->now;
		return NULL;
	}
	unpack(series, clock->now, bytes, values);
	changes = changes_of(values, clock->now.passed);
	if (!make_room(series, changes)) {
		mw_series_deinit(series);
		series->known = clock->now;
		return mw_error_nomem();
	}
	for (uint32_t i = 0; i < clock->now.passed; i++) {
		if (changes >> i & 1)
			series->values[next++] = values[i];
	}
	series->changes = changes;
	series->known = clock->now;
	return NULL;
}

void mw_series_read(const struct mw_series *series, const struct mw_series_clock *clock, uint64_t bytes,
		    uint64_t end_ns, struct mw_track_series *out)
{
	struct mw_series_clock end = *clock;

	mw_series_clock_move(&end, end_ns);
	*out = (struct mw_track_series){
		.begin_ns = end.begin_ns,
		.step_ns = end.step_ns,
		.count = end.now.passed,
	};
	unpack(series, end.now, bytes, out->bytes);
}

uint64_t mw_series_memory(const struct mw_series *series)
{
	return capacity_of(series->changes) * sizeof(*series->values);
}
