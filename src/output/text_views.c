// SPDX-License-Identifier: MIT
/* text_views.c: groups, call trees and blocks as text. */
#include "output/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- the columns of tables and trees: as many as there is room for, the most telling first ------------------ */

#define LABEL_LEAST 30 /* columns that are left for what a row is about */
#define GAP         2

#define MAX_COLUMNS 11

struct figures {
	const struct mw_views *views;
	const struct mw_sums *total;
	bool tree; /* with what ends in a node */
	const struct figure *columns[MAX_COLUMNS];
	size_t count;
};

/* What a column shows of a row. */
enum shown { BYTES, ERROR, BYTES_HERE, SHARE, BLOCKS, LIFETIME, PEAK };

/* Where a column tells something. */
enum told {
	ALWAYS,
	IF_SAMPLED,
	IN_TREES,
	BY_PEAK,
	BY_LIFETIME,
	NOT_BY_LIFETIME,
	OF_OTHERS,
	OF_OTHERS_IF_ANY,
	OF_ALL_IF_ANY
};

#define CHOSEN (MW_FATE_COUNT + 1) /* the type that rows are shown for */

struct figure {
	const char *heading; /* NULL: the type's name */
	size_t width;
	enum shown shown;
	unsigned fate; /* of which blocks: enum mw_fate, or CHOSEN */
	enum told told;
};

/* In the order in which they are given up last. */
static const struct figure all_figures[] = {
	{NULL, 10, BYTES, CHOSEN, ALWAYS},
	{"±", 10, ERROR, CHOSEN, IF_SAMPLED},
	{"share", 7, SHARE, CHOSEN, ALWAYS},
	{"peak", 12, PEAK, CHOSEN, BY_PEAK},
	{"lived", 8, LIFETIME, CHOSEN, BY_LIFETIME},
	{"here", 10, BYTES_HERE, CHOSEN, IN_TREES},
	{"blocks", 11, BLOCKS, CHOSEN, ALWAYS},
	{"not freed", 10, BYTES, MW_FATE_IMPACTING, OF_OTHERS},
	{"allocated", 10, BYTES, MW_FATE_ALL, OF_OTHERS},
	{"freed", 10, BYTES, MW_FATE_TRANSIENT, OF_OTHERS},
	{"older freed", 11, BYTES, MW_FATE_AOFI, OF_OTHERS_IF_ANY},
	{"older kept", 10, BYTES, MW_FATE_AOFO, OF_ALL_IF_ANY},
	{"lived", 8, LIFETIME, CHOSEN, NOT_BY_LIFETIME},
};

/* Of no older block that was freed the size may be known. */
static struct mw_shown show_bytes(const struct mw_sums *sums, enum mw_fate fate)
{
	struct mw_amount amount = mw_sums_of(sums, fate);

	if (fate == MW_FATE_AOFI && amount.count && sums->aofi_unknown >= amount.count)
		return (struct mw_shown){"unknown"};
	return mw_show_size(amount.bytes);
}

/* `self`: what ends in a node; NULL but in a tree. */
static struct mw_shown show(const struct figures *figures, const struct figure *figure, const struct mw_sums *sums,
			    const struct mw_sums *self)
{
	enum mw_fate fate = figure->fate == CHOSEN ? figures->views->type : (enum mw_fate)figure->fate;
	struct mw_shown shown = {""};

	switch (figure->shown) {
	case BYTES:
		return show_bytes(sums, fate);
	case ERROR:
		return mw_show_size((uint64_t)(sqrt(mw_sums_spread(sums, fate).bytes) + 0.5));
	case BYTES_HERE:
		return self ? show_bytes(self, fate) : shown;
	case SHARE:
		return mw_show_percent((double)mw_sums_of(sums, fate).bytes,
				       (double)mw_sums_of(figures->total, fate).bytes);
	case BLOCKS:
		return mw_show_count(mw_sums_of(sums, fate).count);
	case LIFETIME:
		return sums->has_lifetime ? mw_show_seconds((double)sums->lifetime_median_ns / 1e9)
					  : (struct mw_shown){"-"};
	case PEAK:
		snprintf(shown.text, sizeof(shown.text), "%s%.30s",
			 sums->peak_exact ? "" : "<=", mw_show_size(sums->peak_bytes).text);
		break;
	}
	return shown;
}

