/* SPDX-License-Identifier: MIT */
/*
 * children_forked: children that live on: forked, forked by a child, forked by a thread, forked and become another
 * program. They allocate until they are told to end, then check what they hold and end with a status of their own. The
 * parent says who they are.
 */
#include "target.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 6
#define BLOCKS   500

static int go_on[2];    /* closed by the parent: the children end */
static int children[2]; /* process ids of all who live on */
static pid_t mine[2 * CHILDREN];
static int statuses[2 * CHILDREN];
static size_t count;

static KEEP void offspring_parent(void)
{
	void *block = malloc(84);

	OPAQUE(block);
}

static KEEP void offspring_churn(unsigned char **blocks, unsigned i)
{
	unsigned at = i % BLOCKS;

	if (blocks[at] && blocks[at][20] != (unsigned char)(at + 1))
		_exit(90);
	free(blocks[at]);
	blocks[at] = malloc(21 + i % 2000);
	if (!blocks[at])
		_exit(91);
	memset(blocks[at], (int)(at + 1), 21 + i % 2000);
}

/* Work until the pipe is closed. */
static KEEP void offspring_child(int status)
{
	static unsigned char *blocks[BLOCKS];
	pid_t pid = getpid();
	char byte;

	close(go_on[1]);
	alarm(120); /* the parent's end is the pipe's */
	for (unsigned i = 0; i < 4 * BLOCKS; i++)
		offspring_churn(blocks, i);
	if (write(children[1], &pid, sizeof(pid)) != sizeof(pid))
		_exit(92);
	for (unsigned i = 0;; i++) {
		void *page;

		offspring_churn(blocks, i);
		if (i % 500)
			continue;
		page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (page == MAP_FAILED || munmap(page, 4096))
			_exit(93);
		usleep(1000);
		if (i % 2000 == 0) {
			struct timespec none = {0, 0};
			fd_set set;

			FD_ZERO(&set);
			FD_SET(go_on[0], &set);
			if (pselect(go_on[0] + 1, &set, NULL, NULL, &none, NULL) > 0 && read(go_on[0], &byte, 1) == 0)
				_exit(status);
		}
	}
}

static void remember(pid_t pid, int status)
{
	if (pid < 0)
		target_fail("fork");
	mine[count] = pid;
	statuses[count++] = status;
}

static void by_fork(int status)
{
	pid_t pid = fork();

	if (pid == 0)
		offspring_child(status);
	remember(pid, status);
}

/* The child has a child of its own, and waits for it. */
static void by_grandchild(int status)
{
	pid_t pid = fork();

	if (pid == 0) {
		int got;
		pid_t child = fork();

		if (child == 0)
			offspring_child(status);
		close(go_on[1]);
		while (waitpid(child, &got, 0) < 0 && errno == EINTR)
			;
		_exit(WIFEXITED(got) ? WEXITSTATUS(got) : 94);
	}
	remember(pid, status);
}

static void *fork_here(void *status)
{
	by_fork((int)(intptr_t)status);
	return NULL;
}

static void by_thread(int status)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fork_here, (void *)(intptr_t)status))
		target_fail("pthread_create");
	pthread_join(thread, NULL);
}

static void by_exec(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		offspring_parent();
		execl("/bin/sh", "sh", "-c", "exit 17", (char *)NULL);
		_exit(95);
	}
	remember(pid, 17);
}

int main(void)
{
	if (pipe(go_on) || pipe(children))
		target_fail("pipe");
	target_ready();
	for (int i = 0; i < CHILDREN; i += 3) {
		offspring_parent();
		by_fork(40 + i);
		offspring_parent();
		by_grandchild(41 + i);
		by_thread(42 + i);
		by_exec();
	}
	for (int i = 0; i < CHILDREN; i++) {
		char key[] = "child0";
		pid_t pid;

		if (read(children[0], &pid, sizeof(pid)) != sizeof(pid))
			target_fail("a child is missing");
		key[5] = (char)('0' + i);
		target_say(key, (uint64_t)pid);
	}
	target_say("offspring_parent.impacting.count", 4);
	target_say("offspring_parent.impacting.bytes", 4 * 84);
	target_say("offspring_churn.size.count", 0);
	target_done();
	close(go_on[1]);
	for (size_t i = 0; i < count; i++) {
		int got;

		while (waitpid(mine[i], &got, 0) < 0)
			if (errno != EINTR)
				target_fail("waitpid");
		if (!WIFEXITED(got) || WEXITSTATUS(got) != statuses[i]) {
			target_say("child", i);
			target_say("status", (uint64_t)got);
			target_fail("a child did not end as it wanted to");
		}
	}
	return 0;
}
