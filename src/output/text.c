// SPDX-License-Identifier: MIT
/* text.c: the report for reading: its order, its header and its last words. */
#include "output/text.h"

#include "output/line.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAMED         4 /* of functions that were not hooked, in the first line */
#define LEAST_STOPPED 0.01

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

void mw_text_end(struct mw_line *line, const struct mw_report *report)
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
	case MW_END_RUNNING:
		mw_line_printf(line, "it still runs");
		return;
	case MW_END_LOST:
		break;
	}
	if (report->lost.cut) {
		mw_line_printf(line, "not known, as the recording is not complete");
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
	mw_text_fit(text, 2);
	mw_text_line(text, MW_STYLE_PLAIN);
}

static void put_interval(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	uint64_t settle_ns = report->engine.stats.settle_ns, own_cpu_ns = report->engine.stats.own_cpu_ns;
	bool settled = settle_ns && settle_ns != MW_SIZE_UNKNOWN;
	bool counted = own_cpu_ns && own_cpu_ns != MW_SIZE_UNKNOWN;

	if (settled)
		mw_line_printf(&text->line, "  settled: frees were recorded for %s after the window",
			       mw_show_seconds((double)settle_ns / 1e9).text);
	if (counted)
		mw_line_printf(&text->line, "%smemwatch used %s of CPU time", settled ? "; " : "  ",
			       mw_show_seconds((double)own_cpu_ns / 1e9).text);
	if (settled || counted)
		mw_text_paragraph(text, 4);
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
	mw_text_end(&text->line, report);
	mw_text_paragraph(text, 2);
	put_interval(text);
}

/* Stops, the longest, and the share of the time in which any of its threads was paused by them, where it counts. */
static void add_cost(struct mw_line *line, const struct mw_report *report)
{
	const struct mw_engine_stats *stats = &report->engine.stats;

	mw_line_printf(line, "; paused %s time%s", mw_show_count(stats->stops).text, stats->stops == 1 ? "" : "s");
	if (stats->stops)
		mw_line_printf(line, ", at most %s", mw_show_seconds((double)stats->longest_stop_ns / 1e9).text);
	if (mw_report_stopped_share(report) >= LEAST_STOPPED)
		mw_line_printf(line, ", %s of the time", mw_show_percent(mw_report_stopped_share(report), 1).text);
}

