// SPDX-License-Identifier: MIT
/* text.c: the report for reading: its order, its header and its last words. */
#include "output/text.h"

#include "output/line.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#define NAMED 4 /* of functions that were not hooked, in the first line */

static void limit_text(struct mw_line *line, const struct mw_engine_stats *stats)
{
	if (stats->limit_stopped)
		mw_line_printf(line, "it was paused for %s of five seconds, more than --max-stopped permits",
			       mw_show_percent((double)stats->limit_stopped, 1e6).text);
	else if (stats->limit_memory)
		mw_line_printf(line, "memwatch itself reached %s of memory, its limit (--max-memory)",
			       mw_show_size(stats->limit_memory).text);
	else
		mw_line_printf(line, "a limit was reached");
}

static void end_text(struct mw_line *line, const struct mw_report *report)
{
	switch (report->window.ended) {
	case MW_END_DURATION:
		mw_line_printf(line, "the duration was over");
		return;
	case MW_END_INTERRUPT:
		mw_line_printf(line, "interrupted");
		return;
	case MW_END_EXIT:
		if (!report->target.has_exit_status)
			mw_line_printf(line, "the process ended");
		else if (!report->target.exit_signal)
			mw_line_printf(line, "the process exited with status %d", report->target.exit_status);
		else if (sigabbrev_np(report->target.exit_signal))
			mw_line_printf(line, "the process was killed by SIG%s",
				       sigabbrev_np(report->target.exit_signal));
		else
			mw_line_printf(line, "the process was killed by signal %d", report->target.exit_signal);
		return;
	case MW_END_EXEC:
		mw_line_printf(line, "the process exec'd another program");
		return;
	case MW_END_TRIGGER:
		mw_line_printf(line, "the trigger fired");
		return;
	case MW_END_LIMIT:
		limit_text(line, &report->engine.stats);
		return;
	case MW_END_LOST:
		break;
	}
	if (report->lost.cut) {
		mw_line_printf(line, "not known, as the recording was cut off");
		return;
	}
	mw_line_printf(line, "the process was lost");
}

static void put_command(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	size_t count = report->target.command_count;
	struct mw_line *line = &text->line;

	/* A program that shows its state as its command line leaves the rest of the place empty. */
	while (count > 1 && report->target.command[count - 1] && !report->target.command[count - 1][0])
		count--;
	mw_line_printf(line, "  ");
	for (size_t i = 0; i < count; i++) {
		mw_line_printf(line, "%s", i ? " " : "");
		if (report->target.command[i] && !report->target.command[i][0])
			mw_line_printf(line, "''");
		else
			mw_line_name(line, report->target.command[i]);
	}
	if (!report->target.command_count)
		mw_line_name(line, report->target.exe);
	if (text->options->width)
		mw_line_elide(line, 2, text->options->width - 2);
	mw_text_line(text, MW_STYLE_PLAIN);
}

static void put_interval(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	uint64_t settle_ns = report->engine.stats.settle_ns;

	if (settle_ns && settle_ns != MW_SIZE_UNKNOWN) {
		mw_line_printf(&text->line, "  settled: frees were recorded for %s after the window",
			       mw_show_seconds((double)settle_ns / 1e9).text);
		mw_text_paragraph(text, 2);
	}
	if (report->window.from > 0 || report->window.to < report->window.seconds) {
		mw_line_printf(&text->line, "  interval: from %.3f s to %.3f s; what follows is of that interval",
			       report->window.from, report->window.to);
		mw_text_line(text, MW_STYLE_HEADING);
	}
}

static void put_window(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	time_t started = (time_t)(report->window.started_realtime_ns / 1000000000);
	char date[64];
	struct tm tm;

	if (!text->options->all && report->window.ended == MW_END_DURATION && !report->lost.cut) {
		put_interval(text);
		return;
	}
	mw_line_printf(&text->line, "  ");
	if (report->window.started_realtime_ns > 0 && gmtime_r(&started, &tm) &&
	    strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm))
		mw_line_printf(&text->line, "began %s UTC; ", date);
	mw_line_printf(&text->line, "ended: ");
	end_text(&text->line, report);
	mw_text_paragraph(text, 2);
	put_interval(text);
}

