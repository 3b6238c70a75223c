/* SPDX-License-Identifier: MIT */
/*
 * stacks_after_free: a free, and then threads started by the same function: their stacks are mapped by calls that lie
 * where that of the free lay.
 */
#include "target.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS 20

static void *wait_for_ever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static KEEP void free_and_start(void)
{
	free(target_filled(5, 5));
	for (size_t i = 0; i < THREADS; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, wait_for_ever, NULL) != 0)
			target_fail("pthread_create");
	}
}

int main(void)
{
	target_ready();
	free_and_start();
	target_say("stacks", THREADS);
	target_done();
	return 0;
}
