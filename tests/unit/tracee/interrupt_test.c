// SPDX-License-Identifier: MIT
/* interrupt_test.c: system calls that a tracer's interrupt would end with EINTR, and must not. */
#include "tracee/tracee.h"
#include "tracee_child.h"
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { FINISHED, INTERRUPTED, FAILED, HANDLED = 16 /* added where a handler ran */ };

/* One way to wait: what the child does, and how it is brought to an end. */
struct wait {
	int sockets[2]; /* the child reads [0] */
	int epoll, semaphore;
	int (*call)(struct wait *wait);
	void (*finish)(struct wait *wait, pid_t pid);
	long number;
	int handler_flags; /* of the child's handler for SIGUSR1; -1: none */
};

static volatile sig_atomic_t handled;

static void handler(int number)
{
	(void)number;
	handled = 1;
}

static int result_of(bool finished)
{
	if (finished)
		return FINISHED;
	return errno == EINTR ? INTERRUPTED : FAILED;
}

static int call_epoll(struct wait *wait)
{
	struct epoll_event event;

	return result_of(epoll_wait(wait->epoll, &event, 1, -1) == 1);
}

static int call_sigtimedwait(struct wait *wait)
{
	struct timespec most = {.tv_sec = 60};
	sigset_t set;

	(void)wait;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return result_of(sigtimedwait(&set, NULL, &most) == SIGUSR2);
}

static int call_semop(struct wait *wait)
{
	struct sembuf down = {.sem_op = -1};

	return result_of(syscall(SYS_semtimedop, wait->semaphore, &down, 1, NULL) == 0);
}

/* With a time limit, recv is not restarted after a stop either. */
static int call_recv(struct wait *wait)
{
	struct timeval most = {.tv_sec = 60};
	char byte;

	if (setsockopt(wait->sockets[0], SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)))
		return FAILED;
	return result_of(recv(wait->sockets[0], &byte, 1, 0) == 1);
}

/* These the kernel restarts by itself; they must go on doing so. */
static int call_read(struct wait *wait)
{
	char byte;

	return result_of(read(wait->sockets[0], &byte, 1) == 1);
}

static int call_poll(struct wait *wait)
{
	struct pollfd fd = {.fd = wait->sockets[0], .events = POLLIN};

	return result_of(poll(&fd, 1, 60000) == 1);
}

static int call_nanosleep(struct wait *wait)
{
	struct timespec length = {.tv_nsec = 300000000}, begin, end;
	int error;

	(void)wait;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	error = clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	if (error)
		return error == EINTR ? INTERRUPTED : FAILED;
	/* Not started over at every stop. */
	return end.tv_sec - begin.tv_sec < 10 ? FINISHED : FAILED;
}

static void finish_socket(struct wait *wait, pid_t pid)
{
	(void)pid;
	assert_int_equal(write(wait->sockets[1], "x", 1), 1);
}

static void finish_signal(struct wait *wait, pid_t pid)
{
	(void)wait;
	kill(pid, SIGUSR2);
}

static void finish_semaphore(struct wait *wait, pid_t pid)
{
	struct sembuf up = {.sem_op = 1};

	(void)pid;
	assert_int_equal(semop(wait->semaphore, &up, 1), 0);
}

static void finish_itself(struct wait *wait, pid_t pid)
{
	(void)wait, (void)pid;
}

static int body(void *context)
{
	struct wait *wait = context;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (wait->handler_flags >= 0) {
		struct sigaction action = {.sa_handler = handler, .sa_flags = wait->handler_flags};

		sigaction(SIGUSR1, &action, NULL);
	}
	return wait->call(wait) + (handled ? HANDLED : 0);
}

static const struct wait kinds[] = {
	{.call = call_epoll, .finish = finish_socket, .number = SYS_epoll_wait},
	{.call = call_sigtimedwait, .finish = finish_signal, .number = SYS_rt_sigtimedwait},
	{.call = call_semop, .finish = finish_semaphore, .number = SYS_semtimedop},
	{.call = call_recv, .finish = finish_socket, .number = SYS_recvfrom},
	{.call = call_read, .finish = finish_socket, .number = SYS_read},
	{.call = call_poll, .finish = finish_socket, .number = SYS_poll},
	{.call = call_nanosleep, .finish = finish_itself, .number = SYS_clock_nanosleep},
};

