/* SPDX-License-Identifier: MIT */
/* moments.h: what stacks held at one or two moments of a recording, in one reading of it. */
#ifndef MW_VIEW_MOMENTS_H
#define MW_VIEW_MOMENTS_H

#include "view/replay.h"

/* Of one process, by the tracker's numbers of stacks. */
struct mw_moments_held {
	struct mw_amount *amounts;
	size_t count;
};

struct mw_moments {
	struct mw_moments_held *then; /* of each process: at the first moment … */
	struct mw_moments_held *now;  /* … and at the second one */
	size_t count;                 /* processes */
};

/*
 * Read the recording up to `now_ns`, which is not before `then_ns`; MW_REPLAY_END: all of it. Events before a moment
 * count, those of its very nanosecond don't. The replay's trackers are then those of the second moment; all that is
 * outstanding there and came before the first is AOFO to them. `out` is zeroed; mw_moments_deinit() frees what it
 * holds, also after an error. Errors: those of mw_replay_run().
 */
struct mw_error *mw_moments_read(struct mw_replay *replay, uint64_t then_ns, uint64_t now_ns,
				 struct mw_moments *out) MW_MUST_CHECK;
void mw_moments_deinit(struct mw_moments *moments);

#endif
