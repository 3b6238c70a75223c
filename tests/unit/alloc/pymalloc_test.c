// SPDX-License-Identifier: MIT
/* pymalloc_test.c: the functions of CPython's allocator and the pointers to them, in this program, which has such. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "alloc/pymalloc.h"
#include "symbol/elf_image.h"
#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

extern int _PyRuntime; // NOLINT(bugprone-reserved-identifier): as CPython calls it
int _PyRuntime = 1;    // NOLINT(bugprone-reserved-identifier)

/* Each is a function of its own. */
#define FUNCTION(name, number)                                                                                         \
	static __attribute__((noinline)) void *name(void *context)                                                     \
	{                                                                                                              \
		__asm__ volatile("" : "+r"(context) : "i"(number));                                                    \
		return context;                                                                                        \
	}
FUNCTION(raw_malloc, 1)
FUNCTION(raw_calloc, 2)
FUNCTION(raw_realloc, 3)
FUNCTION(raw_free, 4)
FUNCTION(py_malloc, 5)
FUNCTION(py_calloc, 6)
FUNCTION(py_realloc, 7)
FUNCTION(py_free, 8)
FUNCTION(other_malloc, 9)

typedef void *function(void *context);
struct domain {
	char letter;
	void *context;
	function *functions[MW_PYMALLOC_FUNCTIONS];
};
#define RAW                                                                                                            \
	{                                                                                                              \
		raw_malloc, raw_calloc, raw_realloc, raw_free                                                          \
	}
#define OBJ                                                                                                            \
	{                                                                                                              \
		py_malloc, py_calloc, py_realloc, py_free                                                              \
	}

static struct {
	struct domain debug[3];
	uint64_t between;
	struct domain current[2]; /* as it may be set: with a context, or not */
} allocators = {.between = 1};    /* not among what begins as zeros */

static void set_up(void)
{
	allocators = (typeof(allocators)){
		{{'r', NULL, RAW}, {'m', NULL, OBJ}, {'o', NULL, OBJ}}, 1, {{'x', NULL, OBJ}, {'y', &allocators, OBJ}}};
}

static bool read_own(void *context, mw_addr addr, void *out, size_t size)
{
	/* By the kernel, as a process is read: a data segment has red zones under the sanitizer. */
	struct iovec to = {out, size};
	struct iovec from = {(void *)(uintptr_t)addr, size}; // NOLINT(performance-no-int-to-ptr)

	(void)context;
	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)size;
}

static bool find_runtime(void *context, const struct mw_elf_symbol *symbol)
{
	if (strcmp(symbol->name, "_PyRuntime") == 0)
		*(uint64_t *)context = symbol->vaddr;
	return true;
}

static bool find(struct mw_pymalloc *out, mw_addr *bias)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct mw_elf *elf = NULL;
	uint64_t vaddr = 0;
	bool found = false;

	assert_null(mw_elf_open(fd, "self", &elf));
	close(fd);
	assert_null(mw_elf_each_symbol(elf, find_runtime, &vaddr));
	assert_true(mw_pymalloc_may_be_in(elf));
	*bias = (mw_addr)(uintptr_t)&_PyRuntime - vaddr;
	assert_null(mw_pymalloc_find(elf, *bias, read_own, NULL, out, &found));
	mw_elf_unref(elf);
	return found;
}

static void finds_functions(void **state)
{
	static function *const expected[] = OBJ;
	struct mw_pymalloc found;
	size_t pointers = 0;
	mw_addr bias;

	(void)state;
	set_up();
	assert_true(find(&found, &bias));
	assert_null(found.missing);
	for (size_t i = 0; i < MW_PYMALLOC_FUNCTIONS; i++) {
		assert_int_equal(found.functions[i].vaddr + bias, (uintptr_t)expected[i]);
		assert_true(found.functions[i].size > 0);
	}
	assert_string_equal(found.functions[3].entry->name, "PyObject_Free");
	for (size_t i = 0; i < found.pointer_count; i++) {
		mw_addr addr = found.pointers[i].addr;

		if (addr >= (uintptr_t)&allocators && addr < (uintptr_t)(&allocators + 1)) {
			pointers++;
			assert_ptr_equal(*(function *const *)(uintptr_t)addr, expected[found.pointers[i].function]);
		}
	}
	assert_int_equal(pointers, 4 * MW_PYMALLOC_FUNCTIONS);
}

/* Pointers that lead to another entry are those of the function. */
static void finds_what_was_led_elsewhere(void **state)
{
	struct mw_pymalloc found, again;
	mw_addr bias;

	(void)state;
	set_up();
	assert_true(find(&found, &bias));
	for (size_t i = 0; i < MW_PYMALLOC_FUNCTIONS; i++)
		for (size_t j = 1; j < 3 && found.others[i]; j++)
			allocators.debug[j].functions[i] = (function *)(uintptr_t)(found.others[i] + bias);
	assert_true(find(&again, &bias));
	assert_null(again.missing);
	assert_int_equal(again.pointer_count, found.pointer_count);
	for (size_t i = 0; i < MW_PYMALLOC_FUNCTIONS; i++)
		assert_int_equal(again.functions[i].vaddr, found.functions[i].vaddr);
}

static void refuses_mimalloc(void **state)
{
	struct mw_pymalloc found;
	mw_addr bias;

	(void)state;
	set_up();
	allocators.debug[1].functions[0] = other_malloc;
	assert_true(find(&found, &bias));
	assert_non_null(strstr(found.missing, "free-threaded"));
}

static void finds_none(void **state)
{
	static function *const raw[] = RAW;
	struct mw_pymalloc found;
	mw_addr bias;

	(void)state;
	/* Built without it. */
	set_up();
	for (size_t i = 1; i < 3; i++)
		memcpy(allocators.debug[i].functions, raw, sizeof(raw));
	assert_false(find(&found, &bias));
	/* Not relocated yet. */
	memset(allocators.debug, 0, sizeof(allocators.debug));
	assert_false(find(&found, &bias));
	/* No code. */
	set_up();
	allocators.debug[2].functions[3] = (function *)(uintptr_t)&allocators;
	assert_false(find(&found, &bias));
}

UNIT_GROUP(pymalloc)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_functions),
		cmocka_unit_test(finds_what_was_led_elsewhere),
		cmocka_unit_test(refuses_mimalloc),
		cmocka_unit_test(finds_none),
	};

	return cmocka_run_group_tests_name("pymalloc", tests, NULL, NULL);
}
