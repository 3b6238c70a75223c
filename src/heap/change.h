/* SPDX-License-Identifier: MIT */
/*
 * change.h: by what a process's memory became more or less from one look to another, so that all of it is on one part
 * exactly, given what a window has recorded in between:
 *
 *      mw_change_block     … of each of its blocks that are live
 *      mw_change_mapping   … of each of its mappings
 *      mw_change_rest      all that is neither
 */
#ifndef MW_HEAP_CHANGE_H
#define MW_HEAP_CHANGE_H

#include "heap/survey.h"

struct mw_change;

/* What they point to is borrowed. Errors: MEMORY. */
struct mw_error *mw_change_create(const struct mw_survey_input *before, const struct mw_survey_input *after,
				  struct mw_change **out) MW_MUST_CHECK;
void mw_change_destroy(struct mw_change *change);

/* A block of the window's, by its address: how much of it is resident in the later look. 0 also where it is no block
 * there, and where it was asked about before. */
uint64_t mw_change_block(struct mw_change *change, mw_addr addr);
/* Memory that was mapped in the window, none of it twice: what is resident of that which no allocator owns. */
uint64_t mw_change_mapping(struct mw_change *change, mw_addr start, mw_addr end);
/* Once all of these are there: each other part. With what the two above gave they sum to the change of RSS. `old` and `new` are
 * their reports; texts are good as long as these. Errors: MEMORY, the visitor's. */
struct mw_error *mw_change_rest(const struct mw_change *change, const struct mw_heap_report *old,
				const struct mw_heap_report *new,
				struct mw_error *(*visit)(void *context, const struct mw_heap_change *part),
				void *context) MW_MUST_CHECK;

#endif
