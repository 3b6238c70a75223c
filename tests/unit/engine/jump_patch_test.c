// SPDX-License-Identifier: MIT
/* jump_patch_test.c: a jump is written only where the code still is that it was planned for. */
#include "engine/jump/jump.h"

#include "proc/maps.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct jump_process process;
static struct mw_maps maps;
static struct jump_patch patch;
static struct mw_mapping *mapping; /* that holds the function */

static void planned(void)
{
}

static int setup(void **state)
{
	(void)state;
	process.pid = getpid();
	assert_null(mw_maps_read(getpid(), &maps));
	assert_null(mw_modules_create(&process.survey.modules));
	assert_null(mw_modules_refresh(process.survey.modules, getpid(), &maps, NULL, NULL));
	patch.addr = patch.detour.at = (mw_addr)(uintptr_t)planned;
	patch.module = mw_modules_find(process.survey.modules, patch.addr)->number;
	patch.detour.length = 1;
	patch.size = 1;
	for (size_t i = 0; i < maps.count; i++)
		if (patch.addr >= maps.items[i].start && patch.addr < maps.items[i].end)
			mapping = &maps.items[i];
	return mapping ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	mw_maps_deinit(&maps);
	mw_modules_destroy(process.survey.modules);
	return 0;
}

static bool is_in_place(void)
{
	return jump_patch_in_place(&process, &patch, &maps);
}

static void test_another_file(void **state)
{
	struct mw_mapping was = *mapping;

	(void)state;
	assert_true(is_in_place());
	mapping->inode++;
	assert_false(is_in_place());
	*mapping = was;
	mapping->minor++;
	assert_false(is_in_place());
	*mapping = was;
	mapping->major++;
	assert_false(is_in_place());
	*mapping = was;
	/* The same file, but another part of it. */
	mapping->offset += 4096;
	assert_false(is_in_place());
	*mapping = was;
	assert_true(is_in_place());
}

static void test_no_code(void **state)
{
	struct mw_mapping was = *mapping;

	(void)state;
	mapping->exec = false;
	assert_false(is_in_place());
	*mapping = was;
	patch.detour.length = (uint8_t)(mapping->end - patch.addr < 32 ? mapping->end - patch.addr : 32);
	assert_true(is_in_place());
	mapping->end = patch.addr + patch.detour.length - 1u;
	assert_false(is_in_place());
	*mapping = was;
	mapping->end = patch.addr;
	assert_false(is_in_place());
	*mapping = was;
	patch.detour.length = 1;
	mw_modules_get(process.survey.modules, patch.module)->gone = true;
	assert_false(is_in_place());
	mw_modules_get(process.survey.modules, patch.module)->gone = false;
	assert_true(is_in_place());
}

/* Pages of no file: the code itself tells. */
static void test_moved_code(void **state)
{
	struct mw_module *module = mw_modules_get(process.survey.modules, patch.module);
	struct mw_mapping was = *mapping;

	(void)state;
	mapping->inode = 0;
	patch.size = patch.detour.length = 16;
	assert_true(is_in_place());
	/* As if other code of the file's were expected there. */
	module->bias -= 16;
	assert_false(is_in_place());
	module->bias += 16;
	*mapping = was;
}

UNIT_GROUP(jump_patch)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_another_file), cmocka_unit_test(test_no_code),
					   cmocka_unit_test(test_moved_code)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
