/* SPDX-License-Identifier: MIT */
/*
 * execs [other|leaderless] PROGRAM [ARG…]: allocates, then becomes another program inside the window; with two threads
 * at that moment. Other: the second thread does it, with SIGTRAP blocked; leaderless: after the first has ended.
 */
#include "target.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool leaderless;
static pthread_t leader;

static KEEP void execs_leak(void)
{
	void *block = malloc(61);

	OPAQUE(block);
}

static void become(char **command)
{
	target_ready();
	for (int i = 0; i < 20; i++)
		execs_leak();
	execv(command[0], command);
	target_fail("execv");
}

static void *wait_for_the_end(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void *second(void *command)
{
	sigset_t trap;

	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	pthread_sigmask(SIG_BLOCK, &trap, NULL);
	if (leaderless && pthread_join(leader, NULL) != 0)
		target_fail("pthread_join");
	become(command);
	return NULL;
}

int main(int argc, char **argv)
{
	bool other = argc > 1 && strcmp(argv[1], "other") == 0;
	pthread_t thread;

	leader = pthread_self();
	leaderless = argc > 1 && strcmp(argv[1], "leaderless") == 0;
	if (other || leaderless)
		argv++;
	if (!argv[1])
		target_fail("usage: execs [other|leaderless] PROGRAM [ARG…]");
	if (pthread_create(&thread, NULL, other || leaderless ? second : wait_for_the_end, argv + 1) != 0)
		target_fail("pthread_create");
	if (leaderless)
		pthread_exit(NULL);
	if (other)
		wait_for_the_end(NULL);
	become(argv + 1);
}
