// SPDX-License-Identifier: MIT
/* text_heap.c: a look at a heap as someone on call reads it: what is lost first, then what the memory is used for. */
#include "output/text.h"

#include "base/vector.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define ROW         16u  /* bytes of a block in a line */
#define LEAST_SHARE 100u /* lines of the account below one part in so many are one together, but with --all */

struct writer {
	const struct mw_heap_report *heap;
	const struct mw_output_options *options;
	struct mw_text text;
};

static void add_amount(struct mw_line *line, struct mw_amount amount)
{
	mw_line_printf(line, "%s in %s block%s", mw_show_size(amount.bytes).text, mw_show_count(amount.count).text,
		       amount.count == 1 ? "" : "s");
}

static uint64_t live_bytes(const struct mw_heap_report *heap)
{
	uint64_t bytes = 0;

	for (unsigned verdict = 0; verdict < MW_REACH_COUNT; verdict++)
		bytes += heap->leaks[verdict].bytes;
	return bytes;
}

static void put_head(struct writer *writer)
{
	const struct mw_heap_report *heap = writer->heap;
	struct mw_line *line = &writer->text.line;
	time_t seconds = (time_t)(heap->started_realtime_ns / 1000000000);
	char date[64];
	struct tm tm;

	mw_line_name(line, heap->exe ? heap->exe : heap->comm);
	mw_line_printf(line, " (pid %d): the whole heap", heap->pid);
	if (gmtime_r(&seconds, &tm) && strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm))
		mw_line_printf(line, " at %s UTC", date);
	mw_line_printf(line, ", %s resident", mw_show_size(heap->rss).text);
	if (heap->swapped)
		mw_line_printf(line, ", %s swapped out", mw_show_size(heap->swapped).text);
	mw_text_paragraph(&writer->text, 2);
	mw_line_printf(line, "  read ");
	if (heap->forked)
		mw_line_printf(line, "from a forked copy");
	else
		mw_line_printf(line, "while it ran, in %" PRIu32 " pass%s,", heap->passes,
			       heap->passes == 1 ? "" : "es");
	mw_line_printf(line, " in %s; paused for %s in total", mw_show_seconds(heap->seconds).text,
		       mw_show_seconds((double)heap->pause_ns / 1e9).text);
	mw_text_paragraph(&writer->text, 2);
	if (heap->why) {
		mw_line_printf(line, "  no copy was made: ");
		mw_line_name(line, heap->why);
		mw_text_paragraph(&writer->text, 4);
	}
}

/* The answer: what is lost. */
static void put_answer(struct writer *writer)
{
	const struct mw_amount *leaks = writer->heap->leaks;
	struct mw_line *line = &writer->text.line;
	const struct mw_amount *definite = &leaks[MW_REACH_DEFINITE], *indirect = &leaks[MW_REACH_INDIRECT];
	const struct mw_amount *possible = &leaks[MW_REACH_POSSIBLE];

	mw_text_line(&writer->text, MW_STYLE_PLAIN);
	if (definite->count) {
		mw_line_printf(line, "LOST  ");
		add_amount(line, *definite);
		mw_line_printf(line, ": no pointer to %s is left", definite->count == 1 ? "it" : "them");
		if (indirect->count) {
			mw_line_printf(line, "; and ");
			add_amount(line, *indirect);
			mw_line_printf(line, " that only lost blocks point to");
		}
		mw_text_styled_paragraph(&writer->text, 6, MW_STYLE_ALARM);
	} else {
		MW_TEXT_SAY(&writer->text, 6, "NONE  No block is definitely lost");
	}
	if (possible->count) {
		mw_line_printf(line, "      ");
		add_amount(line, *possible);
		mw_line_printf(line, " possibly lost: only interior pointers to %s are left",
			       possible->count == 1 ? "it" : "them");
		mw_text_paragraph(&writer->text, 6);
	}
	mw_line_printf(line, "      ");
	add_amount(line, leaks[MW_REACH_REACHABLE]);
	mw_line_printf(line, " still reachable");
	mw_text_paragraph(&writer->text, 6);
	if (writer->heap->unread)
		MW_TEXT_SAY(
			&writer->text, 6,
			"      %s could not be read: blocks without a known pointer to them are called possibly lost",
			mw_show_size(writer->heap->unread).text);
	for (size_t i = 0; i < writer->heap->allocator_count; i++) {
		const struct mw_heap_figures *figures = &writer->heap->allocators[i];

		if (figures->walked)
			continue;
		mw_line_printf(line, "      Blocks of %s were not checked: ", figures->name);
		mw_line_name(line, figures->why);
		mw_text_paragraph(&writer->text, 6);
	}
}

