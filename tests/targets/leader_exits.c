/* SPDX-License-Identifier: MIT */
/* leader_exits: the main thread has ended, the others work on. */
#include "target.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 500

static KEEP void leader_leak(void)
{
	void *block = malloc(91);

	OPAQUE(block);
}

static KEEP void leader_pair(void)
{
	void *block = malloc(92);

	OPAQUE(block);
	free(block);
}

static void *work(void *unused)
{
	/* Long enough for the main thread to be gone: nothing tells a thread that it is alone but time. */
	usleep(200000);
	target_ready();
	for (int i = 0; i < ROUNDS; i++) {
		leader_leak();
		leader_pair();
	}
	target_say("leader_leak.impacting.count", ROUNDS);
	target_say("leader_leak.impacting.bytes", ROUNDS * 91);
	target_say("leader_pair.transient.count", ROUNDS);
	target_done();
	_exit(0);
	return unused;
}

static void *idle(void *unused)
{
	for (;;)
		pause();
	return unused;
}

int main(void)
{
	pthread_t threads[2];

	if (pthread_create(&threads[0], NULL, idle, NULL) != 0 || pthread_create(&threads[1], NULL, work, NULL) != 0)
		target_fail("pthread_create");
	pthread_exit(NULL);
}
