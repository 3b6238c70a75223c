// SPDX-License-Identifier: MIT
/* families_test.c: the tables, and what is found by them in real allocators. */
#include "libraries.h"
#include "symbol/demangle.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static bool is_argument(uint8_t argument)
{
	return argument < 6;
}

static void check_arguments(const struct mw_entry_point *entry)
{
	bool wants_pointer =
		entry->role != MW_ROLE_MALLOC && entry->role != MW_ROLE_CALLOC && entry->role != MW_ROLE_SBRK;
	bool wants_count = entry->role == MW_ROLE_CALLOC || entry->role == MW_ROLE_REALLOCARRAY;

	assert_int_equal(is_argument(entry->pointer), wants_pointer);
	assert_int_equal(is_argument(entry->count), wants_count);
	if (entry->role == MW_ROLE_FREE || entry->role == MW_ROLE_BRK)
		assert_int_equal(entry->size, MW_NO_ARG);
	else if (entry->role != MW_ROLE_MALLOC) /* strdup's kin know no size */
		assert_true(is_argument(entry->size));
}

static void test_tables(void **state)
{
	(void)state;
	for (size_t i = 0; mw_families[i]; i++) {
		assert_non_null(mw_families[i]->name);
		for (const struct mw_entry_point *entry = mw_families[i]->entries; entry->symbol; entry++) {
			if (!entry->name && strncmp(entry->symbol, "_Z", 2) == 0)
				fail_msg("%s has no name", entry->symbol);
			check_arguments(entry);
			for (const struct mw_entry_point *other = entry + 1; other->symbol; other++)
				assert_string_not_equal(entry->symbol, other->symbol);
		}
	}
}

/* The names that stand beside mangled ones are what the symbolizer makes of them. */
static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; mw_families[i]; i++)
		for (const struct mw_entry_point *entry = mw_families[i]->entries; entry->symbol; entry++) {
			char *name = mw_demangle(entry->symbol);

			assert_non_null(name);
			if (entry->name)
				assert_string_equal(name, entry->name);
			free(name);
		}
}

struct findings {
	struct mw_found_entry *items;
	size_t count;
};

static struct findings find(struct mw_elf *elf)
{
	struct findings found;
	struct mw_error *err = mw_alloc_find(elf, &found.items, &found.count);

	if (err)
		fail_msg("%s", mw_error_text(err));
	for (size_t i = 0; i < found.count; i++)
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(found.items[i].vaddr, found.items[j].vaddr);
	return found;
}

static const struct mw_found_entry *entry_of(const struct findings *found, const char *symbol)
{
	for (size_t i = 0; i < found->count; i++)
		if (strcmp(found->items[i].entry->symbol, symbol) == 0)
			return &found->items[i];
	return NULL;
}

static void test_fixture(void **state)
{
	struct mw_elf *elf = open_image(NAMES);
	struct findings found;

	(void)state;
	assert_non_null(elf);
	found = find(elf);
	/* Not the alias, not the static function, not the IFUNC. */
	assert_int_equal(found.count, 1);
	assert_string_equal(found.items[0].entry->symbol, "tc_malloc");
	assert_string_equal(found.items[0].family->name, "tcmalloc");
	assert_int_not_equal(found.items[0].vaddr, 0);
	assert_int_not_equal(found.items[0].size, 0);
	free(found.items);
	mw_elf_unref(elf);
}

static void test_libc(void **state)
{
	const char *const names[] = {"malloc",        "calloc",         "realloc", "reallocarray", "free",
				     "aligned_alloc", "posix_memalign", "valloc",  "pvalloc",      "mmap",
				     "munmap",        "mremap",         "brk",     "sbrk"};
	mw_addr bias;
	struct mw_elf *elf = open_image(own_libc(&bias));
	struct findings found;

	(void)state;
	assert_non_null(elf);
	found = find(elf);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct mw_found_entry *entry = entry_of(&found, names[i]);

		if (!entry)
			fail_msg("%s is not found", names[i]);
		assert_int_equal(entry->family->kind, i < 9 ? MW_KIND_HEAP : MW_KIND_VM);
	}
	/* Aliases have the name that people write. */
	assert_null(entry_of(&found, "__libc_malloc"));
	assert_null(entry_of(&found, "cfree"));
	free(found.items);
	mw_elf_unref(elf);
}

