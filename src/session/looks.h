/* SPDX-License-Identifier: MIT */
/* looks.h: looks at the address spaces of several processes at their windows' end, while the engine serves them. */
#ifndef MW_SESSION_LOOKS_H
#define MW_SESSION_LOOKS_H

#include "session/recorder.h"

/*
 * Look at those of the processes whose windows have ended and which are still watched. Nobody waits for it: it is done
 * by a thread of its own, and `engine` runs meanwhile. Errors: those of the engine's run().
 */
struct mw_error *mw_looks_take(struct mw_recorder *recorders, size_t count, struct mw_engine *engine) MW_MUST_CHECK;

#endif
