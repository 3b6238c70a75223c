// SPDX-License-Identifier: MIT
/* quiesce_children_test.c: processes that stand still while they fork, vfork and run other programs. */
#include "proc/status.h"
#include "quiesce_bodies.h"
#include "tracee_child.h"
#include "unit.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

static int body_long_vfork(struct board *board)
{
	static struct board *shared;

	shared = board;
	if (vfork() == 0) {
		shared->ready = 1;
		while (!shared->result)
			shared->sum++;
		_exit(0);
	}
	return tick_forever(board) != NULL;
}

static int body_exec(struct board *board)
{
	board->ready = 1;
	while (!board->result)
		;
	execl("/bin/sleep", "sleep", "60", (char *)NULL);
	return 1;
}

static void *exec_soon(void *context)
{
	return (void *)(intptr_t)body_exec(context);
}

static int body_exec_thread(struct board *board)
{
	pthread_t thread;

	for (unsigned i = 0; i < 5; i++)
		pthread_create(&thread, NULL, tick_forever, board);
	pthread_create(&thread, NULL, exec_soon, board);
	return sleep_forever();
}

struct births {
	unsigned count;
	bool stood;
};

static struct mw_error *on_forked(void *context, pid_t child)
{
	struct births *births = context;
	struct mw_status status;

	births->count++;
	MW_TRY(mw_status_read(child, &status));
	births->stood &= status.tracer == gettid() && status.state == 't';
	return NULL;
}

static void forked_children_are_told_of(void **state)
{
	struct births births = {.stood = true};
	struct mw_quiesce quiesce = {.forked = on_forked, .context = &births};
	struct board *board = board_create();
	pid_t pid = quiet_start(body_fork, board);
	long ticks;

	(void)state;
	FINE(mw_quiesce_begin(&quiesce, pid));
	ticks = board->ticks;
	births.count = 0;
	while (births.count < 50)
		FINE(mw_quiesce_run_briefly(&quiesce, 1000000));
	assert_true(births.stood);
	/* All of them, and no other: the last may not have been counted by its maker yet, nor the one before the first.
	 */
	assert_in_range(births.count + 1 - (unsigned)(board->ticks - ticks), 0, 2);
	FINE(mw_quiesce_end(&quiesce));
	assert_true(is_free(pid));
	assert_true(await_more(&board->ticks, board->ticks));
	quiet_kill(pid);
	board_destroy(board);
}

static struct mw_error *on_forked_failing(void *context, pid_t child)
{
	(void)context;
	return mw_error_create(MW_ERROR_DATA, 0, "child %d", (int)child);
}

static void a_failing_callback_leaves_nothing_stopped(void **state)
{
	struct mw_quiesce quiesce = {.forked = on_forked_failing};
	struct board *board = board_create();
	pid_t pid = quiet_start(body_fork, board);
	struct mw_error *err = mw_quiesce_begin(&quiesce, pid);

	(void)state;
	while (!err)
		err = mw_quiesce_run_briefly(&quiesce, 1000000);
	assert_int_equal(mw_error_kind(err), MW_ERROR_DATA);
	mw_error_destroy(err);
	mw_error_destroy(mw_quiesce_end(&quiesce));
	assert_true(is_free(pid));
	assert_true(await_more(&board->ticks, board->ticks));
	quiet_kill(pid);
	board_destroy(board);
}

static void vforks_are_held(void **state)
{
	struct births births = {0};
	struct board *board = board_create();
	pid_t pid = quiet_start(body_vfork, board);

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct mw_quiesce quiesce = {.forked = on_forked, .context = &births};

		FINE(mw_quiesce_begin(&quiesce, pid));
		if (i % 2)
			FINE(mw_quiesce_run_briefly(&quiesce, 1000000));
		FINE(mw_quiesce_end(&quiesce));
		assert_true(await_more(&board->ticks, board->ticks));
	}
	assert_int_equal(births.count, 0);
	assert_true(is_free(pid));
	quiet_kill(pid);
	board_destroy(board);
}

