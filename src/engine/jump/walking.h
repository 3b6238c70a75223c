/* SPDX-License-Identifier: MIT */
/* walking.h: how the recorder is to walk stacks (jump.h). */
#ifndef MW_ENGINE_JUMP_WALKING_H
#define MW_ENGINE_JUMP_WALKING_H

#include "engine/jump/jump.h"

/* rows.c */
struct jump_module_rows {
	bool tried, published;
	struct mw_rows compiled; /* until it is published */
	uint64_t offset, count;  /* in the shared memory; count 0: none */
	uint64_t base;           /* vaddr */
	struct mw_generated_code generated;
};
/* Compile the rows of modules that are new: takes its time. `*bytes` is what all that is not published yet will take.
 */
struct mw_error *jump_rows_compile(struct jump_process *process, uint64_t *bytes) MW_MUST_CHECK;
/* Publish what is new, and which code is where. A new generation makes the recorder forget what it has looked up. */
struct mw_error *jump_rows_publish(struct jump_process *process, const struct mw_maps *maps,
				   bool new_generation) MW_MUST_CHECK;

/* The row of the return address `pc` by what was compiled of its module, or that of MW_ROW_NONE. */
uint64_t jump_rows_find(const struct jump_process *process, mw_addr pc);

/* learned.c: code that nothing describes. */
/* A walk of memwatch's came through there: read off the code how the recorder's is to go on. The row; of kind FOREIGN
 * where that is not certain, NONE where the code is described. */
uint64_t jump_learn(struct jump_process *process, mw_addr pc);
/* Every stack that comes to `pc` ends there: nothing has called it, whatever describes the code before it. */
void jump_learn_end(struct jump_process *process, mw_addr pc);
/* … later: a walk of the recorder's ended there. */
void jump_learn_later(struct jump_process *process, mw_addr pc);
/* Do what is to be done of that, for a few milliseconds. */
void jump_learn_some(struct jump_process *process);
/* Note where the stacks of the threads are, which are stopped; jump_learn_from_stacks() is for when they run again. */
void jump_learn_note_stacks(struct jump_process *process);
/* Learn what the callers of these threads do before the recorder meets them: for a few milliseconds. */
void jump_learn_from_stacks(struct jump_process *process);
/*
 * Look at the frames of a stack that the recorder has walked: one that a row of code has led to must have been called.
 * Returns how many are good; the last of them is where the stack is broken.
 */
uint32_t jump_learned_check(struct jump_process *process, const struct mw_raw_frame *frames, uint32_t count);
/* Forget what was in modules that are gone, before there is a new generation. */
void jump_learned_tidy(struct jump_process *process);

#endif
