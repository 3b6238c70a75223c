// SPDX-License-Identifier: MIT
/* verdict.c: see verdict.h, which has the rules in words and their order. */
#include "view/storage.h"
#include "view/waves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * As many come in the second half as in the first, and as many go, which are fewer. Of blocks that all go in the end ever
 * more would, until they are as many as come, and the rise would be slower.
 */
static bool rises_evenly(const struct mw_course *course)
{
	int half = course->steps / 2, all = 2 * half;
	double born[2] = {mw_course_births_between(course, 0, half) * course->block,
			  mw_course_births_between(course, half, all) * course->block};
	double gone[2] = {born[0] - course->net[half - 1], born[1] - course->net[all - 1] + course->net[half - 1]};

	/* What never falls has no chance in it. */
	if (course->fall > course->block &&
	    course->early.slope - course->late.slope > 2 * hypot(course->early.error, course->late.error))
		return false;
	return (course->whole.slope - SIGMAS * course->whole.error) * course->seconds > 4 * course->block &&
	       course->whole.steadiness > 0.5 && born[1] <= EVEN_BIRTHS * born[0] && gone[1] <= EVEN_FREES * gone[0];
}

/* Do blocks live longer and longer, or do only more come? By the blocks that there are to one that comes. */
static bool live_longer(const struct mw_course *course)
{
	int third = course->steps / 3, last = course->steps - third;
	double early = mw_course_births_between(course, third, 2 * third),
	       late = mw_course_births_between(course, last, course->steps);

	return late > 0 && early > 0 &&
	       mw_course_mean_net(course, last, course->steps) / late >
		       LARGER * mw_course_mean_net(course, third, 2 * third) / early;
}

/* Of what lives as shortly as ever there is more where more comes. */
static bool only_more_come(const struct mw_course *course)
{
	int third = course->steps / 3, last = course->steps - third;

	return !course->settled.count && course->longest_of_all < QUIET * course->seconds && !live_longer(course) &&
	       mw_course_births_between(course, last, course->steps) >
		       EVEN_FREES * mw_course_births_between(course, third, 2 * third);
}

/* It climbs, by steps that an error of slopes is no match for. */
static bool climbs(const struct mw_course *course)
{
	int eighth = course->steps / 8, half = course->steps / 2;
	double least = INFINITY;

	for (int i = course->steps - eighth; i < course->steps; i++)
		least = fmin(least, course->net[i]);
	return least - mw_course_mean_net(course, half - eighth / 2, half + eighth / 2) >
		       fmax(fmax(FLAT_NOISE * least, 4 * course->block), course->chance) &&
	       course->fall <= course->most / 8;
}

/* One goes for each that comes, over the last third: there are always as many, whatever the load. */
static bool stays_level(const struct mw_course *course)
{
	int first = course->steps - course->steps / 3;
	double low = INFINITY, high = -INFINITY;

	for (int i = first; i < course->steps; i++) {
		low = fmin(low, course->net[i]);
		high = fmax(high, course->net[i]);
	}
	return high - low <= 2 * course->block && mw_course_births_between(course, first, course->steps) >= SEVERAL;
}

/* Less comes in the second half. */
static bool load_falls(const struct mw_course *course)
{
	int half = course->steps / 2;

	return mw_course_births_between(course, half, 2 * half) <
	       SUSTAINED_LOAD * mw_course_births_between(course, 0, half);
}

/* It rose until less came. */
static bool rose_with_load(const struct mw_course *course)
{
	int half = course->steps / 2;

	return !stays_level(course) && load_falls(course) &&
	       (course->early.slope - SIGMAS * course->early.error) * half * course->step > RISE * course->most;
}

