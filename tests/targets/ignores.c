/* SPDX-License-Identifier: MIT */
/*
 * ignores PROGRAM ARG…: ignores SIGTRAP. Starts programs in every way inside the window, some of which are to be
 * without what it ignores, and says how many found another action than that; then it becomes PROGRAM.
 * ignores --look: 0 where SIGTRAP is ignored, 1 where it has the default action.
 */
#include "target.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 10

static char *const look[] = {(char[]){"ignores"}, (char[]){"--look"}, NULL};
static char *const no_environment[] = {NULL};

static bool is_ignored(void)
{
	struct sigaction action;

	if (sigaction(SIGTRAP, NULL, &action) != 0)
		target_fail("sigaction");
	return action.sa_handler == SIG_IGN;
}

static unsigned ended_otherwise(pid_t pid, int expected)
{
	int status = -1;

	if (pid < 0)
		target_fail("a child");
	return waitpid(pid, &status, 0) != pid || status != expected << 8;
}

/* With whatever the child does on its way. */
static KEEP pid_t by_vfork(void (*first)(void))
{
	pid_t pid = vfork();

	if (pid == 0) {
		if (first)
			first();
		execve("/proc/self/exe", look, no_environment);
		_exit(99);
	}
	return pid;
}

static pid_t by_fork(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execve("/proc/self/exe", look, no_environment);
		_exit(99);
	}
	return pid;
}

static pid_t by_spawn(bool resets)
{
	posix_spawnattr_t attributes;
	sigset_t trap;
	pid_t pid = -1;

	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	if (posix_spawnattr_init(&attributes) != 0 ||
	    (resets && (posix_spawnattr_setsigdefault(&attributes, &trap) != 0 ||
			posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF) != 0)) ||
	    posix_spawn(&pid, "/proc/self/exe", NULL, &attributes, look, no_environment) != 0)
		pid = -1;
	posix_spawnattr_destroy(&attributes);
	return pid;
}

static void allocate(void)
{
	void *block = malloc(31);

	OPAQUE(block);
	free(block);
}

static void reset(void)
{
	signal(SIGTRAP, SIG_DFL);
}

static void reset_and_ignore(void)
{
	signal(SIGTRAP, SIG_DFL);
	signal(SIGTRAP, SIG_IGN);
}

int main(int argc, char **argv)
{
	unsigned otherwise = 0;

	if (argc > 1 && strcmp(argv[1], "--look") == 0)
		return is_ignored() ? 0 : 1;
	if (argc < 2 || signal(SIGTRAP, SIG_IGN) == SIG_ERR)
		target_fail("usage: ignores PROGRAM");
	target_ready();
	for (int i = 0; i < ROUNDS; i++) {
		otherwise += ended_otherwise(by_vfork(NULL), 0);
		otherwise += ended_otherwise(by_vfork(allocate), 0);
		otherwise += ended_otherwise(by_vfork(reset), 1);
		otherwise += ended_otherwise(by_vfork(reset_and_ignore), 0);
		otherwise += ended_otherwise(by_fork(), 0);
		otherwise += ended_otherwise(by_spawn(false), 0);
		otherwise += ended_otherwise(by_spawn(true), 1);
	}
	target_say("otherwise", otherwise);
	target_say("ignored", is_ignored());
	target_done();
	execv(argv[1], argv + 1);
	target_fail("execv");
}
