/* SPDX-License-Identifier: MIT */
/* top.h: memwatch top: a process watched, and a live table of what it does not free. */
#ifndef MW_TOP_TOP_H
#define MW_TOP_TOP_H

#include "session/options.h"

#include <memwatch/error.h>

/* Errors: all; nothing is left in the process. */
struct mw_error *mw_top_run(const struct mw_session_options *options) MW_MUST_CHECK;

#endif
