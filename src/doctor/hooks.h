/* SPDX-License-Identifier: MIT */
/* hooks.h: which functions would be hooked, and how. */
#ifndef MW_DOCTOR_HOOKS_H
#define MW_DOCTOR_HOOKS_H

#include "doctor/look.h"

#include <stdio.h>

/* By module, in columns; those that would not be, by reason. */
void mw_doctor_print_hooks(FILE *out, const struct mw_doctor *doctor);
/* How many would be. */
size_t mw_doctor_count_hooks(const struct mw_doctor *doctor);
/* What a report would lack: a line with the first few that would not be; nothing where all would. */
void mw_doctor_print_missed(FILE *out, const struct mw_doctor *doctor);

#endif
