// SPDX-License-Identifier: MIT
/* text_suspects.c: the answer, and the suspects that it rests on: lines of the user's own code. */
#include "output/text.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ANSWERS      3 /* lines of the answer */
#define FEW_SAMPLED  20
#define THREADS      4
#define NAME_COLUMNS 60   /* of a function in the answer */
#define FRAMES       12   /* of a suspect's stack */
#define USERS        4    /* of its pool */
#define MINOR        10   /* growth that is seen, to so much more that the RSS grew by, is not the answer */
#define TRIFLE       100  /* of what was not freed */
#define LEAST_SHARE  1000 /* a smaller one of blocks that are freed is said in blocks */
#define LEAST_RATE   1.0  /* bytes a day: less is not worth a projection */
#define FAR          (10 * 365.25 * 86400) /* seconds: later than that nobody waits for it */
#define SOURCE_MOST  (16 << 20)            /* bytes of a source file */

const char *mw_text_suspect_word(const struct mw_report_suspect *suspect)
{
	if (suspect->lost.count)
		return "LOST";
	if (suspect->verdict == MW_GROWTH_CONTAINER || (suspect->verdict >= MW_GROWTH_STEADY && suspect->runtime_heap))
		return "GROWS";
	return suspect->verdict >= MW_GROWTH_STEADY ? "LEAK" : "OPEN";
}

static bool alarms(const struct mw_report_suspect *suspect)
{
	return suspect->lost.count || suspect->verdict >= MW_GROWTH_STEADY;
}

/* Of a function without a name: the innermost one with a name that it was called by. */
static void add_caller(struct mw_text *text, const struct mw_report_suspect *suspect)
{
	const struct mw_report_stack *stack = &text->report->stacks[suspect->stacks[0]];
	const struct mw_report_frame *frame = suspect->frame;
	struct mw_line *line = &text->line;
	size_t i = 0;

	while (i < stack->frame_count && (stack->frames[i].function || stack->frames[i].offset != frame->offset))
		i++;
	while (i < stack->frame_count && !stack->frames[i].function)
		i++;
	if (i == stack->frame_count || stack->frames[i].generated || !frame->module || !stack->frames[i].module ||
	    strcmp(stack->frames[i].module, frame->module) != 0)
		return;
	mw_line_printf(line, " (called by ");
	mw_text_short_function(line, stack->frames[i].function);
	mw_line_printf(line, ")");
}

void mw_text_source(struct mw_line *line, const struct mw_report_frame *frame)
{
	size_t from = line->length;

	if (frame->function) {
		if (frame->generated)
			mw_text_function(line, frame->function);
		else
			mw_text_short_function(line, frame->function);
		mw_line_elide(line, from, NAME_COLUMNS);
		mw_line_printf(line, " ");
	}
	if (frame->file) {
		mw_line_name(line, mw_text_base_name(frame->file));
		if (frame->line)
			mw_line_printf(line, ":%" PRIu32, frame->line);
	} else {
		mw_line_printf(line, "%s", frame->function ? "in " : "");
		mw_line_name(line, frame->module ? mw_text_base_name(frame->module) : "code of no file");
		if (!frame->function)
			mw_line_printf(line, "+0x%" PRIx64, frame->offset);
	}
}

void mw_text_place(struct mw_text *text, const struct mw_report_suspect *suspect)
{
	const struct mw_report_frame *frame = suspect->frame;

	if (!frame) {
		mw_line_printf(&text->line, "(no stack)");
		return;
	}
	mw_text_source(&text->line, frame);
	if (!frame->function && !frame->file)
		add_caller(text, suspect);
}

static void add_projection(struct mw_line *line, const struct mw_report_suspect *suspect, const char *before)
{
	double day = suspect->bytes_per_hour * 24;

	if (day >= LEAST_RATE && day < 1e18)
		mw_line_printf(line, "%s%s a day", before, mw_show_size((uint64_t)day).text);
}

