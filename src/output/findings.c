// SPDX-License-Identifier: MIT
/* findings.c: see findings.h. */
#include "output/findings.h"

#include <string.h>

#define QUARTERS     4
#define LEAST_OF_ONE 4 /* samples of a quarter */
#define HOUR         3600.0

/* --- suspects -------------------------------------------------------------------------------------------------------- */

static bool grows(const struct mw_report_suspect *suspect)
{
	return suspect->verdict >= MW_GROWTH_STEADY;
}

bool mw_finding_leaks(const struct mw_report_suspect *suspect)
{
	const char *word = mw_text_suspect_word(suspect);

	return strcmp(word, "LOST") == 0 || strcmp(word, "LEAK") == 0;
}

bool mw_finding_fails(const struct mw_fail_on *fail_on, const struct mw_report_suspect *suspect)
{
	if (!fail_on->leak && !fail_on->growth)
		return suspect->lost.count || grows(suspect);
	if (fail_on->leak && mw_finding_leaks(suspect))
		return true;
	return fail_on->growth && grows(suspect) &&
	       (!fail_on->bytes_per_hour || suspect->bytes_per_hour > (double)fail_on->bytes_per_hour);
}

void mw_finding_amounts(struct mw_text *text, const struct mw_report_suspect *suspect)
{
	struct mw_line *line = &text->line;

	mw_line_printf(line, "%s in %s block%s not freed in %s", mw_show_size(suspect->bytes).text,
		       mw_show_count(suspect->blocks).text, suspect->blocks == 1 ? "" : "s",
		       mw_show_seconds(text->report->window.to - text->report->window.from).text);
	if (suspect->bytes_per_hour >= 1)
		mw_line_printf(line, ", %s an hour", mw_show_size((uint64_t)suspect->bytes_per_hour).text);
	if (suspect->lost.count)
		mw_line_printf(line, "; %s of them lost", mw_show_size(suspect->lost.bytes).text);
}

/* --- the process ----------------------------------------------------------------------------------------------------- */

/* The least that the RSS rises by in an hour from a quarter of the interval to the next; 0 or less: it does not. */
static double rss_per_hour(const struct mw_report *report)
{
	double quarter = (report->window.to - report->window.from) / QUARTERS, least = 0;
	uint64_t floors[QUARTERS] = {0};
	size_t counts[QUARTERS] = {0};

	for (size_t i = 0; i < report->memory_count && quarter > 0; i++) {
		const struct mw_report_sample *sample = &report->memory[i];
		double place = (sample->at - report->window.from) / quarter;
		size_t number = place >= QUARTERS ? QUARTERS - 1 : (size_t)(place > 0 ? place : 0);

		if (sample->at < report->window.from || sample->at > report->window.to)
			continue;
		if (!counts[number]++ || sample->rss < floors[number])
			floors[number] = sample->rss;
	}
	for (size_t i = 0; i < QUARTERS; i++) {
		double rise;

		if (counts[i] < LEAST_OF_ONE)
			return 0;
		if (!i)
			continue;
		rise = ((double)floors[i] - (double)floors[i - 1]) / quarter * HOUR;
		if (i == 1 || rise < least)
			least = rise;
	}
	return least;
}

bool mw_finding_process(const struct mw_fail_on *fail_on, const struct mw_report *report, struct mw_line *line)
{
	double limit = (double)fail_on->bytes_per_hour, sum = 0, rss;
	size_t count = 0;

	if (!fail_on->growth || !fail_on->bytes_per_hour)
		return false;
	for (size_t i = 0; i < report->suspect_count; i++) {
		if (mw_finding_fails(fail_on, &report->suspects[i]))
			return false;
		if (!grows(&report->suspects[i]))
			continue;
		sum += report->suspects[i].bytes_per_hour;
		count++;
	}
	rss = rss_per_hour(report);
	if (sum > limit)
		mw_line_printf(line, "%s lines that grow together: %s an hour", mw_show_count(count).text,
			       mw_show_size((uint64_t)sum).text);
	else if (rss > limit)
		mw_line_printf(line, "the RSS rises from each quarter of the %s to the next: %s an hour or more",
			       mw_show_seconds(report->window.to - report->window.from).text,
			       mw_show_size((uint64_t)rss).text);
	return sum > limit || rss > limit;
}

/* --- what is not known ----------------------------------------------------------------------------------------------- */

bool mw_finding_gaps(const struct mw_report *report, struct mw_line *line)
{
	bool limited = report->window.ended == MW_END_LIMIT || report->window.ended == MW_END_LOST;

	if (report->lost.cut) {
		mw_line_printf(line, "the recording is not complete (%s)", report->lost.cut);
	} else if (!mw_report_is_complete(report)) {
		mw_line_printf(line, "the window is not complete: ");
		mw_text_lost(line, report);
	} else if (limited) {
		mw_line_printf(line, "the window ended early: ");
		mw_text_end(line, report);
	} else {
		return false;
	}
	return true;
}
