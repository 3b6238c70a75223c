// SPDX-License-Identifier: MIT
/* judge.c: see judge.h. */
#include "session/judge.h"

#include "output/findings.h"

#include <inttypes.h>
#include <stdio.h>

#define LEAST_WINDOW 1.0 /* seconds: in less there are no verdicts (src/view/verdict.h) */

/* --- windows --------------------------------------------------------------------------------------------------------- */

static void add_condition(struct mw_line *line, const struct mw_fail_on *fail_on)
{
	mw_line_printf(line, "--fail-on %s", fail_on->leak ? "leak" : "growth");
	if (fail_on->leak && fail_on->growth)
		mw_line_printf(line, ", growth");
	if (fail_on->bytes_per_hour)
		mw_line_printf(line, " (%s an hour)", mw_show_size(fail_on->bytes_per_hour).text);
	mw_line_printf(line, ": ");
}

static void add_process(struct mw_line *line, const struct mw_report *report)
{
	mw_line_name(line, report->target.comm);
	mw_line_printf(line, " (pid %d)", report->target.pid);
}

/* Gives `line` away, as an error or without memory as that. */
static struct mw_error *tell(enum mw_error_kind kind, struct mw_line *line)
{
	struct mw_error *err =
		line->failed ? mw_error_nomem() : mw_error_create(kind, 0, "%s", line->data ? line->data : "");

	mw_line_deinit(line);
	return err;
}

/* The worst that is a failure, and how many are; 0: none. */
static size_t find_worst(const struct mw_fail_on *fail_on, const struct mw_report *const *reports, size_t count,
			 const struct mw_report **report, const struct mw_report_suspect **worst)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		size_t before = found;

		for (size_t j = 0; j < reports[i]->suspect_count; j++) {
			const struct mw_report_suspect *suspect = &reports[i]->suspects[j];

			if (!mw_finding_fails(fail_on, suspect))
				continue;
			/* Those of one process have their order. */
			if (found++ == before && (!*worst || suspect->bytes_per_hour > (*worst)->bytes_per_hour)) {
				*report = reports[i];
				*worst = suspect;
			}
		}
	}
	return found;
}

static struct mw_error *judge_suspects(const struct mw_fail_on *fail_on, const struct mw_report *const *reports,
				       size_t count)
{
	const struct mw_report_suspect *worst = NULL;
	struct mw_text text = {.report = NULL};
	size_t found = find_worst(fail_on, reports, count, &text.report, &worst);

	if (!found)
		return NULL;
	add_condition(&text.line, fail_on);
	add_process(&text.line, text.report);
	mw_line_printf(&text.line, ": ");
	mw_text_place(&text, worst);
	mw_line_printf(&text.line, ": %s%s, ", worst->lost.count ? "lost blocks, " : "",
		       mw_growth_name(worst->verdict));
	mw_finding_amounts(&text, worst);
	if (found > 1)
		mw_line_printf(&text.line, "; and %s more", mw_show_count(found - 1).text);
	return tell(MW_ERROR_FOUND, &text.line);
}

static struct mw_error *judge_processes(const struct mw_fail_on *fail_on, const struct mw_report *const *reports,
					size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct mw_line line = {0};

		add_condition(&line, fail_on);
		add_process(&line, reports[i]);
		mw_line_printf(&line, ": ");
		if (mw_finding_process(fail_on, reports[i], &line))
			return tell(MW_ERROR_FOUND, &line);
		mw_line_deinit(&line);
	}
	return NULL;
}

/* Was any process watched for as long as it was to be? A command may end before. */
static bool lasted(const struct mw_session_options *options, const struct mw_report *const *reports, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (reports[i]->window.ended == MW_END_DURATION ||
		    (options->command && reports[i]->window.ended == MW_END_EXIT))
			return true;
	return !options->duration_ns || !count;
}

/* Are there suspects, and could none be judged? Of short-lived helpers beside a process that was watched for long it does not
 * matter. */
static bool too_short(const struct mw_report *const *reports, size_t count)
{
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		if (reports[i]->window.seconds >= LEAST_WINDOW)
			return false;
		any |= reports[i]->suspect_count > 0;
	}
	return any;
}

/* Did none of them allocate anything? Then there was no load. */
static bool idle(const struct mw_report *const *reports, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (reports[i]->totals[MW_KIND_HEAP].size.count || reports[i]->totals[MW_KIND_VM].size.count)
			return false;
	return true;
}

