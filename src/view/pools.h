/* SPDX-License-Identifier: MIT */
/* pools.h: whose a report's blocks are that were taken by a pool on top of malloc (alloc/pools.h). */
#ifndef MW_VIEW_POOLS_H
#define MW_VIEW_POOLS_H

#include "view/arena.h"
#include "view/summary.h"

/*
 * Fill in `pool` of the report's stacks: by reading the blocks that were not freed (input->pools), or from what a recording
 * has, which is of the whole window, and so not reported of a part. `group_of` as in mw_view_space(). Errors: MEMORY.
 */
struct mw_error *mw_view_pools(const struct mw_summary_input *input, struct mw_arena *arena, struct mw_report *report,
			       const uint32_t *group_of) MW_MUST_CHECK;
/* … of its suspects, from that of their stacks. Errors: MEMORY. */
struct mw_error *mw_view_pools_merge(struct mw_arena *arena, struct mw_report *report) MW_MUST_CHECK;

#endif
