/* SPDX-License-Identifier: MIT */
/*
 * view.h: what of a live table is looked at: in which order, what is selected, what is open, whether it moves.
 * Knows nothing of a terminal; for one thread.
 */
#ifndef MW_TOP_VIEW_H
#define MW_TOP_VIEW_H

#include "top/names.h"
#include "top/rows.h"

/* A line of the table. */
enum mw_top_item_kind {
	MW_TOP_ROW,    /* of the group that is shown */
	MW_TOP_CHILD,  /* a stack of the open module above */
	MW_TOP_DETAIL, /* of the open stack above: its exact figures … */
	MW_TOP_FRAME,  /* … and its frames */
};

struct mw_top_item {
	enum mw_top_item_kind kind;
	uint32_t key;   /* of a row: as there; else the stack */
	uint32_t owner; /* a child's module, and of what is under it; else 0 */
	uint32_t frame; /* from 0 */
	size_t row;     /* in rows, or in children */
	bool open;
};

#define MW_TOP_OPEN_MAX     128 /* rows that are open at a time */
#define MW_TOP_CHILDREN_MAX 200 /* stacks of an open module */

struct mw_top_open {
	enum mw_top_group group;
	uint32_t key;
};

struct mw_top_view {
	struct mw_top_names *names; /* NULL: none */
	struct mw_top_registry registry;
	struct mw_top_history history;
	struct mw_top_shot *shown, *base; /* what is looked at; NULL: nothing yet */
	struct mw_top_rows rows, children;
	struct mw_top_item *items;
	size_t item_count, item_capacity;
	enum mw_top_group group;
	enum mw_top_sort sort;
	bool reversed, paused;
	size_t selected, first; /* items: the one that is, and the first on the screen */
	struct mw_top_open open[MW_TOP_OPEN_MAX];
	size_t open_count;
};

/* Zero-initialise before. */
void mw_top_view_deinit(struct mw_top_view *view);
/* A new shot, which is taken; it is looked at at once, unless the view is paused. */
void mw_top_view_shot(struct mw_top_view *view, struct mw_top_shot *shot);
/* Stand still, or look at the newest again. */
void mw_top_view_pause(struct mw_top_view *view, bool paused);
/* Something has changed: a shot, the order, names. What is selected stays so. False without memory. */
bool mw_top_view_update(struct mw_top_view *view);
void mw_top_view_group(struct mw_top_view *view, enum mw_top_group group);
/* Move what is selected by so many lines; far ones are the first and the last. */
void mw_top_view_move(struct mw_top_view *view, long by);
/* See that what is selected is among the `lines` that are shown. */
void mw_top_view_scroll(struct mw_top_view *view, size_t lines);
/* Open or close what is selected; false: it is of a kind that does not open, or too much is open. */
bool mw_top_view_toggle(struct mw_top_view *view, bool open, bool close);
/* The item that is selected; NULL: there are none. */
const struct mw_top_item *mw_top_view_item(const struct mw_top_view *view);
/* The row of an item that is one. */
const struct mw_top_row *mw_top_view_row(const struct mw_top_view *view, const struct mw_top_item *item);
/* The stacks whose names the `lines` from the first one on want, at most `capacity`. */
size_t mw_top_view_wanted(const struct mw_top_view *view, size_t lines, uint32_t *out, size_t capacity);

/* What stands in the last column of a row, or all of a line that is none: any bytes of the target's among it. */
void mw_top_view_text(const struct mw_top_view *view, const struct mw_top_item *item, char *out, size_t size);

#endif