/* Nothing has settled, or nothing stays. */
static enum mw_growth_verdict judge_level(const struct mw_course *course)
{
	if (only_more_come(course))
		return MW_GROWTH_CHURN;
	if (course->inclusive && rises_evenly(course) && mw_course_keeps_rising(course))
		return MW_GROWTH_STEADY;
	if (mw_course_is_rising(course, SIGMAS, 4))
		return mw_course_keeps_rising(course) && !course->alike && course->wave < 0 &&
				       mw_course_is_queue(course) && live_longer(course)
			       ? MW_GROWTH_STEADY
			       : MW_GROWTH_TOO_SHORT;
	if (climbs(course))
		return MW_GROWTH_TOO_SHORT;
	if (course->fall > 0 && course->fall >= course->most / 2)
		return MW_GROWTH_CHURN;
	if (course->longest < LONG_LIVED * course->seconds)
		return MW_GROWTH_CHURN;
	return rose_with_load(course) ? MW_GROWTH_TOO_SHORT : MW_GROWTH_PLATEAU;
}

/* When blocks settled. */
struct pattern {
	double first, last;  /* steps from the first to behind the last in which some did */
	double pause, quiet; /* longest between two of them; from the last to the end of what could settle */
	int busy, bursts;    /* steps in which some did; runs of them */
	double least_pause;  /* between bursts */
	double counts[3];    /* blocks in thirds of the time from the first on */
	double variances[3];
	bool uneven; /* births came in other thirds */
};

static void find_pattern(const struct mw_course *course, struct pattern *out)
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
		/* Where most are freed: of so many births. */
		if (course->mostly_freed) {
			double share = mw_course_births_between(course, start, end) /
				       fmax(mw_course_births_between(course, first, next), 1) / 3;

			out->counts[third] *= share;
			out->variances[third] *= share * share;
			out->uneven |= share > 4;
		}
	}
}

/* Do births of the last third differ from those of the first by that factor, and beyond chance? */
static bool changes(const struct pattern *pattern, double factor)
{
	const double *c = pattern->counts;
	double chance = SIGMAS * sqrt(pattern->variances[0] + pattern->variances[2]);

	if (pattern->uneven)
		return false;
	if (factor < 1)
		return c[2] < factor * c[0] && c[0] - c[2] > chance && c[1] <= c[0] * 1.05 && c[2] <= c[1] * 1.05;
	return c[2] > factor * c[0] && c[2] - c[0] > chance && c[1] >= c[0] * 0.95 && c[2] >= c[1] * 0.95;
}

/* What other stacks allocate, of these bytes, by thirds; `own`: this stack's are among them. */
static void find_others(const struct mw_course *course, const float *bytes, bool own, double others[3])
{
	for (int i = 0; i < 3; i++) {
		int first = course->steps * i / 3, end = course->steps * (i + 1) / 3;

		others[i] = (double)bytes[end - 1] - (first ? (double)bytes[first - 1] : 0);
		if (own)
			others[i] -= mw_course_births_between(course, first, end) * course->block;
	}
}

/*
 * Does the program do less from third to third? By what else it allocates and frees again. Where that is next to nothing its
 * load is not known: whatever else it allocates may be parts of the same entries.
 */
enum load { STEADY_LOAD, LESS_LOAD, UNKNOWN_LOAD, UNKNOWN_LESS };

static enum load find_load(const struct mw_course *course)
{
	double least = FEW * course->block * mw_course_births_between(course, 0, course->steps / 3), others[3];
	bool known, less;

	find_others(course, course->in->load, course->mostly_freed, others);
	known = others[0] > least;
	if (!known)
		find_others(course, course->in->all, true, others);
	less = others[0] > least && others[2] < SLOWER * others[0] && others[2] < SUSTAINED_LOAD * others[1];
	if (known)
		return less ? LESS_LOAD : STEADY_LOAD;
	return less ? UNKNOWN_LESS : UNKNOWN_LOAD;
}

/* Is it as likely that the program does less as that fewer of these blocks are needed? */
static bool may_do_less(const struct mw_course *course)
{
	enum load load = find_load(course);

	return load == LESS_LOAD || load == UNKNOWN_LESS;
}

