/* SPDX-License-Identifier: MIT */
/* sigframe_compute.h: work that shows whether a thread has its registers. */
#ifndef MW_TESTS_UNIT_TRACEE_SIGFRAME_COMPUTE_H
#define MW_TESTS_UNIT_TRACEE_SIGFRAME_COMPUTE_H

#include <stdbool.h>

/* Compute for a while. Did general registers, flags and vectors hold what they held all the time? */
bool sigframe_computes(void);

#endif
