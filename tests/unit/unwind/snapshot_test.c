// SPDX-License-Identifier: MIT
/* snapshot_test.c: what is seen of a stack through its copy. The process looked at is the test's own. */
#include "unwind/snapshot.h"

#include "proc/peek.h"
#include "unit.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE  4096u
#define PAGES 20u /* more than a snapshot holds */

#define USER_MODE_ONLY 1 /* of userfaultfd: Linux 5.11 */

static uint8_t *area;
static struct mw_snapshot snapshot;

static int make_area(void **state)
{
	(void)state;
	area = mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(area != MAP_FAILED);
	for (size_t i = 0; i < PAGES * PAGE; i++)
		area[i] = (uint8_t)(i * 7 + i / PAGE);
	return mprotect(area + PAGES * PAGE, PAGE, PROT_NONE);
}

static mw_addr at(size_t offset)
{
	return (mw_addr)(uintptr_t)area + offset;
}

static bool look(size_t offset, void *out, size_t size)
{
	struct mw_memory_view view = mw_snapshot_view(&snapshot);

	return view.read(view.context, at(offset), out, size);
}

static uint64_t word(size_t offset)
{
	uint64_t value = 0;

	assert_true(look(offset, &value, sizeof(value)));
	return value;
}

static uint64_t truth(size_t offset)
{
	uint64_t value;

	memcpy(&value, area + offset, sizeof(value));
	return value;
}

/* In the copy, behind it, before it, and where nothing is. */
static void reads_everywhere(void **state)
{
	static const size_t sizes[] = {0, 8, 100, PAGE, 3 * PAGE + 5, PAGES * PAGE, SIZE_MAX};
	uint8_t out[64];

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		mw_snapshot_take(&snapshot, getpid(), at(PAGE + 40), sizes[i]);
		assert_true(snapshot.size <= MW_SNAPSHOT_CAPACITY);
		for (size_t offset = 0; offset + sizeof(out) <= PAGES * PAGE; offset += 1 + offset % 61 * 7) {
			assert_true(look(offset, out, sizeof(out)));
			assert_memory_equal(out, area + offset, sizeof(out));
		}
		assert_false(look(PAGES * PAGE, out, 1));
		assert_false(look(PAGES * PAGE - 8, out, 9));
		assert_true(look(PAGES * PAGE - 8, out, 8));
		assert_false(look(SIZE_MAX - (size_t)at(0) - 3, out, 16));
	}
}

/* What has been copied stays as it was, however the process goes on; so does what it is lengthened by, from then on. */
static void is_a_copy(void **state)
{
	uint64_t inside = truth(PAGE), beyond = truth(2 * PAGE);

	(void)state;
	mw_snapshot_take(&snapshot, getpid(), at(0), PAGE + 8);
	assert_int_equal(snapshot.size, PAGE + 8);
	area[PAGE] ^= 0xff;
	assert_int_equal(word(PAGE), inside);
	assert_int_equal(snapshot.highest, at(PAGE + 8));
	assert_int_equal(word(2 * PAGE), beyond);
	assert_true(snapshot.size >= 2 * PAGE + 8);
	area[2 * PAGE] ^= 0xff;
	assert_int_equal(word(2 * PAGE), beyond);
	/* The part that is not to be read twice has not been read anew. */
	assert_int_equal(word(PAGE), inside);
	assert_int_equal(snapshot.highest, at(2 * PAGE + 8));
	assert_int_equal(word(8), truth(8));
	assert_int_equal(snapshot.highest, at(2 * PAGE + 8));
	area[PAGE] ^= 0xff;
	area[2 * PAGE] ^= 0xff;
}

static void ends_where_memory_ends(void **state)
{
	uint64_t value;

	(void)state;
	mw_snapshot_take(&snapshot, getpid(), at(PAGES * PAGE - 24), 8);
	assert_int_equal(word(PAGES * PAGE - 8), truth(PAGES * PAGE - 8));
	assert_int_equal(snapshot.size, 24);
	assert_false(look(PAGES * PAGE - 4, &value, sizeof(value)));
	mw_snapshot_take(&snapshot, getpid(), at(PAGES * PAGE), 4096);
	assert_int_equal(snapshot.size, 0);
	assert_false(look(PAGES * PAGE, &value, sizeof(value)));
	mw_snapshot_take(&snapshot, getpid(), 0, 4096);
	assert_int_equal(snapshot.size, 0);
}

