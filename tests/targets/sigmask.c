/* SPDX-License-Identifier: MIT */
/* sigmask: threads that allocate with every signal blocked; masks and dispositions stay as they were. */
#include "target.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 3
#define ROUNDS  1500

static pthread_barrier_t begin, finish;
static sigset_t expected;

static KEEP void sigmask_pair(size_t i)
{
	void *block = malloc(i + 1);

	OPAQUE(block);
	free(block);
}

static KEEP void sigmask_leak(void)
{
	void *block = malloc(45);

	OPAQUE(block);
}

static void check_mask(const char *what)
{
	sigset_t mask;

	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	for (int i = 1; i < 32; i++) {
		if (sigismember(&mask, i) != sigismember(&expected, i))
			target_fail(what);
	}
}

static void *work(void *unused)
{
	pthread_barrier_wait(&begin);
	for (size_t i = 0; i < ROUNDS; i++) {
		sigmask_pair(i);
		if (i % 5 == 0)
			sigmask_leak();
	}
	check_mask("the mask changed inside the window");
	pthread_barrier_wait(&finish);
	pthread_barrier_wait(&finish);
	check_mask("the mask changed after the window");
	return unused;
}

int main(void)
{
	pthread_t threads[THREADS];
	struct sigaction before, after;

	sigfillset(&expected);
	sigdelset(&expected, SIGALRM);
	pthread_sigmask(SIG_SETMASK, &expected, NULL);
	sigaction(SIGTRAP, NULL, &before);
	pthread_sigmask(SIG_BLOCK, NULL, &expected);
	pthread_barrier_init(&begin, NULL, THREADS + 1);
	pthread_barrier_init(&finish, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			target_fail("pthread_create");
	}
	target_ready();
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&finish);
	target_say("sigmask_pair.transient.count", THREADS * ROUNDS);
	target_say("sigmask_leak.impacting.count", THREADS * ROUNDS / 5);
	target_say("sigmask_leak.impacting.bytes", THREADS * ROUNDS / 5 * 45);
	target_done();
	pthread_barrier_wait(&finish);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	sigaction(SIGTRAP, NULL, &after);
	if (after.sa_handler != before.sa_handler || after.sa_flags != before.sa_flags)
		target_fail("the disposition of SIGTRAP changed");
	check_mask("the main thread's mask changed");
	return 0;
}
