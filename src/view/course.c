// SPDX-License-Identifier: MIT
/* course.c: see course.h. */
#include "view/course.h"

#include <math.h>

/*
 * The error of a slope where values are not independent of those before them. What strays from the line and comes back
 * (blocks in flight) is a series of the first order. What is far from it for long is a walk: as many blocks go as come, but
 * chance adds up.
 */
static double dependent_error(const double *values, int first, int end, double step, const struct mw_verdict_line *line)
{
	double n = end - first, mean = 0, squares = 0, products = 0, walk = 0, last = 0, alike;

	for (int i = first; i < end; i++)
		mean += values[i] / n;
	for (int i = first; i < end; i++) {
		double off = values[i] - mean - line->slope * step * (i - (first + end - 1) / 2.0);

		squares += off * off;
		if (i > first) {
			products += off * last;
			walk += (off - last) * (off - last);
		}
		last = off;
	}
	alike = products / squares;
	/* Of few values it comes out too small. */
	alike += (2 + 4 * alike) / n;
	if (alike > WALK)
		return fmax(line->error, sqrt(1.2 * walk) / (n * step));
	return line->error * (alike > 0 ? sqrt((1 + alike) / (1 - alike)) : 1);
}

struct mw_verdict_line mw_verdict_fit(const double *values, int first, int end, double step)
{
	double n = end - first, mean_t = 0, mean_v = 0, tt = 0, tv = 0, vv = 0;
	struct mw_verdict_line line = {.steadiness = 1};

	for (int i = first; i < end; i++) {
		mean_t += i * step / n;
		mean_v += values[i] / n;
	}
	for (int i = first; i < end; i++) {
		double t = i * step - mean_t, v = values[i] - mean_v;

		tt += t * t;
		tv += t * v;
		vv += v * v;
	}
	if (tt > 0)
		line.slope = tv / tt;
	/* Values that do not change lie on their line. */
	if (tt > 0 && vv > 0)
		line.steadiness = fmin(tv * tv / (tt * vv), 1);
	if (tt > 0 && n > 2)
		line.error = sqrt(fmax(vv - tv * line.slope, 0) / (n - 2) / tt);
	if (n > 2 && line.error > 0)
		line.error = dependent_error(values, first, end, step, &line);
	return line;
}

double mw_course_births_between(const struct mw_course *course, int first, int end)
{
	const float *births = course->in->births.bytes;

	if (end <= first)
		return 0;
	return (double)births[end - 1] - (first > 0 ? (double)births[first - 1] : 0);
}

double mw_course_kept_between(const struct mw_course *course, int first, int end)
{
	double sum = 0;

	for (int i = first; i < end; i++)
		sum += (double)course->in->kept[i].count;
	return sum;
}

/* Nearly each block takes the place of a smaller one: many buffers, each of which grows. */
static bool is_ever_larger(const struct mw_verdict_input *in)
{
	return in->replaced.count * 8 >= in->size.count * 7 && in->replaced.larger * 16 >= in->replaced.count * 15 &&
	       in->transient.count * 4 >= in->impacting.count &&
	       (double)in->impacting.bytes * (double)in->transient.count >
		       LITTLE_LARGER * (double)in->transient.bytes * (double)in->impacting.count;
}

bool mw_course_is_container(const struct mw_verdict_input *in)
{
	uint64_t gone = in->transient.count + in->replaced.older.count;
	double all = (double)(in->size.bytes + in->replaced.older.bytes) /
		     (double)(in->size.count + in->replaced.older.count);

	/* Blocks of sizes that differ, of which some stay, are no storage that grows: what is there now is larger. */
	if (in->impacting.count > 4 && (double)in->impacting.bytes < LARGER * all * (double)in->impacting.count &&
	    !is_ever_larger(in))
		return false;
	/* Most of what was begun is gone. */
	if (in->size.count > in->replaced.count + 2 &&
	    in->size.count - in->replaced.count >= ENDED * (in->impacting.count + 1))
		return false;
	return in->replaced.count >= 1 && in->replaced.count * 2 >= gone &&
	       in->replaced.count * 2 + 2 >= in->size.count && in->replaced.larger * 4 >= in->replaced.count * 3;
}

