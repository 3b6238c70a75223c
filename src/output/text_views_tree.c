// SPDX-License-Identifier: MIT
/*
 * text_views_tree.c: a call tree. Only where it forks does it go to the right, so that deep stacks fit on a line; a
 * node with others beside it begins with a dash:
 *
 *     main
 *     - serve          - two calls from main
 *       handle         called by serve alone
 *     - load
 */
#include "output/text_views.h"

#include <inttypes.h>
#include <stdlib.h>

#define INDENT_SHARE 3 /* of what is left for labels goes to indents at most a third */

struct place {
	size_t children;
	unsigned indent;
};

static void add_node(struct mw_line *line, const struct mw_tree_node *node)
{
	if (node->folded > 1) {
		mw_line_printf(line, "… %s more", mw_show_count(node->folded).text);
		return;
	}
	if (node->cut) {
		mw_line_printf(line, "(%s)", node->cut);
		return;
	}
	if (node->module)
		mw_line_name(line, mw_text_base_name(node->module));
	else
		mw_line_printf(line, "(code in no file)");
	if (node->function) {
		mw_line_printf(line, "!");
		mw_line_name(line, node->function);
	} else {
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

static void put_node(struct mw_text *text, const struct mw_figures *figures, const struct mw_tree *tree, size_t number,
		     const struct place *places)
{
	const struct mw_tree_node *node = &tree->nodes[number];
	unsigned width = text->options->width, indent = places[number].indent;
	unsigned above = node->parent == MW_TABLE_ROOT ? 0 : places[node->parent].indent;
	struct mw_line *line = &text->line;
	size_t label, columns;

	mw_figures_row(figures, line, &node->sums, node->folded ? NULL : &node->self);
	columns = mw_line_columns(line, 0) + 2;
	if (width && indent > (width - columns) / INDENT_SHARE)
		mw_line_printf(line, "  %*s%s", (int)((width - columns) / INDENT_SHARE) - 2, "",
			       indent > above ? "- " : "  ");
	else if (indent > above)
		mw_line_printf(line, "  %*s- ", (int)indent - 2, "");
	else
		mw_line_printf(line, "  %*s", (int)indent, "");
	label = line->length;
	columns = mw_line_columns(line, 0);
	add_node(line, node);
	if (width)
		mw_line_elide(line, label, width > columns ? width - columns : 1);
	mw_text_line(text, MW_STYLE_PLAIN);
}

static void put_nodes(struct mw_text *text, const struct mw_figures *figures, const struct mw_tree *tree)
{
	struct place *places = place_nodes(tree);

	if (!places) {
		text->line.failed = true;
		return;
	}
	mw_figures_head(figures, &text->line);
	mw_text_line(text, MW_STYLE_PLAIN);
	for (size_t i = 0; i < tree->node_count; i++)
		put_node(text, figures, tree, i, places);
	free(places);
	if (mw_sums_of(&tree->self, figures->views->type).count) {
		mw_figures_row(figures, &text->line, &tree->self, &tree->self);
		mw_line_printf(&text->line, "  (no stack)");
		mw_text_line(text, MW_STYLE_PLAIN);
	}
	mw_figures_row(figures, &text->line, &tree->total, NULL);
	mw_line_printf(&text->line, "  total");
	mw_text_line(text, MW_STYLE_PLAIN);
}

void mw_text_tree(struct mw_text *text, const struct mw_views *views)
{
	const struct mw_tree *tree = views->tree;
	struct mw_figures figures;
	struct mw_line what = {0};

	mw_text_heading(text, tree->direction == MW_TREE_DOWN ? "Call tree, from the threads' starts down"
							      : "Call tree, from the allocators up");
	mw_line_printf(&what, "each function with %s; here: stacks that end there; sorted by %s",
		       tree->direction == MW_TREE_DOWN ? "what it called below it" : "who called it below it",
		       mw_sort_name(views->sort));
	mw_text_how(text, views, what.data ? what.data : "");
	text->line.failed = text->line.failed || what.failed;
	mw_line_deinit(&what);
	mw_figures_choose(&figures, views, &tree->total, true, text->options->width);
	if (tree->node_count) {
		put_nodes(text, &figures, tree);
		return;
	}
	mw_line_printf(&text->line, "  There is nothing to show.");
	mw_text_paragraph(text, 2);
}
