// SPDX-License-Identifier: MIT
/* text_heap_diff.c: two looks at heaps compared, as someone on call reads it: what has grown first. */
#include "output/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#define TOP 20u /* items of a list, where nothing else was asked for */

struct writer {
	const struct mw_heap_diff *diff;
	const struct mw_output_options *options;
	struct mw_text text;
};

static void add_date(struct mw_line *line, int64_t realtime_ns)
{
	time_t seconds = (time_t)(realtime_ns / 1000000000);
	char date[64];
	struct tm tm;

	if (gmtime_r(&seconds, &tm) && strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm))
		mw_line_printf(line, "%s UTC", date);
}

static void put_look(struct writer *writer, enum mw_diff_side side)
{
	const struct mw_heap_report *look = writer->diff->looks[side];
	struct mw_line *line = &writer->text.line;

	mw_line_put(line, side == MW_DIFF_OLD ? "old: " : "new: ", writer->diff->files[side]);
	mw_line_put(line, ", ", look->exe ? look->exe : look->comm);
	mw_line_printf(line, " (pid %d) at ", look->pid);
	add_date(line, look->started_realtime_ns);
	mw_line_printf(line, ": %s resident", mw_show_size(look->rss).text);
	mw_text_paragraph(&writer->text, 5);
}

/* What is to be known before the numbers are read. */
static void put_warnings(struct writer *writer)
{
	static const char *const processes[] = {
		[MW_HEAP_DIFF_OTHER] = "These are two processes: their differences are not growth, and have no rate.",
		[MW_HEAP_DIFF_BOOT] =
			"The system was rebooted between the looks, or they are of two systems: these are "
			"two processes. Their differences are not growth, and have no rate.",
		[MW_HEAP_DIFF_UNKNOWN] = "It is not known whether these are one process: no rate is given.",
	};
	static const char *const programs[] = {
		[MW_DIFF_PROGRAM_MOVED] = "the same build at another path",
		[MW_DIFF_PROGRAM_REBUILT] = "different builds, so that classes and sizes may have changed",
		[MW_DIFF_PROGRAM_OTHER] = "different paths, so that classes and sizes may not match",
	};
	const struct mw_heap_diff *diff = writer->diff;
	const struct mw_heap_report *old = diff->looks[MW_DIFF_OLD], *new = diff->looks[MW_DIFF_NEW];
	struct mw_line *line = &writer->text.line;

	if (processes[diff->process])
		MW_TEXT_SAY(&writer->text, 0, "%s", processes[diff->process]);
	if (programs[diff->program]) {
		mw_line_printf(line, "Warning: the executables differ (%s): ", programs[diff->program]);
		mw_line_name(line, old->exe ? old->exe : old->comm);
		mw_line_put(line, " (build-id ", old->build_id ? old->build_id : "not known");
		mw_line_put(line, "), ", new->exe ? new->exe : new->comm);
		mw_line_put(line, " (build-id ", new->build_id ? new->build_id : "not known");
		mw_line_printf(line, ")");
		mw_text_paragraph(&writer->text, 0);
	}
	if (old->by != new->by)
		MW_TEXT_SAY(&writer->text, 0,
			    "The looks were made with different --by: blocks are compared by what both have.");
	if (!old->holder_count != !new->holder_count)
		MW_TEXT_SAY(&writer->text, 0, "Only the %s look has holders: they are not compared.",
			    old->holder_count ? "old" : "new");
}

/* "+1.2 GiB a day"; nothing where there is no rate. */
static void add_daily(struct writer *writer, const char *before, uint64_t from, uint64_t to)
{
	bool known;
	double daily = mw_heap_diff_daily(writer->diff, from, to, &known);
	uint64_t by = fabs(daily) < 1e18 ? (uint64_t)fabs(daily) : UINT64_C(1000000000000000000);

	if (known)
		mw_line_printf(&writer->text.line, "%s%s a day", before,
			       daily < 0 ? mw_show_change(by, 0).text : mw_show_change(0, by).text);
}

static void add_count_change(struct mw_line *line, uint64_t from, uint64_t to)
{
	mw_line_printf(line, "%s%s block%s", to < from ? "-" : "+",
		       mw_show_count(to < from ? from - to : to - from).text,
		       to - from == 1 || from - to == 1 ? "" : "s");
}

