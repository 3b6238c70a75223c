// SPDX-License-Identifier: MIT
/*
 * index_test.c: the sorted index says of any address what libdwfl does, which looks through all symbols: of files with
 * labels, aliases, symbols in each other and of every binding, and of such as are at hand.
 */
#include "symbol/symbolizer_index.h"
#include "unit.h"

#include <fcntl.h>
#include <gnu/lib-names.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define WORK 20000000u /* symbols that libdwfl may look at for one file */
#define SOME 20        /* symbols */

static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
					 .find_debuginfo = dwfl_standard_find_debuginfo,
					 .section_address = dwfl_offline_section_address};

static struct {
	Dwfl *dwfl;
	Dwfl_Module *module;
	struct mw_symbol_index index;
	uint64_t answers[3], wrong;
} the;

static bool open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	GElf_Addr bias;

	memset(&the, 0, sizeof(the));
	if (fd < 0)
		return false;
	the.dwfl = dwfl_begin(&callbacks);
	assert_non_null(the.dwfl);
	dwfl_report_begin(the.dwfl);
	/* Where the program lies too, as the symbolizer does. */
	the.module = dwfl_report_elf(the.dwfl, path, path, fd, 0, true);
	assert_non_null(the.module);
	dwfl_report_end(the.dwfl, NULL, NULL);
	assert_non_null(dwfl_module_getelf(the.module, &bias));
	return true;
}

static void close_file(void)
{
	mw_ranges_deinit(&the.index.symbols);
	dwfl_end(the.dwfl);
}

static void compare(uint64_t address)
{
	const struct mw_range *found = NULL;
	enum mw_index_answer answer = mw_symbol_index_find(&the.index, address, &found);
	GElf_Off offset = 0;
	GElf_Sym expected, sym;
	GElf_Addr start = 0;
	const char *name = dwfl_module_addrinfo(the.module, address, &offset, &expected, NULL, NULL, NULL);
	const char *other = NULL;

	the.answers[answer]++;
	if (answer == MW_INDEX_ASK)
		return;
	if (answer == MW_INDEX_FOUND) {
		other = dwfl_module_getsym_info(the.module, (int)(uint32_t)found->value, &sym, &start, NULL, NULL,
						NULL);
		assert_int_equal(start, found->start);
		assert_non_null(name);
		assert_non_null(other);
		if (strcmp(name, other) == 0 && offset == address - start && expected.st_size == sym.st_size &&
		    expected.st_info == sym.st_info)
			return;
	} else if (!name) {
		return;
	}
	print_error("%#llx: %s, not %s\n", (unsigned long long)address, other ? other : "nothing",
		    name ? name : "nothing");
	the.wrong++;
}

/* All that changes the answer lies at a symbol's start or end. */
static void compare_around(const struct mw_range *symbol)
{
	compare(symbol->start - 1);
	compare(symbol->start);
	compare(symbol->start + (symbol->end - symbol->start) / 2);
	compare(symbol->end - 1);
	compare(symbol->end);
	compare(symbol->end + 1);
}

/* False: there is no such file. */
static bool compare_file(const char *path)
{
	size_t step;

	if (!open_file(path))
		return false;
	assert_true(mw_symbol_index_init(&the.index, the.module));
	step = the.index.symbols.count * the.index.symbols.count / (WORK / 6) + 1;
	for (size_t i = 0; i < the.index.symbols.count; i += step)
		compare_around(&the.index.symbols.items[i]);
	compare(0);
	compare(UINT64_MAX);
	printf("%s: %zu symbols, every %zuth: %llu found, %llu nothing, %llu left to libdwfl\n", path,
	       the.index.symbols.count, step, (unsigned long long)the.answers[MW_INDEX_FOUND],
	       (unsigned long long)the.answers[MW_INDEX_NOTHING], (unsigned long long)the.answers[MW_INDEX_ASK]);
	assert_int_equal(the.wrong, 0);
	/* It answers, that is; of a few symbols all may be of the kinds that are left to libdwfl. */
	if (the.index.symbols.count >= SOME)
		assert_true(the.answers[MW_INDEX_FOUND] > the.answers[MW_INDEX_ASK]);
	close_file();
	return true;
}

static void test_odd_symbols(void **state)
{
	(void)state;
	assert_true(compare_file(ODD_SYMBOLS));
	assert_true(the.answers[MW_INDEX_ASK] > 0 && the.answers[MW_INDEX_NOTHING] > 0);
}

static void test_own(void **state)
{
	(void)state;
	assert_true(compare_file("/proc/self/exe"));
}

static void test_at_hand(void **state)
{
	static const char *const directories[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/bin"};
	static const char *const names[] = {LIBC_SO, LIBM_SO,  "libstdc++.so.6", "libpython3.11.so.1.0",
					    "node",  "python3"};
	char path[128];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		bool found = false;

		for (size_t j = 0; j < sizeof(directories) / sizeof(directories[0]) && !found; j++) {
			(void)snprintf(path, sizeof(path), "%s/%s", directories[j], names[i]);
			found = compare_file(path);
		}
	}
}

UNIT_GROUP(index)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_odd_symbols), cmocka_unit_test(test_own),
					   cmocka_unit_test(test_at_hand)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