/* 45 s, 12 min, 13 h, 400 days */
static void add_time(struct mw_line *line, double seconds)
{
	static const struct {
		double seconds;
		const char *name;
	} units[] = {{86400, "days"}, {3600, "h"}, {60, "min"}, {1, "s"}};
	size_t i = 0;

	while (i + 1 < sizeof(units) / sizeof(units[0]) && seconds < 2 * units[i].seconds)
		i++;
	mw_line_printf(line, "%.0f %s", seconds / units[i].seconds, units[i].name);
}

/* When it has filled the memory that there is, if nothing else takes or frees any. */
static void add_limit(struct mw_line *line, const struct mw_memory_limit *limit,
		      const struct mw_report_suspect *suspect)
{
	if (limit->of == MW_LIMIT_NONE || suspect->bytes_per_hour <= 0 || suspect->seconds_to_limit < 0 ||
	    suspect->seconds_to_limit > FAR)
		return;
	mw_line_printf(line, "; reaches the %s (%s) in ",
		       limit->of == MW_LIMIT_CGROUP ? "cgroup's limit" : "machine's memory",
		       mw_show_size(limit->bytes).text);
	add_time(line, suspect->seconds_to_limit);
	mw_line_printf(line, " at this rate");
}

static void add_freed(struct mw_line *line, const struct mw_report_suspect *suspect)
{
	uint64_t all = suspect->blocks + suspect->freed;

	if (suspect->freed && suspect->freed < all / LEAST_SHARE)
		mw_line_printf(line, ", %s of %s freed", mw_show_count(suspect->freed).text, mw_show_count(all).text);
	else if (suspect->freed)
		mw_line_printf(line, ", %s of %s freed", mw_show_percent((double)suspect->freed, (double)all).text,
			       mw_show_count(all).text);
	else
		mw_line_printf(line, suspect->spreads.impacting.blocks ? ", none seen freed" : ", none freed");
}

static size_t count_of(const struct mw_report *report, enum mw_growth_verdict least, enum mw_growth_verdict most)
{
	size_t count = 0;

	for (size_t i = 0; i < report->suspect_count; i++)
		count += report->suspects[i].verdict >= least && report->suspects[i].verdict <= most;
	return count;
}

/* What is lost, or grows. */
static size_t count_answers(const struct mw_report *report)
{
	size_t count = 0;

	for (size_t i = 0; i < report->suspect_count; i++)
		count += report->suspects[i].lost.count || report->suspects[i].verdict >= MW_GROWTH_STEADY;
	return count;
}

/* Its standard error; where few blocks were sampled, or may be missing, between what and what it is, as that would mislead. */
static void add_limits(struct mw_line *line, const struct mw_report_suspect *suspect)
{
	const struct mw_spread *spread = &suspect->spreads.impacting;
	double error = sqrt(spread->bytes);
	bool few = spread->blocks &&
		   (spread->blocks < FEW_SAMPLED || suspect->high > (double)suspect->bytes + 4 * error) &&
		   error > 0.01 * (double)suspect->bytes;

	mw_text_error(line, spread->blocks && !few, spread->bytes);
	if (!few)
		return;
	mw_line_printf(line, " (%s to", mw_show_size((uint64_t)suspect->low).text);
	mw_line_printf(line, " %s, as %" PRIu64 " block%s sampled)", mw_show_size((uint64_t)suspect->high).text,
		       spread->blocks, spread->blocks == 1 ? " was" : "s were");
}

