// SPDX-License-Identifier: MIT
/* symbolizer_test.c: frames of the fixture library in each form that debug information comes in. */
#include "probe.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define INNERMOST "demo::innermost(void (*)())"
#define MIDDLE    "demo::box<int>::middle(void (*)())"
#define OUTSIDE   "demo::box<long>::outside(void (*)())"
#define ANONYMOUS "(anonymous namespace)::local::unnamed"
#define HIDDEN    "not_exported(void (*)())"

static void expect_all(const struct probe *probe)
{
	const struct mw_symbol_frame *frames;

	assert_int_equal(probe_frames(probe, "fixture_chain", &frames), 3);
	probe_expect(&frames[0], INNERMOST, "fixture.cpp", 102, true);
	probe_expect(&frames[1], MIDDLE, "fixture.cpp", 205, true);
	probe_expect(&frames[2], "fixture_chain", "fixture.cpp", 404, false);

	assert_int_equal(probe_frames(probe, "fixture_method", &frames), 1);
	probe_expect(&frames[0], OUTSIDE, "fixture.cpp", 303, false);
	assert_int_equal(probe_frames(probe, "fixture_hidden", &frames), 1);
	probe_expect(&frames[0], HIDDEN, "fixture.cpp", 502, false);
	/* GCC gives what has no linkage no linkage name. */
	assert_int_equal(probe_frames(probe, "fixture_anonymous", &frames), 2);
	assert_int_equal(strncmp(frames[0].function, ANONYMOUS, strlen(ANONYMOUS)), 0);
	assert_int_equal(frames[0].line, 705);
	assert_true(frames[0].inlined);
	probe_expect(&frames[1], "fixture_anonymous", "fixture.cpp", 802, false);
	assert_int_equal(probe_frames(probe, "fixture_last", &frames), 1);
	probe_expect(&frames[0], "fixture_last", "fixture.cpp", 603, false);
}

static void test_embedded(void **state)
{
	struct probe probe;

	(void)state;
	probe_open(&probe, EMBEDDED);
	expect_all(&probe);
	assert_string_equal(probe_source(&probe, "fixture_chain"), "embedded");
	probe_close(&probe);
}

static void test_split(void **state)
{
	struct probe probe;

	(void)state;
	probe_open(&probe, SPLIT);
	expect_all(&probe);
	assert_string_equal(probe_source(&probe, "fixture_chain"), "embedded");
	probe_close(&probe);
}

/* A part that the compiler has moved away has a symbol of its own, which tells the offset too. */
static void test_cold_part(void **state)
{
	const struct mw_symbol_frame *frames;
	struct probe probe;
	mw_addr start, addr;

	(void)state;
	probe_open(&probe, EMBEDDED);
	start = (mw_addr)(uintptr_t)dlsym(probe.library, "fixture_cold");
	addr = probe_address(&probe, "fixture_cold");
	assert_int_equal(probe_frames(&probe, "fixture_cold", &frames), 1);
	assert_int_equal(frames[0].line, 910);
	if (strcmp(frames[0].function, "fixture_cold") == 0)
		assert_int_equal(frames[0].offset, addr - start);
	else
		assert_string_equal(frames[0].function, "fixture_cold.cold");
	assert_true(frames[0].offset < 0x100);
	probe_close(&probe);
}

static void test_debuglink(void **state)
{
	struct probe probe;

	(void)state;
	probe_open(&probe, FIXTURES "/liblinked.so");
	expect_all(&probe);
	assert_string_equal(probe_source(&probe, "fixture_chain"), FIXTURES "/fixture.debug");
	probe_close(&probe);
}

/* Whatever libelf knows of zstd. */
static void test_zstd(void **state)
{
	struct probe probe;

	(void)state;
	if (access(FIXTURES "/libzstd.so", R_OK) != 0)
		skip();
	probe_open(&probe, FIXTURES "/libzstd.so");
	expect_all(&probe);
	assert_string_equal(probe_source(&probe, "fixture_chain"), "embedded");
	probe_close(&probe);
	probe_open(&probe, FIXTURES "/libzstdlinked.so");
	expect_all(&probe);
	assert_string_equal(probe_source(&probe, "fixture_chain"), FIXTURES "/fixture.zstd");
	probe_close(&probe);
	/* The checksum is that of the compressed file. */
	probe_open(&probe, FIXTURES "/libzstdchecked.so");
	expect_all(&probe);
	assert_string_equal(probe_source(&probe, "fixture_chain"), FIXTURES "/fixture.zstd");
	probe_close(&probe);
}