/* Who holds a group, or that nobody does. */
static void put_holder(struct writer *writer, const struct mw_heap_group *group)
{
	struct mw_line *line = &writer->text.line;

	if (!group->holder_count)
		return;
	mw_line_printf(line, "      ");
	for (size_t i = 0; i < group->holder_count; i++)
		mw_line_put(line, i ? " -> " : "", group->holder[i]);
	mw_text_paragraph(&writer->text, 8);
}

static void put_bytes(struct writer *writer, const struct mw_heap_content *content, size_t from)
{
	struct mw_line *line = &writer->text.line;
	size_t to = from + ROW < content->byte_count ? from + ROW : content->byte_count;
	char text[ROW + 1] = "";

	mw_line_printf(line, "        %4zu ", from);
	for (size_t i = from; i < from + ROW; i++) {
		unsigned char byte = i < to ? content->bytes[i] : 0;

		mw_line_printf(line, i < to ? "%s%02x" : "%s  ", i % 8 ? " " : "  ", byte);
		if (i < to)
			text[i - from] = byte >= ' ' && byte <= '~' ? (char)byte : '.';
	}
	mw_line_printf(line, "  %s", text);
	mw_text_line(&writer->text, MW_STYLE_PLAIN);
}

static void put_content(struct writer *writer, const struct mw_heap_content *content)
{
	struct mw_line *line = &writer->text.line;
	bool repeated = false; /* as hexdump(1) has it */

	mw_line_printf(line, "      %#" PRIx64 ", %s byte%s", content->at, mw_show_count(content->size).text,
		       content->size == 1 ? "" : "s");
	if (content->note_count == 1 && content->notes[0].offset == 0) {
		mw_line_put(line, ": ", content->notes[0].text);
		mw_text_paragraph(&writer->text, 8);
		if (strcmp(content->notes[0].text, "all zero") == 0)
			return;
	} else {
		mw_text_line(&writer->text, MW_STYLE_PLAIN);
	}
	for (size_t from = 0; from < content->byte_count; from += ROW) {
		bool again = from && from + ROW <= content->byte_count &&
			     memcmp(content->bytes + from, content->bytes + from - ROW, ROW) == 0;

		if (!again)
			put_bytes(writer, content, from);
		else if (!repeated)
			MW_TEXT_ROW(&writer->text, "        %4s", "*");
		repeated = again;
	}
	for (size_t i = 0; i < content->note_count && content->notes[content->note_count - 1].offset; i++) {
		mw_line_printf(line, "        %4" PRIu64 "   ", content->notes[i].offset);
		mw_line_put(line, "", content->notes[i].text);
		mw_text_paragraph(&writer->text, 15);
	}
}

void mw_text_heap_kind(struct mw_line *line, const char *class_name, uint64_t size, const char *arena)
{
	if (class_name)
		mw_line_name(line, class_name);
	if (size != MW_SIZE_UNKNOWN)
		mw_line_printf(line, "%s%s byte%s%s", class_name ? ", " : "", mw_show_count(size).text,
			       size == 1 ? "" : "s", class_name ? "" : " each");
	if (arena)
		mw_line_put(line, ", ", arena);
	if (!class_name && size == MW_SIZE_UNKNOWN && !arena)
		mw_line_printf(line, "(no class)");
}

