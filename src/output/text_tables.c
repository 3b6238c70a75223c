// SPDX-License-Identifier: MIT
/* text_tables.c: totals, memory before and after, the address space, the usual suspects. */
#include "output/text.h"

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

	mw_line_printf(line, "    %10s", mw_show_size(item->bytes).text);
	if (item->resident == MW_SIZE_UNKNOWN)
		mw_line_printf(line, "  %10s", "?");
	else
		mw_line_printf(line, "  %10s", mw_show_size(item->resident).text);
	mw_line_printf(line, " resident  %s", labels[item->kind]);
	if (item->path && *item->path) {
		size_t name, columns;

		mw_line_printf(line, "  ");
		name = line->length;
		columns = mw_line_columns(line, 0);
		mw_line_name(line, item->path);
		if (text->options->width)
			mw_line_elide(line, name, text->options->width > columns ? text->options->width - columns : 1);
	}
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
	mw_line_printf(line, " in %s mapping%s that appeared in the window without a recorded call",
		       mw_show_count(space->unattributed_count).text, space->unattributed_count == 1 ? "" : "s");
	mw_text_paragraph(text, 4);
	for (size_t i = 0; i < space->unattributed_count && i < UNATTRIBUTED; i++)
		put_unattributed_row(text, &space->unattributed[i]);
	if (space->unattributed_count > UNATTRIBUTED) {
		mw_line_printf(line, "    … and %s more", mw_show_count(space->unattributed_count - UNATTRIBUTED).text);
		mw_text_line(text, MW_STYLE_PLAIN);
	}
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

static struct mw_shown show_cell(const struct mw_report_totals *totals, const struct row *row)
{
	const struct mw_amount *amount = (const void *)((const char *)totals + row->offset);
	bool aofi = row->offset == offsetof(struct mw_report_totals, aofi);
	struct mw_shown shown = {"-"};

	/* Not every allocator says how large a block is. */
	if (aofi && totals->aofi_unknown && totals->aofi_unknown == amount->count)
		snprintf(shown.text, sizeof(shown.text), "size unknown in %.28s", mw_show_count(amount->count).text);
	else if (aofi && totals->aofi_unknown)
		snprintf(shown.text, sizeof(shown.text), "%.16s or more in %.28s", mw_show_size(amount->bytes).text,
			 mw_show_count(amount->count).text);
	else if (row->offset != offsetof(struct mw_report_totals, peak))
		snprintf(shown.text, sizeof(shown.text), "%.16s in %.28s", mw_show_size(amount->bytes).text,
			 mw_show_count(amount->count).text);
	else if (totals->peak.count)
		snprintf(shown.text, sizeof(shown.text), "%.16s at %.28s", mw_show_size(totals->peak.bytes).text,
			 mw_show_seconds(totals->peak.at).text);
	return shown;
}

/* The last is about intervals that do not begin with the window. */
static size_t row_count(const struct mw_report *report)
{
	return sizeof(rows) / sizeof(rows[0]) - (report->window.from > 0 ? 0 : 1);
}

static size_t kind_columns(const struct mw_report *report, unsigned kind)
{
	size_t widest = strlen(mw_kind_name((enum mw_kind)kind));

	for (size_t i = 0; i < row_count(report); i++) {
		size_t columns = strlen(show_cell(&report->totals[kind], &rows[i]).text);

		if (columns > widest)
			widest = columns;
	}
	return widest;
}

static void put_cell(struct mw_line *line, size_t columns, const char *cell)
{
	/* µ is two bytes and one column. */
	size_t extra = strstr(cell, "µ") ? 1 : 0;

	mw_line_printf(line, "  %*s", (int)(columns + extra), cell);
}

static void put_kinds(struct mw_text *text, unsigned first, unsigned last)
{
	const struct mw_report *report = text->report;
	struct mw_line *line = &text->line;

	mw_line_printf(line, "  %-*s", LABEL_COLUMNS, "");
	for (unsigned kind = first; kind <= last; kind++)
		if (report->tracked[kind])
			put_cell(line, kind_columns(report, kind), mw_kind_name((enum mw_kind)kind));
	mw_text_line(text, MW_STYLE_PLAIN);
	for (size_t i = 0; i < row_count(report); i++) {
		if (rows[i].offset == offsetof(struct mw_report_totals, aofi) && !mw_text_has_older(text))
			continue;
		mw_line_printf(line, "  %-*s", LABEL_COLUMNS, rows[i].label);
		for (unsigned kind = first; kind <= last; kind++)
			if (report->tracked[kind])
				put_cell(line, kind_columns(report, kind),
					 show_cell(&report->totals[kind], &rows[i]).text);
		mw_text_line(text, MW_STYLE_PLAIN);
	}
}

static void put_totals(struct mw_text *text)
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
	mw_line_printf(&text->line, ")");
	mw_text_paragraph(text, 3);
}

static void put_memory_row(struct mw_text *text, const char *label, uint64_t from, uint64_t to)
{
	if (from == MW_SIZE_UNKNOWN || to == MW_SIZE_UNKNOWN)
		return;
	mw_line_printf(&text->line, "  %-*s  %10s  %10s  %11s", MEMORY_COLUMNS, label, mw_show_size(from).text,
		       mw_show_size(to).text, mw_show_change(from, to).text);
	mw_text_line(text, MW_STYLE_PLAIN);
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
	mw_line_printf(&text->line, "  %-*s  %10s  %10s  %11s", MEMORY_COLUMNS, "", "first", "last", "change");
	mw_text_line(text, MW_STYLE_PLAIN);
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
	size_t name, columns;

	mw_line_printf(line, "  %10s  %12s  %7s", mw_show_size(module->impacting.bytes).text,
		       mw_show_count(module->impacting.count).text, mw_show_percent(part, whole).text);
	if (!width || width >= BAR_WIDTH)
		add_bar(line, whole > 0 ? part / whole : 0);
	mw_line_printf(line, "  ");
	name = line->length;
	columns = mw_line_columns(line, 0);
	if (module->module)
		mw_line_name(line, module->module);
	else
		mw_line_printf(line, "(runtime only)");
	if (width)
		mw_line_elide(line, name, width > columns ? width - columns : 1);
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
	mw_line_printf(&text->line, "  (charged to the innermost module that is neither allocator nor C/C++ runtime)");
	mw_text_paragraph(text, 3);
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
	mw_line_printf(&text->line, "  … and %s more module%s: %s in %s blocks", mw_show_count(left).text,
		       left == 1 ? "" : "s", mw_show_size(rest.bytes).text, mw_show_count(rest.count).text);
	mw_text_paragraph(text, 4);
}

bool mw_text_any(const struct mw_report *report)
{
	bool any = false;

	for (unsigned kind = 0; kind < MW_KIND_COUNT; kind++)
		any = any || report->totals[kind].size.count || report->totals[kind].aofi.count;
	return any;
}

void mw_text_totals(struct mw_text *text)
{
	size_t unwatched = mw_text_unwatched(text->report);

	if (mw_text_any(text->report)) {
		put_totals(text);
	} else {
		mw_line_printf(&text->line, "\nNothing was allocated in the %s, and nothing freed", mw_text_span(text));
		if (unwatched) {
			mw_line_printf(&text->line, "; its %s child%s not watched: ", mw_show_count(unwatched).text,
				       unwatched == 1 ? " was" : "ren were");
			mw_text_add_unwatched(text);
		} else {
			mw_line_printf(&text->line, ".");
		}
		mw_text_paragraph(text, 2);
	}
}

void mw_text_tables(struct mw_text *text)
{
	put_memory(text);
	put_space(text);
	put_modules(text);
}
