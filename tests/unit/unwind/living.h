/* SPDX-License-Identifier: MIT */
/* living.h: a process that lives, as unwinders see it. */
#ifndef MW_TESTS_UNIT_UNWIND_LIVING_H
#define MW_TESTS_UNIT_UNWIND_LIVING_H

#include "symbol/modules.h"

#include <memwatch/unwind.h>

#include <sys/types.h>

/* Its modules as they are now. */
struct mw_modules *living_modules(pid_t pid);
/* Its memory; what is not there is not read. `*pid` must outlive the view. */
struct mw_memory_view living_memory(pid_t *pid);
const struct mw_arch *living_arch(void);

#endif
