/* SPDX-License-Identifier: MIT */
/* holder.h: the words for how a block is held: from a root, block by block. */
#ifndef MW_HEAP_HOLDER_H
#define MW_HEAP_HOLDER_H

#include "heap/classes.h"
#include "heap/reach.h"

/* Fill in group->holder: the path to its first sample by the fewest steps, root first, blocks that are alike in a row
 * as one. None where nothing leads to it. Errors: MEMORY. */
struct mw_error *mw_holder_path(const struct mw_image *image, const struct mw_blocks *blocks,
				struct mw_classes *classes, const struct mw_reached *reached,
				struct mw_heap_group *group) MW_MUST_CHECK;

#endif
