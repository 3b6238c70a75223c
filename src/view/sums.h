/* SPDX-License-Identifier: MIT */
/* sums.h: adding up what is known of sets of blocks, and putting them in order. */
#ifndef MW_VIEW_SUMS_H
#define MW_VIEW_SUMS_H

#include "view/cells.h"

#include <memwatch/table.h>

/* Add the amounts of a cell; lifetimes and peaks are the caller's business. */
void mw_sums_add(struct mw_sums *sums, const struct mw_cell *cell);
/* Add amounts and peaks of another set of blocks. */
void mw_sums_merge(struct mw_sums *sums, const struct mw_sums *other);
void mw_sums_set_lifetime(struct mw_sums *sums, const struct mw_histogram *lifetimes);
/* What a set counts where it is sorted by that. */
uint64_t mw_sums_rank(const struct mw_sums *sums, enum mw_sort sort, enum mw_fate type);
/* <0: `a` comes first; 0: the amounts do not decide. */
int mw_sums_compare(const struct mw_sums *a, const struct mw_sums *b, enum mw_sort sort, enum mw_fate type);
/* Is there any block, or piece of one, of that type? */
bool mw_sums_has(const struct mw_sums *sums, enum mw_fate type);

#endif