static void put_answer(struct mw_text *text, const struct mw_report_suspect *suspect)
{
	struct mw_line *line = &text->line;
	double seconds = text->report->window.to - text->report->window.from;

	mw_line_printf(line, "%-5s ", mw_text_suspect_word(suspect));
	mw_text_place(text, suspect);
	mw_line_printf(line, ": %s", mw_show_size(suspect->bytes).text);
	add_limits(line, suspect);
	mw_line_printf(line, " in %s", mw_show_seconds(seconds).text);
	if (suspect->verdict >= MW_GROWTH_STEADY) {
		size_t from = line->length;

		add_projection(line, suspect, " (");
		mw_line_printf(line, "%s", line->length > from ? ")" : "");
	} else {
		mw_line_printf(line, ", %s", mw_growth_name(suspect->verdict));
	}
	mw_line_printf(line, ", %s block%s", mw_show_count(suspect->blocks).text, suspect->blocks == 1 ? "" : "s");
	add_freed(line, suspect);
	if (suspect->lost.count)
		mw_line_printf(line, "; %s of them lost",
			       suspect->lost.count >= suspect->blocks ? "all"
								      : mw_show_count(suspect->lost.count).text);
	mw_text_styled_paragraph(text, 6, alarms(suspect) ? MW_STYLE_ALARM : MW_STYLE_HEADING);
}

/* By what the process grew that are no blocks. */

#define LEAST (UINT64_C(1) << 20) /* bytes: less is not worth a word */

static const char *const kinds[MW_REGION_KIND_COUNT] = {
	[MW_REGION_HEAP] = "of the heap beside them", [MW_REGION_ARENA] = "of allocators' arenas beside them",
	[MW_REGION_STACK] = "stacks of threads",      [MW_REGION_ANONYMOUS] = "anonymous mappings",
	[MW_REGION_FILE_TEXT] = "files' code",        [MW_REGION_FILE_DATA] = "files' data",
	[MW_REGION_SHARED] = "shared memory",         [MW_REGION_SPECIAL] = "special mappings",
};

/* Of growth that no block explains. */
static void add_heap(struct mw_line *line, const struct mw_report_runtime *runtime, uint64_t most, const char *before,
		     const char *after)
{
	uint64_t bytes = runtime->growth - runtime->blocks;

	mw_line_printf(line, "%s", before);
	if (runtime->has_growth)
		mw_line_printf(line, "%s of it in ", mw_show_size(bytes < most ? bytes : most).text);
	mw_line_printf(line, "%s%s", runtime->heap, after);
}

/* Of the runtimes that have one. */
static void add_heaps(struct mw_line *line, const struct mw_report *report, uint64_t most)
{
	const char *before = " (";

	for (size_t i = 0; i < report->runtime_count; i++) {
		if (!report->runtimes[i].heap)
			continue;
		add_heap(line, &report->runtimes[i], most, before, "");
		before = ", ";
	}
	if (*before == ',')
		mw_line_printf(line, ")");
}

/* Most first. */
static void add_kinds(struct mw_line *line, const struct mw_report *report)
{
	const struct mw_report_rss *rss = &report->rss;
	uint64_t left[MW_REGION_KIND_COUNT];

	memcpy(left, rss->kinds, sizeof(left));
	for (;;) {
		unsigned most = 0;

		for (unsigned kind = 1; kind < MW_REGION_KIND_COUNT; kind++)
			if (left[kind] > left[most])
				most = kind;
		if (left[most] < LEAST)
			return;
		mw_line_printf(line, ", %s %s", mw_show_size(left[most]).text, kinds[most]);
		if (most == MW_REGION_ANONYMOUS)
			add_heaps(line, report, left[most]);
		left[most] = 0;
	}
}

static void put_rss(struct mw_text *text, bool leads)
{
	const struct mw_report_rss *rss = &text->report->rss;
	struct mw_line *line = &text->line;

	if (text->report->change) {
		mw_text_change_answer(text, leads);
		return;
	}
	mw_line_printf(line, "%sRSS +%s: %s explained by blocks not freed", leads ? "OPEN  " : "      ",
		       mw_show_size(rss->growth).text, mw_show_size(rss->blocks).text);
	for (size_t i = 0; i < text->report->runtime_count; i++)
		if (text->report->runtimes[i].blocks >= LEAST)
			mw_line_printf(line, " (%s of it in %s)", mw_show_size(text->report->runtimes[i].blocks).text,
				       text->report->runtimes[i].heap);
	if (rss->has_kinds)
		add_kinds(line, text->report);
	else
		mw_line_printf(line, ", %s by none of them", mw_show_size(rss->growth - rss->blocks).text);
	mw_text_styled_paragraph(text, 6, MW_STYLE_HEADING);
}