/* --- levels ---------------------------------------------------------------------------------------------- */

/* Of three values: a moment between a free and the allocation that follows is no fall. */
static double middle_of(double a, double b, double c)
{
	return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

double mw_course_usable_share(const struct mw_verdict_input *in)
{
	return in->impacting.bytes ? fmax(in->sizes.usable / (double)in->impacting.bytes, 1) : 1;
}

bool mw_course_makes_sizes(const struct mw_verdict_input *in)
{
	return in->sizes.known && in->sizes.born > 0 &&
	       (double)in->size.bytes * mw_course_usable_share(in) >= DOMINANT * in->sizes.born;
}

double mw_course_older_share(const struct mw_verdict_input *in)
{
	return in->level.count
		       ? in->sizes.older[in->level.count - 1] / (double)in->size.bytes / mw_course_usable_share(in)
		       : 0;
}

bool mw_course_is_replaced_known(const struct mw_verdict_input *in)
{
	return in->replaced.older.count && in->replaced.ambiguous * 8 <= in->replaced.older.count &&
	       !(mw_course_makes_sizes(in) && mw_course_older_share(in) > 2 * OWN_OLDER);
}

/*
 * Are most blocks that come in these sizes the stack's? Then those from before the window that go were its own as well,
 * unless so many go that they can't be: something else is shrinking.
 */
static bool owns_sizes(const struct mw_verdict_input *in)
{
	return mw_course_makes_sizes(in) && mw_course_older_share(in) <= OWN_OLDER && !mw_course_is_container(in) &&
	       (!mw_course_is_replaced_known(in) ||
		in->sizes.older[in->level.count - 1] >= (double)in->replaced.older.bytes);
}

double mw_course_late_rise(const struct mw_course *course, double sigmas)
{
	return (course->late.slope + sigmas * course->late.error) * course->seconds / 2;
}

bool mw_course_replaces_older(const struct mw_course *course)
{
	double came = mw_course_births_between(course, course->steps / 2, course->steps) * course->block;

	return course->inclusive &&
	       course->own_rise - mw_course_late_rise(course, 0) > fmax(fabs(course->own_rise) / 2, FLAT_NOISE * came);
}

/* The error of a slope between two steps where blocks come at random, and as many go that came so long before. */
static double chance_error(const struct mw_course *course, int first, int end)
{
	double n = end - first, squares = 0;

	/* From one step to the next: twice the chance of a step, which is that of what comes and of what goes. */
	for (int i = first + 1; i < end; i++)
		squares +=
			pow(mw_course_births_between(course, i, i + 1) - mw_course_births_between(course, i - 1, i), 2);
	return sqrt(1.2 * squares) * course->block / (n * course->step);
}

bool mw_course_is_in_step(const struct mw_course *course)
{
	double high = course->net[0], low = high, rise, strays = 0, births = 0;
	int last = course->steps - 1;

	if (course->in->size.count < 16)
		return false;
	rise = last > 0 ? (course->net[last] - course->net[0]) / last : 0;
	for (int i = 1; i <= last; i++) {
		high = fmax(high, course->net[i]);
		low = fmin(low, course->net[i]);
		strays += pow(course->net[i] - course->net[i - 1] - rise, 2);
		births += pow(mw_course_births_between(course, i, i + 1) - mw_course_births_between(course, i - 1, i),
			      2) /
			  2;
	}
	return high - low <= 2 * course->block || strays * 4 <= births * course->block * course->block;
}

/* The level at a step less what was replaced of older blocks. */
static double less_replaced(const struct mw_verdict_input *in, bool by_count, int i)
{
	double level = by_count ? (double)in->births.bytes[i] * (double)in->size.bytes / (double)in->size.count
				: (double)in->level.bytes[i];

	return i < (int)in->replaced.series.count ? level - (double)in->replaced.series.bytes[i] : level;
}

/* Is it known by number that about as many older blocks went as came, at any moment, of hundreds? */
static bool is_made_up(const struct mw_verdict_input *in, bool by_count)
{
	double most = MADE_UP * (double)in->impacting.bytes + in->either;

	if (!in->by_count || (double)in->impacting.count * RARE < 4 || !mw_course_is_replaced_known(in) ||
	    mw_course_is_container(in))
		return false;
	for (int i = 0; i < (int)in->level.count; i++)
		if (fabs(less_replaced(in, by_count, i)) > most)
			return false;
	return true;
}

static void find_levels(struct mw_course *course)
{
	const struct mw_verdict_input *in = course->in;
	int late;
	double highest = 0, level[STEPS] = {0};
	bool by_count;

	course->steps = (int)in->level.count;
	late = course->steps - course->steps / 2;
	course->step = (double)in->level.step_ns / 1e9;
	/* Where nearly nothing was freed, by number as well. */
	by_count = in->by_count && in->transient.count * 64 <= in->size.count;
	course->made_up = is_made_up(in, by_count);
	course->inclusive = owns_sizes(in) && !course->made_up;
	course->block = in->size.count ? (double)in->size.bytes / (double)in->size.count : 0;
	for (int i = 0; i < course->steps; i++) {
		if (course->inclusive)
			course->net[i] = (double)in->level.bytes[i] - in->sizes.older[i] / mw_course_usable_share(in);
		else if (mw_course_is_replaced_known(in))
			course->net[i] = less_replaced(in, by_count, i);
		else
			course->net[i] = (double)in->level.bytes[i];
		if (i >= 2) {
			double middle = middle_of(course->net[i - 2], course->net[i - 1], course->net[i]);

			highest = fmax(highest, middle);
			course->fall = fmax(course->fall, highest - middle);
		}
		if (i >= course->steps / 2) {
			course->mean_late += course->net[i] / late;
			course->own_mean += (double)in->level.bytes[i] / late;
		}
	}
	course->most = highest;
	course->whole = mw_verdict_fit(course->net, 0, course->steps, course->step);
	course->early = mw_verdict_fit(course->net, 0, course->steps / 2, course->step);
	course->late = mw_verdict_fit(course->net, course->steps / 2, course->steps, course->step);
	if (in->lifetimes && in->lifetimes->count) {
		course->shortest = (double)in->lifetimes->min / 1e9;
		course->longest = (double)mw_histogram_quantile(in->lifetimes, 99) / 1e9;
		course->longest_of_all = (double)in->lifetimes->max / 1e9;
		course->alike =
			course->shortest >= ALIKE * course->longest && course->longest > LONG_LIVED * course->seconds;
	}
	course->mostly_freed = mw_verdict_mostly_freed(&in->size, &in->transient);
	for (int i = 0; i < course->steps; i++)
		level[i] = (double)in->level.bytes[i];
	course->own_rise =
		mw_verdict_fit(level, course->steps / 2, course->steps, course->step).slope * course->seconds / 2;
	if (course->inclusive && mw_course_older_share(in) >= SOME_OLDER && !mw_course_is_in_step(course)) {
		course->late.error = fmax(course->late.error, chance_error(course, course->steps / 2, course->steps));
		course->whole.error = fmax(course->whole.error, chance_error(course, 0, course->steps));
		course->chance = SIGMAS * course->block *
				 sqrt(mw_course_births_between(course, course->steps / 2, course->steps));
	}
}

bool mw_course_is_flat(const struct mw_course *course, double bytes)
{
	return mw_course_late_rise(course, 0) <= FLAT * bytes + course->block &&
	       mw_course_late_rise(course, 2) <= FLAT_NOISE * bytes + 2 * course->block;
}

bool mw_course_is_rising(const struct mw_course *course, double sigmas, double blocks)
{
	double least = course->all_go ? LEVEL * course->own_mean : RISE * course->mean_late;

	return mw_course_late_rise(course, -sigmas) > fmax(least, blocks * course->block);
}

double mw_course_mean_net(const struct mw_course *course, int first, int end)
{
	double sum = 0;

	for (int i = first; i < end; i++)
		sum += course->net[i];
	return end > first ? sum / (end - first) : 0;
}

bool mw_course_keeps_rising(const struct mw_course *course)
{
	int eighth = course->steps / 8;
	double last = mw_course_mean_net(course, course->steps - eighth, course->steps) -
		      mw_course_mean_net(course, course->steps - 2 * eighth, course->steps - eighth);

	return course->late.slope >= SUSTAINED * course->early.slope &&
	       last >= 0.4 * course->late.slope * course->step * eighth;
}

/* --- what has settled ------------------------------------------------------------------------------------ */

static double age_of_class(uint32_t number)
{
	return exp2(number / 2.0) / 1e9;
}

static void count_ages(struct mw_course *course)
{
	const struct mw_verdict_input *in = course->in;

	double later = 0, each = in->lifetimes_each > 0 ? in->lifetimes_each : 1;

	for (int i = MW_VERDICT_AGES - 1; i >= 0; i--) {
		course->older[i] = course->older[i + 1] + in->ages[i];
		course->outlived[i] = later += in->later[i];
		if (in->transient.count)
			course->outlived[i] +=
				(double)mw_histogram_above(in->lifetimes, (uint64_t)(age_of_class((uint32_t)i) * 1e9)) /
				each;
	}
}

static double find_settle_age(struct mw_course *course)
{
	const struct mw_verdict_input *in = course->in;

	course->settle_class = -1;
	if ((double)in->transient.count * OUTNUMBERED <= course->older[0])
		return 0;
	/* A margin is more than one class, and not more than two. */
	for (int i = 0; i < MW_VERDICT_AGES && course->older[i + 2] > 0; i++)
		if (course->outlived[i] * OUTNUMBERED <= course->older[i + 2]) {
			course->settle_class = i;
			return MARGIN * age_of_class((uint32_t)i);
		}
	/* All are like those that were freed. */
	return fmax(MARGIN * course->longest, in->active - in->oldest);
}

double mw_course_chance_of_few(double count, double mean)
{
	double term = exp(-mean), sum = term;

	for (int i = 1; i <= count && i <= mean; i++)
		sum += term *= mean / i;
	return count >= mean ? 1 : sum;
}

bool mw_course_are_few_by_chance(const struct mw_course *course)
{
	double expected = 0;
	int first = course->settle_class;

	if (first < 0)
		return course->settled.count < 3;
	for (int i = first; i < MW_VERDICT_AGES; i++)
		expected += CLASS_WIDTH / 2 *
			    (course->older[i] + course->older[i + 1] + course->outlived[i] + course->outlived[i + 1]);
	return mw_course_chance_of_few(course->outlived[first], expected) > CHANCE / 20;
}

bool mw_course_is_queue(const struct mw_course *course)
{
	double freed = (double)course->in->transient.count;
	int oldest = (int)(course->in->oldest / course->step);

	return freed >= 2 && oldest > 0 &&
	       mw_course_births_between(course, 0, oldest < course->steps ? oldest : course->steps) >=
		       fmax(2, 0.8 * freed);
}

/* Of the births in [first, end) none but a few that lived as long as others are left. */
static bool find_mortal(const struct mw_course *course)
{
	const struct mw_verdict_input *in = course->in;
	double all = mw_course_births_between(course, 0, course->settled_steps), expected, born, kept;
	int quarter = 0, half;

	if (!in->transient.count)
		return false;
	/* Where blocks go together none can have gone since. */
	if (in->active - in->oldest > MARGIN * course->longest_of_all)
		return course->last_drop - in->oldest <= MARGIN * course->longest_of_all && mw_course_is_queue(course);
	while (quarter < course->settled_steps && mw_course_births_between(course, 0, quarter) < all / 4)
		quarter++;
	half = quarter;
	while (half < course->settled_steps && mw_course_births_between(course, 0, half) < all / 2)
		half++;
	born = mw_course_births_between(course, quarter, half);
	kept = mw_course_kept_between(course, 0, quarter);
	expected = born > 0 ? mw_course_births_between(course, 0, quarter) *
				      mw_course_kept_between(course, quarter, half) / born
			    : 0;
	if (kept < 0.6 * expected && expected - kept > SIGMAS * sqrt(expected))
		return true;
	return mw_course_is_queue(course);
}

/* Blocks that go together, as a collector or the end of a batch lets them go: what was born since has not met the next. */
static void find_wave(struct mw_course *course)
{
	const struct mw_verdict_input *in = course->in;
	double fallen = 0, share = 0, before, kept, least = (double)in->transient.bytes / 16;
	int last = 0;

	course->wave = -1;
	course->last_drop = INFINITY;
	for (int i = 1; i <= course->steps; i++) {
		double level = i < course->steps ? (double)in->level.bytes[i] : (double)in->impacting.bytes;
		double drop = (double)in->level.bytes[i - 1] - level;

		fallen += fmax(drop, 0);
		if (drop > 2 * course->block && drop >= least) {
			last = i;
			share = drop / (drop + level);
		}
	}
	if (!last || fallen < WAVES * (double)in->transient.bytes)
		return;
	course->last_drop = last * course->step;
	before = mw_course_births_between(course, 0, last);
	kept = mw_course_kept_between(course, 0, last);
	/*
	 * As long again as blocks got old is no long time for the next. What comes no more after it was freed at the
	 * program's end.
	 */
	course->emptied = in->impacting.count && before >= 16 &&
			  course->longest_of_all >= LONG_LIVED * course->seconds &&
			  course->seconds - last * course->step <= 2 * course->longest_of_all &&
			  (kept == 0 || (last == course->steps && share > 0.5 && mw_course_is_queue(course)));
	if (kept <= before / 64)
		course->wave = last * course->step;
}

/* Where all that are freed get nearly as old, some that are older than that by more have outlasted the rest. */
static bool find_outlasted(struct mw_course *course)
{
	const struct mw_verdict_input *in = course->in;
	double limit = 2 * course->longest_of_all - course->shortest + 2 * course->step;
	int end = (int)((in->active - limit) / course->step);

	if (in->transient.count < 16 || course->shortest < NEARLY_ALIKE * course->longest_of_all ||
	    (course->settle_age > 0 && limit >= course->settle_age) || end <= 0 ||
	    mw_course_kept_between(course, 0, end) < 3)
		return false;
	course->settle_age = limit;
	return true;
}

/* Nothing is left of what could settle, and there are not more blocks to one that comes than before: no queue. */
static bool find_all_go(const struct mw_course *course)
{
	const struct mw_verdict_input *in = course->in;
	int third = course->steps / 3;
	double there[2] = {0}, births[2];

	if (course->settled.count || course->settle_age <= 0 || course->could < LEAST_SETTLED ||
	    in->transient.count < 16 ||
	    pow(1 - RARE, mw_course_births_between(course, 0, course->settled_steps)) > CHANCE)
		return false;
	for (int i = 0; i < 2; i++) {
		int first = course->steps - (2 - i) * third;

		births[i] = mw_course_births_between(course, first, first + third);
		for (int j = first; j < first + third; j++)
			there[i] += (double)in->level.bytes[j];
	}
	return births[0] > 0 && births[1] > 0 && there[1] / births[1] <= LARGER * there[0] / births[0];
}

static void find_settled(struct mw_course *course)
{
	const struct mw_verdict_input *in = course->in;
	double all = mw_course_births_between(course, 0, course->steps);

	count_ages(course);
	find_wave(course);
	course->settle_age = find_settle_age(course);
	course->outlasted = find_outlasted(course);
	if (course->wave >= 0)
		course->settle_age = fmax(course->settle_age, in->active - course->wave);
	course->settled_steps = (int)((in->active - course->settle_age) / course->step + 1e-6);
	if (course->settled_steps > course->steps || course->settle_age == 0)
		course->settled_steps = course->steps;
	if (course->settled_steps < 0)
		course->settled_steps = 0;
	course->could = all > 0 ? mw_course_births_between(course, 0, course->settled_steps) / all : 1;
	for (int i = 0; i < course->settled_steps; i++) {
		course->settled.count += in->kept[i].count;
		course->settled.bytes += in->kept[i].bytes;
	}
	for (int i = course->steps / 2; i < course->settled_steps; i++)
		course->late_bytes += (double)in->kept[i].bytes;
	/* The rest of the time after the last moment. */
	if (course->settle_age == 0) {
		course->settled.count += in->kept[course->steps].count;
		course->settled.bytes += in->kept[course->steps].bytes;
	}
	course->mortal = !course->outlasted && find_mortal(course);
	course->all_go = find_all_go(course);
}

void mw_course_find(struct mw_course *course)
{
	find_levels(course);
	find_settled(course);
}
