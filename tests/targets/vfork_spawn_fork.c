/* SPDX-License-Identifier: MIT */
/*
 * vfork_spawn_fork COUNT: so many children each that end by _exit in their parent's memory (vfork), that fail to be
 * spawned, that are spawned and run another program, and that are forked; then it holds a block and goes on.
 */
#include "target.h"

#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char *const nothing[] = {NULL};
static char *const arguments[] = {(char[]){"true"}, NULL};

static KEEP void errands_block(void)
{
	void *block = malloc(500);

	OPAQUE(block);
}

static void expect(pid_t child, int status)
{
	int got = -1;

	if (child < 0 || waitpid(child, &got, 0) != child || !WIFEXITED(got) || WEXITSTATUS(got) != status)
		target_fail("a child");
}

static KEEP pid_t vforked(void)
{
	pid_t child = vfork();

	if (child == 0)
		_exit(9);
	return child;
}

static KEEP pid_t forked(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(9);
	return child;
}

int main(int argc, char **argv)
{
	unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 100;
	pid_t child;

	target_ready();
	for (unsigned i = 0; i < count; i++) {
		expect(vforked(), 9);
		expect(forked(), 9);
		if (posix_spawn(&child, "/nonexistent/program", NULL, NULL, arguments, nothing) == 0)
			target_fail("posix_spawn");
		if (posix_spawn(&child, "/bin/true", NULL, NULL, arguments, nothing) != 0)
			target_fail("posix_spawn");
		expect(child, 0);
	}
	errands_block();
	target_say("children", 4 * (uint64_t)count);
	target_done();
	return 0;
}
