// SPDX-License-Identifier: MIT
/* quiesce_test.c: processes that stand still, and are let go as they were. */
#include "proc/status.h"
#include "quiet_child.h"
#include "target/quiesce.h"
#include "tracee_child.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define ROUNDS 20

static void *tick_forever(void *context)
{
	struct board *board = context;

	for (;;)
		board->ticks++;
	return NULL;
}

static int sleep_forever(void)
{
	while (pause() < 0)
		;
	return 0;
}

static void *thread_sleep(void *context)
{
	(void)context;
	sleep_forever();
	return NULL;
}

static int body_tick(struct board *board)
{
	board->ready = 1;
	tick_forever(board);
	return 0;
}

static void *spawn_next(void *context)
{
	struct board *board = context;
	pthread_attr_t attr;
	pthread_t next;

	board->ticks++;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 65536);
	while (pthread_create(&next, &attr, spawn_next, board))
		sched_yield();
	return NULL;
}

/* 50 threads at any time, each of which makes its successor and dies. */
static int body_churn(struct board *board)
{
	for (unsigned i = 0; i < 50; i++)
		spawn_next(board);
	board->ready = 1;
	return sleep_forever();
}

static int body_many(struct board *board)
{
	for (unsigned i = 0; i < 400; i++) {
		pthread_t thread;
		pthread_attr_t attr;

		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, 65536);
		if (pthread_create(&thread, &attr, i % 40 ? thread_sleep : tick_forever, board))
			return 1;
	}
	board->ready = 1;
	return sleep_forever();
}

static void *leaderless(void *context)
{
	struct board *board = context;

	while (state_of(getpid()) != 'Z')
		usleep(100);
	board->ready = 1;
	return tick_forever(context);
}

static int body_leaderless(struct board *board)
{
	pthread_t thread;

	pthread_create(&thread, NULL, leaderless, board);
	syscall(SYS_exit, 0);
	return 0;
}

static int body_fork(struct board *board)
{
	board->ready = 1;
	for (;;) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		board->ticks++;
		waitpid(pid, NULL, 0);
	}
	return 0;
}

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

static int body_vfork(struct board *board)
{
	static struct board *shared;

	shared = board;
	for (;;) {
		if (vfork() == 0) {
			shared->ready = 1;
			syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 200000}, NULL);
			_exit(0);
		}
		shared->ticks++;
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	return 0;
}

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

/* In each of these no signal is handled: nothing may end them but what they wait for. */
static int body_epoll(struct board *board)
{
	struct epoll_event event = {.events = EPOLLIN};
	int epoll = epoll_create1(0);

	epoll_ctl(epoll, EPOLL_CTL_ADD, board->pipe[0], &event);
	board->ready = 1;
	return epoll_wait(epoll, &event, 1, -1) == 1 ? 0 : errno;
}

static int body_read(struct board *board)
{
	char byte;

	board->ready = 1;
	return read(board->pipe[0], &byte, 1) == 1 ? 0 : errno;
}

static int body_sleep(struct board *board)
{
	board->ready = 1;
	return clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = 200000000}, NULL);
}

static struct board *handler_board;

static void handler(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	handler_board->signals++;
	handler_board->sum += info->si_value.sival_int;
}

static int body_signals(struct board *board)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};

	handler_board = board;
	sigaction(SIGRTMIN, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
	return body_tick(board);
}

/* All stand: nothing is counted. */
static void assert_standing(const struct mw_quiesce *quiesce, struct board *board)
{
	long ticks;

	assert_true(quiesce->standing);
	for (size_t i = 0; i < quiesce->count; i++)
		assert_true(quiesce->threads[i].stopped);
	ticks = board->ticks;
	usleep(500);
	assert_int_equal(board->ticks, ticks);
}

static void stands_and_goes_on(int (*body)(struct board *board), unsigned rounds)
{
	struct board *board = board_create();
	pid_t pid = quiet_start(body, board);

	for (unsigned i = 0; i < rounds; i++) {
		struct mw_quiesce quiesce = {0};

		FINE(mw_quiesce_begin(&quiesce, pid));
		assert_standing(&quiesce, board);
		assert_true(mw_quiesce_pick(&quiesce) != 0);
		FINE(mw_quiesce_end(&quiesce));
		FINE(mw_quiesce_end(&quiesce));
		assert_true(is_free(pid));
		assert_true(await_more(&board->ticks, board->ticks));
		assert_true(quiesce.stood_ns > 0);
		assert_false(quiesce.gone || quiesce.execed || quiesce.standing);
	}
	quiet_kill(pid);
	board_destroy(board);
}

