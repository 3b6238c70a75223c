/* SPDX-License-Identifier: MIT */
/*
 * serve.h: what others get of a window while it runs: figures and profiles that they fetch (--listen), and profiles that
 * are sent to them (--push). Nothing of that is waited for by the processes: threads of their own talk to the network,
 * and reports are made by a forked copy of memwatch (session/snapshot.h).
 */
#ifndef MW_SERVE_SERVE_H
#define MW_SERVE_SERVE_H

#include "session/session.h"

struct mw_serve;

/* Does a session ask for any of that? */
static inline bool mw_serve_is_wanted(const struct mw_session_options *options)
{
	return options->listen || options->push;
}

/* Listen, and have the session give its breaks to this; after mw_session_init(), before anything is attached. A message
 * on standard error says where it listens. Both are borrowed. Errors: USAGE, SYSTEM, MEMORY. */
struct mw_error *mw_serve_create(struct mw_session *session, struct mw_serve **out) MW_MUST_CHECK;
/* The window is over, and its reports are made: send them. Errors: MEMORY, those of the format. */
struct mw_error *mw_serve_finish(struct mw_serve *serve) MW_MUST_CHECK;
/* Errors: SYSTEM: not all that was to be sent could be, as a message has said. NULL is fine. */
struct mw_error *mw_serve_destroy(struct mw_serve *serve) MW_MUST_CHECK;

#endif