/* Would more blocks have settled since, of so many births as there were? By the births before. */
static bool is_quiet_long(const struct mw_course *course, const struct pattern *pattern)
{
	int last = (int)pattern->last, end = course->settled_steps;
	double share = mw_course_kept_between(course, 0, last) / fmax(mw_course_births_between(course, 0, last), 1);

	if (!course->mostly_freed)
		return mw_course_kept_between(course, last, end) == 0 || !may_do_less(course);
	return mw_course_chance_of_few(mw_course_kept_between(course, last, end),
				       share * mw_course_births_between(course, last, end)) < CHANCE;
}

/* Births get rarer by about the same factor all the time, and few are still to come: most of what is asked for is there. */
static bool is_nearly_full(const struct mw_course *course)
{
	struct pattern pattern;
	const double *c = pattern.counts;
	double share;

	if (course->in->transient.count * 8 > course->in->size.count || !course->settled.count)
		return false;
	find_pattern(course, &pattern);
	share = sqrt(c[2] / c[0]);
	return changes(&pattern, SLOWER) && c[2] * c[0] >= SLOWER * c[1] * c[1] &&
	       c[2] * share / (1 - share) <= (c[0] + c[1] + c[2]) / 4 && !may_do_less(course);
}

/* When that share of the births of the window had come, steps. */
static double came_by(const struct mw_course *course, double share)
{
	double all = mw_course_births_between(course, 0, course->steps), before = 0;

	for (int i = 0; i < course->steps; i++) {
		double now = mw_course_births_between(course, 0, i + 1);

		if (now >= share * all)
			return i + (share * all - before) / (now - before);
		before = now;
	}
	return course->steps;
}

/*
 * Of what there is to come the same share comes in the same time, and hardly any is left: a table that has filled. Where a
 * load ends births end at once, and each half of those that are left comes in half the time.
 */
static bool is_filled(const struct mw_course *course)
{
	double half = came_by(course, 1.0 / 2), quarter = came_by(course, 3.0 / 4), eighth = came_by(course, 7.0 / 8);

	return course->in->samples == 0 && course->in->transient.count * 8 <= course->in->size.count &&
	       course->in->size.count >= 64 &&
	       mw_course_births_between(course, course->steps * 3 / 4, course->steps) <=
		       FEW * (double)course->in->size.count &&
	       quarter - half >= SLOWER * half && eighth - quarter >= SLOWER * (quarter - half) &&
	       find_load(course) != LESS_LOAD;
}

/* Where blocks are sampled: could those of a stack that goes on allocating all have come before that pause? */
static bool may_go_on(const struct mw_course *course, double quiet)
{
	double share = (double)course->settled.count / (double)course->in->size.count;

	return course->in->samples > 0 && pow(1 - quiet / course->settled_steps, share * course->in->samples) >= CHANCE;
}

/* The level rises less and less. */
static bool levels_off(const struct mw_course *course, const struct pattern *pattern)
{
	double less = course->early.slope - course->late.slope;

	return less > SIGMAS * hypot(course->early.error, course->late.error) &&
	       course->late.slope < SUSTAINED * course->early.slope &&
	       pattern->counts[1] < SUSTAINED_LOAD * pattern->counts[0] &&
	       pattern->counts[2] < SUSTAINED_LOAD * pattern->counts[1];
}

static enum mw_growth_verdict judge_settled(const struct mw_course *course)
{
	const struct mw_verdict_input *in = course->in;
	bool mostly = course->settled.bytes * 2 > in->impacting.bytes || !in->impacting.bytes;
	double steps = course->steps;
	struct pattern pattern;
	bool regular;