/* The answer: by how much it grew, and what of that is lost. */
static void put_answer(struct writer *writer)
{
	const struct mw_heap_report *old = writer->diff->looks[MW_DIFF_OLD], *new = writer->diff->looks[MW_DIFF_NEW];
	struct mw_line *line = &writer->text.line;

	mw_text_line(&writer->text, MW_STYLE_PLAIN);
	mw_line_printf(line, "%s  %s resident in %s", new->rss > old->rss ? "GREW" : "SAME",
		       mw_show_change(old->rss, new->rss).text, mw_show_seconds(fabs(writer->diff->seconds)).text);
	if (new->rss < old->rss) {
		mw_line_cut(line, 0);
		mw_line_printf(line, "LESS  %s resident in %s", mw_show_change(old->rss, new->rss).text,
			       mw_show_seconds(fabs(writer->diff->seconds)).text);
	}
	add_daily(writer, ", ", old->rss, new->rss);
	if (new->rss > old->rss && writer->diff->line_count) {
		const struct mw_heap_diff_line *most = &writer->diff->lines[0];

		mw_line_printf(line, "; most by %s", most->name);
		mw_line_put(line, *most->detail ? ": " : "", most->detail);
		mw_line_printf(line, ", %s", mw_show_change(most->held[MW_DIFF_OLD], most->held[MW_DIFF_NEW]).text);
	}
	mw_text_paragraph(&writer->text, 6);
	for (unsigned i = 0; i < MW_REACH_COUNT; i++) {
		const struct mw_amount *from = &old->leaks[i], *to = &new->leaks[i];

		if (from->bytes == to->bytes && from->count == to->count)
			continue;
		mw_line_printf(line, "      %s %s, ", mw_reach_name((enum mw_reach)i),
			       mw_show_change(from->bytes, to->bytes).text);
		add_count_change(line, from->count, to->count);
		add_daily(writer, ", ", from->bytes, to->bytes);
		mw_line_printf(line, ": now %s in %s", mw_show_size(to->bytes).text, mw_show_count(to->count).text);
		mw_text_styled_paragraph(&writer->text, 8,
					 i == MW_REACH_DEFINITE && to->count > from->count ? MW_STYLE_ALARM
											   : MW_STYLE_PLAIN);
	}
}

/* The first cells of a row: bytes, and bytes a day where there is a rate. */
static void add_cells(struct writer *writer, uint64_t from, uint64_t to)
{
	bool known;
	double daily = mw_heap_diff_daily(writer->diff, from, to, &known);
	uint64_t by = fabs(daily) < 1e18 ? (uint64_t)fabs(daily) : UINT64_C(1000000000000000000);

	mw_line_printf(&writer->text.line, "  %11s", mw_show_change(from, to).text);
	if (known)
		mw_line_printf(&writer->text.line, " %11s a day",
			       daily < 0 ? mw_show_change(by, 0).text : mw_show_change(0, by).text);
	mw_line_printf(&writer->text.line, "  ");
}

static void add_path(struct mw_line *line, const char *const *path, size_t count)
{
	for (size_t i = 0; i < count; i++)
		mw_line_put(line, i ? " -> " : "", path[i]);
}

static void put_group(struct writer *writer, size_t number)
{
	const struct mw_heap_diff_group *group = &writer->diff->groups[number];
	const struct mw_amount *old = &group->held[MW_DIFF_OLD], *new = &group->held[MW_DIFF_NEW];
	struct mw_line *line = &writer->text.line;

	add_cells(writer, old->bytes, new->bytes);
	mw_text_heap_kind(line, group->class_name, group->size, group->arena);
	mw_line_printf(line, ": ");
	add_count_change(line, old->count, new->count);
	mw_line_printf(line, ", now %s in %s", mw_show_size(new->bytes).text, mw_show_count(new->count).text);
	if (group->lost[MW_DIFF_NEW].count != group->lost[MW_DIFF_OLD].count) {
		mw_line_printf(line, "; of them lost: ");
		add_count_change(line, group->lost[MW_DIFF_OLD].count, group->lost[MW_DIFF_NEW].count);
	}
	mw_text_paragraph(&writer->text, 15);
	if (!group->holder_count)
		return;
	mw_line_printf(line, "      ");
	add_path(line, group->holder, group->holder_count);
	mw_text_paragraph(&writer->text, 8);
}

static void put_holder(struct writer *writer, size_t number)
{
	const struct mw_heap_diff_holder *holder = &writer->diff->holders[number];
	const struct mw_amount *old = &holder->retained[MW_DIFF_OLD], *new = &holder->retained[MW_DIFF_NEW];
	struct mw_line *line = &writer->text.line;

	add_cells(writer, old->bytes, new->bytes);
	add_path(line, holder->path, holder->depth);
	mw_line_printf(line, ": ");
	add_count_change(line, old->count, new->count);
	mw_line_printf(line, ", now %s in %s", mw_show_size(new->bytes).text, mw_show_count(new->count).text);
	mw_text_paragraph(&writer->text, 15);
}

