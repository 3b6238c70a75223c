/* SPDX-License-Identifier: MIT */
/* level.h: how much was outstanding over time: its line, its floor, its rise and fall. */
#ifndef MW_VIEW_LEVEL_H
#define MW_VIEW_LEVEL_H

#include "track/track.h"

#define MW_LEVEL_PARTS 8

/* The line that fits values best. */
struct mw_level_line {
	double slope;      /* bytes a second */
	double error;      /* standard error of the slope */
	double steadiness; /* which share of the values' variance the line explains; 1 where they don't vary */
};

struct mw_level {
	uint32_t values;
	double most;                      /* of all values, bytes */
	double least[MW_LEVEL_PARTS];     /* of each equal part of the time; 0 without values */
	double fall;                      /* the most by which a value lies below an earlier one */
	struct mw_level_line whole, late; /* of all values, of those of the second half */
};

void mw_level_find(const struct mw_track_series *series, struct mw_level *out);
/* Does it rise, to the end and without falling back? */
bool mw_level_rises(const struct mw_level *level);
/* Add one series to another of the same interval. */
void mw_series_add(struct mw_track_series *sum, const struct mw_track_series *other);

#endif
