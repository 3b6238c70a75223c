// SPDX-License-Identifier: MIT
/* text_space.c: how much of the process is what. */
#include "output/text.h"

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

static void put_cells(struct mw_line *line, uint64_t from, uint64_t to)
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

static void put_table(struct mw_text *text, enum measure first, enum measure last)
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
			put_cells(line, bytes_of(&space->start, kind, measure), bytes_of(&space->end, kind, measure));
		mw_text_line(text, MW_STYLE_PLAIN);
	}
	mw_line_printf(line, "  %-*s", KIND_COLUMNS, "all");
	for (unsigned measure = first; measure <= last; measure++)
		put_cells(line, sum_of(&space->start, measure), sum_of(&space->end, measure));
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

void mw_text_space(struct mw_text *text)
{
	const struct mw_report_space *space = text->report->space;
	unsigned width = text->options->width;

	if (!space || (!space->start.known && !space->end.known))
		return;
	mw_text_heading(text, "Address space at the window's start and end, by what it is for");
	if (!width || width >= SIDE_BY_SIDE) {
		put_table(text, RESERVED, RESIDENT);
	} else {
		put_table(text, RESERVED, RESERVED);
		put_table(text, RESIDENT, RESIDENT);
	}
	put_arenas(text);
	put_unattributed(text);
}
