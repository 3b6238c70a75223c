// SPDX-License-Identifier: MIT
/* text_views.c: groups as a table: figures to the left, what they are of to the right, a level an indent. */
#include "output/text_views.h"

#include <inttypes.h>
#include <string.h>

#define STACK_FRAMES 8 /* of each stack in a table of stacks */

static void add_numbered(struct mw_line *line, const char *name, uint64_t number, const char *unit)
{
	if (number == MW_SIZE_UNKNOWN) {
		mw_line_printf(line, "(unknown)");
		return;
	}
	mw_line_name(line, name);
	mw_line_printf(line, " (%s%" PRIu64 ")", unit, number);
}

static void add_function(struct mw_line *line, const struct mw_table_row *row)
{
	if (row->module) {
		mw_line_name(line, mw_text_base_name(row->module));
		mw_line_printf(line, "!");
		mw_line_name(line, row->text);
	} else if (row->text) {
		mw_line_name(line, row->text);
	} else {
		mw_line_printf(line, "(runtime only)");
	}
}

static void add_name(struct mw_line *line, const char *name, const char *unknown)
{
	if (name)
		mw_line_name(line, name);
	else
		mw_line_printf(line, "%s", unknown);
}

static void add_label(struct mw_line *line, enum mw_column column, const struct mw_table_row *row)
{
	if (row->folded) {
		mw_line_printf(line, "… %s more", mw_show_count(row->folded).text);
		return;
	}
	switch (column) {
	case MW_COLUMN_PROCESS:
		add_numbered(line, row->text, row->number, "pid ");
		return;
	case MW_COLUMN_THREAD:
		add_numbered(line, row->text, row->number, "");
		return;
	case MW_COLUMN_KIND:
		mw_line_printf(line, "%s", mw_kind_name((enum mw_kind)row->number));
		return;
	case MW_COLUMN_TYPE:
		mw_line_printf(line, "%s", mw_fate_name((enum mw_fate)row->number));
		return;
	case MW_COLUMN_SIZE:
		if (row->number == MW_SIZE_UNKNOWN)
			mw_line_printf(line, "(unknown size)");
		else
			mw_line_printf(line, "%s B each", mw_show_count(row->number).text);
		return;
	case MW_COLUMN_FUNCTION:
		add_function(line, row);
		return;
	case MW_COLUMN_STACK:
		mw_line_printf(line, "%s", row->text ? "stack " : "");
		add_name(line, row->text, "(no stack)");
		return;
	case MW_COLUMN_MODULE:
		add_name(line, row->text, "(runtime only)");
		return;
	case MW_COLUMN_HEAP:
	case MW_COLUMN_API:
	case MW_COLUMN_COUNT:
		break;
	}
	add_name(line, row->text, "(unknown)");
}

static void put_row(struct mw_text *text, const struct mw_figures *figures, const struct mw_table *table,
		    const struct mw_table_row *row, bool leads)
{
	unsigned width = text->options->width;
	struct mw_line *line = &text->line;
	size_t label, columns;

	mw_figures_row(figures, line, &row->sums, NULL);
	mw_line_printf(line, "%*s", 2 + 2 * (int)row->level, "");
	label = line->length;
	columns = mw_line_columns(line, 0);
	add_label(line, table->by[row->level], row);
	if (width)
		mw_line_elide(line, label, width > columns ? width - columns : 1);
	mw_text_line(text, leads ? MW_STYLE_ALARM : MW_STYLE_PLAIN);
	if (row->stack && row->level + 1 == table->by_count)
		mw_text_frames(text, row->stack, STACK_FRAMES);
}

static void put_how(struct mw_text *text, const struct mw_views *views, const struct mw_table *table)
{
	struct mw_line what = {0};

	for (size_t i = 0; i < table->by_count; i++)
		mw_line_printf(&what, "%s%s", i ? ", within it by " : "by ", mw_column_name(table->by[i]));
	mw_line_printf(&what, "; sorted by %s", mw_sort_name(views->sort));
	if (views->sort == MW_SORT_PEAK)
		mw_line_printf(&what, ", where <= is the sum of several stacks' peaks: the true one is that or less");
	mw_text_how(text, views, what.data ? what.data : "");
	text->line.failed = text->line.failed || what.failed;
	mw_line_deinit(&what);
}

void mw_text_groups(struct mw_text *text, const struct mw_views *views)
{
	const struct mw_table *table = views->groups;
	struct mw_figures figures;

	mw_text_heading(text, "Groups");
	put_how(text, views, table);
	if (!table->row_count) {
		mw_line_printf(&text->line, "  There is nothing to show.");
		mw_text_paragraph(text, 2);
		return;
	}
	mw_figures_choose(&figures, views, &table->total, false, text->options->width);
	mw_figures_head(&figures, &text->line);
	mw_text_line(text, MW_STYLE_PLAIN);
	for (size_t i = 0; i < table->row_count; i++)
		put_row(text, &figures, table, &table->rows[i], i == 0);
	mw_figures_row(&figures, &text->line, &table->total, NULL);
	mw_line_printf(&text->line, "  total");
	mw_text_line(text, MW_STYLE_PLAIN);
}

void mw_text_views(struct mw_text *text, const struct mw_views *views)
{
	if (views->groups)
		mw_text_groups(text, views);
	if (views->tree)
		mw_text_tree(text, views);
	if (views->blocks)
		mw_text_blocks(text, views);
}
