// SPDX-License-Identifier: MIT
/* killed_test.c: a tracer that is killed where it holds a signal of its tracee's: that gets it nevertheless. */
#include "quiet_child.h"
#include "tracee/quiesce.h"
#include "tracee_child.h"
#include "unit.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NUMBER   SIGRTMIN
#define MOST     1000 /* attempts */
#define A_MOMENT 20000

static struct board *shared;

static void add_up(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	shared->sum += info->si_value.sival_int;
	shared->signals++;
}

static int body_add_up(struct board *board)
{
	const struct sigaction action = {.sa_sigaction = add_up, .sa_flags = SA_SIGINFO};

	shared = board;
	sigaction(NUMBER, &action, NULL);
	board->ready = 1;
	for (;;)
		pause();
	return 0;
}

static void queue(pid_t pid, int value)
{
	const union sigval with = {.sival_int = value};

	assert_int_equal(sigqueue(pid, NUMBER, with), 0);
}

/* A tracer that hears of one signal, takes it for its own where it is to, and is killed. */
static void trace_one(pid_t pid, bool take)
{
	pid_t tracer = fork();
	int status;

	assert_true(tracer >= 0);
	if (tracer == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		FINE(mw_tracee_seize(pid));
		queue(pid, 1);
		while (mw_tracee_wait(pid, &status, 0) != pid)
			;
		/* It is told again, as long as it stands. */
		if (!is_signal(status, NUMBER) || mw_tracee_wait(pid, &status, WNOHANG) != pid)
			_exit(1);
		if (take)
			mw_tracee_take_signal(pid);
		if (take && mw_tracee_wait(pid, &status, WNOHANG) != 0)
			_exit(2);
		raise(SIGKILL);
	}
	assert_int_equal(quiet_end(tracer), 128 + SIGKILL);
}

static void a_signal_is_kept(void **state)
{
	struct board *board = board_create();
	pid_t pid = quiet_start(body_add_up, board);

	(void)state;
	trace_one(pid, false);
	assert_true(await_more(&board->signals, 0));
	usleep(A_MOMENT);
	assert_int_equal(board->signals, 1);
	assert_int_equal(board->sum, 1);
	quiet_kill(pid);
	board_destroy(board);
}

static void a_signal_that_was_taken_is_not(void **state)
{
	struct board *board = board_create();
	pid_t pid = quiet_start(body_add_up, board);

	(void)state;
	trace_one(pid, true);
	queue(pid, 10);
	assert_true(await_more(&board->signals, 0));
	usleep(A_MOMENT);
	assert_int_equal(board->signals, 1);
	assert_int_equal(board->sum, 10);
	quiet_kill(pid);
	board_destroy(board);
}

/* Where it would pass on a signal, it is no more. */
static void be_killed_at_a_signal(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PTRACE_CONT, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)NUMBER, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = sizeof(code) / sizeof(*code), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(3);
}

/* Signals come one by one, while the process is made to stand still and let go again. */
static void signals_outlive_a_quiesce(void **state)
{
	struct board *board = board_create();
	pid_t pid = quiet_start(body_add_up, board);
	long sent = 0;

	(void)state;
	for (int killed = 0; killed < 5; killed++) {
		pid_t tracer = fork();
		int status = 0;

		assert_true(tracer >= 0);
		if (tracer == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			be_killed_at_a_signal();
			for (unsigned i = 0; i < MOST; i++) {
				struct mw_quiesce quiesce = {0};

				FINE(mw_quiesce_begin(&quiesce, pid));
				FINE(mw_quiesce_run_briefly(&quiesce, A_MOMENT));
				FINE(mw_quiesce_end(&quiesce));
			}
			_exit(0);
		}
		while (waitpid(tracer, &status, WNOHANG) == 0) {
			queue(pid, (int)++sent);
			usleep(100);
		}
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
		assert_true(await_more(&board->signals, sent - 1));
		assert_int_equal(board->signals, sent);
	}
	usleep(A_MOMENT);
	assert_int_equal(board->signals, sent);
	assert_int_equal(board->sum, sent * (sent + 1) / 2);
	assert_true(is_free(pid));
	quiet_kill(pid);
	board_destroy(board);
}

UNIT_GROUP(killed)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_is_kept),
		cmocka_unit_test(a_signal_that_was_taken_is_not),
		cmocka_unit_test(signals_outlive_a_quiesce),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
