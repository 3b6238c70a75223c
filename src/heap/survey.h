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
#include "script/spaces.h"

#include <memwatch/heap.h>

struct mw_survey_input {
	const struct mw_image *image;
	const struct mw_blocks *blocks;
	const struct mw_modules *modules;
	struct mw_classes *classes;
	const struct mw_reached *reached;  /* NULL: not looked for */
	unsigned by;                       /* enum mw_heap_by */
	const struct mw_reach_hole *holes; /* memory of memwatch's own in the process, by address */
	size_t hole_count;
	const struct mw_script_space *spaces; /* of runtimes, by address */
	size_t space_count;
};

/* Fill in the report's account, allocators, groups, gaps and sums. Errors: MEMORY. */
struct mw_error *mw_survey(const struct mw_survey_input *input, struct mw_heap_report *report) MW_MUST_CHECK;

/* Names of the account's lines that others know. */
extern const char mw_survey_live[], mw_survey_free[], mw_survey_bookkeeping[], mw_survey_anonymous[], mw_survey_own[];

/* Of [start, end), the resident bytes that are on the line mw_survey_anonymous. */
uint64_t mw_survey_mapped(const struct mw_survey_input *input, mw_addr start, mw_addr end);

#endif
