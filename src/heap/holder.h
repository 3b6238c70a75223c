/* SPDX-License-Identifier: MIT */
/* holder.h: the words for how a block is held: from a root, block by block. */
#ifndef MW_HEAP_HOLDER_H
#define MW_HEAP_HOLDER_H

#include "heap/root_name.h"

/* The path to a block by the fewest steps, root first, blocks that are alike in a row as one; none where nothing leads to
 * it. *holder and its texts are malloc'ed, also on failure. Errors: MEMORY. */
struct mw_error *mw_holder_path(const struct mw_findings *found, struct mw_block block, char ***holder,
				size_t *count) MW_MUST_CHECK;

#endif
