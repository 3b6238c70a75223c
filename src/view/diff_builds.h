/* SPDX-License-Identifier: MIT */
/* diff_builds.h: which modules were built anew between two snapshots, so that stacks through them don't match. */
#ifndef MW_VIEW_DIFF_BUILDS_H
#define MW_VIEW_DIFF_BUILDS_H

#include "view/arena.h"
#include "view/diff.h"

/* Fill diff->rebuilt: paths under which each side knows builds, and none of them on both sides. Errors: MEMORY. */
struct mw_error *mw_diff_builds(const struct mw_diff_input inputs[MW_DIFF_SIDES], struct mw_arena *arena,
				struct mw_diff *diff) MW_MUST_CHECK;

#endif
