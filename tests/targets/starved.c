/* SPDX-License-Identifier: MIT */
/*
 * starved CPU [blocked]: a thread (blocked: with all signals so) that allocates on that CPU, and gets it only where
 * nobody else wants it, until the harness says so. Then it has to run once more.
 */
#include "target.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic unsigned long rounds;

static KEEP void starved_pair(void)
{
	void *block = malloc(100);

	OPAQUE(block);
	free(block);
}

static void *work(void *cpu)
{
	struct sched_param none = {0};
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) != 0 || sched_setscheduler(0, SCHED_IDLE, &none) != 0)
		target_fail("sched_setscheduler");
	for (;; rounds++)
		starved_pair();
	return NULL;
}

int main(int argc, char **argv)
{
	size_t cpu = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	pthread_t thread;
	unsigned long before;
	sigset_t all, none;

	sigfillset(&all);
	sigemptyset(&none);
	if (argc > 2 && strcmp(argv[2], "blocked") == 0)
		pthread_sigmask(SIG_SETMASK, &all, NULL);
	if (pthread_create(&thread, NULL, work, (void *)cpu) != 0)
		target_fail("pthread_create");
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	target_ready();
	before = rounds;
	for (int i = 0; i < 6000 && rounds < before + 1000; i++)
		usleep(10000);
	if (rounds < before + 1000)
		target_fail("the thread makes no progress");
	target_done();
	return 0;
}
