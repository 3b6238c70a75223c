/* SPDX-License-Identifier: MIT */
/* doctor_facts.h: doctor's first half: what /proc tells of a process to anyone who asks. */
#ifndef MW_CLI_DOCTOR_FACTS_H
#define MW_CLI_DOCTOR_FACTS_H

#include "proc/status.h"

#include <stdio.h>

/* Print the facts. `permission`: whether memwatch may attach. What can't be read is said to be unknown. */
void mw_doctor_facts(FILE *out, pid_t pid, const struct mw_status *status, const char *permission);

/* Print "NAME   TEXT" as one row; control characters of a target's names are shown as '?'. */
void mw_doctor_row(FILE *out, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