static void put_group(struct writer *writer, const struct mw_heap_group *group)
{
	struct mw_line *line = &writer->text.line;

	mw_line_printf(line, "  %10s %10s  ", mw_show_size(group->blocks.bytes).text,
		       mw_show_count(group->blocks.count).text);
	mw_text_heap_kind(line, group->class_name, group->size, group->arena);
	mw_line_printf(line, ", e.g. at %#" PRIx64, group->samples[0]);
	mw_text_paragraph(&writer->text, 25);
	put_holder(writer, group);
	MW_EACH(content, group->contents, group->content_count)
		put_content(writer, content);
}

/* The groups of a verdict, the largest first. */
static void put_groups(struct writer *writer, enum mw_reach verdict)
{
	size_t shown = 0, left = 0;
	char heading[64];

	snprintf(heading, sizeof(heading), "%c%s", mw_reach_name(verdict)[0] - 'a' + 'A', mw_reach_name(verdict) + 1);
	writer->text.heading = heading;
	for (size_t i = 0; i < writer->heap->group_count; i++) {
		if (writer->heap->groups[i].verdict != verdict)
			continue;
		if (shown < writer->options->top || writer->options->all) {
			put_group(writer, &writer->heap->groups[i]);
			shown++;
		} else {
			left++;
		}
	}
	if (left)
		MW_TEXT_SAY(&writer->text, 2, "  ... and %s more kinds: --top %zu", mw_show_count(left).text,
			    shown + left);
	writer->text.heading = NULL;
}

/* How many holders of a level are shown, but with --all; below a root only what is a part of it. */
#define BELOW       3u
#define LEAST_BELOW 20u

static void put_holder_line(struct writer *writer, const struct mw_heap_holder *holder)
{
	struct mw_line *line = &writer->text.line;

	mw_line_printf(line, "  %10s %7s %10s  %*s", mw_show_size(holder->retained.bytes).text,
		       mw_show_percent((double)holder->retained.bytes, (double)live_bytes(writer->heap)).text,
		       mw_show_count(holder->retained.count).text, (int)(2 * holder->depth), "");
	mw_line_name(line, holder->name);
	if (holder->own.count > 1)
		mw_line_printf(line, " x %s", mw_show_count(holder->own.count).text);
	if (holder->own.count && holder->own.bytes != holder->retained.bytes)
		mw_line_printf(line, " (%s itself)", mw_show_size(holder->own.bytes).text);
	mw_text_paragraph(&writer->text, 36);
}

/* Who retains how much. */
static void put_holders(struct writer *writer)
{
	const struct mw_heap_report *heap = writer->heap;
	size_t shown[MW_HEAP_HOLDER_LEVELS] = {0};
	uint64_t above[MW_HEAP_HOLDER_LEVELS] = {0};
	uint32_t levels = 1;

	if (!heap->holder_count)
		return;
	writer->text.heading = "Who retains how much: what would be lost without it";
	for (size_t i = 0; i < heap->holder_count; i++) {
		const struct mw_heap_holder *holder = &heap->holders[i];
		uint32_t depth = holder->depth;

		if (depth >= levels) /* of one that is not shown */
			continue;
		levels = depth + 1;
		if (!writer->options->all && (shown[depth] >= (depth ? BELOW : writer->options->top) ||
					      (depth && holder->retained.bytes < above[depth - 1] / LEAST_BELOW)))
			continue;
		put_holder_line(writer, holder);
		shown[depth]++;
		above[depth] = holder->retained.bytes;
		if (levels < MW_HEAP_HOLDER_LEVELS)
			shown[levels++] = 0;
	}
	writer->text.heading = NULL;
}

