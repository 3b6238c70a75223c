/* SPDX-License-Identifier: MIT */
/* way_back_compute.h: work that shows whether a thread has its registers. */
#ifndef MW_TESTS_UNIT_TARGET_WAY_BACK_COMPUTE_H
#define MW_TESTS_UNIT_TARGET_WAY_BACK_COMPUTE_H

#include <stdbool.h>

/* Compute for a while. Did general registers, flags and vectors hold what they held all the time? */
bool way_back_computes(void);

#endif
