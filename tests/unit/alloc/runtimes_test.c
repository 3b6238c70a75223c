// SPDX-License-Identifier: MIT
/* runtimes_test.c: which runtimes a module holds, and which of them show their objects. */
#include "alloc/families.h"
#include "unit.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static uint32_t mask_of(const char *name)
{
	for (unsigned i = 0; i < MW_RUNTIMES; i++)
		if (strcmp(mw_runtimes[i].name, name) == 0)
			return 1u << i;
	fail_msg("no runtime is called %s", name);
	return 0;
}

static void by_name(void **state)
{
	(void)state;
	assert_int_equal(mw_runtimes_of("/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0", NULL), mask_of("python"));
	assert_int_equal(mw_runtimes_of("/usr/lib/apache2/modules/libphp8.2.so", NULL), mask_of("php"));
	assert_int_equal(mw_runtimes_of("libjvm.so", NULL), mask_of("jvm"));
	assert_int_equal(mw_runtimes_of("/usr/lib/chromium/chromium", NULL),
			 mask_of("v8") | mask_of("partition-alloc"));
	assert_int_equal(mw_runtimes_of("/usr/lib/chromium/chromium-helper", NULL), 0);
	assert_int_equal(mw_runtimes_of("/usr/lib/x86_64-linux-gnu/libperl.so.5.36", NULL), mask_of("perl"));
	assert_int_equal(mw_runtimes_of("/usr/lib/x86_64-linux-gnu/liblua5.4.so.0", NULL), mask_of("lua"));
	assert_int_equal(mw_runtimes_of("/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2", NULL), mask_of("lua"));
	assert_int_equal(mw_runtimes_of("/usr/lib/erlang/erts-13.1.5/bin/beam.smp", NULL), mask_of("erlang"));
	assert_int_equal(mw_runtimes_of("/usr/lib/libc.so.6", NULL), 0);
	assert_int_equal(mw_runtimes_of("/libpython3.11/server", NULL), 0);
	assert_int_equal(mw_runtimes_of("", NULL), 0);
}

/* The interpreter is in the program: this one has a function of such a name. */
int PyObject_Malloc(void);

int PyObject_Malloc(void)
{
	return 1;
}

static void by_symbol(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct mw_elf *elf = NULL;

	(void)state;
	assert_null(mw_elf_open(fd, "self", &elf));
	close(fd);
	assert_int_equal(mw_runtimes_of("/opt/server", elf), mask_of("python"));
	mw_elf_unref(elf);
}

static void by_environment(void **state)
{
	const char both[] = "A=1\0USE_ZEND_ALLOC=0\0PYTHONMALLOC=malloc_debug";
	const char none[] = "XPYTHONMALLOC=malloc\0PYTHONMALLOC=mallocs\0PYTHONMALLOC=pymalloc\0USE_ZEND_ALLOC=1\0";
	const char cut[] = {'P', 'Y', 'T', 'H', 'O', 'N', 'M', 'A', 'L', 'L',
			    'O', 'C', '=', 'm', 'a', 'l', 'l', 'o', 'c'};

	(void)state;
	assert_int_equal(mw_runtimes_visible(both, sizeof(both)), mask_of("php") | mask_of("python"));
	assert_int_equal(mw_runtimes_visible(none, sizeof(none)), 0);
	assert_int_equal(mw_runtimes_visible(cut, sizeof(cut)), 0);
	assert_int_equal(mw_runtimes_visible("", 0), 0);
}

static void by_hooks(void **state)
{
	const struct mw_hook_info hooks[] = {{.function = "malloc"}, {.function = "PyObject_Malloc"}};
	const struct mw_hook_info refused[] = {{.function = "PyObject_Malloc", .refused = "why"}};

	(void)state;
	assert_int_equal(mw_runtimes_hooked(hooks, 2), mask_of("python"));
	assert_int_equal(mw_runtimes_hooked(hooks, 1), 0);
	assert_int_equal(mw_runtimes_hooked(refused, 1), 0);
}

UNIT_GROUP(runtimes)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_name),
		cmocka_unit_test(by_symbol),
		cmocka_unit_test(by_hooks),
		cmocka_unit_test(by_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