static void put_line(struct writer *writer, size_t number)
{
	const struct mw_heap_diff_line *item = &writer->diff->lines[number];
	struct mw_line *line = &writer->text.line;

	add_cells(writer, item->held[MW_DIFF_OLD], item->held[MW_DIFF_NEW]);
	mw_line_printf(line, "%s", item->name);
	mw_line_put(line, *item->detail ? ": " : "", item->detail);
	mw_line_printf(line, ", now %s", mw_show_size(item->held[MW_DIFF_NEW]).text);
	mw_text_paragraph(&writer->text, 15);
}

/* How much item `number` of a list has changed. */
static void group_bytes(const struct mw_heap_diff *diff, size_t number, struct mw_amount out[MW_DIFF_SIDES])
{
	memcpy(out, diff->groups[number].held, sizeof(diff->groups[number].held));
}

static void holder_bytes(const struct mw_heap_diff *diff, size_t number, struct mw_amount out[MW_DIFF_SIDES])
{
	memcpy(out, diff->holders[number].retained, sizeof(diff->holders[number].retained));
}

static void line_bytes(const struct mw_heap_diff *diff, size_t number, struct mw_amount out[MW_DIFF_SIDES])
{
	for (unsigned side = 0; side < MW_DIFF_SIDES; side++)
		out[side] = (struct mw_amount){0, diff->lines[number].held[side]};
}

struct list {
	size_t count;
	void (*bytes)(const struct mw_heap_diff *diff, size_t number, struct mw_amount out[MW_DIFF_SIDES]);
	void (*put)(struct writer *writer, size_t number);
};

enum change { GROWN, SHRUNK, UNCHANGED };

static enum change change_of(const struct writer *writer, const struct list *list, size_t number)
{
	struct mw_amount held[MW_DIFF_SIDES];
	const struct mw_amount *old = &held[MW_DIFF_OLD], *new = &held[MW_DIFF_NEW];

	list->bytes(writer->diff, number, held);
	if (old->bytes == new->bytes && old->count == new->count)
		return UNCHANGED;
	return new->bytes > old->bytes || (new->bytes == old->bytes &&new->count > old->count) ? GROWN : SHRUNK;
}

/* Those of a list that have changed so, the most first. */
static void put_some(struct writer *writer, const struct list *list, enum change wanted, const char *heading)
{
	size_t most = writer->options->all ? SIZE_MAX : writer->options->top, shown = 0, left = 0;

	writer->text.heading = heading;
	for (size_t i = 0; i < list->count; i++) {
		size_t number = wanted == SHRUNK ? list->count - 1 - i : i;

		if (change_of(writer, list, number) != wanted)
			continue;
		if (shown < most) {
			list->put(writer, number);
			shown++;
		} else {
			left++;
		}
	}
	if (left)
		MW_TEXT_SAY(&writer->text, 2, "  ... and %s more: --top %zu", mw_show_count(left).text, shown + left);
	writer->text.heading = NULL;
}

static void put_list(struct writer *writer, const struct list *list, const char *const headings[3])
{
	put_some(writer, list, GROWN, headings[GROWN]);
	put_some(writer, list, SHRUNK, headings[SHRUNK]);
	if (writer->options->all)
		put_some(writer, list, UNCHANGED, headings[UNCHANGED]);
}

struct mw_error *mw_text_heap_diff_write(const struct mw_heap_diff *diff, const struct mw_output_options *options,
					 FILE *stream)
{
	struct mw_output_options clamped = *options;
	struct writer writer = {diff, &clamped, {.options = &clamped, .stream = stream}};
	bool failed;

	if (clamped.width && clamped.width < MW_TEXT_LEAST_WIDTH)
		clamped.width = MW_TEXT_LEAST_WIDTH;
	if (clamped.top == SIZE_MAX)
		clamped.top = TOP;
	put_look(&writer, MW_DIFF_OLD);
	put_look(&writer, MW_DIFF_NEW);
	put_warnings(&writer);
	put_answer(&writer);
	put_list(&writer, &(const struct list){diff->group_count, group_bytes, put_group},
		 (const char *const[]){"Groups of blocks that have grown", "Groups of blocks that have shrunk",
				       "Blocks as before"});
	put_list(&writer, &(const struct list){diff->holder_count, holder_bytes, put_holder},
		 (const char *const[]){"Holders that retain more", "Holders that retain less", ""});
	put_list(&writer, &(const struct list){diff->line_count, line_bytes, put_line},
		 (const char *const[]){"Memory that has grown", "Memory that has shrunk", "Memory as before"});
	failed = writer.text.line.failed;
	mw_line_deinit(&writer.text.line);
	return failed ? mw_error_nomem() : NULL;
}