static void test_libstdcxx_is_skipped(void **state)
{
	struct mw_elf *elf = open_library("libstdc++.so.6");
	struct findings found;

	(void)state;
	if (!elf)
		skip();
	found = find(elf);
	assert_int_equal(found.count, 0);
	free(found.items);
	mw_elf_unref(elf);
}

/* Exported names that sound like it and are no entry points: they ask, set, or call ones that are. */
static const char *const harmless[] = {
	"*usable_size", "*good_size", "malloc_size", "*_malloc_size", "malloc_stats*", "*_malloc_stats", "malloc_info",
	"mallinfo*", "mallopt", "tc_mallopt", "tc_mallinfo*", "malloc_message", "MallocExtension*", "MallocHook*",
	"mallctl*", "malloc_trim", "nallocx", "tc_nallocx", "sallocx", "malloc_conf*", "tc_*new_mode",
	"*_register_deferred_free", "TCMalloc_*", "TCMallocGetenvSafe", "tc_set_new_handler", "tcmalloc_backtrace_*",
	/* mimalloc: a tail call of mi_free, of mi_reallocarray, of mi_aligned_alloc, of mi_reallocf; heaps */
	"vfree", "*reallocarr", "_aligned_malloc", "reallocf", "mi_heap_new*", "mi_heap_delete", "mi_heap_destroy",
	"mi_theap_delete", "mi_subproc_*", "mi_pprof_*",
	/* C++ members: tcmalloc's insides */
	"_ZN*", "_ZZ*", "_ZT*", "_ZGV*", "_ZNK*", "_Z[0-9]*", NULL};

static const char *const suspicious[] = {"*alloc*", "*free*",   "*memalign*", "*new*", "*delete*", "_Zn*",    "_Zd*",
					 "*mmap*",  "*munmap*", "*mremap*",   "*brk*", "*dup",     "*expand", NULL};

static bool matches(const char *name, const char *const *patterns)
{
	for (; *patterns; patterns++)
		if (fnmatch(*patterns, name, 0) == 0)
			return true;
	return false;
}

static bool check_known(void *context, const struct mw_elf_symbol *symbol)
{
	const struct findings *found = context;

	if (!symbol->dynamic || !symbol->function || !matches(symbol->name, suspicious) ||
	    matches(symbol->name, harmless))
		return true;
	for (size_t i = 0; i < found->count; i++)
		if (found->items[i].vaddr == symbol->vaddr)
			return true;
	/* wcsdup and mbsdup call malloc and strdup by name. */
	if (strcmp(symbol->name, "mi_wcsdup") == 0 || strcmp(symbol->name, "mi_mbsdup") == 0)
		return true;
	fail_msg("%s is in no table", symbol->name);
	return false;
}

/* Nothing that the library exports and that allocates or frees is missing from the tables. */
static void expect_complete(const char *soname)
{
	struct mw_elf *elf = open_library(soname);
	struct findings found;

	if (!elf)
		return;
	found = find(elf);
	assert_non_null(entry_of(&found, "malloc"));
	assert_non_null(entry_of(&found, "free"));
	assert_non_null(entry_of(&found, "_Znwm"));
	assert_null(mw_elf_each_symbol(elf, check_known, &found));
	free(found.items);
	mw_elf_unref(elf);
}

static void test_allocators(void **state)
{
	(void)state;
	expect_complete("libjemalloc.so.2");
	expect_complete("libtcmalloc_minimal.so.4");
	expect_complete("libtcmalloc_minimal_debug.so.4");
	expect_complete("libtcmalloc.so.4");
	expect_complete("libmimalloc.so.2.0");
	expect_complete("libmimalloc.so.3");
}

UNIT_GROUP(families)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_fixture),
		cmocka_unit_test(test_libc),
		cmocka_unit_test(test_libstdcxx_is_skipped),
		cmocka_unit_test(test_allocators),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
