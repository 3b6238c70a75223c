// SPDX-License-Identifier: MIT
/* text_tables.c: totals, memory before and after, the address space, the usual suspects. */
#include "output/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the address space -------------------------------------------------------------------------------------- */

#define KIND_COLUMNS 18
#define SIDE_BY_SIDE 100 /* columns from which on both tables stand in one */
#define UNATTRIBUTED 5   /* so many are reported one by one */

static const char *const labels[MW_REGION_KIND_COUNT] = {
	[MW_REGION_HEAP] = "heap (brk)",       [MW_REGION_ARENA] = "allocator arenas",
	[MW_REGION_STACK] = "thread stacks",   [MW_REGION_ANONYMOUS] = "anonymous",
	[MW_REGION_FILE_TEXT] = "files' code", [MW_REGION_FILE_DATA] = "files' data",
	[MW_REGION_SHARED] = "shared",         [MW_REGION_OWN] = "memwatch's own",
	[MW_REGION_SPECIAL] = "special",
};

/* What a table shows of a region. */
enum measure { RESERVED, RESIDENT, MEASURES };
static const char *const measures[MEASURES] = {"reserved", "resident"};

static uint64_t bytes_of(const struct mw_report_moment *moment, unsigned kind, enum measure measure)
{
	const struct mw_report_region *region = &moment->kinds[kind];

	if (!moment->known)
		return MW_SIZE_UNKNOWN;
	return measure == RESERVED ? region->reserved : region->resident;
}

static void put_change(struct mw_line *line, uint64_t from, uint64_t to)
{
	bool both = from != MW_SIZE_UNKNOWN && to != MW_SIZE_UNKNOWN;

	mw_line_printf(line, "  %10s", from == MW_SIZE_UNKNOWN ? "?" : mw_show_size(from).text);
	mw_line_printf(line, "  %10s", to == MW_SIZE_UNKNOWN ? "?" : mw_show_size(to).text);
	mw_line_printf(line, "  %11s", both ? mw_show_change(from, to).text : "?");
}

static uint64_t sum_of(const struct mw_report_moment *moment, enum measure measure)
{
	uint64_t sum = 0;

	for (unsigned kind = 0; kind < MW_REGION_KIND_COUNT; kind++) {
		uint64_t bytes = bytes_of(moment, kind, measure);

		if (bytes == MW_SIZE_UNKNOWN || __builtin_add_overflow(sum, bytes, &sum))
			return MW_SIZE_UNKNOWN;
	}
	return sum;
}

#define NAMED 12 /* so many are shown, of the largest */

static uint64_t most_of(const struct mw_report_named *named)
{
	uint64_t start = named->start.resident, end = named->end.resident;

	if (start == MW_SIZE_UNKNOWN || end == MW_SIZE_UNKNOWN)
		return MW_SIZE_UNKNOWN;
	return start > end ? start : end;
}