static bool tells(const struct figures *figures, const struct figure *figure)
{
	enum mw_fate type = figures->views->type;
	bool by_lifetime = figures->views->sort == MW_SORT_LIFETIME;
	bool has_lifetimes = figures->total->has_lifetime && !figures->tree;

	switch (figure->told) {
	case IF_SAMPLED:
		return figures->views->sampled;
	case IN_TREES:
		return figures->tree;
	case BY_PEAK:
		return figures->views->sort == MW_SORT_PEAK;
	case BY_LIFETIME:
		return by_lifetime && has_lifetimes;
	case NOT_BY_LIFETIME:
		return !by_lifetime && has_lifetimes;
	case OF_OTHERS:
		return type != figure->fate;
	case OF_OTHERS_IF_ANY:
		return type != figure->fate && figures->total->fates[figure->fate].count;
	case OF_ALL_IF_ANY:
		return type == MW_FATE_ALL && figures->total->fates[figure->fate].count;
	case ALWAYS:
		break;
	}
	return true;
}

/* Must it be there: the type's bytes, and what rows are sorted by? */
static bool is_needed(const struct figures *figures, const struct figure *figure)
{
	static const unsigned sorted[MW_SORT_NUMBER] = {
		[MW_SORT_IMPACTING] = MW_FATE_IMPACTING,
		[MW_SORT_SIZE] = MW_FATE_ALL,
		[MW_SORT_TRANSIENT] = MW_FATE_TRANSIENT,
		[MW_SORT_AOFI] = MW_FATE_AOFI,
		[MW_SORT_COUNT] = CHOSEN,
		[MW_SORT_PEAK] = CHOSEN,
		[MW_SORT_LIFETIME] = CHOSEN,
	};

	return (figure->shown == BYTES && (figure->fate == CHOSEN || figure->fate == sorted[figures->views->sort])) ||
	       figure->shown == SHARE || figure->shown == ERROR;
}

/* Choose columns for lines of that width (0: any), so that enough is left for labels. */
static void choose_figures(struct figures *figures, unsigned width)
{
	const size_t count = sizeof(all_figures) / sizeof(all_figures[0]);
	size_t taken = LABEL_LEAST;

	for (size_t i = 0; i < 2 * count; i++) {
		const struct figure *figure = &all_figures[i % count];

		if (is_needed(figures, figure) != (i < count) || !tells(figures, figure))
			continue;
		taken += figure->width + GAP;
		if ((width && taken > width) || figures->count == MAX_COLUMNS)
			return;
		figures->columns[figures->count++] = figure;
	}
}

/* What people call it. */
static const char *word_of(enum mw_fate fate)
{
	static const char *const words[] = {
		[MW_FATE_IMPACTING] = "not freed", [MW_FATE_TRANSIENT] = "freed", [MW_FATE_AOFI] = "older freed",
		[MW_FATE_AOFO] = "older kept",     [MW_FATE_ALL] = "allocated",
	};

	return words[fate];
}

static const char *order_of(enum mw_sort sort)
{
	static const char *const orders[MW_SORT_NUMBER] = {
		[MW_SORT_IMPACTING] = "bytes not freed",
		[MW_SORT_SIZE] = "bytes allocated",
		[MW_SORT_COUNT] = "blocks",
		[MW_SORT_TRANSIENT] = "bytes freed",
		[MW_SORT_PEAK] = "peak",
		[MW_SORT_LIFETIME] = "lifetime",
		[MW_SORT_AOFI] = "older bytes freed",
	};

	return orders[sort];
}

static void add_heads(const struct figures *figures, struct mw_line *line)
{
	for (size_t i = 0; i < figures->count; i++) {
		const char *heading = figures->columns[i]->heading;

		mw_text_cell(line, figures->columns[i]->width + GAP, heading ? heading : word_of(figures->views->type));
	}
}

static void add_figures(const struct figures *figures, struct mw_line *line, const struct mw_sums *sums,
			const struct mw_sums *self)
{
	for (size_t i = 0; i < figures->count; i++)
		mw_text_cell(line, figures->columns[i]->width + GAP,
			     show(figures, figures->columns[i], sums, self).text);
}

/* Is there nothing in any column? */
static bool is_nothing(const struct figures *figures, const struct mw_sums *sums)
{
	bool nothing = !mw_sums_of(sums, figures->views->type).count;

	for (size_t i = 0; i < figures->count; i++)
		if (figures->columns[i]->fate != CHOSEN)
			nothing = nothing && !mw_sums_of(sums, (enum mw_fate)figures->columns[i]->fate).count;
	return nothing;
}

