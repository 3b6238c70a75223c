// SPDX-License-Identifier: MIT
/* glibc_chunk_test.c: chunk headers, made up and real. */
#include "alloc/families.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Words of memory, the first at `base`. */
struct memory {
	mw_addr base;
	uint64_t words[64];
};

static bool read_words(void *context, mw_addr addr, void *out, size_t size)
{
	const struct memory *memory = context;

	if (addr < memory->base || addr - memory->base > sizeof(memory->words) ||
	    size > sizeof(memory->words) - (addr - memory->base))
		return false;
	memcpy(out, (const char *)memory->words + (addr - memory->base), size);
	return true;
}

static bool read_own(void *context, mw_addr addr, void *out, size_t size)
{
	(void)context;
	memcpy(out, (const void *)(uintptr_t)addr, size);
	return true;
}

#define BASE 0x7f0000001000

/* Block at BASE + 0x10: prev_size, size, and the word where the next chunk's size stands if `size` is right. */
static uint64_t usable(uint64_t prev_size, uint64_t size, uint64_t next)
{
	struct memory memory = {.base = BASE};
	uint64_t at = ((size & ~UINT64_C(7)) + 8) / 8;

	memory.words[0] = prev_size;
	if (at < 64)
		memory.words[at] = next;
	memory.words[1] = size;
	return mw_glibc_usable_size(BASE + 0x10, read_words, &memory);
}

static void test_heap_chunks(void **state)
{
	(void)state;
	assert_int_equal(usable(0, 0x21, 0x21), 0x18);
	assert_int_equal(usable(0, 0x91, 0x31), 0x88);
	assert_int_equal(usable(0x20, 0x90, 0x31), 0x88); /* the chunk before is free */
	assert_int_equal(usable(0, 0x95, 0x35), 0x88);    /* of a thread's arena */
	assert_int_equal(usable(0, 0x21, 0x20d51), 0x18); /* the top chunk behind it */
	assert_int_equal(usable(0, 0x21, 0x11), 0x18);    /* a fencepost behind it */
}

static void test_nonsense(void **state)
{
	(void)state;
	assert_int_equal(usable(0, 0, 0x21), MW_SIZE_UNKNOWN);
	assert_int_equal(usable(0, 0x11, 0x21), MW_SIZE_UNKNOWN); /* too small */
	assert_int_equal(usable(0, 0x29, 0x21), MW_SIZE_UNKNOWN); /* no multiple */
	assert_int_equal(usable(0, 0x21, 0x20), MW_SIZE_UNKNOWN); /* not in use */
	assert_int_equal(usable(0, 0x21, 0x01), MW_SIZE_UNKNOWN);
	assert_int_equal(usable(0, 0x21, 0x29), MW_SIZE_UNKNOWN);
	assert_int_equal(usable(0, 0x21, 0x23), MW_SIZE_UNKNOWN); /* mapped, behind a heap chunk */
	assert_int_equal(usable(0, 0x21, UINT64_MAX), MW_SIZE_UNKNOWN);
	assert_int_equal(usable(0, 0x2001, 0), MW_SIZE_UNKNOWN);             /* next chunk can't be read */
	assert_int_equal(usable(0, 0xfffffffffffffff1, 0), MW_SIZE_UNKNOWN); /* wraps around */
	assert_int_equal(usable(0, 0x7ffffffffffffff1, 0), MW_SIZE_UNKNOWN);
}

static void test_mapped_chunks(void **state)
{
	(void)state;
	assert_int_equal(usable(0, 0x2002, 0), 0x2000 - 16);
	assert_int_equal(usable(0, 0x2012, 0), MW_SIZE_UNKNOWN);    /* no whole pages */
	assert_int_equal(usable(0x10, 0x1ff2, 0), MW_SIZE_UNKNOWN); /* whole, but doesn't begin a page */
	assert_int_equal(usable(0x1000, 0x2002, 0), 0x2000 - 16);   /* aligned inside its mapping */
	assert_int_equal(usable(0, 0x2003, 0), MW_SIZE_UNKNOWN);    /* with another's flags */
	assert_int_equal(usable(UINT64_MAX - 0xfff, 0x2002, 0), MW_SIZE_UNKNOWN);
	/* glibc 2.43: the mapping ends 16 bytes behind the chunk. */
	assert_int_equal(usable(0, 0x1ff2, 0), 0x1ff0 - 8);
	assert_int_equal(usable(0x1000, 0x1ff2, 0), 0x1ff0 - 8);
	assert_int_equal(usable(0, 0x1fe2, 0), MW_SIZE_UNKNOWN);
	assert_int_equal(usable(1, 0x1ff2, 0), 0x1ff0 - 8); /* of huge pages */
	assert_int_equal(usable(UINT64_MAX - 0xfff, 0x1ff2, 0), MW_SIZE_UNKNOWN);
}

static void test_bad_addresses(void **state)
{
	struct memory memory = {.base = BASE};

	(void)state;
	assert_int_equal(mw_glibc_usable_size(0, read_words, &memory), MW_SIZE_UNKNOWN);
	assert_int_equal(mw_glibc_usable_size(8, read_words, &memory), MW_SIZE_UNKNOWN);
	assert_int_equal(mw_glibc_usable_size(BASE + 0x18, read_words, &memory), MW_SIZE_UNKNOWN);
	assert_int_equal(mw_glibc_usable_size(BASE - 0x1000, read_words, &memory), MW_SIZE_UNKNOWN);
	assert_int_equal(mw_glibc_usable_size(UINT64_MAX - 15, read_words, &memory), MW_SIZE_UNKNOWN);
}

/* What malloc_usable_size says of this process's own blocks. */
static void test_real_blocks(void **state)
{
	const size_t alignments[] = {16, 64, 4096, 1 << 20};

	(void)state;
	if (SANITIZED)
		skip();
	for (size_t size = 0; size < 300000; size = size + size / 3 + 1) {
		void *block = malloc(size);

		assert_int_equal(mw_glibc_usable_size((uintptr_t)block, read_own, NULL), malloc_usable_size(block));
		free(block);
		for (size_t i = 0; i < sizeof(alignments) / sizeof(alignments[0]); i++) {
			block = memalign(alignments[i], size);
			assert_int_equal(mw_glibc_usable_size((uintptr_t)block, read_own, NULL),
					 malloc_usable_size(block));
			free(block);
		}
	}
}

UNIT_GROUP(glibc_chunk)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_heap_chunks),   cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_mapped_chunks), cmocka_unit_test(test_bad_addresses),
		cmocka_unit_test(test_real_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
