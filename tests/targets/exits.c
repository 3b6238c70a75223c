/* SPDX-License-Identifier: MIT */
/* exits status|segv|kill|thread: leaks ten blocks and ends inside the window. */
#include "target.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static KEEP void exits_leak(void)
{
	void *block = malloc(83);

	OPAQUE(block);
}

static void *exit_from_here(void *unused)
{
	exit(4);
	return unused;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "status";
	pthread_t thread;

	target_ready();
	for (int i = 0; i < 10; i++)
		exits_leak();
	if (strcmp(how, "segv") == 0)
		raise(SIGSEGV);
	if (strcmp(how, "kill") == 0)
		raise(SIGKILL);
	if (strcmp(how, "thread") == 0 && pthread_create(&thread, NULL, exit_from_here, NULL) == 0)
		pthread_join(thread, NULL);
	return 3;
}
