/* SPDX-License-Identifier: MIT */
/* may.h: what memwatch may do to a process here, and what it may not, in two lists. */
#ifndef MW_DOCTOR_MAY_H
#define MW_DOCTOR_MAY_H

#include "doctor/look.h"

#include <stdio.h>

void mw_doctor_print_may(FILE *out, const struct mw_doctor *doctor);

#endif
