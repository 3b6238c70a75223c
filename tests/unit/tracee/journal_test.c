// SPDX-License-Identifier: MIT
/* journal_test.c: what is written into a child's code comes out again, and nothing of anybody else's does. */
#include "tracee/journal.h"

#include "tracee/tracee.h"
#include "tracee_child.h"
#include "unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include <cmocka.h>

#define SIZE 8192u

/* Two pages of code, read-only as code is: fresh[i] = i * 13. Made here, so that the child has it at the same address.
 */
static uint8_t *code;
static uint8_t fresh[SIZE];

static int make_code(void **state)
{
	(void)state;
	for (size_t i = 0; i < SIZE; i++)
		fresh[i] = (uint8_t)(i * 13);
	code = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(code != MAP_FAILED);
	memcpy(code, fresh, SIZE);
	return mprotect(code, SIZE, PROT_READ | PROT_EXEC);
}

static mw_addr at(size_t offset)
{
	return (mw_addr)(uintptr_t)code + offset;
}

static pid_t stopped_child(int (*body)(void *context))
{
	pid_t pid = child_start(body, NULL);

	child_stop(pid);
	return pid;
}

static void assert_code(pid_t pid, const uint8_t *expected)
{
	uint8_t now[SIZE];

	FINE(mw_remote_read_all(pid, at(0), now, SIZE));
	assert_memory_equal(now, expected, SIZE);
}

static size_t plant(struct mw_journal *journal, pid_t pid, size_t offset, const char *bytes, size_t size)
{
	size_t number = SIZE_MAX;

	FINE(mw_journal_plant(journal, pid, at(offset), bytes, size, &number));
	assert_true(number < journal->count);
	assert_true(journal->items[number].standing);
	return number;
}

static void plants_and_restores(void **state)
{
	pid_t pid = stopped_child(child_sleep);
	struct mw_journal journal = {0};
	uint8_t expected[SIZE];
	size_t first, second, across;
	char longest[MW_OOL_MAX];

	(void)state;
	memset(longest, 0x90, sizeof(longest));
	memcpy(expected, fresh, SIZE);
	first = plant(&journal, pid, 3, "\xcc", 1);
	second = plant(&journal, pid, 4, "\xcc", 1);
	across = plant(&journal, pid, 4096 - 5, longest, sizeof(longest));
	expected[3] = expected[4] = 0xcc;
	memset(expected + 4096 - 5, 0x90, sizeof(longest));
	assert_code(pid, expected);
	FINE(mw_journal_restore(&journal, pid, first));
	expected[3] = fresh[3];
	assert_code(pid, expected);
	assert_false(journal.items[first].standing);
	assert_true(journal.items[second].standing);
	/* Twice does nothing more: the place may be another's by now. */
	FINE(mw_remote_poke(pid, at(3), "\xcc", 1));
	FINE(mw_journal_restore(&journal, pid, first));
	expected[3] = 0xcc;
	assert_code(pid, expected);
	FINE(mw_journal_restore(&journal, pid, across));
	FINE(mw_journal_rollback(&journal, pid));
	memcpy(expected, fresh, SIZE);
	expected[3] = 0xcc;
	assert_code(pid, expected);
	mw_journal_deinit(&journal);
	child_kill(pid);
}

/* Patches over patches come off in reverse, else the older one's bytes would stay. */
static void rolls_back_newest_first(void **state)
{
	pid_t pid = stopped_child(child_sleep);
	struct mw_journal journal = {0};

	(void)state;
	plant(&journal, pid, 100, "\x01\x02\x03\x04", 4);
	plant(&journal, pid, 102, "\x11\x12\x13\x14", 4);
	plant(&journal, pid, 101, "\x21", 1);
	plant(&journal, pid, 100, "\x31\x32\x33\x34\x35\x36", 6);
	for (size_t i = 0; i < 500; i++)
		plant(&journal, pid, 1000 + i % 97 * 3, "\xcc\x90", 1 + i % 2);
	FINE(mw_journal_rollback(&journal, pid));
	assert_code(pid, fresh);
	for (size_t i = 0; i < journal.count; i++)
		assert_false(journal.items[i].standing);
	FINE(mw_journal_rollback(&journal, pid));
	assert_code(pid, fresh);
	mw_journal_deinit(&journal);
	mw_journal_deinit(&journal);
	child_kill(pid);
}

