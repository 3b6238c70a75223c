/* SPDX-License-Identifier: MIT */
/*
 * endings HOW: holds what it says, and ends by itself at once: by `return` from main, `exit`, `_exit`, `thread` (exit
 * in another thread), `last` (the first thread ends, and then the last one returns), `handler` (_exit in a signal
 * handler), `together` (several threads at once); or by a `kill`.
 */
#include "target.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE    4096u
#define PAGES   64u
#define TOUCHED 10u
#define THREADS 6

static pthread_barrier_t barrier;
static void *freed_at_exit;

static KEEP void endings_heap(void)
{
	for (int i = 0; i < 10; i++) {
		void *block = malloc(1000);

		OPAQUE(block);
	}
}

static KEEP void endings_map(void)
{
	char *map =
		mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED)
		target_fail("mmap");
	(void)madvise(map, PAGES * PAGE, MADV_NOHUGEPAGE);
	for (unsigned i = 0; i < TOUCHED; i++)
		map[2 * i * PAGE] = 1;
}

static KEEP void endings_kept_until_exit(void)
{
	freed_at_exit = malloc(2000);
	OPAQUE(freed_at_exit);
}

static void free_at_exit(void)
{
	free(freed_at_exit);
}

static void on_alarm(int number)
{
	(void)number;
	_exit(7);
}

static void *ends_it(void *unused)
{
	exit(7);
	return unused;
}

static void *ends_last(void *leader)
{
	pthread_join(*(pthread_t *)leader, NULL);
	return NULL;
}

static void *ends_with_others(void *unused)
{
	pthread_barrier_wait(&barrier);
	_exit(7);
	return unused;
}

static pthread_t start(void *(*what)(void *), void *argument)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, what, argument) != 0)
		target_fail("pthread_create");
	return thread;
}

static int finish(const char *how)
{
	static pthread_t leader;

	leader = pthread_self();
	if (strcmp(how, "exit") == 0)
		exit(7);
	if (strcmp(how, "_exit") == 0)
		_exit(7);
	if (strcmp(how, "thread") == 0)
		pthread_join(start(ends_it, NULL), NULL);
	if (strcmp(how, "last") == 0) {
		start(ends_last, &leader);
		pthread_exit(NULL);
	}
	if (strcmp(how, "handler") == 0) {
		(void)signal(SIGUSR1, on_alarm);
		raise(SIGUSR1);
	}
	if (strcmp(how, "together") == 0) {
		pthread_barrier_init(&barrier, NULL, THREADS);
		for (int i = 1; i < THREADS; i++)
			start(ends_with_others, NULL);
		ends_with_others(NULL);
	}
	if (strcmp(how, "kill") == 0)
		raise(SIGKILL);
	return 7;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "return";

	if (atexit(free_at_exit) != 0)
		target_fail("atexit");
	if (argc <= 2)
		target_ready();
	endings_heap();
	endings_map();
	endings_kept_until_exit();
	return finish(how);
}
