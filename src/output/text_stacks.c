// SPDX-License-Identifier: MIT
/* text_stacks.c: the stacks that hold memory, then those that only pass it through. */
#include "output/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS          4 /* named for each stack */
#define TRANSIENT_FRAMES 8 /* churn is found near the allocation */

static void put_threads(struct mw_text *text, const struct mw_report_stack *stack)
{
	struct mw_line *line = &text->line;

	if (!stack->thread_count)
		return;
	mw_line_printf(line, "   thread%s ", stack->thread_count == 1 ? "" : "s");
	for (size_t i = 0; i < stack->thread_count && i < THREADS; i++) {
		const struct mw_report_thread *thread = &stack->threads[i];

		mw_line_printf(line, "%s", i ? ", " : "");
		mw_line_name(line, thread->name);
		mw_line_printf(line, " (%d)", thread->tid);
		if (stack->thread_count > 1)
			mw_line_printf(line, " %s", mw_show_size(thread->impacting.bytes).text);
	}
	if (stack->thread_count > THREADS)
		mw_line_printf(line, " and %s more", mw_show_count(stack->thread_count - THREADS).text);
	mw_text_paragraph(text, 5);
}

static void add_lifetime(struct mw_line *line, const struct mw_report_stack *stack)
{
	mw_line_printf(line, "lived %s (median), %s (p99), %s (longest)",
		       mw_show_seconds((double)stack->lifetime_median_ns / 1e9).text,
		       mw_show_seconds((double)stack->lifetime_p99_ns / 1e9).text,
		       mw_show_seconds((double)stack->lifetime_max_ns / 1e9).text);
}

/* What tells a leak from a cache that is still filling: how old the blocks are, and how long others lived. */
static void put_ages(struct mw_text *text, const struct mw_report_stack *stack)
{
	struct mw_line *line = &text->line;
	double end = text->report->window.to;

	if (stack->has_ages) {
		double oldest = end > stack->oldest ? end - stack->oldest : 0;
		double newest = end > stack->newest ? end - stack->newest : 0;

		mw_line_printf(line, "   age %s", mw_show_seconds(oldest).text);
		if (stack->impacting.count > 1)
			mw_line_printf(line, " (oldest) to %s (newest)", mw_show_seconds(newest).text);
	}
	mw_line_printf(line, "%s", line->length ? "; " : "   ");
	if (stack->has_lifetime) {
		mw_line_printf(line, "%s freed sibling%s ", mw_show_count(stack->transient.count).text,
			       stack->transient.count == 1 ? "" : "s");
		add_lifetime(line, stack);
	} else {
		mw_line_printf(line, "no block of this stack was freed");
	}
	mw_text_paragraph(text, 5);
}

static void put_api(struct mw_text *text, const struct mw_report_stack *stack)
{
	mw_line_printf(&text->line, "   by ");
	mw_line_name(&text->line, stack->api);
	mw_line_printf(&text->line, "%s, stack %s", stack->kind == MW_KIND_VM ? " (vm)" : "", stack->id);
	mw_text_paragraph(text, 5);
}

/* Bytes that may have come from a fit. */
static uint64_t whole(double bytes)
{
	return bytes > 0 ? (uint64_t)(bytes + 0.5) : 0;
}

static void put_growth(struct mw_text *text, const struct mw_report_growth *growth)
{
	struct mw_line *line = &text->line;

	if (!growth->known)
		return;
	mw_line_printf(line, "   %s", mw_growth_name(growth->verdict));
	if (growth->verdict != MW_GROWTH_TOO_SHORT) {
		bool falls = growth->bytes_per_second <= -0.5; /* or it would be "-0 B" */

		mw_line_printf(line, ": %s%s a second on average (fit %.2f)", falls ? "-" : "",
			       mw_show_size(whole(falls ? -growth->bytes_per_second : growth->bytes_per_second)).text,
			       growth->steadiness);
		mw_line_printf(line, ", floor from %s to %s", mw_show_size(whole(growth->floor_start)).text,
			       mw_show_size(whole(growth->floor_end)).text);
		/* What comes and goes does not rise. */
		if (growth->growing_until > text->report->window.from)
			mw_line_printf(line, ", rising until %.1f s", growth->growing_until);
	}
	mw_line_printf(line, "; %s of its blocks freed", mw_show_percent(growth->freed_share, 1).text);
	mw_text_paragraph(text, 5);
}

static void put_impacting(struct mw_text *text, size_t number, const struct mw_report_stack *stack)
{
	struct mw_line *line = &text->line;

	fputc('\n', text->stream);
	mw_line_printf(line, "%zu. %s in %s block%s", number, mw_show_size(stack->impacting.bytes).text,
		       mw_show_count(stack->impacting.count).text, stack->impacting.count == 1 ? "" : "s");
	if (text->report->rss.unexplained)
		mw_line_printf(line, ", %s of what the RSS grew by",
			       mw_show_percent((double)stack->impacting.bytes, (double)text->report->rss.growth).text);
	else if (text->impacting.bytes)
		mw_line_printf(line, ", %s of all not freed",
			       mw_show_percent((double)stack->impacting.bytes, (double)text->impacting.bytes).text);
	mw_text_line(text, number == 1 ? MW_STYLE_ALARM : MW_STYLE_HEADING);
	put_api(text, stack);
	if (stack->kind != MW_KIND_HEAP && stack->resident != MW_SIZE_UNKNOWN) {
		mw_line_printf(line, "   %s resident at the window's end", mw_show_size(stack->resident).text);
		mw_text_paragraph(text, 5);
	}
	mw_text_settled(text, &stack->settled_later);
	put_threads(text, stack);
	put_ages(text, stack);
	put_growth(text, &stack->growth);
	mw_text_frames(text, stack, SIZE_MAX);
}

