/* SPDX-License-Identifier: MIT */
/* json_frames.h: each frame of a report once, by number. */
#ifndef MW_OUTPUT_JSON_FRAMES_H
#define MW_OUTPUT_JSON_FRAMES_H

#include "base/index.h"

#include <memwatch/error.h>
#include <memwatch/view.h>

/* Numbers from 0, in the order of the stacks. */
struct mw_json_frames {
	const struct mw_report_frame **frames; /* by number; borrowed */
	size_t capacity;
	struct mw_index index;
};

/* Number all frames of a report, which must outlive this. Errors: MEMORY, then there is nothing to deinit. */
struct mw_error *mw_json_frames_init(struct mw_json_frames *frames, const struct mw_report *report) MW_MUST_CHECK;
void mw_json_frames_deinit(struct mw_json_frames *frames);
/* Of a frame of that report. */
uint32_t mw_json_frames_number(const struct mw_json_frames *frames, const struct mw_report_frame *frame);

#endif
