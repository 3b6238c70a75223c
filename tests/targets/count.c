/* SPDX-License-Identifier: MIT */
/*
 * libcount: counts by LD_PRELOAD what a target allocates between its first read of standard input and its
 * "done", and says so on standard error in the target's own words. Tests the targets' arithmetic
 * without memwatch.
 */
#include "target.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic bool counting;
static _Atomic int nested; /* single-threaded targets only */
static struct {
	uint64_t size_count, size_bytes;
} total;

static void *next(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);

	if (!function)
		target_fail(name);
	return function;
}

#define NEXT(name) ((__typeof__(&name))next(#name))

static void *count(void *block, size_t size)
{
	nested--;
	if (block && counting && nested == 0) {
		total.size_count++;
		total.size_bytes += size;
	}
	return block;
}

void *malloc(size_t size)
{
	nested++;
	return count(NEXT(malloc)(size), size);
}

void *realloc(void *old, size_t size)
{
	nested++;
	return count(NEXT(realloc)(old, size), size);
}

void *calloc(size_t n, size_t size)
{
	nested++;
	return count(NEXT(calloc)(n, size), n * size);
}

void *reallocarray(void *old, size_t n, size_t size)
{
	nested++;
	return count(NEXT(reallocarray)(old, n, size), n * size);
}

void *aligned_alloc(size_t align, size_t size)
{
	nested++;
	return count(NEXT(aligned_alloc)(align, size), size);
}

extern void *memalign(size_t align, size_t size);
void *memalign(size_t align, size_t size)
{
	nested++;
	return count(NEXT(memalign)(align, size), size);
}

extern void *valloc(size_t size);
void *valloc(size_t size)
{
	nested++;
	return count(NEXT(valloc)(size), size);
}

extern void *pvalloc(size_t size);
void *pvalloc(size_t size)
{
	nested++;
	return count(NEXT(pvalloc)(size), size);
}

int posix_memalign(void **block, size_t align, size_t size)
{
	int result;

	nested++;
	result = NEXT(posix_memalign)(block, align, size);
	count(result == 0 ? *block : NULL, size);
	return result;
}

ssize_t read(int fd, void *buffer, size_t size)
{
	ssize_t result = NEXT(read)(fd, buffer, size);

	if (fd == STDIN_FILENO)
		counting = true;
	return result;
}

ssize_t write(int fd, const void *buffer, size_t size)
{
	if (size >= 5 && memcmp(buffer, "done\n", 5) == 0 && counting) {
		counting = false;
		dprintf(STDERR_FILENO, "heap.size.count=%llu\nheap.size.bytes=%llu\n",
			(unsigned long long)total.size_count, (unsigned long long)total.size_bytes);
	}
	return NEXT(write)(fd, buffer, size);
}
