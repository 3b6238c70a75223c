/* SPDX-License-Identifier: MIT */
/* execs PROGRAM [ARG…]: allocates, then becomes another program inside the window; with two threads at that moment. */
#include "target.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static KEEP void execs_leak(void)
{
	void *block = malloc(61);

	OPAQUE(block);
}

static void *wait_for_the_end(void *unused)
{
	for (;;)
		pause();
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 2)
		target_fail("usage: execs PROGRAM [ARG…]");
	if (pthread_create(&thread, NULL, wait_for_the_end, NULL) != 0)
		target_fail("pthread_create");
	target_ready();
	for (int i = 0; i < 20; i++)
		execs_leak();
	execv(argv[1], argv + 1);
	target_fail("execv");
}
