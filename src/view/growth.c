// SPDX-License-Identifier: MIT
/* growth.c: see growth.h. */
#include "view/growth.h"

#include "view/level.h"

#include <stdlib.h>

#define LEAST_S       1.0
#define LEAST_VALUES  (2 * MW_LEVEL_PARTS)
#define FEW_FREED     8          /* to one that is freed: more outstanding ones than that, and freeing is no habit */
#define MARGIN        1.5        /* what is that much older than the freed ones were is kept */
#define LATE          (3.0 / 4)  /* of the interval: what is younger is young */
#define LEAST_SETTLED (1.0 / 4)  /* of the interval: a shorter time says nothing */
#define FEW           (1.0 / 16) /* of what is outstanding, or settled */
#define ONE_OFF       (1.0 / 16) /* of the interval */
#define LONG_LIVED    (1.0 / 8)  /* of the interval */
#define REPLACED      (1.0 / 4)  /* of what settled: if the level has not risen by that, it took the place of others */
#define LEAST_PLACES  3

/* What a share is a share of: bytes, or blocks where they have none (malloc(0)). */
static double weigh(const struct mw_amount *sum, const struct mw_amount *amount)
{
	return (double)(sum->bytes ? amount->bytes : amount->count);
}

static double settle_age(const struct mw_growth_input *input)
{
	return input->transient.count * FEW_FREED >= input->impacting.count ? MARGIN * input->freed_by : 0;
}

void mw_growth_settled_init(struct mw_growth_settled *settled, const struct mw_growth_input *input)
{
	*settled = (struct mw_growth_settled){.from = input->from, .length = input->seconds - settle_age(input)};
}

void mw_growth_settled_add(struct mw_growth_settled *settled, double born, uint64_t bytes, bool first)
{
	double at = born - settled->from;
	unsigned part = MW_GROWTH_PARTS - 1;

	if (at < 0)
		at = 0;
	if (settled->length <= 0 || at > settled->length)
		return;
	if (at < settled->length)
		part = (unsigned)(at / settled->length * MW_GROWTH_PARTS);
	/* Rounding may make it one too many. */
	part = part < MW_GROWTH_PARTS ? part : MW_GROWTH_PARTS - 1;
	if (!settled->sum.count && !settled->sum.bytes)
		settled->oldest = settled->newest = born;
	settled->oldest = born < settled->oldest ? born : settled->oldest;
	settled->newest = born > settled->newest ? born : settled->newest;
	settled->parts[part].count += first;
	settled->parts[part].bytes += bytes;
	settled->sum.count += first;
	settled->sum.bytes += bytes;
}

/* How and when blocks settled. */
struct course {
	double all;    /* of them, bytes or blocks */
	double late;   /* in the second half */
	int places;    /* parts in which some did, neighbours taken for one */
	int pause;     /* longest run of parts in which none did, between two in which some did */
	int quiet;     /* parts at the end in which next to none did */
	int last_part; /* after which it was quiet, or -1 */
};

static void find_course(const struct mw_growth_settled *settled, struct course *course)
{
	double after = 0, least;
	int last = -1, place = -2;

	*course = (struct course){.all = weigh(&settled->sum, &settled->sum), .last_part = -1};
	least = course->all * FEW / MW_GROWTH_PARTS;
	for (int part = 0; part < MW_GROWTH_PARTS; part++) {
		double here = weigh(&settled->sum, &settled->parts[part]);

		if (part >= MW_GROWTH_PARTS / 2)
			course->late += here;
		if (here <= least)
			continue;
		if (part - place > 1) {
			course->places++;
			place = part;
		}
		if (last >= 0 && part - last - 1 > course->pause)
			course->pause = part - last - 1;
		last = part;
	}
	for (int part = MW_GROWTH_PARTS - 1; part >= 0; part--) {
		after += weigh(&settled->sum, &settled->parts[part]);
		if (after > FEW * course->all) {
			course->last_part = part;
			break;
		}
		course->quiet++;
	}
}

/* Too little has settled: what the level alone says. `could`: there was time enough for it. */
static enum mw_growth_verdict judge_level(const struct mw_level *level, const struct mw_growth_input *input, bool could)
{
	if (level->fall > 0 && level->fall >= level->most / 2)
		return MW_GROWTH_CHURN;
	if (!could && level->late.slope * input->seconds / 2 > (double)input->impacting.bytes / 4)
		return MW_GROWTH_TOO_SHORT;
	return settle_age(input) >= LONG_LIVED * input->seconds ? MW_GROWTH_PLATEAU : MW_GROWTH_CHURN;
}

/* Enough has settled. */
static enum mw_growth_verdict judge_settled(const struct mw_level *level, const struct mw_growth_input *input,
					    const struct mw_growth_settled *settled)
{
	bool mostly = weigh(&input->impacting, &settled->sum) > weigh(&input->impacting, &input->impacting) / 2;
	double risen = (level->late.slope + 2 * level->late.error) * input->seconds / 2;
	struct course course;

	find_course(settled, &course);
	if (settled->newest - settled->oldest <= ONE_OFF * input->seconds)
		return mostly ? MW_GROWTH_ONE_OFF : MW_GROWTH_CHURN;
	if (course.quiet >= MW_GROWTH_PARTS / 4 && course.quiet > course.pause + 1)
		return mostly ? MW_GROWTH_PLATEAU : MW_GROWTH_CHURN;
	if (settle_age(input) > 0 && input->impacting.bytes > 0 && risen < REPLACED * course.late)
		return MW_GROWTH_PLATEAU;
	return course.places >= LEAST_PLACES ? MW_GROWTH_STEADY : MW_GROWTH_TOO_SHORT;
}

