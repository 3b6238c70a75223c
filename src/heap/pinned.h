/* SPDX-License-Identifier: MIT */
/*
 * pinned.h: pages that hold little that is live, and so can't be given back: one small block pins each.
 */
#ifndef MW_HEAP_PINNED_H
#define MW_HEAP_PINNED_H

#include "heap/blocks.h"
#include "heap/image.h"

struct mw_pinned {
	uint64_t pages; /* resident ones of which more than half is free, and not all */
	uint64_t free;  /* bytes on them that are free */
};

/* Of each arena, by its number: `out` has as many as there are arenas. Blocks must be finished. */
void mw_pinned(const struct mw_image *image, const struct mw_blocks *blocks, struct mw_pinned *out);

#endif
