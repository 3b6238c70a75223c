/* SPDX-License-Identifier: MIT */
/*
 * family: a master whose workers come to be inside the window: forked, or forked and become another run of this program
 * ("exec"). Each waits until all are watched, then leaks 10 blocks more than the one before it, and ends with a status of
 * its own when the master lets it.
 */
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS 4

static int work[2], finished[2], end[2]; /* closed: work, end; a byte each: finished */

static KEEP void family_leak(unsigned k)
{
	void *block = malloc(60 + k);

	OPAQUE(block);
}

static void await_close(int fd)
{
	char byte;

	while (read(fd, &byte, 1) > 0)
		;
}

static KEEP void family_worker(unsigned k)
{
	alarm(110);
	await_close(work[0]);
	for (unsigned i = 0; i < 10 * (k + 1); i++)
		family_leak(k);
	if (write(finished[1], "", 1) != 1)
		_exit(99);
	await_close(end[0]);
	_exit((int)(20 + k));
}

static pid_t start(unsigned k, const char *self, bool execs)
{
	char number[12], work_fd[12], finished_fd[12], end_fd[12];
	pid_t pid;

	snprintf(number, sizeof(number), "%u", k);
	snprintf(work_fd, sizeof(work_fd), "%d", work[0]);
	snprintf(finished_fd, sizeof(finished_fd), "%d", finished[1]);
	snprintf(end_fd, sizeof(end_fd), "%d", end[0]);
	pid = fork();
	if (pid)
		return pid;
	close(work[1]);
	close(end[1]);
	if (execs)
		execl(self, self, number, work_fd, finished_fd, end_fd, (char *)NULL);
	family_worker(k);
	_exit(98);
}

int main(int argc, char **argv)
{
	pid_t pids[WORKERS];
	char byte;

	if (argc == 5) {
		work[0] = atoi(argv[2]);
		finished[1] = atoi(argv[3]);
		end[0] = atoi(argv[4]);
		family_worker((unsigned)atoi(argv[1]));
	}
	if (pipe(work) || pipe(finished) || pipe(end))
		target_fail("pipe");
	target_ready();
	for (unsigned k = 0; k < WORKERS; k++) {
		char name[] = "worker0";

		name[6] = (char)('0' + k);
		pids[k] = start(k, argv[0], argc > 1 && strcmp(argv[1], "exec") == 0);
		if (pids[k] < 0)
			target_fail("fork");
		target_say(name, (uint64_t)pids[k]);
	}
	target_done();
	close(work[1]);
	for (unsigned k = 0; k < WORKERS; k++)
		if (read(finished[0], &byte, 1) != 1)
			target_fail("a worker");
	target_done();
	close(end[1]);
	for (unsigned k = 0; k < WORKERS; k++) {
		int status;

		if (waitpid(pids[k], &status, 0) != pids[k] || !WIFEXITED(status) ||
		    WEXITSTATUS(status) != (int)(20 + k))
			target_fail("a worker's status");
	}
	return 0;
}
