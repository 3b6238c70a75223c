/* SPDX-License-Identifier: MIT */
/*
 * fork_storm [ROUNDS]: children made in every way (fork, vfork, posix_spawn, raw clone), each of which
 * must run undisturbed and end with the status it was to end with, while the parent's own
 * allocations are exact and the children's are none of its business.
 */
#include "target.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char *const true_argv[] = {(char[]){"true"}, NULL};
static char *const no_environment[] = {NULL};
static char clone_stack[65536] __attribute__((aligned(16)));

static KEEP void fork_parent_work(void)
{
	void *block = malloc(72);

	OPAQUE(block);
	free(block);
	block = malloc(73);
	OPAQUE(block);
}

/* Allocates and checks what it allocated; the status is what the parent expects. */
static KEEP int fork_child_work(int seed)
{
	char *blocks[50];

	for (int i = 0; i < 50; i++) {
		size_t size = (size_t)(seed % 7 + 1) * 100 + (size_t)i;
		blocks[i] = malloc(size);
		if (!blocks[i])
			return 99;
		memset(blocks[i], seed + i, size);
	}
	for (int i = 0; i < 50; i++) {
		if (blocks[i][10] != (char)(seed + i))
			return 98;
		free(blocks[i]);
	}
	return seed % 90;
}

static void expect_status(pid_t pid, int status, const char *what)
{
	int got;

	if (pid < 0)
		target_fail(what);
	while (waitpid(pid, &got, __WALL) < 0) {
		if (errno != EINTR)
			target_fail("waitpid");
	}
	if (!WIFEXITED(got) || WEXITSTATUS(got) != status) {
		target_say("wait_status", (uint64_t)got);
		target_fail(what);
	}
}

static void by_fork(int seed)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(fork_child_work(seed));
	expect_status(pid, seed % 90, "a forked child");
}

static void by_grandchild(int seed)
{
	pid_t pid = fork();

	if (pid == 0) {
		by_fork(seed);
		_exit(7);
	}
	expect_status(pid, 7, "a forked child with a child");
}

/* vfork's frame must not be left by the child, so it stands in the caller's. */
static void by_vfork(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		execve("/bin/true", true_argv, no_environment);
		_exit(96);
	}
	expect_status(pid, 0, "a vforked child that execs");
}

/* The child shares the parent's memory and so the parent's heap. */
static void by_vfork_that_allocates(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		void *block = malloc(333);
		OPAQUE(block);
		free(block);
		_exit(5);
	}
	expect_status(pid, 5, "a vforked child that allocates");
}

static void by_spawn(void)
{
	pid_t pid = -1;

	if (posix_spawn(&pid, "/bin/true", NULL, NULL, true_argv, no_environment) != 0)
		target_fail("posix_spawn");
	expect_status(pid, 0, "a spawned child");
}

static int clone_main(void *argument)
{
	return *(int *)argument;
}

static void by_clone(int seed)
{
	int status = seed % 90;
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		_exit(status);
	expect_status(pid, status, "a raw clone");
	pid = clone(clone_main, clone_stack + sizeof(clone_stack), CLONE_VM | CLONE_VFORK, &status);
	expect_status(pid, status, "a clone that shares memory");
	pid = clone(clone_main, clone_stack + sizeof(clone_stack), SIGCHLD | CLONE_UNTRACED, &status);
	expect_status(pid, status, "an untraced clone");
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 40;

	target_ready();
	for (int i = 0; i < rounds; i++) {
		fork_parent_work();
		by_fork(i);
		fork_parent_work();
		by_grandchild(i);
		by_vfork();
		by_vfork_that_allocates();
		by_spawn();
		by_clone(i);
	}
	target_say("fork_parent_work.size.count", (uint64_t)rounds * 4);
	target_say("fork_parent_work.transient.count", (uint64_t)rounds * 2);
	target_say("fork_parent_work.impacting.count", (uint64_t)rounds * 2);
	target_say("fork_parent_work.impacting.bytes", (uint64_t)rounds * 2 * 73);
	target_say("fork_child_work.size.count", 0);
	target_done();
	return 0;
}
