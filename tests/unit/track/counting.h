/* SPDX-License-Identifier: MIT */
/*
 * counting.h: how much memory the code under test holds, and what it does when there is no more.
 *
 * The program is linked with --wrap for malloc, calloc, realloc, free, mmap and munmap.
 */
#ifndef MW_TEST_TRACK_COUNTING_H
#define MW_TEST_TRACK_COUNTING_H

#include <stdint.h>

/* Bytes held now: usable size and header of each block, length of each mapping. */
uint64_t counting_now(void);
/* The most that was held since the last counting_reset_peak(). */
uint64_t counting_peak(void);
void counting_reset_peak(void);
/* Let `successes` more allocations succeed and all later ones fail; UINT64_MAX: none fails. */
void counting_fail_after(uint64_t successes);
/* Has any failed since then? */
int counting_has_failed(void);

#endif
