// SPDX-License-Identifier: MIT
/* test_emulated.c: which processes are run by a translator, by their program and what is mapped. */
#include "proc/maps.h"
#include "tracee/preflight.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

/* cmocka wants the headers above first. */
#include <cmocka.h>

#define CODE  "55d1cb4a3000-55d1cb4a5000 r-xp 00002000 fe:00 247134 "
#define LATER "55d1cb4a5000-55d1cb4a6000 r-xp 00000000 fe:00 247135 "
#define PLAIN CODE "/usr/bin/cat\n"

static void expect(const char *exe, const char *text, enum mw_emulator emulator)
{
	struct mw_maps maps = {0};

	assert_null(mw_maps_parse(text, strlen(text), false, &maps));
	assert_int_equal(mw_emulator_of(exe, &maps), emulator);
	mw_maps_deinit(&maps);
}

static void test_valgrind(void **state)
{
	(void)state;
	expect("/usr/libexec/valgrind/memcheck-amd64-linux", PLAIN, MW_EMULATOR_VALGRIND);
	expect("/opt/vg/lib/valgrind/none-arm64-linux", "", MW_EMULATOR_VALGRIND);
	expect("/src/valgrind-3/.in_place/massif-amd64-linux", "", MW_EMULATOR_VALGRIND);
	/* Its program can't be read. */
	expect("", PLAIN LATER "/usr/libexec/valgrind/vgpreload_core-amd64-linux.so\n", MW_EMULATOR_VALGRIND);
	/* Programs about valgrind are programs. */
	expect("/usr/bin/valgrind", PLAIN, MW_EMULATOR_NONE);
	expect("/home/me/valgrind/build/server", PLAIN, MW_EMULATOR_NONE);
	expect("/usr/bin/server-linux", CODE "/usr/lib/libvgpreload_reader.so\n", MW_EMULATOR_NONE);
}

static void test_qemu(void **state)
{
	(void)state;
	expect("/usr/bin/qemu-aarch64", PLAIN, MW_EMULATOR_QEMU);
	expect("/usr/libexec/qemu-binfmt/qemu-aarch64_be-static", PLAIN, MW_EMULATOR_QEMU);
	expect("qemu-x86_64", "", MW_EMULATOR_QEMU);
	/* Those run as they are. */
	expect("/usr/bin/qemu-system-x86_64", PLAIN, MW_EMULATOR_NONE);
	expect("/usr/bin/qemu-img", PLAIN, MW_EMULATOR_NONE);
	expect("/usr/bin/qemu-arm-", PLAIN, MW_EMULATOR_NONE);
	expect("/usr/bin/qemu-", PLAIN, MW_EMULATOR_NONE);
	expect("/opt/qemu-arm/bin/server", PLAIN, MW_EMULATOR_NONE);
}

static void test_none(void **state)
{
	(void)state;
	expect("", "", MW_EMULATOR_NONE);
	expect("/usr/bin/cat", PLAIN, MW_EMULATOR_NONE);
}

UNIT_GROUP(emulated)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_valgrind),
		cmocka_unit_test(test_qemu),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
