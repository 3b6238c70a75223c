// SPDX-License-Identifier: MIT
/* verdict.c: see verdict.h, which has the rules in words and their order. */
#include "view/verdict.h"

#include <math.h>

#define STEPS         MW_SERIES_MAX
#define LEAST_S       1.0
#define LEAST_STEPS   16
#define MARGIN        1.5        /* what is that much older than freed ones were is kept */
#define OUTNUMBERED   2          /* freed after two thirds of an age, to one that outlived it */
#define LEAST_SETTLED (1.0 / 4)  /* of births: fewer that could settle say nothing */
#define FEW           (1.0 / 16) /* of what settled */
#define ONE_OFF       (1.0 / 16) /* of the window */
#define ONE_OFF_QUIET 0.6        /* of the window */
#define QUIET         (1.0 / 4)  /* of the window */
#define CHANCE        0.02       /* that births at random leave so long a pause */
#define LONG_LIVED    (1.0 / 8)  /* of the window */
#define FLAT          0.05       /* of the bytes that came in the second half: the net level rises by less */
#define FLAT_NOISE    0.25       /* the same, the error of that included */
#define RISE          0.1        /* of the level: less over the second half is no rise */
#define LEVEL         0.2        /* of the level: less, the error included, can be no rise */
#define SUSTAINED     0.6        /* of the slope of the first half */
#define SLOWER        0.7        /* births of the last third, to one of the first */
#define ENDED         4          /* begun, to one storage that is there */
#define LARGER        1.3        /* the mean size of storage that is there, to that of all that was */
#define CEASED        (1.0 / 5)
#define DOMINANT      (2.0 / 3) /* of the bytes that come in these sizes */
#define OWN_OLDER     1.25      /* of the bytes that come: what goes of older blocks */
#define EVEN_BIRTHS   1.15      /* in the second half, to one in the first */
#define EVEN_FREES    1.1
#define EXACT         0.01 /* of the bytes that are added */
#define FASTER        1.5
#define SIGMAS        3.0
#define WALK          0.5 /* correlation of what values are off the line with the value before */
#define ALIKE         0.5 /* the shortest lifetime, of nearly the longest */

/* What the input comes to. */
struct course {
	const struct mw_verdict_input *in;
	double seconds, step;
	int steps;
	double net[STEPS];
	struct mw_verdict_line whole, early, late; /* of net: all, the first and the second half */
	double own_rise, own_mean;                 /* of the level, not net, over the second half */
	bool inclusive;                            /* net: of the stack's blocks from before the window as well */
	double late_bytes;                         /* settled, and born in the second half */
	double most, fall, mean_late;              /* of net */
	double block;                              /* mean size of a block */
	double settle_age;
	struct mw_amount settled;
	int settled_steps; /* births of these could have settled */
	double could;      /* share of births that could have settled */
	bool mortal;
	double shortest, longest; /* lifetimes: the shortest, 99 % of all */
	double longest_of_all;
	bool alike; /* they hardly differ */
};

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

static double births_between(const struct course *course, int first, int end)
{
	const float *births = course->in->births.bytes;

	if (end <= first)
		return 0;
	return (double)births[end - 1] - (first > 0 ? (double)births[first - 1] : 0);
}

static double kept_between(const struct course *course, int first, int end)
{
	double sum = 0;

	for (int i = first; i < end; i++)
		sum += (double)course->in->kept[i].count;
	return sum;
}

