// SPDX-License-Identifier: MIT
/* seccomp_policy_test.c: what threads may do under their seccomp filters, read from processes that stand. */
#include "tracee/seccomp_policy.h"

#include "quiet_child.h"
#include "unit.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NAP_NS       20000000

/* `action` for one system call, all others are allowed. */
static void forbid(int number, uint32_t action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = COUNT(code), .filter = code};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(77);
}

static int tick(struct board *board)
{
	board->ready = 1;
	while (!board->result)
		board->ticks++;
	return 0;
}

static int body_free(struct board *board)
{
	return tick(board);
}

static int body_two_filters(struct board *board)
{
	forbid(SYS_mmap, SECCOMP_RET_KILL_PROCESS);
	forbid(SYS_rt_sigreturn, SECCOMP_RET_ERRNO | 1);
	forbid(SYS_munmap, SECCOMP_RET_ERRNO | 1);
	forbid(SYS_munmap, SECCOMP_RET_LOG);
	return tick(board);
}

static int body_strict(struct board *board)
{
	board->ready = 1;
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		return 77;
	board->ticks = 1;
	while (!board->result)
		board->ticks++;
	syscall(SYS_exit, 0);
	return 1;
}

/* It does not return: a thread's end may map memory (the sanitizers' does). */
static void *under_filter(void *board)
{
	forbid(SYS_mmap, SECCOMP_RET_KILL_PROCESS);
	((struct board *)board)->signals = 1;
	for (;;)
		((struct board *)board)->sum++;
	return NULL;
}

static int body_other_thread(struct board *board)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, under_filter, board))
		return 77;
	while (!board->signals)
		;
	return tick(board);
}

static void *free_thread(void *board)
{
	((struct board *)board)->signals = 1;
	while (!((struct board *)board)->result)
		((struct board *)board)->sum++;
	return NULL;
}

static int body_first_thread(struct board *board)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, free_thread, board))
		return 77;
	while (!board->signals)
		;
	forbid(SYS_mmap, SECCOMP_RET_KILL_PROCESS);
	return tick(board);
}

/* Waits again and again with what the kernel goes on with by restart_syscall, which is deadly. */
static int body_sleeper(struct board *board)
{
	struct timespec nap = {.tv_nsec = NAP_NS};

	forbid(SYS_restart_syscall, SECCOMP_RET_KILL_PROCESS);
	board->ready = 1;
	while (!board->result) {
		if (nanosleep(&nap, NULL))
			return 1;
		board->ticks++;
	}
	return 0;
}

struct standing {
	struct board *board;
	struct mw_quiesce quiesce;
	struct mw_seccomp_policy policy;
	pid_t pid;
};

static void skip_unless_root(void)
{
	if (geteuid() != 0 || prctl(PR_GET_SECCOMP) != 0) {
		print_message("needs CAP_SYS_ADMIN, and no filter\n");
		skip();
	}
}

static void stand(struct standing *standing, int (*body)(struct board *board))
{
	struct mw_error *err;

	*standing = (struct standing){.board = board_create()};
	standing->pid = quiet_start(body, standing->board);
	err = mw_quiesce_begin(&standing->quiesce, standing->pid);
	assert_null(err);
}

static void let_go(struct standing *standing, int status)
{
	assert_null(mw_quiesce_end(&standing->quiesce));
	assert_true(await_more(&standing->board->ticks, standing->board->ticks));
	standing->board->result = 1;
	assert_int_equal(quiet_end(standing->pid), status);
	mw_seccomp_policy_deinit(&standing->policy);
	board_destroy(standing->board);
}

static void under_none(void **state)
{
	struct standing standing;
	struct mw_permit permit;

	(void)state;
	skip_unless_root();
	stand(&standing, body_free);
	assert_null(mw_seccomp_policy_look(&standing.policy, standing.pid, true, &permit));
	assert_true(permit.known);
	assert_int_equal(permit.harmless & permit.made, MW_CALLS_ALL);
	let_go(&standing, 0);
}

