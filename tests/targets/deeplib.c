/* SPDX-License-Identifier: MIT */
/* deeplib: the library half of deepstack; see deep.h. */
#include "deep.h"

#include <stdlib.h>
#include <string.h>

static unsigned taken;
static deep_step sort_step;
static unsigned sort_level;

/* Inlined where it is used, so that stacks have inlined frames. */
static inline __attribute__((always_inline)) void *take_inlined(size_t size)
{
	void *block = malloc(size);

	OPAQUE(block);
	return block;
}

KEEP void deep_take(void)
{
	void *block = take_inlined(DEEP_FIRST_SIZE + taken);

	memset(block, 0, 16);
	taken++;
}

unsigned deep_taken(void)
{
	return taken;
}

/* A frame of more than a page, without a frame pointer. */
KEEP void deep_library_step(deep_step step, unsigned level)
{
	volatile char large[5000];

	large[0] = (char)level;
	step(level);
	large[1] = large[0];
}

static int compare(const void *a, const void *b)
{
	if (sort_step) {
		deep_step step = sort_step;
		sort_step = NULL;
		step(sort_level);
	}
	return *(const int *)a - *(const int *)b;
}

KEEP void deep_library_sort(deep_step step, unsigned level)
{
	int numbers[2] = {2, 1};

	sort_step = step;
	sort_level = level;
	qsort(numbers, 2, sizeof(*numbers), compare);
	OPAQUE(numbers[0]);
}
