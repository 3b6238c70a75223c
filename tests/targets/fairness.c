/* SPDX-License-Identifier: MIT */
/* fairness [PAIRS]: four threads that allocate without a pause until all together have made PAIRS pairs. */
#include "target.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 4

static atomic_ulong made;
static unsigned long most = 20000;
static unsigned long own[THREADS];
static pthread_barrier_t begin, finish;

static KEEP void fairness_pair(void)
{
	void *block = malloc(77);

	OPAQUE(block);
	free(block);
}

static void *work(void *argument)
{
	size_t number = (size_t)argument;

	pthread_barrier_wait(&begin);
	while (atomic_fetch_add(&made, 1) < most) {
		fairness_pair();
		own[number]++;
	}
	pthread_barrier_wait(&finish); /* all work done */
	pthread_barrier_wait(&finish); /* the window is over */
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	char name[32];

	if (argc > 1)
		most = strtoul(argv[1], NULL, 10);
	pthread_barrier_init(&begin, NULL, THREADS + 1);
	pthread_barrier_init(&finish, NULL, THREADS + 1);
	for (size_t i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
			target_fail("pthread_create");
		snprintf(name, sizeof(name), "busy-%zu", i);
		pthread_setname_np(threads[i], name);
	}
	target_ready();
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&finish);
	for (size_t i = 0; i < THREADS; i++) {
		snprintf(name, sizeof(name), "busy-%zu", i);
		target_say(name, own[i]);
	}
	target_say("fairness_pair.size.count", most);
	target_say("fairness_pair.transient.count", most);
	target_say("heap.aofi.count", 0);
	target_done();
	pthread_barrier_wait(&finish);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
