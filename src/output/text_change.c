// SPDX-License-Identifier: MIT
/* text_change.c: by what the process's memory became more or less between looks at its heap at both ends of the window. */
#include "output/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MOST  5u  /* parts beside the blocks in the answer … */
#define LEAST 20u /* … none of them less than one in so many of the largest */

static struct mw_shown show_signed(int64_t bytes)
{
	uint64_t size = bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;

	return bytes < 0 ? mw_show_change(size, 0) : mw_show_change(0, size);
}

static uint64_t magnitude(int64_t bytes)
{
	return bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
}

/* Where it was made; nothing where that is not known. */
static void add_place(struct mw_text *text, enum mw_heap_change_kind kind, uint64_t stack)
{
	char id[24];

	snprintf(id, sizeof(id), "%016" PRIx64, stack);
	for (size_t i = 0; stack && i < text->report->stack_count; i++) {
		const struct mw_report_stack *item = &text->report->stacks[i];
		const struct mw_report_frame *frame = strcmp(item->id, id) == 0 ? mw_text_own_frame(item) : NULL;

		if (!frame)
			continue;
		mw_line_printf(&text->line, "%s of ", kind == MW_HEAP_CHANGE_BLOCKS ? "," : "");
		if (frame->function)
			mw_text_short_function(&text->line, frame->function);
		else
			mw_line_name(&text->line, frame->module);
		return;
	}
}

static void add_part(struct mw_text *text, const struct mw_heap_change *part)
{
	struct mw_line *line = &text->line;

	mw_line_name(line, part->name);
	if (*part->detail)
		mw_line_put(line, ": ", part->detail);
	add_place(text, part->kind, part->stack);
}

void mw_text_change_answer(struct mw_text *text, bool leads)
{
	const struct mw_report_change *change = text->report->change;
	struct mw_line *line = &text->line;
	int64_t left = (int64_t)change->after - (int64_t)change->before - change->sums[MW_HEAP_CHANGE_BLOCKS];
	uint64_t largest = 0;
	size_t shown = 0;

	mw_line_printf(line, "%sRSS %s: %s blocks not freed", leads ? "OPEN  " : "      ",
		       mw_show_change(change->before, change->after).text,
		       show_signed(change->sums[MW_HEAP_CHANGE_BLOCKS]).text);
	for (size_t i = 0; i < change->part_count && shown < MOST; i++) {
		const struct mw_heap_change *part = &change->parts[i];

		if (part->kind == MW_HEAP_CHANGE_BLOCKS)
			continue;
		largest = largest ? largest : magnitude(part->bytes);
		if (magnitude(part->bytes) < largest / LEAST)
			break;
		mw_line_printf(line, ", %s ", show_signed(part->bytes).text);
		add_part(text, part);
		left -= part->bytes;
		shown++;
	}
	if (left)
		mw_line_printf(line, ", %s other memory", show_signed(left).text);
	mw_text_styled_paragraph(text, 6, MW_STYLE_HEADING);
}

void mw_text_change(struct mw_text *text)
{
	const struct mw_report_change *change = text->report->change;

	if (!change)
		return;
	text->heading = "Growth of memory between the looks at both ends of the window";
	for (size_t i = 0; i < change->part_count; i++) {
		mw_line_printf(&text->line, "  %11s  ", show_signed(change->parts[i].bytes).text);
		add_part(text, &change->parts[i]);
		mw_text_paragraph(text, 15);
	}
	MW_TEXT_ROW(text, "  %11s  resident (RSS): %s, then %s", mw_show_change(change->before, change->after).text,
		    mw_show_size(change->before).text, mw_show_size(change->after).text);
	text->heading = NULL;
}
