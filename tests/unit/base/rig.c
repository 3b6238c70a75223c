// SPDX-License-Identifier: MIT
#include "rig.h"

#include <stddef.h>

bool rig_starve;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
	return rig_starve ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
	return rig_starve ? NULL : __real_realloc(block, size);
}

static uint64_t state;

void rig_seed(uint64_t seed)
{
	state = seed;
}

uint64_t rig_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}
