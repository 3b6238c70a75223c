// SPDX-License-Identifier: MIT
/* text_views_blocks.c: a list of blocks, two lines each: figures, and whose it is. */
#include "output/text_views.h"

#include <inttypes.h>
#include <string.h>

/* All is within MW_TEXT_LEAST_WIDTH: days take 11. */
#define LIVED_COLUMNS 11

static struct mw_shown show_moment(uint64_t ns)
{
	struct mw_shown shown = {"-"};

	if (ns != MW_SIZE_UNKNOWN)
		snprintf(shown.text, sizeof(shown.text), "%.3f", (double)ns / 1e9);
	return shown;
}

static void put_figures(struct mw_text *text, const struct mw_block_row *row)
{
	bool has_lifetime = row->lifetime_ns != MW_SIZE_UNKNOWN;
	struct mw_shown lived = mw_show_seconds(has_lifetime ? (double)row->lifetime_ns / 1e9 : 0);
	/* µ is two bytes and one column. */
	int extra = has_lifetime && strstr(lived.text, "µ") ? 1 : 0;

	mw_line_printf(&text->line, "  0x%012" PRIx64 " %11s %9s %9s %*s", row->addr,
		       row->bytes == MW_SIZE_UNKNOWN ? "?" : mw_show_count(row->bytes).text,
		       show_moment(row->born_ns).text, show_moment(row->died_ns).text, LIVED_COLUMNS + extra,
		       has_lifetime ? lived.text : "-");
	if (text->options->width)
		mw_line_elide(&text->line, 0, text->options->width);
	mw_text_line(text, MW_STYLE_PLAIN);
}

static void add_charged(struct mw_line *line, const struct mw_report_stack *stack)
{
	mw_line_printf(line, ", stack %s", stack->id);
	if (!stack->frame_count)
		return;
	mw_line_printf(line, ": ");
	if (stack->frames[0].module)
		mw_line_name(line, mw_text_base_name(stack->frames[0].module));
	if (stack->frames[0].function) {
		mw_line_printf(line, "!");
		mw_line_name(line, stack->frames[0].function);
	}
}

static void put_origin(struct mw_text *text, const struct mw_block_row *row)
{
	struct mw_line *line = &text->line;

	mw_line_printf(line, "     %s, %s", mw_fate_name(row->fate), mw_kind_name(row->kind));
	if (row->heap) {
		mw_line_printf(line, " (");
		mw_line_name(line, row->heap);
		mw_line_printf(line, ")");
	}
	if (row->left && row->left != row->bytes)
		mw_line_printf(line, ", %s of it left", mw_show_size(row->left).text);
	if (row->resident != MW_SIZE_UNKNOWN)
		mw_line_printf(line, ", %s resident", mw_show_size(row->resident).text);
	mw_line_printf(line, ", thread ");
	mw_line_name(line, row->thread);
	if (row->tid)
		mw_line_printf(line, " (%d)", row->tid);
	if (row->stack)
		add_charged(line, row->stack);
	if (text->options->width)
		mw_line_elide(line, 0, text->options->width);
	mw_text_line(text, MW_STYLE_PLAIN);
}

void mw_text_blocks(struct mw_text *text, const struct mw_views *views)
{
	const struct mw_block_list *list = views->blocks;

	mw_text_heading(text, list->by_age ? "Blocks that lived longest" : "Largest blocks");
	mw_text_how(text, views,
		    "allocated and freed in seconds since the window's start; what was not freed has lived until the "
		    "interval's end");
	if (!list->row_count) {
		mw_line_printf(&text->line, "  There is nothing to show.");
		mw_text_paragraph(text, 2);
		return;
	}
	mw_line_printf(&text->line, "  %-14s %11s %9s %9s %*s", "address", "bytes", "allocated", "freed", LIVED_COLUMNS,
		       "lived");
	mw_text_line(text, MW_STYLE_PLAIN);
	for (size_t i = 0; i < list->row_count; i++) {
		put_figures(text, &list->rows[i]);
		put_origin(text, &list->rows[i]);
	}
	if (list->count == list->row_count)
		return;
	mw_line_printf(&text->line, "  … and %s more", mw_show_count(list->count - list->row_count).text);
	mw_text_line(text, MW_STYLE_PLAIN);
}
