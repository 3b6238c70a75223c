/* SPDX-License-Identifier: MIT */
/* debug.h: of which modules names, files and lines are known, and what to do for the others. */
#ifndef MW_DOCTOR_DEBUG_H
#define MW_DOCTOR_DEBUG_H

#include "doctor/look.h"

#include <stdio.h>

/* Takes its time where debug information is large, or comes through debuginfod. */
void mw_doctor_print_debug(FILE *out, const struct mw_doctor *doctor);

#endif
