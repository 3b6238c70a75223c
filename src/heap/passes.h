/* SPDX-License-Identifier: MIT */
/*
 * passes.h: what is lost in a process that runs while it is read.
 *
 * A pointer that moves while memory is read may be missed where it was and where it goes, and a block may be freed after it
 * was found. But nothing finds a lost block again: it stays as it is. So the process is read several times, and a block is
 * lost where each pass has found it, and none a pointer to it.
 */
#ifndef MW_HEAP_PASSES_H
#define MW_HEAP_PASSES_H

#include "heap/blocks.h"
#include "heap/reach.h"

/* Zero-initialise. */
struct mw_passes {
	uint32_t count;  /* passes until now */
	uint32_t stable; /* of them the last ones, after which as many were lost as before */
	/* Where the blocks begin that were lost in all of them, in order; NULL before the first. */
	mw_addr *lost;
	size_t lost_count;
};

/* Add a pass, whose suspects were what was lost in those before. Errors: MEMORY. */
struct mw_error *mw_passes_add(struct mw_passes *passes, const struct mw_blocks *blocks,
			       const struct mw_reached *reached) MW_MUST_CHECK;
/* May the process have to be read again? */
bool mw_passes_need_more(const struct mw_passes *passes);
void mw_passes_deinit(struct mw_passes *passes);

#endif
