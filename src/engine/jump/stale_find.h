/* SPDX-License-Identifier: MIT */
/* stale_find.h: one stale memwatch, as stale.c finds and stale_remove.c removes it (stale.h). */
#ifndef MW_ENGINE_JUMP_STALE_FIND_H
#define MW_ENGINE_JUMP_STALE_FIND_H

#include "engine/jump/jump.h"

/* Made by one memwatch. `process` is filled in as far as is known, so that what works on a living one works on it. */
struct jump_remains {
	struct mw_ring_control control;
	struct jump_engine engine; /* nobody's */
	struct mw_maps maps;
	struct mw_mapping shared; /* its path is the list's */
	struct jump_process *process;
	uint8_t *image; /* what the process has there; NULL where it was not written yet */
	bool taken;     /* somebody has changed one of the jumps: what it leads to has to stay */
};

/*
 * Find the stale memwatch number `index`; `*found` is false where there are not so many. Whatever comes back, deinit
 * it. Errors as of mw_stale_look.
 */
struct mw_error *jump_remains_find(struct jump_remains *remains, pid_t pid, size_t index, bool *found) MW_MUST_CHECK;
void jump_remains_deinit(struct jump_remains *remains);

#endif
