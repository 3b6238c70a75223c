/* SPDX-License-Identifier: MIT */
/*
 * walker.h: one allocator family's way to find all of its blocks in an image. One file each, a row in walkers.c.
 *
 * To add one: it finds the allocator by what its data looks like or by symbols, adds itself as an allocator, its
 * arenas, its spans with what is live in them, and what else it owns. A version that it does not know it adds with
 * walked = false and `why`: then its memory is roots. All that it reads may be anything: bound every length, follow no
 * list for longer than it can be, and add what is invalid as skipped.
 */
#ifndef MW_HEAP_WALKER_H
#define MW_HEAP_WALKER_H

#include "heap/blocks.h"
#include "heap/image.h"
#include "heap/walk.h"
#include "symbol/modules.h"

struct mw_walker {
	const char *name;
	/* One of the two. None of it in the process, or in that file, which has writable data: nothing is added. `modules` may be
	 * NULL (tests, fuzzing). Errors: MEMORY. */
	struct mw_error *(*walk)(const struct mw_image *image, const struct mw_modules *modules,
				 struct mw_blocks *blocks);
	mw_walk_file_function *walk_file;
};

extern const struct mw_walker mw_walker_glibc;
extern const struct mw_walker mw_walker_jemalloc;
extern const struct mw_walker mw_walker_tcmalloc;
extern const struct mw_walker mw_walker_mimalloc;
extern const struct mw_walker mw_walker_musl;

/* One of them. Errors: MEMORY. */
struct mw_error *mw_walker_run(const struct mw_walker *walker, const struct mw_image *image,
			       const struct mw_modules *modules, struct mw_blocks *blocks) MW_MUST_CHECK;
/* All of them, and mw_blocks_finish(). Errors: MEMORY. */
struct mw_error *mw_walkers_run(const struct mw_image *image, const struct mw_modules *modules,
				struct mw_blocks *blocks) MW_MUST_CHECK;

#endif
