/* SPDX-License-Identifier: MIT */
/* facts.h: doctor's facts: what /proc tells of a process to anyone who asks. */
#ifndef MW_DOCTOR_FACTS_H
#define MW_DOCTOR_FACTS_H

#include "doctor/look.h"

#include <stdio.h>

/* Print them in rows. What can't be read is said to be unknown. */
void mw_doctor_facts(FILE *out, const struct mw_doctor *doctor);

#endif
