/* SPDX-License-Identifier: MIT */
/* vector.h: arrays that grow as items are added. */
#ifndef MW_BASE_VECTOR_H
#define MW_BASE_VECTOR_H

#include <stddef.h>

/*
 * See that an array of `count` items of `size` bytes has room for one more. Returns where it is now: the caller's
 * pointer must follow. `*capacity` doubles where it was full; both start as NULL and 0. NULL without memory: the old
 * array is as it was.
 */
void *mw_vector_room(void *items, size_t count, size_t *capacity, size_t size);

#endif
