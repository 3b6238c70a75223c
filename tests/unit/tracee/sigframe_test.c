// SPDX-License-Identifier: MIT
/* sigframe_test.c: a tracer that is killed while a thread performs system calls for it takes nothing from the thread.
 */
#include "sigframe_compute.h"
#include "tracee/inject.h"
#include "tracee/tracee.h"
#include "tracee_child.h"
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* scripts/soak does more of them. */
#define ROUNDS (getenv("MEMWATCH_SOAK") ? 150U : 20U)

struct board {
	volatile uint64_t rounds; /* that were found in order */
	volatile bool over;
	volatile int calls; /* of the tracer */
	int pipe[2];
	bool popping; /* a program without a restorer */
};

/* As it may stand in any code. */
__asm__(".text\n"
	"gadget: pop %rax\n"
	"ret\n"
	"call_and_return: syscall\n"
	"ret\n");
extern const char gadget[], call_and_return[];

static bool has_its_mask(void)
{
	sigset_t now;

	sigprocmask(SIG_BLOCK, NULL, &now);
	return sigismember(&now, SIGUSR1) && !sigismember(&now, SIGUSR2) && !sigismember(&now, SIGTERM);
}

static void prepare(void)
{
	sigset_t mask;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigprocmask(SIG_SETMASK, &mask, NULL);
}

static int body_computing(void *context)
{
	struct board *board = context;

	prepare();
	while (!board->over) {
		if (!sigframe_computes() || !has_its_mask())
			return 3;
		board->rounds++;
	}
	return 0;
}

/* Calls that the kernel restarts as they were, and one that it may end. */
static int body_waiting(void *context)
{
	struct board *board = context;
	struct pollfd fd = {.fd = board->pipe[0], .events = POLLIN};
	char byte;

	prepare();
	while (!board->over) {
		int got = poll(&fd, 1, 1000000);

		if (!has_its_mask() || (got < 0 && errno != EINTR))
			return 3;
		if (got < 0)
			continue;
		if (read(board->pipe[0], &byte, 1) != 1 || read(board->pipe[0], &byte, 1) != 1)
			return 4;
		board->rounds++;
	}
	return 0;
}

/* It has the target perform one call after the other until it is killed. */
static int trace(struct board *board, pid_t pid)
{
	struct mw_inject inject;
	struct mw_maps maps = {0};
	const uint64_t arguments[6] = {0};
	int64_t result;
	int status;

	FINE(mw_tracee_seize(pid));
	FINE(mw_tracee_interrupt(pid));
	if (waitpid(pid, &status, __WALL) != pid)
		return 5;
	FINE(mw_maps_read(pid, &maps));
	FINE(mw_inject_init(&inject, pid, &maps));
	if (!inject.code.restorer || !mw_inject_leads_back(&inject))
		return 6;
	if (board->popping)
		inject.code = (struct mw_way_code){.gadget = (uintptr_t)gadget, .insn = (uintptr_t)call_and_return};
	for (;;) {
		FINE(mw_inject_call(&inject, SYS_getppid, arguments, &result));
		board->calls++;
	}
}

static void await(const struct board *board, uint64_t rounds, pid_t pid)
{
	const struct timespec moment = {.tv_nsec = 200000};
	int status;

	while (board->rounds < rounds) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			fail_msg("the target has ended with 0x%x after %d calls", status, board->calls);
		nanosleep(&moment, NULL);
	}
}

/* Kill a tracer at some moment of its calls. */
static void kill_one(struct board *board, pid_t pid)
{
	const struct timespec moment = {.tv_nsec = 20000 + rand() % 200000};
	int before = board->calls, status;
	pid_t tracer = fork();

	assert_true(tracer >= 0);
	if (tracer == 0)
		_exit(trace(board, pid));
	while (board->calls == before)
		if (waitpid(tracer, &status, WNOHANG) == tracer)
			fail_msg("the tracer has ended with 0x%x", status);
	nanosleep(&moment, NULL);
	kill(tracer, SIGKILL);
	waitpid(tracer, &status, 0);
}

static void test_tracer_killed(int (*body)(void *), bool feed, bool popping)
{
	struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	assert_true(board != MAP_FAILED);
	assert_int_equal(pipe(board->pipe), 0);
	board->popping = popping;
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		_exit(body(board));
	}
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t rounds = board->rounds;

		if (!feed)
			await(board, rounds + 1, pid);
		rounds = board->rounds;
		kill_one(board, pid);
		if (feed)
			assert_int_equal(write(board->pipe[1], "ab", 2), 2);
		await(board, rounds + 2 - feed, pid);
	}
	board->over = true;
	if (feed)
		assert_int_equal(write(board->pipe[1], "ab", 2), 2);
	assert_int_equal(child_end(pid), 0);
	close(board->pipe[0]);
	close(board->pipe[1]);
	munmap(board, sizeof(*board));
}

static void test_computing(void **state)
{
	(void)state;
	test_tracer_killed(body_computing, false, false);
}

static void test_waiting(void **state)
{
	(void)state;
	test_tracer_killed(body_waiting, true, false);
}

static void test_without_a_restorer(void **state)
{
	(void)state;
	test_tracer_killed(body_computing, false, true);
	test_tracer_killed(body_waiting, true, true);
}

UNIT_GROUP(sigframe)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_computing),
		cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_without_a_restorer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
