/* SPDX-License-Identifier: MIT */
/* plugin_own: a library with a malloc and a free of its own, under their usual names, over a static array. */
#include "plugin.h"
#include "target.h"

#include <stdlib.h>
#include <string.h>

static char region[1 << 20] __attribute__((aligned(16)));
static size_t top;

KEEP void *malloc(size_t size)
{
	void *block = region + top;

	if (size > sizeof(region) - top)
		return NULL;
	top += (size + 15) & ~(size_t)15;
	return block;
}

KEEP void free(void *block)
{
	if (block)
		memset(block, 0, 1);
}

KEEP void plugin_leak(void)
{
	void *block = malloc(58);

	OPAQUE(block);
}

KEEP void plugin_pair(void)
{
	void *block = malloc(59);

	OPAQUE(block);
	free(block);
}
