/* SPDX-License-Identifier: MIT */
/* endless: a thread allocates in a loop without an end, of code without unwind information that others have called. */
#include "target.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 200

int undescribed_endless(void (*work)(void));

static atomic_ulong rounds;

static KEEP void work(void)
{
	void *block = malloc(40);

	OPAQUE(block);
	rounds++;
	usleep(500);
}

static KEEP void *thread_main(void *unused)
{
	int ended = undescribed_endless(work);

	OPAQUE(ended);
	return unused;
}

static void await(unsigned long more)
{
	unsigned long since = rounds;

	while (rounds - since < more)
		usleep(1000);
}

int main(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, thread_main, NULL))
		target_fail("pthread_create");
	await(1);
	target_ready();
	await(ROUNDS);
	target_say("rounds", ROUNDS);
	target_done();
	return 0;
}
