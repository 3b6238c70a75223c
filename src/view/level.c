// SPDX-License-Identifier: MIT
/* level.c: see level.h. */
#include "view/level.h"

#include <math.h>

#define RISE        (1.0 / 64) /* of the most that was outstanding: less is no rise */
#define LEAST_RISES 3
#define LATE_RISE   (3.0 / 8)  /* of the most: by that it has risen since the middle */
#define LAST_RISE   (1.0 / 16) /* of the most: since the last quarter began */
#define SMALL_FALL  (1.0 / 8)  /* of the most */

void mw_series_add(struct mw_track_series *sum, const struct mw_track_series *other)
{
	if (!sum->count)
		*sum = *other;
	else
		for (uint32_t i = 0; i < sum->count && i < other->count; i++)
			sum->bytes[i] += other->bytes[i];
}

static void fit(const struct mw_track_series *series, uint32_t first, struct mw_level_line *out)
{
	uint32_t count = series->count - first;
	double n = count, step = (double)series->step_ns / 1e9;
	double mean_t = 0, mean_b = 0, tt = 0, tb = 0, bb = 0;

	for (uint32_t i = first; i < series->count; i++) {
		mean_t += i * step / n;
		mean_b += (double)series->bytes[i] / n;
	}
	for (uint32_t i = first; i < series->count; i++) {
		double t = i * step - mean_t, b = (double)series->bytes[i] - mean_b;

		tt += t * t;
		tb += t * b;
		bb += b * b;
	}
	*out = (struct mw_level_line){.slope = tt > 0 ? tb / tt : 0, .steadiness = 1};
	/* Values that do not change lie on their line. */
	if (tt > 0 && bb > 0)
		out->steadiness = fmin(tb * tb / (tt * bb), 1);
	if (tt > 0 && count > 2)
		out->error = sqrt(fmax(bb - tb * out->slope, 0) / (n - 2) / tt);
}

void mw_level_find(const struct mw_track_series *series, struct mw_level *out)
{
	*out = (struct mw_level){.values = series->count};
	for (uint32_t i = 0; i < series->count; i++) {
		out->most = fmax(out->most, (double)series->bytes[i]);
		out->fall = fmax(out->fall, out->most - (double)series->bytes[i]);
	}
	for (uint32_t part = 0; part < MW_LEVEL_PARTS; part++) {
		uint32_t first = series->count * part / MW_LEVEL_PARTS,
			 end = series->count * (part + 1) / MW_LEVEL_PARTS;

		for (uint32_t i = first; i < end; i++)
			if (i == first || (double)series->bytes[i] < out->least[part])
				out->least[part] = (double)series->bytes[i];
	}
	fit(series, 0, &out->whole);
	fit(series, series->count / 2, &out->late);
}

bool mw_level_rises(const struct mw_level *level)
{
	const double *least = level->least, end = least[MW_LEVEL_PARTS - 1];
	double before = 0;
	int rises = 0;

	for (int part = 0; part < MW_LEVEL_PARTS; part++) {
		rises += least[part] > before + RISE * level->most;
		before = least[part];
	}
	return rises >= LEAST_RISES && level->fall <= SMALL_FALL * level->most &&
	       end - least[MW_LEVEL_PARTS / 2 - 1] >= LATE_RISE * level->most &&
	       end - least[MW_LEVEL_PARTS * 3 / 4 - 1] >= LAST_RISE * level->most;
}
