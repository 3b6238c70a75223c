/* SPDX-License-Identifier: MIT */
/* doctor.h: whether and how a process can be watched, without touching it. */
#ifndef MW_DOCTOR_DOCTOR_H
#define MW_DOCTOR_DOCTOR_H

#include "session/options.h"

#include <memwatch/error.h>

/* Print all that can be found out about the one process to standard output; `clean`: only remove what a killed memwatch
 * has left in it. NULL if the process can be watched, else the reason. */
struct mw_error *mw_doctor_run(const struct mw_session_options *options, bool clean) MW_MUST_CHECK;

#endif