static void leaves_alone_what_another_wrote(void **state)
{
	pid_t pid = stopped_child(child_sleep);
	struct mw_journal journal = {0};
	uint8_t expected[SIZE];
	size_t number;

	(void)state;
	plant(&journal, pid, 10, "\xcc", 1);
	number = plant(&journal, pid, 20, "\xcc\xcd\xce\xcf", 4);
	plant(&journal, pid, 30, "\xcc\xcd", 2);
	plant(&journal, pid, 40, "\xcc", 1);
	assert_int_equal(mw_journal_disturbed(&journal, pid), 0);
	/* All of one, one byte of the next; half of the third is back already. */
	FINE(mw_remote_poke(pid, at(10), "\xe9", 1));
	FINE(mw_remote_poke(pid, at(22), "\xeb", 1));
	FINE(mw_remote_poke(pid, at(30), &fresh[30], 1));
	assert_int_equal(mw_journal_disturbed(&journal, pid), 3);
	memcpy(expected, fresh, SIZE);
	expected[10] = 0xe9;
	memcpy(expected + 20, "\xcc\xcd\xeb\xcf", 4);
	FINE(mw_journal_rollback(&journal, pid));
	assert_code(pid, expected);
	assert_false(journal.items[number].standing);
	assert_int_equal(mw_journal_disturbed(&journal, pid), 0);
	mw_journal_deinit(&journal);
	child_kill(pid);
}

/* A word that the program sets is its own, also where each byte is one of ours or of before. */
static void leaves_words_that_the_program_sets(void **state)
{
	static const uint64_t theirs = 0x1111, ours = 0x2222, mixed = 0x1122;
	pid_t pid = stopped_child(child_sleep);
	struct mw_journal journal = {0};
	uint64_t word;

	(void)state;
	FINE(mw_remote_poke(pid, at(8), &theirs, sizeof(theirs)));
	FINE(mw_remote_poke(pid, at(16), &theirs, sizeof(theirs)));
	FINE(mw_remote_poke(pid, at(24), &theirs, sizeof(theirs)));
	FINE(mw_remote_poke(pid, at(32), &ours, sizeof(ours)));
	FINE(mw_journal_plant_word(&journal, pid, at(8), ours));
	FINE(mw_journal_plant_word(&journal, pid, at(16), ours));
	FINE(mw_journal_plant_word(&journal, pid, at(24), ours));
	FINE(mw_journal_adopt_word(&journal, at(32), theirs, ours));
	FINE(mw_remote_poke(pid, at(16), &mixed, sizeof(mixed)));
	assert_int_equal(mw_journal_disturbed(&journal, pid), 0);
	FINE(mw_remote_poke(pid, at(24), &theirs, sizeof(theirs)));
	assert_int_equal(mw_journal_disturbed(&journal, pid), 1);
	FINE(mw_journal_rollback(&journal, pid));
	for (size_t i = 8; i <= 32; i += 8) {
		FINE(mw_remote_read_all(pid, at(i), &word, sizeof(word)));
		assert_int_equal(word, i == 16 ? mixed : theirs);
	}
	mw_journal_deinit(&journal);
	child_kill(pid);
}

static int unmap_and_sleep(void *context)
{
	(void)context;
	munmap(code + 4096, 4096);
	return child_sleep(NULL);
}

static void forgets_what_is_gone(void **state)
{
	pid_t pid = stopped_child(child_sleep);
	struct mw_journal journal = {0};
	uint8_t expected[SIZE];

	(void)state;
	memcpy(expected, fresh, SIZE);
	plant(&journal, pid, 99, "\xcc", 1);
	plant(&journal, pid, 100, "\xcc", 1);
	plant(&journal, pid, 199, "\xcc", 1);
	plant(&journal, pid, 200, "\xcc", 1);
	mw_journal_forget(&journal, at(100), at(200));
	FINE(mw_journal_rollback(&journal, pid));
	expected[100] = expected[199] = 0xcc;
	assert_code(pid, expected);
	plant(&journal, pid, 300, "\xcc", 1);
	mw_journal_forget_all(&journal);
	expected[300] = 0xcc;
	FINE(mw_journal_rollback(&journal, pid));
	assert_code(pid, expected);
	/* It can be used again. */
	plant(&journal, pid, 400, "\xcc", 1);
	FINE(mw_journal_rollback(&journal, pid));
	assert_code(pid, expected);
	mw_journal_deinit(&journal);
	child_kill(pid);
}