static void put_stopped(struct mw_text *text)
{
	const struct mw_engine_stats *stats = &text->report->engine.stats;
	struct mw_line *line = &text->line;

	mw_line_printf(line, "  paused: its threads %s in all at stops",
		       mw_show_seconds((double)stats->stopped_ns / 1e9).text);
	MW_TEXT_SAY(text, 4, ", all of it %s at attach and %s at detach",
		    mw_show_seconds((double)stats->attach_ns / 1e9).text,
		    mw_show_seconds((double)stats->detach_ns / 1e9).text);
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

void mw_text_lost(struct mw_line *line, const struct mw_report *report)
{
	uint64_t events = report->lost.events, stacks = report->lost.stacks;

	if (events || stacks)
		mw_line_printf(line, "lost");
	if (events)
		mw_line_printf(line, " %s event%s", mw_show_count(events).text, events == 1 ? "" : "s");
	if (stacks)
		mw_line_printf(line, "%s %s stack%s", events ? " and" : "", mw_show_count(stacks).text,
			       stacks == 1 ? "" : "s");
	if (report->lost.hooks) {
		mw_line_printf(line, "%sno call was seen of", events || stacks ? ", " : "");
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
	if (stats->left_behind)
		MW_TEXT_SAY(text, 4, "  left in the process: %s", stats->left_behind);
}

/* How many heap blocks are recorded. */
static void put_sampling(struct mw_text *text)
{
	const struct mw_report_sampling *sampling = &text->report->sampling;
	uint64_t least = sampling->interval;

	if (!sampling->interval)
		return;
	for (size_t i = 0; i < sampling->count; i++)
		least = sampling->intervals[i].bytes < least ? sampling->intervals[i].bytes : least;
	mw_line_printf(&text->line, "  sampled");
	if (sampling->why)
		mw_line_printf(&text->line, " from %s on (%s)", mw_show_seconds(sampling->from).text, sampling->why);
	mw_line_printf(&text->line, ": one heap block in %s", mw_show_size(least).text);
	if (least < sampling->interval)
		mw_line_printf(&text->line, " to %s", mw_show_size(sampling->interval).text);
	mw_line_printf(&text->line, " on average; amounts are estimates ± standard error");
	mw_text_styled_paragraph(text, 4, MW_STYLE_HEADING);
}

static void put_header(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	struct mw_line *line = &text->line;
	bool complete = mw_report_is_complete(report);

	mw_line_name(line, report->target.comm);
	mw_line_printf(line, " (pid %d), watched %s, engine ", report->target.pid,
		       mw_show_seconds(report->window.seconds).text);
	mw_line_name(line, report->engine.name);
	if (complete)
		mw_line_printf(line, report->sampling.interval ? ": sampled, no event was lost" : ": nothing lost");
	else if (report->lost.cut)
		mw_line_printf(line, ": the recording is not complete (%s)", report->lost.cut);
	else {
		mw_line_printf(line, ": INCOMPLETE, ");
		mw_text_lost(line, report);
	}
	if (!report->lost.cut)
		add_cost(line, report);
	mw_text_styled_paragraph(text, 2, complete ? MW_STYLE_HEADING : MW_STYLE_ALARM);
	put_sampling(text);
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
		mw_line_put(line, "  engine: ", report->engine.reason);
		mw_text_paragraph(text, 4);
	}
}

static void put_rule(struct mw_text *text, size_t index, size_t count, bool first)
{
	if (!first)
		fputc('\n', text->stream);
	mw_line_printf(&text->line, "=== process %zu of %zu: ", index + 1, count);
	mw_line_name(&text->line, text->report->target.comm);
	mw_line_printf(&text->line, " (pid %d) ===", text->report->target.pid);
	mw_text_fit(text, 0);
	mw_text_line(text, MW_STYLE_HEADING);
}

struct mw_amount mw_text_impacting(const struct mw_report *report)
{
	struct mw_amount sum = report->totals[MW_KIND_HEAP].impacting;

	sum.count += report->totals[MW_KIND_VM].impacting.count;
	sum.bytes += report->totals[MW_KIND_VM].impacting.bytes;
	return sum;
}

#define SINGLY   3  /* so many processes are also reported one after another */
#define CHILDREN 16 /* so many are named */

/* How many children were not watched. */
static size_t unwatched(const struct mw_report *report)
{
	size_t count = 0;

	for (size_t i = 0; i < report->target.child_count; i++)
		count += !report->target.children[i].watched;
	return count;
}

/* The options that watch them: -p 24386,24387, or --children */
static void add_unwatched(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	size_t named = 0;

	for (size_t i = 0; i < report->target.child_count && named < CHILDREN; i++)
		if (!report->target.children[i].watched)
			mw_line_printf(&text->line, "%s%d", named++ ? "," : "-p ", report->target.children[i].pid);
	if (unwatched(report) > named)
		mw_line_printf(&text->line, " and %s more", mw_show_count(unwatched(report) - named).text);
	mw_line_printf(&text->line, ", or --children");
}

static void put_children(struct mw_text *text)
{
	size_t count = unwatched(text->report);

	if (!count)
		return;
	mw_line_printf(&text->line, "      %s child%s not watched: ", mw_show_count(count).text,
		       count == 1 ? "" : "ren");
	add_unwatched(text);
	mw_text_styled_paragraph(text, 6, MW_STYLE_HEADING);
}

/* Fit for a shell, in lines that can be copied to one. */
static void put_packages(struct mw_text *text, int indent)
{
	const struct mw_report_nameless *nameless = &text->report->nameless;
	struct mw_line *line = &text->line;

	mw_line_printf(line, "%*s%s%s", indent, "", nameless->sudo, nameless->begin);
	for (size_t i = 0; i < nameless->argument_count; i++) {
		char *word = mw_shell_word(nameless->arguments[i]);
		size_t columns = word ? mw_utf8_columns(word, strlen(word)) : 0;

		if (i + 1 == nameless->argument_count)
			columns += strcspn(nameless->end, "\n");

		line->failed |= !word;
		if (text->options->width && mw_line_columns(line, 0) + columns + 3 > text->options->width) {
			MW_TEXT_ROW(text, " \\");
			mw_line_printf(line, "%*s", indent - 1, "");
		}
		mw_line_printf(line, " %s", word ? word : "");
		free(word);
	}
	MW_TEXT_ROW(text, "%s", nameless->end);
}

const char *mw_text_nameless_hint(const struct mw_report_nameless *nameless)
{
	if (!nameless->module_count)
		return NULL;
	if (nameless->argument_count)
		return nameless->begin ? "the debug packages have them"
				       : "install the debug packages of this distribution";
	return nameless->module_count == 1 ? "build it with -g, and do not strip it"
					   : "build them with -g, and do not strip them";
}

static bool is_nameless(const struct mw_report_suspect *suspect)
{
	return (suspect->verdict >= MW_GROWTH_STEADY || suspect->verdict == MW_GROWTH_TOO_SHORT) && suspect->frame &&
	       !suspect->frame->function;
}

/* Where the worst suspect has no name, how it is had is said with the answer, else among the limits. */
static void put_nameless(struct mw_text *text, bool answers)
{
	const struct mw_report *report = text->report;
	const struct mw_report_nameless *nameless = &report->nameless;
	struct mw_line *line = &text->line;

	if (!nameless->module_count || answers != (report->suspect_count && is_nameless(&report->suspects[0])))
		return;
	mw_line_printf(line, "%sames of functions in ", answers ? "      No n" : "  - N");
	for (size_t i = 0; i < nameless->module_count; i++) {
		mw_line_printf(line, "%s", i == 0 ? "" : i + 1 == nameless->module_count ? " and " : ", ");
		mw_line_name(line, mw_text_base_name(nameless->modules[i]));
	}
	MW_TEXT_SAY(text, answers ? 6 : 4, " (they are shown as offsets): %s%s", mw_text_nameless_hint(nameless),
		    nameless->begin ? ":" : ".");
	if (nameless->begin)
		put_packages(text, answers ? 8 : 6);
}

/* What the largest suspect or the growth of the RSS may come from is said with the answer, and so is what an answer of no leak
 * can't know; else it stands among the limits. */
static bool runtimes_matter(const struct mw_report *report)
{
	const struct mw_report_suspect *largest = NULL;

	for (size_t i = 0; i < report->suspect_count; i++)
		if ((report->suspects[i].verdict >= MW_GROWTH_STEADY ||
		     report->suspects[i].verdict == MW_GROWTH_TOO_SHORT) &&
		    (!largest || report->suspects[i].bytes > largest->bytes))
			largest = &report->suspects[i];
	return report->rss.unexplained || !largest || report->stacks[largest->stacks[0]].kind == MW_KIND_VM;
}

static void put_runtimes(struct mw_text *text, bool answers)
{
	if (answers != runtimes_matter(text->report))
		return;
	for (size_t i = 0; i < text->report->runtime_count; i++)
		MW_TEXT_SAY(text, answers ? 6 : 4, "%s%s", answers ? "      Not seen: " : "  - ",
			    text->report->runtimes[i].text);
	if (text->report->frames_missing)
		MW_TEXT_SAY(text, answers ? 6 : 4, "%s%s.", answers ? "      " : "  - ", text->report->frames_missing);
}

/* --- what the report can't know: a reader must not take silence for health ----------------------------------------- */

/* So many refusals are reported one by one. */
#define REFUSALS 8

static void put_before(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	struct mw_line *line = &text->line;
	struct mw_amount freed = {0};
	uint64_t unknown = 0;

	if (!mw_text_has_older(text))
		return;
	for (unsigned kind = 0; kind < MW_KIND_VM_INTERNAL; kind++) {
		freed.count += report->totals[kind].aofi.count;
		freed.bytes += report->totals[kind].aofi.bytes;
		unknown += report->totals[kind].aofi_unknown;
	}
	mw_line_printf(line,
		       "  - Blocks from before the %s are not in it: only what was allocated since can "
		       "show as not freed.",
		       mw_text_span(text));
	if (!mw_report_knows_older(report, MW_KIND_HEAP)) {
		mw_line_printf(line,
			       " How many older heap blocks were freed inside it is not known, as blocks are sampled.");
	} else if (freed.count) {
		mw_line_printf(line, " %s older block%s freed inside it (%s", mw_show_count(freed.count).text,
			       freed.count == 1 ? " was" : "s were",
			       unknown >= freed.count ? "size unknown" : mw_show_size(freed.bytes).text);
		if (unknown && unknown < freed.count)
			mw_line_printf(line, "; %s of them of unknown size", mw_show_count(unknown).text);
		mw_line_printf(line, ").");
	}
	mw_text_paragraph(text, 4);
}

/* What is killed, or becomes another program, is not looked at before. */
static void put_unknown_space(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	const struct mw_report_space *space = report->space;
	bool ended = report->window.ended == MW_END_EXIT || report->window.ended == MW_END_EXEC;

	if (!ended || (space && space->end.known))
		return;
	MW_TEXT_SAY(text, 4,
		    "  - What the address space held at the end, and so in which heap some blocks were: "
		    "a process that ends by itself is looked at before it does, not one that is killed or becomes "
		    "another program.");
}

static void put_refusals(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	struct mw_line *line = &text->line;
	size_t refused = 0;

	for (size_t i = 0; i < report->engine.hook_count; i++) {
		const struct mw_report_hook *hook = &report->engine.hooks[i];

		if (!hook->refused || ++refused > REFUSALS)
			continue;
		mw_line_put(line, "  - Not hooked, so its calls were not seen: ", hook->function);
		mw_line_put(line, " in ", hook->module);
		mw_line_put(line, ": ", hook->refused);
		mw_text_paragraph(text, 4);
	}
	if (refused > REFUSALS)
		MW_TEXT_SAY(text, 4, "  - … and %s more entry points were not hooked; the JSON report has them all.",
			    mw_show_count(refused - REFUSALS).text);
}

#define CUT_MODULES 3

struct cut_module {
	const char *path; /* NULL: code in no file */
	size_t stacks;
};

static int most_stacks(const void *a, const void *b)
{
	const struct cut_module *left = a, *right = b;

	if (left->stacks != right->stacks)
		return left->stacks > right->stacks ? -1 : 1;
	return strcmp(left->path ? left->path : "", right->path ? right->path : "");
}

/* In which modules stacks end early; to be freed, NULL without memory. */
static struct cut_module *cut_modules(const struct mw_report *report, size_t *count)
{
	struct cut_module *modules = calloc(report->stack_count ? report->stack_count : 1, sizeof(*modules));

	*count = 0;
	for (size_t i = 0; modules && i < report->stack_count; i++) {
		const struct mw_report_stack *stack = &report->stacks[i];
		const char *path;
		size_t at = 0;

		if (stack->cut != MW_STACK_BROKEN || stack->end == MW_STACK_END_GENERATED || !stack->frame_count)
			continue;
		path = stack->frames[stack->frame_count - 1].module;
		while (at < *count &&
		       (!path || !modules[at].path ? path != modules[at].path : strcmp(path, modules[at].path) != 0))
			at++;
		*count += at == *count;
		modules[at].path = path;
		modules[at].stacks++;
	}
	if (modules)
		qsort(modules, *count, sizeof(*modules), most_stacks);
	return modules;
}

static void put_cut_modules(struct mw_text *text)
{
	size_t count;
	struct cut_module *modules = cut_modules(text->report, &count);

	for (size_t i = 0; i < count && i < CUT_MODULES; i++) {
		mw_line_printf(&text->line, "%s%s in ", i ? ", " : ": ", mw_show_count(modules[i].stacks).text);
		mw_line_name(&text->line, modules[i].path ? mw_text_base_name(modules[i].path) : "code of no file");
	}
	mw_line_printf(&text->line, "%s.", count > CUT_MODULES ? ", …" : "");
	free(modules);
}

static void put_cut(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	size_t broken = 0, truncated = 0, generated = 0;

	for (size_t i = 0; i < report->stack_count; i++) {
		bool ends = report->stacks[i].end == MW_STACK_END_GENERATED;

		generated += ends;
		broken += report->stacks[i].cut == MW_STACK_BROKEN && !ends;
		truncated += report->stacks[i].cut == MW_STACK_TRUNCATED;
	}
	if (generated)
		MW_TEXT_SAY(
			text, 4,
			"  - %s of %s stacks end%s at code that was generated at run time, and that says nothing of "
			"its callers.",
			mw_show_count(generated).text, mw_show_count(report->stack_count).text,
			generated == 1 ? "s" : "");
	if (broken) {
		mw_line_printf(
			&text->line, "  - %s of %s stacks end%s early, as there is no unwind information from there on",
			mw_show_count(broken).text, mw_show_count(report->stack_count).text, broken == 1 ? "s" : "");
		put_cut_modules(text);
		mw_text_paragraph(text, 4);
	}
	if (truncated)
		MW_TEXT_SAY(text, 4, "  - %s of %s stacks %s cut at the wanted depth (--depth).",
			    mw_show_count(truncated).text, mw_show_count(report->stack_count).text,
			    truncated == 1 ? "is" : "are");
}

static void put_limits(struct mw_text *text)
{
	const struct mw_report *report = text->report;

	text->heading = "What this report cannot know";
	if (report->lost.events)
		MW_TEXT_SAY(text, 4,
			    "  - %s event%s lost: a block shown as not freed may have been freed unseen, and an "
			    "allocation may be missing.",
			    mw_show_count(report->lost.events).text, report->lost.events == 1 ? " was" : "s were");
	if (report->lost.stacks)
		MW_TEXT_SAY(text, 4, "  - %s stack%s lost.", mw_show_count(report->lost.stacks).text,
			    report->lost.stacks == 1 ? " was" : "s were");
	if (!report->tracked[MW_KIND_HEAP] || !report->tracked[MW_KIND_VM])
		MW_TEXT_SAY(text, 4, "  - Not recorded, as it was not asked for: %s%s%s.",
			    report->tracked[MW_KIND_HEAP] ? "" : "heap",
			    report->tracked[MW_KIND_HEAP] || report->tracked[MW_KIND_VM] ? "" : ", ",
			    report->tracked[MW_KIND_VM] ? "" : "vm");
	if (report->sampling.interval)
		MW_TEXT_SAY(text, 4,
			    "  - What was not sampled: a place that kept less than %s of heap blocks may not have been "
			    "seen at all (one that kept more was seen with a probability of 95 %%).",
			    mw_show_size(report->sampling.unseen).text);
	put_runtimes(text, false);
	put_nameless(text, false);
	put_before(text);
	put_unknown_space(text);
	put_refusals(text);
	put_cut(text);
	text->heading = NULL;
}

/* --- the report ------------------------------------------------------------------------------------------- */

/* Nothing was allocated or freed. */
static void put_nothing(struct mw_text *text)
{
	size_t count = unwatched(text->report);

	mw_line_printf(&text->line,
		       text->report->sampling.interval       ? "\nNo block was sampled in the %s"
		       : text->report->tracked[MW_KIND_HEAP] ? "\nNothing was allocated in the %s, and nothing freed"
							     : "\nNothing was mapped in the %s, and nothing unmapped",
		       mw_text_span(text));
	if (count) {
		mw_line_printf(&text->line, "; its %s child%s not watched: ", mw_show_count(count).text,
			       count == 1 ? " was" : "ren were");
		add_unwatched(text);
	} else {
		mw_line_printf(&text->line, ".");
	}
	mw_text_paragraph(text, 2);
}

/* Where to go from here. */
static void put_more(struct mw_text *text)
{
	MW_TEXT_SAY(text, 6,
		    "\nMore: --all (everything), --html FILE (a page), -o FILE (a recording, to ask again by memwatch "
		    "report FILE --by module,stack --from A --to B)");
}

static bool is_empty(const struct mw_views *views)
{
	return !(views->groups && views->groups->row_count) && !(views->tree && views->tree->node_count) &&
	       !(views->blocks && views->blocks->row_count);
}

/* A question is answered by its views alone. */
static void put_report(struct mw_text *text, const struct mw_views *views)
{
	bool any = false;

	for (unsigned kind = 0; kind < MW_KIND_COUNT; kind++)
		any = any || text->report->totals[kind].size.count || text->report->totals[kind].aofi.count;
	if (views && !text->options->all && is_empty(views)) {
		mw_line_name(&text->line, text->report->target.comm);
		mw_line_printf(&text->line, " (pid %d): nothing to show", text->report->target.pid);
		mw_line_printf(&text->line, "%s", views->filter ? " of what passes the filter " : "");
		mw_line_name(&text->line, views->filter ? views->filter : "");
		mw_text_paragraph(text, 2);
		return;
	}
	put_header(text);
	if (views && !text->options->all) {
		mw_text_views(text, views);
		return;
	}
	mw_text_answer(text);
	put_runtimes(text, true);
	put_nameless(text, true);
	if (any)
		put_children(text);
	if (views)
		mw_text_views(text, views);
	else
		mw_text_suspects(text);
	if (any)
		mw_text_totals(text);
	else
		put_nothing(text);
	if (text->options->all)
		mw_text_tables(text, !views);
	put_limits(text);
	if (!text->options->all)
		put_more(text);
}

static struct mw_error *write_report(const struct mw_report *const *reports, size_t count,
				     const struct mw_output_options *options, FILE *stream)
{
	struct mw_output_options clamped = *options;
	struct mw_text text = {.options = &clamped, .stream = stream};
	bool failed;

	/* Narrower, the tables would have to be cut. */
	if (clamped.width && clamped.width < MW_TEXT_LEAST_WIDTH)
		clamped.width = MW_TEXT_LEAST_WIDTH;
	if (count > 1 && !options->views)
		mw_text_processes(&text, reports, count);
	for (size_t i = 0; i < count && (count <= SINGLY || options->all || options->views); i++) {
		text.report = reports[i];
		text.impacting = mw_text_impacting(reports[i]);
		if (count > 1)
			put_rule(&text, i, count, i == 0 && options->views);
		put_report(&text, options->views ? options->views[i] : NULL);
	}
	failed = text.line.failed;
	mw_line_deinit(&text.line);
	return failed ? mw_error_nomem() : NULL;
}

const struct mw_output mw_output_text = {
	.name = "text",
	.reading = true,
	.media = "text/plain; charset=utf-8",
	.write = write_report,
	.write_diffs = mw_text_diff_write,
	.write_heap = mw_text_heap_write,
	.write_heap_diff = mw_text_heap_diff_write,
};
