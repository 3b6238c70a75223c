// SPDX-License-Identifier: MIT
/* modules_test.c: the modules of a live child that loads and unloads. */
#include "child.h"
#include "files.h"
#include "unit.h"

#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct mw_module *find_path(const struct mw_modules *modules, const char *part)
{
	for (uint32_t i = 0; i < mw_modules_count(modules); i++) {
		struct mw_module *module = mw_modules_get(modules, i);

		assert_int_equal(module->number, i);
		if (!module->gone && strstr(module->path, part))
			return module;
	}
	return NULL;
}

static void lists_program_and_libraries(void **state)
{
	struct child child;
	struct mw_modules *modules = NULL;
	struct mw_module *program, *libc, *vdso;
	size_t added = 9, removed = 9;

	(void)state;
	assert_null(mw_modules_create(&modules));
	assert_true(child_start(&child, SAMPLE_CHILD, NULL, NULL));
	program = child_program(&child, modules);
	assert_non_null(program->elf);
	assert_string_equal(program->path, SAMPLE_CHILD);
	libc = find_path(modules, "libc.so");
	if (!libc)
		libc = find_path(modules, "libc");
	assert_non_null(libc);
	assert_non_null(libc->elf);
	assert_true(symbol_of(libc->elf, "malloc"));
	assert_ptr_equal(mw_modules_find(modules, libc->bias + symbol_of(libc->elf, "malloc")), libc);
	assert_non_null(find_path(modules, "/ld-"));
	vdso = find_path(modules, "[vdso]");
	assert_non_null(vdso);
	assert_non_null(vdso->elf);
	assert_int_equal(vdso->elf->machine, program->elf->machine);
	assert_true(symbol_of(vdso->elf, "__vdso_clock_gettime") || symbol_of(vdso->elf, "__kernel_clock_gettime"));
	assert_null(mw_modules_find(modules, 0));
	assert_null(mw_modules_find(modules, UINT64_MAX));
	assert_null(mw_modules_get(modules, (uint32_t)mw_modules_count(modules)));
	child_refresh(&child, modules, &added, &removed);
	assert_int_equal(added, 0);
	assert_int_equal(removed, 0);
	child_end(&child);
	mw_modules_destroy(modules);
	mw_modules_destroy(NULL);
}

/* A gone module keeps its number; the same file again is a new one, with the image that is open already. */
static void follows_loading(void **state)
{
	struct child child;
	struct mw_modules *modules = NULL;
	struct mw_module *first = NULL, *second;
	size_t added, removed;

	(void)state;
	assert_null(mw_modules_create(&modules));
	assert_true(child_start(&child, SAMPLE_CHILD, NULL, NULL));
	(void)child_program(&child, modules);
	for (int i = 0; i < 3; i++) {
		child_tell(&child, "open", SAMPLE_GNU);
		child_refresh(&child, modules, &added, &removed);
		assert_int_equal(added, 1);
		assert_int_equal(removed, 0);
		second = mw_modules_get(modules, (uint32_t)mw_modules_count(modules) - 1);
		assert_string_equal(second->path, SAMPLE_GNU);
		assert_non_null(second->elf);
		assert_ptr_equal(mw_modules_find(modules, second->bias + symbol_of(second->elf, "sample_other")),
				 second);
		if (first)
			assert_ptr_equal(first->elf, second->elf);
		first = second;
		child_tell(&child, "close", "");
		child_refresh(&child, modules, &added, &removed);
		assert_int_equal(added, 0);
		assert_int_equal(removed, 1);
		assert_true(first->gone);
		assert_null(mw_modules_find(modules, first->bias + symbol_of(first->elf, "sample_other")));
	}
	child_end(&child);
	mw_modules_destroy(modules);
}

/* The file is also mapped whole, as data; and the program's text is split in three mappings. */
static void is_not_confused_by_mappings(void **state)
{
	struct child child;
	struct mw_modules *modules = NULL;
	struct mw_module *program;
	uint64_t bias;
	mw_addr start, end;
	size_t added, removed;

	(void)state;
	assert_null(mw_modules_create(&modules));
	assert_true(child_start(&child, SAMPLE_CHILD, NULL, NULL));
	program = child_program(&child, modules);
	bias = program->bias;
	start = program->start;
	end = program->end;
	child_tell(&child, "map", SAMPLE_CHILD);
	child_tell(&child, "map", SAMPLE_GNU);
	child_tell(&child, "split", "");
	child_refresh(&child, modules, &added, &removed);
	assert_int_equal(added, 0);
	assert_int_equal(removed, 0);
	assert_ptr_equal(child_program(&child, modules), program);
	assert_int_equal(program->bias, bias);
	assert_int_equal(program->start, start);
	assert_int_equal(program->end, end);
	child_tell(&child, "open", SAMPLE_GNU);
	child_refresh(&child, modules, &added, &removed);
	assert_int_equal(added, 1);
	child_end(&child);
	mw_modules_destroy(modules);
}

static void tells_missing_modules(void **state)
{
	struct child child;
	struct mw_modules *modules = NULL;
	struct mw_maps none = {0};
	size_t added, removed, count;

	(void)state;
	assert_null(mw_modules_create(&modules));
	assert_true(child_start(&child, SAMPLE_CHILD, NULL, NULL));
	(void)child_program(&child, modules);
	count = mw_modules_count(modules);
	assert_null(mw_modules_refresh(modules, child.pid, &none, &added, &removed));
	assert_int_equal(removed, count);
	assert_null(mw_modules_find(modules, child.function));
	assert_int_equal(mw_modules_count(modules), count);
	child_end(&child);
	mw_modules_destroy(modules);
}

/* Made-up mappings of files that are no ELF files, that don't exist, and that no segment fits. */
static void lists_what_cannot_be_opened(void **state)
{
	static const char text[] = "10000-11000 r-xp 00000000 00:01 7 /no/such/file (deleted)\n"
				   "12000-13000 r-xp 00005000 00:01 7 /no/such/file (deleted)\n"
				   "20000-21000 r-xp 00000000 00:00 0 \n"
				   "30000-31000 r-xp 00000000 00:01 9 /dev/zero\n"
				   "40000-41000 r-xp 00000000 00:00 0 [vdso]\n"
				   "50000-51000 rw-p 00000000 00:01 8 /no/code\n";
	struct mw_modules *modules = NULL;
	struct mw_maps maps = {0};
	size_t added, removed;

	(void)state;
	assert_null(mw_maps_parse(text, sizeof(text) - 1, false, &maps));
	assert_null(mw_modules_create(&modules));
	assert_null(mw_modules_refresh(modules, getpid(), &maps, &added, &removed));
	assert_int_equal(added, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_null(mw_modules_get(modules, i)->elf);
		assert_non_null(mw_modules_get(modules, i)->why);
	}
	assert_int_equal(mw_modules_find(modules, 0x12fff)->number, 0);
	assert_int_equal(mw_modules_get(modules, 0)->end, 0x13000);
	assert_true(mw_modules_get(modules, 0)->deleted);
	assert_null(mw_modules_find(modules, 0x11000));
	assert_null(mw_modules_find(modules, 0x20000));
	assert_null(mw_modules_find(modules, 0x50000));
	mw_maps_deinit(&maps);
	mw_modules_destroy(modules);
}

UNIT_GROUP(modules)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_program_and_libraries), cmocka_unit_test(follows_loading),
		cmocka_unit_test(is_not_confused_by_mappings), cmocka_unit_test(tells_missing_modules),
		cmocka_unit_test(lists_what_cannot_be_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