/* End "  (WHAT; filter: …)" under a heading, which the line has the beginning of. */
static void end_how(struct mw_text *text, const struct mw_views *views)
{
	if (views->filter) {
		mw_line_put(&text->line, "; of what passes the filter ", views->filter);
	}
	MW_TEXT_SAY(text, 3, ")");
}

/* --- groups: figures to the left, what they are of to the right, a level an indent -------------------------- */

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

/* module!function; where that is too wide without parameters, and then without the module. */
static void add_function(struct mw_text *text, const char *module, const char *function)
{
	struct mw_line *line = &text->line;
	size_t width = text->options->width ? text->options->width : SIZE_MAX, from = line->length, name;

	if (module) {
		mw_line_name(line, mw_text_base_name(module));
		mw_line_printf(line, "!");
	}
	name = line->length;
	mw_text_function(line, function);
	if (mw_line_columns(line, 0) <= width)
		return;
	mw_line_cut(line, name);
	mw_text_short_function(line, function);
	if (mw_line_columns(line, 0) <= width)
		return;
	mw_line_cut(line, from);
	mw_text_short_function(line, function);
}

static void add_name(struct mw_line *line, const char *name, const char *unknown)
{
	if (name)
		mw_line_name(line, name);
	else
		mw_line_printf(line, "%s", unknown);
}

static void add_label(struct mw_text *text, enum mw_column column, const struct mw_table_row *row)
{
	struct mw_line *line = &text->line;

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
		mw_line_printf(line, "%s", word_of((enum mw_fate)row->number));
		return;
	case MW_COLUMN_SIZE:
		if (row->number == MW_SIZE_UNKNOWN)
			mw_line_printf(line, "(unknown size)");
		else
			mw_line_printf(line, "%s B each", mw_show_count(row->number).text);
		return;
	case MW_COLUMN_FUNCTION:
		if (row->text)
			add_function(text, row->module, row->text);
		else
			mw_line_printf(line, "(runtime only)");
		return;
	case MW_COLUMN_STACK:
		mw_line_printf(line, "%s", row->text ? "stack " : "");
		add_name(line, row->text, "(no stack)");
		return;
	case MW_COLUMN_MODULE:
		add_name(line, row->text, "(runtime only)");
		return;
	case MW_COLUMN_LINE:
		if (row->frame)
			mw_text_source(line, row->frame);
		else
			mw_line_printf(line, "(no stack)");
		return;
	case MW_COLUMN_HEAP:
	case MW_COLUMN_LANGUAGE:
	case MW_COLUMN_API:
	case MW_COLUMN_COUNT:
		break;
	}
	add_name(line, row->text, "(unknown)");
}

static void put_row(struct mw_text *text, const struct figures *figures, const struct mw_table *table,
		    const struct mw_table_row *row, bool leads)
{
	struct mw_line *line = &text->line;
	size_t label;

	if (row->folded && is_nothing(figures, &row->sums))
		return;
	add_figures(figures, line, &row->sums, NULL);
	mw_line_printf(line, "%*s", 2 + 2 * (int)row->level, "");
	label = line->length;
	add_label(text, table->by[row->level], row);
	mw_text_fit(text, label);
	mw_text_line(text, leads ? MW_STYLE_ALARM : MW_STYLE_PLAIN);
	if (row->stack && row->level + 1 == table->by_count)
		mw_text_frames(text, row->stack, STACK_FRAMES);
}

static void put_how(struct mw_text *text, const struct mw_views *views, const struct mw_table *table)
{
	struct mw_line *line = &text->line;

	mw_line_printf(line, "  (");
	for (size_t i = 0; i < table->by_count; i++)
		mw_line_printf(line, "%s%s", i ? ", within it by " : "by ", mw_column_name(table->by[i]));
	mw_line_printf(line, "; sorted by %s", order_of(views->sort));
	if (views->sort == MW_SORT_PEAK)
		mw_line_printf(line, ", where <= is the sum of several stacks' peaks: the true one is that or less");
	end_how(text, views);
}

static void put_groups(struct mw_text *text, const struct mw_views *views)
{
	const struct mw_table *table = views->groups;
	struct figures figures = {.views = views, .total = &table->total};

	mw_text_heading(text, "Groups");
	put_how(text, views, table);
	if (!table->row_count) {
		MW_TEXT_SAY(text, 2, "  There is nothing to show.");
		return;
	}
	choose_figures(&figures, text->options->width);
	add_heads(&figures, &text->line);
	mw_text_line(text, MW_STYLE_PLAIN);
	for (size_t i = 0; i < table->row_count; i++)
		put_row(text, &figures, table, &table->rows[i], i == 0);
	add_figures(&figures, &text->line, &table->total, NULL);
	MW_TEXT_ROW(text, "  total");
}