static void several_filters(void **state)
{
	const struct mw_seccomp_policy_need need = {.harmless = MW_CALLS_MAP | MW_CALLS_BACK, .made = MW_CALLS_BACK};
	const uint32_t mmaps =
		MW_CALL_BIT(MMAP) | MW_CALL_BIT(MMAP_AT) | MW_CALL_BIT(MMAP_SHARED) | MW_CALL_BIT(MMAP_LOCKED);
	struct standing standing;
	struct mw_permit permit;
	struct mw_error *err;

	(void)state;
	skip_unless_root();
	stand(&standing, body_two_filters);
	for (unsigned i = 0; i < 2; i++) {
		assert_null(mw_seccomp_policy_look(&standing.policy, standing.pid, i == 0, &permit));
		assert_true(permit.known);
		assert_int_equal(permit.harmless, MW_CALLS_ALL & ~mmaps);
		assert_int_equal(permit.made, MW_CALLS_ALL & ~(mmaps | MW_CALL_BIT(MUNMAP) | MW_CALLS_BACK));
		assert_int_equal(standing.policy.count, 4);
	}
	assert_false(mw_permit_suits(&permit, &need));
	err = mw_seccomp_policy_refuse("jump", getpid(), &permit, &need);
	assert_non_null(strstr(mw_error_text(err), "(mmap, rt_sigreturn)"));
	mw_error_destroy(err);
	let_go(&standing, 0);
}

static void strict_mode(void **state)
{
	struct standing standing;
	struct mw_permit permit;

	(void)state;
	skip_unless_root();
	stand(&standing, body_strict);
	while (!standing.board->ticks) {
		assert_null(mw_quiesce_run_briefly(&standing.quiesce, 1000000));
	}
	assert_null(mw_seccomp_policy_look(&standing.policy, standing.pid, true, &permit));
	assert_true(permit.known);
	assert_int_equal(permit.made, MW_CALLS_BACK | MW_CALL_BIT(RESTART));
	assert_int_equal(permit.harmless, permit.made);
	let_go(&standing, 0);
}

static void pick(int (*body)(struct board *board), bool first)
{
	const struct mw_seccomp_policy_need need = mw_seccomp_policy_need_of(MW_CALLS_MAP);
	struct standing standing;
	struct mw_permit permit;
	uint32_t made;
	pid_t tid;

	skip_unless_root();
	stand(&standing, body);
	assert_null(mw_seccomp_policy_pick(&standing.policy, &standing.quiesce, NULL, &need, &tid, &permit));
	assert_true(tid > 0);
	assert_int_equal(tid == standing.pid, first);
	assert_null(mw_seccomp_policy_pick_best(&standing.quiesce, NULL, MW_CALLS_MAP, &tid));
	assert_int_equal(tid == standing.pid, first);
	assert_null(mw_seccomp_policy_everyone(&standing.policy, &standing.quiesce, &made));
	assert_int_equal(made & MW_CALLS_MAP, MW_CALL_BIT(MUNMAP));
	let_go(&standing, 0);
}

static void picks_a_free_thread(void **state)
{
	(void)state;
	pick(body_other_thread, true);
	pick(body_first_thread, false);
}

static void picks_none(void **state)
{
	const struct mw_seccomp_policy_need need = mw_seccomp_policy_need_of(MW_CALLS_MAP);
	struct standing standing;
	struct mw_permit permit;
	pid_t tid;

	(void)state;
	skip_unless_root();
	stand(&standing, body_two_filters);
	assert_null(mw_seccomp_policy_pick(&standing.policy, &standing.quiesce, NULL, &need, &tid, &permit));
	assert_int_equal(tid, 0);
	assert_true(permit.known);
	assert_null(mw_seccomp_policy_pick_best(&standing.quiesce, NULL, MW_CALLS_MAP, &tid));
	assert_int_equal(tid, standing.pid);
	let_go(&standing, 0);
}

static void waits_begin_anew(void **state)
{
	struct standing standing;

	(void)state;
	skip_unless_root();
	stand(&standing, body_sleeper);
	for (unsigned i = 0; i < 20; i++)
		assert_null(mw_quiesce_run_briefly(&standing.quiesce, (uint64_t)NAP_NS / 3 * (1 + i % 4)));
	let_go(&standing, 0);
}

UNIT_GROUP(seccomp_policy)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(under_none),  cmocka_unit_test(several_filters),
		cmocka_unit_test(strict_mode), cmocka_unit_test(picks_a_free_thread),
		cmocka_unit_test(picks_none),  cmocka_unit_test(waits_begin_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
