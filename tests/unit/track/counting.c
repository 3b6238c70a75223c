// SPDX-License-Identifier: MIT
/* counting.c: wrapped allocation functions (counting.h). */
#include "counting.h"

#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HEADER 8 /* of a malloc chunk, beside its usable bytes */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);
void *__real_mmap(void *addr, size_t length, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *addr, size_t length);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void __wrap_free(void *block);
void *__wrap_mmap(void *addr, size_t length, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *addr, size_t length);

static uint64_t now, peak, left = UINT64_MAX;
static int failed;

uint64_t counting_now(void)
{
	return now;
}

uint64_t counting_peak(void)
{
	return peak;
}

void counting_reset_peak(void)
{
	peak = now;
}

void counting_fail_after(uint64_t successes)
{
	left = successes;
	failed = 0;
}

int counting_has_failed(void)
{
	return failed;
}

static int refuse(void)
{
	if (left == UINT64_MAX)
		return 0;
	if (left == 0) {
		failed = 1;
		return 1;
	}
	left--;
	return 0;
}

static void gained(uint64_t bytes)
{
	now += bytes;
	if (now > peak)
		peak = now;
}

static uint64_t size_of(void *block)
{
	return block ? malloc_usable_size(block) + HEADER : 0;
}

void *__wrap_malloc(size_t size)
{
	void *block = refuse() ? NULL : __real_malloc(size);

	gained(size_of(block));
	return block;
}

void *__wrap_calloc(size_t count, size_t size)
{
	void *block = refuse() ? NULL : __real_calloc(count, size);

	gained(size_of(block));
	return block;
}

/* The old and the new block stand side by side while one is copied. */
void *__wrap_realloc(void *block, size_t size)
{
	uint64_t old = size_of(block);
	void *bigger = refuse() ? NULL : __real_realloc(block, size);

	if (!bigger)
		return NULL;
	gained(size_of(bigger));
	now -= old;
	return bigger;
}

void __wrap_free(void *block)
{
	now -= size_of(block);
	__real_free(block);
}

void *__wrap_mmap(void *addr, size_t length, int protection, int flags, int fd, off_t offset)
{
	void *memory = refuse() ? MAP_FAILED : __real_mmap(addr, length, protection, flags, fd, offset);

	if (memory != MAP_FAILED)
		gained((length + 4095) / 4096 * 4096);
	return memory;
}

int __wrap_munmap(void *addr, size_t length)
{
	now -= (length + 4095) / 4096 * 4096;
	return __real_munmap(addr, length);
}