/* --- call trees --------------------------------------------------------------------------------------------- */

/*
 * Only where it forks does a tree go to the right, so that deep stacks fit on a line; a node with others beside it begins
 * with a dash:
 *
 *     main
 *     - serve          - two calls from main
 *       handle         called by serve alone
 *     - load
 */
#define INDENT_SHARE 3 /* of what is left for labels goes to indents at most a third */

struct place {
	size_t children;
	unsigned indent;
};

static void add_node(struct mw_text *text, const struct mw_tree_node *node)
{
	struct mw_line *line = &text->line;

	if (node->folded > 1) {
		mw_line_printf(line, "… %s more", mw_show_count(node->folded).text);
		return;
	}
	if (node->cut) {
		mw_line_printf(line, "(%s)", node->cut);
		return;
	}
	if (node->function) {
		add_function(text, node->module, node->function);
	} else {
		mw_line_name(line, node->module ? mw_text_base_name(node->module) : "(code in no file)");
		mw_line_printf(line, "+0x%" PRIx64, node->offset);
	}
	if (node->folded)
		mw_line_printf(line, " …");
}

/* Indents, from those of their parents: a parent comes first. */
static struct place *place_nodes(const struct mw_tree *tree)
{
	struct place *places = calloc(tree->node_count + 1, sizeof(*places));
	size_t roots = 0;

	for (size_t i = 0; places && i < tree->node_count; i++) {
		if (tree->nodes[i].parent == MW_TABLE_ROOT)
			roots++;
		else
			places[tree->nodes[i].parent].children++;
	}
	for (size_t i = 0; places && i < tree->node_count; i++) {
		size_t parent = tree->nodes[i].parent;
		bool forks = parent == MW_TABLE_ROOT ? roots > 1 : places[parent].children > 1;

		places[i].indent = (parent == MW_TABLE_ROOT ? 0 : places[parent].indent) + (forks ? 2 : 0);
	}
	return places;
}

static void put_node(struct mw_text *text, const struct figures *figures, const struct mw_tree *tree, size_t number,
		     const struct place *places)
{
	const struct mw_tree_node *node = &tree->nodes[number];
	unsigned width = text->options->width, indent = places[number].indent;
	unsigned above = node->parent == MW_TABLE_ROOT ? 0 : places[node->parent].indent;
	struct mw_line *line = &text->line;
	size_t label, columns;

	add_figures(figures, line, &node->sums, node->folded ? NULL : &node->self);
	columns = mw_line_columns(line, 0) + 2;
	if (width && indent > (width - columns) / INDENT_SHARE)
		mw_line_printf(line, "  %*s%s", (int)((width - columns) / INDENT_SHARE) - 2, "",
			       indent > above ? "- " : "  ");
	else if (indent > above)
		mw_line_printf(line, "  %*s- ", (int)indent - 2, "");
	else
		mw_line_printf(line, "  %*s", (int)indent, "");
	label = line->length;
	add_node(text, node);
	mw_text_fit(text, label);
	mw_text_line(text, MW_STYLE_PLAIN);
}

static void put_nodes(struct mw_text *text, const struct figures *figures, const struct mw_tree *tree)
{
	struct place *places = place_nodes(tree);

	if (!places) {
		text->line.failed = true;
		return;
	}
	add_heads(figures, &text->line);
	mw_text_line(text, MW_STYLE_PLAIN);
	for (size_t i = 0; i < tree->node_count; i++)
		put_node(text, figures, tree, i, places);
	free(places);
	if (mw_sums_of(&tree->self, figures->views->type).count) {
		add_figures(figures, &text->line, &tree->self, &tree->self);
		MW_TEXT_ROW(text, "  (no stack)");
	}
	add_figures(figures, &text->line, &tree->total, NULL);
	MW_TEXT_ROW(text, "  total");
}

