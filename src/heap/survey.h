/* SPDX-License-Identifier: MIT */
/*
 * survey.h: once through all segments of a heap: what of the process's memory is for what, and which blocks are alike.
 */
#ifndef MW_HEAP_SURVEY_H
#define MW_HEAP_SURVEY_H

#include "heap/blocks.h"
#include "heap/classes.h"
#include "heap/image.h"
#include "heap/reach.h"

#include <memwatch/heap.h>

struct mw_survey_input {
	const struct mw_image *image;
	const struct mw_blocks *blocks;
	const struct mw_modules *modules;
	struct mw_classes *classes;
	const struct mw_reached *reached; /* NULL: not looked for */
	unsigned by;                      /* enum mw_heap_by */
};

/* Fill in the report's account, allocators, groups, gaps and sums. Errors: MEMORY. */
struct mw_error *mw_survey(const struct mw_survey_input *input, struct mw_heap_report *report) MW_MUST_CHECK;

#endif