/* Stops, the longest, and the share of the time in which any of its threads was paused by them. */
static void add_cost(struct mw_line *line, const struct mw_report *report)
{
	const struct mw_engine_stats *stats = &report->engine.stats;

	mw_line_printf(line, "; %s stop%s, the longest %s", mw_show_count(stats->stops).text,
		       stats->stops == 1 ? "" : "s", mw_show_seconds((double)stats->longest_stop_ns / 1e9).text);
	if (report->window.seconds > 0)
		mw_line_printf(line, ", paused %s of the time",
			       mw_show_percent(mw_report_stopped_share(report), 1).text);
}

static void put_stopped(struct mw_text *text)
{
	const struct mw_engine_stats *stats = &text->report->engine.stats;
	struct mw_line *line = &text->line;

	mw_line_printf(line, "  paused: its threads %s in all at stops",
		       mw_show_seconds((double)stats->stopped_ns / 1e9).text);
	mw_line_printf(line, ", all of it %s at attach and %s at detach",
		       mw_show_seconds((double)stats->attach_ns / 1e9).text,
		       mw_show_seconds((double)stats->detach_ns / 1e9).text);
	mw_text_paragraph(text, 4);
}

/* Names of the first few. */
static void add_not_hooked(struct mw_line *line, const struct mw_report *report)
{
	size_t named = 0;

	for (size_t i = 0; i < report->engine.hook_count && named < NAMED; i++) {
		const struct mw_report_hook *hook = &report->engine.hooks[i];

		if (!hook->missed)
			continue;
		mw_line_printf(line, named++ ? ", " : " ");
		mw_line_name(line, hook->function);
	}
	if (report->lost.hooks > named)
		mw_line_printf(line, " and %s more", mw_show_count(report->lost.hooks - named).text);
}

static void add_lost(struct mw_line *line, const struct mw_report *report)
{
	uint64_t events = report->lost.events, stacks = report->lost.stacks;

	mw_line_printf(line, ": INCOMPLETE");
	if (events || stacks)
		mw_line_printf(line, ", lost");
	if (events)
		mw_line_printf(line, " %s event%s", mw_show_count(events).text, events == 1 ? "" : "s");
	if (stacks)
		mw_line_printf(line, "%s %s stack%s", events ? " and" : "", mw_show_count(stacks).text,
			       stacks == 1 ? "" : "s");
	if (report->lost.hooks) {
		mw_line_printf(line, ", no call was seen of");
		add_not_hooked(line, report);
	}
}

/* What recording inside the process cost it. */
static void put_recorder(struct mw_text *text)
{
	const struct mw_engine_stats *stats = &text->report->engine.stats;
	struct mw_line *line = &text->line;

	if (stats->walks && text->options->all) {
		mw_line_printf(line, "  recorder: %s in the process, not counted in its figures",
			       mw_show_size(stats->own_resident).text);
		mw_line_printf(line, "; %s of its stacks were unwound by memwatch",
			       mw_show_percent((double)stats->slow_walks, (double)stats->walks).text);
		if (stats->waited_ns)
			mw_line_printf(line, "; its threads waited %s for memwatch",
				       mw_show_seconds((double)stats->waited_ns / 1e9).text);
		mw_text_paragraph(text, 4);
	}
	if (stats->left_behind) {
		mw_line_printf(line, "  left in the process: %s", stats->left_behind);
		mw_text_paragraph(text, 4);
	}
}

