/* SPDX-License-Identifier: MIT */
/* plugin_mi: a library that brings an allocator by mimalloc's names, over a static array. */
#include "plugin.h"
#include "target.h"

#include <stdlib.h>

KEEP void *mi_malloc(size_t size);
KEEP void mi_free(void *block);

static char region[1 << 20] __attribute__((aligned(16)));
static size_t top;
static uint64_t freed;

KEEP void *mi_malloc(size_t size)
{
	size_t at = __atomic_fetch_add(&top, (size + 15) & ~(size_t)15, __ATOMIC_RELAXED);

	return at > sizeof(region) - size ? NULL : region + at;
}

KEEP void mi_free(void *block)
{
	if (block)
		__atomic_fetch_add(&freed, 1, __ATOMIC_RELAXED);
}

KEEP void plugin_leak(void)
{
	void *block = mi_malloc(58);

	OPAQUE(block);
}

KEEP void plugin_pair(void)
{
	void *block = mi_malloc(59);

	OPAQUE(block);
	mi_free(block);
}
