/* SPDX-License-Identifier: MIT */
/* engines.h: what both engines show to others. */
#ifndef MW_ENGINE_ENGINES_H
#define MW_ENGINE_ENGINES_H

#include "engine/stale.h"

#include <memwatch/engine.h>

extern const struct mw_engine_ops mw_engine_jump, mw_engine_trap;

/* Can the jump engine be used on a process? What a look at it tells, without touching it. */
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