	find_pattern(course, &pattern);
	if (pattern.last - pattern.first <= fmax(ONE_OFF * steps, 1)) {
		if (pattern.quiet >= ONE_OFF_QUIET * steps && !may_go_on(course, pattern.quiet))
			return mostly ? MW_GROWTH_ONE_OFF : MW_GROWTH_CHURN;
		return MW_GROWTH_TOO_SHORT;
	}
	if (pattern.quiet >= QUIET * steps && pattern.quiet > 2 * (pattern.pause + 1) &&
	    is_quiet_long(course, &pattern)) {
		if (pow(1 - pattern.quiet / course->settled_steps, pattern.busy) >= CHANCE ||
		    may_go_on(course, pattern.quiet))
			return MW_GROWTH_TOO_SHORT;
		return mostly ? MW_GROWTH_PLATEAU : MW_GROWTH_CHURN;
	}
	/* Others go for those that settle. That there are no more where less comes is no sign of it. */
	if (course->settle_age > 0 && !(load_falls(course) && !stays_level(course)) &&
	    in->transient.count * OUTNUMBERED >= course->settled.count &&
	    course->longest >= LONG_LIVED * course->seconds && mw_course_is_flat(course, course->late_bytes) &&
	    (course->in->samples == 0 || mw_course_late_rise(course, 2) <= FLAT_NOISE * course->late_bytes))
		return MW_GROWTH_PLATEAU;
	if (changes(&pattern, CEASED) && !may_do_less(course))
		return MW_GROWTH_PLATEAU;
	if ((changes(&pattern, SLOWER) || levels_off(course, &pattern)) && find_load(course) != LESS_LOAD)
		return MW_GROWTH_TOO_SHORT;
	regular = pattern.pause - pattern.least_pause <= 1;
	if (pattern.bursts < 3 && pattern.busy < course->settled_steps / 4)
		return MW_GROWTH_TOO_SHORT;
	if (mw_course_are_few_by_chance(course) || (course->settled.count == 3 && !regular))
		return MW_GROWTH_TOO_SHORT;
	if (pattern.busy <= course->settled_steps / 3 && course->settled.count >= 4u * (unsigned)pattern.bursts)
		return MW_GROWTH_STEPWISE;
	return changes(&pattern, FASTER) ? MW_GROWTH_ACCELERATING : MW_GROWTH_STEADY;
}

/*
 * What takes the place of older blocks rises over the window and on in its second half, by a good part of what came and by more than is likely by chance:
 * too little to call it growth, and too much to call it level.
 */
static bool may_rise(const struct mw_course *course)
{
	double came = mw_course_births_between(course, 0, course->steps) * course->block;

	return course->inclusive && mw_course_older_share(course->in) >= SOME_OLDER && course->late.slope > 0 &&
	       course->whole.slope > LIKELY * course->whole.error &&
	       course->whole.slope * course->seconds > fmax(FLAT * came, 4 * course->block);
}

/* The net level rises over the second half, or over the whole window up to its end; and not because more come. */
static bool rises(const struct mw_course *course)
{
	return !only_more_come(course) &&
	       (may_rise(course) || mw_course_is_rising(course, 2, 2) ||
		(mw_course_keeps_rising(course) &&
		 (course->whole.slope - SIGMAS * course->whole.error) * course->seconds > 4 * course->block));
}

/* Of blocks that take the places of older ones never fewer, and one or more left over now and then, in both halves. */
static bool creeps(const struct mw_course *course)
{
	double middle = course->net[course->steps / 2];

	return mw_course_is_replaced_known(course->in) &&
	       course->in->replaced.older.count * 2 >= course->in->size.count && course->fall <= course->block &&
	       middle - course->net[0] >= 2 * course->block &&
	       course->net[course->steps - 1] - middle >= 2 * course->block;
}

/*
 * Each block takes the place of one that goes, and the sizes are not ever larger. Of storage of some size one is enough, where it is
 * as large as before.
 */
static bool takes_places(const struct mw_course *course)
{
	const struct mw_verdict_input *in = course->in;
	const struct mw_track_replaced *replaced = &in->replaced;

	if (in->samples > 0 || course->outlasted || !mw_course_is_replaced_known(in))
		return false;
	if (in->size.count < 16)
		return replaced->older.count == in->size.count && replaced->older.bytes == in->size.bytes &&
		       !replaced->unknown && !replaced->ambiguous && course->block >= TRIFLE;
	return replaced->count + 2 >= in->size.count && replaced->larger * 8 <= replaced->count * 5 &&
	       replaced->older.count >= 3;
}