static int by_most(const void *left, const void *right)
{
	const struct mw_report_named *a = *(const struct mw_report_named *const *)left,
				     *b = *(const struct mw_report_named *const *)right;

	if (most_of(a) != most_of(b))
		return most_of(a) > most_of(b) ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* At the window's end, and what has changed. Where all is committed and nothing else is known there is nothing to say. */
static void put_use(struct mw_text *text, const struct mw_report_named *named)
{
	const struct mw_report_use *start = &named->use_at_start, *end = &named->use_at_end;
	struct mw_line *line = &text->line;

	if (!end->committed || (!end->used && end->committed == named->end.reserved))
		return;
	mw_line_printf(line, "      %s reserved, %s committed", mw_show_size(named->end.reserved).text,
		       mw_show_size(end->committed).text);
	if (end->used)
		mw_line_printf(line, ", %s used", mw_show_size(end->used).text);
	if (end->used && start->used && end->used != start->used)
		mw_line_printf(line, " (%s)", mw_show_change(start->used, end->used).text);
	mw_text_paragraph(text, 8);
}

/* Parts of the line above. */
static void put_named(struct mw_text *text, enum measure first, enum measure last)
{
	const struct mw_report_space *space = text->report->space;
	struct mw_line *line = &text->line;
	const struct mw_report_named **order = calloc(space->named_count + 1, sizeof(*order));

	line->failed |= !order;
	for (size_t i = 0; order && i < space->named_count; i++)
		order[i] = &space->named[i];
	if (order)
		qsort(order, space->named_count, sizeof(*order), by_most);
	for (size_t i = 0; order && i < space->named_count && i < NAMED; i++) {
		const struct mw_report_region *start = &order[i]->start, *end = &order[i]->end;
		size_t columns;

		mw_line_printf(line, "    ");
		mw_line_name(line, order[i]->name);
		columns = mw_line_columns(line, 0);
		mw_line_printf(line, "%*s", columns < KIND_COLUMNS + 2 ? (int)(KIND_COLUMNS + 2 - columns) : 0, "");
		for (unsigned measure = first; measure <= last; measure++)
			put_change(line, measure == RESERVED ? start->reserved : start->resident,
				   measure == RESERVED ? end->reserved : end->resident);
		mw_text_line(text, MW_STYLE_PLAIN);
		if (first == RESERVED)
			put_use(text, order[i]);
	}
	free(order);
}

static void put_regions(struct mw_text *text, enum measure first, enum measure last)
{
	const struct mw_report_space *space = text->report->space;
	struct mw_line *line = &text->line;

	mw_line_printf(line, "  %-*s", KIND_COLUMNS, first == last ? measures[first] : "");
	for (unsigned measure = first; measure <= last; measure++) {
		mw_line_printf(line, "  %10s", first == last ? "start" : measures[measure]);
		mw_line_printf(line, "  %10s  %11s", "end", "change");
	}
	mw_text_line(text, MW_STYLE_PLAIN);
	for (unsigned kind = 0; kind < MW_REGION_KIND_COUNT; kind++) {
		if (!space->start.kinds[kind].count && !space->end.kinds[kind].count)
			continue;
		mw_line_printf(line, "  %-*s", KIND_COLUMNS, labels[kind]);
		for (unsigned measure = first; measure <= last; measure++)
			put_change(line, bytes_of(&space->start, kind, measure), bytes_of(&space->end, kind, measure));
		mw_text_line(text, MW_STYLE_PLAIN);
		if (kind == MW_REGION_ANONYMOUS)
			put_named(text, first, last);
	}
	mw_line_printf(line, "  %-*s", KIND_COLUMNS, "all");
	for (unsigned measure = first; measure <= last; measure++)
		put_change(line, sum_of(&space->start, measure), sum_of(&space->end, measure));
	mw_text_line(text, MW_STYLE_PLAIN);
}

static void put_arenas(struct mw_text *text)
{
	const struct mw_report_moment *start = &text->report->space->start, *end = &text->report->space->end;
	struct mw_line *line = &text->line;

	if (!end->known || end->arena_size == MW_SIZE_UNKNOWN)
		return;
	mw_line_printf(line, "  glibc's arenas: %s in use", mw_show_size(end->arena_used).text);
	mw_line_printf(line, ", %s free in them", mw_show_size(end->arena_free).text);
	mw_line_printf(line, ", %s in all", mw_show_size(end->arena_size).text);
	if (end->arena_size)
		mw_line_printf(line, " (%s free)",
			       mw_show_percent((double)end->arena_free, (double)end->arena_size).text);
	if (start->known && start->arena_size != MW_SIZE_UNKNOWN) {
		mw_line_printf(line, "; since the start %s in use",
			       mw_show_change(start->arena_used, end->arena_used).text);
		mw_line_printf(line, ", %s free", mw_show_change(start->arena_free, end->arena_free).text);
	}
	mw_text_paragraph(text, 4);
}

static void put_unattributed_row(struct mw_text *text, const struct mw_report_unattributed *item)
{
	struct mw_line *line = &text->line;
	size_t name;

	mw_line_printf(line, "    %10s  %10s resident  %s%s", mw_show_size(item->bytes).text,
		       item->resident == MW_SIZE_UNKNOWN ? "?" : mw_show_size(item->resident).text, labels[item->kind],
		       item->path && *item->path ? "  " : "");
	name = line->length;
	if (item->path && *item->path)
		mw_line_name(line, item->path);
	mw_text_fit(text, name);
	mw_text_line(text, MW_STYLE_PLAIN);
}

static void put_unattributed(struct mw_text *text)
{
	const struct mw_report_space *space = text->report->space;
	struct mw_line *line = &text->line;
	uint64_t bytes = 0;

	if (!space->has_unattributed || !space->unattributed_count)
		return;
	for (size_t i = 0; i < space->unattributed_count; i++)
		bytes += space->unattributed[i].bytes;
	mw_line_printf(line, "  unattributed: %s", mw_show_size(bytes).text);
	MW_TEXT_SAY(text, 4, " in %s mapping%s that appeared in the window without a recorded call",
		    mw_show_count(space->unattributed_count).text, space->unattributed_count == 1 ? "" : "s");
	for (size_t i = 0; i < space->unattributed_count && i < UNATTRIBUTED; i++)
		put_unattributed_row(text, &space->unattributed[i]);
	if (space->unattributed_count > UNATTRIBUTED)
		MW_TEXT_ROW(text, "    … and %s more", mw_show_count(space->unattributed_count - UNATTRIBUTED).text);
}

static void put_space(struct mw_text *text)
{
	const struct mw_report_space *space = text->report->space;
	unsigned width = text->options->width;

	if (!space || (!space->start.known && !space->end.known))
		return;
	mw_text_heading(text, "Address space at the window's start and end, by what it is for");
	if (!width || width >= SIDE_BY_SIDE) {
		put_regions(text, RESERVED, RESIDENT);
	} else {
		put_regions(text, RESERVED, RESERVED);
		put_regions(text, RESIDENT, RESIDENT);
	}
	put_arenas(text);
	put_unattributed(text);
}

/* --- totals, memory and modules ----------------------------------------------------------------------------- */

#define BAR_COLUMNS    10
#define ERROR_COLUMNS  13
#define LABEL_COLUMNS  12
#define MEMORY_COLUMNS 18
#define BAR_WIDTH      80 /* a bar is only drawn where lines are so wide */

/* An amount of the totals. */
struct row {
	const char *label;
	size_t offset;
};

static const struct row rows[] = {
	{"allocated", offsetof(struct mw_report_totals, size)},
	{"  not freed", offsetof(struct mw_report_totals, impacting)},
	{"  freed", offsetof(struct mw_report_totals, transient)},
	{"older, freed", offsetof(struct mw_report_totals, aofi)},
	{"peak", offsetof(struct mw_report_totals, peak)},
	{"older, live", offsetof(struct mw_report_totals, aofo)},
};

/* The standard error of an amount of bytes. */
static struct mw_shown show_error(bool sampled, struct mw_spread spread)
{
	struct mw_shown shown = {""};

	if (sampled)
		snprintf(shown.text, sizeof(shown.text), " ± %.12s",
			 mw_show_size((uint64_t)(sqrt(spread.bytes) + 0.5)).text);
	return shown;
}

static struct mw_spread spread_of(const struct mw_spreads *spreads, const struct row *row)
{
	switch (row->offset) {
	case offsetof(struct mw_report_totals, size):
		return mw_spreads_size(spreads);
	case offsetof(struct mw_report_totals, impacting):
		return spreads->impacting;
	case offsetof(struct mw_report_totals, transient):
		return spreads->transient;
	case offsetof(struct mw_report_totals, aofi):
		return spreads->aofi;
	case offsetof(struct mw_report_totals, aofo):
		return spreads->aofo;
	default:
		return spreads->peak;
	}
}

static struct mw_shown show_cell(const struct mw_report *report, enum mw_kind kind, const struct row *row)
{
	const struct mw_report_totals *totals = &report->totals[kind];
	const struct mw_amount *amount = (const void *)((const char *)totals + row->offset);
	bool aofi = row->offset == offsetof(struct mw_report_totals, aofi);
	struct mw_shown shown = {"-"},
			error = show_error(mw_report_is_sampled(report, kind), spread_of(&totals->spreads, row));

	if (aofi && !mw_report_knows_older(report, kind))
		return (struct mw_shown){"not known (sampled)"};
	/* Not every allocator says how large a block is. */
	if (aofi && totals->aofi_unknown && totals->aofi_unknown == amount->count)
		snprintf(shown.text, sizeof(shown.text), "size unknown in %.28s", mw_show_count(amount->count).text);
	else if (aofi && totals->aofi_unknown)
		snprintf(shown.text, sizeof(shown.text), "%.16s or more in %.28s", mw_show_size(amount->bytes).text,
			 mw_show_count(amount->count).text);
	else if (row->offset != offsetof(struct mw_report_totals, peak))
		snprintf(shown.text, sizeof(shown.text), "%.12s%.17s in %.28s", mw_show_size(amount->bytes).text,
			 error.text, mw_show_count(amount->count).text);
	else if (totals->peak.count)
		snprintf(shown.text, sizeof(shown.text), "%.12s%.17s at %.28s", mw_show_size(totals->peak.bytes).text,
			 error.text, mw_show_seconds(totals->peak.at).text);
	return shown;
}

/* The last is about intervals that do not begin with the window. */
static size_t row_count(const struct mw_report *report)
{
	return sizeof(rows) / sizeof(rows[0]) - (report->window.from > 0 ? 0 : 1);
}

static size_t columns_of(struct mw_shown shown)
{
	return mw_utf8_columns(shown.text, strlen(shown.text));
}

static size_t kind_columns(const struct mw_report *report, unsigned kind)
{
	size_t widest = strlen(mw_kind_name((enum mw_kind)kind));

	for (size_t i = 0; i < row_count(report); i++) {
		size_t columns = columns_of(show_cell(report, (enum mw_kind)kind, &rows[i]));

		if (columns > widest)
			widest = columns;
	}
	return widest;
}

static void put_kinds(struct mw_text *text, unsigned first, unsigned last)
{
	const struct mw_report *report = text->report;
	struct mw_line *line = &text->line;

	mw_line_printf(line, "  %-*s", LABEL_COLUMNS, "");
	for (unsigned kind = first; kind <= last; kind++)
		if (report->tracked[kind])
			mw_text_cell(line, 2 + kind_columns(report, kind), mw_kind_name((enum mw_kind)kind));
	mw_text_line(text, MW_STYLE_PLAIN);
	for (size_t i = 0; i < row_count(report); i++) {
		if (rows[i].offset == offsetof(struct mw_report_totals, aofi) && !mw_text_has_older(text))
			continue;
		mw_line_printf(line, "  %-*s", LABEL_COLUMNS, rows[i].label);
		for (unsigned kind = first; kind <= last; kind++)
			if (report->tracked[kind])
				mw_text_cell(line, 2 + kind_columns(report, kind),
					     show_cell(report, (enum mw_kind)kind, &rows[i]).text);
		mw_text_line(text, MW_STYLE_PLAIN);
	}
}

void mw_text_totals(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	size_t columns = 2 + LABEL_COLUMNS;

	mw_text_heading(text, "Totals, in bytes and blocks");
	for (unsigned kind = 0; kind < MW_KIND_COUNT; kind++)
		columns += report->tracked[kind] ? 2 + kind_columns(report, kind) : 0;
	if (!text->options->width || columns <= text->options->width) {
		put_kinds(text, 0, MW_KIND_COUNT - 1);
	} else {
		for (unsigned kind = 0; kind < MW_KIND_COUNT; kind++)
			if (report->tracked[kind])
				put_kinds(text, kind, kind);
	}
	mw_line_printf(&text->line, "  (not freed: by the end");
	if (mw_text_has_older(text))
		mw_line_printf(&text->line, "; older: from before the %s", mw_text_span(text));
	if (report->tracked[MW_KIND_VM_INTERNAL])
		mw_line_printf(&text->line, "; vm-internal: mapped by allocators, to hold heap blocks");
	MW_TEXT_SAY(text, 3, ")");
}

static void put_memory_row(struct mw_text *text, const char *label, uint64_t from, uint64_t to)
{
	if (from == MW_SIZE_UNKNOWN || to == MW_SIZE_UNKNOWN)
		return;
	MW_TEXT_ROW(text, "  %-*s  %10s  %10s  %11s", MEMORY_COLUMNS, label, mw_show_size(from).text,
		    mw_show_size(to).text, mw_show_change(from, to).text);
}

static void put_memory(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	const struct mw_report_sample *first, *last;

	if (!report->memory_count)
		return;
	first = &report->memory[0];
	last = &report->memory[report->memory_count - 1];
	mw_text_heading(text, "Memory of the process");
	MW_TEXT_ROW(text, "  %-*s  %10s  %10s  %11s", MEMORY_COLUMNS, "", "first", "last", "change");
	put_memory_row(text, "resident (RSS)", first->rss, last->rss);
	put_memory_row(text, "proportional (PSS)", first->pss, last->pss);
	put_memory_row(text, "virtual", first->vsize, last->vsize);
}

static void add_bar(struct mw_line *line, double share)
{
	int bar = share < 1 ? (int)(share * BAR_COLUMNS + 0.5) : BAR_COLUMNS;

	mw_line_printf(line, "  %.*s%*s", bar, "##########", BAR_COLUMNS - bar, "");
}

static void put_module(struct mw_text *text, const struct mw_report_module *module, bool leads)
{
	double part = (double)module->impacting.bytes, whole = (double)text->impacting.bytes;
	unsigned width = text->options->width;
	struct mw_line *line = &text->line;
	size_t name;

	mw_line_printf(line, "  %10s", mw_show_size(module->impacting.bytes).text);
	if (mw_report_is_sampled(text->report, MW_KIND_HEAP))
		mw_text_cell(line, ERROR_COLUMNS, show_error(true, module->spreads.impacting).text);
	mw_line_printf(line, "  %12s", mw_show_count(module->impacting.count).text);
	mw_line_printf(line, "  %7s", mw_show_percent(part, whole).text);
	if (!width || width >= BAR_WIDTH)
		add_bar(line, whole > 0 ? part / whole : 0);
	mw_line_printf(line, "  ");
	name = line->length;
	mw_line_name(line, module->module ? module->module : "(runtime only)");
	mw_text_fit(text, name);
	mw_text_line(text, leads ? MW_STYLE_ALARM : MW_STYLE_PLAIN);
}

static void put_modules(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	struct mw_amount rest = {0};
	size_t shown = 0, left = 0;

	if (!text->impacting.count)
		return;
	mw_text_heading(text, "Not freed, by module");
	MW_TEXT_SAY(text, 3, "  (charged to the innermost module that is neither allocator nor C/C++ runtime)");
	for (size_t i = 0; i < report->module_count; i++) {
		const struct mw_report_module *module = &report->modules[i];

		if (!module->impacting.count)
			continue;
		if (shown < text->options->top) {
			put_module(text, module, shown == 0);
			shown++;
			continue;
		}
		left++;
		mw_amount_add(&rest, module->impacting);
	}
	if (!left)
		return;
	MW_TEXT_SAY(text, 4, "  … and %s more module%s: %s in %s blocks", mw_show_count(left).text,
		    left == 1 ? "" : "s", mw_show_size(rest.bytes).text, mw_show_count(rest.count).text);
}

/* --- stacks ------------------------------------------------------------------------------------------------- */

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
		mw_text_error(line, stack->thread_count > 1 && mw_report_is_sampled(text->report, stack->kind),
			      thread->spreads.impacting.bytes);
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
		mw_line_printf(line, "no %sblock of this stack was freed",
			       mw_report_is_sampled(text->report, stack->kind) ? "sampled " : "");
	}
	mw_text_paragraph(text, 5);
}

