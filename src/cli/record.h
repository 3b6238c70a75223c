/* SPDX-License-Identifier: MIT */
/* record.h: a whole recording: from the command line's wishes to the reports. */
#ifndef MW_CLI_RECORD_H
#define MW_CLI_RECORD_H

#include "cli/options.h"

#include <memwatch/error.h>

/*
 * Attach or launch, record the window, detach, report. NULL only if the window was recorded and
 * every output written. On failure every process runs on as before, and no output is there.
 */
struct mw_error *mw_cli_record(const struct mw_cli_options *options) MW_MUST_CHECK;

#endif
