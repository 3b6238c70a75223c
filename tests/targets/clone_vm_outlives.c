/* SPDX-License-Identifier: MIT */
/*
 * clone_vm_outlives exit|kill|exec: a child that shares the program's memory but is a process of its own, and goes on
 * in that memory when the program has ended or become another.
 */
#include "target.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STACK  ((size_t)256 << 10)
#define BEFORE 20
#define AFTER  100

static pid_t parent;
static volatile int rounds;

static KEEP void outlives_pair(void)
{
	char *block = malloc(66);

	OPAQUE(block);
	memset(block, 1, 66);
	free(block);
	rounds++;
	usleep(2000);
}

/* The parent only waits, so its thread's storage, which is also this one's, is in nobody else's hands. */
static int outlive(void *unused)
{
	(void)unused;
	alarm(60);
	while (getppid() == parent)
		outlives_pair();
	for (int i = 0; i < AFTER; i++)
		outlives_pair();
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "exit";
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	if (stack == MAP_FAILED)
		target_fail("mmap");
	parent = getpid();
	target_ready();
	child = clone(outlive, stack + STACK, CLONE_VM | SIGCHLD, NULL);
	if (child < 0)
		target_fail("clone");
	target_say("child", (uint64_t)child);
	while (rounds < BEFORE)
		usleep(1000);
	if (strcmp(how, "exec") == 0)
		execl("/bin/sleep", "sleep", "3", (char *)NULL); /* not over before it is seen to be another */
	else if (strcmp(how, "kill") == 0)
		kill(parent, SIGKILL);
	else
		_exit(0);
	target_fail(how);
}
