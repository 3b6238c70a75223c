// SPDX-License-Identifier: MIT
/* growth.c: see growth.h. */
#include "view/growth.h"

#include <math.h>
#include <stdlib.h>

#define PARTS        8
#define LEAST_S      1.0
#define LEAST_VALUES (2 * PARTS)
#define ONE_OFF      (1.0 / 16) /* of the interval */
#define LATE         (3.0 / 4)
#define RISE         0.01 /* of the most that was outstanding: less is no rise */
#define LEAST_RISES  3

void mw_series_add(struct mw_track_series *sum, const struct mw_track_series *other)
{
	if (!sum->count)
		*sum = *other;
	else
		for (uint32_t i = 0; i < sum->count && i < other->count; i++)
			sum->bytes[i] += other->bytes[i];
}

/* The line that fits the values best: bytes a second, and which share of their variance it explains. */
static void fit(const struct mw_track_series *series, struct mw_report_growth *out)
{
	double n = series->count, step = (double)series->step_ns / 1e9;
	double mean_t = 0, mean_b = 0, tt = 0, tb = 0, bb = 0;

	for (uint32_t i = 0; i < series->count; i++) {
		mean_t += (i + 1) * step / n;
		mean_b += (double)series->bytes[i] / n;
	}
	for (uint32_t i = 0; i < series->count; i++) {
		double t = (i + 1) * step - mean_t, b = (double)series->bytes[i] - mean_b;

		tt += t * t;
		tb += t * b;
		bb += b * b;
	}
	out->bytes_per_second = tt > 0 ? tb / tt : 0;
	/* Values that do not change lie on their line. */
	out->steadiness = tt > 0 && bb > 0 ? tb * tb / (tt * bb) : 1;
}

struct floor {
	double least[PARTS];
	double most;    /* of all values */
	unsigned rises; /* parts whose floor lies above that of the part before; the first above nothing */
	int last_rise;  /* the last of these, or -1 */
};

static double greater(double a, double b)
{
	return a > b ? a : b;
}

static double lesser(double a, double b)
{
	return a < b ? a : b;
}

static void find_floor(const struct mw_track_series *series, struct floor *floor)
{
	double before = 0;

	*floor = (struct floor){.last_rise = -1};
	for (uint32_t i = 0; i < series->count; i++)
		floor->most = greater(floor->most, (double)series->bytes[i]);
	for (int part = 0; part < PARTS; part++) {
		uint32_t first = series->count * (uint32_t)part / PARTS,
			 end = series->count * (uint32_t)(part + 1) / PARTS;

		floor->least[part] = INFINITY;
		for (uint32_t i = first; i < end; i++)
			floor->least[part] = lesser(floor->least[part], (double)series->bytes[i]);
		if (floor->least[part] > before + RISE * floor->most) {
			floor->rises++;
			floor->last_rise = part;
		}
		before = floor->least[part];
	}
}

static enum mw_growth_verdict judge(const struct mw_track_series *series, const struct mw_growth_input *input,
				    const struct floor *floor)
{
	double end = floor->least[PARTS - 1], middle = floor->least[PARTS / 2];
	double oldest = input->oldest - input->from, newest = input->newest - input->from;

	if (input->seconds < LEAST_S || series->count < LEAST_VALUES)
		return MW_GROWTH_TOO_SHORT;
	if (oldest > LATE * input->seconds && floor->rises < LEAST_RISES)
		return floor->most > 0 && input->transient.count > input->impacting.count ? MW_GROWTH_CHURN
											  : MW_GROWTH_TOO_SHORT;
	if (newest - oldest <= ONE_OFF * input->seconds && oldest <= LATE * input->seconds)
		return MW_GROWTH_ONE_OFF;
	if (end < floor->most / 2 && end - middle <= floor->most / 4)
		return MW_GROWTH_CHURN;
	if (floor->last_rise < PARTS * 3 / 4)
		return MW_GROWTH_PLATEAU;
	return floor->rises >= LEAST_RISES ? MW_GROWTH_STEADY : MW_GROWTH_TOO_SHORT;
}

void mw_growth_judge(const struct mw_track_series *series, const struct mw_growth_input *input,
		     struct mw_report_growth *out)
{
	struct floor floor;

	*out = (struct mw_report_growth){.known = true};
	fit(series, out);
	find_floor(series, &floor);
	out->verdict = judge(series, input, &floor);
	out->floor_start = floor.least[0] < INFINITY ? floor.least[0] : 0;
	out->floor_end = floor.least[PARTS - 1] < INFINITY ? floor.least[PARTS - 1] : 0;
	out->growing_until =
		input->from + input->seconds * (floor.last_rise < 0 ? 0 : (double)(floor.last_rise + 1) / PARTS);
	out->freed_share = input->size.count ? (double)input->transient.count / (double)input->size.count : 0;
	out->oldest_age = input->from + input->seconds - input->oldest;
	out->newest_age = input->from + input->seconds - input->newest;
}

struct mw_error *mw_view_growth(const struct mw_summary_input *input, struct mw_report *report,
				const uint32_t *group_of)
{
	struct mw_track_series *sums = calloc(report->stack_count + 1, sizeof(*sums));
	uint64_t end_ns = (uint64_t)(report->window.to * 1e9 + 0.5);
	uint32_t count = mw_track_stack_count(input->track);

	if (!sums)
		return mw_error_nomem();
	for (uint32_t i = 0; i < count; i++) {
		struct mw_track_series series;

		if (group_of[i] == UINT32_MAX || !report->stacks[group_of[i]].has_ages)
			continue;
		mw_track_stack_series(input->track, i, end_ns, &series);
		mw_series_add(&sums[group_of[i]], &series);
	}
	for (size_t i = 0; i < report->stack_count; i++) {
		struct mw_report_stack *stack = &report->stacks[i];
		const struct mw_growth_input growth = {
			.from = report->window.from,
			.seconds = report->window.to - report->window.from,
			.oldest = stack->oldest,
			.newest = stack->newest,
			.size = stack->size,
			.impacting = stack->impacting,
			.transient = stack->transient,
		};

		if (stack->has_ages)
			mw_growth_judge(&sums[i], &growth, &stack->growth);
	}
	free(sums);
	return NULL;
}
