/* SPDX-License-Identifier: MIT */
/* report.h: memwatch report RECORDING: look at a recording again, over any interval. */
#ifndef MW_CLI_REPORT_H
#define MW_CLI_REPORT_H

#include <memwatch/error.h>

/* argv[0] ("report") is skipped. Errors: as exit statuses of the command line. */
struct mw_error *mw_cli_report(int argc, char **argv) MW_MUST_CHECK;

#endif
