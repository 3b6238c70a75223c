// SPDX-License-Identifier: MIT
/* walkers.c: the table of walkers (walker.h). */
#include "heap/walker.h"

struct mw_error *mw_walker_run(const struct mw_walker *walker, const struct mw_image *image,
			       const struct mw_modules *modules, struct mw_blocks *blocks)
{
	return walker->walk ? walker->walk(image, modules, blocks) : mw_walk_files(image, blocks, walker->walk_file);
}

struct mw_error *mw_walkers_run(const struct mw_image *image, const struct mw_modules *modules,
				struct mw_blocks *blocks)
{
	/* Where one allocator lies in another's blocks the outer one comes last: what overlaps is not added. */
	static const struct mw_walker *const walkers[] = {
		&mw_walker_jemalloc, &mw_walker_tcmalloc, &mw_walker_mimalloc, &mw_walker_musl, &mw_walker_glibc,
	};

	for (size_t i = 0; i < sizeof(walkers) / sizeof(*walkers); i++)
		MW_TRY(mw_walker_run(walkers[i], image, modules, blocks));
	return mw_blocks_finish(blocks);
}
