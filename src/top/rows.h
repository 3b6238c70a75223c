/* SPDX-License-Identifier: MIT */
/*
 * rows.h: the rows of a live table: what is impacting now by stack, module or thread, and how that has changed over
 * the last seconds. Numbers only: nothing here knows of a screen.
 */
#ifndef MW_TOP_ROWS_H
#define MW_TOP_ROWS_H

#include "top/feed.h"

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
	uint64_t allocations;     /* since the zero point */
	int64_t growth;           /* of impacting bytes over the span */
	uint64_t new_allocations; /* in the span */
	const char *name;         /* to sort by; NULL: not known (yet) */
};

/* Rows, in order. Zero-initialise; mw_top_rows_deinit frees. */
struct mw_top_rows {
	struct mw_top_row *items;
	size_t count, capacity;
};
void mw_top_rows_deinit(struct mw_top_rows *rows);

/* The shots of the last seconds since the zero point, the oldest first. Zero-initialise. */
struct mw_top_history {
	struct mw_top_shot *shots[MW_TOP_HISTORY];
	size_t count;
};
void mw_top_history_deinit(struct mw_top_history *history);
/* Add the newest; takes it. What is no longer needed goes. */
void mw_top_history_add(struct mw_top_history *history, struct mw_top_shot *shot);
struct mw_top_shot *mw_top_history_newest(const struct mw_top_history *history);
/* The one that growth is measured since: the first inside the span. The newest itself where there is no other. */
struct mw_top_shot *mw_top_history_base(const struct mw_top_history *history);
/* Keep a shot (NULL: none) beyond its time in the history, and let it go again. */
struct mw_top_shot *mw_top_shot_hold(struct mw_top_shot *shot);
void mw_top_shot_release(struct mw_top_shot *shot);

/* A change over the time from one shot to another, per second; 0 where there is no time between. */
double mw_top_per_second(double change, const struct mw_top_shot *base, const struct mw_top_shot *now);

/* What names rows; NULL: not known. */
typedef const char *mw_top_name_of(void *context, enum mw_top_group group, uint32_t key);

/*
 * The rows of `now`, sums that changed since `base`; rows of nothing are left out. Not vm-internal. False without
 * memory.
 */
bool mw_top_rows_make(struct mw_top_rows *rows, const struct mw_top_registry *registry, const struct mw_top_shot *base,
		      const struct mw_top_shot *now, enum mw_top_group group);
/* Sort by what is most, by names from A; `reversed` the other way round. Rows that are equal stay where they were. */
void mw_top_rows_sort(struct mw_top_rows *rows, enum mw_top_group group, enum mw_top_sort sort, bool reversed,
		      mw_top_name_of *name_of, void *context);

const char *mw_top_group_name(enum mw_top_group group); /* "stack" … */
const char *mw_top_sort_name(enum mw_top_sort sort);    /* "impacting bytes" … */

#endif
