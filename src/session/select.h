/* SPDX-License-Identifier: MIT */
/* select.h: the processes of a session, and how those are found that are named by anything but their ids. */
#ifndef MW_SESSION_SELECT_H
#define MW_SESSION_SELECT_H

#include "session/follow.h"
#include "session/options.h"

#include <memwatch/error.h>

/* Append an id that is not there yet. Errors: MEMORY. */
struct mw_error *mw_pids_add(struct mw_pids *pids, pid_t pid) MW_MUST_CHECK;
/* Empty then. */
void mw_pids_deinit(struct mw_pids *pids);

/*
 * Find what is named by anything but ids, and append it to the options' ids. `takes_one`: the command, where it takes one
 * process; NULL: several. Errors: USAGE: there is none, or there are several where one is taken; MEMORY, SYSTEM.
 */
struct mw_error *mw_select(struct mw_session_options *options, const char *takes_one) MW_MUST_CHECK;

/* Those that have the names, or are in the groups, by now: `*pids` is malloc'ed; none where only ids are given. Errors:
 * MEMORY, SYSTEM. */
struct mw_error *mw_select_again(const struct mw_session_options *options, pid_t **pids, size_t *count) MW_MUST_CHECK;

/* Into `out`, which has room for all: those that can be watched, as far as can be seen. The others are left out. Errors:
 * those of mw_preflight() for what was named by its id; UNSUPPORTED: there is none. */
struct mw_error *mw_select_watchable(const struct mw_session_options *options, pid_t *out, size_t *count,
				     struct mw_follow *follow) MW_MUST_CHECK;
/*
 * What was found by its name or group, but can't be watched (`err`), is left out, and not in silence; NULL then. Children
 * that have ended are only counted, as missed. What was named by its id is to be watched, or nothing is: gives `err`.
 */
struct mw_error *mw_select_leave_out(const struct mw_session_options *options, struct mw_follow *follow, pid_t pid,
				     const char *name, struct mw_error *err) MW_MUST_CHECK;

#endif
