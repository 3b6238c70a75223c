// SPDX-License-Identifier: MIT
/* rig.h: what the tests of tables and errors have in common: numbers at random, and memory that runs out. */
#ifndef TESTS_UNIT_BASE_RIG_H
#define TESTS_UNIT_BASE_RIG_H

#include <stdbool.h>
#include <stdint.h>

/* While set, calloc and realloc fail. */
extern bool rig_starve;

/* The same numbers from the same seed, which is not 0. */
void rig_seed(uint64_t seed);
uint64_t rig_random(void);

#endif
