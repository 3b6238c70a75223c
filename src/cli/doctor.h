/* SPDX-License-Identifier: MIT */
/* doctor.h: whether and how a process can be watched, without touching it. */
#ifndef MW_CLI_DOCTOR_H
#define MW_CLI_DOCTOR_H

#include "cli/options.h"

#include <memwatch/error.h>

/* Print all that can be found out to standard output. NULL if the process can be watched, else the reason. */
struct mw_error *mw_cli_doctor(const struct mw_cli_options *options) MW_MUST_CHECK;

#endif
