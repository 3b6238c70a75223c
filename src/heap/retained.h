/* SPDX-License-Identifier: MIT */
/*
 * retained.h: the tree of who retains how much.
 *
 *      what roots count to                  all that would be lost without it
 *        blocks of one class and size       what only these hold of that …
 *
 * Blocks that hold others of their own class and size (lists, trees) are of one group with them. Beside roots there are
 * two more: several roots, for blocks that no single one holds alone, and nothing, for those that are lost.
 */
#ifndef MW_HEAP_RETAINED_H
#define MW_HEAP_RETAINED_H

#include "heap/root_name.h"

/* Fill in the report's holders: of roots the first `width`. `found` has dominators, and roots by mw_root_number(). Errors:
 * MEMORY. */
struct mw_error *mw_retained(const struct mw_findings *found, size_t width,
			     struct mw_heap_report *report) MW_MUST_CHECK;

#endif
