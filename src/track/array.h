/* SPDX-License-Identifier: MIT */
/* array.h: zeroed arrays for tables that are replaced as they grow. */
#ifndef MW_TRACK_ARRAY_H
#define MW_TRACK_ARRAY_H

#include <stddef.h>

/* `count` zeroed elements of `size` bytes; NULL without memory. Free it with the same count and size. */
void *mw_array_alloc(size_t count, size_t size);
/* Free an array of mw_array_alloc(); NULL is fine. */
void mw_array_free(void *array, size_t count, size_t size);

#endif