static bool ends_at(pid_t pid, size_t offset)
{
	struct mw_memory_view view = mw_snapshot_view(&snapshot);

	snapshot.tid = pid;
	return view.ends(view.context, at(offset));
}

/* What can't be read for another reason may be there. */
static void ends_only_for_certain(void **state)
{
	pid_t child;
	int status, provider;

	(void)state;
	mw_snapshot_take(&snapshot, getpid(), at(0), 8);
	assert_false(ends_at(getpid(), PAGES * PAGE - 1));
	assert_true(ends_at(getpid(), PAGES * PAGE));
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_false(ends_at(child, PAGES * PAGE));
	provider = (int)syscall(SYS_userfaultfd, O_CLOEXEC | USER_MODE_ONLY);
	if (provider < 0)
		return; /* kernels may lack it */
	mw_peek_hold(getpid());
	assert_true(mw_peek_is_careful());
	assert_false(ends_at(getpid(), PAGES * PAGE));
	mw_peek_let_go(getpid());
	close(provider);
	assert_true(ends_at(getpid(), PAGES * PAGE));
}

static void overrides_show_the_true_value(void **state)
{
	uint8_t out[32], expected[32];
	uint64_t true_value = 0x1122334455667788u;

	(void)state;
	mw_snapshot_take(&snapshot, getpid(), at(0), 256);
	mw_snapshot_override(&snapshot, at(64), truth(64), true_value);
	assert_int_equal(word(64), true_value);
	assert_int_equal(word(56), truth(56));
	assert_int_equal(word(72), truth(72));
	/* In the midst of a longer read, at its start and at its end. */
	for (size_t start = 40; start <= 64; start += 8) {
		memcpy(expected, area + start, sizeof(expected));
		memcpy(expected + (64 - start), &true_value, 8);
		assert_true(look(start, out, sizeof(out)));
		assert_memory_equal(out, expected, sizeof(out));
	}
	/* Reads of parts of it are no return addresses. */
	assert_true(look(60, out, 8));
	assert_memory_equal(out, area + 60, 8);
	assert_true(look(65, out, 8));
	assert_memory_equal(out, area + 65, 8);
	assert_true(look(64, out, 4));
	assert_memory_equal(out, area + 64, 4);
	/* What no longer stands there is not replaced. */
	mw_snapshot_override(&snapshot, at(80), truth(80) + 1, true_value);
	assert_int_equal(word(80), truth(80));
	/* Outside of the copy as well. */
	mw_snapshot_take(&snapshot, getpid(), at(PAGE), 8);
	assert_int_equal(word(64), truth(64));
	mw_snapshot_override(&snapshot, at(64), truth(64), true_value);
	mw_snapshot_override(&snapshot, at(3 * PAGE), truth(3 * PAGE), true_value + 1);
	assert_int_equal(word(64), true_value);
	assert_int_equal(word(3 * PAGE), true_value + 1);
	/* No more than there is room for. */
	for (size_t i = 0; i < 2 * MW_SNAPSHOT_OVERRIDES; i++)
		mw_snapshot_override(&snapshot, at(PAGE + 8 * i), truth(PAGE + 8 * i), i);
	assert_int_equal(snapshot.override_count, MW_SNAPSHOT_OVERRIDES);
	assert_int_equal(word(PAGE), 0);
	assert_int_equal(word(PAGE + 8 * MW_SNAPSHOT_OVERRIDES), truth(PAGE + 8 * MW_SNAPSHOT_OVERRIDES));
}

UNIT_GROUP(snapshot)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_everywhere),
		cmocka_unit_test(is_a_copy),
		cmocka_unit_test(ends_where_memory_ends),
		cmocka_unit_test(ends_only_for_certain),
		cmocka_unit_test(overrides_show_the_true_value),
	};

	return cmocka_run_group_tests(tests, make_area, NULL);
}
