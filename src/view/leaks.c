// SPDX-License-Identifier: MIT
/* leaks.c: see leaks.h. */
#include "view/leaks.h"

#include "base/cleanup.h"

#include <stdlib.h>

#define HOLDERS_MAX 200u /* stacks, those with most bytes first, whose blocks' holders are looked for */

struct found {
	struct mw_amount amounts[MW_REACH_COUNT];
	mw_addr held; /* one that is still reachable; 0: none */
};

struct walk {
	const struct mw_summary_leaks *leaks;
	struct found *found; /* by the report's stacks */
};

/* Blocks that have been freed since the window's end are none of the heap that was looked at. */
static void visit(void *context, uint32_t group, const struct mw_track_block *block, bool first)
{
	const struct walk *walk = context;
	struct found *found = &walk->found[group];
	enum mw_reach reach;

	(void)first;
	if (block->kind != MW_KIND_HEAP || block->settled ||
	    !walk->leaks->reach(walk->leaks->context, block->addr, &reach))
		return;
	mw_amount_add(&found->amounts[reach],
		      (struct mw_amount){1 + block->others, (1 + block->others) * block->bytes});
	if (reach == MW_REACH_REACHABLE && !found->held)
		found->held = block->addr;
}

static bool is_any(const struct mw_amount amounts[MW_REACH_COUNT])
{
	for (unsigned i = 0; i < MW_REACH_COUNT; i++)
		if (amounts[i].count)
			return true;
	return false;
}

static struct mw_error *add(struct mw_report *report, struct mw_arena *arena, struct mw_report_stack *stack,
			    const struct mw_amount amounts[MW_REACH_COUNT], struct mw_report_leaks **out)
{
	struct mw_report_leaks *leaks = mw_arena_array(arena, 1, sizeof(*leaks));

	if (!leaks || !report->leaks)
		return mw_error_nomem();
	for (unsigned i = 0; i < MW_REACH_COUNT; i++) {
		leaks->amounts[i] = amounts[i];
		mw_amount_add(&report->leaks->amounts[i], amounts[i]);
	}
	stack->leaks = *out = leaks;
	return NULL;
}

/* The path's texts become the report's. */
static struct mw_error *name_holder(const struct mw_summary_leaks *look, struct mw_arena *arena, mw_addr addr,
				    struct mw_report_leaks *leaks)
{
	char **holder = NULL;
	size_t count = 0;
	struct mw_error *err = look->holder(look->context, addr, &holder, &count);

	leaks->holder = err || !count ? NULL : mw_arena_array(arena, count, sizeof(*leaks->holder));
	for (size_t i = 0; i < count; i++) {
		if (leaks->holder)
			leaks->holder[leaks->holder_count++] = mw_arena_string(arena, holder[i]);
		free(holder[i]);
	}
	free(holder);
	return err;
}

static struct mw_error *ask(const struct mw_summary_input *input, struct mw_arena *arena, struct mw_report *report,
			    const uint32_t *group_of)
{
	MW_FREE struct found *found = calloc(report->stack_count + 1, sizeof(*found));
	struct walk walk = {input->leaks, found};

	if (!found)
		return mw_error_nomem();
	mw_view_each_block(input->track, group_of, visit, &walk);
	for (size_t i = 0; i < report->stack_count; i++) {
		struct mw_report_leaks *leaks = NULL;

		if (!is_any(found[i].amounts))
			continue;
		MW_TRY(add(report, arena, &report->stacks[i], found[i].amounts, &leaks));
		if (i < HOLDERS_MAX && found[i].held)
			MW_TRY(name_holder(input->leaks, arena, found[i].held, leaks));
	}
	return NULL;
}

static struct mw_error *take(const struct mw_stored_leaks *stored, struct mw_arena *arena, struct mw_report *report,
			     struct mw_report_stack *stack)
{
	struct mw_report_leaks *leaks = NULL;

	MW_TRY(add(report, arena, stack, stored->amounts, &leaks));
	leaks->holder = mw_arena_array(arena, stored->holder_count, sizeof(*leaks->holder));
	if (!leaks->holder)
		return mw_error_nomem();
	for (size_t i = 0; i < stored->holder_count; i++)
		leaks->holder[leaks->holder_count++] = mw_arena_string(arena, stored->holder[i]);
	return NULL;
}

static int by_stack(const void *a, const void *b)
{
	const struct mw_stored_leaks *x = a, *y = b;

	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

/* What a recording has, by the stacks' ids. */
static struct mw_error *find(const struct mw_summary_input *input, struct mw_arena *arena, struct mw_report *report)
{
	size_t count = input->stored_leaks_count;
	MW_FREE struct mw_stored_leaks *sorted = reallocarray(NULL, count, sizeof(*sorted));

	if (!sorted)
		return mw_error_nomem();
	for (size_t i = 0; i < count; i++)
		sorted[i] = input->stored_leaks[i];
	qsort(sorted, count, sizeof(*sorted), by_stack);
	for (size_t i = 0; i < report->stack_count; i++) {
		const struct mw_stored_leaks key = {.stack = strtoull(report->stacks[i].id, NULL, 16)};
		const struct mw_stored_leaks *stored = bsearch(&key, sorted, count, sizeof(*sorted), by_stack);

		if (stored && is_any(stored->amounts))
			MW_TRY(take(stored, arena, report, &report->stacks[i]));
	}
	return NULL;
}

struct mw_error *mw_view_leaks(const struct mw_summary_input *input, struct mw_arena *arena, struct mw_report *report,
			       const uint32_t *group_of)
{
	bool whole = !input->from_ns && (!input->to_ns || !input->window || input->to_ns >= input->window->length_ns);

	if (!input->leaks && (!input->stored_leaks_count || !whole))
		return NULL;
	report->leaks = mw_arena_array(arena, 1, sizeof(*report->leaks));
	if (!report->leaks)
		return mw_error_nomem();
	return input->leaks ? ask(input, arena, report, group_of) : find(input, arena, report);
}