static void wait_init(struct wait *wait, const struct wait *kind, int handler_flags)
{
	struct epoll_event event = {.events = EPOLLIN};

	*wait = *kind;
	wait->handler_flags = handler_flags;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, wait->sockets), 0);
	wait->epoll = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(epoll_ctl(wait->epoll, EPOLL_CTL_ADD, wait->sockets[0], &event), 0);
	wait->semaphore = semget(IPC_PRIVATE, 1, 0600);
	assert_true(wait->semaphore >= 0);
}

static void wait_deinit(struct wait *wait)
{
	close(wait->sockets[0]);
	close(wait->sockets[1]);
	close(wait->epoll);
	semctl(wait->semaphore, 0, IPC_RMID);
}

/* As attaching does it: stop, mend, let run. */
static void disturb(pid_t pid)
{
	child_stop(pid);
	FINE(mw_tracee_mend_interrupted_call(pid));
	FINE(mw_tracee_resume(pid, 0));
}

static void stops_are_not_seen(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct wait wait;
		pid_t pid;
		int result;

		wait_init(&wait, &kinds[i], -1);
		pid = child_start(body, &wait);
		child_await_call(pid, wait.number);
		for (unsigned j = 0; j < 5; j++) {
			disturb(pid);
			usleep(1000 * (j % 2));
		}
		wait.finish(&wait, pid);
		result = child_end(pid);
		if (result != FINISHED)
			fail_msg("system call %ld: %d", wait.number, result);
		wait_deinit(&wait);
	}
}

static void detaching_is_not_seen(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct wait wait;
		pid_t pid;
		int result, status;

		wait_init(&wait, &kinds[i], -1);
		pid = child_start(body, &wait);
		child_await_call(pid, wait.number);
		child_stop(pid);
		FINE(mw_tracee_mend_interrupted_call(pid));
		FINE(mw_tracee_detach(pid, 0));
		usleep(1000);
		wait.finish(&wait, pid);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		result = WIFEXITED(status) ? WEXITSTATUS(status) : status;
		if (result != FINISHED)
			fail_msg("system call %ld: %d", wait.number, result);
		wait_deinit(&wait);
	}
}

/* A signal that comes while it stands still, or right after: its handler runs, and the call ends as it would have. */
static void handlers_end_calls(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++) {
		/* epoll_wait, sigtimedwait and semop are never restarted after a handler, whatever its flags say. */
		for (int variant = 0; variant < 4; variant++) {
			struct wait wait;
			pid_t pid;
			int result;

			wait_init(&wait, &kinds[i], variant % 2 ? SA_RESTART : 0);
			pid = child_start(body, &wait);
			child_await_call(pid, wait.number);
			disturb(pid);
			child_stop(pid);
			FINE(mw_tracee_mend_interrupted_call(pid));
			if (variant / 2)
				kill(pid, SIGUSR1);
			FINE(mw_tracee_resume(pid, 0));
			if (!(variant / 2)) {
				child_await_call(pid, wait.number);
				kill(pid, SIGUSR1);
			}
			result = child_end(pid);
			if (result != HANDLED + INTERRUPTED)
				fail_msg("system call %ld, variant %d: %d", wait.number, variant, result);
			wait_deinit(&wait);
		}
	}
}

/* A signal that nobody handles ends nothing. */
static void ignored_signals_end_nothing(void **state)
{
	struct wait wait;
	pid_t pid;

	(void)state;
	wait_init(&wait, &kinds[0], -1);
	pid = child_start(body, &wait);
	child_await_call(pid, wait.number);
	child_stop(pid);
	FINE(mw_tracee_mend_interrupted_call(pid));
	kill(pid, SIGURG);
	FINE(mw_tracee_resume(pid, 0));
	/* A tracer is told of it all the same. */
	assert_true(is_signal(child_next_stop(pid), SIGURG));
	FINE(mw_tracee_resume(pid, SIGURG));
	disturb(pid);
	wait.finish(&wait, pid);
	assert_int_equal(child_end(pid), FINISHED);
	wait_deinit(&wait);
}

UNIT_GROUP(interrupt)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stops_are_not_seen),
		cmocka_unit_test(detaching_is_not_seen),
		cmocka_unit_test(handlers_end_calls),
		cmocka_unit_test(ignored_signals_end_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
