// SPDX-License-Identifier: MIT
/* text_processes.c: several processes: a table of them, and what leaks in all of them together. */
#include "output/text.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

#define ANSWERS      3 /* lines of the answer, where not all is shown */
#define NAME_COLUMNS 13
#define WIDE         76 /* columns that all of the table takes */

static bool alarms(const struct mw_report_suspect *suspect)
{
	return suspect->lost.count || suspect->verdict >= MW_GROWTH_STEADY;
}

/* --- a table of them ------------------------------------------------------------------------------------------------- */

struct row {
	const struct mw_report *report;
	struct mw_amount impacting;
	double bytes_per_hour; /* of what grows */
	const char *verdict;
	int rank; /* the lower the worse */
};

static struct row row_of(const struct mw_report *report)
{
	struct row row = {.report = report, .impacting = mw_text_impacting(report), .verdict = "", .rank = 2};

	for (size_t i = 0; i < report->suspect_count; i++) {
		const struct mw_report_suspect *suspect = &report->suspects[i];

		if (suspect->verdict >= MW_GROWTH_STEADY)
			row.bytes_per_hour += suspect->bytes_per_hour;
	}
	/* The first is the worst. */
	if (report->suspect_count) {
		row.verdict = report->suspects[0].lost.count ? "lost" : mw_growth_name(report->suspects[0].verdict);
		row.rank = alarms(&report->suspects[0]) ? 0 : 1;
	}
	return row;
}

static int compare_rows(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	if (a->rank != b->rank)
		return a->rank - b->rank;
	if (a->bytes_per_hour != b->bytes_per_hour)
		return a->bytes_per_hour < b->bytes_per_hour ? 1 : -1;
	if (a->impacting.bytes != b->impacting.bytes)
		return a->impacting.bytes < b->impacting.bytes ? 1 : -1;
	return a->report->target.pid - b->report->target.pid;
}

static bool is_wide(const struct mw_text *text)
{
	return !text->options->width || text->options->width >= WIDE;
}

/* What has become of it in its window, if it is no more. */
static const char *end_of(const struct mw_report *report)
{
	switch (report->window.ended) {
	case MW_END_EXIT:
		return "exited";
	case MW_END_EXEC:
		return "exec'd another program";
	default:
		return "";
	}
}

static void put_row(struct mw_text *text, const struct row *row)
{
	struct mw_line *line = &text->line;
	const char *end;
	size_t from;

	mw_line_printf(line, "  %7d  ", row->report->target.pid);
	from = line->length;
	mw_line_name(line, row->report->target.comm);
	mw_line_elide(line, from, NAME_COLUMNS);
	mw_line_printf(line, "%*s", (int)(NAME_COLUMNS - mw_line_columns(line, from)), "");
	mw_text_cell(line, 11, mw_show_size(row->impacting.bytes).text);
	if (is_wide(text)) {
		mw_text_cell(line, 10, mw_show_count(row->impacting.count).text);
		mw_text_cell(line, 11,
			     row->bytes_per_hour >= 1 ? mw_show_size((uint64_t)row->bytes_per_hour).text : "");
	}
	end = end_of(row->report);
	mw_line_printf(line, "%s%s%s%s", *row->verdict || *end ? "  " : "", row->verdict,
		       *row->verdict && *end ? "; " : "", end);
	mw_text_line(text, MW_STYLE_PLAIN);
}

static void put_table(struct mw_text *text, const struct mw_report *const *reports, size_t count)
{
	MW_FREE struct row *rows = calloc(count, sizeof(*rows));
	size_t shown = text->options->all || count <= text->options->top ? count : text->options->top;

	if (!rows) {
		text->line.failed = true;
		return;
	}
	for (size_t i = 0; i < count; i++)
		rows[i] = row_of(reports[i]);
	qsort(rows, count, sizeof(*rows), compare_rows);
	mw_line_printf(&text->line, "  %7s  %-*s%11s%s  verdict", "pid", NAME_COLUMNS, "name", "not freed",
		       is_wide(text) ? "    blocks    an hour" : "");
	mw_text_line(text, MW_STYLE_HEADING);
	for (size_t i = 0; i < shown; i++)
		put_row(text, &rows[i]);
	if (shown < count)
		MW_TEXT_ROW(text, "             and %zu more: --all", count - shown);
}

/* --- the answer of all of them --------------------------------------------------------------------------------------- */

/* A line of code, in however many processes. */
struct place {
	const struct mw_report *report; /* one of them, and its suspect: the worst */
	const struct mw_report_suspect *suspect;
	uint64_t bytes, blocks;
	double bytes_per_hour;
	size_t processes;
	size_t last; /* process that was counted, from 1 on */
};

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_place(const struct place *place, const struct mw_report_suspect *suspect)
{
	const struct mw_report_frame *a = place->suspect->frame, *b = suspect->frame;

	if (!a || !b)
		return a == b;
	return same_text(a->function, b->function) && same_text(a->file, b->file) && a->line == b->line &&
	       same_text(a->module, b->module) && (a->function || a->file || a->offset == b->offset);
}

