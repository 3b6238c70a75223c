/* SPDX-License-Identifier: MIT */
/* frames.h: from captured addresses to the frames of a report, and whom a stack is charged to. */
#ifndef MW_VIEW_FRAMES_H
#define MW_VIEW_FRAMES_H

#include "view/arena.h"
#include "view/summary.h"

struct mw_framer;

/* The module of frames in no file. */
#define MW_VIEW_NO_FILE "[jit]"

/* Strings and arrays of frames are made in `arena`; what `input` points to must outlive the framer. */
struct mw_error *mw_framer_create(const struct mw_summary_input *input, struct mw_arena *arena,
				  struct mw_framer **out) MW_MUST_CHECK;
void mw_framer_destroy(struct mw_framer *framer);
/* Set stack->frames, ->frame_count and ->suspect. Errors: MEMORY. */
struct mw_error *mw_framer_fill(struct mw_framer *framer, const struct mw_raw_frame *raw, size_t count,
				struct mw_report_stack *stack) MW_MUST_CHECK;

#endif
