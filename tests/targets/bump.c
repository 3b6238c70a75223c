/* SPDX-License-Identifier: MIT */
/*
 * libbump: malloc and free that a signal handler may call: an atomic pointer bump, nothing is ever
 * reused. What it was asked for it counts itself.
 */
#include "target.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define REGION (512u << 20)
#define HEADER 16

extern _Atomic uint64_t bump_allocations, bump_frees, bump_entered;
_Atomic uint64_t bump_allocations, bump_frees, bump_entered;

static char region[REGION] __attribute__((aligned(4096)));
static _Atomic size_t top;

static void *take(size_t align, size_t size)
{
	size_t need, start;

	if (size > REGION / 2 || align > REGION / 2) {
		errno = ENOMEM;
		return NULL;
	}
	need = (size + align + HEADER + 15) & ~(size_t)15;
	start = atomic_fetch_add(&top, need);
	if (start > REGION - need) {
		errno = ENOMEM;
		return NULL;
	}
	start = (start + HEADER + align - 1) & ~(align - 1);
	memcpy(region + start - HEADER, &size, sizeof(size));
	return region + start;
}

void *malloc(size_t size)
{
	void *block;

	atomic_fetch_add(&bump_entered, 1);
	block = take(16, size);
	atomic_fetch_add(&bump_allocations, 1);
	return block;
}

void free(void *block)
{
	if (block)
		atomic_fetch_add(&bump_frees, 1);
}

void *calloc(size_t count, size_t size)
{
	size_t bytes;
	void *block = NULL;

	atomic_fetch_add(&bump_entered, 1);
	if (!__builtin_mul_overflow(count, size, &bytes))
		block = take(16, bytes); /* fresh static memory is zero */
	atomic_fetch_add(&bump_allocations, 1);
	return block;
}

void *realloc(void *old, size_t size)
{
	void *block;
	size_t old_size = 0;

	atomic_fetch_add(&bump_entered, 1);
	block = take(16, size);
	if (old && block) {
		memcpy(&old_size, (char *)old - HEADER, sizeof(old_size));
		memcpy(block, old, old_size < size ? old_size : size);
		atomic_fetch_add(&bump_frees, 1);
	}
	atomic_fetch_add(&bump_allocations, 1);
	return block;
}

void *aligned_alloc(size_t align, size_t size)
{
	void *block;

	atomic_fetch_add(&bump_entered, 1);
	block = take(align < 16 ? 16 : align, size);
	atomic_fetch_add(&bump_allocations, 1);
	return block;
}