static void one_thread(void **state)
{
	(void)state;
	stands_and_goes_on(body_tick, ROUNDS);
}

static void threads_come_and_go(void **state)
{
	(void)state;
	stands_and_goes_on(body_churn, ROUNDS);
}

static void many_threads(void **state)
{
	(void)state;
	stands_and_goes_on(body_many, 5);
}

static void main_thread_has_ended(void **state)
{
	(void)state;
	stands_and_goes_on(body_leaderless, ROUNDS);
}

static void breathing_lets_it_run(void **state)
{
	int (*const bodies[])(struct board *) = {body_tick, body_churn, body_fork, body_vfork};

	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		struct board *board = board_create();
		struct mw_quiesce quiesce = {0};
		pid_t pid = quiet_start(bodies[i], board);

		FINE(mw_quiesce_begin(&quiesce, pid));
		for (unsigned j = 0; j < ROUNDS; j++) {
			long ticks = board->ticks;

			for (unsigned k = 0; k < 1000 && board->ticks == ticks; k++)
				FINE(mw_quiesce_breathe(&quiesce, 2000000));
			assert_true(board->ticks > ticks);
			assert_standing(&quiesce, board);
		}
		FINE(mw_quiesce_end(&quiesce));
		assert_true(is_free(pid));
		assert_true(await_more(&board->ticks, board->ticks));
		quiet_kill(pid);
		board_destroy(board);
	}
}

static void a_stopped_process_stays_so(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct board *board = board_create();
		struct mw_quiesce quiesce = {0};
		pid_t pid = quiet_start(body_many, board);
		long ticks;

		kill(pid, SIGSTOP);
		if (i % 2)
			assert_true(await_state(pid, 'T'));
		FINE(mw_quiesce_begin(&quiesce, pid));
		assert_standing(&quiesce, board);
		if (i % 4 > 1)
			FINE(mw_quiesce_breathe(&quiesce, 1000000));
		FINE(mw_quiesce_end(&quiesce));
		assert_true(is_free(pid));
		assert_true(await_state(pid, 'T'));
		usleep(2000);
		ticks = board->ticks;
		usleep(2000);
		assert_int_equal(board->ticks, ticks);
		kill(pid, SIGCONT);
		assert_true(await_more(&board->ticks, ticks));
		quiet_kill(pid);
		board_destroy(board);
	}
}

/* Stopped, or continued, by others while it stands. */
static void stop_and_cont_meanwhile(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct board *board = board_create();
		struct mw_quiesce quiesce = {0};
		pid_t pid = quiet_start(body_many, board);
		bool stopped = i % 2;

		if (stopped)
			kill(pid, SIGSTOP);
		FINE(mw_quiesce_begin(&quiesce, pid));
		kill(pid, stopped ? SIGCONT : SIGSTOP);
		if (i % 4 > 1)
			FINE(mw_quiesce_breathe(&quiesce, 1000000));
		FINE(mw_quiesce_end(&quiesce));
		if (!stopped) {
			assert_true(await_state(pid, 'T'));
			kill(pid, SIGCONT);
		}
		assert_true(await_more(&board->ticks, board->ticks));
		assert_true(is_free(pid));
		quiet_kill(pid);
		board_destroy(board);
	}
}

static void signals_come_once(void **state)
{
	enum { COUNT = 30 };

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct board *board = board_create();
		struct mw_quiesce quiesce = {0};
		pid_t pid = quiet_start(body_signals, board);
		long sum = 0;

		/* Before, while it stands, while it runs in between. */
		for (int j = 0; j < COUNT; j++) {
			sigqueue(pid, SIGRTMIN, (union sigval){.sival_int = j});
			sum += j;
			if (j == COUNT / 4)
				FINE(mw_quiesce_begin(&quiesce, pid));
			if (j % (COUNT / 4) == 1 && quiesce.standing)
				FINE(mw_quiesce_breathe(&quiesce, 200000));
		}
		kill(pid, SIGUSR1);
		FINE(mw_quiesce_end(&quiesce));
		assert_true(await_more(&board->signals, COUNT));
		usleep(2000);
		assert_int_equal(board->signals, COUNT + 1);
		assert_int_equal(board->sum, sum);
		assert_true(is_free(pid));
		quiet_kill(pid);
		board_destroy(board);
	}
}

