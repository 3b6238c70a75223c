// SPDX-License-Identifier: MIT
/* storage.c: see storage.h. */
#include "view/storage.h"

#include <math.h>

enum mw_growth_verdict mw_storage_judge(const struct mw_course *course)
{
	double least = course->most / 64, level = 0, last = -1, pause = 0, quiet;
	bool older = course->in->replaced.older.count > 0;
	int rises = 0;

	for (int i = 0; i < course->steps; i++) {
		double at = (i + 1) * course->step;

		if (course->net[i] <= level + least)
			continue;
		/* Where it was born in the window its first storage is a rise too. */
		if (last >= 0 || !older)
			pause = fmax(pause, at - fmax(last, 0));
		last = at;
		level = course->net[i];
		rises++;
	}
	if (rises == 0 || course->fall > course->most * 3 / 4)
		return MW_GROWTH_CHURN;
	/* Many are replaced up to the end, and no more is held. */
	if (mw_course_births_between(course, course->steps * 3 / 4, course->steps) >= LEAST_STEPS &&
	    mw_course_births_between(course, course->steps * 7 / 8, course->steps) >= 4 &&
	    mw_course_late_rise(course, 2) <= RISE * course->mean_late)
		return MW_GROWTH_PLATEAU;
	quiet = course->seconds - last;
	if (pause > 0 && quiet >= QUIET * course->seconds && quiet > PAUSES * pause)
		return MW_GROWTH_PLATEAU;
	/* Replaced once is not again and again, whatever else came with it. */
	if (rises < (older ? 2 : 3) || course->in->replaced.larger < 2 || (rises < 3 && quiet > MARGIN * pause))
		return MW_GROWTH_TOO_SHORT;
	/* A buffer that is made as large as is needed just then. */
	if (course->fall > 0 && course->in->impacting.count == 1 &&
	    (course->in->replaced.count - course->in->replaced.larger) * 8 > course->in->replaced.count)
		return MW_GROWTH_TOO_SHORT;
	return MW_GROWTH_CONTAINER;
}

bool mw_storage_is_built_larger(const struct mw_course *course)
{
	const struct mw_verdict_input *in = course->in;
	double level[STEPS] = {0}, least = INFINITY, most = 0;
	struct mw_verdict_line line;
	int end = course->steps - 1;

	/* Of a handful of sampled blocks that is not seen. */
	if (in->samples > 0 || in->impacting.count > 4 || in->transient.count < 16)
		return false;
	for (int i = 1; i < end; i++) {
		level[i] = fmax(fmax(course->net[i - 1], course->net[i]), course->net[i + 1]);
		least = fmin(least, level[i]);
		most = fmax(most, level[i]);
	}
	line = mw_verdict_fit(level, 1, end, course->step);
	return least > most / 4 && line.steadiness >= STEADY && line.slope * course->seconds > FLAT_NOISE * most &&
	       mw_verdict_fit(level, course->steps / 2, end, course->step).slope >= SUSTAINED * line.slope;
}

double mw_storage_larger_each_time(const struct mw_course *course)
{
	const struct mw_verdict_input *in = course->in;
	double level[STEPS] = {0}, most = 0;
	struct mw_verdict_line line;
	int first = -1, last = -1, seen = 0, both = 0;

	if (in->samples > 0 || in->impacting.count != 1 || in->transient.count < 16)
		return 0;
	for (int i = 0; i < course->steps; i++) {
		double bytes = (double)in->level.bytes[i];

		/* For a moment there are the old and the new: here, or when the first was seen. */
		if (first >= 0 && bytes > MARGIN * level[i - 1]) {
			both++;
		} else if (bytes > course->block / 2) {
			if (first >= 0 && MARGIN * bytes < level[i - 1]) {
				first = -1;
				seen = both = 0;
				most = 0;
			}
			first = first < 0 ? i : first;
			last = i;
			seen++;
			most = fmax(most, bytes);
		}
		if (first >= 0)
			level[i] = last == i ? bytes : level[i - 1];
	}
	if (both * 8 > seen)
		return 0;
	if (seen < LEAST_TIMES || first > QUIET * course->steps || last < (1 - QUIET) * course->steps)
		return 0;
	line = mw_verdict_fit(level, first, course->steps, course->step);
	return line.steadiness >= STEADY ? line.slope * course->seconds / most : 0;
}

bool mw_storage_lasts(const struct mw_course *course)
{
	return mw_course_is_container(course->in) && course->net[course->steps * 3 / 4] > course->most / 2;
}
