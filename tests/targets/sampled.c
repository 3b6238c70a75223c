/* SPDX-License-Identifier: MIT */
/*
 * sampled [SECONDS [FAST]]: allocates from several stacks, keeps what it says, and frees the rest: what estimates of sampled blocks are
 * held against. For so long (0 by default: once) it goes on, a round each 20 ms, so that it can be seen what grows; a round more
 * is a known amount more.
 *
 *   keep_small   blocks of 64 bytes, of which every fourth is freed at once
 *   keep_pages   blocks of 4 KiB, of which every second is freed at once
 *   keep_large   blocks of 1 MiB (never touched), of which every second is freed at once
 *   pass         blocks of 200 bytes, all freed at once
 *   grow         a block of 1000 bytes that is reallocated to 5000
 *   hold         a thousand blocks that are kept until the end, and freed then
 *
 * FAST: beside them pairs of 32 bytes (rush), by two threads that do nothing else: more than memwatch can keep up with.
 */
#include "target.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static uint64_t kept[4]; /* blocks: of small, pages, large, grow */

static KEEP void keep_small(void)
{
	for (unsigned i = 0; i < 800; i++) {
		void *block = malloc(64);

		OPAQUE(block);
		if (i % 4)
			kept[0]++;
		else
			free(block);
	}
}

static KEEP void keep_pages(void)
{
	for (unsigned i = 0; i < 64; i++) {
		void *block = malloc(4096);

		OPAQUE(block);
		if (i % 2)
			kept[1]++;
		else
			free(block);
	}
}

static KEEP void keep_large(void)
{
	for (unsigned i = 0; i < 4; i++) {
		void *block = malloc(1 << 20);

		OPAQUE(block);
		if (i % 2)
			kept[2]++;
		else
			free(block);
	}
}

static KEEP void pass(void)
{
	for (unsigned i = 0; i < 200; i++) {
		void *block = malloc(200);

		OPAQUE(block);
		free(block);
	}
}

static KEEP void grow(void)
{
	for (unsigned i = 0; i < 20; i++) {
		void *block = malloc(1000);

		OPAQUE(block);
		block = realloc(block, 5000);
		OPAQUE(block);
		kept[3]++;
	}
}

static void *held[1000];

static KEEP void hold(void)
{
	for (unsigned i = 0; i < 1000; i++)
		held[i] = malloc(3000);
}

static atomic_bool stop;

static KEEP void *rush(void *unused)
{
	(void)unused;
	while (!atomic_load(&stop)) {
		void *block = malloc(32);

		OPAQUE(block);
		free(block);
	}
	return NULL;
}

static void round_of_all(void)
{
	keep_small();
	keep_pages();
	keep_large();
	pass();
	grow();
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 0, end;
	uint64_t rounds = 0;
	pthread_t threads[2];

	target_ready();
	end = now() + seconds;
	hold();
	for (unsigned i = 0; i < 2 && argc > 2; i++)
		if (pthread_create(&threads[i], NULL, rush, NULL))
			target_fail("pthread_create");
	do {
		round_of_all();
		rounds++;
		if (seconds > 0)
			(void)poll(NULL, 0, 20);
	} while (now() < end);
	for (unsigned i = 0; i < 1000; i++)
		free(held[i]);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < 2 && argc > 2; i++)
		pthread_join(threads[i], NULL);
	target_say("rounds", rounds);
	target_say("keep_small", kept[0] * 64);
	target_say("keep_pages", kept[1] * 4096);
	target_say("keep_large", kept[2] << 20);
	target_say("pass", 0);
	target_say("grow", kept[3] * 5000);
	target_done();
	return 0;
}
