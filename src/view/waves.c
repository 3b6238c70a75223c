// SPDX-License-Identifier: MIT
/* waves.c: see waves.h. */
#include "view/waves.h"

#include <math.h>

/* Where a level falls, as blocks go together. */
struct falls {
	int count, first, last; /* steps in which the first and the last end */
	bool ever_higher;       /* each ends higher than the one before */
	double range;           /* of the level */
};

/* Falls by that share of the range, and by so many bytes, within two steps. */
static void find_falls(const double *values, int steps, double share, double least, struct falls *out)
{
	double high = 0, low = 0;

	*out = (struct falls){.ever_higher = true};
	for (int i = 0; i < steps; i++) {
		high = fmax(high, values[i]);
		low = fmin(low, values[i]);
	}
	out->range = high - low;
	for (int i = 0; i < steps; i++) {
		if ((i >= 2 ? values[i - 2] : 0) - values[i] <= fmax(share * out->range, least))
			continue;
		while (i + 1 < steps && values[i + 1] < values[i])
			i++;
		out->ever_higher &= !out->count || values[i] > values[out->last];
		out->last = i;
		if (!out->count++)
			out->first = i;
		i++;
	}
}

/* It falls again and again, and the next time is not overdue. */
static bool keeps_falling(const struct falls *falls, int steps)
{
	return falls->count >= 2 && steps - falls->last <= MARGIN * (falls->last - falls->first) / (falls->count - 1);
}

/* The level rises and is let go, again and again, to where it was. */
static bool is_let_go(const struct mw_course *course)
{
	struct falls falls;

	find_falls(course->net, course->steps, 0.5, 0, &falls);
	return keeps_falling(&falls, course->steps) &&
	       fabs(course->net[falls.last] - course->net[falls.first]) <= BACK * falls.range;
}

bool mw_waves_have_let_go(const struct mw_course *course)
{
	bool young = course->in->active - course->in->oldest <= MARGIN * course->longest_of_all;

	return course->emptied || ((course->mortal || (!course->settled.count && young)) && is_let_go(course));
}

/* Some of what comes outlives the waves, at any time until the last: no mere batch that a wave has spared. */
static bool is_always_kept(const struct mw_course *course, const struct falls *falls)
{
	int run = 0, longest = 0;

	for (int i = 0; i < falls->last; i++) {
		run = course->in->kept[i].count ? 0 : run + 1;
		longest = run > longest ? run : longest;
	}
	return longest < QUIET * course->steps;
}

enum mw_waves mw_waves_judge(const struct mw_course *course)
{
	const double *all = course->in->sizes.net;
	double step = 0, rise;
	struct falls falls;

	if (!mw_course_makes_sizes(course->in))
		return MW_WAVES_NONE;
	for (int i = 0; i < course->steps; i++)
		step = fmax(step, mw_course_births_between(course, i, i + 1) * course->block *
					  mw_course_usable_share(course->in));
	find_falls(all, course->steps, WAVE, 3 * step, &falls);
	if (falls.count < 2)
		return MW_WAVES_NONE;
	rise = all[falls.last] - all[falls.first];
	if (rise > 2 * step && falls.count >= 4 && falls.ever_higher)
		return is_always_kept(course, &falls) ? MW_WAVES_RISING : MW_WAVES_UNCLEAR;
	if (rise > 2 * step)
		return MW_WAVES_HIGHER;
	/* Where hardly any is older, or none outlives a wave, the stack's own blocks tell more. */
	if (mw_course_older_share(course->in) < SOME_OLDER || course->wave >= 0)
		return MW_WAVES_NONE;
	return keeps_falling(&falls, course->steps) && falls.last - falls.first >= course->steps / 2 &&
			       rise <= (falls.count >= 4 ? step / 2 : 0) &&
			       -rise <= FLAT_NOISE * step * (falls.last - falls.first)
		       ? MW_WAVES_LEVEL
		       : MW_WAVES_UNCLEAR;
}

bool mw_waves_are_one(const struct mw_course *course)
{
	const double *older = course->in->sizes.older, *all = course->in->sizes.net;
	double most = 0;

	/* What goes while as many come was in flight, and is no wave. */
	for (int i = 0; i < course->steps; i++)
		most = fmax(most, fmin(older[i] - (i >= 2 ? older[i - 2] : 0), (i >= 2 ? all[i - 2] : 0) - all[i]));
	return mw_course_makes_sizes(course->in) &&
	       most * 2 >= (double)course->in->impacting.bytes * mw_course_usable_share(course->in);
}
