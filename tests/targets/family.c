/* SPDX-License-Identifier: MIT */
/*
 * family: a master whose workers come to be inside the window: forked; or forked and become another run of this program
 * ("exec"); or that, but forked by a process that ends at once ("daemon"). Each waits until all are watched, then leaks 10
 * blocks more than the one before it, and ends with a status of its own when the master lets it.
 * family reuse: two workers, one after the other, by one process number.
 */
#include "target.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
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

/* As "exec", made by one that ends at once. */
static pid_t start_daemon(unsigned k, const char *self)
{
	pid_t maker, pid = -1;
	int number[2];

	if (pipe(number))
		target_fail("pipe");
	maker = fork();
	if (maker == 0) {
		pid = start(k, self, true);
		_exit(write(number[1], &pid, sizeof(pid)) != sizeof(pid));
	}
	if (maker < 0 || read(number[0], &pid, sizeof(pid)) != sizeof(pid) || waitpid(maker, NULL, 0) != maker)
		target_fail("a maker");
	close(number[0]);
	close(number[1]);
	return pid;
}

static void make_pipes(void)
{
	if (pipe(work) || pipe(finished) || pipe(end))
		target_fail("pipe");
}

/* Let the worker do its work, and end. */
static void await_end(unsigned k, pid_t pid)
{
	char byte;
	int status;

	close(work[1]);
	if (read(finished[0], &byte, 1) != 1)
		target_fail("a worker");
	close(end[1]);
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != (int)(20 + k))
		target_fail("a worker's status");
}

/* Have the kernel give that number to the next process. */
static bool ask_for(pid_t pid)
{
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	bool good = fd >= 0 && dprintf(fd, "%d", (int)pid - 1) > 0;

	if (fd >= 0)
		close(fd);
	return good;
}

/* 0: it can't be had. Others may get the number before, and what has another number ends. */
static pid_t start_by_number(unsigned k, const char *self, pid_t number)
{
	for (int i = 0; i < 1000 && ask_for(number); i++) {
		pid_t pid;

		make_pipes();
		pid = start(k, self, false);
		if (pid == number || pid < 0)
			return pid < 0 ? 0 : pid;
		await_end(k, pid);
	}
	return 0;
}

static int reuse(const char *self)
{
	pid_t first, second;

	make_pipes();
	target_ready();
	first = start(0, self, false);
	target_say("worker0", (uint64_t)first);
	target_done();
	await_end(0, first);
	second = start_by_number(1, self, first);
	target_say("worker1", (uint64_t)second);
	target_done();
	if (second)
		await_end(1, second);
	target_done();
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	pid_t pids[WORKERS];
	char byte;

	if (argc == 5) {
		work[0] = atoi(argv[2]);
		finished[1] = atoi(argv[3]);
		end[0] = atoi(argv[4]);
		family_worker((unsigned)atoi(argv[1]));
	}
	if (strcmp(mode, "reuse") == 0)
		return reuse(argv[0]);
	make_pipes();
	/* Daemons are its to wait for. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
		target_fail("prctl");
	target_ready();
	for (unsigned k = 0; k < WORKERS; k++) {
		char name[] = "worker0";

		name[6] = (char)('0' + k);
		pids[k] = strcmp(mode, "daemon") == 0 ? start_daemon(k, argv[0])
						      : start(k, argv[0], strcmp(mode, "exec") == 0);
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