void mw_text_header(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	struct mw_line *line = &text->line;
	bool complete = mw_report_is_complete(report);

	mw_line_name(line, report->target.comm);
	mw_line_printf(line, " (pid %d), watched for %s by engine ", report->target.pid,
		       mw_show_seconds(report->window.seconds).text);
	mw_line_name(line, report->engine.name);
	if (complete)
		mw_line_printf(line, ": nothing was lost");
	else if (report->lost.cut)
		mw_line_printf(line, ": the recording was cut off here (%s)", report->lost.cut);
	else
		add_lost(line, report);
	if (!report->lost.cut)
		add_cost(line, report);
	mw_text_styled_paragraph(text, 2, complete ? MW_STYLE_HEADING : MW_STYLE_ALARM);
	if (text->options->all)
		put_command(text);
	put_window(text);
	if (!report->lost.cut && text->options->all)
		put_stopped(text);
	if (!report->lost.cut)
		put_recorder(text);
	/* trap is slow: why it was taken is worth a line. */
	if (report->engine.reason && report->engine.reason[0] &&
	    (text->options->all || strcmp(report->engine.name ? report->engine.name : "", "trap") == 0)) {
		mw_line_printf(line, "  engine: ");
		mw_line_name(line, report->engine.reason);
		mw_text_paragraph(text, 4);
	}
}

static void put_rule(struct mw_text *text, size_t index, size_t count)
{
	if (index)
		fputc('\n', text->stream);
	mw_line_printf(&text->line, "=== process %zu of %zu: ", index + 1, count);
	mw_line_name(&text->line, text->report->target.comm);
	mw_line_printf(&text->line, " (pid %d) ===", text->report->target.pid);
	if (text->options->width)
		mw_line_elide(&text->line, 0, text->options->width);
	mw_text_line(text, MW_STYLE_HEADING);
}

static struct mw_amount impacting_of(const struct mw_report *report)
{
	struct mw_amount sum = report->totals[MW_KIND_HEAP].impacting;

	sum.count += report->totals[MW_KIND_VM].impacting.count;
	sum.bytes += report->totals[MW_KIND_VM].impacting.bytes;
	return sum;
}

/* Where to go from here. */
static void put_more(struct mw_text *text)
{
	mw_line_printf(
		&text->line,
		"\nMore: --all (everything), --html FILE (a page), -o FILE (a recording, to ask again by memwatch "
		"report FILE --by module,stack --from A --to B)");
	mw_text_paragraph(text, 6);
}

/* A question is answered by its views alone. */
static void put_report(struct mw_text *text, const struct mw_views *views)
{
	mw_text_header(text);
	if (views && !text->options->all) {
		mw_text_views(text, views);
		return;
	}
	mw_text_answer(text);
	mw_text_rss(text);
	if (mw_text_any(text->report))
		mw_text_children(text);
	if (views)
		mw_text_views(text, views);
	else
		mw_text_suspects(text);
	mw_text_totals(text);
	if (text->options->all) {
		mw_text_tables(text);
		if (!views)
			mw_text_stacks(text);
	}
	mw_text_limits(text);
	if (!text->options->all)
		put_more(text);
}

struct mw_error *mw_text_write(const struct mw_report *const *reports, size_t count,
			       const struct mw_output_options *options, FILE *stream)
{
	struct mw_output_options clamped = *options;
	struct mw_text text = {.options = &clamped, .stream = stream};
	bool failed;

	/* Narrower, the tables would have to be cut. */
	if (clamped.width && clamped.width < MW_TEXT_LEAST_WIDTH)
		clamped.width = MW_TEXT_LEAST_WIDTH;
	for (size_t i = 0; i < count; i++) {
		text.report = reports[i];
		text.impacting = impacting_of(reports[i]);
		if (count > 1)
			put_rule(&text, i, count);
		put_report(&text, options->views ? options->views[i] : NULL);
	}
	failed = text.line.failed;
	mw_line_deinit(&text.line);
	return failed ? mw_error_nomem() : NULL;
}
