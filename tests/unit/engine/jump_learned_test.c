// SPDX-License-Identifier: MIT
/* jump_learned_test.c: what is learned of code that nothing describes is bounded, and forgotten with its module. */
#include "engine/jump/jump.h"

#include "proc/maps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct jump_process process;

static int setup(void **state)
{
	struct mw_maps maps = {0};

	(void)state;
	memset(&process, 0, sizeof(process));
	assert_null(mw_maps_read(getpid(), &maps));
	assert_null(mw_modules_create(&process.survey.modules));
	assert_null(mw_modules_refresh(process.survey.modules, getpid(), &maps, NULL, NULL));
	assert_true(mw_modules_count(process.survey.modules) >= 2);
	mw_maps_deinit(&maps);
	jump_geometry_plan(&process.shared.geometry, 1, 16, 4096);
	process.shared.base = calloc(1, process.shared.geometry.size);
	assert_non_null(process.shared.base);
	jump_shared_format(&process.shared, 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mw_modules_destroy(process.survey.modules);
	free(process.shared.base);
	return 0;
}

/* The n-th pc in a module. */
static mw_addr pc_in(uint32_t module, uint64_t n)
{
	return mw_modules_get(process.survey.modules, module)->start + 100 + n;
}

static uint64_t word(uint32_t i)
{
	return ((const uint64_t *)(const void *)(process.shared.base + process.shared.geometry.learned))[i];
}

static void test_is_published(void **state)
{
	struct mw_ring_control *control = jump_control(&process.shared);
	uint32_t generation = control->generation;

	(void)state;
	assert_int_equal(control->learned, process.shared.geometry.learned);
	jump_learn(&process, pc_in(0, 0), false);
	assert_int_equal(control->learned_count, 1);
	assert_int_equal(word(0), pc_in(0, 0));
	assert_int_equal(control->generation, generation + 1);
	jump_learn(&process, pc_in(1, 0), true);
	assert_int_equal(word(1), pc_in(1, 0) | MW_RING_LEARNED_LOST);
	assert_int_equal(control->generation, generation + 2);
	/* Once is enough, and what is in no module is nothing. */
	jump_learn(&process, pc_in(1, 0), true);
	jump_learn(&process, 77, true);
	jump_learn(&process, 0, false);
	jump_learn(&process, UINT64_MAX, false);
	assert_int_equal(control->learned_count, 2);
	assert_int_equal(control->generation, generation + 2);
}

static void test_is_bounded(void **state)
{
	struct mw_ring_control *control = jump_control(&process.shared);
	uint32_t generation = control->generation;

	(void)state;
	for (uint64_t i = 0; i < 3 * MW_RING_LEARNED; i++)
		jump_learn(&process, pc_in(0, i), i % 2);
	assert_int_equal(control->learned_count, MW_RING_LEARNED);
	assert_int_equal(control->generation, generation + MW_RING_LEARNED);
	assert_int_equal(word(MW_RING_LEARNED), 0);
}

static void test_goes_with_its_module(void **state)
{
	struct mw_ring_control *control = jump_control(&process.shared);

	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		jump_learn(&process, pc_in((uint32_t)i % 2, i), false);
	jump_learned_tidy(&process);
	assert_int_equal(control->learned_count, 4);
	mw_modules_get(process.survey.modules, 0)->gone = true;
	/* The target may have written anything there: it is not asked. */
	control->learned_count = 1000;
	jump_learned_tidy(&process);
	assert_int_equal(control->learned_count, 2);
	assert_int_equal(word(0), pc_in(1, 1));
	assert_int_equal(word(1), pc_in(1, 3));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {T(test_is_published), T(test_is_bounded), T(test_goes_with_its_module)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