/* The lines that grow, the worst first. */
/* The largest of what can't be judged, where it is more than all that grows; NULL: it is not. */
static const struct mw_report_suspect *open_answer(const struct mw_report *report, size_t grows)
{
	const struct mw_report_suspect *open = grows < report->suspect_count ? &report->suspects[grows] : NULL;
	uint64_t bytes = 0;

	for (size_t i = 0; i < grows; i++)
		bytes += report->suspects[i].bytes;
	return open && open->verdict == MW_GROWTH_TOO_SHORT && open->bytes > bytes ? open : NULL;
}

static void put_answers(struct mw_text *text, size_t count)
{
	const struct mw_report_suspect *open = open_answer(text->report, count);

	for (size_t i = 0; i < count && i < ANSWERS; i++)
		put_answer(text, &text->report->suspects[i]);
	if (count > ANSWERS) {
		mw_line_printf(&text->line, "      … and %s more that %s", mw_show_count(count - ANSWERS).text,
			       count - ANSWERS == 1 ? "grows" : "grow");
		mw_text_line(text, MW_STYLE_HEADING);
	}
	if (open)
		put_answer(text, open);
}

/* Did the process grow by something else than what is seen to grow? */
static bool grows_unseen(const struct mw_report *report, size_t grows)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < grows; i++)
		bytes += report->suspects[i].bytes;
	return report->rss.unexplained && bytes < report->rss.growth / MINOR;
}

static void put_none(struct mw_text *text, bool unseen)
{
	const struct mw_report *report = text->report;
	size_t open = count_of(report, MW_GROWTH_TOO_SHORT, MW_GROWTH_TOO_SHORT);
	const struct mw_report_sampling *sampling = &report->sampling;
	struct mw_line *line = &text->line;

	if (open) {
		mw_line_printf(line,
			       "%sNo leak found, but the window is too short%s to judge %s place%s; the largest: ",
			       unseen ? "      " : "OPEN  ", sampling->interval ? ", or too little was sampled," : "",
			       mw_show_count(open).text, open == 1 ? "" : "s");
		mw_text_place(text, &report->suspects[0]);
		mw_line_printf(line, ", %s", mw_show_size(report->suspects[0].bytes).text);
		add_limits(line, &report->suspects[0]);
	} else if (report->totals[MW_KIND_HEAP].size.count || report->totals[MW_KIND_VM].size.count ||
		   sampling->interval) {
		mw_line_printf(line, "%sNo leak found: of what was %s in the %s, nothing keeps growing%s.",
			       unseen ? "      " : "NONE  ", sampling->interval ? "sampled" : "allocated",
			       mw_text_span(text),
			       mw_report_is_complete(report) ? "" : "; but the report is incomplete");
		if (sampling->interval)
			mw_line_printf(line, " Up to %s in any one place may not have been seen.",
				       mw_show_size(sampling->unseen).text);
	} else {
		return;
	}
	mw_text_styled_paragraph(text, 6, MW_STYLE_HEADING);
}

void mw_text_answer(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	size_t grows = count_answers(report);
	bool unseen = grows_unseen(report, grows);

	if (unseen)
		put_rss(text, true);
	if (grows)
		put_answers(text, grows);
	else
		put_none(text, unseen);
	if (!unseen && (report->rss.unexplained || report->change))
		put_rss(text, false);
}

