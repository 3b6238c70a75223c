// SPDX-License-Identifier: MIT
/* tracee_child.c: a traced child (tracee_child.h). */
#include "tracee_child.h"

#include "tracee/tracee.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 5000

void fine(struct mw_error *err, const char *what)
{
	if (err)
		fail_msg("%s: %s", what, mw_error_text(err));
}

pid_t child_start(int (*body)(void *context), void *context)
{
	int ready[2], go[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(go), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		if (write(ready[1], "r", 1) != 1 || read(go[0], &byte, 1) != 1)
			_exit(99);
		close(ready[0]);
		close(ready[1]);
		close(go[0]);
		_exit(body(context));
	}
	close(go[0]);
	close(ready[1]);
	/* Inside fork() it still puts its signal mask back. */
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	FINE(mw_tracee_seize(pid));
	assert_int_equal(write(go[1], "g", 1), 1);
	close(go[1]);
	return pid;
}

int child_sleep(void *context)
{
	(void)context;
	while (pause() < 0)
		;
	return 0;
}

int child_next_stop(pid_t pid)
{
	int status;
	pid_t got;

	do
		got = waitpid(pid, &status, __WALL);
	while (got < 0 && errno == EINTR);
	assert_int_equal(got, pid);
	if (!WIFSTOPPED(status))
		fail_msg("the child ended with %#x", (unsigned)status);
	return status;
}

bool is_event(int status, int event)
{
	return WIFSTOPPED(status) && status >> 16 == event;
}

bool is_signal(int status, int number)
{
	return WIFSTOPPED(status) && status >> 16 == 0 && WSTOPSIG(status) == number;
}

void child_stop(pid_t pid)
{
	FINE(mw_tracee_interrupt(pid));
	assert_true(is_event(child_next_stop(pid), PTRACE_EVENT_STOP));
}

void child_await_call(pid_t pid, long number)
{
	char path[64], line[256];

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	for (unsigned waited = 0; waited < PATIENCE_MS; waited++) {
		FILE *file = fopen(path, "re");
		long now = -1;

		assert_non_null(file);
		/* "running" where it is in none. */
		if (fgets(line, sizeof(line), file) && sscanf(line, "%ld", &now) == 1 && now == number) {
			fclose(file);
			return;
		}
		fclose(file);
		usleep(1000);
	}
	fail_msg("the child does not come to system call %ld", number);
}

int child_end(pid_t pid)
{
	for (;;) {
		int status;

		if (waitpid(pid, &status, __WALL) < 0) {
			assert_int_equal(errno, EINTR);
			continue;
		}
		if (WIFEXITED(status))
			return WEXITSTATUS(status);
		if (WIFSIGNALED(status))
			return 128 + WTERMSIG(status);
		mw_error_destroy(mw_tracee_resume(pid, status >> 16 ? 0 : WSTOPSIG(status)));
	}
}

void child_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(child_end(pid), 128 + SIGKILL);
}
