/* SPDX-License-Identifier: MIT */
/* text_views.h: groups, call trees and blocks as text. */
#ifndef MW_OUTPUT_TEXT_VIEWS_H
#define MW_OUTPUT_TEXT_VIEWS_H

#include "output/text.h"

#include <memwatch/table.h>

/* Write what there is of the views, each with a heading of its own. Uses the report's stacks for frames. */
void mw_text_views(struct mw_text *text, const struct mw_views *views);

/* Its parts. */
void mw_text_groups(struct mw_text *text, const struct mw_views *views);
void mw_text_tree(struct mw_text *text, const struct mw_views *views);
void mw_text_blocks(struct mw_text *text, const struct mw_views *views);

/* The columns of figures that a table has room for. */
#define MW_FIGURES_MAX_COLUMNS 10

struct mw_figure;

struct mw_figures {
	const struct mw_views *views;
	const struct mw_sums *total;
	const struct mw_figure *columns[MW_FIGURES_MAX_COLUMNS];
	size_t count;
};

/* Choose them for lines of that width (0: any), so that enough is left for labels. `tree`: with what ends in a node. */
void mw_figures_choose(struct mw_figures *figures, const struct mw_views *views, const struct mw_sums *total, bool tree,
		       unsigned width);
/* Append their headings, or the figures of a row; `self` is NULL but in a tree. */
void mw_figures_head(const struct mw_figures *figures, struct mw_line *line);
void mw_figures_row(const struct mw_figures *figures, struct mw_line *line, const struct mw_sums *sums,
		    const struct mw_sums *self);

/* "(by …; filter: …)" under a heading. */
void mw_text_how(struct mw_text *text, const struct mw_views *views, const char *what);

#endif
