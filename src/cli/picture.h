/* SPDX-License-Identifier: MIT */
/* picture.h: what becomes of a process's blocks while it is watched, for an HTML report. */
#ifndef MW_CLI_PICTURE_H
#define MW_CLI_PICTURE_H

#include "cli/space.h"
#include "view/cube.h"

#include <memwatch/engine.h>

struct mw_picture;

/* From now on all that happens to the tracker's blocks is taken note of; before the first event. The tracker must
 * outlive the picture. Errors: MEMORY. */
struct mw_error *mw_picture_create(struct mw_track *track, struct mw_picture **out) MW_MUST_CHECK;
/* NULL is fine. */
void mw_picture_destroy(struct mw_picture *picture);

/* For mw_summary_input. */
uint32_t **mw_picture_stack_of(struct mw_picture *picture);
uint32_t **mw_picture_thread_of(struct mw_picture *picture);

/* What is known only at the end. All is borrowed. */
struct mw_picture_end {
	uint64_t length_ns;                       /* of the window */
	const struct mw_space_snapshot *looks[2]; /* at the address space: where heaps are */
	const struct mw_hook_info *hooks;
	size_t hook_count;
};

/* The window is over and the report is made: the timeline, the picture's. Errors: MEMORY. */
struct mw_error *mw_picture_finish(struct mw_picture *picture, const struct mw_picture_end *end) MW_MUST_CHECK;
const struct mw_timeline *mw_picture_timeline(const struct mw_picture *picture);

#endif