/* Write `size` bytes into the compressed section `name` of a copy of the fixture, at `offset`. */
static void spoil(char path[64], const char *name, uint64_t offset, const void *bytes, size_t size)
{
	struct mw_elf_section section;
	struct mw_elf *elf = NULL;
	char command[512];
	int fd;

	(void)snprintf(path, 64, "/tmp/memwatch-spoilt-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	(void)snprintf(command, sizeof(command), "cp %s %s && chmod 755 %s", FIXTURES "/libzstd.so", path, path);
	assert_int_equal(system(command), 0);
	assert_null(mw_elf_open(fd, path, &elf));
	section = mw_elf_section(elf, name);
	mw_elf_unref(elf);
	assert_true(section.present && section.compressed);
	assert_int_equal(pwrite(fd, bytes, size, (off_t)(section.offset + offset)), size);
	close(fd);
}

static void expect_obstacle(const char *path, const char *text)
{
	const struct mw_symbol_frame *frames;
	const struct mw_module *module;
	const char *obstacle;
	struct probe probe;

	probe_open(&probe, path);
	assert_int_equal(probe_frames(&probe, "fixture_chain", &frames), 1);
	probe_expect(&frames[0], "fixture_chain", NULL, 0, false);
	module = mw_modules_find(probe.modules, probe_address(&probe, "fixture_chain"));
	(void)mw_symbolizer_source(probe.symbolizer, module->number, &obstacle);
	assert_non_null(obstacle);
	assert_non_null(strstr(obstacle, text));
	probe_close(&probe);
	unlink(path);
}

/* Sections that are spoilt, claim to be huge, or are compressed in no known way: symbols remain, and it is told why. */
static void test_bad_compression(void **state)
{
	const uint64_t huge = UINT64_C(1) << 40;
	const uint32_t unknown = 99;
	char path[64];

	(void)state;
	if (access(FIXTURES "/libzstd.so", R_OK) != 0)
		skip();
	spoil(path, ".debug_info", sizeof(Elf64_Chdr), "spoilt", 6);
	expect_obstacle(path, "damaged");
	spoil(path, ".debug_info", offsetof(Elf64_Chdr, ch_size), &huge, sizeof(huge));
	expect_obstacle(path, "too large");
	spoil(path, ".debug_info", offsetof(Elf64_Chdr, ch_type), &unknown, sizeof(unknown));
	expect_obstacle(path, "not known");
}

static void test_mini_debuginfo(void **state)
{
	const struct mw_symbol_frame *frames;
	struct probe probe;

	(void)state;
	probe_open(&probe, FIXTURES "/libmini.so");
	assert_int_equal(probe_frames(&probe, "fixture_hidden", &frames), 1);
	probe_expect(&frames[0], HIDDEN, NULL, 0, false);
	assert_int_equal(probe_frames(&probe, "fixture_chain", &frames), 1);
	probe_expect(&frames[0], "fixture_chain", NULL, 0, false);
	assert_string_equal(probe_source(&probe, "fixture_chain"), "only symbols");
	probe_close(&probe);
}

static void test_dynamic_symbols_alone(void **state)
{
	const struct mw_symbol_frame *frames;
	const struct mw_module *module;
	struct probe probe;
	mw_addr addr;

	(void)state;
	probe_open(&probe, FIXTURES "/libbare.so");
	assert_int_equal(probe_frames(&probe, "fixture_chain", &frames), 1);
	probe_expect(&frames[0], "fixture_chain", NULL, 0, false);
	/* A static function is in no table: nothing is guessed, the offset is the module's. */
	addr = probe_address(&probe, "fixture_hidden");
	module = mw_modules_find(probe.modules, addr);
	assert_int_equal(probe_frames(&probe, "fixture_hidden", &frames), 1);
	assert_null(frames[0].function);
	assert_null(frames[0].file);
	assert_int_equal(frames[0].offset, addr - module->bias);
	probe_close(&probe);
}

/* Offsets count from the function's symbol, for inlined frames too. */
static void test_offsets(void **state)
{
	const struct mw_symbol_frame *frames;
	struct probe probe;
	mw_addr start, addr;

	(void)state;
	probe_open(&probe, EMBEDDED);
	start = (mw_addr)(uintptr_t)dlsym(probe.library, "fixture_chain");
	addr = probe_address(&probe, "fixture_chain");
	assert_int_equal(probe_frames(&probe, "fixture_chain", &frames), 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(frames[i].offset, addr - start);
	probe_close(&probe);
}

/* Many addresses, asked twice: the answers are the same and stay where they are. */
static void test_cache(void **state)
{
	const struct mw_symbol_frame *first[1000], *again;
	const struct mw_module *module;
	struct probe probe;
	mw_addr start;
	size_t count;

	(void)state;
	probe_open(&probe, EMBEDDED);
	start = (mw_addr)(uintptr_t)dlsym(probe.library, "fixture_chain");
	module = mw_modules_find(probe.modules, start);
	for (size_t i = 0; i < 1000; i++)
		assert_null(
			mw_symbolizer_resolve(probe.symbolizer, module->number, start + i, false, &first[i], &count));
	for (size_t i = 0; i < 1000; i++) {
		assert_null(mw_symbolizer_resolve(probe.symbolizer, module->number, start + i, false, &again, &count));
		assert_true(count >= 1);
		assert_ptr_equal(again, first[i]);
	}
	assert_string_equal(first[0]->function, "fixture_chain");
	assert_int_equal(first[0]->offset, 0);
	probe_close(&probe);
}

static void test_unknown_module(void **state)
{
	const struct mw_symbol_frame *frames;
	struct probe probe;
	size_t count;

	(void)state;
	probe_open(&probe, EMBEDDED);
	assert_null(mw_symbolizer_resolve(probe.symbolizer, UINT32_MAX, 0x1234, true, &frames, &count));
	assert_int_equal(count, 1);
	assert_null(frames[0].function);
	assert_int_equal(frames[0].offset, 0x1234);
	assert_string_equal(mw_symbolizer_source(probe.symbolizer, UINT32_MAX, NULL), "none");
	probe_close(&probe);
}

static bool find_clock(void *context, const struct mw_elf_symbol *symbol)
{
	uint64_t *vaddr = context;

	if (strcmp(symbol->name, "__vdso_clock_gettime") != 0)
		return true;
	*vaddr = symbol->vaddr;
	return false;
}

static void test_vdso(void **state)
{
	const struct mw_symbol_frame *frames;
	const struct mw_module *module;
	struct probe probe;
	uint64_t vaddr = 0;
	size_t count;

	(void)state;
	if (!getauxval(AT_SYSINFO_EHDR))
		skip();
	probe_open(&probe, EMBEDDED);
	module = mw_modules_find(probe.modules, getauxval(AT_SYSINFO_EHDR));
	assert_non_null(module);
	assert_non_null(module->elf);
	assert_null(mw_elf_each_symbol(module->elf, find_clock, &vaddr));
	assert_int_not_equal(vaddr, 0);
	assert_null(mw_symbolizer_resolve(probe.symbolizer, module->number, module->bias + vaddr + 4, true, &frames,
					  &count));
	assert_int_equal(count, 1);
	assert_non_null(frames[0].function);
	/* Weak and strong names share the address. */
	assert_non_null(strstr(frames[0].function, "clock_gettime"));
	assert_int_equal(frames[0].offset, 4);
	probe_close(&probe);
}

UNIT_GROUP(symbolizer)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_embedded),       cmocka_unit_test(test_split),
		cmocka_unit_test(test_cold_part),      cmocka_unit_test(test_debuglink),
		cmocka_unit_test(test_zstd),           cmocka_unit_test(test_bad_compression),
		cmocka_unit_test(test_mini_debuginfo), cmocka_unit_test(test_dynamic_symbols_alone),
		cmocka_unit_test(test_offsets),        cmocka_unit_test(test_cache),
		cmocka_unit_test(test_unknown_module), cmocka_unit_test(test_vdso),
	};

	/* Read when libdw is loaded: the fixtures are in no server anyway, but none need be asked. */
	if (getenv("DEBUGINFOD_URLS")) {
		unsetenv("DEBUGINFOD_URLS");
		execl("/proc/self/exe", "unit_symbolizer", "symbolizer", NULL);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
