/* SPDX-License-Identifier: MIT */
/* look.h: all that doctor finds out about a process before it prints any of it, and the parts that it prints. */
#ifndef MW_DOCTOR_LOOK_H
#define MW_DOCTOR_LOOK_H

#include "engine/jump/jump_engine.h"
#include "engine/survey.h"
#include "proc/status.h"
#include "session/options.h"
#include "symbol/symbolizer.h"

#include <stdio.h>

struct mw_doctor {
	pid_t pid;
	pid_t live; /* a thread that has memory, as the first may have ended */
	const struct mw_session_options *options;
	unsigned width;               /* columns to print in */
	struct mw_status status, own; /* of the process, and of memwatch */
	struct mw_error *refused;     /* before anything was looked at: it can't be watched. Else: */
	struct mw_maps maps;
	struct mw_modules *modules;
	struct mw_symbolizer *symbolizer;
	struct mw_hooks hooks;
	struct mw_jump_examination jump;
	size_t seccomp_filtered;  /* threads under seccomp */
	struct mw_error *no_trap; /* NULL: engine trap can be used, or is by the user's word; else why not */
	struct mw_error *lacking; /* nothing can be hooked, or a look failed; NULL: all is there */
};

/* Was the process's inside looked at? */
static inline bool mw_doctor_has_inside(const struct mw_doctor *doctor)
{
	return !doctor->refused && doctor->symbolizer;
}

/* --- parts of what it prints --------------------------------------------------------------------------------- */

/* What /proc shows of it to anyone, in rows. What can't be read is said to be unknown (facts.c). */
void mw_doctor_facts(FILE *out, const struct mw_doctor *doctor);
/* Of which modules names, files and lines are known, and what to do for the others (debug.c). Takes its time where debug
 * information is large, or comes through debuginfod. */
void mw_doctor_print_debug(FILE *out, const struct mw_doctor *doctor);

#endif
