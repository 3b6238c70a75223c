/* SPDX-License-Identifier: MIT */
/*
 * diff.h: two snapshots compared, stack by stack.
 *
 * Where the snapshots have no base in common it is rates that are compared (memwatch/diff.h). Stacks are matched by their ids (frames.c), so the snapshots may be of different runs, processes and machines.
 */
#ifndef MW_VIEW_DIFF_H
#define MW_VIEW_DIFF_H

#include "view/summary.h"

#include <memwatch/diff.h>

/* One side of a comparison. Everything is borrowed and copied. */
struct mw_diff_input {
	struct mw_diff_snapshot snapshot;
	/* Who tells of stacks: its track, modules, symbols and hooks. */
	const struct mw_summary_input *summary;
	/* What is outstanding of each of the tracker's stacks, by number; others hold nothing. */
	const struct mw_amount *held;
	/* Of these, and of that part of them which the other side holds as well, both sides being moments of one reading. */
	const struct mw_spread *spreads, *stays;
	size_t held_count;
};

/* `kinds`: those to compare, where both snapshots recorded them. Errors: MEMORY, those of the symbols. */
struct mw_error *mw_diff_create(const struct mw_diff_input inputs[MW_DIFF_SIDES], const bool kinds[MW_KIND_COUNT],
				struct mw_diff **out) MW_MUST_CHECK;

/* Of programs' paths and build-ids, which may be NULL. */
enum mw_diff_program mw_diff_programs(const char *old_exe, const char *old_build, const char *new_exe,
				      const char *new_build);

#endif