/* What is there by the name of a source file now: a hostile name may be that of a pipe or a device. NULL: no such file. */
static FILE *open_source(const char *path, struct stat *st)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	FILE *file = NULL;

	if (fd >= 0 && fstat(fd, st) == 0 && S_ISREG(st->st_mode) && st->st_size <= SOURCE_MOST)
		file = fdopen(fd, "r");
	if (fd >= 0 && !file)
		close(fd);
	return file;
}

/* Has the file changed since the program was built from it, or since the window? */
static bool is_newer(const struct stat *source, const char *module, int64_t started_realtime_ns)
{
	int64_t changed_ns = source->st_mtim.tv_sec * INT64_C(1000000000) + source->st_mtim.tv_nsec;
	struct stat built;

	if (started_realtime_ns > 0 && changed_ns > started_realtime_ns)
		return true;
	return module && stat(module, &built) == 0 &&
	       changed_ns > built.st_mtim.tv_sec * INT64_C(1000000000) + built.st_mtim.tv_nsec;
}

/* The line itself, where its file can be read here. */
static void put_source(struct mw_text *text, const struct mw_report_frame *frame)
{
	char *source = NULL;
	size_t room = 0;
	ssize_t length = -1;
	struct stat st;
	FILE *file;

	if (!frame || !frame->file || !frame->line || frame->file[0] != '/')
		return;
	file = open_source(frame->file, &st);
	if (!file)
		return;
	for (uint32_t i = 0; i < frame->line; i++) {
		length = getline(&source, &room, file);
		if (length < 0)
			break;
	}
	fclose(file);
	if (length > 0) {
		const char *begin = source + strspn(source, " \t");

		source[strcspn(source, "\r\n")] = '\0';
		mw_line_printf(&text->line, "   %5" PRIu32 " | ", frame->line);
		mw_line_name(&text->line, begin);
		if (text->options->width)
			mw_line_elide(&text->line, 0, text->options->width);
		mw_text_line(text, MW_STYLE_PLAIN);
		if (is_newer(&st, frame->module, text->report->window.started_realtime_ns))
			MW_TEXT_SAY(text, 5, "   (its file is newer than the program: the line may have moved)");
	}
	free(source);
}

static void put_stack(struct mw_text *text, const struct mw_report_suspect *suspect)
{
	const struct mw_report_stack *stack = &text->report->stacks[suspect->stacks[0]];
	struct mw_line *line = &text->line;

	mw_line_printf(line, "   by ");
	mw_line_name(line, stack->api);
	mw_line_printf(line, "%s, stack %s", stack->kind == MW_KIND_VM ? " (vm)" : "", stack->id);
	if (suspect->stack_count > 1)
		mw_line_printf(line, " and %s more", mw_show_count(suspect->stack_count - 1).text);
	for (size_t i = 0; i < stack->thread_count && i < THREADS; i++) {
		mw_line_printf(line, "%s", i ? ", " : stack->thread_count == 1 ? "; thread " : "; threads ");
		mw_line_name(line, stack->threads[i].name);
		mw_line_printf(line, " (%d)", stack->threads[i].tid);
	}
	if (stack->thread_count > THREADS)
		mw_line_printf(line, " and %s more", mw_show_count(stack->thread_count - THREADS).text);
	mw_text_paragraph(text, 5);
	mw_text_frames(text, stack, text->options->all ? SIZE_MAX : FRAMES);
}

void mw_text_settled(struct mw_text *text, const struct mw_amount *settled_later, const struct mw_spreads *spreads)
{
	if (!settled_later->count)
		return;
	mw_line_printf(&text->line, "   %s block%s (%s", mw_show_count(settled_later->count).text,
		       settled_later->count == 1 ? "" : "s", mw_show_size(settled_later->bytes).text);
	mw_text_error(&text->line, spreads->settled.blocks, spreads->settled.bytes);
	MW_TEXT_SAY(text, 5, ") %s freed within the settling time", settled_later->count == 1 ? "was" : "were");
}

