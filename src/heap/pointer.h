/* SPDX-License-Identifier: MIT */
/* pointer.h: which block a word points to, and whether as a program points to a block that it holds. */
#ifndef MW_HEAP_POINTER_H
#define MW_HEAP_POINTER_H

#include "heap/scan.h"

/*
 * Does a pointer into a block, not to its start, hold it as well as one to its start? These do, as in memcheck's
 * heuristics: where the words around it say so,
 * - to the first element of an array from new[], behind the count of its elements (also: memory behind its length);
 * - to the characters of a std::string of the old ABI, behind length, capacity and reference count;
 * - to a base object that is not the first one: both places begin with the address of a vtable, and that of the base says
 *   how far before it the whole object begins.
 */
bool mw_pointer_holds(struct mw_scan_worker *worker, const struct mw_image *image, const struct mw_block *block,
		      mw_addr pointer);

/* The block that a word points into. `is_start`: to its start, in whose address the three lowest bits are a program's. */
static inline bool mw_pointer_find(const struct mw_blocks *blocks, mw_addr word, struct mw_block *block, bool *is_start)
{
	mw_addr untagged = word & ~UINT64_C(7);

	if (!mw_blocks_find(blocks, untagged, block))
		return false;
	*is_start = block->start == untagged;
	return true;
}

#endif
