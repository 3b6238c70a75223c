// SPDX-License-Identifier: MIT
/* classify_test.c: modules told apart by name and by symbols. */
#include "libraries.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdlib.h>

static const struct {
	const char *path;
	enum mw_module_class class;
} cases[] = {
	{"/lib/x86_64-linux-gnu/libc.so.6", MW_MODULE_RUNTIME},
	{"/lib/x86_64-linux-gnu/libc-2.31.so", MW_MODULE_RUNTIME},
	{"/lib/ld-musl-x86_64.so.1", MW_MODULE_RUNTIME},
	{"/lib/libc.musl-x86_64.so.1", MW_MODULE_RUNTIME},
	{"/lib64/ld-linux-x86-64.so.2", MW_MODULE_RUNTIME},
	{"libpthread.so.0", MW_MODULE_RUNTIME},
	{"libpthread-2.31.so", MW_MODULE_RUNTIME},
	{"/usr/lib/libstdc++.so.6.0.30", MW_MODULE_RUNTIME},
	{"/usr/lib/libc++.so.1", MW_MODULE_RUNTIME},
	{"/usr/lib/libc++abi.so.1.0", MW_MODULE_RUNTIME},
	{"/usr/lib/libgcc_s.so.1", MW_MODULE_RUNTIME},
	{"/usr/lib/libunwind.so.8", MW_MODULE_RUNTIME},
	{"/usr/lib/libunwind-x86_64.so.8", MW_MODULE_RUNTIME},
	{"/usr/lib/libm.so.6", MW_MODULE_RUNTIME},
	{"/usr/lib/libjemalloc.so.2", MW_MODULE_ALLOCATOR},
	{"/usr/lib/libtcmalloc_minimal.so.4.5.10", MW_MODULE_ALLOCATOR},
	{"/usr/lib/libmimalloc.so.2.0", MW_MODULE_ALLOCATOR},
	{"/usr/lib/libhoard.so", MW_MODULE_ALLOCATOR},
	{"/usr/lib/libsnmallocshim.so", MW_MODULE_ALLOCATOR},
	{"/usr/lib/libmagic.so.1", MW_MODULE_OTHER},
	{"/usr/lib/libcrypto.so.3", MW_MODULE_OTHER},
	{"/usr/lib/libc.sock/main", MW_MODULE_OTHER},
	{"/usr/bin/jemalloc", MW_MODULE_OTHER},
	{"", MW_MODULE_OTHER},
};

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(mw_alloc_classify(cases[i].path, NULL), cases[i].class);
}

/* Under another name: the soname tells, or what it exports. */
static void test_renamed(void **state)
{
	const char *const sonames[] = {"libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2.0"};
	struct mw_elf *elf;

	(void)state;
	for (size_t i = 0; i < sizeof(sonames) / sizeof(sonames[0]); i++) {
		elf = open_library(sonames[i]);
		if (elf)
			assert_int_equal(mw_alloc_classify("/opt/x/alloc.so", elf), MW_MODULE_ALLOCATOR);
		mw_elf_unref(elf);
	}
	elf = open_image(NAMES);
	assert_int_equal(mw_alloc_classify("/opt/x/alloc.so", elf), MW_MODULE_OTHER);
	mw_elf_unref(elf);
	elf = open_image("/proc/self/exe");
	assert_int_equal(mw_alloc_classify("/opt/x/program", elf), MW_MODULE_OTHER);
	mw_elf_unref(elf);
}

static void expect_glibc(const char *path, bool expected)
{
	struct mw_elf *elf = open_image(path);

	assert_non_null(elf);
	assert_int_equal(mw_alloc_is_glibc(elf), expected);
	mw_elf_unref(elf);
}

static void test_is_glibc(void **state)
{
	const char *const others[] = {"libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2.0",
				      "libstdc++.so.6",   "libc_malloc_debug.so.0",   "ld-musl-x86_64.so.1"};
	char path[4096];
	mw_addr bias;

	(void)state;
	expect_glibc(own_libc(&bias), true);
	expect_glibc(STATIC, true);
	expect_glibc("/proc/self/exe", false);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (find_library(others[i], path, sizeof(path)))
			expect_glibc(path, false);
}

UNIT_GROUP(classify)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_renamed),
		cmocka_unit_test(test_is_glibc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
