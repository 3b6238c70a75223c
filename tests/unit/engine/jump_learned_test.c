// SPDX-License-Identifier: MIT
/* jump_learned_test.c: what is read off code that nothing describes is published, bounded, and forgotten with its
 * module. */
#include "engine/jump/jump.h"

#include "proc/maps.h"
#include "unit.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static struct jump_process process;

static int setup(void **state)
{
	struct mw_maps maps = {0};
	uint64_t size;

	(void)state;
	memset(&process, 0, sizeof(process));
	assert_null(mw_maps_read(getpid(), &maps));
	assert_null(mw_modules_create(&process.survey.modules));
	assert_null(mw_modules_refresh(process.survey.modules, getpid(), &maps, NULL, NULL));
	assert_true(mw_modules_count(process.survey.modules) >= 2);
	mw_maps_deinit(&maps);
	process.survey.arch = mw_arch_find(EM_X86_64);
	assert_null(mw_unwinder_libunwind(process.survey.modules, process.survey.arch, &process.inner));
	jump_geometry_plan(&process.recorder.shared.geometry, 1, 16, 4096, false, false, false);
	size = process.recorder.shared.geometry.size;
	process.recorder.memory = (struct mw_shared_memory){.size = size, .fd = memfd_create("test", MFD_CLOEXEC)};
	assert_int_equal(ftruncate(process.recorder.memory.fd, (off_t)size), 0);
	process.recorder.shared.base =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, process.recorder.memory.fd, 0);
	assert_ptr_not_equal(process.recorder.shared.base, MAP_FAILED);
	jump_shared_format(&process.recorder.shared, 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	jump_learned_deinit(&process.learned);
	mw_unwinder_destroy(process.inner);
	mw_modules_destroy(process.survey.modules);
	munmap(process.recorder.shared.base, process.recorder.memory.size);
	close(process.recorder.memory.fd);
	return 0;
}

/* The n-th pc in a module: what it begins with is no code. */
static mw_addr pc_in(uint32_t module, uint64_t n)
{
	return mw_modules_get(process.survey.modules, module)->start + 100 + n;
}

/* As the recorder finds it; 0: it does not. */
static uint64_t published(mw_addr pc)
{
	const struct mw_ring_cached_row *entries =
		(const void *)(process.recorder.shared.base + jump_control(&process.recorder.shared)->learned);

	for (uint32_t i = 0; i < MW_RING_PROBES; i++) {
		const struct mw_ring_cached_row *entry =
			&entries[(mw_ring_learned_first(pc) + i) & (MW_RING_LEARNED - 1)];

		if (!entry->tag && !entry->row)
			break;
		if ((entry->tag ^ entry->row) == pc)
			return entry->row;
	}
	return 0;
}

__attribute__((noinline)) static mw_addr returns_to(void)
{
	return (mw_addr)(uintptr_t)__builtin_return_address(0);
}

/* A return address in this function. */
__attribute__((noinline)) static mw_addr in_code(void)
{
	mw_addr volatile pc = returns_to();

	return pc;
}

static void test_is_published(void **state)
{
	struct mw_ring_control *control = jump_control(&process.recorder.shared);
	mw_addr pc = in_code();

	(void)state;
	assert_int_equal(control->learned, process.recorder.shared.geometry.learned);
	assert_int_equal(control->learned_any, 0);
	assert_int_equal(published(pc), 0);
	assert_int_equal(mw_row_kind(jump_learn(&process, pc)), MW_ROW_SP);
	assert_int_equal(published(pc), jump_learn(&process, pc));
	assert_int_equal(control->learned_any, 1);
	/* Where the code says nothing stacks end, broken. */
	assert_int_equal(mw_row_kind(jump_learn(&process, pc_in(1, 0))), MW_ROW_FOREIGN);
	assert_int_equal(mw_row_kind(published(pc_in(1, 0))), MW_ROW_FOREIGN);
	/* Once is enough, and what is in no module is nothing. */
	(void)jump_learn(&process, pc_in(1, 0));
	assert_int_equal(mw_row_kind(jump_learn(&process, 77)), MW_ROW_NONE);
	assert_int_equal(mw_row_kind(jump_learn(&process, 0)), MW_ROW_NONE);
	assert_int_equal(mw_row_kind(jump_learn(&process, UINT64_MAX)), MW_ROW_NONE);
	assert_int_equal(process.learned.count, 2);
}

