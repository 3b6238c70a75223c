// SPDX-License-Identifier: MIT
/* jump_rows_test.c: the unwind rows of a file are compiled once for all processes that have it mapped, and written for each
 * process with the numbers of its own dictionary. */
#include "engine/jump/jump.h"

#include "proc/maps.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* Two that are watched, of which each is the test's own process. */
static struct jump_process one, other;
static struct mw_maps maps;

static void begin(struct jump_process *process)
{
	struct mw_shared_memory *memory = &process->recorder.memory;
	uint64_t bytes = 0;

	memset(process, 0, sizeof(*process));
	process->survey.arch = mw_arch_find(mw_target_machine());
	assert_null(mw_modules_create(&process->survey.modules));
	assert_null(mw_modules_refresh(process->survey.modules, getpid(), &maps, NULL, NULL));
	assert_null(jump_rows_compile(process, &bytes));
	jump_geometry_plan(&process->recorder.shared.geometry, 1, 16, bytes, false, false, false);
	memory->size = process->recorder.shared.geometry.size;
	memory->fd = memfd_create("rows", MFD_CLOEXEC);
	assert_true(memory->fd >= 0);
	assert_int_equal(ftruncate(memory->fd, (off_t)memory->size), 0);
	memory->here = mmap(NULL, memory->size, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
	assert_ptr_not_equal(memory->here, MAP_FAILED);
	process->recorder.shared.base = memory->here;
}

static void end(struct jump_process *process)
{
	mw_shared_memory_close(&process->recorder.memory);
	mw_row_dictionary_deinit(&process->rows.dictionary);
	free(process->rows.items);
	free(process->rows.index);
	mw_modules_destroy(process->survey.modules);
}

static int setup(void **state)
{
	(void)state;
	assert_null(mw_maps_read(getpid(), &maps));
	begin(&one);
	begin(&other);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	end(&one);
	end(&other);
	mw_maps_deinit(&maps);
	return 0;
}

static bool is_vdso(const struct mw_module *module)
{
	return strcmp(module->path, "[vdso]") == 0;
}

static void compiles_once(void **state)
{
	const struct mw_module *module;
	size_t shared = 0;

	(void)state;
	for (uint32_t i = 0; (module = mw_modules_next(one.survey.modules, &i));) {
		const struct jump_module_rows *rows = &one.rows.items[module->number];

		assert_non_null(rows->compiled);
		if (!is_vdso(module))
			assert_ptr_equal(rows->compiled, other.rows.items[module->number].compiled);
		shared += rows->compiled->rows.count > 0;
	}
	assert_true(shared > 1);
}

/* What was published says the same as what was compiled. */
static void check_published(const struct jump_process *process, const struct mw_module *module)
{
	const struct mw_file_rows *file;

	assert_null(mw_file_rows_get(module->elf, process->survey.arch, &file));
	for (size_t i = 0; i < file->rows.count; i++) {
		uint64_t vaddr = file->rows.base + file->rows.items[i].pc;
		mw_addr pc = vaddr + module->bias + 1;

		if (mw_modules_find(process->survey.modules, pc - 1) == module)
			assert_int_equal(jump_rows_find(process, pc),
					 mw_rows_find(&file->rows, &file->dictionary, vaddr));
	}
}

static void publishes_in_its_own_numbers(void **state)
{
	const struct mw_module *module;
	uint32_t index;

	(void)state;
	/* Its numbers are others. */
	mw_row_dictionary_deinit(&other.rows.dictionary);
	assert_null(mw_row_dictionary_add(&other.rows.dictionary, mw_row(MW_ROW_SP, 12345, MW_ROW_FP_SAME, 0), &index));
	assert_null(jump_rows_publish(&one, &maps, false));
	assert_null(jump_rows_publish(&other, &maps, false));
	for (uint32_t i = 0; (module = mw_modules_next(one.survey.modules, &i));)
		check_published(&one, module);
	for (uint32_t i = 0; (module = mw_modules_next(other.survey.modules, &i));)
		check_published(&other, module);
}

/* Who alone has a file keeps no second copy of what was published. */
#define TAKEN 64

static void keeps_what_others_have(void **state)
{
	void *taken[TAKEN];
	const struct mw_file_rows *compiled = NULL, *again;
	const struct mw_module *module;
	uint32_t number;

	(void)state;
	for (uint32_t i = 0; !compiled && (module = mw_modules_next(one.survey.modules, &i));)
		if (!is_vdso(module))
			compiled = one.rows.items[module->number].compiled;
	assert_non_null(compiled);
	assert_null(jump_rows_publish(&one, &maps, false));
	assert_null(mw_file_rows_get(module->elf, one.survey.arch, &again));
	assert_ptr_equal(again, compiled);
	number = module->number;
	end(&one);
	module = mw_modules_get(other.survey.modules, number);
	assert_int_equal(module->elf->references, 1);
	assert_ptr_equal(other.rows.items[number].compiled, compiled);
	assert_null(jump_rows_publish(&other, &maps, false));
	assert_null(other.rows.items[number].compiled);
	/* So that what is compiled again does not lie where that was. */
	for (size_t i = 0; i < TAKEN; i++)
		taken[i] = malloc(sizeof(*compiled));
	assert_null(mw_file_rows_get(module->elf, one.survey.arch, &again));
	for (size_t i = 0; i < TAKEN; i++)
		free(taken[i]);
	assert_ptr_not_equal(again, compiled);
	begin(&one);
}

/* The code that was published of the place, or NULL. */
static const struct mw_ring_code *published_at(const struct jump_process *process, mw_addr at)
{
	const struct mw_ring_control *control = (const void *)process->recorder.shared.base;
	const struct mw_ring_index *index = (const void *)(process->recorder.shared.base + control->index);

	for (uint64_t i = 0; i < index->count; i++)
		if (at >= index->code[i].start && at < index->code[i].end)
			return &index->code[i];
	return NULL;
}

/* In a process that makes code, memory beside code counts as code, as it may become that; what is new is found. */
static void publishes_made_code(void **state)
{
	struct mw_ring_control *control = (void *)one.recorder.shared.base;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory = mmap(NULL, 5 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mw_addr second = (mw_addr)(uintptr_t)memory + page;
	uint32_t generation;

	(void)state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(mprotect(memory + 2 * page, page, PROT_READ | PROT_EXEC), 0);
	assert_null(jump_rows_publish(&one, &maps, false));
	mw_maps_deinit(&maps);
	assert_null(mw_maps_read(getpid(), &maps));
	assert_null(jump_rows_publish(&one, &maps, false));
	assert_null(published_at(&one, second));
	assert_int_equal(mw_row_kind(published_at(&one, second + page)->whole), MW_ROW_FOREIGN);
	jump_rows_met(&one, second + 1);
	assert_false(one.rows.stale);

	one.rows.items[0].generated = (struct mw_generated_code){.end = 1};
	jump_rows_met(&one, second + page + 1);
	assert_false(one.rows.stale);
	jump_rows_met(&one, second + 1);
	assert_true(one.rows.stale);
	generation = control->generation;
	one.pid = getpid();
	assert_null(jump_rows_look(&one));
	assert_false(one.rows.stale);
	assert_int_equal(control->generation, generation + 1);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(published_at(&one, second + i * page)->whole, mw_row_generated());
	assert_null(jump_rows_look(&one));
	assert_int_equal(control->generation, generation + 1);
	munmap(memory, 5 * page);
}

UNIT_GROUP(jump_rows)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(compiles_once, setup, teardown),
		cmocka_unit_test_setup_teardown(publishes_in_its_own_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(keeps_what_others_have, setup, teardown),
		cmocka_unit_test_setup_teardown(publishes_made_code, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
