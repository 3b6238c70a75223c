/* SPDX-License-Identifier: MIT */
/*
 * space.h: looks at a process's address space: its regions, what of them is resident, and glibc's arenas.
 *
 * The process runs meanwhile, and is not stopped for it.
 */
#ifndef MW_SESSION_SPACE_H
#define MW_SESSION_SPACE_H

#include "proc/regions.h"
#include "track/track.h"
#include "view/space.h"

#include <memwatch/engine.h>

#define MW_SPACE_SAMPLE_NS UINT64_C(2000000) /* how long arenas may be walked with a sample */

/* An address space at a moment. Zero-initialise; mw_space_deinit frees. */
struct mw_space_snapshot {
	struct mw_space_moment moment; /* what views take; paths of arenas: mw_heaps_arena_path() */
	bool taken;
	struct mw_regions regions; /* what the mappings are made of, and whose their paths are */
};

/* What is known beside. Zeroed: nothing. */
struct mw_space_known {
	const struct mw_space_ranges *blocks;    /* vm blocks: what is resident of each will be asked */
	const struct mw_space_snapshot *earlier; /* what came since then will be asked */
	const struct mw_engine_range *own;       /* memwatch's own, which is left out */
	size_t own_count;
	uint64_t walk_ns; /* how long arenas may be walked; then their figures are unknown */
};

/* Look at a process by way of a thread that lives. Errors: GONE, DENIED, DATA, MEMORY; then *out is as it was. */
struct mw_error *mw_space_take(pid_t tid, const struct mw_space_known *known,
			       struct mw_space_snapshot *out) MW_MUST_CHECK;
void mw_space_deinit(struct mw_space_snapshot *snapshot);

/*
 * Take out of a snapshot what is not mapped any more, and what is in the ranges `gone` (NULL: none; in order). For the
 * window's end: a look while the hooks still stand has nothing in it that came unseen after them, and what was given
 * back since is not to be taken for unattributed. memwatch's own goes as well. Errors: as mw_space_take(); then the
 * snapshot is as it was.
 */
struct mw_error *mw_space_confirm(struct mw_space_snapshot *snapshot, pid_t tid,
				  const struct mw_space_ranges *gone) MW_MUST_CHECK;

/* Fills in the sample's arena figures: unknown where they are not had within MW_SPACE_SAMPLE_NS. Then it was `dear`,
 * and is not done again. */
void mw_space_sample(bool *dear, pid_t tid, struct mw_stored_sample *sample);

#endif
