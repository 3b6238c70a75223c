// SPDX-License-Identifier: MIT
/* rows_oracle_test.c: rows of real files say what libdw says. With arguments: of these files. */
#include "rows_oracle.h"
#include "unit.h"

#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static char **paths; /* of the command line, or NULL */

static struct rows_verdict judge(const char *path)
{
	struct rows_verdict verdict = rows_judge(path);

	print_message("%s: %zu functions, %zu rows in %.1f ms; %zu steps: %zu slow (%.2f %%), %zu lost, %zu realigned, "
		      "%zu missing, %zu different\n",
		      path, verdict.functions, verdict.rows, verdict.seconds * 1e3, verdict.steps, verdict.slow,
		      verdict.steps ? 100.0 * (double)verdict.slow / (double)verdict.steps : 0.0, verdict.lost,
		      verdict.deref, verdict.missing, verdict.different);
	assert_int_equal(verdict.different, 0);
	assert_int_equal(verdict.missing, 0);
	return verdict;
}

/* A system's own file, little of which may be slow. */
static void judge_system(const char *path)
{
	struct rows_verdict verdict = judge(path);

	assert_true(verdict.steps > 0);
	assert_true(verdict.slow * 20 <= verdict.steps);
}

static void judge_library(const char *name)
{
	void *library = dlopen(name, RTLD_LAZY);
	struct link_map *map = NULL;

	if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
		skip();
	judge_system(map->l_name);
	dlclose(library);
}

static void libc(void **state)
{
	(void)state;
	judge_library("libc.so.6");
}

static void libstdcxx(void **state)
{
	(void)state;
	judge_library("libstdc++.so.6");
}

static void libgcc(void **state)
{
	(void)state;
	judge_library("libgcc_s.so.1");
}

/* Small, and much of it in assembly. */
static void loader(void **state)
{
	(void)state;
	judge("/proc/self/exe");
	if (access("/lib64/ld-linux-x86-64.so.2", R_OK) == 0)
		judge("/lib64/ld-linux-x86-64.so.2");
}

static void python(void **state)
{
	(void)state;
	if (access("/usr/bin/python3", R_OK) != 0)
		skip();
	judge_system("/usr/bin/python3");
}

static void samples(void **state)
{
	(void)state;
	judge(SAMPLE_OPTIMIZED);
	judge(SAMPLE_REALIGNED);
	assert_true(judge(SAMPLE_DEBUG).functions > 4);
#if defined(__x86_64__) && !defined(__clang__)
	assert_true(judge(SAMPLE_OPTIMIZED).deref > 0);
	assert_true(judge(SAMPLE_REALIGNED).deref > 0);
	assert_true(judge(SAMPLE_DEBUG).deref > 0);
#endif
}

static void given(void **state)
{
	bool bad = false;

	(void)state;
	for (char **path = paths; *path; path++) {
		struct rows_verdict verdict = rows_judge(*path);

		printf("%-60s %7zu functions %8zu rows %8.1f ms %8zu steps %6zu slow %5zu lost %6zu realigned "
		       "%zu missing %zu different\n",
		       *path, verdict.functions, verdict.rows, verdict.seconds * 1e3, verdict.steps, verdict.slow,
		       verdict.lost, verdict.deref, verdict.missing, verdict.different);
		bad = bad || verdict.missing || verdict.different;
	}
	assert_false(bad);
}

UNIT_GROUP(rows_oracle)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libc),   cmocka_unit_test(libstdcxx), cmocka_unit_test(libgcc),
		cmocka_unit_test(loader), cmocka_unit_test(python),    cmocka_unit_test(samples),
	};
	const struct CMUnitTest by_hand[] = {cmocka_unit_test(given)};

	paths = argv + 1;
	return argc > 1 ? cmocka_run_group_tests(by_hand, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL);
}
