/* SPDX-License-Identifier: MIT */
/*
 * threads [N [PAIRS [LEAKS [REST]]]]: N threads, each PAIRS malloc/free pairs, each LEAKS blocks from a function of its
 * own. After every 100 pairs a thread rests for REST microseconds (0: never).
 *
 * PAIRS "until": as many as they can until the harness says that it is enough.
 */
#include "target.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 8

static size_t pairs = 2000, leaks = 50, rest;
static atomic_bool enough;
static atomic_size_t done;
static pthread_barrier_t begin, finish;

#define LEAKER(n)                                                                                                      \
	static KEEP void threads_leak_##n(void)                                                                        \
	{                                                                                                              \
		void *block = malloc(100 + n);                                                                         \
		OPAQUE(block);                                                                                         \
	}
LEAKER(0)
LEAKER(1)
LEAKER(2)
LEAKER(3)
LEAKER(4)
LEAKER(5)
LEAKER(6)
LEAKER(7)

static void (*const leakers[MOST])(void) = {
	threads_leak_0, threads_leak_1, threads_leak_2, threads_leak_3,
	threads_leak_4, threads_leak_5, threads_leak_6, threads_leak_7,
};

static KEEP void threads_pair(size_t size)
{
	char *block = malloc(size);

	OPAQUE(block);
	memset(block, 0x5a, size);
	if (block[size - 1] != 0x5a)
		target_fail("memory changed under a thread");
	free(block);
}

static void *work(void *argument)
{
	size_t number = (size_t)argument, i;

	pthread_barrier_wait(&begin);
	for (i = 0; i < pairs && !atomic_load_explicit(&enough, memory_order_relaxed); i++) {
		threads_pair(1 + i % 2000);
		if (i < leaks)
			leakers[number]();
		if (rest && i % 100 == 99)
			usleep((useconds_t)rest);
	}
	atomic_fetch_add(&done, i);
	for (; i < leaks; i++)
		leakers[number]();
	pthread_barrier_wait(&finish); /* all work done */
	pthread_barrier_wait(&finish); /* the window is over */
	return NULL;
}

int main(int argc, char **argv)
{
	size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 4;
	bool until = argc > 2 && strcmp(argv[2], "until") == 0;
	pthread_t threads[MOST];

	if (until)
		pairs = SIZE_MAX;
	else if (argc > 2)
		pairs = strtoul(argv[2], NULL, 10);
	if (argc > 3)
		leaks = strtoul(argv[3], NULL, 10);
	if (argc > 4)
		rest = strtoul(argv[4], NULL, 10);
	if (count > MOST)
		count = MOST;
	pthread_barrier_init(&begin, NULL, (unsigned)count + 1);
	pthread_barrier_init(&finish, NULL, (unsigned)count + 1);
	for (size_t i = 0; i < count; i++) {
		char name[16];
		if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
			target_fail("pthread_create");
		snprintf(name, sizeof(name), "worker-%zu", i);
		pthread_setname_np(threads[i], name);
	}
	target_ready();
	pthread_barrier_wait(&begin);
	if (until) {
		target_wait();
		atomic_store(&enough, true);
	}
	pthread_barrier_wait(&finish);
	for (size_t i = 0; i < count; i++) {
		char key[64];
		snprintf(key, sizeof(key), "threads_leak_%zu.impacting.count", i);
		target_say(key, leaks);
		snprintf(key, sizeof(key), "threads_leak_%zu.impacting.bytes", i);
		target_say(key, leaks * (100 + i));
	}
	target_say("threads_pair.size.count", done);
	target_say("threads_pair.transient.count", done);
	target_say("heap.impacting.count", count * leaks);
	target_say("heap.size.count", count * leaks + done);
	target_say("heap.aofi.count", 0);
	target_done();
	pthread_barrier_wait(&finish);
	for (size_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
