/* SPDX-License-Identifier: MIT */
/* space_arenas.h: glibc's arenas in a process whose regions are known. */
#ifndef MW_SESSION_SPACE_ARENAS_H
#define MW_SESSION_SPACE_ARENAS_H

#include "alloc/glibc_arenas.h"
#include "proc/regions.h"

/* Find and walk them, by way of a thread that lives. Errors: MEMORY. */
struct mw_error *mw_space_find_arenas(pid_t tid, const struct mw_regions *regions, uint64_t deadline_ns,
				      struct mw_glibc_arenas *out) MW_MUST_CHECK;

#endif
