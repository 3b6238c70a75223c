/* SPDX-License-Identifier: MIT */
/*
 * view.h: what of a live table is looked at: rows of what is impacting now by stack, module or thread, and how that has
 * changed over the last seconds; in which order, what is selected, what is open, whether it moves. Knows nothing of a
 * terminal; for one thread.
 */
#ifndef MW_TOP_VIEW_H
#define MW_TOP_VIEW_H

#include "output/line.h"
#include "top/feed.h"
#include "view/filter.h"

#define MW_TOP_SPAN_NS UINT64_C(10000000000) /* growth is measured over the last so long, or since the zero point */
#define MW_TOP_HISTORY 16                    /* shots that are kept; a second apart, or more */

enum mw_top_group {
	MW_TOP_STACKS,
	MW_TOP_MODULES,
	MW_TOP_THREADS,
	MW_TOP_GROUPS,
};

enum mw_top_sort {
	MW_TOP_BY_BYTES,
	MW_TOP_BY_GROWTH,
	MW_TOP_BY_BLOCKS,
	MW_TOP_BY_RATE,
	MW_TOP_BY_NAME,
	MW_TOP_SORTS,
};

struct mw_top_row {
	uint32_t key; /* the number of the stack, module (MW_MODULE_NONE: none) or thread */
	enum mw_kind kind;
	struct mw_amount impacting;
	double variance;          /* of its bytes, where blocks are sampled */
	uint64_t allocations;     /* since the zero point */
	int64_t growth;           /* of impacting bytes over the span */
	uint64_t new_allocations; /* in the span */
	const char *name;         /* to sort by; NULL: not known (yet) */
};

/* Rows, in order. */
struct mw_top_rows {
	struct mw_top_row *items;
	size_t count, capacity;
};

/* The shots of the last seconds since the zero point, the oldest first. */
struct mw_top_history {
	struct mw_top_shot *shots[MW_TOP_HISTORY];
	size_t count;
};

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

#define MW_TOP_WANTED       4096 /* stacks whose names are asked for at once */
#define MW_TOP_OPEN_MAX     128  /* rows that are open at a time */
#define MW_TOP_CHILDREN_MAX 200  /* stacks of an open module */

struct mw_top_open {
	enum mw_top_group group;
	uint32_t key;
};

/* Filters, for rows of which different things are known: of stacks, and modules, which are their sums; of threads. */
enum {
	MW_TOP_OF_STACKS,
	MW_TOP_OF_THREADS,
	MW_TOP_FILTERS,
};

struct mw_top_view {
	const struct mw_top_known *known;
	struct mw_top_history history, later;         /* later: what came while it is paused */
	const struct mw_top_shot *shown, *base;       /* what is looked at, of the history; NULL: nothing yet */
	struct mw_top_course courses[MW_TOP_COURSES]; /* the latest of the same zero point */
	uint32_t course_count, course_zeros;
	struct mw_filter *filters[MW_TOP_FILTERS]; /* NULL: all are shown */
	uint8_t *said;                             /* what that of stacks says of each */
	size_t said_count, unnamed;                /* stacks of which it says nothing before they have names */
	struct mw_top_rows rows, children;
	struct mw_top_item *items;
	size_t item_count, item_capacity;
	enum mw_top_group group;
	enum mw_top_sort sort;
	bool reversed, paused;
	size_t selected, first; /* items: the one that is, and the first on the screen … */
	size_t lines;           /* … which has so many lines for them */
	struct mw_top_open open[MW_TOP_OPEN_MAX];
	size_t open_count;
};

/* Zero-initialise but for what is known, which must outlive it. */
void mw_top_view_deinit(struct mw_top_view *view);
/* A new shot, which is taken; it is looked at at once, unless the view is paused. */
void mw_top_view_shot(struct mw_top_view *view, struct mw_top_shot *shot);
/* Stand still, or look at the newest again. */
void mw_top_view_pause(struct mw_top_view *view, bool paused);
/* Something has changed: a shot, the order, names, the lines. What is selected stays so, and is shown. False without
 * memory. */
bool mw_top_view_update(struct mw_top_view *view);
static inline void mw_top_view_group(struct mw_top_view *view, enum mw_top_group group)
{
	view->group = group;
	view->selected = view->first = 0;
	view->item_count = 0;
}
/* Move what is selected by so many lines; far ones are the first and the last. */
void mw_top_view_move(struct mw_top_view *view, long by);
/* Open or close what is selected; false: it is of a kind that does not open, or too much is open. */
bool mw_top_view_toggle(struct mw_top_view *view, bool open, bool close);
/* The item that is selected; NULL: there are none. */
static inline const struct mw_top_item *mw_top_view_item(const struct mw_top_view *view)
{
	return view->selected < view->item_count ? &view->items[view->selected] : NULL;
}
/* The row of an item that is one, or of the stack that it is under. */
static inline const struct mw_top_row *mw_top_view_row(const struct mw_top_view *view, const struct mw_top_item *item)
{
	/* What is under an open stack is about its row. */
	const struct mw_top_rows *rows =
		view->group == MW_TOP_MODULES && item->kind != MW_TOP_ROW ? &view->children : &view->rows;

	return item->row < rows->count ? &rows->items[item->row] : NULL;
}
/* Show only the rows that the filter is true of, of those that are shown now or, where these are modules, of the stacks that
 * they sum; "": all. Errors: USAGE, as mw_filter_parse(), or it asks what is not known of such rows; MEMORY. Then the old
 * one stays. */
struct mw_error *mw_top_view_filter(struct mw_top_view *view, const char *text) MW_MUST_CHECK;
/* As it was given; NULL: there is none for such rows. */
const char *mw_top_view_filter_text(const struct mw_top_view *view);
/* What is wanted of what is shown now. */
struct mw_top_wishes {
	struct mw_top_key courses[MW_TOP_COURSES];
	size_t course_count;
	uint32_t names[MW_TOP_WANTED]; /* stacks, what is on the screen first */
	size_t name_count;
};
void mw_top_view_wishes(const struct mw_top_view *view, struct mw_top_wishes *out);
/* What became of a row's memory; NULL: not known. */
const struct mw_top_course *mw_top_view_course(const struct mw_top_view *view, const struct mw_top_item *item);
/* --- what is shown ----------------------------------------------------------------------------------------- */

/* Add what stands in the last column of a row, or all of a line that is none: any bytes of the target's among it. */
void mw_top_view_text(const struct mw_top_view *view, const struct mw_top_item *item, struct mw_line *line);
/* A change since `base`, per second; 0 where there is no time between. */
static inline double mw_top_view_rate(const struct mw_top_view *view, double change)
{
	const struct mw_top_shot *now = view->shown, *base = view->base;

	if (!base || !now || now->time_ns <= base->time_ns)
		return 0;
	return change / ((double)(now->time_ns - base->time_ns) / 1e9);
}

#endif