static int compare_places(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	if (a->suspect->verdict != b->suspect->verdict && alarms(a->suspect) != alarms(b->suspect))
		return alarms(a->suspect) ? -1 : 1;
	if (a->bytes_per_hour != b->bytes_per_hour)
		return a->bytes_per_hour < b->bytes_per_hour ? 1 : -1;
	return a->bytes < b->bytes ? 1 : a->bytes > b->bytes ? -1 : 0;
}

/* Suspects by place; `places` has room for all. */
static size_t gather(const struct mw_report *const *reports, size_t count, struct place *places)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < reports[i]->suspect_count; j++) {
			const struct mw_report_suspect *suspect = &reports[i]->suspects[j];
			size_t k = 0;

			while (k < found && !is_place(&places[k], suspect))
				k++;
			if (k == found)
				places[found++] = (struct place){.report = reports[i], .suspect = suspect};
			else if (alarms(suspect) && !alarms(places[k].suspect)) {
				places[k].report = reports[i];
				places[k].suspect = suspect;
			}
			places[k].bytes += suspect->bytes;
			places[k].blocks += suspect->blocks;
			if (suspect->verdict >= MW_GROWTH_STEADY)
				places[k].bytes_per_hour += suspect->bytes_per_hour;
			places[k].processes += places[k].last != i + 1;
			places[k].last = i + 1;
		}
	qsort(places, found, sizeof(*places), compare_places);
	return found;
}

static void put_place(struct mw_text *text, const struct place *place, size_t count)
{
	struct mw_line *line = &text->line;

	text->report = place->report;
	mw_line_printf(line, "%-5s ", mw_text_suspect_word(place->suspect));
	mw_text_place(text, place->suspect);
	mw_line_printf(line, " in %zu of %zu processes: %s in %s block%s", place->processes, count,
		       mw_show_size(place->bytes).text, mw_show_count(place->blocks).text,
		       place->blocks == 1 ? "" : "s");
	if (place->bytes_per_hour >= 1)
		mw_line_printf(line, " (%s a day)", mw_show_size((uint64_t)(place->bytes_per_hour * 24)).text);
	else
		mw_line_printf(line, ", %s", mw_growth_name(place->suspect->verdict));
	mw_text_styled_paragraph(text, 6, alarms(place->suspect) ? MW_STYLE_ALARM : MW_STYLE_HEADING);
}

static void put_places(struct mw_text *text, const struct mw_report *const *reports, size_t count)
{
	MW_FREE struct place *places = NULL;
	size_t all = 0, found, shown = 0;

	for (size_t i = 0; i < count; i++)
		all += reports[i]->suspect_count;
	places = calloc(all + 1, sizeof(*places));
	if (!places) {
		text->line.failed = true;
		return;
	}
	found = gather(reports, count, places);
	for (; shown < found && (shown < ANSWERS || text->options->all); shown++)
		put_place(text, &places[shown], count);
	if (shown < found)
		MW_TEXT_ROW(text, "      and %zu more place%s: --all", found - shown, found - shown == 1 ? "" : "s");
	if (!found)
		MW_TEXT_SAY(text, 6, "NONE  No leak found in these %zu processes.", count);
}

void mw_text_processes(struct mw_text *text, const struct mw_report *const *reports, size_t count)
{
	struct mw_amount sum = {.count = 0};
	size_t incomplete = 0;
	bool sampled = false;
	double seconds = 0;

	for (size_t i = 0; i < count; i++) {
		const struct mw_amount impacting = mw_text_impacting(reports[i]);
		double length = reports[i]->window.to - reports[i]->window.from;

		sum.count += impacting.count;
		sum.bytes += impacting.bytes;
		seconds = length > seconds ? length : seconds;
		incomplete += !mw_report_is_complete(reports[i]);
		sampled |= reports[i]->sampling.interval != 0;
	}
	text->report = reports[0];
	mw_line_printf(&text->line, "%zu processes, watched %s: %s%s in %s block%s not freed; ", count,
		       mw_show_seconds(seconds).text, sampled ? "about " : "", mw_show_size(sum.bytes).text,
		       mw_show_count(sum.count).text, sum.count == 1 ? "" : "s");
	if (incomplete)
		mw_line_printf(&text->line, "%zu not complete: --all says why", incomplete);
	else
		mw_line_printf(&text->line, "nothing lost");
	mw_text_styled_paragraph(text, 2, incomplete ? MW_STYLE_ALARM : MW_STYLE_HEADING);
	put_places(text, reports, count);
	fputc('\n', text->stream);
	put_table(text, reports, count);
	if (count > 3 && !text->options->all)
		MW_TEXT_SAY(text, 6,
			    "\nMore: --all (also each process by itself), --by process,stack, -o FILE (a recording: "
			    "memwatch "
			    "report FILE --pid PID)");
}