static bool is_container(const struct mw_verdict_input *in)
{
	uint64_t gone = in->transient.count + in->replaced.older.count;

	/* Blocks of sizes that differ, of which some stay, are no storage that grows: what is there now is larger. */
	if (in->impacting.count > 4 && (double)in->impacting.bytes * (double)in->size.count <
					       LARGER * (double)in->size.bytes * (double)in->impacting.count)
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

/* Usable bytes, to one that was asked for. */
static double usable_share(const struct mw_verdict_input *in)
{
	return in->impacting.bytes ? fmax(in->sizes.usable / (double)in->impacting.bytes, 1) : 1;
}

/* Most blocks that come in these sizes are the stack's. */
static bool makes_sizes(const struct mw_verdict_input *in)
{
	return in->sizes.known && in->sizes.born > 0 &&
	       (double)in->size.bytes * usable_share(in) >= DOMINANT * in->sizes.born;
}

/* So many older blocks of these sizes go, to one byte that comes. */
static double older_share(const struct mw_verdict_input *in)
{
	return in->level.count ? in->sizes.older[in->level.count - 1] / (double)in->size.bytes / usable_share(in) : 0;
}

/* What the stack's blocks took the place of, and not as well another stack's, nor among many that went for nothing. */
static bool is_replaced_known(const struct mw_verdict_input *in)
{
	return in->replaced.older.count && in->replaced.ambiguous * 8 <= in->replaced.older.count &&
	       !(makes_sizes(in) && older_share(in) > 2 * OWN_OLDER);
}

/*
 * Are most blocks that come in these sizes the stack's? Then those from before the window that go were its own as well,
 * unless so many go that they can't be: something else is shrinking.
 */
static bool owns_sizes(const struct mw_verdict_input *in)
{
	return makes_sizes(in) && older_share(in) <= OWN_OLDER && !is_container(in) &&
	       (!is_replaced_known(in) || in->sizes.older[in->level.count - 1] >= (double)in->replaced.older.bytes);
}

/* What the net level rises by over the second half; `sigmas` errors more or less. */
static double late_rise(const struct course *course, double sigmas)
{
	return (course->late.slope + sigmas * course->late.error) * course->seconds / 2;
}

/* Most of what is added in the second half makes up for older blocks that go. */
static bool replaces_older(const struct course *course)
{
	double came = births_between(course, course->steps / 2, course->steps) * course->block;

	return course->inclusive &&
	       course->own_rise - late_rise(course, 0) > fmax(fabs(course->own_rise) / 2, FLAT_NOISE * came);
}

/* The error of a slope between two steps where blocks come at random, and as many go that came so long before. */
static double chance_error(const struct course *course, int first, int end)
{
	double n = end - first, squares = 0;

	/* From one step to the next: twice the chance of a step, which is that of what comes and of what goes. */
	for (int i = first + 1; i < end; i++)
		squares += pow(births_between(course, i, i + 1) - births_between(course, i - 1, i), 2);
	return sqrt(1.2 * squares) * course->block / (n * course->step);
}

static void find_levels(struct course *course)
{
	const struct mw_verdict_input *in = course->in;
	int late;
	double highest = 0, level[STEPS] = {0};

	course->steps = (int)in->level.count;
	late = course->steps - course->steps / 2;
	course->step = (double)in->level.step_ns / 1e9;
	course->inclusive = owns_sizes(in);
	for (int i = 0; i < course->steps; i++) {
		course->net[i] = (double)in->level.bytes[i];
		if (course->inclusive)
			course->net[i] -= in->sizes.older[i] / usable_share(in);
		else if (is_replaced_known(in) && i < (int)in->replaced.series.count)
			course->net[i] -= (double)in->replaced.series.bytes[i];
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
	course->block = in->size.count ? (double)in->size.bytes / (double)in->size.count : 0;
	for (int i = 0; i < course->steps; i++)
		level[i] = (double)in->level.bytes[i];
	course->own_rise =
		mw_verdict_fit(level, course->steps / 2, course->steps, course->step).slope * course->seconds / 2;
	if (replaces_older(course)) {
		course->late.error = fmax(course->late.error, chance_error(course, course->steps / 2, course->steps));
		course->whole.error = fmax(course->whole.error, chance_error(course, 0, course->steps));
	}
}

/* The net level does not rise, against `bytes` that came in the second half. */
static bool is_flat(const struct course *course, double bytes)
{
	return late_rise(course, 0) <= FLAT * bytes + course->block &&
	       late_rise(course, 2) <= FLAT_NOISE * bytes + 2 * course->block;
}

static bool is_rising(const struct course *course, double sigmas, double blocks)
{
	return late_rise(course, -sigmas) > fmax(RISE * fmax(course->mean_late, 0), blocks * course->block);
}

static double mean_net(const struct course *course, int first, int end)
{
	double sum = 0;

	for (int i = first; i < end; i++)
		sum += course->net[i];
	return end > first ? sum / (end - first) : 0;
}

/* As steep as ever up to the end. */
static bool keeps_rising(const struct course *course)
{
	int eighth = course->steps / 8;
	double last = mean_net(course, course->steps - eighth, course->steps) -
		      mean_net(course, course->steps - 2 * eighth, course->steps - eighth);

	return course->late.slope >= SUSTAINED * course->early.slope &&
	       last >= 0.4 * course->late.slope * course->step * eighth;
}

/* --- what has settled ------------------------------------------------------------------------------------ */

static double age_of_class(uint32_t number)
{
	return exp2(number / 2.0) / 1e9;
}

static double survivors_older(const struct mw_verdict_input *in, double age)
{
	double sum = 0;

	for (uint32_t i = 0; i < MW_VERDICT_AGES; i++)
		if (age_of_class(i) >= age)
			sum += in->ages[i];
	return sum;
}

static double find_settle_age(const struct course *course)
{
	const struct mw_verdict_input *in = course->in;
	double freed = (double)in->transient.count, kept = survivors_older(in, 0);

	if (freed * OUTNUMBERED <= kept)
		return 0;
	for (uint32_t i = 0; i < MW_VERDICT_AGES; i++) {
		double age = age_of_class(i), older = survivors_older(in, MARGIN * age);

		if (older == 0)
			break;
		if ((double)mw_histogram_above(in->lifetimes, (uint64_t)(age * 1e9)) * OUTNUMBERED <= older)
			return MARGIN * age;
	}
	/* All are like those that were freed. */
	return fmax(MARGIN * course->longest, in->active - in->oldest);
}

/* First in, first out: nothing is left of what was born before the oldest survivor, and nothing went that is younger. */
static bool is_queue(const struct course *course)
{
	double freed = (double)course->in->transient.count;
	int oldest = (int)(course->in->oldest / course->step);

	return freed >= 2 && oldest > 0 &&
	       births_between(course, 0, oldest < course->steps ? oldest : course->steps) >= fmax(2, 0.8 * freed);
}

/* Of the births in [first, end) none but a few that lived as long as others are left. */
static bool find_mortal(const struct course *course)
{
	const struct mw_verdict_input *in = course->in;
	double all = births_between(course, 0, course->settled_steps), expected, born, kept;
	int quarter = 0, half;

	if (!in->transient.count || in->active - in->oldest > MARGIN * course->longest_of_all)
		return false;
	while (quarter < course->settled_steps && births_between(course, 0, quarter) < all / 4)
		quarter++;
	half = quarter;
	while (half < course->settled_steps && births_between(course, 0, half) < all / 2)
		half++;
	born = births_between(course, quarter, half);
	kept = kept_between(course, 0, quarter);
	expected = born > 0 ? births_between(course, 0, quarter) * kept_between(course, quarter, half) / born : 0;
	if (kept < 0.6 * expected && expected - kept > SIGMAS * sqrt(expected))
		return true;
	return is_queue(course);
}

static void find_settled(struct course *course)
{
	const struct mw_verdict_input *in = course->in;
	double all = births_between(course, 0, course->steps);

	course->settle_age = find_settle_age(course);
	course->settled_steps = (int)((in->active - course->settle_age) / course->step + 1e-6);
	if (course->settled_steps > course->steps || course->settle_age == 0)
		course->settled_steps = course->steps;
	if (course->settled_steps < 0)
		course->settled_steps = 0;
	course->could = all > 0 ? births_between(course, 0, course->settled_steps) / all : 1;
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
	course->mortal = find_mortal(course);
}

/* --- rules ----------------------------------------------------------------------------------------------- */

/*
 * As many come in the second half as in the first, and as many go, which are fewer. Of blocks that all go in the end ever
 * more would, until they are as many as come, and the rise would be slower.
 */
static bool rises_evenly(const struct course *course)
{
	int half = course->steps / 2, all = 2 * half;
	double born[2] = {births_between(course, 0, half) * course->block,
			  births_between(course, half, all) * course->block};
	double gone[2] = {born[0] - course->net[half - 1], born[1] - course->net[all - 1] + course->net[half - 1]};

	if (course->early.slope - course->late.slope > 2 * hypot(course->early.error, course->late.error))
		return false;
	return (course->whole.slope - SIGMAS * course->whole.error) * course->seconds > 4 * course->block &&
	       course->whole.steadiness > 0.5 && born[1] <= EVEN_BIRTHS * born[0] && gone[1] <= EVEN_FREES * gone[0];
}

/* Storage that is replaced by larger storage. */
static enum mw_growth_verdict judge_container(const struct course *course)
{
	double least = course->most / 64, last = -1, before = -1, level = 0, quiet;
	bool older = course->in->replaced.older.count > 0;
	int rises = 0;

	for (int i = 0; i < course->steps; i++) {
		if (course->net[i] <= level + least)
			continue;
		before = last;
		last = (i + 1) * course->step;
		level = course->net[i];
		rises++;
	}
	if (rises == 0 || course->fall > course->most * 3 / 4)
		return MW_GROWTH_CHURN;
	quiet = course->seconds - last;
	/* Where it was born in the window its first storage is a rise too. */
	if (before < 0 && !older)
		before = fmax(last - course->step, 0) - course->step;
	if (before > -INFINITY && (rises > 1 || !older) && quiet >= QUIET * course->seconds &&
	    quiet > 5 * (last - before))
		return MW_GROWTH_PLATEAU;
	return rises < 3 ? MW_GROWTH_TOO_SHORT : MW_GROWTH_CONTAINER;
}

/* Nothing has settled, or nothing stays. */
static enum mw_growth_verdict judge_level(const struct course *course)
{
	if (course->inclusive && rises_evenly(course) && keeps_rising(course))
		return MW_GROWTH_STEADY;
	if (is_rising(course, SIGMAS, 4))
		return keeps_rising(course) && !course->alike && is_queue(course) ? MW_GROWTH_STEADY
										  : MW_GROWTH_TOO_SHORT;
	if (course->fall > 0 && course->fall >= course->most / 2)
		return MW_GROWTH_CHURN;
	return course->longest >= LONG_LIVED * course->seconds ? MW_GROWTH_PLATEAU : MW_GROWTH_CHURN;
}

/* When blocks settled. */
struct pattern {
	double first, last;  /* steps from the first to behind the last in which some did */
	double pause, quiet; /* longest between two of them; from the last to the end of what could settle */
	int busy, bursts;    /* steps in which some did; runs of them */
	double least_pause;  /* between bursts */
	double counts[3];    /* blocks in thirds of the time from the first on */
	double variances[3];
	struct mw_amount in_bursts;
};

static void find_pattern(const struct course *course, struct pattern *out)
{
	const struct mw_amount *kept = course->in->kept;
	double count = (double)course->settled.count, bytes = (double)course->settled.bytes, c = 0, b = 0;
	int end = course->settled_steps, last = -1, start, tail = end;

	*out = (struct pattern){.first = -1, .least_pause = INFINITY};
	/* Few at the end do not count: by blocks and by bytes. */
	while (tail > 0) {
		c += (double)kept[tail - 1].count;
		b += (double)kept[tail - 1].bytes;
		if (c > FEW * count || b > FEW * bytes)
			break;
		tail--;
	}
	for (int i = 0; i < tail; i++) {
		if (!kept[i].count && !kept[i].bytes)
			continue;
		if (out->first < 0)
			out->first = i;
		out->busy++;
		if (last < 0 || i - last > 1) {
			out->bursts++;
			if (last >= 0) {
				out->pause = fmax(out->pause, i - last - 1);
				out->least_pause = fmin(out->least_pause, i - last - 1);
			}
		}
		last = i;
	}
	out->last = last + 1;
	out->quiet = end - (last + 1);
	start = out->first > course->steps / 8.0 ? (int)out->first : 0;
	for (int third = 0; third < 3; third++) {
		int first = start + (end - start) * third / 3, next = start + (end - start) * (third + 1) / 3;
		double squares = 0, sum = 0;

		for (int i = first; i < next; i++) {
			sum += (double)kept[i].count;
			squares += (double)kept[i].count * (double)kept[i].count;
		}
		out->counts[third] = sum;
		/* Blocks that come in bursts are fewer chances than blocks. */
		out->variances[third] = next > first ? fmax(squares - sum * sum / (next - first), sum) : 0;
	}
}

/* Do births of the last third differ from those of the first by that factor, and beyond chance? */
static bool changes(const struct pattern *pattern, double factor)
{
	const double *c = pattern->counts;
	double chance = SIGMAS * sqrt(pattern->variances[0] + pattern->variances[2]);

	if (factor < 1)
		return c[2] < factor * c[0] && c[0] - c[2] > chance && c[1] <= c[0] * 1.05 && c[2] <= c[1] * 1.05;
	return c[2] > factor * c[0] && c[2] - c[0] > chance && c[1] >= c[0] * 0.95 && c[2] >= c[1] * 0.95;
}

static enum mw_growth_verdict judge_settled(const struct course *course)
{
	const struct mw_verdict_input *in = course->in;
	bool mostly = course->settled.bytes * 2 > in->impacting.bytes || !in->impacting.bytes;
	double steps = course->steps;
	struct pattern pattern;
	bool regular;

	find_pattern(course, &pattern);
	if (pattern.last - pattern.first <= fmax(ONE_OFF * steps, 1)) {
		if (pattern.quiet >= ONE_OFF_QUIET * steps)
			return mostly ? MW_GROWTH_ONE_OFF : MW_GROWTH_CHURN;
		return MW_GROWTH_TOO_SHORT;
	}
	if (pattern.quiet >= QUIET * steps && pattern.quiet > 2 * (pattern.pause + 1)) {
		if (pow(1 - pattern.quiet / course->settled_steps, pattern.busy) >= CHANCE)
			return MW_GROWTH_TOO_SHORT;
		return mostly ? MW_GROWTH_PLATEAU : MW_GROWTH_CHURN;
	}
	/* Others go for those that settle. */
	if (course->settle_age > 0 && in->transient.count * OUTNUMBERED >= course->settled.count &&
	    course->longest >= LONG_LIVED * course->seconds && is_flat(course, course->late_bytes))
		return MW_GROWTH_PLATEAU;
	if (changes(&pattern, CEASED))
		return MW_GROWTH_PLATEAU;
	if (changes(&pattern, SLOWER))
		return MW_GROWTH_TOO_SHORT;
	regular = pattern.least_pause * 2.5 >= pattern.pause;
	if (pattern.bursts < 3 && pattern.busy < course->settled_steps / 4)
		return MW_GROWTH_TOO_SHORT;
	if (course->settled.count < 3 || (course->settled.count == 3 && !regular))
		return MW_GROWTH_TOO_SHORT;
	if (pattern.busy <= course->settled_steps / 3 && course->settled.count >= 4u * (unsigned)pattern.bursts)
		return MW_GROWTH_STEPWISE;
	return changes(&pattern, FASTER) ? MW_GROWTH_ACCELERATING : MW_GROWTH_STEADY;
}

/* Older blocks go as these come, in the same calls. */
static bool is_replacing(const struct course *course)
{
	const struct mw_track_replaced *replaced = &course->in->replaced;

	return replaced->older.count >= 3 && is_replaced_known(course->in) &&
	       replaced->older.bytes * 2 >= course->in->impacting.bytes &&
	       is_flat(course, fmax(course->own_rise, course->late_bytes));
}

/* Of blocks of these sizes there are no more, nor fewer: as many as the stack adds go, over the second half. */
static bool is_balanced(const struct course *course)
{
	const struct mw_verdict_sizes *sizes = &course->in->sizes;
	struct mw_verdict_line line = course->late;
	double half = course->seconds / 2, some = fmax(4 * course->block, EXACT * course->own_rise);

	if (course->in->impacting.count < 16 || course->own_rise <= 2 * course->block || !sizes->known ||
	    sizes->born <= 0)
		return false;
	if (!course->inclusive)
		line = mw_verdict_fit(sizes->net, course->steps / 2, course->steps, course->step);
	return (fabs(line.slope) + 2 * line.error) * half <= FLAT_NOISE * course->own_rise &&
	       (fabs(line.slope) - line.error) * half <= FLAT * course->own_rise &&
	       (line.slope - SIGMAS * line.error) * half <= some;
}

/* As many go as come, over the second half. */
static bool is_level(const struct course *course)
{
	return course->in->transient.count * 2 >= course->in->impacting.count &&
	       late_rise(course, 2) <= LEVEL * course->own_mean + 2 * course->block;
}

static bool calms(enum mw_growth_verdict verdict)
{
	return verdict == MW_GROWTH_PLATEAU || verdict == MW_GROWTH_CHURN || verdict == MW_GROWTH_ONE_OFF;
}

static enum mw_growth_verdict judge(const struct course *course, bool *certain)
{
	enum mw_growth_verdict verdict;

	bool all_settled =
		course->in->settled_later.count && course->in->settled_later.count == course->in->impacting.count;
	bool judged = course->seconds >= LEAST_S && course->steps >= LEAST_STEPS;

	bool rises;

	*certain = all_settled;
	/* All that was outstanding was in flight. A queue, or storage, may grow nevertheless. */
	if (all_settled) {
		verdict = !judged                    ? MW_GROWTH_CHURN
			  : is_container(course->in) ? judge_container(course)
						     : judge_level(course);
		return verdict >= MW_GROWTH_STEADY ? verdict : MW_GROWTH_CHURN;
	}
	if (!judged)
		return MW_GROWTH_TOO_SHORT;
	if (is_container(course->in)) {
		verdict = judge_container(course);
	} else if (is_replacing(course)) {
		*certain = !course->in->replaced.unknown;
		return MW_GROWTH_STEADY_STATE;
	} else {
		verdict = !course->settled.count || course->mortal ? judge_level(course) : judge_settled(course);
	}
	rises = is_rising(course, 2, 2) ||
		(keeps_rising(course) &&
		 (course->whole.slope - SIGMAS * course->whole.error) * course->seconds > 4 * course->block);
	if (calms(verdict) && ((course->could < LEAST_SETTLED && !is_level(course)) || rises))
		verdict = MW_GROWTH_TOO_SHORT;
	if (!calms(verdict) && verdict != MW_GROWTH_CONTAINER && is_balanced(course))
		return MW_GROWTH_STEADY_STATE;
	/* Most of what settles takes the place of older blocks. */
	if (verdict >= MW_GROWTH_STEADY && replaces_older(course))
		verdict = rises_evenly(course) && keeps_rising(course) ? MW_GROWTH_STEADY : MW_GROWTH_TOO_SHORT;
	/* That nothing was freed leaves open whether it ever will be. */
	*certain = calms(verdict) || verdict == MW_GROWTH_CONTAINER ||
		   (verdict != MW_GROWTH_TOO_SHORT && course->in->transient.count > 0);
	return verdict;
}

/* Until when the settled blocks were born, but for few. */
static double growing_until(const struct course *course, enum mw_growth_verdict verdict)
{
	struct pattern pattern;

	if (!course->settled.count || verdict == MW_GROWTH_CONTAINER)
		return verdict >= MW_GROWTH_STEADY ? course->seconds : 0;
	find_pattern(course, &pattern);
	return pattern.quiet <= 0 ? course->seconds - course->settle_age : pattern.last * course->step;
}

static double least_net(const struct course *course, int first, int end)
{
	double least = first < end ? INFINITY : 0;

	for (int i = first; i < end; i++)
		least = fmin(least, course->net[i]);
	return least;
}

void mw_verdict_find(const struct mw_verdict_input *input, struct mw_report_growth *out)
{
	struct course course = {.in = input, .seconds = input->seconds};
	bool certain;

	find_levels(&course);
	find_settled(&course);
	*out = (struct mw_report_growth){
		.known = true,
		.verdict = judge(&course, &certain),
		.bytes_per_second = course.whole.slope,
		.steadiness = course.whole.steadiness,
		.floor_start = least_net(&course, 0, course.steps / 8),
		.floor_end = least_net(&course, course.steps - course.steps / 8, course.steps),
		.freed_share = input->size.count ? (double)input->transient.count / (double)input->size.count : 0,
		.oldest_age = input->seconds - input->oldest,
		.newest_age = input->seconds - input->newest,
		.settle_age = course.settle_age,
		.settled = course.settled,
	};
	out->certain = certain;
	out->growing_until = growing_until(&course, out->verdict);
}
