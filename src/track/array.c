// SPDX-License-Identifier: MIT
/* array.c: zeroed arrays; the large ones straight from the kernel (array.h). */
#include "track/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/*
 * From this size on an array is a mapping of its own. Hundreds of shards that outgrow their arrays at about
 * the same time would leave the heap full of holes of the old size, too small for the new one.
 */
#define MAP_FROM ((size_t)64 * 1024)

void *mw_array_alloc(size_t count, size_t size)
{
	void *array;

	if (size != 0 && count > SIZE_MAX / size)
		return NULL;
	if (count * size < MAP_FROM)
		return calloc(count, size);
	array = mmap(NULL, count * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return array == MAP_FAILED ? NULL : array;
}

void mw_array_free(void *array, size_t count, size_t size)
{
	if (!array)
		return;
	if (count * size < MAP_FROM)
		free(array);
	else
		munmap(array, count * size);
}
