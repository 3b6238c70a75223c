// SPDX-License-Identifier: MIT
/* internal_callers_test.c: the ranges hold the calls of free that glibc makes when a thread ends, and no others. */
#include "free_trace.h"
#include "libraries.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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

#define BLOCKS 12

struct ranges {
	struct mw_code_range *items;
	size_t count;
};

static struct ranges ranges_of(const char *path)
{
	struct mw_elf *elf = open_image(path);
	struct ranges ranges;
	struct mw_error *err;

	assert_non_null(elf);
	err = mw_alloc_internal_callers(elf, &ranges.items, &ranges.count);
	if (err)
		fail_msg("%s", mw_error_text(err));
	mw_elf_unref(elf);
	return ranges;
}

static bool contains(const struct ranges *ranges, uint64_t vaddr)
{
	for (size_t i = 0; i < ranges->count; i++)
		if (vaddr >= ranges->items[i].start && vaddr < ranges->items[i].end)
			return true;
	return false;
}

/* Shared with the traced child. */
struct shared {
	bool ending;
	uintptr_t blocks[BLOCKS];
};

/* Leaves the thread's cache filled. */
static void *fill_cache(void *argument)
{
	struct shared *shared = argument;
	void *volatile blocks[BLOCKS];

	for (size_t i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(24 + 40 * (i / 2));
		shared->blocks[i] = (uintptr_t)blocks[i];
	}
	for (size_t i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	shared->ending = true;
	return NULL;
}

static bool is_cached(const struct shared *shared, mw_addr block)
{
	for (size_t i = 0; i < BLOCKS; i++)
		if (shared->blocks[i] == block)
			return true;
	return false;
}

static void test_own_libc(void **state)
{
	struct free_call calls[FREE_CALLS_MAX];
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int count, given_back = 0, inside = 0;
	struct ranges ranges;
	mw_addr bias;

	(void)state;
	if (SANITIZED)
		skip();
	assert_ptr_not_equal(shared, MAP_FAILED);
	ranges = ranges_of(own_libc(&bias));
	count = free_trace(fill_cache, shared, &shared->ending, calls);
	if (count < 0)
		skip(); /* ptrace is forbidden here */
	assert_true(count >= BLOCKS);
	for (int i = 0; i < count; i++) {
		bool in_range = contains(&ranges, calls[i].caller - bias);

		inside += in_range;
		if (!calls[i].ending) {
			assert_false(in_range);
		} else if (is_cached(shared, calls[i].block)) {
			given_back++;
			assert_true(in_range);
		}
	}
	/* All blocks, and the cache itself; or none of them, by an inner function. */
	if (given_back == 0 && strverscmp(gnu_get_libc_version(), "2.42") >= 0) {
		assert_int_equal(inside, 0);
	} else {
		assert_int_equal(given_back, BLOCKS);
		assert_int_equal(inside, BLOCKS + 1);
	}
	free(ranges.items);
	munmap(shared, sizeof(*shared));
}

/* A library that looks like glibc: the range that is found holds the addresses that free returns to. */
static void expect_found(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	struct ranges ranges = ranges_of(path);
	struct link_map *map;
	void **callers;
	void (*end)(void);

	assert_non_null(library);
	assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
	end = (void (*)(void))dlsym(library, "thread_end");
	callers = dlsym(library, "fixture_callers");
	assert_non_null(end);
	assert_non_null(callers);
	end();
	assert_int_equal(ranges.count, 1);
	for (size_t i = 0; i < 3; i++)
		assert_true(contains(&ranges, (uintptr_t)callers[i] - map->l_addr));
	free(ranges.items);
	dlclose(library);
}

static void test_by_message(void **state)
{
	(void)state;
	expect_found(THREAD_END);
}

static void test_by_structure(void **state)
{
	(void)state;
	expect_found(NO_MESSAGE);
}

static void test_others_have_none(void **state)
{
	struct ranges ranges = ranges_of("/proc/self/exe");

	(void)state;
	assert_int_equal(ranges.count, 0);
	free(ranges.items);
}

UNIT_GROUP(internal_callers)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_libc),
		cmocka_unit_test(test_by_message),
		cmocka_unit_test(test_by_structure),
		cmocka_unit_test(test_others_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
