// SPDX-License-Identifier: MIT
/* vector.c: arrays that grow as items are added (vector.h). */
#include "base/vector.h"

#include <stdlib.h>

#define FIRST_CAPACITY 2

void *mw_vector_room(void *items, size_t count, size_t *capacity, size_t size)
{
	size_t larger = *capacity ? *capacity : FIRST_CAPACITY / 2;
	void *moved;

	if (count < *capacity)
		return items;
	do {
		if (larger > SIZE_MAX / 2 / size)
			return NULL;
		larger *= 2;
	} while (larger <= count);
	moved = realloc(items, larger * size);
	if (moved)
		*capacity = larger;
	return moved;
}
