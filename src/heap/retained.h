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

#include "heap/classes.h"
#include "heap/reach.h"
#include "heap/root_name.h"

struct mw_retained_input {
	const struct mw_image *image;
	const struct mw_blocks *blocks;
	struct mw_classes *classes;
	const struct mw_root_names *names;
	const struct mw_reached *reached; /* with dominators, and roots by mw_root_number() */
	size_t width;                     /* of roots this many are kept */
};

/* Fill in the report's holders. Errors: MEMORY. */
struct mw_error *mw_retained(const struct mw_retained_input *input, struct mw_heap_report *report) MW_MUST_CHECK;

#endif