static void put_api(struct mw_text *text, const struct mw_report_stack *stack)
{
	mw_line_put(&text->line, "   by ", stack->api);
	MW_TEXT_SAY(text, 5, "%s, stack %s", stack->kind == MW_KIND_VM ? " (vm)" : "", stack->id);
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
	MW_TEXT_SAY(text, 5, "; %s of its blocks freed", mw_show_percent(growth->freed_share, 1).text);
}

static void add_amount(struct mw_text *text, size_t number, const struct mw_report_stack *stack,
		       struct mw_amount amount, struct mw_spread spread)
{
	bool sampled = mw_report_is_sampled(text->report, stack->kind);

	mw_line_printf(&text->line, "%zu. %s", number, mw_show_size(amount.bytes).text);
	mw_text_error(&text->line, sampled, spread.bytes);
	mw_line_printf(&text->line, " in %s", mw_show_count(amount.count).text);
	mw_text_count_error(&text->line, sampled, spread.count);
	mw_line_printf(&text->line, " block%s", amount.count == 1 ? "" : "s");
}

static void put_impacting(struct mw_text *text, size_t number, const struct mw_report_stack *stack)
{
	struct mw_line *line = &text->line;

	fputc('\n', text->stream);
	add_amount(text, number, stack, stack->impacting, stack->spreads.impacting);
	if (text->report->rss.unexplained)
		mw_line_printf(line, ", %s of what the RSS grew by",
			       mw_show_percent((double)stack->impacting.bytes, (double)text->report->rss.growth).text);
	else if (text->impacting.bytes)
		mw_line_printf(line, ", %s of all not freed",
			       mw_show_percent((double)stack->impacting.bytes, (double)text->impacting.bytes).text);
	mw_text_line(text, number == 1 ? MW_STYLE_ALARM : MW_STYLE_HEADING);
	put_api(text, stack);
	if (stack->kind != MW_KIND_HEAP && stack->resident != MW_SIZE_UNKNOWN)
		MW_TEXT_SAY(text, 5, "   %s resident at the window's end", mw_show_size(stack->resident).text);
	mw_text_settled(text, &stack->settled_later, &stack->spreads);
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
	add_amount(text, number, stack, stack->transient, stack->spreads.transient);
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
		MW_TEXT_ROW(text, "   frames: as stack %zu above", above);
	} else {
		mw_text_frames(text, stack, TRANSIENT_FRAMES);
	}
}

