/* SPDX-License-Identifier: MIT */
/*
 * radix.h: trees in which an allocator looks up what a page belongs to, as jemalloc and tcmalloc have them.
 *
 *      root, in a file's data ──► node ──► … ──► leaf: a word or two for each page, 0 where nothing is there
 *
 * A tree is found by what it looks like: a word that leads to a leaf whose first element leads to something that says of
 * itself that it is where the element stands.
 */
#ifndef MW_HEAP_RADIX_H
#define MW_HEAP_RADIX_H

#include "heap/walk.h"

#define MW_RADIX_LEVELS 3u /* at most */

struct mw_radix_shape {
	unsigned levels;
	unsigned bits[MW_RADIX_LEVELS]; /* of a page's number, by level */
	unsigned element_words;         /* of a leaf */
	unsigned page_shift;
};

struct mw_radix {
	const struct mw_image *image;
	const struct mw_walk_file *file;
	/* The memory that an element leads to is for; false: it leads to nothing that makes sense. */
	bool (*range)(void *context, uint64_t element, mw_addr *start, mw_addr *end);
	/* An element that is not 0, which is for the page at `page`; by address. Errors are handed on. */
	struct mw_error *(*take)(void *context, uint64_t element, mw_addr page);
	void *context;
};

/* Find the tree, of the first of the shapes that suits, and go through it; *found is that shape, NULL: there is none; *bad
 * counts nodes that are none. Errors: MEMORY, take()'s. */
struct mw_error *mw_radix_walk(const struct mw_radix *radix, const struct mw_radix_shape *shapes, size_t count,
			       const struct mw_radix_shape **found, uint64_t *bad) MW_MUST_CHECK;

#endif