static void waits_are_not_seen(void **state)
{
	static const struct {
		int (*body)(struct board *board);
		long number;
	} waits[] = {{body_epoll, SYS_epoll_wait}, {body_read, SYS_read}, {body_sleep, SYS_clock_nanosleep}};

	(void)state;
	for (unsigned i = 0; i < 3 * ROUNDS; i++) {
		struct board *board = board_create();
		struct mw_quiesce quiesce = {0};
		int ends[2];
		pid_t pid;

		assert_int_equal(pipe(ends), 0);
		board->pipe[0] = ends[0];
		pid = quiet_start(waits[i % 3].body, board);
		child_await_call(pid, waits[i % 3].number);
		/* Signals that nobody handles are seen by a tracer all the same, and wake a thread for it. */
		if (i % 2)
			kill(pid, SIGURG);
		FINE(mw_quiesce_begin(&quiesce, pid));
		kill(pid, SIGCHLD);
		FINE(mw_quiesce_breathe(&quiesce, 300000));
		kill(pid, SIGWINCH);
		FINE(mw_quiesce_end(&quiesce));
		assert_int_equal(write(ends[1], "x", 1), 1);
		assert_int_equal(quiet_end(pid), 0);
		close(ends[0]);
		close(ends[1]);
		board_destroy(board);
	}
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
		FINE(mw_quiesce_breathe(&quiesce, 1000000));
	assert_true(births.stood);
	/* All of them, and no other: the last may not have been counted by its maker yet. */
	assert_true(births.count - (unsigned)(board->ticks - ticks) <= 1);
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
		err = mw_quiesce_breathe(&quiesce, 1000000);
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
			FINE(mw_quiesce_breathe(&quiesce, 1000000));
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

/* Whatever a vfork is at, it is waited for until its maker can act; so it is where there is nothing to wait for. */
static void a_hand_is_awaited(void **state)
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
		FINE(mw_quiesce_await_hand(&quiesce));
		assert_int_equal(mw_quiesce_pick(&quiesce), pid);
		FINE(mw_tracee_get_regs(pid, &regs));
		FINE(mw_quiesce_end(&quiesce));
		assert_true(await_more(&board->ticks, board->ticks));
		assert_true(is_free(pid));
		quiet_kill(pid);
		board_destroy(board);
	}
}

static void no_hand_of_what_is_gone(void **state)
{
	struct board *board = board_create();
	struct mw_quiesce quiesce = {0};
	pid_t pid = quiet_start(body_long_vfork, board);
	struct mw_error *err;

	(void)state;
	FINE(mw_quiesce_begin(&quiesce, pid));
	kill(pid, SIGKILL);
	board->result = 1;
	err = mw_quiesce_await_hand(&quiesce);
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
			FINE(mw_quiesce_breathe(&quiesce, 1000000));
		assert_true(quiesce.execed);
		assert_false(quiesce.gone);
		FINE(mw_quiesce_end(&quiesce));
		assert_true(is_free(pid));
		assert_true(await_state(pid, 'S'));
		quiet_kill(pid);
		board_destroy(board);
	}
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
			FINE(mw_quiesce_breathe(&quiesce, 1000000));
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
				err = mw_quiesce_breathe(&quiesce, 100000);
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
		FINE(mw_quiesce_breathe(&quiesce, 1000000));
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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fault_lets_all_go),
		cmocka_unit_test(one_thread),
		cmocka_unit_test(threads_come_and_go),
		cmocka_unit_test(many_threads),
		cmocka_unit_test(main_thread_has_ended),
		cmocka_unit_test(breathing_lets_it_run),
		cmocka_unit_test(a_stopped_process_stays_so),
		cmocka_unit_test(stop_and_cont_meanwhile),
		cmocka_unit_test(signals_come_once),
		cmocka_unit_test(waits_are_not_seen),
		cmocka_unit_test(forked_children_are_told_of),
		cmocka_unit_test(a_failing_callback_leaves_nothing_stopped),
		cmocka_unit_test(vforks_are_held),
		cmocka_unit_test(a_long_vfork_is_held),
		cmocka_unit_test(a_hand_is_awaited),
		cmocka_unit_test(no_hand_of_what_is_gone),
		cmocka_unit_test(exec_lets_go),
		cmocka_unit_test(killed_while_standing),
		cmocka_unit_test(killed_at_any_time),
		cmocka_unit_test(ended_by_itself),
		cmocka_unit_test(another_traces_it),
		cmocka_unit_test(no_such_process),
	};

	/* One test alone, by its name, to look for what it finds seldom. */
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	else
		setenv("MEMWATCH_FAULT", "quiesce.seize:100", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