static void put_rest(struct mw_text *text, size_t stacks, struct mw_amount rest)
{
	if (!stacks)
		return;
	MW_TEXT_ROW(text, "\n… and %s more stack%s: %s in %s block%s", mw_show_count(stacks).text,
		    stacks == 1 ? "" : "s", mw_show_size(rest.bytes).text, mw_show_count(rest.count).text,
		    rest.count == 1 ? "" : "s");
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
	size_t i;

	if (!list->count)
		return;
	mw_line_printf(&text->line, "Not freed: stacks that allocated in the %s what was not freed by its end",
		       mw_text_span(text));
	mw_text_heading(text, "");
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
	size_t i;

	if (!list->count)
		return;
	qsort(list->stacks, list->count, sizeof(list->stacks[0]), compare_transient);
	mw_line_printf(&text->line, "Freed: stacks that allocated in the %s what was freed in it, most bytes first",
		       mw_text_span(text));
	mw_text_heading(text, "");
	for (i = 0; i < list->count && i < text->options->top; i++) {
		put_transient(text, i + 1, list->stacks[i], number_in(impacting, text->options->top, list->stacks[i]));
		rest.count -= list->stacks[i]->transient.count;
		rest.bytes -= list->stacks[i]->transient.bytes;
	}
	put_rest(text, list->count - i, rest);
}

static void put_stacks(struct mw_text *text)
{
	struct list impacting = {0}, transient = {0};

	if (pick(text, impacting_of, &impacting) && pick(text, transient_of, &transient)) {
		put_impacting_list(text, &impacting);
		put_transient_list(text, &transient, &impacting);
	}
	free(impacting.stacks);
	free(transient.stacks);
}

void mw_text_tables(struct mw_text *text, bool stacks)
{
	put_memory(text);
	mw_text_change(text);
	put_space(text);
	put_modules(text);
	if (stacks)
		put_stacks(text);
}
