/* SPDX-License-Identifier: MIT */
/* diff.h: memwatch diff: what grew between two recordings, or between two moments of one. */
#ifndef MW_CLI_DIFF_H
#define MW_CLI_DIFF_H

#include <memwatch/error.h>

/* argv[0] ("diff") is skipped. Errors: USAGE, SYSTEM, DATA, MEMORY; nothing was written then. */
struct mw_error *mw_cli_diff(int argc, char **argv) MW_MUST_CHECK;

#endif
