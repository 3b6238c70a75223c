// SPDX-License-Identifier: MIT
/* quiesce_test.c: processes that stand still, and are let go as they were. */
#include "quiesce_bodies.h"
#include "tracee_child.h"
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

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
				FINE(mw_quiesce_run_briefly(&quiesce, 2000000));
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
			FINE(mw_quiesce_run_briefly(&quiesce, 1000000));
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
			FINE(mw_quiesce_run_briefly(&quiesce, 1000000));
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
				FINE(mw_quiesce_run_briefly(&quiesce, 200000));
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
		FINE(mw_quiesce_run_briefly(&quiesce, 300000));
		kill(pid, SIGWINCH);
		FINE(mw_quiesce_end(&quiesce));
		assert_int_equal(write(ends[1], "x", 1), 1);
		assert_int_equal(quiet_end(pid), 0);
		close(ends[0]);
		close(ends[1]);
		board_destroy(board);
	}
}

UNIT_GROUP(quiesce)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_thread),
		cmocka_unit_test(threads_come_and_go),
		cmocka_unit_test(many_threads),
		cmocka_unit_test(main_thread_has_ended),
		cmocka_unit_test(breathing_lets_it_run),
		cmocka_unit_test(a_stopped_process_stays_so),
		cmocka_unit_test(stop_and_cont_meanwhile),
		cmocka_unit_test(signals_come_once),
		cmocka_unit_test(waits_are_not_seen),
	};

	/* One test alone, by its name, to look for what it finds seldom. */
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
