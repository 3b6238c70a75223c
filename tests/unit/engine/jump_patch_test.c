// SPDX-License-Identifier: MIT
/* jump_patch_test.c: a jump is written only where the code still is that it was planned for, and no thread is moved back
 * into code that it still covers. */
#include "engine/jump/jump.h"

#include "proc/maps.h"
#include "unit.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
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

/* A process of its own that stands, traced. */
static pid_t stopped_child(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSTOPPED(status));
	return child;
}

static mw_addr pc_of(pid_t tid)
{
	struct mw_tracee_regs regs;

	assert_null(mw_tracee_get_regs(tid, &regs));
	return regs.general.pc;
}

/* Pages that nobody can write to, not even a tracer: a file's that are shared and read-only. The jump stays there. */
static void test_a_jump_that_stays(void **state)
{
	static const uint8_t original[5] = {0x55, 0x53, 0x89, 0xfb, 0x90}, jump[5] = {0xe9, 1, 2, 3, 4};
	int writable = memfd_create("code", MFD_CLOEXEC), readable;
	char path[32];
	void *code;
	struct mw_quiet_thread thread = {.stopped = true};
	struct jump_process other = {.quiesce = {.threads = &thread, .count = 1}};
	struct jump_patch there = {.trampoline_at = 0x1000, .detour = {.count = 2, .offset = {0, 1}}, .standing = true};
	const mw_addr copy = 0x1010;
	const char *taken = NULL;
	struct mw_error *err;
	size_t left = 0;

	(void)state;
	assert_int_equal(write(writable, jump, sizeof(jump)), sizeof(jump));
	assert_true(snprintf(path, sizeof(path), "/proc/self/fd/%d", writable) > 0);
	readable = open(path, O_RDONLY | O_CLOEXEC);
	code = mmap(NULL, sizeof(jump), PROT_READ, MAP_SHARED, readable, 0);
	assert_ptr_not_equal(code, MAP_FAILED);
	there.detour.at = (mw_addr)(uintptr_t)code;
	there.detour.length = there.detour.jump = sizeof(jump);
	there.trampoline.copied[1] = (uint8_t)(copy - there.trampoline_at);
	other.patches.items = &there;
	other.patches.count = 1;
	assert_null(mw_journal_adopt(&other.patches.journal, there.detour.at, original, jump, sizeof(jump),
				     &there.journal));
	other.pid = thread.tid = stopped_child();
	assert_null(mw_tracee_set_pc(thread.tid, copy));

	err = jump_unpatch_all(&other, &maps, NULL, NULL, &taken, &left);
	assert_non_null(err);
	mw_error_destroy(err);
	assert_int_equal(pc_of(thread.tid), copy);

	/* The same thread goes back where the jump has gone. */
	there.standing = false;
	assert_null(jump_move_out(&other));
	assert_int_equal(pc_of(thread.tid), there.detour.at + 1);

	assert_int_equal(kill(thread.tid, SIGKILL), 0);
	assert_int_equal(waitpid(thread.tid, NULL, 0), thread.tid);
	mw_journal_deinit(&other.patches.journal);
	munmap(code, sizeof(jump));
	close(readable);
	close(writable);
}

UNIT_GROUP(jump_patch)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_another_file), cmocka_unit_test(test_no_code),
					   cmocka_unit_test(test_moved_code), cmocka_unit_test(test_a_jump_that_stays)};

	return cmocka_run_group_tests(tests, setup, teardown);
}