/* What stands on a stack is learned beforehand: as far as is mapped, and whatever else is there. */
static void test_from_stacks(void **state)
{
	mw_addr words[] = {0, UINT64_MAX, in_code(), pc_in(1, 0), 77};
	mw_addr pointers[] = {(mw_addr)(uintptr_t)words, 0, UINT64_MAX & ~(mw_addr)7};

	(void)state;
	assert_int_equal(published(words[2]), 0);
	process.learned.stack_pointers = malloc(sizeof(pointers));
	assert_non_null(process.learned.stack_pointers);
	memcpy(process.learned.stack_pointers, pointers, sizeof(pointers));
	process.learned.stack_pointer_count = sizeof(pointers) / sizeof(pointers[0]);
	process.pid = getpid();
	jump_learn_from_stacks(&process);
	assert_int_equal(mw_row_kind(published(words[2])), MW_ROW_SP);
	/* No call is before it. */
	assert_int_equal(published(words[3]), 0);
}

static void test_later(void **state)
{
	mw_addr pc = in_code();

	(void)state;
	for (unsigned i = 0; i < 100000; i++)
		jump_learn_later(&process, i % 2 ? pc : 77);
	assert_true(process.learned.to_learn_count < 10000);
	while (process.learned.to_learn_count)
		jump_learn_some(&process);
	assert_int_equal(process.learned.count, 1);
	assert_int_equal(mw_row_kind(published(pc)), MW_ROW_SP);
}

static void test_is_bounded(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 2 * (uint64_t)MW_RING_LEARNED; i++)
		assert_int_not_equal(mw_row_kind(jump_learn(&process, pc_in(0, i))), MW_ROW_NONE);
	assert_true(process.learned.count < MW_RING_LEARNED);
	assert_int_equal(published(pc_in(0, process.learned.count + 1)), 0);
	assert_int_not_equal(published(pc_in(0, 0)), 0);
}

/* A row that has led to what nothing can have called is none. */
static void test_is_checked(void **state)
{
	mw_addr pc = in_code();
	struct mw_raw_frame frames[] = {{pc_in(0, 0), 0}, {pc, 0}, {pc, 0}, {pc_in(0, 5), 0}};
	uint32_t generation = jump_control(&process.recorder.shared)->generation;

	(void)state;
	assert_int_equal(jump_learned_check(&process, frames, 4), 4);
	(void)jump_learn(&process, pc);
	assert_int_equal(jump_learned_check(&process, frames, 3), 3);
	frames[3].module = MW_MODULE_NONE;
	assert_int_equal(jump_learned_check(&process, frames, 4), 4);
	assert_int_equal(mw_row_kind(published(pc)), MW_ROW_SP);
	assert_int_equal(jump_control(&process.recorder.shared)->generation, generation);
	frames[3].module = 0;
	assert_int_equal(jump_learned_check(&process, frames, 4), 3);
	assert_int_equal(mw_row_kind(published(pc)), MW_ROW_FOREIGN);
	assert_int_equal(mw_row_kind(jump_learn(&process, pc)), MW_ROW_FOREIGN);
	assert_int_equal(jump_control(&process.recorder.shared)->generation, generation + 1);
}

static void test_goes_with_its_module(void **state)
{
	struct mw_ring_control *control = jump_control(&process.recorder.shared);

	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		(void)jump_learn(&process, pc_in((uint32_t)i % 2, i));
	jump_learned_tidy(&process);
	assert_int_equal(process.learned.count, 4);
	mw_modules_get(process.survey.modules, 0)->gone = true;
	/* The target may have written anything there: it is not asked. */
	control->learned_any = 1000;
	memset(process.recorder.shared.base + control->learned, 0xa5,
	       MW_RING_LEARNED * sizeof(struct mw_ring_cached_row));
	jump_learned_tidy(&process);
	assert_int_equal(process.learned.count, 2);
	assert_int_equal(published(pc_in(0, 0)), 0);
	assert_int_equal(published(pc_in(0, 2)), 0);
	assert_int_not_equal(published(pc_in(1, 1)), 0);
	assert_int_not_equal(published(pc_in(1, 3)), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

UNIT_GROUP(jump_learned)
{
	const struct CMUnitTest tests[] = {T(test_is_published), T(test_from_stacks), T(test_later),
					   T(test_is_bounded),   T(test_is_checked),  T(test_goes_with_its_module)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