/* Its maker sleeps where nothing interrupts it, and is let go when the child has ended. */
static void a_long_vfork_is_held(void **state)
{
	struct board *board = board_create();
	struct mw_quiesce quiesce = {0};
	pid_t pid = quiet_start(body_long_vfork, board);
	long sum;

	(void)state;
	FINE(mw_quiesce_begin(&quiesce, pid));
	assert_int_equal(quiesce.count, 2);
	sum = board->sum;
	usleep(1000);
	assert_int_equal(board->sum, sum);
	board->result = 1;
	FINE(mw_quiesce_end(&quiesce));
	assert_true(await_more(&board->ticks, 0));
	assert_true(is_free(pid));
	quiet_kill(pid);
	board_destroy(board);
}

static void *release_late(void *context)
{
	struct board *board = context;

	sleep(4);
	board->result = 1;
	return NULL;
}

/* Where CPUs are scarce a child takes its time, and its maker with it. */
static void a_child_that_runs_on_is_awaited(void **state)
{
	struct board *board = board_create();
	struct mw_quiesce quiesce = {0};
	pid_t pid = quiet_start(body_long_vfork, board);
	pthread_t late;

	(void)state;
	FINE(mw_quiesce_begin(&quiesce, pid));
	assert_int_equal(pthread_create(&late, NULL, release_late, board), 0);
	FINE(mw_quiesce_end(&quiesce));
	assert_int_equal(pthread_join(late, NULL), 0);
	assert_true(await_more(&board->ticks, 0));
	assert_true(is_free(pid));
	quiet_kill(pid);
	board_destroy(board);
}

/* Whatever a vfork is at, it is waited for until its maker can act; so it is where there is nothing to wait for. */
static void an_injector_is_awaited(void **state)
{
	int (*const bodies[])(struct board *) = {body_vfork, body_long_vfork, body_tick};

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct board *board = board_create();
		struct mw_quiesce quiesce = {0};
		pid_t pid = quiet_start(bodies[i % 3], board);
		struct mw_tracee_regs regs;

		FINE(mw_quiesce_begin(&quiesce, pid));
		if (bodies[i % 3] == body_long_vfork)
			assert_int_equal(mw_quiesce_pick(&quiesce), 0);
		board->result = 1;
		FINE(mw_quiesce_await_injector(&quiesce));
		assert_int_equal(mw_quiesce_pick(&quiesce), pid);
		FINE(mw_tracee_get_regs(pid, &regs));
		FINE(mw_quiesce_end(&quiesce));
		assert_true(await_more(&board->ticks, board->ticks));
		assert_true(is_free(pid));
		quiet_kill(pid);
		board_destroy(board);
	}
}

static void no_injector_of_what_is_gone(void **state)
{
	struct board *board = board_create();
	struct mw_quiesce quiesce = {0};
	pid_t pid = quiet_start(body_long_vfork, board);
	struct mw_error *err;

	(void)state;
	FINE(mw_quiesce_begin(&quiesce, pid));
	kill(pid, SIGKILL);
	board->result = 1;
	err = mw_quiesce_await_injector(&quiesce);
	assert_int_equal(mw_error_kind(err), MW_ERROR_GONE);
	mw_error_destroy(err);
	assert_true(quiesce.gone);
	FINE(mw_quiesce_end(&quiesce));
	board_destroy(board);
}

static void exec_lets_go(void **state)
{
	int (*const bodies[])(struct board *) = {body_exec, body_exec_thread};

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct board *board = board_create();
		struct mw_quiesce quiesce = {0};
		pid_t pid = quiet_start(bodies[i % 2], board);

		FINE(mw_quiesce_begin(&quiesce, pid));
		board->result = 1;
		for (unsigned j = 0; j < 1000 && !quiesce.execed; j++)
			FINE(mw_quiesce_run_briefly(&quiesce, 1000000));
		assert_true(quiesce.execed);
		assert_false(quiesce.gone);
		FINE(mw_quiesce_end(&quiesce));
		assert_true(is_free(pid));
		assert_true(await_state(pid, 'S'));
		quiet_kill(pid);
		board_destroy(board);
	}
}

UNIT_GROUP(quiesce_children)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forked_children_are_told_of),
		cmocka_unit_test(a_failing_callback_leaves_nothing_stopped),
		cmocka_unit_test(vforks_are_held),
		cmocka_unit_test(a_long_vfork_is_held),
		cmocka_unit_test(a_child_that_runs_on_is_awaited),
		cmocka_unit_test(an_injector_is_awaited),
		cmocka_unit_test(no_injector_of_what_is_gone),
		cmocka_unit_test(exec_lets_go),
	};

	/* One test alone, by its name, to look for what it finds seldom. */
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
