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

/* --- distributions (debug.c) ----------------------------------------------------------------------------------------- */

#define MW_DISTRIBUTION_NAME_MAX 128

struct mw_distribution {
	const char *id;     /* ID of os-release, or a word of ID_LIKE; NULL: none that is known */
	const char *server; /* its debuginfod, or one for all */
	/* The command that installs debug information: `begin`, the arguments, `end`. NULL: there is none. */
	const char *begin, *end;
	enum {
		MW_TAKES_PID,   /* the process; paths where its root directory is not memwatch's */
		MW_TAKES_PATHS, /* of the modules */
		MW_TAKES_IDS,   /* 'debuginfo(build-id)=…' of the modules */
	} takes;
	const char *sudo; /* before `begin`, for those who are not root */
	const char *note; /* what the command needs, or why there is none; or NULL */
};

/*
 * By /etc/os-release or /usr/lib/os-release inside a root (mw_root_directory); the row without an id where neither can
 * be read, or its distribution is not known. `name`: as people write it ("Debian GNU/Linux 12 (bookworm)"), or "";
 * hostile.
 */
const struct mw_distribution *mw_distribution_find(int root, char name[MW_DISTRIBUTION_NAME_MAX]);

/* --- parts of what it prints --------------------------------------------------------------------------------- */

/* What /proc shows of it to anyone, in rows. What can't be read is said to be unknown (facts.c). */
void mw_doctor_facts(FILE *out, const struct mw_doctor *doctor);
/* Of which modules names, files and lines are known, and what to do for the others (debug.c). Takes its time where debug
 * information is large, or comes through debuginfod. */
void mw_doctor_print_debug(FILE *out, const struct mw_doctor *doctor);

#endif
