/* SPDX-License-Identifier: MIT */
/*
 * storm ROUNDS [CHAINS]: threads that start one another and die, all the time, while its main thread does a known
 * amount of work as often as it is told to (ROUNDS times), saying after each what it did, and "done". Every thread
 * checks what it allocated, the last of it in a destructor of its own data, when it is nearly gone.
 */
#include "target.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCKS 12
#define PAIRS  200
#define LEAKS  30

static pthread_key_t key;
static _Atomic bool over;
static _Atomic size_t alive, started, destroyed;

static KEEP unsigned char *storm_alloc(size_t size, unsigned char mark)
{
	return target_filled(size, mark);
}

static void check_and_free(unsigned char *block, size_t size, unsigned char mark)
{
	for (size_t i = 0; i < size; i++)
		if (block[i] != mark)
			target_fail("memory changed under a thread");
	free(block);
}

static void on_death(void *block)
{
	check_and_free(block, 99, 0x99);
	atomic_fetch_add(&destroyed, 1);
}

static void *live(void *unused);

static void start_one(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	atomic_fetch_add(&alive, 1);
	atomic_fetch_add(&started, 1);
	if (pthread_create(&thread, &attributes, live, NULL) != 0)
		target_fail("pthread_create");
	pthread_attr_destroy(&attributes);
}

static void *live(void *unused)
{
	unsigned char *blocks[BLOCKS];
	unsigned char mark = (unsigned char)atomic_load(&started);

	pthread_setspecific(key, storm_alloc(99, 0x99));
	for (size_t i = 0; i < BLOCKS; i++)
		blocks[i] = storm_alloc(16 + i * 50, mark);
	if (!atomic_load(&over))
		start_one();
	for (size_t i = 0; i < BLOCKS; i++)
		check_and_free(blocks[i], 16 + i * 50, mark);
	/* Its own data's end is still to come. */
	atomic_fetch_sub(&alive, 1);
	return unused;
}

static KEEP void storm_pair(size_t size)
{
	unsigned char *block = malloc(size);

	OPAQUE(block);
	memset(block, 0x5a, size);
	check_and_free(block, size, 0x5a);
}

static KEEP void storm_leak(void)
{
	void *block = malloc(86);

	OPAQUE(block);
}

int main(int argc, char **argv)
{
	size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
	size_t chains = argc > 2 ? strtoul(argv[2], NULL, 10) : 16;

	if (pthread_key_create(&key, on_death) != 0)
		target_fail("pthread_key_create");
	for (size_t i = 0; i < chains; i++)
		start_one();
	target_ready_for(280);
	for (size_t round = 0; round < rounds; round++) {
		if (round > 0)
			target_wait();
		for (size_t i = 0; i < PAIRS; i++) {
			storm_pair(1 + i * 7);
			if (i < LEAKS)
				storm_leak();
		}
		target_say("storm_pair.transient.count", PAIRS);
		target_say("storm_leak.impacting.count", LEAKS);
		target_say("storm_leak.impacting.bytes", LEAKS * 86);
		target_say_text("done");
	}
	target_wait();
	atomic_store(&over, true);
	while (atomic_load(&alive) > 0 || atomic_load(&destroyed) < atomic_load(&started))
		usleep(1000);
	target_say("started", atomic_load(&started));
	target_done();
	return 0;
}
