/* SPDX-License-Identifier: MIT */
/* top.h: memwatch top: a process watched, and a live table of what it does not free. */
#ifndef MW_CLI_TOP_H
#define MW_CLI_TOP_H

#include "cli/options.h"

/* Errors: all; nothing is left in the process. */
struct mw_error *mw_cli_top(const struct mw_cli_options *options) MW_MUST_CHECK;

#endif