/* What a look at the heap has found of its blocks, and how one that is held is held. */
static void put_leaks(struct mw_text *text, const struct mw_report_suspect *suspect)
{
	struct mw_line *line = &text->line;
	const struct mw_report_leaks *held = NULL;

	if (suspect->lost.count) {
		mw_line_printf(line, "   %s block%s (%s) of them lost: no pointer to %s is left in the process",
			       mw_show_count(suspect->lost.count).text, suspect->lost.count == 1 ? "" : "s",
			       mw_show_size(suspect->lost.bytes).text, suspect->lost.count == 1 ? "it" : "them");
		mw_text_paragraph(text, 5);
	}
	for (size_t i = 0; i < suspect->stack_count && !held; i++) {
		const struct mw_report_leaks *leaks = text->report->stacks[suspect->stacks[i]].leaks;

		if (leaks && leaks->holder_count)
			held = leaks;
	}
	if (!held)
		return;
	mw_line_printf(line, "   held by ");
	for (size_t i = 0; i < held->holder_count; i++)
		mw_line_put(line, i ? " -> " : "", held->holder[i]);
	mw_text_paragraph(text, 5);
}

/* "   In talloc's chunks: struct session 1.2 MiB (of server), 12 more 34 KiB" */
static void put_pool(struct mw_text *text, const struct mw_report_suspect *suspect)
{
	struct mw_line *line = &text->line;
	const struct mw_report_pool *pool = suspect->pool;
	struct mw_amount more = {0};

	if (!pool)
		return;
	if (!pool->user_count) {
		if (pool->hint)
			MW_TEXT_SAY(text, 5, "   %s", pool->hint);
		return;
	}
	mw_line_printf(line, "   In %s", pool->name);
	for (size_t i = 0; i < pool->user_count; i++) {
		const struct mw_report_pool_user *user = &pool->users[i];

		if (i >= USERS) {
			mw_amount_add(&more, (struct mw_amount){1, user->blocks.bytes});
			continue;
		}
		mw_line_put(line, i ? ", " : ": ", user->name);
		mw_line_printf(line, " %s", mw_show_size(user->blocks.bytes).text);
		if (*user->path || *user->example)
			mw_line_put(line, " (", *user->path ? "in " : "");
		mw_line_put(line, "", user->path);
		mw_line_put(line, *user->path && *user->example ? "; " : "", *user->example ? "one is for " : "");
		mw_line_put(line, "", user->example);
		mw_line_printf(line, "%s", *user->path || *user->example ? ")" : "");
	}
	if (more.count)
		mw_line_printf(line, ", %s more %s", mw_show_count(more.count).text, mw_show_size(more.bytes).text);
	if (pool->others.count)
		mw_line_printf(line, ", others or not known %s", mw_show_size(pool->others.bytes).text);
	if (pool->looked.count < suspect->blocks)
		mw_line_printf(line, "; %s of the %s blocks were read", mw_show_count(pool->looked.count).text,
			       mw_show_count(suspect->blocks).text);
	mw_text_paragraph(text, 5);
}

