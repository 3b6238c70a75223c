/* SPDX-License-Identifier: MIT */
/* jump_engine.h: the jump engine's vtable, for the table of engines. */
#ifndef MW_ENGINE_JUMP_JUMP_ENGINE_H
#define MW_ENGINE_JUMP_JUMP_ENGINE_H

#include "engine/stale.h"

#include <memwatch/engine.h>

extern const struct mw_engine_ops mw_engine_jump;

/* What a look at a process tells, without touching it. */
struct mw_jump_examination {
	struct mw_error *verdict; /* NULL: it can be used; else why not */
	const char *
		*refused; /* by hook number (mw_hooks_find): why that one can't be detoured, or NULL; static texts */
	size_t count;
	struct mw_stale stale; /* it can be used once that is removed, which attaching begins with */
};

/* Errors: as of reading the process. */
struct mw_error *mw_jump_examine(pid_t pid, const struct mw_engine_options *options,
				 struct mw_jump_examination *out) MW_MUST_CHECK;
void mw_jump_examination_deinit(struct mw_jump_examination *examination);

#endif