static void add_rate(struct mw_line *line, double rate)
{
	if (rate < 100)
		mw_line_printf(line, ", %.1f a second", rate);
	else
		mw_line_printf(line, ", %s a second", mw_show_count((uint64_t)(rate + 0.5)).text);
}

static void put_transient(struct mw_text *text, size_t number, const struct mw_report_stack *stack, size_t above)
{
	struct mw_line *line = &text->line;
	double seconds = text->report->window.to - text->report->window.from;

	fputc('\n', text->stream);
	mw_line_printf(line, "%zu. %s in %s block%s", number, mw_show_size(stack->transient.bytes).text,
		       mw_show_count(stack->transient.count).text, stack->transient.count == 1 ? "" : "s");
	if (seconds > 0)
		add_rate(line, (double)stack->transient.count / seconds);
	mw_text_line(text, MW_STYLE_HEADING);
	put_api(text, stack);
	if (stack->has_lifetime) {
		mw_line_printf(line, "   ");
		add_lifetime(line, stack);
		mw_text_paragraph(text, 5);
	}
	if (above) {
		mw_line_printf(line, "   frames: as stack %zu above", above);
		mw_text_line(text, MW_STYLE_PLAIN);
	} else {
		mw_text_frames(text, stack, TRANSIENT_FRAMES);
	}
}

static void put_rest(struct mw_text *text, size_t stacks, struct mw_amount rest)
{
	if (!stacks)
		return;
	mw_line_printf(&text->line, "\n… and %s more stack%s: %s in %s block%s", mw_show_count(stacks).text,
		       stacks == 1 ? "" : "s", mw_show_size(rest.bytes).text, mw_show_count(rest.count).text,
		       rest.count == 1 ? "" : "s");
	mw_text_line(text, MW_STYLE_PLAIN);
}

static struct mw_amount impacting_of(const struct mw_report_stack *stack)
{
	return stack->impacting;
}

static struct mw_amount transient_of(const struct mw_report_stack *stack)
{
	return stack->transient;
}

struct list {
	const struct mw_report_stack **stacks;
	size_t count;
	struct mw_amount sum;
};

static int compare_transient(const void *left, const void *right)
{
	const struct mw_report_stack *a = *(const struct mw_report_stack *const *)left;
	const struct mw_report_stack *b = *(const struct mw_report_stack *const *)right;

	if (a->transient.bytes != b->transient.bytes)
		return a->transient.bytes > b->transient.bytes ? -1 : 1;
	if (a->transient.count != b->transient.count)
		return a->transient.count > b->transient.count ? -1 : 1;
	return strcmp(a->id, b->id);
}

/* The stacks with something of that amount, in the report's order. Allocators' own mappings are left out:
 * what lies in them is counted already. False without memory. */
static bool pick(struct mw_text *text, struct mw_amount (*amount_of)(const struct mw_report_stack *), struct list *list)
{
	const struct mw_report *report = text->report;

	*list = (struct list){.stacks = calloc(report->stack_count + 1, sizeof(*list->stacks))};
	if (!list->stacks) {
		text->line.failed = true;
		return false;
	}
	for (size_t i = 0; i < report->stack_count; i++) {
		struct mw_amount amount = amount_of(&report->stacks[i]);

		if (report->stacks[i].kind == MW_KIND_VM_INTERNAL || !amount.count)
			continue;
		list->stacks[list->count++] = &report->stacks[i];
		list->sum.count += amount.count;
		list->sum.bytes += amount.bytes;
	}
	return true;
}

static size_t number_in(const struct list *list, size_t top, const struct mw_report_stack *stack)
{
	for (size_t i = 0; i < list->count && i < top; i++)
		if (list->stacks[i] == stack)
			return i + 1;
	return 0;
}

static void put_impacting_list(struct mw_text *text, const struct list *list)
{
	struct mw_amount rest = list->sum;
	char heading[MW_TEXT_LEAST_WIDTH + 40];
	size_t i;

	if (!list->count)
		return;
	(void)snprintf(heading, sizeof(heading),
		       "Not freed: stacks that allocated in the %s what was not freed by its end", mw_text_span(text));
	mw_text_heading(text, heading);
	for (i = 0; i < list->count && i < text->options->top; i++) {
		put_impacting(text, i + 1, list->stacks[i]);
		rest.count -= list->stacks[i]->impacting.count;
		rest.bytes -= list->stacks[i]->impacting.bytes;
	}
	put_rest(text, list->count - i, rest);
}

static void put_transient_list(struct mw_text *text, struct list *list, const struct list *impacting)
{
	struct mw_amount rest = list->sum;
	char heading[MW_TEXT_LEAST_WIDTH + 40];
	size_t i;

	if (!list->count)
		return;
	qsort(list->stacks, list->count, sizeof(list->stacks[0]), compare_transient);
	(void)snprintf(heading, sizeof(heading),
		       "Freed: stacks that allocated in the %s what was freed in it, most bytes first",
		       mw_text_span(text));
	mw_text_heading(text, heading);
	for (i = 0; i < list->count && i < text->options->top; i++) {
		put_transient(text, i + 1, list->stacks[i], number_in(impacting, text->options->top, list->stacks[i]));
		rest.count -= list->stacks[i]->transient.count;
		rest.bytes -= list->stacks[i]->transient.bytes;
	}
	put_rest(text, list->count - i, rest);
}

void mw_text_stacks(struct mw_text *text)
{
	struct list impacting = {0}, transient = {0};

	if (pick(text, impacting_of, &impacting) && pick(text, transient_of, &transient)) {
		put_impacting_list(text, &impacting);
		put_transient_list(text, &transient, &impacting);
	}
	free(impacting.stacks);
	free(transient.stacks);
}
