/* SPDX-License-Identifier: MIT */
/* rows_oracle.h: what rows say of a file held against what libdw says. */
#ifndef TEST_ROWS_ORACLE_H
#define TEST_ROWS_ORACLE_H

#include <stddef.h>

/* Counts are of steps: code for which libdw says one thing, or says nothing. */
struct rows_verdict {
	size_t functions, rows;
	size_t steps;     /* that libdw describes */
	size_t slow;      /* … that rows leave to the slow road */
	size_t lost;      /* … whose frame pointer rows don't follow */
	size_t deref;     /* … with rows MW_ROW_FP_DEREF */
	size_t missing;   /* … that have no row */
	size_t different; /* rows say something else: each (of the first few) is printed */
	double seconds;   /* to compile */
};

/* Fails the test where the file can't be read. */
struct rows_verdict rows_judge(const char *path);

#endif