static enum mw_growth_verdict judge(const struct mw_level *level, const struct mw_growth_input *input,
				    const struct mw_growth_settled *settled)
{
	double outstanding = weigh(&input->impacting, &input->impacting);
	bool could = settled->length >= LEAST_SETTLED * input->seconds;

	if (input->seconds < LEAST_S || level->values < LEAST_VALUES)
		return MW_GROWTH_TOO_SHORT;
	/* What is freed after a long time only rises as long in any interval that begins. */
	if (settle_age(input) < LONG_LIVED * input->seconds && mw_level_rises(level))
		return MW_GROWTH_STEADY;
	if (input->oldest - input->from > LATE * input->seconds && input->transient.count <= input->impacting.count)
		return MW_GROWTH_TOO_SHORT;
	if (!could || weigh(&input->impacting, &settled->sum) < FEW * outstanding)
		return judge_level(level, input, could);
	return judge_settled(level, input, settled);
}

/* Until when the settled blocks were born, but for few. */
static double growing_until(const struct mw_growth_settled *settled)
{
	struct course course;

	find_course(settled, &course);
	return settled->from + settled->length * (course.last_part + 1) / MW_GROWTH_PARTS;
}

void mw_growth_judge(const struct mw_track_series *series, const struct mw_growth_input *input,
		     const struct mw_growth_settled *settled, struct mw_report_growth *out)
{
	double end = input->from + input->seconds, until = input->from;
	enum mw_growth_verdict verdict;
	struct mw_level level;

	mw_level_find(series, &level);
	verdict = judge(&level, input, settled);
	/* A block that is replaced by a larger one, again and again, never settles. */
	if (settled->sum.count)
		until = growing_until(settled);
	else if (verdict == MW_GROWTH_STEADY)
		until = end;
	*out = (struct mw_report_growth){
		.known = true,
		.verdict = verdict,
		.bytes_per_second = level.whole.slope,
		.steadiness = level.whole.steadiness,
		.floor_start = level.least[0],
		.floor_end = level.least[MW_LEVEL_PARTS - 1],
		.growing_until = until,
		.freed_share = input->size.count ? (double)input->transient.count / (double)input->size.count : 0,
		.oldest_age = end - input->oldest,
		.newest_age = end - input->newest,
		.settle_age = settle_age(input),
		.settled = settled->sum,
	};
}

struct group {
	struct mw_track_series series;
	struct mw_growth_input input;
	struct mw_growth_settled settled;
};

struct walk {
	struct group *groups;
	const uint32_t *group_of;
	uint32_t stack_count; /* of the tracker */
};

static bool visit(void *context, const struct mw_track_block *block, bool first)
{
	const struct walk *walk = context;

	if (block->stack < walk->stack_count && walk->group_of[block->stack] != UINT32_MAX)
		mw_growth_settled_add(&walk->groups[walk->group_of[block->stack]].settled, (double)block->time_ns / 1e9,
				      block->bytes, first);
	return true;
}

static void prepare(struct group *group, const struct mw_report *report, const struct mw_report_stack *stack)
{
	group->input = (struct mw_growth_input){
		.from = report->window.from,
		.seconds = report->window.to - report->window.from,
		.oldest = stack->oldest,
		.newest = stack->newest,
		.size = stack->size,
		.impacting = stack->impacting,
		.transient = stack->transient,
		.freed_by = stack->has_lifetime ? (double)stack->lifetime_p99_ns / 1e9 : 0,
	};
	mw_growth_settled_init(&group->settled, &group->input);
}

struct mw_error *mw_view_growth(const struct mw_summary_input *input, struct mw_report *report,
				const uint32_t *group_of)
{
	struct walk walk = {.group_of = group_of, .stack_count = mw_track_stack_count(input->track)};
	uint64_t end_ns = (uint64_t)(report->window.to * 1e9 + 0.5);

	walk.groups = calloc(report->stack_count + 1, sizeof(*walk.groups));
	if (!walk.groups)
		return mw_error_nomem();
	for (size_t i = 0; i < report->stack_count; i++)
		prepare(&walk.groups[i], report, &report->stacks[i]);
	mw_track_each_block(input->track, visit, &walk);
	for (uint32_t i = 0; i < walk.stack_count; i++) {
		struct mw_track_series series;

		if (group_of[i] == UINT32_MAX || !report->stacks[group_of[i]].has_ages)
			continue;
		mw_track_stack_series(input->track, i, end_ns, &series);
		mw_series_add(&walk.groups[group_of[i]].series, &series);
	}
	for (size_t i = 0; i < report->stack_count; i++) {
		const struct group *group = &walk.groups[i];

		if (report->stacks[i].has_ages)
			mw_growth_judge(&group->series, &group->input, &group->settled, &report->stacks[i].growth);
	}
	free(walk.groups);
	return NULL;
}