/* What can't be planted leaves nothing written down. */
static void refuses_what_is_not_there(void **state)
{
	pid_t pid = stopped_child(unmap_and_sleep);
	struct mw_journal journal = {0};
	struct mw_error *err;
	size_t number = 77;
	char bytes[MW_OOL_MAX + 1] = {0};

	(void)state;
	FINE(mw_tracee_resume(pid, 0));
	usleep(20000);
	child_stop(pid);
	err = mw_journal_plant(&journal, pid, at(4096 - 2), bytes, 4, &number);
	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_DATA);
	mw_error_destroy(err);
	err = mw_journal_plant(&journal, pid, at(0), bytes, sizeof(bytes), &number);
	assert_non_null(err);
	mw_error_destroy(err);
	assert_int_equal(number, 77);
	assert_int_equal(journal.count, 0);
	mw_journal_deinit(&journal);
	child_kill(pid);
}

/* A child that died between plant and rollback: said, and tried to the end. */
static void tells_of_a_dead_target(void **state)
{
	pid_t pid = stopped_child(child_sleep);
	struct mw_journal journal = {0};

	(void)state;
	plant(&journal, pid, 1, "\xcc", 1);
	plant(&journal, pid, 2, "\xcc", 1);
	child_kill(pid);
	mw_error_destroy(mw_journal_rollback(&journal, pid));
	mw_journal_deinit(&journal);
}

static int fork_when_told(void *context)
{
	pid_t pid;

	(void)context;
	raise(SIGUSR1);
	pid = fork();
	if (pid == 0)
		_exit(memcmp(code, fresh, SIZE) != 0);
	return child_sleep(NULL);
}

/* A forked child's copy is cleaned; the parent's code and the journal stay as they are. */
static void cleans_a_copy(void **state)
{
	pid_t pid = child_start(fork_when_told, NULL);
	struct mw_journal journal = {0};
	unsigned long grandchild;
	uint8_t expected[SIZE];
	size_t lifted;

	(void)state;
	assert_true(is_signal(child_next_stop(pid), SIGUSR1));
	plant(&journal, pid, 5, "\xcc", 1);
	plant(&journal, pid, 4090, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
	lifted = plant(&journal, pid, 50, "\xcc", 1);
	FINE(mw_journal_restore(&journal, pid, lifted));
	memcpy(expected, fresh, SIZE);
	expected[5] = 0xcc;
	memcpy(expected + 4090, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
	FINE(mw_tracee_resume(pid, 0));
	assert_true(is_event(child_next_stop(pid), PTRACE_EVENT_FORK));
	FINE(mw_tracee_event_message(pid, &grandchild));
	assert_true(is_event(child_next_stop((pid_t)grandchild), PTRACE_EVENT_STOP));
	assert_code((pid_t)grandchild, expected);
	FINE(mw_journal_clean_copy(&journal, (pid_t)grandchild));
	assert_code((pid_t)grandchild, fresh);
	assert_code(pid, expected);
	assert_true(journal.items[0].standing);
	/* It sees so itself. */
	FINE(mw_tracee_resume((pid_t)grandchild, 0));
	assert_int_equal(child_end((pid_t)grandchild), 0);
	FINE(mw_journal_rollback(&journal, pid));
	assert_code(pid, fresh);
	mw_journal_deinit(&journal);
	child_kill(pid);
}

UNIT_GROUP(journal)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plants_and_restores),
		cmocka_unit_test(rolls_back_newest_first),
		cmocka_unit_test(leaves_alone_what_another_wrote),
		cmocka_unit_test(leaves_words_that_the_program_sets),
		cmocka_unit_test(forgets_what_is_gone),
		cmocka_unit_test(refuses_what_is_not_there),
		cmocka_unit_test(tells_of_a_dead_target),
		cmocka_unit_test(cleans_a_copy),
	};

	return cmocka_run_group_tests(tests, make_code, NULL);
}
