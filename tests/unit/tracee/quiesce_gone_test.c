// SPDX-License-Identifier: MIT
/* quiesce_gone_test.c: processes that end while they are to stand still, and such as cannot be had. */
#include "proc/status.h"
#include "quiesce_bodies.h"
#include "tracee_child.h"
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Also after its parent's death its children are to end. */
static int body_fork_wildly(struct board *board)
{
	signal(SIGCHLD, SIG_IGN);
	board->ready = 1;
	for (;;) {
		if (fork() == 0)
			_exit(0);
		board->ticks++;
	}
	return 0;
}

static void killed_while_standing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct board *board = board_create();
		struct mw_quiesce quiesce = {0};
		pid_t pid = quiet_start(i % 2 ? body_churn : body_many, board);

		FINE(mw_quiesce_begin(&quiesce, pid));
		kill(pid, SIGKILL);
		usleep(i % 4 * 500);
		if (i % 3 == 0)
			FINE(mw_quiesce_run_briefly(&quiesce, 1000000));
		FINE(mw_quiesce_end(&quiesce));
		assert_int_equal(quiesce.count, 0);
		if (quiesce.gone && quiesce.exit_status != -1)
			assert_int_equal(quiesce.exit_status & 0x7f, SIGKILL);
		/* Reaped by the one or the other. */
		assert_true(waitpid(pid, NULL, 0) == pid || errno == ECHILD);
		board_destroy(board);
	}
}

/* Does anybody in the system stand traced by us? */
static bool any_traced(void)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;
	bool any = false;

	assert_non_null(directory);
	while ((entry = readdir(directory))) {
		pid_t pid = (pid_t)atoi(entry->d_name);
		struct mw_status status;
		struct mw_error *err = pid > 0 ? mw_status_read(pid, &status) : NULL;

		any |= pid > 0 && !err && status.tracer == gettid();
		mw_error_destroy(err);
	}
	closedir(directory);
	return any;
}

static void *kill_soon(void *context)
{
	const pid_t *pid = context;

	usleep((useconds_t)(*pid % 7) * 200);
	kill(*pid, SIGKILL);
	return NULL;
}

static void killed_at_any_time(void **state)
{
	int (*const bodies[])(struct board *) = {body_churn, body_fork_wildly, body_many, body_vfork};

	(void)state;
	for (unsigned i = 0; i < 2 * ROUNDS; i++) {
		struct board *board = board_create();
		struct mw_quiesce quiesce = {0};
		pid_t pid = quiet_start(bodies[i % 4], board);
		struct mw_error *err;
		pthread_t killer;

		pthread_create(&killer, NULL, kill_soon, &pid);
		do {
			err = mw_quiesce_begin(&quiesce, pid);
			if (!err)
				err = mw_quiesce_run_briefly(&quiesce, 100000);
			mw_error_destroy(err);
			FINE(mw_quiesce_end(&quiesce));
		} while (!quiesce.gone && kill(pid, 0) == 0 && state_of(pid) != 'Z');
		pthread_join(killer, NULL);
		assert_int_equal(quiesce.count, 0);
		assert_true(waitpid(pid, NULL, 0) == pid || errno == ECHILD);
		assert_false(any_traced());
		board_destroy(board);
	}
}

static void ended_by_itself(void **state)
{
	struct board *board = board_create();
	struct mw_quiesce quiesce = {0};
	pid_t pid = quiet_start(body_tick, board);

	(void)state;
	FINE(mw_quiesce_begin(&quiesce, pid));
	kill(pid, SIGTERM);
	for (unsigned i = 0; i < 1000 && !quiesce.gone; i++)
		FINE(mw_quiesce_run_briefly(&quiesce, 1000000));
	assert_true(quiesce.gone);
	assert_int_equal(quiesce.exit_status, SIGTERM);
	FINE(mw_quiesce_end(&quiesce));
	assert_true(waitpid(pid, NULL, 0) == pid || errno == ECHILD);
	board_destroy(board);
}

static void another_traces_it(void **state)
{
	struct board *board = board_create();
	struct mw_quiesce quiesce = {0};
	pid_t pid = quiet_start(body_many, board);
	struct mw_error *err;
	int ready[2];
	pid_t tracer;
	char byte;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	tracer = fork();
	if (tracer == 0) {
		pid_t *tids;
		size_t count;

		/* Not the first thread, but one of those after it. */
		mw_error_destroy(mw_tasks_read(pid, &tids, &count));
		if (ptrace(PTRACE_SEIZE, tids[count / 2], 0, 0) == 0)
			(void)!write(ready[1], "x", 1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	err = mw_quiesce_begin(&quiesce, pid);
	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_DENIED);
	mw_error_destroy(err);
	assert_int_equal(quiesce.count, 0);
	quiet_kill(tracer);
	assert_true(is_free(pid));
	assert_true(await_more(&board->ticks, board->ticks));
	quiet_kill(pid);
	close(ready[0]);
	close(ready[1]);
	board_destroy(board);
}

static void no_such_process(void **state)
{
	struct mw_quiesce quiesce = {0};
	struct mw_error *err;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(0);
	assert_true(await_state(pid, 'Z'));
	err = mw_quiesce_begin(&quiesce, pid);
	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_GONE);
	mw_error_destroy(err);
	assert_int_equal(quiet_end(pid), 0);
	err = mw_quiesce_begin(&quiesce, pid);
	assert_non_null(err);
	assert_int_equal(mw_error_kind(err), MW_ERROR_GONE);
	mw_error_destroy(err);
}

/* The first test: MEMWATCH_FAULT is read but once, and says that the 100th thread can't be seized. */
static void a_fault_lets_all_go(void **state)
{
	struct board *board = board_create();
	struct mw_quiesce quiesce = {0};
	pid_t pid = quiet_start(body_many, board);
	struct mw_error *err = mw_quiesce_begin(&quiesce, pid);

	(void)state;
	assert_non_null(err);
	mw_error_destroy(err);
	assert_int_equal(quiesce.count, 0);
	assert_true(is_free(pid));
	assert_true(await_more(&board->ticks, board->ticks));
	quiet_kill(pid);
	board_destroy(board);
}

UNIT_GROUP(quiesce_gone)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fault_lets_all_go), cmocka_unit_test(killed_while_standing),
		cmocka_unit_test(killed_at_any_time),  cmocka_unit_test(ended_by_itself),
		cmocka_unit_test(another_traces_it),   cmocka_unit_test(no_such_process),
	};

	/* One test alone, by its name, to look for what it finds seldom. */
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	else
		setenv("MEMWATCH_FAULT", "quiesce.seize:100", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
