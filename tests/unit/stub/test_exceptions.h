/* SPDX-License-Identifier: MIT */
/* test_exceptions.h: the image, for C++ (whose compiler the contracts are not for). */
#ifndef TEST_STUB_EXCEPTIONS_H
#define TEST_STUB_EXCEPTIONS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void *allocate(size_t size);

/* `original`, hooked as a malloc; *find_fde becomes what the unwinder is to ask, which asks `next`. */
allocate *exceptions_begin(void *original, void *next, void **find_fde);
/* Blocks are sampled from now on. */
void exceptions_sample(void);
void exceptions_off(void);
/* All calls are told, and none is left open. */
void exceptions_end(void);

#ifdef __cplusplus
}
#endif

#endif
