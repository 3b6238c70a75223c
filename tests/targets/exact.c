/* SPDX-License-Identifier: MIT */
/* exact: every entry point of the malloc family, single-threaded, with exact sums. */
#include "target.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static void *before[100];

static void *note(const char *api, void *block, size_t size)
{
	OPAQUE(block);
	ledger_alloc(api, block, size);
	return block;
}

static void give_back(void *block)
{
	ledger_free(block);
	free(block);
}

static KEEP void *resize(void *old, size_t size)
{
	uintptr_t was = (uintptr_t)old;
	void *block = realloc(old, size);

	OPAQUE(block);
	ledger_realloc("realloc", was, block, size);
	return block;
}

static KEEP void *resize_array(void *old, size_t count, size_t size)
{
	uintptr_t was = (uintptr_t)old;
	size_t bytes;
	void *block = reallocarray(old, count, size);

	if (__builtin_mul_overflow(count, size, &bytes))
		bytes = SIZE_MAX;
	OPAQUE(block);
	ledger_realloc("reallocarray", was, block, bytes);
	return block;
}

static KEEP void exact_malloc(void)
{
	void *blocks[64];

	for (size_t i = 0; i < 64; i++)
		blocks[i] = note("malloc", malloc(i * 37), i * 37);
	for (size_t i = 0; i < 64; i += 2)
		give_back(blocks[i]);
	give_back(note("malloc", malloc(3000000), 3000000)); /* mapped on its own */
	note("malloc", malloc(5000000), 5000000);
	note("malloc", malloc(0), 0);
	free(NULL);
}

static KEEP void exact_calloc(void)
{
	give_back(note("calloc", calloc(7, 11), 77));
	note("calloc", calloc(10, 100), 1000);
	note("calloc", calloc(0, 100), 0);
}

static KEEP void exact_realloc(void)
{
	char *block = resize(NULL, 10);

	block = resize(block, 20);     /* in place */
	block = resize(block, 3000);   /* grows */
	block = resize(block, 400000); /* to a mapping of its own */
	block = resize(block, 900000); /* moved by mremap */
	block = resize(block, 64);     /* and back */
	block = resize(block, 24);     /* shrinks */
	if (resize(block, (size_t)PTRDIFF_MAX - 64))
		target_fail("realloc gave the impossible");
	block = resize(block, 32);
	/* What glibc makes of size 0 is a free. */
	if (resize(resize(NULL, 100), 0))
		target_fail("realloc to nothing gave a block");
	before[0] = resize(before[0], 555); /* from before the window */
}

static KEEP void exact_reallocarray(void)
{
	void *block = resize_array(NULL, 3, 50);

	block = resize_array(block, 30, 50);
	if (resize_array(block, SIZE_MAX / 2, 3))
		target_fail("reallocarray overflowed");
	block = resize_array(block, 31, 50);
}

static KEEP void exact_aligned(void)
{
	void *block = NULL;

	give_back(note("memalign", memalign(64, 100), 100));
	note("memalign", memalign(4096, 101), 101);
	give_back(note("aligned_alloc", aligned_alloc(256, 512), 512));
	note("aligned_alloc", aligned_alloc(32, 96), 96);
	if (posix_memalign(&block, 128, 777) != 0)
		target_fail("posix_memalign");
	give_back(note("posix_memalign", block, 777));
	if (posix_memalign(&block, 1024, 778) != 0)
		target_fail("posix_memalign");
	note("posix_memalign", block, 778);
	if (posix_memalign(&block, 3, 10) != EINVAL)
		target_fail("posix_memalign took a bad alignment");
	if (posix_memalign(&block, 64, (size_t)PTRDIFF_MAX - 4096) != ENOMEM)
		target_fail("posix_memalign gave the impossible");
	give_back(note("valloc", valloc(201), 201));
	note("valloc", valloc(202), 202);
	give_back(note("pvalloc", pvalloc(301), 301));
	note("pvalloc", pvalloc(302), 302);
}

static KEEP void exact_failures(void)
{
	size_t huge = (size_t)PTRDIFF_MAX - 4096;
	size_t many = SIZE_MAX / 4;

	OPAQUE(huge);
	OPAQUE(many);
	if (malloc(huge) || calloc(many, 8) || memalign(64, huge))
		target_fail("the impossible was given");
}

static KEEP void exact_before(void)
{
	for (size_t i = 1; i < 50; i++)
		give_back(before[i]);
}

static KEEP void exact_indirect(void)
{
	char *text = strdup("seventeen letters");

	OPAQUE(text);
	ledger_alloc("malloc", text, 18);
	give_back(note("malloc", strndup("abcdefgh", 4), 5));
}

static KEEP void exact_churn(void)
{
	for (size_t i = 0; i < 3000; i++)
		give_back(note("malloc", malloc(1 + i % 600), 1 + i % 600));
}

int main(void)
{
	for (size_t i = 0; i < 100; i++)
		before[i] = note("malloc", malloc(100 + i * 50), 100 + i * 50);
	target_ready();
	ledger_open();
	exact_malloc();
	exact_calloc();
	exact_realloc();
	exact_reallocarray();
	exact_aligned();
	exact_failures();
	exact_before();
	exact_indirect();
	exact_churn();
	ledger_say();
	target_done();
	return 0;
}
