/* SPDX-License-Identifier: MIT */
/* heap_diff.h: what has become of a heap from one look to another. */
#ifndef MW_VIEW_HEAP_DIFF_H
#define MW_VIEW_HEAP_DIFF_H

#include <memwatch/diff.h>

/* Compare two looks, which are borrowed, and so are their files' names. Errors: MEMORY; USAGE: they are one look, or of one
 * process and not in their order. */
struct mw_error *mw_heap_diff_create(const char *const files[MW_DIFF_SIDES],
				     const struct mw_heap_report *const looks[MW_DIFF_SIDES],
				     struct mw_heap_diff **out) MW_MUST_CHECK;

#endif
