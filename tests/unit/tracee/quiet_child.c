// SPDX-License-Identifier: MIT
/* quiet_child.c: children that are not traced (quiet_child.h). */
#include "quiet_child.h"

#include "proc/status.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 10000

struct board *board_create(void)
{
	struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(board != MAP_FAILED);
	return board;
}

void board_destroy(struct board *board)
{
	munmap(board, sizeof(*board));
}

pid_t quiet_start(int (*body)(struct board *board), struct board *board)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(body(board));
	}
	for (unsigned i = 0; i < PATIENCE_MS && !board->ready; i++)
		usleep(1000);
	assert_true(board->ready);
	return pid;
}

int quiet_end(pid_t pid)
{
	int status;
	pid_t got;

	do
		got = waitpid(pid, &status, __WALL);
	while (got < 0 && errno == EINTR);
	assert_int_equal(got, pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void quiet_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(quiet_end(pid), 128 + SIGKILL);
}

char state_of(pid_t tid)
{
	struct mw_status status;
	struct mw_error *err = mw_status_read(tid, &status);
	char state = err ? 'X' : status.state;

	mw_error_destroy(err);
	return state;
}

bool is_free(pid_t pid)
{
	pid_t *tids = NULL;
	size_t count = 0;
	bool all = true;

	mw_error_destroy(mw_tasks_read(pid, &tids, &count));
	for (size_t i = 0; i < count; i++) {
		struct mw_status status;
		struct mw_error *err = mw_status_read(tids[i], &status);

		if (!err && (status.tracer != 0 || status.state == 't'))
			all = false;
		mw_error_destroy(err);
	}
	free(tids);
	return all;
}

bool await_state(pid_t tid, char state)
{
	for (unsigned i = 0; i < PATIENCE_MS; i++) {
		if (state_of(tid) == state)
			return true;
		usleep(1000);
	}
	return false;
}

bool await_more(atomic_long *counter, long than)
{
	for (unsigned i = 0; i < PATIENCE_MS; i++) {
		if (*counter > than)
			return true;
		usleep(1000);
	}
	return false;
}
