/* SPDX-License-Identifier: MIT */
/* pointer.h: whether a word points to a block as a program does that holds it. */
#ifndef MW_HEAP_POINTER_H
#define MW_HEAP_POINTER_H

#include "heap/scan.h"

/*
 * Does a pointer hold its block? One to its start does, unless it is altered. Of others these do, as by memcheck's heuristics: where the words
 * around it say so,
 * - to the first element of an array from new[], behind the count of its elements (also: memory behind its length);
 * - to the characters of a std::string of the old ABI, behind length, capacity and reference count;
 * - to a base object that is not the first one: both places begin with the address of a vtable, and that of the base says
 *   how far before it the whole object begins.
 */
bool mw_pointer_holds(struct mw_scan_worker *worker, const struct mw_image *image, const struct mw_pointer *pointer);

/* The live block that a word, less its tag bits, points into, or to the start of which it would point without the bits above
 * MW_POINTER_BITS. Fills in pointer->word, without these, is_start, altered, and of the block all, or where it points to its
 * start its number alone. */
static inline bool mw_pointer_find(const struct mw_blocks *blocks, mw_addr word, struct mw_pointer *pointer)
{
	mw_addr untagged = word & ~UINT64_C(7);

	pointer->word = word;
	pointer->altered = false;
	pointer->is_start = mw_blocks_find_start(blocks, untagged, &pointer->block.number);
	if (pointer->is_start || mw_blocks_find(blocks, untagged, &pointer->block))
		return true;
	if (word <= MW_POINTER_MASK)
		return false;
	pointer->word = word & MW_POINTER_MASK;
	pointer->altered = pointer->is_start =
		mw_blocks_find_start(blocks, untagged & MW_POINTER_MASK, &pointer->block.number);
	return pointer->is_start;
}

#endif