/* Nothing was found: could it have been? */
static struct mw_error *judge_gaps(const struct mw_session_options *options, const struct mw_report *const *reports,
				   size_t count, uint64_t left_out)
{
	static const char hint[] = "That is no success: watch again, or for longer";
	struct mw_line line = {0};

	add_condition(&line, &options->fail_on);
	mw_line_printf(&line, "nothing was found, but ");
	if (left_out) {
		mw_line_printf(&line, "%" PRIu64 " process%s could not be watched", left_out,
			       left_out == 1 ? "" : "es");
		return mw_error_hint(tell(MW_ERROR_DATA, &line), "%s", hint);
	}
	if (!lasted(options, reports, count)) {
		mw_line_printf(&line, "the window ended before its time: ");
		mw_text_end(&line, reports[0]);
		return mw_error_hint(tell(MW_ERROR_DATA, &line), "%s", hint);
	}
	for (size_t i = 0; i < count; i++) {
		size_t length = line.length;

		add_process(&line, reports[i]);
		mw_line_printf(&line, ": ");
		if (mw_finding_gaps(reports[i], &line))
			return mw_error_hint(tell(MW_ERROR_DATA, &line), "%s", hint);
		mw_line_cut(&line, length);
	}
	if (too_short(reports, count)) {
		mw_line_printf(&line, "a window of %s is too short for a verdict",
			       mw_show_seconds(reports[0]->window.seconds).text);
		return mw_error_hint(tell(MW_ERROR_DATA, &line), "%s", hint);
	}
	if (idle(reports, count)) {
		mw_line_printf(&line, "nothing was allocated in the window either");
		return mw_error_hint(tell(MW_ERROR_DATA, &line), "That is no success: is the process under load?");
	}
	mw_line_deinit(&line);
	return NULL;
}

/* Where it is a success: what it does not cover. */
static void tell_open(const struct mw_report *const *reports, size_t count)
{
	struct mw_amount open = {0};

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < reports[i]->suspect_count; j++)
			if (reports[i]->suspects[j].verdict == MW_GROWTH_TOO_SHORT)
				mw_amount_add(&open, (struct mw_amount){1, reports[i]->suspects[j].bytes});
	if (open.count)
		fprintf(stderr,
			"memwatch: --fail-on: nothing was found; for %s line%s (%s) the window is too short to tell\n",
			mw_show_count(open.count).text, open.count == 1 ? "" : "s", mw_show_size(open.bytes).text);
}

struct mw_error *mw_judge_reports(const struct mw_session_options *options, const struct mw_report *const *reports,
				  size_t count, uint64_t left_out)
{
	if (!options->fail_on.leak && !options->fail_on.growth)
		return NULL;
	MW_TRY(judge_suspects(&options->fail_on, reports, count));
	MW_TRY(judge_processes(&options->fail_on, reports, count));
	MW_TRY(judge_gaps(options, reports, count, left_out));
	tell_open(reports, count);
	return NULL;
}

/* --- a look at a heap ------------------------------------------------------------------------------------------------ */

static struct mw_error *not_looked_at(const char *of, const char *why)
{
	return mw_error_hint(mw_error_create(MW_ERROR_DATA, 0,
					     "--fail-on leak: no block is lost, but not all of the heap was looked at: "
					     "%s%s%s",
					     of, why ? ": " : "", why ? why : ""),
			     "That is no success: the report says what is missing");
}

struct mw_error *mw_judge_can_heap(const struct mw_fail_on *fail_on)
{
	if (!fail_on->growth)
		return NULL;
	return mw_error_hint(
		mw_error_create(MW_ERROR_USAGE, 0,
				"--fail-on growth can't be used with a look at a heap, which is of one moment"),
		"Use --fail-on leak, or watch the process for a while: memwatch -p PID -d 60");
}

struct mw_error *mw_judge_heap(const struct mw_fail_on *fail_on, const struct mw_heap_report *heap)
{
	struct mw_amount lost = heap->leaks[MW_REACH_DEFINITE];

	MW_TRY(mw_judge_can_heap(fail_on));
	if (!fail_on->leak)
		return NULL;
	mw_amount_add(&lost, heap->leaks[MW_REACH_INDIRECT]);
	if (lost.count) {
		struct mw_line line = {0};

		add_condition(&line, fail_on);
		mw_line_name(&line, heap->comm);
		mw_line_printf(&line, " (pid %d): %s in %s block%s lost", heap->pid, mw_show_size(lost.bytes).text,
			       mw_show_count(lost.count).text, lost.count == 1 ? " is" : "s are");
		if (heap->group_count && heap->groups[0].verdict == MW_REACH_DEFINITE) {
			mw_line_printf(&line, ", most in ");
			mw_text_heap_kind(&line, heap->groups[0].class_name, heap->groups[0].size,
					  heap->groups[0].arena);
		}
		return tell(MW_ERROR_FOUND, &line);
	}
	if (heap->unread)
		return not_looked_at("memory that can't be read", NULL);
	for (size_t i = 0; i < heap->allocator_count; i++)
		if (!heap->allocators[i].walked)
			return not_looked_at(heap->allocators[i].name, heap->allocators[i].why);
	return NULL;
}
