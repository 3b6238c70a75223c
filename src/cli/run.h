/* SPDX-License-Identifier: MIT */
/* run.h: what the commands do, once their options are parsed. */
#ifndef MW_CLI_RUN_H
#define MW_CLI_RUN_H

#include "cli/options.h"

/*
 * Attach or launch, record the window, detach, report. NULL only if the window was recorded and
 * every output written. On failure every process runs on as before, and no output is there.
 */
struct mw_error *mw_cli_record(const struct mw_cli_options *options) MW_MUST_CHECK;
/* memwatch report. Errors: as exit statuses of the command line. */
struct mw_error *mw_cli_report(const struct mw_cli_options *options) MW_MUST_CHECK;
/* memwatch diff: what grew between two recordings, or between two moments of one. Errors: USAGE, SYSTEM, DATA, MEMORY;
 * nothing was written then. */
struct mw_error *mw_cli_diff(const struct mw_cli_options *options) MW_MUST_CHECK;

#endif
