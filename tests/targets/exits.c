/* SPDX-License-Identifier: MIT */
/* exits status|segv|kill|thread|large: leaks ten blocks and ends inside the window. */
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

#define LARGE (384u << 20)

static void *exit_from_here(void *unused)
{
	pthread_setname_np(pthread_self(), "goodbye");
	exits_leak();
	usleep(100000);
	exit(4);
	return unused;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "status";
	pthread_t thread;

	/* It takes the kernel a while to give that back. */
	if (strcmp(how, "large") == 0) {
		void *block = malloc(LARGE);

		if (block)
			memset(block, 1, LARGE);
		OPAQUE(block);
	}
	target_ready();
	for (int i = strcmp(how, "thread") == 0; i < 10; i++)
		exits_leak();
	if (strcmp(how, "segv") == 0)
		raise(SIGSEGV);
	if (strcmp(how, "kill") == 0)
		raise(SIGKILL);
	if (strcmp(how, "thread") == 0 && pthread_create(&thread, NULL, exit_from_here, NULL) == 0)
		pthread_join(thread, NULL);
	return 3;
}
