/* SPDX-License-Identifier: MIT */
/* doctor_may.h: what memwatch may do to a process here, and what it may not, in two lists. */
#ifndef MW_CLI_DOCTOR_MAY_H
#define MW_CLI_DOCTOR_MAY_H

#include "cli/doctor_look.h"

#include <stdio.h>

void mw_doctor_print_may(FILE *out, const struct mw_doctor *doctor);

#endif
