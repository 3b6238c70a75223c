/* SPDX-License-Identifier: MIT */
/* deep.h: the two halves of the deepstack target: a program and a library that call each other. */
#ifndef MW_TEST_DEEP_H
#define MW_TEST_DEEP_H

#include "target.h"

#define DEEP_FIRST_SIZE 70000 /* each stack asks for a size of its own from here on */
#define DEEP_LAST_SIZE  70999

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*deep_step)(unsigned level);

/* Allocate a size that nobody else asks for. */
void deep_take(void);
/* Levels below: the library's functions call `step` back. */
void deep_library_step(deep_step step, unsigned level);
void deep_library_sort(deep_step step, unsigned level);
unsigned deep_taken(void);

#ifdef __cplusplus
}
#endif

#endif
