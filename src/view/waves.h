/* SPDX-License-Identifier: MIT */
/* waves.h: blocks that go together, for the rules of verdict.h: a collector's, a batch's, or where a cache makes room. */
#ifndef MW_VIEW_WAVES_H
#define MW_VIEW_WAVES_H

#include "view/course.h"

/*
 * Blocks of these sizes, nearly all of which are the stack's, go in waves, older ones first: a collector's, or where a cache
 * makes room now and then. What there is right after a wave tells whether there is ever more, but for what came within a step.
 */
enum mw_waves {
	MW_WAVES_NONE,
	MW_WAVES_LEVEL, /* no more after the last than after the first, most of the window before */
	MW_WAVES_UNCLEAR,
	MW_WAVES_HIGHER,
	MW_WAVES_RISING, /* with each */
};

enum mw_waves mw_waves_judge(const struct mw_course *course);
/* Nothing has got older than what was freed, and what there was went at once, not long ago or again and again. */
bool mw_waves_have_let_go(const struct mw_course *course);
/* One wave took away older blocks, of these sizes and half as many as came or more: what the next will do is not known. */
bool mw_waves_are_one(const struct mw_course *course);

#endif