static void put_tree(struct mw_text *text, const struct mw_views *views)
{
	const struct mw_tree *tree = views->tree;
	struct figures figures = {.views = views, .total = &tree->total, .tree = true};

	mw_text_heading(text, tree->direction == MW_TREE_DOWN ? "Call tree, from the threads' starts down"
							      : "Call tree, from the allocators up");
	mw_line_printf(&text->line, "  (each function with %s; here: stacks that end there; sorted by %s",
		       tree->direction == MW_TREE_DOWN ? "what it called below it" : "who called it below it",
		       order_of(views->sort));
	end_how(text, views);
	choose_figures(&figures, text->options->width);
	if (tree->node_count) {
		put_nodes(text, &figures, tree);
		return;
	}
	MW_TEXT_SAY(text, 2, "  There is nothing to show.");
}

/* --- blocks, some lines each: figures, and whose it is ------------------------------------------------------- */

/* All is within MW_TEXT_LEAST_WIDTH: days take 11. */
#define LIVED_COLUMNS 11

static struct mw_shown show_moment(uint64_t ns)
{
	struct mw_shown shown = {"-"};

	if (ns != MW_SIZE_UNKNOWN)
		snprintf(shown.text, sizeof(shown.text), "%.3f", (double)ns / 1e9);
	return shown;
}

static void put_block(struct mw_text *text, const struct mw_block_row *row)
{
	bool has_lifetime = row->lifetime_ns != MW_SIZE_UNKNOWN;

	mw_line_printf(&text->line, "  0x%012" PRIx64 " %11s %9s %9s", row->addr,
		       row->bytes == MW_SIZE_UNKNOWN ? "?" : mw_show_count(row->bytes).text,
		       show_moment(row->born_ns).text, show_moment(row->died_ns).text);
	mw_text_cell(&text->line, 1 + LIVED_COLUMNS,
		     has_lifetime ? mw_show_seconds((double)row->lifetime_ns / 1e9).text : "-");
	mw_text_fit(text, 0);
	mw_text_line(text, MW_STYLE_PLAIN);
}

static void add_stack(struct mw_line *line, const struct mw_report_stack *stack)
{
	const struct mw_report_frame *frame = mw_text_own_frame(stack);

	mw_line_printf(line, ", stack %s", stack->id);
	if (!frame)
		return;
	mw_line_printf(line, ": ");
	mw_text_module(line, frame);
	if (frame->function)
		mw_text_short_function(line, frame->function);
	else
		mw_line_printf(line, "+0x%" PRIx64, frame->offset);
}

static void put_origin(struct mw_text *text, const struct mw_block_row *row)
{
	struct mw_line *line = &text->line;

	mw_line_printf(line, "     %s, %s", word_of(row->fate), mw_kind_name(row->kind));
	if (row->heap) {
		mw_line_put(line, " (", row->heap);
		mw_line_printf(line, ")");
	}
	if (row->others)
		mw_line_printf(line, ", stands for %s", mw_show_count(1 + row->others).text);
	if (row->left && row->left != row->bytes)
		mw_line_printf(line, ", %s of it left", mw_show_size(row->left).text);
	if (row->resident != MW_SIZE_UNKNOWN)
		mw_line_printf(line, ", %s resident", mw_show_size(row->resident).text);
	mw_line_put(line, ", thread ", row->thread);
	if (row->tid)
		mw_line_printf(line, " (%d)", row->tid);
	if (row->stack)
		add_stack(line, row->stack);
	mw_text_paragraph(text, 7);
}

static void put_blocks(struct mw_text *text, const struct mw_views *views)
{
	const struct mw_block_list *list = views->blocks;

	mw_text_heading(text, list->by_age ? "Blocks that lived longest" : "Largest blocks");
	mw_line_printf(&text->line,
		       "  (allocated and freed in seconds since the window's start; what was not freed has lived until "
		       "the interval's end");
	end_how(text, views);
	if (!list->row_count) {
		MW_TEXT_SAY(text, 2, "  There is nothing to show.");
		return;
	}
	MW_TEXT_ROW(text, "  %-14s %11s %9s %9s %*s", "address", "bytes", "allocated", "freed", LIVED_COLUMNS, "lived");
	for (size_t i = 0; i < list->row_count; i++) {
		put_block(text, &list->rows[i]);
		put_origin(text, &list->rows[i]);
	}
	if (list->count == list->row_count)
		return;
	MW_TEXT_ROW(text, "  … and %s more", mw_show_count(list->count - list->row_count).text);
}

void mw_text_views(struct mw_text *text, const struct mw_views *views)
{
	if (views->groups)
		put_groups(text, views);
	if (views->tree)
		put_tree(text, views);
	if (views->blocks)
		put_blocks(text, views);
}
