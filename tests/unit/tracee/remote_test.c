// SPDX-License-Identifier: MIT
/* remote_test.c: another process's memory: across pages, up to its ends, into what it may not write itself. */

#include "tracee/tracee.h"
#include "tracee_child.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE  4096u
#define PAGES 80u /* more than one call takes at once */

/* PAGES readable pages before one that is not. */
static uint8_t *area;

static int make_area(void **state)
{
	(void)state;
	area = mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(area != MAP_FAILED);
	for (size_t i = 0; i < PAGES * PAGE; i++)
		area[i] = (uint8_t)(i * 7 + i / PAGE);
	assert_int_equal(mprotect(area + PAGES * PAGE, PAGE, PROT_NONE), 0);
	return 0;
}

static int drop_area(void **state)
{
	(void)state;
	return munmap(area, (PAGES + 1) * PAGE);
}

static mw_addr at(size_t offset)
{
	return (mw_addr)(uintptr_t)area + offset;
}

static void reads_up_to_the_end(void **state)
{
	static const size_t starts[] = {
		0, 1, PAGE - 1, PAGE, 31 * PAGE + 5, 32 * PAGE, 63 * PAGE - 3, PAGES * PAGE - 1};
	static const size_t sizes[] = {
		0, 1, 8, PAGE, PAGE + 1, 32 * PAGE, 32 * PAGE + 1, 64 * PAGE, (PAGES + 1) * PAGE};
	pid_t pid = child_start(child_sleep, NULL);
	uint8_t *out = malloc((PAGES + 1) * PAGE);

	(void)state;
	assert_non_null(out);
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		for (size_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
			size_t left = PAGES * PAGE - starts[i];
			size_t expected = sizes[j] < left ? sizes[j] : left;
			struct mw_error *err;

			memset(out, 0, (PAGES + 1) * PAGE);
			assert_int_equal(mw_remote_read(pid, at(starts[i]), out, sizes[j]), expected);
			assert_memory_equal(out, area + starts[i], expected);
			err = mw_remote_read_all(pid, at(starts[i]), out, sizes[j]);
			if (expected == sizes[j])
				FINE(err);
			else
				assert_int_equal(mw_error_kind(err), MW_ERROR_DATA);
			mw_error_destroy(err);
		}
	}
	free(out);
	child_kill(pid);
}

static void what_is_not_there_is_not_read(void **state)
{
	pid_t pid = child_start(child_sleep, NULL);
	uint8_t byte[16] = {0x55};

	(void)state;
	assert_int_equal(mw_remote_read(pid, 0, byte, 1), 0);
	assert_int_equal(mw_remote_read(pid, at(PAGES * PAGE), byte, 1), 0);
	assert_int_equal(mw_remote_read(pid, UINT64_MAX, byte, 1), 0);
	assert_int_equal(mw_remote_read(pid, UINT64_MAX - 3, byte, 16), 0);
	assert_int_equal(mw_remote_read(pid, at(0), byte, SIZE_MAX), 0);
	assert_int_equal(byte[0], 0x55);
	child_kill(pid);
	assert_int_equal(mw_remote_read(pid, at(0), byte, 1), 0);
}

/* Every position in a word, lengths over several, and into pages that are read-only. */
static void pokes_unaligned(void **state)
{
	pid_t pid;
	uint8_t now[64], model[64], bytes[32];

	(void)state;
	assert_int_equal(mprotect(area, PAGE, PROT_READ), 0);
	pid = child_start(child_sleep, NULL);
	child_stop(pid);
	memcpy(model, area + PAGE - 32, sizeof(model));
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(0xa0 + i);
	for (size_t start = 0; start < 24; start++) {
		for (size_t size = 0; size <= sizeof(bytes); size++) {
			bytes[0]++;
			FINE(mw_remote_poke(pid, at(PAGE - 32 + start), bytes, size));
			memcpy(model + start, bytes, size);
			FINE(mw_remote_read_all(pid, at(PAGE - 32), now, sizeof(now)));
			assert_memory_equal(now, model, sizeof(now));
		}
	}
	child_kill(pid);
	assert_int_equal(mprotect(area, PAGE, PROT_READ | PROT_WRITE), 0);
}

static void a_failed_poke_says_why(void **state)
{
	pid_t pid = child_start(child_sleep, NULL);
	struct mw_error *err;

	(void)state;
	child_stop(pid);
	err = mw_remote_poke(pid, 8, "x", 1);
	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_SYSTEM);
	assert_non_null(strstr(mw_error_text(err), "0x8 "));
	mw_error_destroy(err);
	child_kill(pid);
}

/* A thread that can't be stopped is no reason to leave something behind in its text. */
static void pokes_without_a_stop(void **state)
{
	pid_t pid = child_start(child_sleep, NULL);
	struct mw_error *err = mw_remote_poke(pid, at(0), "x", 1);
	char now = 0;

	(void)state;
	if (err) {
		/* Where the kernel forbids it, it says so. */
		assert_int_equal(mw_error_kind(err), MW_ERROR_GONE);
		mw_error_destroy(err);
	} else {
		assert_int_equal(mw_remote_read(pid, at(0), &now, 1), 1);
		assert_int_equal(now, 'x');
	}
	child_kill(pid);
}

UNIT_GROUP(remote)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_up_to_the_end),  cmocka_unit_test(what_is_not_there_is_not_read),
		cmocka_unit_test(pokes_unaligned),      cmocka_unit_test(a_failed_poke_says_why),
		cmocka_unit_test(pokes_without_a_stop),
	};

	return cmocka_run_group_tests(tests, make_area, drop_area);
}