void mw_text_suspect(struct mw_text *text, size_t number, const struct mw_report_suspect *suspect)
{
	struct mw_line *line = &text->line;

	fputc('\n', text->stream);
	mw_line_printf(line, "%zu. ", number);
	mw_text_place(text, suspect);
	mw_line_printf(line, ": %s", mw_growth_name(suspect->verdict));
	mw_text_styled_paragraph(text, 3, alarms(suspect) ? MW_STYLE_ALARM : MW_STYLE_HEADING);
	mw_line_printf(line, "   %s", mw_show_size(suspect->bytes).text);
	add_limits(line, suspect);
	mw_line_printf(line, " in %s", mw_show_count(suspect->blocks).text);
	mw_text_count_error(line, suspect->spreads.impacting.blocks, suspect->spreads.impacting.count);
	mw_line_printf(line, " block%s not freed", suspect->blocks == 1 ? "" : "s");
	/* A share of blocks that are but a part of the growth would mislead. */
	if (text->report->rss.unexplained)
		mw_line_printf(line, " (%s of what the RSS grew by)",
			       mw_show_percent((double)suspect->bytes, (double)text->report->rss.growth).text);
	else if (text->impacting.bytes)
		mw_line_printf(line, " (%s of all)",
			       mw_show_percent((double)suspect->bytes, (double)text->impacting.bytes).text);
	add_freed(line, suspect);
	add_projection(line, suspect, "; ");
	add_limit(line, &text->report->target.limit, suspect);
	mw_text_paragraph(text, 5);
	mw_text_settled(text, &suspect->settled_later, &suspect->spreads);
	put_leaks(text, suspect);
	put_pool(text, suspect);
	mw_line_printf(line, "   %s", suspect->sentence);
	mw_text_paragraph(text, 5);
	put_source(text, suspect->frame);
	put_stack(text, suspect);
}

/* What does not grow, in one line. */
static void put_calm(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	struct mw_amount sum = {0};

	for (size_t i = 0; i < report->suspect_count; i++)
		if (report->suspects[i].verdict != MW_GROWTH_TOO_SHORT &&
		    report->suspects[i].verdict < MW_GROWTH_STEADY)
			mw_amount_add(&sum, (struct mw_amount){report->suspects[i].blocks, report->suspects[i].bytes});
	if (!sum.count)
		return;
	mw_line_printf(&text->line, "\nNot growing: %s in %s block%s of %s place%s (plateau, steady state, one-off)",
		       mw_show_size(sum.bytes).text, mw_show_count(sum.count).text, sum.count == 1 ? "" : "s",
		       mw_show_count(count_of(report, MW_GROWTH_ONE_OFF, MW_GROWTH_STEADY_STATE)).text,
		       count_of(report, MW_GROWTH_ONE_OFF, MW_GROWTH_STEADY_STATE) == 1 ? "" : "s");
	mw_text_paragraph(text, 2);
}

/* Without --all, what is but a trifle and may be none is not worth its lines. */
static size_t worth_showing(const struct mw_text *text, size_t count)
{
	const struct mw_report_suspect *suspects = text->report->suspects;
	size_t shown = count < text->options->top ? count : text->options->top;

	while (!text->options->all && shown > 1 && suspects[shown - 1].verdict == MW_GROWTH_TOO_SHORT &&
	       suspects[shown - 1].bytes < text->impacting.bytes / TRIFLE)
		shown--;
	return shown;
}

void mw_text_suspects(struct mw_text *text)
{
	const struct mw_report *report = text->report;
	size_t grows = count_answers(report);
	size_t count = grows + count_of(report, MW_GROWTH_TOO_SHORT, MW_GROWTH_TOO_SHORT);
	size_t shown = worth_showing(text, count);

	/* Those that grow come first, then those of which too little is known. */
	if (count)
		mw_text_heading(text, "Suspects: lines that took memory and did not free it, the worst first");
	for (size_t i = 0; i < shown; i++)
		mw_text_suspect(text, i + 1, &report->suspects[i]);
	if (count > shown) {
		struct mw_amount rest = {0};

		for (size_t i = shown; i < count; i++)
			mw_amount_add(&rest, (struct mw_amount){report->suspects[i].blocks, report->suspects[i].bytes});
		MW_TEXT_SAY(text, 2, "\n… and %s more: %s in %s block%s%s (%s)", mw_show_count(count - shown).text,
			    mw_show_size(rest.bytes).text, mw_show_count(rest.count).text, rest.count == 1 ? "" : "s",
			    shown < grows ? "" : ", too short to tell",
			    shown == text->options->top ? "--top N" : "--all");
	}
	put_calm(text);
}
