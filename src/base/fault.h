/* SPDX-License-Identifier: MIT */
/* fault.h: places where a test can make memwatch fail. */
#ifndef MW_BASE_FAULT_H
#define MW_BASE_FAULT_H

#include <memwatch/error.h>

/*
 * Fail here if the environment says so: MEMWATCH_FAULT=POINT fails at the first pass of the point
 * of that name, POINT:N at the Nth; with a ! behind it, memwatch stops there instead (SIGSTOP), again
 * and again until it is killed; with a ? it stops once, and goes on when it is continued. Not heeded
 * where memwatch runs with raised privileges (secure_getenv). NULL otherwise, at the cost of one
 * comparison.
 */
struct mw_error *mw_fault(const char *point) MW_MUST_CHECK;

#endif