/* Older blocks go as these come, in the same calls. */
static bool is_replacing(const struct mw_course *course)
{
	const struct mw_track_replaced *replaced = &course->in->replaced;

	return (!course->outlasted || mw_course_is_in_step(course)) && !rises(course) && !creeps(course) &&
	       replaced->older.count >= 3 && mw_course_is_replaced_known(course->in) &&
	       replaced->older.bytes * 2 >= course->in->impacting.bytes &&
	       (double)course->in->impacting.count <=
		       (double)replaced->older.count + fmax(FLAT * (double)course->in->size.count, 4) &&
	       course->mean_late <=
		       FLAT_NOISE * fmax(course->own_mean, (double)course->in->impacting.bytes) + 2 * course->block &&
	       mw_course_is_flat(course, fmax(course->own_rise, course->late_bytes));
}

/* Of blocks of these sizes there are no more, nor fewer: as many as the stack adds go, over the second half. */
static bool is_balanced(const struct mw_course *course)
{
	const struct mw_verdict_sizes *sizes = &course->in->sizes;
	struct mw_verdict_line line = course->late, whole = course->whole;
	double half = course->seconds / 2, some = fmax(4 * course->block, EXACT * course->own_rise);

	if (course->in->impacting.count < 16 || course->own_rise <= 2 * course->block || !sizes->known ||
	    sizes->born <= 0 || course->made_up || may_rise(course))
		return false;
	if (!course->inclusive) {
		line = mw_verdict_fit(sizes->net, course->steps / 2, course->steps, course->step);
		whole = mw_verdict_fit(sizes->net, 0, course->steps, course->step);
	}
	return (fabs(line.slope) + 2 * line.error) * half <= FLAT_NOISE * course->own_rise &&
	       (line.slope - line.error) * half <= FLAT * course->own_rise &&
	       (-line.slope - line.error) * half <= RISE * course->own_rise &&
	       (line.slope - SIGMAS * line.error) * half <= some &&
	       (whole.slope - SIGMAS * whole.error) * course->seconds <= some;
}

/* No more is left over than can be of the stack with which this one shares what goes. */
static bool may_be_of_another(const struct mw_course *course)
{
	return course->in->either > 0 &&
	       (course->whole.slope - SIGMAS * course->whole.error) * course->seconds <= course->in->either;
}

/*
 * Bytes by which what came can be more than what went without a leak: the share of it, or what chance adds up to. Where a cache
 * is limited by bytes, and sizes differ, the number of its entries strays by about the root of how many came.
 */
static double stray(const struct mw_course *course, double share, double roots)
{
	double bytes = (double)course->in->impacting.bytes, count = (double)course->in->impacting.count;

	return fmin(share * bytes, roots * bytes / sqrt(count));
}

/* Of blocks for which older ones go, by number: it is likely that not even one in fifty stays, or that it is chance. */
static bool leaks_rarely(const struct mw_course *course)
{
	return course->made_up &&
	       (course->whole.slope - 2 * course->whole.error) * course->seconds <= stray(course, RARE, 1.5);
}

/*
 * The same, and clearly so. Parts of the same entries go together: one of which more are left over leaks. Where never one more goes
 * than comes, those that are left over are no chance. If those that went were others', there would be more of all of these sizes.
 */
static bool hardly_leaks(const struct mw_course *course)
{
	const struct mw_verdict_input *in = course->in;
	const struct mw_verdict_sizes *sizes = &in->sizes;
	double most = stray(course, RARER, 0.75);
	struct mw_verdict_line all = {0};

	if (sizes->known && sizes->born > 0)
		all = mw_verdict_fit(sizes->net, 0, course->steps, course->step);
	return !creeps(course) && in->ahead <= 3 * course->block &&
	       (course->whole.slope + course->whole.error) * course->seconds <= most &&
	       course->late.slope * course->seconds <= most &&
	       (all.slope - 2 * all.error) * course->seconds <= FLAT * sizes->usable;
}