static void put_account(struct writer *writer)
{
	const struct mw_heap_report *heap = writer->heap;
	struct mw_line *line = &writer->text.line;
	uint64_t small = 0;

	writer->text.heading = "What the memory is used for";
	for (size_t i = 0; i < heap->line_count; i++) {
		const struct mw_heap_line *item = &heap->lines[i];

		if (!writer->options->all && item->bytes < heap->rss / LEAST_SHARE && !item->swapped) {
			small += item->bytes;
			continue;
		}
		mw_line_printf(line, "  %10s %7s  %s", mw_show_size(item->bytes).text,
			       mw_show_percent((double)item->bytes, (double)heap->rss).text, item->name);
		mw_line_put(line, *item->detail ? ": " : "", item->detail);
		if (item->swapped)
			mw_line_printf(line, " (and %s swapped out)", mw_show_size(item->swapped).text);
		if (item->used || item->committed != item->reserved)
			mw_line_printf(line, ", %s reserved, %s committed", mw_show_size(item->reserved).text,
				       mw_show_size(item->committed).text);
		if (item->used)
			mw_line_printf(line, ", %s used", mw_show_size(item->used).text);
		if (item->reserved)
			mw_text_paragraph(&writer->text, 24);
		else
			mw_text_line(&writer->text, MW_STYLE_PLAIN);
	}
	if (heap->page_tables != MW_SIZE_UNKNOWN)
		MW_TEXT_ROW(&writer->text, "  %10s %7s  page tables, beside all this",
			    mw_show_size(heap->page_tables).text, "");
	if (small)
		MW_TEXT_ROW(&writer->text, "  %10s %7s  the rest, with --all in full", mw_show_size(small).text,
			    mw_show_percent((double)small, (double)heap->rss).text);
	writer->text.heading = NULL;
}

static void put_allocator(struct writer *writer, const struct mw_heap_figures *figures)
{
	struct mw_line *line = &writer->text.line;

	mw_line_printf(line, "  %s", figures->name);
	mw_line_put(line, *figures->version ? " " : "", figures->version);
	if (!figures->walked) {
		mw_line_put(line, ": ", figures->why);
		mw_text_paragraph(&writer->text, 4);
		return;
	}
	mw_line_printf(line, ": ");
	add_amount(line, figures->live);
	mw_line_printf(line, " live, %s free and resident in %zu arena%s", mw_show_size(figures->retained).text,
		       figures->arenas, figures->arenas == 1 ? "" : "s");
	if (figures->cached)
		mw_line_printf(line, ", of it %s in threads' caches", mw_show_size(figures->cached).text);
	if (figures->skipped)
		mw_line_printf(line, "; %s could not be walked", mw_show_size(figures->skipped).text);
	mw_text_paragraph(&writer->text, 4);
}

static void put_gaps(struct writer *writer)
{
	const struct mw_heap_report *heap = writer->heap;

	writer->text.heading = "Skipped, and treated as roots";
	for (size_t i = 0; i < heap->gap_count && (i < writer->options->top || writer->options->all); i++) {
		const struct mw_heap_gap *gap = &heap->gaps[i];

		mw_line_printf(&writer->text.line, "  ");
		if (gap->bytes)
			mw_line_printf(&writer->text.line, "%s at %#" PRIx64 ": ", mw_show_size(gap->bytes).text,
				       gap->start);
		MW_TEXT_SAY(&writer->text, 4, "%s", gap->why);
	}
	writer->text.heading = NULL;
}

static void put_advice(struct writer *writer)
{
	writer->text.heading = "What to do about it";
	for (size_t i = 0; i < writer->heap->advice_count; i++)
		MW_TEXT_SAY(&writer->text, 4, "  %s", writer->heap->advice[i]);
	writer->text.heading = NULL;
}

struct mw_error *mw_text_heap_write(const struct mw_heap_report *heap, const struct mw_output_options *options,
				    FILE *stream)
{
	struct mw_output_options clamped = *options;
	struct writer writer = {heap, &clamped, {.options = &clamped, .stream = stream}};
	bool failed;

	if (clamped.width && clamped.width < MW_TEXT_LEAST_WIDTH)
		clamped.width = MW_TEXT_LEAST_WIDTH;
	put_head(&writer);
	put_answer(&writer);
	for (unsigned verdict = 0; verdict < MW_REACH_COUNT; verdict++)
		put_groups(&writer, (enum mw_reach)verdict);
	put_holders(&writer);
	put_account(&writer);
	writer.text.heading = heap->allocator_count ? "Allocators" : NULL;
	for (size_t i = 0; i < heap->allocator_count; i++)
		put_allocator(&writer, &heap->allocators[i]);
	put_advice(&writer);
	put_gaps(&writer);
	failed = writer.text.line.failed;
	mw_line_deinit(&writer.text.line);
	return failed ? mw_error_nomem() : NULL;
}
