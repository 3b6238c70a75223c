// SPDX-License-Identifier: MIT
/* course.c: what became of the memory of rows that are shown (feed.h): verdicts, and the level over time. */
#include "base/cleanup.h"
#include "top/feed.h"
#include "view/growth.h"

#include <math.h>
#include <stdlib.h>

#define NS 1e9

/* The courses of the wanted rows, and which of the tracker's stacks they are of: indices, UINT32_MAX for none. */
struct wanted {
	const struct mw_top_known *known;
	struct mw_top_course *courses;
	uint32_t count;
	uint32_t *of_stack, *of_module; /* the last: of what is charged to none */
	uint32_t module_count;
	bool any_module;
	double (*levels)[MW_SERIES_MAX];
	uint32_t points; /* of each of these */
};

static void fill_none(uint32_t *items, size_t count)
{
	for (size_t i = 0; i < count; i++)
		items[i] = UINT32_MAX;
}

static uint32_t *place_of_module(const struct wanted *wanted, uint32_t module)
{
	return &wanted->of_module[module < wanted->module_count ? module : wanted->module_count];
}

/* A stack that is shown as part of another belongs to that one's row. */
static void assign(struct wanted *wanted, uint32_t known_count)
{
	for (uint32_t i = 0; i < wanted->count; i++) {
		const struct mw_top_key *of = &wanted->courses[i].of;

		wanted->any_module |= of->module;
		if (of->module)
			*place_of_module(wanted, of->key) = i;
		else if (of->key < known_count)
			wanted->of_stack[of->key] = i;
	}
	for (uint32_t i = 0; i < known_count; i++) {
		const struct mw_top_stack *stack = mw_shared_list_get(&wanted->known->stacks, i);

		if (stack->as)
			wanted->of_stack[i] = wanted->of_stack[stack->as - 1];
	}
}

static void add_level(struct wanted *wanted, uint32_t course, const struct mw_track_series *series)
{
	for (uint32_t i = 0; course != UINT32_MAX && i < series->count; i++)
		wanted->levels[course][i] += (double)series->bytes[i];
}

static void add_levels(struct wanted *wanted, const struct mw_track *track, uint64_t end_ns, uint32_t known_count)
{
	for (uint32_t i = 0; i < known_count; i++) {
		const struct mw_top_stack *stack = mw_shared_list_get(&wanted->known->stacks, i);
		struct mw_track_series series;

		if (stack->kind == MW_KIND_VM_INTERNAL || (!wanted->any_module && wanted->of_stack[i] == UINT32_MAX))
			continue;
		mw_track_stack_series(track, i, end_ns, &series);
		wanted->points = series.count;
		add_level(wanted, wanted->of_stack[i], &series);
		add_level(wanted, *place_of_module(wanted, stack->module), &series);
	}
}

static void set_bars(const struct wanted *wanted, uint32_t number)
{
	struct mw_top_course *course = &wanted->courses[number];
	const double *level = wanted->levels[number];
	uint32_t bars = wanted->points < MW_TOP_BARS ? wanted->points : MW_TOP_BARS;
	double most = 0;

	for (uint32_t i = 0; i < wanted->points; i++)
		most = fmax(most, level[i]);
	course->bar_count = (uint8_t)bars;
	for (uint32_t i = 0; i < bars; i++)
		course->bars[i] =
			most > 0 ? (uint8_t)ceil(MW_TOP_BAR_MAX * level[(i + 1) * wanted->points / bars - 1] / most)
				 : 0;
}

/* Modules get none: what is freed of one stack says nothing of another that leaks. */
static struct mw_error *judge(const struct wanted *wanted, const struct mw_track *track, double from, double to)
{
	MW_FREE struct mw_report_growth *growths = calloc(wanted->count, sizeof(*growths));
	MW_FREE struct mw_report_growth **out = calloc(wanted->count, sizeof(*out));
	const struct mw_summary_input input = {.track = track};
	const struct mw_report report = {.window = {.from = from, .to = to}};
	bool any = false;

	if (!growths || !out)
		return mw_error_nomem();
	for (uint32_t i = 0; i < wanted->count; i++) {
		out[i] = wanted->courses[i].of.module ? NULL : &growths[i];
		any |= out[i] != NULL;
	}
	/* It looks through all live blocks. */
	if (!any)
		return NULL;
	MW_TRY(mw_view_judge(&input, &report, wanted->of_stack, out, wanted->count));
	for (uint32_t i = 0; i < wanted->count; i++) {
		wanted->courses[i].judged = out[i] && growths[i].known;
		wanted->courses[i].verdict = growths[i].verdict;
		wanted->courses[i].certain = growths[i].certain;
	}
	return NULL;
}

void mw_top_courses_fill(const struct mw_track *track, const struct mw_top_known *known, const struct mw_top_key *keys,
			 uint32_t count, struct mw_top_shot *shot)
{
	uint32_t stack_count = mw_track_stack_count(track), known_count = mw_shared_list_count(&known->stacks);
	uint64_t latest_ns = mw_track_now(track), end_ns = shot->time_ns > latest_ns ? shot->time_ns : latest_ns;
	struct wanted wanted = {.known = known, .count = count, .module_count = mw_shared_list_count(&known->modules)};
	MW_FREE uint32_t *of_stack = calloc((size_t)stack_count + 1, sizeof(*of_stack));
	MW_FREE uint32_t *of_module = calloc((size_t)wanted.module_count + 1, sizeof(*of_module));
	MW_FREE double(*levels)[MW_SERIES_MAX] = calloc((size_t)count + 1, sizeof(*levels));
	MW_FREE struct mw_top_course *courses = calloc((size_t)count + 1, sizeof(*courses));

	/* Without memory there are those of an earlier shot. */
	if (!of_stack || !of_module || !levels || !courses || !count)
		return;
	fill_none(of_stack, stack_count);
	fill_none(of_module, (size_t)wanted.module_count + 1);
	for (uint32_t i = 0; i < count; i++)
		courses[i].of = keys[i];
	wanted.of_stack = of_stack;
	wanted.of_module = of_module;
	wanted.levels = levels;
	wanted.courses = courses;
	known_count = known_count < stack_count ? known_count : stack_count;
	assign(&wanted, known_count);
	add_levels(&wanted, track, end_ns, known_count);
	for (uint32_t i = 0; i < count; i++)
		set_bars(&wanted, i);
	if (!mw_error_none(judge(&wanted, track, (double)shot->zero_ns / NS, (double)end_ns / NS)))
		return;
	shot->courses = MW_TAKE(courses);
	shot->course_count = count;
}