static int compare_levels(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

/* What the net level is above in an eighth of that time. */
static double high_net(const struct mw_course *course, int first, int end)
{
	double level[STEPS];
	size_t count = (size_t)(end - first);

	memcpy(level, course->net + first, count * sizeof(*level));
	qsort(level, count, sizeof(*level), compare_levels);
	return level[count * 7 / 8];
}

/* There is more in the second half than there was at its highest in the first. */
static bool gets_higher(const struct mw_course *course)
{
	int half = course->steps / 2;

	return course->block <= 0 ||
	       high_net(course, half, course->steps) > high_net(course, 0, half) + course->block / 2;
}

/* Of a collector's blocks some go: what is old may wait for a collection of all that is old. */
static bool waits_for_collector(const struct mw_course *course)
{
	const struct mw_verdict_input *in = course->in;

	return in->collected && ((double)in->transient.count > FEW * (double)in->size.count ||
				 (mw_course_makes_sizes(in) && mw_course_older_share(in) > FEW));
}

/* A few blocks have settled, and the level rises by no more than is likely by chance. */
static bool is_hardly_kept(const struct mw_course *course)
{
	return course->settled.count < SEVERAL && course->mostly_freed && course->whole.slope < course->whole.error;
}

/* More settles than the net level rises by: it takes the place of what is older. */
static bool is_made_up_for(const struct mw_course *course)
{
	double time = course->settled_steps * course->step,
	       rate = (double)course->settled.bytes / fmax(time, course->step);

	return course->settle_age > 0 && course->late.slope + 2 * course->late.error < FLAT_NOISE * rate;
}

/* As many go as come, over the second half. */
static bool is_level(const struct mw_course *course)
{
	return course->in->transient.count * 2 >= course->in->impacting.count &&
	       (stays_level(course) || mw_course_late_rise(course, 2) <= LEVEL * course->own_mean + 2 * course->block);
}

/* Several are older than any got that was freed. */
static bool has_older_than_freed(const struct mw_course *course)
{
	int end = (int)((course->in->active - course->longest_of_all) / course->step) - 2;

	return course->in->transient.count >= 16 && mw_course_kept_between(course, 0, end) >= SEVERAL;
}

/* Hundreds came in the first three quarters, and all of them are gone, none after half of the window. */
static bool is_gone(const struct mw_course *course)
{
	int end = course->steps * 3 / 4;

	return course->longest_of_all <= course->seconds / 2 && mw_course_kept_between(course, 0, end) == 0 &&
	       pow(1 - RARE, mw_course_births_between(course, 0, end)) <= CHANCE;
}

static bool calms(enum mw_growth_verdict verdict)
{
	return verdict == MW_GROWTH_PLATEAU || verdict == MW_GROWTH_CHURN || verdict == MW_GROWTH_ONE_OFF;
}

/*
 * That nothing was freed leaves open whether it ever will be; so does what is freed late. Storage that was replaced often
 * fills evenly, and has no end in sight.
 */
static bool is_certain(const struct mw_course *course, enum mw_growth_verdict verdict)
{
	if (calms(verdict))
		return course->in->samples == 0 || course->in->samples >= MANY_SAMPLES;
	if (course->in->older_unknown)
		return false;
	if (verdict == MW_GROWTH_CONTAINER)
		return course->in->replaced.count >= 8 && mw_course_keeps_rising(course) &&
		       mw_course_births_between(course, course->steps / 2, course->steps) >=
			       SLOWER * mw_course_births_between(course, 0, course->steps / 2);
	return verdict >= MW_GROWTH_STEADY && course->settle_class >= 0 && course->mostly_freed &&
	       course->longest < LONG_LIVED * course->seconds;
}

/* All that was outstanding at the window's end was freed while it settled. */
static bool is_all_settled(const struct mw_course *course)
{
	return course->in->settled_later.count && course->in->settled_later.count == course->in->impacting.count;
}

static enum mw_growth_verdict judge_all(const struct mw_course *course, bool *certain)
{
	enum mw_growth_verdict verdict;
	enum mw_waves waves;
	bool all_settled = is_all_settled(course);
	bool judged = course->seconds >= LEAST_S && course->steps >= LEAST_STEPS;

	*certain = false;
	if (judged && (mw_storage_is_built_larger(course) || mw_storage_larger_each_time(course) > FLAT_NOISE))
		return MW_GROWTH_CONTAINER;
	/* All that was outstanding was in flight. A queue, or storage, may grow nevertheless. */
	if (all_settled) {
		verdict = !judged                              ? MW_GROWTH_CHURN
			  : mw_course_is_container(course->in) ? mw_storage_judge(course)
							       : judge_level(course);
		if (verdict == MW_GROWTH_TOO_SHORT && mw_storage_lasts(course))
			return verdict;
		*certain = verdict < MW_GROWTH_STEADY || is_certain(course, verdict);
		return verdict >= MW_GROWTH_STEADY ? verdict : MW_GROWTH_CHURN;
	}
	if (!judged)
		return MW_GROWTH_TOO_SHORT;
	if (mw_course_is_container(course->in)) {
		verdict = mw_storage_judge(course);
	} else if (course->made_up ? hardly_leaks(course) : takes_places(course) || is_replacing(course)) {
		*certain = !course->in->replaced.unknown;
		return MW_GROWTH_STEADY_STATE;
	} else if (is_nearly_full(course) || is_filled(course)) {
		return MW_GROWTH_PLATEAU;
	} else {
		verdict = !course->settled.count || course->mortal ? judge_level(course) : judge_settled(course);
	}
	if (calms(verdict) && ((course->could < LEAST_SETTLED && !is_gone(course) &&
				(!is_level(course) || has_older_than_freed(course))) ||
			       rises(course)))
		verdict = MW_GROWTH_TOO_SHORT;
	if (mw_course_is_container(course->in)) {
		if (!calms(verdict) && is_balanced(course))
			return MW_GROWTH_STEADY_STATE;
		*certain = is_certain(course, verdict);
		return verdict;
	}
	waves = mw_waves_judge(course);
	if (waves == MW_WAVES_RISING)
		return MW_GROWTH_STEADY;
	if (waves == MW_WAVES_UNCLEAR || (waves == MW_WAVES_HIGHER && verdict < MW_GROWTH_STEADY))
		return MW_GROWTH_TOO_SHORT;
	if (!calms(verdict) && waves <= MW_WAVES_LEVEL) {
		if (mw_waves_have_let_go(course))
			return MW_GROWTH_CHURN;
		if (!course->outlasted && !creeps(course) && (is_balanced(course) || waves == MW_WAVES_LEVEL))
			return MW_GROWTH_STEADY_STATE;
	}
	if (verdict >= MW_GROWTH_STEADY && (mw_waves_are_one(course) || !gets_higher(course)))
		verdict = MW_GROWTH_TOO_SHORT;
	if (verdict >= MW_GROWTH_STEADY && (waits_for_collector(course) || is_hardly_kept(course)))
		verdict = MW_GROWTH_TOO_SHORT;
	if (verdict >= MW_GROWTH_STEADY && (leaks_rarely(course) || may_be_of_another(course)))
		verdict = MW_GROWTH_TOO_SHORT;
	/* Most of what settles takes the place of older blocks. */
	if (verdict >= MW_GROWTH_STEADY &&
	    (course->made_up || mw_course_replaces_older(course) || is_made_up_for(course)))
		verdict = (course->made_up || rises_evenly(course)) && mw_course_keeps_rising(course)
				  ? MW_GROWTH_STEADY
				  : MW_GROWTH_TOO_SHORT;
	*certain = is_certain(course, verdict);
	return verdict;
}

/* Ever more is held, or larger blocks than before: storage that grows, of which it is not seen what it replaced. */
static bool may_be_storage(const struct mw_course *course)
{
	double slope = course->whole.slope, error = course->whole.error;

	return (course->in->larger >= LARGER && slope > 2 * error) ||
	       (mw_course_keeps_rising(course) && (slope - SIGMAS * error) * course->seconds > course->most / 2);
}

/*
 * Are there too few samples for that verdict? Of what grows so many are to be outstanding. A verdict of no leak takes more
 * where much of what was allocated could not settle: there a leak of which few blocks are sampled is not told from the rest.
 */
static bool are_few(const struct mw_course *course, enum mw_growth_verdict verdict)
{
	double samples = course->in->samples;

	if (samples == 0)
		return false;
	if (verdict >= MW_GROWTH_STEADY)
		return samples * (double)course->in->impacting.count < LEAST_SAMPLES * (double)course->in->size.count;
	if (samples < LEAST_SAMPLES || is_all_settled(course))
		return samples < LEAST_SAMPLES;
	return (samples < MANY_SAMPLES && course->could < LEAST_SAMPLED) || may_be_storage(course);
}

static enum mw_growth_verdict judge(const struct mw_course *course, bool *certain)
{
	enum mw_growth_verdict verdict = judge_all(course, certain);

	if (!are_few(course, verdict) && !(calms(verdict) && mw_storage_larger_each_time(course) > FLAT))
		return verdict;
	*certain = false;
	return MW_GROWTH_TOO_SHORT;
}

/* Of a handful of blocks, or of storage of a few KiB, a pause or two more would tell another tale. */
static bool is_uneven_trifle(const struct mw_course *course, enum mw_growth_verdict verdict)
{
	const struct mw_amount *all = &course->in->impacting;
	struct pattern pattern;

	/* Of sampled blocks are_few() knows. */
	if (verdict < MW_GROWTH_STEADY || course->in->samples > 0)
		return false;
	if (verdict == MW_GROWTH_CONTAINER)
		return all->bytes < TRIFLE && course->whole.steadiness < STEADY;
	if (all->bytes >= TRIFLE && all->count >= HANDFUL)
		return false;
	if (all->bytes < TRIFLE && all->count < SEVERAL)
		return true;
	find_pattern(course, &pattern);
	return (all->bytes < TRIFLE && pattern.busy < LEAST_TIMES) || course->whole.steadiness < STEADY;
}

/* Until when the settled blocks were born, but for few. */
static double growing_until(const struct mw_course *course, enum mw_growth_verdict verdict)
{
	struct pattern pattern;

	if (!course->settled.count || verdict == MW_GROWTH_CONTAINER)
		return verdict >= MW_GROWTH_STEADY ? course->seconds : 0;
	find_pattern(course, &pattern);
	return pattern.quiet <= 0 ? course->seconds - course->settle_age : pattern.last * course->step;
}

static double least_net(const struct mw_course *course, int first, int end)
{
	double least = first < end ? INFINITY : 0;

	for (int i = first; i < end; i++)
		least = fmin(least, course->net[i]);
	return least;
}

void mw_verdict_find(const struct mw_verdict_input *input, struct mw_report_growth *out)
{
	struct mw_course course = {.in = input, .seconds = input->seconds};
	enum mw_growth_verdict verdict;
	bool certain;

	mw_course_find(&course);
	verdict = judge(&course, &certain);
	if (is_uneven_trifle(&course, verdict)) {
		verdict = MW_GROWTH_TOO_SHORT;
		certain = false;
	}
	*out = (struct mw_report_growth){
		.known = true,
		.verdict = verdict,
		.certain = certain,
		.bytes_per_second = course.whole.slope,
		.steadiness = course.whole.steadiness,
		.floor_start = least_net(&course, 0, course.steps / 8),
		.floor_end = least_net(&course, course.steps - course.steps / 8, course.steps),
		.freed_share = input->size.count ? (double)input->transient.count / (double)input->size.count : 0,
		.oldest_age = input->seconds - input->oldest,
		.newest_age = input->seconds - input->newest,
		.settle_age = course.settle_age,
		.settled = course.settled,
		.storage = mw_course_is_container(input),
	};
	out->growing_until = growing_until(&course, verdict);
}
